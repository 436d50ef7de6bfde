"""P on some rows of X, as Newton's method sees it: values, derivatives, moves along a line.

    P(w) = scale sum_i s_i phi_i(A_i'w) + (1/2) sum_j ridge_j w_j^2

An intercept is the last entry of w, with a column of ones that is stored nowhere and no ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._base.validation import Index, Matrix, Vector
from .._kernels.data.matrix import squared_norms
from .._kernels.newton import objective
from ..losses import Loss
from .erm import ERM

#: Armijo's constant: P must fall by this part of what its slope promises.
_ARMIJO = 1e-4
#: A slope that can change P by less than this part of it is rounding: the step is taken as it is.
_ROUNDING = 1e-13
#: Trials of a search along a line, at most: bisection finds any double in fewer.
_TRIALS = 60
#: Dense rows of more features go to BLAS (measured: at 60 ours takes 1.8 times the CPU of BLAS on
#: one thread, at 200 2.2 times; but the threads that BLAS starts cost more on small ones).
_BLAS = 150
#: Numbers in a block of dense rows that is copied for BLAS, 1 MB.
_BLOCK = 131_072


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


class Rows:
    """P on a set of rows of X."""

    def __init__(
        self, stored: Any, y: Vector, weights: Vector, scale: float, loss: Loss, ridge: Vector
    ) -> None:
        self.stored = stored
        if hasattr(stored, "indptr"):
            self._arrays = stored.data, stored.indices, stored.indptr
        else:
            empty = np.empty(0, dtype=np.int32)
            self._arrays = stored.reshape(-1), empty, empty
        self.n, self.d = stored.shape
        self.y, self.weights, self.scale, self.loss, self.ridge = y, weights, scale, loss, ridge
        self.size = len(ridge)
        self._border = self.size > self.d
        #: what the kernels take first
        self.shape = (*self._arrays, self.d, self._border)
        self._theta = np.array(loss.theta)
        self._spare: tuple[Vector, ...] | None = None

    @classmethod
    def of(cls, problem: ERM) -> Rows:
        """All rows of a problem."""
        ridge = problem.alpha * np.broadcast_to(problem.g.b, problem.d)
        ridge = np.append(ridge, 0.0) if problem.intercept else ridge
        X = problem.samples
        return cls(X.stored, problem.y, problem.weights, 1 / problem.n, problem.loss, ridge)

    def sample(self, rows: Index, chance: Vector) -> Rows:
        """P on rows that were drawn with these chances: its expectation is P on all rows."""
        weights = (self.weights[rows] if self.weights.size > 1 else self.weights) / chance
        return Rows(self.stored[rows], self.y[rows], weights, self.scale, self.loss, self.ridge)

    def heaviest(self) -> float:
        """About the largest square of a number of X."""
        some = self._arrays[0][:: max(self.nnz // 1000, 1)].astype(np.float64)
        return float(np.max(some * some, initial=0.0))

    @property
    def least_ridge(self) -> float:
        """The least ridge of a feature."""
        return float(self.ridge[: self.d].min())

    def leverage(self) -> Vector:
        """sum_j A_ij^2/(sum_k s_k A_kj^2 + gamma ridge_j/scale): the say of each row in H.

        It is 1 for the only row that has some feature.
        """
        columns = self.loss.gamma / self.scale * self.ridge[: self.d]
        objective.column_squares(*self._arrays, self.d, self.weights, columns)
        out = np.empty(self.n)
        squared_norms(*self._arrays, 1 / columns, out)
        return self.weights * out

    @property
    def nnz(self) -> int:
        """How many numbers are stored."""
        return int(self._arrays[0].size)

    @property
    def sparse(self) -> bool:
        """Whether X is sparse."""
        return bool(self._arrays[2].size)

    @cached_property
    def gram_madds(self) -> float:
        """Multiply-adds of a Gram matrix of all rows."""
        if not self.sparse:
            return float(0.5 * self.n * self.d * (self.d + 1))
        each = np.diff(self._arrays[2])
        return float(0.5 * (float(np.dot(each, each)) + self.nnz))

    # ---- products -------------------------------------------------------------------------------

    def margins(self, w: Vector) -> Vector:
        """X w (+ b)"""
        out = np.empty(self.n)
        objective.margins(*self.shape, w, out)
        return out

    def gradient(self, at: At) -> Vector:
        """The gradient of P."""
        out = self.ridge * at.w
        objective.gradient(*self.shape, at.slope, out)
        return out

    def gap(self, gradient: Vector) -> float:
        """sum_j gradient_j^2/(2 ridge_j), over the features: the duality gap at such a w."""
        part, ridge = gradient[: self.d], self.ridge[: self.d]
        return 0.5 * float(np.dot(part, part / ridge))

    def combine(self, slope: Vector) -> Vector:
        """sum_i slope_i A_i"""
        out = np.zeros(self.size)
        objective.gradient(*self.shape, slope, out)
        return out

    def product(
        self, bend: Vector, p: Vector, q: Vector, ridge: Vector, last: float, total: Vector
    ) -> Vector:
        """(sum_i bend_i A_i A_i' + ridge) p; q becomes X p. Before that total += last q."""
        out = ridge * p
        objective.product(*self.shape, bend, p, q, out, last, total)
        return out

    def gram(self, bend: Vector) -> Matrix:
        """The upper triangle of sum_i bend_i A_i A_i'."""
        out = np.zeros((self.size, self.size))
        if self.sparse or self.d <= _BLAS:
            objective.gram(*self.shape, bend, out)
            return out
        d, X = self.d, self.stored
        if self.n and bend.min() == bend.max() and X.dtype == np.float64:  # no copy of X
            out[:d, :d] = bend[0] * (X.T @ X)
        else:
            kept = np.flatnonzero(bend)
            root = np.sqrt(bend[kept])
            for part in np.array_split(np.arange(kept.size), 1 + kept.size * d // _BLOCK):
                block = root[part, None] * X[kept[part]]
                out[:d, :d] += block.T @ block
        if self._border:
            out[:, d] = self.combine(bend)
        return out

    # ---- points ---------------------------------------------------------------------------------

    def at(self, w: Vector, z: Vector) -> At:
        """P and its derivatives by z at a point."""
        return self.take(self._trial(w, z, z, 0.0)[0])

    def value(self, w: Vector) -> float:
        """P(w)"""
        return self.at(w, self.margins(w)).value

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


def moments(rows: Rows, s: Vector) -> tuple[Matrix, Vector, float, Vector]:
    """Least squares with the best b for each w taken out, for weights s that sum to 1.

        H = sum_i s_i (a_i - a)(a_i - a)'/gamma,   c = sum_i s_i (a_i - a) y_i/gamma

    H is its upper triangle. a is the mean of the rows, or 0 without an intercept; the best b of a
    w is b - <slopes, w>.
    """
    d, s = rows.d, s / rows.loss.gamma
    H, c = rows.gram(s), rows.combine(s * rows.y)
    if rows.size == d:
        return H, c, 0.0, np.zeros(d)
    total = H[d, d]
    b, slopes = float(c[d] / total), H[:d, d] / total
    return H[:d, :d] - total * np.outer(slopes, slopes), c[:d] - c[d] * slopes, b, slopes
