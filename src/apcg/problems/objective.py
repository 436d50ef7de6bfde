"""P as Newton's method sees it: values, derivatives, moves along a line.

    P(w) = scale sum_i s_i phi_i(A_i'w) + (1/2) sum_j ridge_j w_j^2

A free intercept is the last entry of w: X has a border of ones, and there is no ridge. X is
multiplied with, and never read: it may be in memory or come in parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.validation import Index, Vector
from .._base.validation import Matrix as Table
from .._kernels.newton import objective
from ..data import Matrix
from ..losses import Loss
from .erm import ERM

#: Armijo's constant: P must fall by this part of what its slope promises.
_ARMIJO = 1e-4
#: A slope that can change P by less than this part of it is rounding: the step is taken as it is.
_ROUNDING = 1e-13
#: Trials of a search along a line, at most: bisection finds any double in fewer.
_TRIALS = 60


@dataclass(eq=False)
class At:
    """A point w with z = X w (+ b), P(w), and s_i phi_i' and s_i phi_i'' times scale at z."""

    w: Vector
    z: Vector
    value: float
    slope: Vector
    bend: Vector


#: a point, with the first and second derivative of P along the line that led to it
Trial = tuple[At, float, float]


class Objective:
    """P on the rows of X."""

    def __init__(
        self, X: Matrix, y: Vector, weights: Vector, scale: float, loss: Loss, ridge: Vector,
        box: Vector | None = None, free: bool = False,
    ) -> None:  # fmt: skip
        self.X, self.n, self.size = X, *X.shape
        #: whether the last entry of w is a free intercept, and how many are not
        self.free, self.d = free, self.size - free
        self.y, self.weights, self.scale, self.loss, self.ridge = y, weights, scale, loss, ridge
        #: how far features without a ridge may go, for the gap; None if all have one
        self.box = box
        self._theta = np.array(loss.theta)
        self._spare: tuple[Vector, ...] | None = None

    @classmethod
    def of(cls, problem: ERM) -> Objective:
        """All rows of a problem."""
        ridge = problem.alpha * np.broadcast_to(problem.g.b, problem.d)
        X = problem.samples
        if problem.intercept:
            X, ridge = X.with_ones, np.append(ridge, 0.0)
        parts = problem.y, problem.weights, 1 / problem.n, problem.loss, ridge
        return cls(X, *parts, problem.box, problem.intercept)

    def sample(self, rows: Index, chance: Vector) -> Objective:
        """P on rows that were drawn with these chances: its expectation is P on all rows."""
        weights = (self.weights[rows] if self.weights.size > 1 else self.weights) / chance
        X, y = self.X.rows(rows), self.y[rows]
        return Objective(X, y, weights, self.scale, self.loss, self.ridge, self.box, self.free)

    @property
    def least_ridge(self) -> float:
        """The least ridge of a feature."""
        return float(self.ridge[: self.d].min())

    def leverage(self) -> Vector:
        """sum_j A_ij^2/(sum_k s_k A_kj^2 + gamma ridge_j/scale): the say of each row in H.

        It is 1 for the only row that has some feature.
        """
        s, own = np.broadcast_to(self.weights, self.n), np.zeros(self.size)
        columns = self.X.column_squares(s) + self.loss.gamma / self.scale * self.ridge
        own[: self.d] = 1 / columns[: self.d]
        return np.asarray(s * self.X.squared_norms(own))

    def joined(self, w: Vector | None, b: float | None) -> Vector:
        """w with the intercept as its last entry, if there is one; zeros for None."""
        both = np.zeros(self.size)
        if w is not None:
            both[: self.d] = w
        if self.size > self.d and b is not None:
            both[-1] = b
        return both

    def apart(self, w: Vector) -> tuple[Vector, float]:
        """w and the intercept, 0.0 without one."""
        return w[: self.d].copy(), float(w[-1]) if self.size > self.d else 0.0

    # ---- products -------------------------------------------------------------------------------

    def gradient(self, at: At) -> Vector:
        """The gradient of P."""
        return self.ridge * at.w + self.X.adjoint(at.slope)

    def gap(self, gradient: Vector) -> float:
        """sum_j gradient_j^2/(2 ridge_j), over the features: the duality gap at such a w.

        A feature without a ridge counts box_j |gradient_j|: what it could gain in the box.
        """
        part, ridge = gradient[: self.d], self.ridge[: self.d]
        if self.box is None:
            return 0.5 * float(np.dot(part, part / ridge))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(ridge > 0, 0.5 * part * part / ridge, self.box * np.abs(part))
        return float(each.sum())

    def least_curvature(self, part: float) -> Vector:
        """What H gets on its diagonal where there is no ridge: this part of a column's own.

        An intercept's column is ones.
        """
        least = np.full(self.size, part)
        if self.box is not None:
            columns = self.scale * self.X.column_squares(np.broadcast_to(self.weights, self.n))
            least = part * np.where(columns > 0, columns, 1.0)
        return np.where(self.ridge > 0, self.ridge, least)

    # ---- points ---------------------------------------------------------------------------------

    def at(self, w: Vector, z: Vector) -> At:
        """P and its derivatives by z at a point."""
        return self.take(self._trial(w, z, z, 0.0)[0])

    def value(self, w: Vector) -> float:
        """P(w)"""
        return self.at(w, self.X.times(w)).value

    def _trial(self, w: Vector, z: Vector, way: Vector, t: float) -> Trial:
        """P at the point w with the predictions z + t way; and the losses' slope and curvature."""
        buffers = self._spare or tuple(np.empty(self.n) for _ in range(3))
        self._spare = buffers
        loss = self.loss
        value, first, second = objective.evaluate(
            loss.kernel, self._theta, z, way, t, self.y, loss.margin, self.weights, self.scale,
            *buffers,
        )  # fmt: skip
        value += 0.5 * float(np.dot(self.ridge, w * w))
        return At(w, buffers[0], value, buffers[1], buffers[2]), first, second

    def take(self, new: At, old: At | None = None) -> At:
        """`new` is kept, and the memory of `old` is free."""
        self._spare = (old.z, old.slope, old.bend) if old is not None else None
        return new

    def move(
        self, at: At, way: Vector, dz: Vector, slope: float, flat: float, whole: Trial | None = None
    ) -> At | None:
        """From `at` along `way`, with dz = X way, to about the minimum of P; None if that fails.

        The first trial is a whole step (`whole`, if that is the last trial there was). Then
        Newton's method on the slope with a bracket, until the slope is `flat` times what it was
        (`slope`, negative) and P has fallen. `at` is used up.
        """
        t, low, high = 1.0, 0.0, math.inf
        for _ in range(_TRIALS):
            new, first, second = whole or self.trial(at, way, dz, t)
            whole = None
            if self._fallen(at, new, t * slope) and (
                _is_rounding(at, slope) or abs(first) <= flat * abs(slope)
            ):
                return self.take(new, at)
            low, high = (t, high) if first < 0 else (low, t)
            t = t - first / second if second > 0 else math.nan
            if not low < t < high:
                t = 0.5 * (low + high) if math.isfinite(high) else 2 * low
        return None

    def trial(self, at: At, way: Vector, dz: Vector, t: float = 1.0) -> Trial:
        """The point t along `way`, and the first and second derivative of P in t there."""
        w = at.w + t * way
        new, first, second = self._trial(w, at.z, dz, t)
        pull = self.ridge * way
        return new, first + float(np.dot(pull, w)), second + float(np.dot(pull, way))

    def _fallen(self, at: At, new: At, promised: float) -> bool:
        slack = (_ROUNDING if _is_rounding(at, promised) else 0.1 * _ROUNDING) * abs(at.value)
        return new.value <= at.value + _ARMIJO * min(promised, 0.0) + slack

    def gentler(self, at: At, dz: Vector, whole: Trial, slope: float) -> Vector | None:
        """None if P falls by a whole step along dz; else phi'' to try instead, like At.bend.

        A row that a step takes far into or out of a tail of its loss, where phi'' is next to
        nothing, has in its place the slope of phi' along that step, or that between the row and
        the middle of the loss, whichever is larger. The latter bends a parabola that is above phi.
        """
        new = whole[0]
        if self._fallen(at, new, slope):
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            along = (new.slope - at.slope) / dz
        bend = np.fmax(at.bend, np.where(np.isfinite(along), along, 0.0))
        sign = self.y if self.loss.margin else 1.0
        middle = 0.0 if self.loss.kernel == "logistic" else float(self.loss.margin)
        far = self.loss.argument(at.z, self.y) - middle
        tail = np.abs(dz) > 2 * np.abs(far) + 2
        if tail.any():
            weight = self.scale * np.broadcast_to(self.weights, self.n)
            centre = weight * self.loss.arrays.derivative(np.array([middle]))[0]
            with np.errstate(divide="ignore", invalid="ignore"):
                above = (sign * at.slope - centre) / far
            bend = np.where(tail & np.isfinite(above), np.fmax(bend, above), bend)
        return bend


def _is_rounding(at: At, slope: float) -> bool:
    return abs(slope) <= _ROUNDING * abs(at.value)


def moments(rows: Objective, s: Vector) -> tuple[Table, Vector, float, Vector]:
    """Least squares with the best b for each w taken out, for weights s that sum to 1.

        H = sum_i s_i (a_i - a)(a_i - a)'/gamma,   c = sum_i s_i (a_i - a) y_i/gamma

    H is its upper triangle. a is the mean of the rows, or 0 without an intercept; the best b of a
    w is b - <slopes, w>.
    """
    d, s = rows.d, s / rows.loss.gamma
    H, c = rows.X.gram(s), rows.X.adjoint(s * rows.y)
    if rows.size == d:
        return H, c, 0.0, np.zeros(d)
    total = H[d, d]
    b, slopes = float(c[d] / total), H[:d, d] / total
    return H[:d, :d] - total * np.outer(slopes, slopes), c[:d] - c[d] * slopes, b, slopes
