"""Interior points, the general ones: the losses of the rows, in the form that a Newton step needs.

q is the slope of the losses, one number for each prediction: -x, with the labels. A step changes it
by dq = D (dz + pull), where D has K x K numbers for each row. Two kinds of rows have all losses:

    classes   q = p - s e, p >= 0 with sum_k p_k = s. D = 1/theta - (1/theta)(1/theta)'/sum 1/theta
    pieces    q = -sum_m g_m x_m over one or two pieces with bounds for x_m. D = sum_m 1/theta_m

sigma and xi are slacks, and products p sigma are what an interior point method brings to zero. The
softmax and the logistic loss have none: their slopes are those at z, and their steps are shortened.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.validation import Matrix, Vector
from ...losses.base import SOFTMAX
from ...problems.erm import ERM
from .cones import Pairs

#: No probability is smaller, so that 1/theta is finite.
LEAST = 1e-30
#: Along a step of the softmax or the logistic loss, the loss rises above its tangent by at most so
#: many times what its curvature says.
BENT = 2.0


def shortened(loss: Any, q: Matrix, way: Any, t: float) -> float:
    """A step of at most t, short enough for the curvature at its beginning to say where it leads.

    loss(t) is the loss along the step, q its slope at 0; way is (dz, D dz).
    """
    dz, bent = way
    first, slope, bend = loss(0.0), float(np.vdot(q, dz)), float(np.vdot(dz, bent))
    while t > 1e-9 and not loss(t) - first - t * slope <= 0.5 * BENT * t * t * bend + 1e-15 * first:
        t *= 0.5
    return t


def _softmax(z: Matrix) -> Matrix:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


class ClassRows:
    """The multiclass hinge, smoothed or not, and the softmax.

    z + c - gamma (p/s - e) - xi + sigma = 0      p sigma = mu         c = 1 - e
    p = s softmax(z)                                                   of the softmax
    """

    coupled = True

    def __init__(self, problem: ERM, s: Vector, rows: Any) -> None:
        y, K, self.s = problem.y[rows], problem.K, s[rows, None]
        self._e = np.zeros((y.size, K))
        self._e[np.arange(y.size), y] = 1.0
        self._entropy, self._gamma = problem.loss.kind == SOFTMAX, problem.loss.gamma
        cost = 1 - self._e - self._gamma * (1 / K - self._e)
        self._xi = cost.max(axis=1, keepdims=True) + 1.0
        p = np.repeat(self.s / K, K, axis=1)
        #: p and sigma
        self._pairs = Pairs(p, self._xi - cost, not self._entropy)
        self.count = self._pairs.count

    @property
    def slope(self) -> Matrix:
        """q"""
        return np.asarray(self._pairs.a - self.s * self._e)

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return self._pairs.products

    def weigh(self, z: Matrix) -> None:
        """What a step at these predictions begins with."""
        if self._entropy:
            p = self._pairs.a = self.s * np.maximum(_softmax(z), LEAST)
            self.theta, self._short, self._z = 1 / p, np.zeros_like(p), z
        else:
            p, sigma = self._pairs.a, self._pairs.b
            self.theta = self._gamma / self.s + sigma / p
            bent = self._gamma * (p / self.s - self._e)
            self._short = z + 1 - self._e - bent - self._xi + sigma
        self._weight = 1 / self.theta
        self._share = self._weight / self._weight.sum(axis=1, keepdims=True)

    def pull(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        return np.asarray(self._short + self._pairs.aim(centre, second))

    def bent(self, by: Matrix) -> Matrix:
        """D times this."""
        made = self._weight * by
        for _ in range(2):  # the second time for what rounding left of the sum
            made = made - self._share * made.sum(axis=1, keepdims=True)
        return np.asarray(made)

    def block(self, k: int, m: int) -> Vector:
        """D_km of each row, which no subtraction has cost its digits."""
        if k != m:
            return np.asarray(-self._weight[:, k] * self._share[:, m])
        others = self._share.sum(axis=1) - self._share[:, k]
        exact = np.delete(self._share, k, axis=1).sum(axis=1)
        return np.asarray(self._weight[:, k] * np.where(others < 0.5, exact, others))

    def second(self, dz: Matrix, pull: Matrix, dq: Matrix) -> Matrix:
        """The products of the changes that a predictor makes."""
        self.direct(dz, pull, dq)
        return self._pairs.second_order

    def direct(self, dz: Matrix, pull: Matrix, dq: Matrix) -> None:
        """Take this step as the next."""
        self._dz, self._dxi = dz, (self._share * (dz + pull)).sum(axis=1, keepdims=True)
        self._pairs.direct(dq)

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        return self._pairs.fastest

    def shortened(self, t: float) -> float:
        """A step of at most t along which the present curvature is a good model."""
        if not self._entropy:
            return t
        z, dz, at = self._z, self._dz, self._e > 0

        def loss(t: float) -> float:
            moved = z + t * dz
            top = moved.max(axis=1)
            each = top + np.log(np.exp(moved - top[:, None]).sum(axis=1)) - moved[at]
            return float(np.dot(self.s[:, 0], each))

        return shortened(loss, self.slope, (dz, self.bent(dz)), t)

    def after(self, t: float) -> float:
        """`products` after a step t."""
        return self._pairs.after(t)

    def move(self, t: float) -> None:
        """Step; p of the softmax follows from z."""
        if self._entropy:
            return
        self._pairs.move(t)
        p = self._pairs.a
        p *= self.s / p.sum(axis=1, keepdims=True)
        self._xi = self._xi + t * self._dxi


class PieceRows:
    """A loss of one prediction for each output: x = a + l s, 0 <= a <= a + r, one or two of them.

    h - g z - gamma x/s - xi + sigma = 0      a sigma = mu      r xi = mu
    a = s/(1 + exp(g z - h)), r = s - a                         of the logistic loss
    """

    coupled = False

    def __init__(self, problem: ERM, s: Vector, rows: Any) -> None:
        loss = problem.loss if problem.K == 1 else problem.loss.loss
        y, self.s = problem.y[rows].reshape(rows.size, -1), s[rows, None]
        self._entropy = loss.kernel == "logistic"
        theta: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 1.0) if self._entropy else loss.theta
        k, epsilon, self._gamma, low, high = theta
        self._g = np.stack([y if loss.margin else np.ones_like(y)])
        self._h = np.full_like(self._g, k) if loss.margin else y[None] + k
        lengths = np.array([high - low])
        if epsilon > 0:  # x = x_1 - x_2, both positive
            self._g = np.concatenate([self._g, -self._g])
            self._h = np.concatenate([self._h, -self._h]) - epsilon
            lengths, low = np.array([high, -low]), 0.0
            some = lengths > 0
            self._g, self._h, lengths = self._g[some], self._h[some], lengths[some]
        is_low, is_high = math.isfinite(low), math.isfinite(high)
        self._end = low * self.s if is_low else 0.0 * self.s
        unit = np.broadcast_to(self.s, self._g.shape)
        a, r = np.zeros(unit.shape), np.ones(unit.shape)
        if is_low and is_high:
            a = 0.5 * lengths[:, None, None] * unit
            r = a.copy()
        elif is_low:
            a = unit.copy()
        elif is_high:
            a, r = (high - 1.0) * unit, unit.copy()
        short = self._h - self._gamma * (a + self._end) / self.s
        #: a and sigma, r and xi
        self._low = Pairs(a, np.maximum(-short, 0.0) + 1.0, is_low and not self._entropy)
        self._high = Pairs(r, np.maximum(short, 0.0) + 1.0, is_high and not self._entropy)
        self.count = self._low.count + self._high.count

    @property
    def _x(self) -> Any:
        return self._low.a + self._end

    @property
    def slope(self) -> Matrix:
        """q"""
        return np.asarray(-(self._g * self._x).sum(axis=0))

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return self._low.products + self._high.products

    def weigh(self, z: Matrix) -> None:
        """What a step at these predictions begins with."""
        low, high = self._low, self._high
        if self._entropy:
            half = np.tanh(0.5 * (self._g * z - self._h))
            low.a = 0.5 * self.s * np.maximum(1 - half, LEAST)
            high.a = 0.5 * self.s * np.maximum(1 + half, LEAST)
            self._each = 1 / low.a + 1 / high.a
            self._short, self._z = np.zeros_like(low.a), z
        else:
            self._each = self._gamma / self.s + low.over(low.b) + high.over(high.b)
            bent = self._gamma * self._x / self.s
            self._short = self._h - self._g * z - bent - high.b + low.b
        self._weight = (1 / self._each).sum(axis=0)
        self.theta = 1 / self._weight

    def pull(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        low, high = second if isinstance(second, tuple) else (0.0, 0.0)
        self._own = self._short + self._low.aim(centre, low) - self._high.aim(centre, high)
        return np.asarray(-(self._g * self._own / self._each).sum(axis=0) * self.theta)

    def bent(self, by: Matrix) -> Matrix:
        """D times this."""
        return np.asarray(self._weight * by)

    def block(self, k: int, m: int) -> Vector | None:
        """D_km of each row, None if it is zero."""
        return self._weight[:, k] if k == m else None

    def second(self, dz: Matrix, pull: Matrix, dq: Matrix) -> Any:
        """The products of the changes that a predictor makes."""
        self.direct(dz, pull, dq)
        return self._low.second_order, self._high.second_order

    def direct(self, dz: Matrix, pull: Matrix, dq: Matrix) -> None:
        """Take this step as the next."""
        da, self._dz = (self._own - self._g * dz) / self._each, dz
        # exactly dq, of which dz has lost digits where theta is small
        rest = dq + (self._g * da).sum(axis=0)
        da = da - self._g * (rest / self._weight) / self._each
        self._low.direct(da)
        self._high.direct(-da)

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        return max(self._low.fastest, self._high.fastest, 0.0)

    def shortened(self, t: float) -> float:
        """A step of at most t along which the present curvature is a good model."""
        if not self._entropy:
            return t
        m, dm = self._g[0] * self._z - self._h[0], self._g[0] * self._dz

        def loss(t: float) -> float:
            return float(np.sum(self.s * np.logaddexp(0.0, -(m + t * dm))))

        return shortened(loss, self.slope, (self._dz, self.bent(self._dz)), t)

    def after(self, t: float) -> float:
        """`products` after a step t."""
        return self._low.after(t) + self._high.after(t)

    def move(self, t: float) -> None:
        """Step; x of the logistic loss follows from z."""
        if not self._entropy:
            self._low.move(t)
            self._high.move(t)
