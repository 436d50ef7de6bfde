"""Training on a folder that is larger than the memory allowed, beside SGDClassifier.partial_fit.

    python benchmarks/larger_than_memory.py [--rows 1250000] [--memory 300MB] [--folder DIR]

It generates sparse data of 1.5 GB, trains it in a process of its own with the memory limited
(RLIMIT_DATA, for what is not a mapped file), predicts, and prints the peak resident set of each.
Then SGDClassifier goes over the same parts until its objective is as good. Times are CPU seconds of
one thread; reading is part of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ALPHA = 1e-5


def generate(folder: Path, n: int, d: int, each: int) -> None:
    """Rows of `each` numbers, columns by a power law, labels by a noisy plane."""
    from apcg.data.mapped import Writer

    rng = np.random.default_rng(0)
    truth = rng.standard_normal(d)
    with Writer(folder) as out:
        for first in range(0, n, 10_000):
            m = min(10_000, n - first)
            columns = (d * rng.random((m, each)) ** 2).astype(np.int64)
            values = np.abs(rng.standard_normal((m, each))) / np.sqrt(each)
            X = sp.csr_array(
                (values.reshape(-1), columns.reshape(-1), np.arange(0, m * each + 1, each)),
                shape=(m, d),
            )
            X.sum_duplicates()
            noise = 0.5 * rng.standard_normal(m)
            out.add(X, np.where(X @ truth + noise > 0, 1.0, -1.0))
        out.finish("generated")


def peak() -> float:
    """The largest resident set of this process so far, in MB of 1e6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def train(folder: Path, memory: str, loss: str, tol: float) -> dict[str, object]:
    """In this process."""
    from apcg import ERM, solve
    from apcg.datasets import OnDisk

    most = int(float(memory.removesuffix("MB")) * 1e6)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    data = OnDisk(folder, memory)
    begin, wall = time.process_time(), time.monotonic()
    r = solve(ERM(data, loss=loss, alpha=ALPHA), tol=tol, random_state=0)
    spent = time.process_time() - begin, time.monotonic() - wall
    right = sum(int(np.sum((part.times(r.w) > 0) == (data.y[at] > 0))) for at, part in
                data.X.chunks())  # fmt: skip
    return {"primal": r.primal, "relative gap": r.gap / r.primal, "passes": r.epochs,
            "CPU s": round(spent[0], 1), "s": round(spent[1], 1), "accuracy":
            right / data.shape[0], "peak MB": round(peak()), "by": r.trace.notes}  # fmt: skip


def sgd(folder: Path, memory: str, loss: str, aim: float) -> dict[str, object]:
    """SGDClassifier over the same parts in random order, until P <= aim, at most 50 passes."""
    from sklearn.linear_model import SGDClassifier

    from apcg import ERM
    from apcg.data.mapped import Mapped, OnDisk

    data = OnDisk(folder, memory)
    X, y = Mapped(data), data.y
    problem = ERM(X, y, loss, alpha=ALPHA)
    named = {"logistic": "log_loss", "hinge": "hinge", "squared_hinge": "squared_hinge"}[loss]
    model = SGDClassifier(loss=named, alpha=ALPHA, fit_intercept=False, average=True)
    rng, spent, wall, values = np.random.default_rng(0), 0.0, 0.0, []
    for passes in range(1, 51):
        begin, start = time.process_time(), time.monotonic()
        for k in rng.permutation(len(X._parts)).tolist():
            rows = X.gather([k])
            order = rng.permutation(rows.shape[0])
            model.partial_fit(rows.stored[order], y[X.rows_of([k])][order], classes=[-1.0, 1.0])
        spent, wall = spent + time.process_time() - begin, wall + time.monotonic() - start
        values.append(problem.primal(model.coef_[0]))
        print(f"  SGD, pass {passes}: P = {values[-1]:.6g}, {spent:.1f} s", file=sys.stderr)
        if values[-1] <= aim or (passes > 5 and values[-1] > 0.9999 * values[-5]):
            break
    return {"primal": values[-1], "reached": bool(values[-1] <= aim), "passes": passes,
            "CPU s": round(spent, 1), "s": round(wall, 1), "peak MB": round(peak())}  # fmt: skip


def apart(what: str, *args: str) -> dict[str, object]:
    """`what` in a process of its own."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--do", what, *args]
    said = subprocess.run(command, check=True, env=alone, stdout=subprocess.PIPE, text=True)
    made: dict[str, object] = json.loads(said.stdout)
    return made


def main() -> None:
    """Generate, train, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_250_000)
    parser.add_argument("--columns", type=int, default=200_000)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--memory", default="300MB")
    parser.add_argument("--loss", default="logistic")
    parser.add_argument("--tol", default="1e-3")
    parser.add_argument("--folder", type=Path, default=Path("larger.apcg"))
    parser.add_argument("--aim", default="0")
    parser.add_argument("--do", default="")
    given = parser.parse_args()
    folder, memory, loss = given.folder, given.memory, given.loss
    if given.do == "train":
        print(json.dumps(train(folder, memory, loss, float(given.tol))))
        return
    if given.do == "sgd":
        print(json.dumps(sgd(folder, memory, loss, float(given.aim))))
        return
    if not folder.exists():
        generate(folder, given.rows, given.columns, given.each)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {size / 1e6:,.0f} MB, {loss}, alpha = {ALPHA:g}, {memory} allowed")
    same = ["--folder", str(folder), "--memory", memory, "--loss", loss]
    ours = apart("train", *same, "--tol", given.tol)
    print("apcg", ours)
    print("SGD ", apart("sgd", *same[:2], "--memory", "2GB", *same[4:],
                        "--aim", str(ours["primal"])))  # fmt: skip


if __name__ == "__main__":
    main()
