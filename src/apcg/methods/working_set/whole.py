"""The squared loss with few columns, for all alphas at once: on one Gram matrix.

With the best b for each w taken out, P is a parabola with an L1 part (see `moments`), and its Gram
matrix is all there is to know of the data: each alpha starts from the answer of the one before.

The certificates come from two products of matrices, with a column of each for every alpha:

    r = y - X w - b,   x = s r/max(1, excess),   v = X'x/(alpha n)
    P = (1/n) sum_i s_i r_i^2/2 + alpha g(w)
    D = (1/n) sum_i (y_i x_i - x_i^2/(2 s_i)) - alpha g*(v)

They are exact: nothing of the Gram matrix is in them. excess is max_j |v_j|/a_j at x = s r, with a
bound on the rounding of v added to each |v_j|: x must be feasible in whatever order v is summed.
The computed X_j'x is off by at most n eps |X_j| |x|. If all b_j > 0, g* is finite everywhere, and
x = s r is taken as it is.
"""

from __future__ import annotations

import math

import numpy as np

from ..._validation import Matrix, Vector
from ...data.linear_map import Dense
from ...erm import ERM
from ...losses import Squared
from ...points import Certificate
from ..rows import Rows, moments
from .gram import GramModel
from .penalty import ScaledPenalty
from .run import STALL
from .tuning import Tuning

_EPS = float(np.finfo(float).eps)
#: numbers in 1 MB
_ROOM = 131_072


def fits(problem: ERM) -> bool:
    """Whether it is the squared loss with few columns, and no more of them than samples."""
    return isinstance(problem.loss, Squared) and problem.d <= min(Tuning.few_columns, problem.n)


def optima(problem: ERM, grid: Vector, tol: float) -> tuple[Matrix, Vector] | None:
    """w (a row each) and b for the alphas, to about a gap of tol; None where one did not end."""
    s = np.broadcast_to(problem.weights, problem.n_samples) / problem.n
    H, c, b, slopes = moments(Rows.of(problem), s)
    H = np.triu(H) + np.triu(H, 1).T
    shifted = problem.y - b
    yy, tuning = float(np.sum(s * shifted * shifted)) / problem.loss.gamma, Tuning()
    W, share = np.empty((grid.size, problem.d)), tuning.enough * tol
    g, fine = problem.interval, ScaledPenalty.of(problem).least / problem.alpha * math.sqrt(share)
    w = np.clip(np.zeros(problem.d), g.lower, g.upper)
    slope = c - H @ w
    for k in np.argsort(-grid, kind="stable"):
        alpha = float(grid[k])
        penalty = ScaledPenalty(alpha * g.a, alpha * g.b, g.lower, g.upper)
        value = 0.5 * (yy - float((c + slope) @ w)) + penalty.value(w)
        model = GramModel(H, slope, w, penalty, tuning)
        if not model.solve(0.0, 0.0, alpha * fine, share * abs(value)):
            return None
        W[k], w, slope = model.v, model.v, model.g
    return W, b - W @ slopes


def answers(problem: ERM, grid: Vector, tol: float) -> list[Certificate | None]:
    """For each alpha the answer, or None if its gap is above tol; all None if that is not for here.

    Gram matrices lose digits that a tolerance of next to nothing asks for.
    """
    none: list[Certificate | None] = [None] * grid.size
    X, single = problem.samples, problem.K == 1 and problem.separable
    if not (single and fits(problem) and isinstance(X, Dense) and X.stored.dtype == np.float64):
        return none
    penalty = ScaledPenalty.of(problem)
    plain = not penalty.bounded and penalty.a.min() > 0 and (penalty.ridged or not penalty.b.any())
    first, more = Tuning.columns_for
    if not plain or tol < STALL or problem.d > first + more * grid.size:
        return none
    with np.errstate(all="ignore"):
        found = optima(problem, grid, tol)
        if found is None:
            return none
        # the predictions for a part of the alphas take no more room than X, or than a cache
        size = max(problem.d, _ROOM // problem.n_samples)
        parts = np.array_split(np.arange(grid.size), -(-grid.size // size))
        made = [c for part in parts for c in certified(problem, grid[part], found[0][part])]
    return [c if c.relative <= tol else None for c in made]


def certified(problem: ERM, grid: Vector, W: Matrix) -> list[Certificate]:
    """The certificates of the w in the rows of W, for one alpha each. NaN is no certificate."""
    X, y, n, g = problem.samples.stored, problem.y, problem.n, problem.interval
    s = np.broadcast_to(problem.weights, y.shape)
    R, b = y - W @ X.T, np.zeros(grid.size)
    for _ in range(2 if problem.intercept else 0):  # the second time for what rounding left
        shift = R @ s / s.sum()
        R -= shift[:, None]
        b += shift
    x = R if problem.weights.size == 1 else s * R
    loss = 0.5 * np.einsum("kn,kn->k", x, R)
    norm = np.abs(W) @ np.broadcast_to(g.a, problem.d)
    square = W**2 @ np.broadcast_to(g.b, problem.d)
    primal = loss / n + grid * (norm + 0.5 * square)
    V, scale, conjugate = x @ X / (grid * n)[:, None], np.ones(grid.size), np.zeros(grid.size)
    if g.b.any():
        over = np.maximum(np.abs(V) - g.a, 0.0)
        conjugate = np.sum(over * over / (2 * g.b), axis=1)
    else:
        length = np.sqrt(np.einsum("kn,kn->k", x, x) * problem.samples.squared_norms().sum())
        room = (problem.n_samples + 8) * _EPS * length / (grid * n)
        scale /= np.maximum(1.0, np.max((np.abs(V) + room[:, None]) / g.a, axis=1))
    x = x * scale[:, None]
    dual = (x @ y - scale**2 * loss) / n - grid * conjugate
    if problem.intercept:
        dual[[problem._imbalance(point) > 1 for point in x]] = -np.inf
    primal[np.isnan(primal)], dual[np.isnan(dual)] = np.inf, -np.inf
    empty = np.empty(0)
    return [
        Certificate(W[k].copy(), x[k].copy(), float(b[k]), empty, float(P), float(D), exact=True)
        for k, (P, D) in enumerate(zip(primal, dual, strict=True))
    ]
