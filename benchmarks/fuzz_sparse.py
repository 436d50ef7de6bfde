"""Random problems with an L1 part, each solved in a way drawn at random.

The ways are working sets in some shape, interior points, and `auto`.

    python benchmarks/fuzz_sparse.py --problems 10000

The problems are those of `fuzz_problems.py`, too small for the shape of large sparse data:
here it is taken whatever the size. P and D are computed again from w, x and b in extended
precision. What does not agree is printed with its seed; so is, at the end, how runs ended.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter

import numpy as np
import scipy.sparse as sp
from fuzz_problems import random_case

from apcg import path, solve
from apcg.methods.base import unmet
from apcg.methods.interior.interior_l1 import InteriorL1
from apcg.methods.plan.plan import Auto
from apcg.methods.sparse import SetTuning, WorkingSet

SHAPES = {
    "columns": WorkingSet(SetTuning(few_rows=0, tall=np.inf)),
    "rows": WorkingSet(SetTuning(few_rows=0, tall=np.inf, by_rows=0.0, few_cut=1.0)),
    "wide": WorkingSet(
        SetTuning(few_rows=10**9, tall=np.inf, tall_strips=np.inf, strip_columns=(1, 1))
    ),
    "tall": WorkingSet(SetTuning(tall=0.0, least_rows=20, strip_columns=(1, 1))),
    "path": WorkingSet(SetTuning(few_rows=0, tall=np.inf, first=5, more=2)),
    "interior": InteriorL1(),
    "auto": Auto(),
    "alphas": Auto(),
}
#: Shapes for sparse data alone.
COLUMNS = ("columns", "rows")


def one(seed, counts):
    """Solve one problem; what is wrong with it, in words, or None."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    try:
        problem = case.problem()
    except ValueError:
        return None
    if not problem.separable or not problem.interval.a.any():
        return None
    sparse = sp.issparse(case.X)
    ways = [s for s in SHAPES if unmet(SHAPES[s], problem) is None and (sparse or s not in COLUMNS)]
    if not ways:
        return None
    shape = str(rng.choice(ways))
    tol, epochs = float(10 ** rng.uniform(-10, -2)), int(rng.choice([20, 500]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"tol": tol, "max_epochs": epochs, "random_state": seed}
        if shape in ("path", "alphas"):
            alphas = case.alpha * np.array([8.0, 4.0, 2.0, 1.0])
            r = path(problem, alphas, SHAPES[shape], **options)[-1]
        else:
            r = solve(problem, SHAPES[shape], **options)
    counts[shape, r.status.code] += 1
    with np.errstate(over="ignore"):
        P, D, room = case.values(r.w, r.x, r.intercept, case.alpha)
    room *= 64
    about = f"{shape}, {problem!r}, {r.status.code}, tol {tol:.1e}"
    if D is None:
        return f"x is not feasible: {about}"
    if not (abs(P - r.primal) <= room and abs(D - r.dual) <= room):
        return f"values: {r.primal} is {P}, {r.dual} is {D}, room {float(room):.1e}: {about}"
    if r.converged and not tol * abs(P) + room >= P - D:
        return f"not converged: {float((P - D) / abs(P)):.1e}: {about}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so many")
    args = parser.parse_args()
    counts, wrong, seed, start = Counter(), 0, args.seed, time.perf_counter()
    while sum(counts.values()) < args.problems and time.perf_counter() - start < args.seconds:
        try:
            said = one(seed, counts)
        except Exception as error:
            said = repr(error)
        if said:
            wrong += 1
            print(f"seed {seed}: {said}", flush=True)
        seed += 1
    print(f"{sum(counts.values())} problems, to seed {seed - 1}; {wrong} wrong")
    for (shape, code), count in sorted(counts.items()):
        print(f"{shape:8} {code:12} {count}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
