"""How time and memory of a fit grow with the number of samples.

    python benchmarks/growth.py                  # 10,000 to 1,000,000 samples: some minutes, 3 GB
    python benchmarks/growth.py --most 100000    # fewer

Words (sparse, 40 nonzeros a row) and a dense table of 50 columns, lambda = 1/n for L2 and a tenth
of the least lambda without weights for L1, to a relative gap of 1e-4. Each fit is a process of its
own. "memory" is the peak resident memory beyond X, over the bytes of X; "exponent" is the slope of
log(time) between one row and the next.
"""

import argparse
import gc
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from apcg import ERM, datasets, solve

PROBLEMS = [("logistic", "l2"), ("squared_hinge", "l2"), ("hinge", "l2"), ("squared", "l2"),
            ("logistic", "l1"), ("squared", "l1")]  # fmt: skip


def words(n):
    """Sparse rows of unit norm, with labels."""
    return datasets.text_like(n, 2**17, 40, noise=0.3, random_state=0)


def table(n):
    """50 columns that have something in common, with labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 50))
    X[:, 1:] += 0.7 * X[:, :1]
    z = X @ rng.standard_normal(50) / 7 + 0.5 * rng.standard_normal(n)
    return X, np.where(z > np.median(z), 1.0, -1.0)


KINDS = {"words": words, "dense x 50": table}


def status(name):
    """A line of what the system knows of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def measure(kind, n, loss, penalty):
    """One fit: CPU seconds and peak memory beyond X."""
    X, y = KINDS[kind](n)
    few, labels = KINDS[kind](300)
    solve(ERM(few, labels, loss, penalty, 1e-2), random_state=0)  # loads what is loaded late
    parts = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    slope = y / 2 if loss == "logistic" else y
    alpha = 1 / n if penalty == "l2" else np.abs(X.T @ slope).max() / n / 10
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, times = status("VmRSS"), []
    for _ in range(3 if n <= 100_000 else 1):
        start = time.process_time()
        found = solve(ERM(X, y, loss, penalty, alpha), tol=1e-4, random_state=0)
        times.append(time.process_time() - start)
    beyond = (status("VmHWM") - before) / sum(part.nbytes for part in parts)
    return {"seconds": min(times), "memory": beyond, "passes": found.epochs,
            "converged": found.converged}  # fmt: skip


def main():
    """All fits, as a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=1_000_000, help="samples at most")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(measure(*json.loads(given.fit))))
        return
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= given.most]
    print("| data | problem | samples | seconds | exponent | memory | passes |")
    print("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for loss, penalty in PROBLEMS:
            last = None
            for n in sizes:
                words_ = [sys.executable, __file__, "--fit", json.dumps([kind, n, loss, penalty])]
                done = subprocess.run(words_, check=True, capture_output=True, text=True)
                fit = json.loads(done.stdout)
                rate = "" if last is None else f"{math.log10(fit['seconds'] / last):.2f}"
                last = fit["seconds"]
                left = "" if fit["converged"] else " (not converged)"
                print(f"| {kind} | {loss}, {penalty} | {n:,} | {last:.3g}{left} | {rate} | "
                      f"{fit['memory']:.2f} | {fit['passes']} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
