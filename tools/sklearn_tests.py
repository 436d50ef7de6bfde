"""scikit-learn's own tests, run on `apcg.linear_model`.

    python tools/sklearn_tests.py                     # all modules, and a table
    python tools/sklearn_tests.py --module logistic   # some of them
    python tools/sklearn_tests.py --failures          # the table, and why tests failed

A test applies if it fits one of our classes, if it is not listed in sklearn_not_applicable.txt, and
if scikit-learn's own classes pass it, which is asked where ours fail. The files of a run are in
out/sklearn/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parent
OUT = TOOLS.parent / "out" / "sklearn"
#: Test modules, by the names of the table
MODULES = {
    "logistic": ["linear_model.tests.test_logistic"],
    "ridge": ["linear_model.tests.test_ridge"],
    "coordinate descent": ["linear_model.tests.test_coordinate_descent"],
    "sparse coordinate descent": ["linear_model.tests.test_sparse_coordinate_descent"],
    "common": ["linear_model.tests.test_common", "linear_model.tests.test_sag",
               "tests.test_multiclass"],
    "svm": ["svm.tests.test_svm", "svm.tests.test_bounds", "svm.tests.test_sparse"],
    "huber, quantile": ["linear_model.tests.test_huber", "linear_model.tests.test_quantile"],
    "check_estimator": ["tests.test_common"],
    "users": ["linear_model.tests.test_least_angle", "tests.test_multioutput",
              "feature_selection.tests.test_from_model", "feature_selection.tests.test_rfe",
              "ensemble.tests.test_voting", "ensemble.tests.test_stacking",
              "tests.test_calibration", "model_selection.tests.test_classification_threshold",
              "model_selection.tests.test_search", "tests.test_public_functions"],
}  # fmt: skip
#: Of the modules about all estimators, the tests about ours
CHOSEN = {
    "tests.test_common": "Logistic or Ridge or Lasso or ElasticNet or LinearSV or Huber or "
    "Quantile",
    "tests.test_public_functions": "enet_path or lasso_path",
}


def run(module: str, mode: str, tests: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a test module, of all its tests or of some."""
    import sklearn

    folder = OUT / sklearn.__version__ / mode
    folder.mkdir(parents=True, exist_ok=True)
    log, ini = folder / f"{module}.jsonl", folder / "pytest.ini"
    log.unlink(missing_ok=True)
    log.touch()
    ini.write_text("[pytest]\n", encoding="utf-8")
    names = [f"sklearn.{module}"]
    if tests is not None:
        path = Path(sklearn.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
        names = [f"{path}::{test}" for test in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ini), "-p", "sklearn_swap",
               "-p", "no:cacheprovider", "--rootdir", str(Path(sklearn.__file__).parent),
               *([] if tests else ["--pyargs"]), *names]  # fmt: skip
    if module in CHOSEN and tests is None:
        command += ["-k", CHOSEN[module]]
    paths = os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "APCG_SWAP": mode, "APCG_SWAP_LOG": str(log),
                   "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": paths}  # fmt: skip
    with (folder / f"{module}.log").open("w", encoding="utf-8") as told:
        subprocess.run(command, cwd=folder, env=environment, stdout=told, stderr=told)
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def listed() -> dict[str, str]:
    """The tests that do not apply, each with a reason: "module::test  # reason"."""
    found = {}
    for line in (TOOLS / "sklearn_not_applicable.txt").read_text(encoding="utf-8").splitlines():
        test, _, reason = line.partition("  # ")
        if test.strip() and not test.startswith("#"):
            assert reason, f"{test} has no reason"
            found[test.strip()] = reason
    return found


def matches(module: str, test: str, names: dict[str, str]) -> bool:
    """Whether a test is listed: by itself, or with all its parameters."""
    name = f"{module.rsplit('.', 1)[-1]}::{test}"
    return name in names or name.partition("[")[0] in names


def judge(module: str, out: dict[str, str]) -> list[dict[str, Any]]:
    """The tests of a module that fit our classes and that apply, with a verdict.

    A test that fails is run again with scikit-learn's own classes. If it fails with these too, it
    says nothing about ours.
    """
    rows = [r | {"module": module} for r in run(module, "ours") if r["names"]]
    rows = [r for r in rows if r["outcome"] in ("passed", "failed")]
    for row in rows:
        row["verdict"] = "listed" if matches(module, row["test"], out) else row["outcome"]
    failed = [r["test"] for r in rows if r["verdict"] == "failed"]
    before = {r["test"]: r["outcome"] for r in run(module, "theirs", failed)} if failed else {}
    return [r for r in rows if r["verdict"] != "failed" or before.get(r["test"]) == "passed"]


def _share(what: str, passed: int, applicable: int) -> str:
    return f"{what}: {passed} of {applicable} pass, {100 * passed / max(applicable, 1):.2f} %"


def main() -> int:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", action="append", choices=MODULES, help="only this one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--failures", action="store_true", help="say which tests failed, and why")
    given = parser.parse_args()
    chosen = given.module or list(MODULES)
    out = listed()
    modules = [m for name in chosen for m in MODULES[name]]
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = dict(zip(modules, pool.map(lambda m: judge(m, out), modules), strict=True))
    print(f"{'module':28} applicable  passed  failed  listed  engine  by scikit-learn")
    total: Counter[str] = Counter()
    for name in chosen:
        each = [r for m in MODULES[name] for r in rows[m]]
        count = Counter(r["verdict"] for r in each)
        applies = [r for r in each if r["verdict"] != "listed"]
        passed = [r for r in applies if r["verdict"] == "passed"]
        alone = sum(not r["engine"] and r["theirs"] > 0 for r in passed)
        line = {"applicable": len(applies), "passed": count["passed"],
                "failed": len(applies) - count["passed"], "listed": count["listed"],
                "engine": sum(r["engine"] for r in applies), "by scikit-learn": alone}  # fmt: skip
        total.update(line)
        print(f"{name:28} " + "  ".join(f"{v:>6}" for v in line.values()))
    print(f"{'all':28} " + "  ".join(f"{v:>6}" for v in total.values()))
    print(_share("of all", total["passed"], total["applicable"]))
    theirs = total["by scikit-learn"]
    print(_share("without those that only scikit-learn's solvers passed",
                 total["passed"] - theirs, total["applicable"] - theirs))  # fmt: skip
    if given.failures:
        for r in (r for each in rows.values() for r in each):
            if r["verdict"] == "failed":
                print(f"\n{r['module']}::{r['test']}\n    {r['why']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
