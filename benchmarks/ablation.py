"""What each idea of `auto` is worth: passes and CPU seconds without it, over those with it.

    python benchmarks/ablation.py --data rcv1 a9a --loss hinge logistic --alpha 1e-4 1e-6

For each problem, `auto` is run as it is and without each idea, in turn, one thread; the least CPU
time of --repeat runs counts. Prints a Markdown table of ratios (above 1: the idea pays), with their
geometric means. Real data is looked for in APCG_DATA_DIR or downloaded, and left out if there is
none; "text" is generated.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from data import load

from apcg import ERM, solve
from apcg.datasets import DataError
from apcg.methods.plan.plan import IDEAS, Auto


def run(problem, method, tol, budget, seed):
    """Passes and CPU seconds to tol; infinite if it did not arrive."""
    start = time.process_time()
    r = solve(problem, method, tol=tol, max_epochs=budget, random_state=seed)
    seconds = time.process_time() - start
    return (r.epochs, seconds) if r.converged else (np.inf, np.inf)


def best(problem, methods, a):
    """(passes, least seconds) of each method, in alternating runs."""
    runs = [[run(problem, m, a.tol, a.budget, a.seed) for m in methods] for _ in range(a.repeat)]
    return np.min(np.array(runs), axis=0)


def geometric_mean(values):
    values = np.asarray(values)
    finite = values[np.isfinite(values)]
    lost = f" ({values.size - finite.size} not solved)" if finite.size < values.size else ""
    return (f"{np.exp(np.mean(np.log(finite))):.2f}" if finite.size else "-") + lost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["text", "rcv1", "a9a"])
    parser.add_argument("--loss", nargs="+", default=["hinge", "logistic", "squared_hinge"])
    parser.add_argument("--alpha", nargs="+", type=float, default=[1e-4, 1e-6])
    parser.add_argument("--without", nargs="+", default=list(IDEAS), choices=IDEAS)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    methods = [Auto(), *(Auto(without=(idea,)) for idea in a.without)]
    print(f"Passes / CPU seconds without an idea over those with it, to a gap of {a.tol:g}\n")
    print(f"| data | loss | lambda | auto | {' | '.join(a.without)} |")
    print("|---" * (len(a.without) + 4) + "|")
    ratios = []
    for name in a.data:
        try:
            X, y = load(name)
        except DataError as reason:
            print(reason, file=sys.stderr)
            continue
        for loss in a.loss:
            for alpha in a.alpha:
                found = best(ERM(X, y, loss, "l2", alpha), methods, a)
                ratios.append(found[1:] / found[0])
                passes, seconds = found[0]
                cells = [f"{p:.2f} / {s:.2f}" for p, s in ratios[-1]]
                head = f"| {name} | {loss} | {alpha:g} | {passes:.0f}, {1e3 * seconds:.0f} ms | "
                print(head + " | ".join(cells) + " |", flush=True)
    if ratios:
        table = np.array(ratios)
        means = [
            f"{geometric_mean(table[:, k, 0])} / {geometric_mean(table[:, k, 1])}"
            for k in range(len(a.without))
        ]
        print(f"| geometric mean | | | | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
