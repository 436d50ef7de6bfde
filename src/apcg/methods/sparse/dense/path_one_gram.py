"""The squared loss with few columns, for all alphas at once: on one Gram matrix.

With the best b for each w taken out, P is a parabola with an L1 part (see `moments`), and its Gram
matrix is all there is to know of the data: each alpha starts from the answer of the one before.
"""

from __future__ import annotations

import numpy as np

from ...._base.validation import Matrix, Vector
from ....losses import Squared
from ....problems.erm import ERM
from ....problems.objective import Objective, moments
from ..penalty import ScaledPenalty
from ..tuning import SetTuning
from .path_dense import solved


def fits(problem: ERM) -> bool:
    """Whether it is the squared loss with few columns, and no more of them than samples."""
    return isinstance(problem.loss, Squared) and problem.d <= min(SetTuning.few_columns, problem.n)


def optima(problem: ERM, grid: Vector, tol: float) -> tuple[Matrix, Vector] | None:
    """w (a row each) and b for the alphas, to about a gap of tol; None where one did not end."""
    s = np.broadcast_to(problem.weights, problem.n_samples) / problem.n
    H, c, b, slopes = moments(Objective.of(problem), s)
    H = np.triu(H) + np.triu(H, 1).T
    shifted = problem.y - b
    total = float(np.sum(s * shifted * shifted)) / problem.loss.gamma
    g = problem.interval
    w = np.clip(np.zeros(problem.d), g.lower, g.upper)
    unit = ScaledPenalty(g.a, g.b, g.lower, g.upper)
    order = np.argsort(-grid, kind="stable")
    found = solved(H, c, total, c - H @ w, w, unit, grid[order], tol, SetTuning())
    if len(found) < grid.size:
        return None
    W = np.empty_like(found)
    W[order] = found
    return W, b - W @ slopes
