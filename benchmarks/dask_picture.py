"""docs/images/rounds.png: how the gap falls with round trips and with passes, beside L-BFGS.

    APCG_DATA_DIR=... python benchmarks/dask_picture.py

Logistic loss, two shards in this process. For apcg it is the relative gap that it certifies. L-BFGS
(SciPy's, which dask-ml calls) has none: for it the distance from the optimum is drawn, one round
and one pass for each value of the loss that it asks for.
"""

import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from dask_rounds import engine
from data import load
from scipy.optimize import fmin_l_bfgs_b

import apcg
from apcg.methods.distributed.driver import Driver, Limits
from apcg.methods.distributed.problem import sharded

CELLS = (("covtype", 1e-6, "581,012 x 54"), ("rcv1", 1e-6, "23,749 x 47,236"))


def ours(X, y, alpha):
    """Round trips, passes, relative gaps."""
    made = engine(X, y, np.random.default_rng(0).permutation(len(y)), 2)
    r = Driver(made, sharded(made, "logistic", alpha=alpha), Limits(1e-6)).solve()
    t = {name: np.array(r.trace[name]) for name in ("messages", "epoch", "gap", "primal")}
    return t["messages"], t["epoch"], t["gap"] / t["primal"]


def theirs(X, y, alpha, best):
    """Relative distances from the optimum, the best so far after each round."""
    seen = []

    def value(w):
        z = y * (X @ w)
        P = np.logaddexp(0, -z).mean() + alpha / 2 * w @ w
        seen.append((P - best) / best)
        return P, -X.T @ (y / (1 + np.exp(z))) / len(y) + alpha * w

    fmin_l_bfgs_b(value, np.zeros(X.shape[1]), factr=0, pgtol=0, maxiter=300)
    return np.maximum(np.minimum.accumulate(seen), 1e-12)


def main():
    warnings.simplefilter("ignore")
    figure, axes = plt.subplots(2, 2, figsize=(8.5, 6), sharey=True, layout="constrained")
    for row, (name, alpha, size) in zip(axes, CELLS, strict=True):
        X, y = load(name, unit_rows=name != "rcv1")
        problem = apcg.ERM(X, y, "logistic", alpha=alpha)
        best = apcg.solve(problem, tol=1e-10, random_state=0).primal
        messages, passes, gaps = ours(X, y, alpha)
        far = theirs(X, y, alpha, best)
        rounds = np.arange(1, len(far) + 1)
        for ax, own, words in zip(row, (messages, passes), ("round trips", "passes"), strict=True):
            ax.semilogy(own, gaps, "o-", ms=3, label="apcg.dask: certified gap")
            ax.semilogy(rounds, far, "-", label="L-BFGS (dask-ml): distance, known afterwards")
            ax.axhline(1e-6, color="0.6", lw=0.8)
            ax.set(xlabel=words, ylim=(1e-8, 3), title=f"{name}, {size}, alpha = {alpha:g}")
            most = np.argmax(far <= 1e-6) + 1 if far[-1] <= 1e-6 else len(far)
            ax.set_xlim(0, 1.1 * max(own[-1], most))
        row[0].set_ylabel("relative gap or distance")
        print(name, "apcg", messages[-1], "messages", passes[-1], "passes; L-BFGS", most, "rounds")
    axes[0, 0].legend(fontsize=8)
    to = Path(__file__).parents[1] / "docs" / "images" / "rounds.png"
    figure.savefig(to, dpi=110)


if __name__ == "__main__":
    main()
