"""Passes over the data to a relative duality gap of 1e-3, 1e-6 and 1e-9: exact, by the seed.

    python benchmarks/passes.py --data rcv1 a9a --loss smoothed_hinge --alpha 1e-4 1e-6

    python benchmarks/passes.py --path --data rcv1

compares one path over twenty alphas, 1e-3 to 1e-7, with twenty cold solves, to a gap of 1e-6.

Real data is looked for in APCG_DATA_DIR or downloaded, and left out if there is none; "text" is
generated. Rows of a9a are scaled to unit norm. Prints a Markdown table. A method that did not
arrive within the budget has the gap it reached. The gap is looked at after every pass, and what a
look costs is not counted; a step of Newton's method (auto, n >> d) counts by its multiply-adds.
"""

import argparse
import sys

import numpy as np
from data import load

from apcg import ERM, path, solve
from apcg.datasets import DataError

GAPS = (1e-3, 1e-6, 1e-9)
LOSSES = ("logistic", "squared_hinge", "smoothed_hinge")


def passes(problem, method, gaps, budget, seed):
    """The first pass with each relative gap, or None, and the last relative gap."""
    tol = min(gaps)
    r = solve(problem, method, tol=tol, max_epochs=budget, check_every=1, random_state=seed)
    relative = r.trace["gap"] / abs(r.trace["primal"])
    first = [
        next((e for e, g in zip(r.trace["epoch"], relative, strict=True) if g <= gap), None)
        for gap in gaps
    ]
    return first, relative.min()


def cell(first, reached, budget):
    shown = [str(int(f)) if f is not None else f"> {budget}" for f in first]
    late = f" (at {reached:.0e})" if None in first else ""
    return " / ".join(shown) + late


def of_a_path(name, X, y, loss, seed):
    """A row: the passes of a path, of as many cold solves, and the ratio."""
    p, alphas = ERM(X, y, loss, "l2"), np.geomspace(1e-3, 1e-7, 20)
    options = {"check_every": 1, "random_state": seed}
    warm = sum(r.epochs for r in path(p, alphas, **options))
    cold = sum(solve(p.with_alpha(a), **options).epochs for a in alphas)
    return f"| {name} | {loss} | {warm} | {cold} | {warm / cold:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["text", "rcv1", "news20", "a9a", "covtype"])
    parser.add_argument("--loss", nargs="+", default=list(LOSSES))
    parser.add_argument("--alpha", nargs="+", type=float, default=[1e-4, 1e-5, 1e-6, 1e-7, 1e-8])
    parser.add_argument("--method", nargs="+", default=["auto", "apcg", "sdca", "afg"])
    parser.add_argument("--gap", nargs="+", type=float, default=list(GAPS))
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--path", action="store_true", help="a path against cold solves, auto")
    parser.add_argument("--quick", action="store_true", help="generated data, two lambdas")
    a = parser.parse_args()
    if a.path:
        a.gap = [1e-6]
    if a.quick:
        a.data, a.alpha, a.budget = ["text"], [1e-4, 1e-6], min(a.budget, 200)
    print(f"Passes to a relative gap of {' / '.join(f'{g:g}' for g in a.gap)}, seed {a.seed}\n")
    heads = ["data", "loss", "lambda", "R^2/(lambda gamma n)", *a.method]
    if a.path:
        heads = ["data", "loss", "path", "cold", "ratio"]
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for name in a.data:
        try:
            X, y = load(name, unit_rows=name == "a9a")
        except DataError as reason:
            print(reason, file=sys.stderr)
            continue
        for loss in a.loss:
            if a.path:
                print(of_a_path(name, X, y, loss, a.seed), flush=True)
                continue
            for alpha in a.alpha:
                p = ERM(X, y, loss, "l2", alpha)
                cells = [cell(*passes(p, m, a.gap, a.budget, a.seed), a.budget) for m in a.method]
                row = [name, loss, f"{alpha:g}", f"{p.condition_number / p.n:.3g}", *cells]
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
