"""What one step costs, and that it does not grow with the problem.

    python benchmarks/step_cost.py

counts the instructions of a step with callgrind (valgrind) at two sizes N of x, with as many rows
in A and the same number of nonzeros in a column, and prints a Markdown table. Only the kernel is
counted, not the making of the problem. The fold, the one operation on whole vectors, is counted by
itself and spread over the steps between two folds. Then it times the steps, both sizes in turn in
one process, best of many. Time may grow where instructions do not: a large problem does not fit
the cache.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apcg import ERM, functions, penalties
from apcg.methods.literature.sag import SAG
from apcg.methods.literature.stochastic import Stochastic
from apcg.methods.literature.svrg import SVRG
from apcg.methods.paper.apcg import APCG, FOLD_AT
from apcg.problems.composite import Composite
from apcg.sequences import Sequence

NAMES = {0.01: "Algorithm 2 (mu = 0.01)", 0.0: "Algorithm 3 (mu = 0)"}
#: Methods of lazy updates: the class and the penalty.
LAZY: dict[str, tuple[type[Stochastic], str]] = {
    "SAG": (SAG, "l2"),
    "SAGA": (SAG, "elasticnet"),
    "SVRG": (SVRG, "elasticnet"),
}
MISSING = (
    "valgrind is not installed: no instruction counts. Debian and Ubuntu: apt install valgrind"
)
#: The compiled functions to count: `run` of one type of data, and `State.fold`.
COUNTED = ("__pyx_fuse_*coordinate*run", "*coordinate*State*fold")
#: The same of the methods of lazy updates: of two patterns that begin alike, callgrind sees one.
LAZY_COUNTED = ("__pyx_fuse_*run_stochastic", "*Memory*fold")
#: The same count whatever the number of cores, and whatever was compiled before.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


class NoCounts(RuntimeError):
    """Valgrind is missing, or it does not know the names in the compiled modules."""


def columns(N: int, nonzeros: int) -> sp.csc_array:
    """N columns and N rows, with so many nonzeros in each column."""
    rows_apart = N // nonzeros
    first = np.arange(N, dtype=np.int64) * 2654435761 % rows_apart
    rows = (first[:, None] + rows_apart * np.arange(nonzeros)).astype(np.int32)
    data = np.tile(1.0 + np.arange(nonzeros) / nonzeros, N)
    starts = np.arange(0, nonzeros * N + 1, nonzeros, dtype=np.int32)
    return sp.csc_array((data, rows.ravel(), starts), shape=(N, N))


def make(N: int, nonzeros: int, mu: float | str) -> APCG | Stochastic:
    """A Lasso with N coordinates; or for a name of `LAZY`, N samples of N features."""
    A = columns(N, nonzeros)
    if isinstance(mu, str):
        iterate, penalty = LAZY[mu]
        made = ERM(A.T.tocsr(), np.tile([1.0, -1.0], N // 2), "logistic", penalty, 1e-5)
        return iterate(made, np.zeros(N))
    problem = Composite(functions.LeastSquares(A, np.ones(N)), penalties.L1(1e-3), N)
    return APCG(problem, np.zeros(N), Sequence.choose(N, mu, None))


def child(N: int, nonzeros: int, mu: float | str, steps: int, folds: int) -> None:
    """What is run under callgrind: one method, or several of `LAZY` with + between their names."""
    for one in mu.split("+") if isinstance(mu, str) else [mu]:
        method = make(N, nonzeros, one)
        if steps:
            method.epoch(np.random.default_rng(0).integers(N, size=steps))
            if method.state.folds if isinstance(method, APCG) else method.folds:
                raise SystemExit("a fold came among the steps: ask for fewer steps")
        for _ in range(folds):
            method.state.fold() if isinstance(method, APCG) else method.w


def instructions(N: int, nonzeros: int, mu: float | str, *, steps: int = 0, folds: int = 0) -> int:
    """The instructions of these steps or folds."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NoCounts(MISSING)
    work = [sys.executable, __file__, "--child", *map(str, (N, nonzeros, mu, steps, folds))]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                valgrind,
                "--tool=callgrind",
                f"--callgrind-out-file={Path(folder) / 'callgrind.out'}",
                *(
                    f"--toggle-collect={name}"
                    for name in (LAZY_COUNTED if isinstance(mu, str) else COUNTED)
                ),
                *work,
            ],
            capture_output=True,
            text=True,
            env=os.environ | ENVIRONMENT,
        )
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or counted is None:
        raise RuntimeError(f"callgrind failed:\n{done.stderr[-2000:]}")
    if int(counted[1]) < 10 * (steps + folds):
        raise NoCounts("The compiled modules have no symbols to count by: are they stripped?")
    return int(counted[1])


def per_step(sizes: list[int], nonzeros: int, mu: float | str, steps: int) -> list[float]:
    """Instructions a step at each size."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(instructions, N, nonzeros, mu, steps=steps) for N in sizes]
        return [job.result() / steps for job in jobs]


def fold_per_step(sizes: list[int], nonzeros: int) -> list[float]:
    """Instructions of a fold over the steps between two, at mu = 1, where it is most frequent."""
    between = -np.log(FOLD_AT) / 2  # in passes: s falls by (1 - 1/N)/(1 + 1/N) a step
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(instructions, N, nonzeros, 1.0, folds=2) for N in sizes]
        return [job.result() / 2 / (between * N) for job, N in zip(jobs, sizes, strict=True)]


def nanoseconds(
    sizes: list[int], nonzeros: int, mu: float | str, steps: int, repeats: int
) -> list[float]:
    """The best time of a step at each size, measured in turn."""
    methods = [make(N, nonzeros, mu) for N in sizes]
    rng = np.random.default_rng(0)
    best = [np.inf] * len(sizes)
    for _ in range(repeats):
        for k, (N, method) in enumerate(zip(sizes, methods, strict=True)):
            order = rng.integers(N, size=steps)
            start = time.process_time()
            method.epoch(order)
            best[k] = min(best[k], (time.process_time() - start) / steps * 1e9)
    return best


def row(name: str, values: list[float]) -> str:
    return f"| {name} | {values[0]:.1f} | {values[1]:.1f} | {values[1] / values[0]:.3f} |"


def header(title: str, sizes: list[int]) -> str:
    return f"| {title} | N = {sizes[0]:,} | N = {sizes[1]:,} | ratio |\n|---|---|---|---|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs=2, default=[20_000, 2_000_000], metavar="N")
    parser.add_argument("--nonzeros", type=int, default=10, help="in a column of A")
    parser.add_argument("--steps", type=int, default=50_000, help="to count, and to time at once")
    parser.add_argument("--repeats", type=int, default=30, help="of the timing; 0 leaves it out")
    parser.add_argument("--quick", action="store_true", help="a smaller large problem")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.steps, args.repeats = [20_000, 200_000], 20_000, min(args.repeats, 10)
    if args.child:
        N, nonzeros, mu, steps, folds = args.child
        child(int(N), int(nonzeros), mu if mu[0] == "S" else float(mu), int(steps), int(folds))
        return
    try:
        print(f"Instructions a step, {args.nonzeros} nonzeros in a column:\n")
        print(header("", args.sizes))
        for mu, name in (NAMES | {m: m for m in LAZY}).items():
            counts = per_step(args.sizes, args.nonzeros, mu, args.steps)
            print(row(name, counts), flush=True)
        print(
            row("a fold, spread over its steps, at most", fold_per_step(args.sizes, args.nonzeros))
        )
    except NoCounts as reason:
        print(reason)
    if args.repeats:
        print(f"\nNanoseconds of the processor a step, best of {args.repeats} in turn:\n")
        print(header("", args.sizes))
        for mu, name in (NAMES | {m: m for m in LAZY}).items():
            timed = nanoseconds(args.sizes, args.nonzeros, mu, args.steps, args.repeats)
            print(row(name, timed), flush=True)


if __name__ == "__main__":
    main()
