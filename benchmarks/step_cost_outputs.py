"""What a step with K outputs costs, in instructions, beside K steps with one.

    python benchmarks/step_cost_outputs.py

A step of "sdca" and of "apcg" on the softmax over K classes is counted with callgrind (valgrind),
and one of the same method on the logistic loss, for rows with so many nonzeros. Only the kernels
are counted: the products with the rows of W, the prox, the sums. A step should cost O(K nonzeros),
and less for each class than a step with one output.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apcg import ERM, solve

#: The compiled functions to count, by method and whether K is 1.
COUNTED = {
    ("apcg", True): "*coordinate*run*",
    ("sdca", True): "*run_plain*",
    ("apcg", False): "*momentum_sweep*",
    ("sdca", False): "*plain_sweep*",
}
SAMPLES = 200


class NoCounts(RuntimeError):
    """Valgrind is missing, or it does not know the names in the compiled modules."""


def make(nonzeros: int, K: int) -> ERM:
    """Rows of unit length with so many nonzeros; the logistic loss for K = 1, else the softmax."""
    rng = np.random.default_rng(0)
    d = 20 * nonzeros
    columns = np.sort([rng.choice(d, nonzeros, replace=False) for _ in range(SAMPLES)], axis=1)
    data = rng.uniform(0.5, 1.5, (SAMPLES, nonzeros)) / np.sqrt(nonzeros)
    starts = np.arange(0, SAMPLES * nonzeros + 1, nonzeros)
    X = sp.csr_array((data.ravel(), columns.ravel(), starts), shape=(SAMPLES, d))
    if K == 1:
        return ERM(X, rng.choice([-1.0, 1.0], SAMPLES), "logistic", "l2", 1e-3)
    y = np.append(np.arange(K), rng.integers(0, K, SAMPLES - K))
    return ERM(X, y, "multinomial", "l2", 1e-3)


def child(method: str, nonzeros: int, K: int, passes: int) -> None:
    """What is run under callgrind."""
    solve(make(nonzeros, K), method, tol=0.0, max_epochs=passes, check_every=passes, random_state=0)


def total(method: str, nonzeros: int, K: int, passes: int) -> int:
    """The instructions of so many passes."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NoCounts("valgrind is not installed.")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                valgrind,
                "--tool=callgrind",
                f"--callgrind-out-file={Path(folder) / 'callgrind.out'}",
                f"--toggle-collect={COUNTED[method, K == 1]}",
                sys.executable, __file__, "--child", method, str(nonzeros), str(K), str(passes),
            ],
            capture_output=True,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or counted is None:
        raise RuntimeError(f"callgrind failed:\n{done.stderr[-2000:]}")
    if int(counted[1]) < 10 * SAMPLES:
        raise NoCounts("The compiled modules have no symbols to count by: are they stripped?")
    return int(counted[1])


def per_step(jobs: list[tuple[str, int, int]], passes: int = 8) -> list[float]:
    """Instructions a step of each (method, nonzeros, K)."""
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(total, *job, passes) for job in jobs]
        return [run.result() / (passes * SAMPLES) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--classes", nargs="+", type=int, default=[10, 20])
    parser.add_argument("--nonzeros", nargs="+", type=int, default=[60])
    given = parser.parse_args()
    if given.child:
        child(given.child[0], *map(int, given.child[1:]))
        return
    jobs = list(product(("sdca", "apcg"), given.nonzeros, (1, *given.classes)))
    found = dict(zip(jobs, per_step(jobs), strict=True))
    print("| method | nonzeros | K | instructions | a class and nonzero | over K binary steps |")
    print("|---|---|---|---|---|---|")
    for (method, m, K), count in found.items():
        share = count / (K * found[method, m, 1])
        print(f"| {method} | {m} | {K} | {count:.0f} | {count / K / m:.1f} | {share:.2f} |")


if __name__ == "__main__":
    main()
