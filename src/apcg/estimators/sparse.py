"""L1 and elastic net for many alphas at once: one run goes on from each to the next.

For the squared loss with few features not even a run is needed: P is a parabola with an L1 part,
and its Gram matrix is all there is to know of the data. On dense data with more features a Gram
matrix of some of them is enough for a stretch of alphas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base.validation import Matrix, Vector
from ..certify.points import Start
from ..methods.base import Budget, Target, unmet
from ..methods.sparse import SparseRun, WorkingSet
from ..methods.sparse.dense import path_dense, path_one_gram
from ..problems.erm import ERM

#: w (a row each) and b for the alphas, and the passes that each took; None where one did not end
Optima = tuple[Matrix, Vector, Vector] | None


def applies(problems: Sequence[ERM]) -> bool:
    """Whether working sets are what `auto` would take for each of them."""
    first = problems[0]
    if first.K > 1 or not first.separable or not first.interval.a.any():
        return False
    return unmet(WorkingSet(), first) is None


def optima(problem: ERM, grid: Vector, tol: float, passes: int, rng: np.random.Generator) -> Optima:
    """The answers for all alphas, to a relative gap of tol."""
    if path_one_gram.fits(problem):
        all_at_once = path_one_gram.optima(problem, grid, tol)
        return None if all_at_once is None else (*all_at_once, np.ones(grid.size))
    W, b, spent = np.empty((grid.size, problem.d)), np.empty(grid.size), np.zeros(grid.size)
    for k, found in path_dense.answers(problem, grid, tol):
        W[k], b[k], spent[k] = found.w, found.b, 1
    if spent.all():
        return W, b, spent
    run: SparseRun | None = None
    for k in np.argsort(-grid, kind="stable"):
        at, target = problem.with_alpha(float(grid[k])), Target(tol, passes)
        if run is None or not run.goes_on(at):
            start = Start() if run is None else Start(w=run.w, b=run.b)
            run = WorkingSet(alone=False).start(at, start, target, rng)
        else:
            run = run.turn(at, target)
        with np.errstate(all="ignore"):
            spent[k] = run.advance(Budget(passes)).passes
        if run.relative > tol:
            return None
        W[k], b[k] = run.w, run.b
    return W, b, spent
