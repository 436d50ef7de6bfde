"""Certificates of the squared loss for many alphas at once, by products of matrices.

With a row for each alpha, and no bounds on w:

    r = y - X w - b,   x = s r/max(1, excess),   v = X'x/(alpha n)
    P = (1/n) sum_i s_i r_i^2/2 + alpha g(w)
    D = (1/n) sum_i (y_i x_i - x_i^2/(2 s_i)) - alpha g*(v)

They are exact: they come from w and X as it was given. excess is max_j |v_j|/a_j at x = s r, with a
bound on the rounding of v added to each |v_j|: x must be feasible in whatever order v is summed.
The computed X_j'x is off by at most n eps |X_j| |x|. If all b_j > 0, g* is finite everywhere, and
x = s r is taken as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._base.validation import Mask, Matrix, Vector
from ....data import views
from ....problems.erm import ERM
from ..penalty import ScaledPenalty

_EPS = float(np.finfo(float).eps)


@dataclass(eq=False)
class Looks:
    """For each alpha x, b, P and D; and minus the gradient of the losses by w. NaN is no value."""

    x: Matrix
    b: Vector
    primal: Vector
    dual: Vector
    slopes: Matrix

    def within(self, tol: float) -> Mask:
        """Where the relative gap is at most tol."""
        with np.errstate(invalid="ignore"):
            gap = self.primal - self.dual
            return np.asarray(
                np.where(self.primal == 0, gap <= 0, gap <= tol * np.abs(self.primal))
            )


def look(problem: ERM, grid: Vector, W: Matrix, rows: Matrix, on: ScaledPenalty) -> Looks:
    """At the w in the rows of W, for one alpha each.

    `rows` are the columns of X that the entries of w are for, and `on` is g on them; all other
    entries are zero.
    """
    X, y, n, g = problem.samples.view(views.whole), problem.y, problem.n, problem.interval
    s, flat = problem.weights, problem.weights.size == 1
    R, b = W @ rows, np.zeros(grid.size)
    np.subtract(y, R, out=R)
    for _ in range(2 if problem.intercept else 0):  # the second time for what rounding left
        shift = R.mean(axis=1) if flat else R @ s / s.sum()
        R -= shift[:, None]
        b += shift
    x = R if flat else s * R
    square = np.einsum("kn,kn->k", x, R)
    loss = 0.5 * square
    size = np.abs(W)
    norm = on.a[0] * size.sum(axis=1) if on.a.size == 1 else size @ on.a
    if on.b.any():
        norm += 0.5 * (np.square(size) @ np.broadcast_to(on.b, size.shape[1]))
    primal = loss / n + grid * norm
    slopes = x @ X
    slopes /= n
    scale, conjugate = np.ones(grid.size), 0.0
    if g.b.any():
        over = np.maximum(np.abs(slopes) / grid[:, None] - g.a, 0.0)
        conjugate = np.sum(over * over / (2 * g.b), axis=1)
    else:
        square = square if flat else np.einsum("kn,kn->k", x, x)
        length = np.sqrt(square * problem.samples.squared_norms().sum())
        room = (problem.n_samples + 8) * _EPS * length / n
        scale /= np.maximum(1.0, _excess(slopes, room, g.a) / grid)
    if (scale < 1).any():
        x *= scale[:, None]
    dual = (x @ y - scale**2 * loss) / n - grid * conjugate
    if problem.intercept:
        dual[[problem.imbalance(point) > 1 for point in x]] = -np.inf
    primal[np.isnan(primal)], dual[np.isnan(dual)] = np.inf, -np.inf
    return Looks(x, b, primal, dual, slopes)


def _excess(slopes: Matrix, room: Vector, a: Vector) -> Vector:
    """max_j (|slope_j| + room)/a_j for each row."""
    if a.size == 1:
        return np.asarray((np.maximum(slopes.max(axis=1), -slopes.min(axis=1)) + room) / a[0])
    return np.asarray(np.max((np.abs(slopes) + room[:, None]) / a, axis=1))
