"""n_jobs=2 beside n_jobs=1: seconds by the clock and of CPU, best of several, alternating.

    python benchmarks/threads.py [--repeats 5]

Gram matrices (Newton's method, ridge) of generated dense data, and independent problems (folds of
cross-validation, classes one against the rest). The same answers are checked. BLAS has one thread
in both. Only a machine with two idle cores shows what two threads bring.
"""

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import apcg


def samples(n, d, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal((d, classes)) / np.sqrt(d) + rng.standard_normal((n, classes))
    return X, np.argmax(score, axis=1)


def gram():
    X, y = samples(200_000, 150)
    problem = apcg.ERM(X, np.where(y > 0, 1.0, -1.0), "logistic", alpha=1e-6)
    return lambda jobs: apcg.solve(problem, method="newton", random_state=0, n_jobs=jobs).w


def folds():
    X, y = samples(20_000, 60)
    made = {"alphas": np.logspace(-2, -6, 5), "cv": 4, "random_state": 0}
    return lambda jobs: apcg.APCGClassifierCV("smoothed_hinge", **made, n_jobs=jobs).fit(X, y).coef_


def classes():
    X, y = samples(20_000, 80, 8)
    made = {"alpha": 1e-6, "multi_class": "ovr", "random_state": 0}
    return lambda jobs: apcg.APCGClassifier("smoothed_hinge", **made, n_jobs=jobs).fit(X, y).coef_


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with threadpool_limits(1):
        for make in (gram, folds, classes):
            run, best, answers = make(), {}, {}
            for _ in range(given.repeats):
                for jobs in (1, 2):
                    begun = time.perf_counter(), time.process_time()
                    answers[jobs] = run(jobs)
                    spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
                    best[jobs] = np.minimum(spent, best.get(jobs, np.inf))
            (one, own), (two, both) = best[1], best[2]
            off = np.abs(answers[1] - answers[2]).max() / np.abs(answers[1]).max()
            print(f"{make.__name__}: {one:.2f} s with one thread, {two:.2f} s with two: "
                  f"{one / two:.2f} times as fast; CPU {own:.2f} and {both:.2f} s; "
                  f"answers differ by {off:.0e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
