"""A short part of scikit-learn's tests on `apcg.linear_model`; tools/sklearn_tests.py runs all."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
MODULES = [
    "svm.tests.test_bounds",
    "linear_model.tests.test_logistic",
    "linear_model.tests.test_coordinate_descent",
    "linear_model.tests.test_ridge",
]
SOME = (
    "l1_min_c or test_predict_3_classes or test_sparsify or test_lasso_toy or test_lasso_cv or "
    "test_multi_task_lasso_readonly or test_ridge_individual_penalties or test_ridgecv_store"
)


def run(tmp_path, mode, *modules_and_more):
    """What the plugin writes of each test."""
    log, ini = tmp_path / f"{mode}.jsonl", tmp_path / "pytest.ini"
    ini.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", ini, "-p", "sklearn_swap",
               "-p", "no:cacheprovider", "--rootdir", Path(sklearn.__file__).parent,
               "--pyargs", *modules_and_more]  # fmt: skip
    told = {"APCG_SWAP": mode, "APCG_SWAP_LOG": str(log), "PYTHONPATH": str(TOOLS)}
    env = os.environ | told
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert log.exists(), done.stdout + done.stderr
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.slow
def test_some_of_scikit_learns_own_tests_pass(tmp_path):
    rows = run(tmp_path, "ours", *(f"sklearn.{m}" for m in MODULES), "-k", SOME)
    touched = [r for r in rows if r["names"]]
    assert {"LassoCV", "LinearSVC", "LogisticRegression", "Ridge", "RidgeCV"} <= {
        name for r in touched for name in r["names"]
    }
    assert not [r["test"] for r in rows if r["outcome"] == "failed"]
    assert all(r["engine"] > 0 for r in touched)


def test_what_scikit_learn_solves_does_not_count_as_ours(tmp_path):
    lines = [
        "from sklearn.datasets import load_diabetes",
        "from sklearn.linear_model import HuberRegressor",
        "def test_no_scale():",
        "    X, y = load_diabetes(return_X_y=True)",
        "    HuberRegressor().fit(X, 0 * y)",  # no residuals, no scale
    ]
    (tmp_path / "test_theirs.py").write_text("\n".join(lines))
    (row,) = run(tmp_path, "ours", "test_theirs")
    assert row["names"] == ["HuberRegressor"]
    assert row["engine"] == 0
    assert row["theirs"] > 0


def test_without_a_swap_nothing_is_ours(tmp_path):
    rows = run(tmp_path, "theirs", "sklearn.svm.tests.test_bounds")
    assert rows
    assert not any(r["names"] for r in rows)


def test_what_does_not_apply_has_a_reason(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    tool = importlib.import_module("sklearn_tests")
    listed = tool.listed()
    assert all(len(reason) > 10 for reason in listed.values())
    known = {name.rsplit(".", 1)[-1] for names in tool.MODULES.values() for name in names}
    assert {test.partition("::")[0] for test in listed} <= known
    assert tool.matches("a.test_x", "test_one[3]", {"test_x::test_one": "why"})
    assert tool.matches("a.test_x", "test_one[3]", {"test_x::test_one[3]": "why"})
    assert not tool.matches("a.test_x", "test_one[4]", {"test_x::test_one[3]": "why"})
