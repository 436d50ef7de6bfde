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
        self._p = np.repeat(self.s / K, K, axis=1)
        cost = 1 - self._e - self._gamma * (1 / K - self._e)
        self._xi = np.zeros((y.size, 1))
        self._sigma = np.zeros_like(self._p)
        if not self._entropy:
            self._xi = cost.max(axis=1, keepdims=True) + 1.0
            self._sigma = self._xi - cost

    @property
    def slope(self) -> Matrix:
        """q"""
        return np.asarray(self._p - self.s * self._e)

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return float(np.vdot(self._p, self._sigma))

    @property
    def count(self) -> int:
        """Of how many numbers that is the sum."""
        return 0 if self._entropy else self._p.size

    def weigh(self, z: Matrix) -> None:
        """What a step at these predictions begins with."""
        p = self._p
        if self._entropy:
            p = self._p = self.s * np.maximum(_softmax(z), LEAST)
            self.theta, self._short, self._z = 1 / p, np.zeros_like(p), z
        else:
            self.theta = self._gamma / self.s + self._sigma / p
            bent = self._gamma * (p / self.s - self._e)
            self._short = z + 1 - self._e - bent - self._xi + self._sigma
        self._weight = 1 / self.theta
        self._share = self._weight / self._weight.sum(axis=1, keepdims=True)

    def pull(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        if self._entropy:
            return self._short
        self._aim = centre - self._p * self._sigma - second
        return np.asarray(self._short + self._aim / self._p)

    def bent(self, by: Matrix) -> Matrix:
        """D times this."""
        own = self._weight * by
        return np.asarray(own - self._share * own.sum(axis=1, keepdims=True))

    def block(self, k: int, m: int) -> Vector:
        """D_km of each row, which no subtraction has cost its digits."""
        if k != m:
            return np.asarray(-self._weight[:, k] * self._share[:, m])
        others = self._share.sum(axis=1) - self._share[:, k]
        exact = np.delete(self._share, k, axis=1).sum(axis=1)
        return np.asarray(self._weight[:, k] * np.where(others < 0.5, exact, others))

    def second(self, dz: Matrix, pull: Matrix, dq: Matrix) -> Matrix | float:
        """The products of the changes that a predictor makes."""
        self.direct(dz, pull, dq)
        return 0.0 if self._entropy else self._dp * self._dsigma

    def direct(self, dz: Matrix, pull: Matrix, dq: Matrix) -> None:
        """Take this step as the next."""
        self._dp, self._dz = dq, dz
        mean = self._share * (dz + pull)
        self._dxi = mean.sum(axis=1, keepdims=True)
        self._dsigma = np.zeros_like(dq)
        if not self._entropy:
            self._dsigma = (self._aim - self._sigma * dq) / self._p

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        if self._entropy:
            return 0.0
        fastest = float((-self._dp / self._p).max())
        return max(fastest, float((-self._dsigma / self._sigma).max()))

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
        return float(np.vdot(self._p + t * self._dp, self._sigma + t * self._dsigma))

    def move(self, t: float) -> None:
        """Step."""
        if self._entropy:
            return
        self._p = self._p + t * self._dp
        self._p *= self.s / self._p.sum(axis=1, keepdims=True)
        self._sigma, self._xi = self._sigma + t * self._dsigma, self._xi + t * self._dxi


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
        self._low, self._high = math.isfinite(low), math.isfinite(high)
        self._end = low * self.s if self._low else 0.0 * self.s
        shape, unit = self._g.shape, np.broadcast_to(self.s, self._g.shape)
        self._a, self._r = np.zeros(shape), np.full(shape, np.inf)
        if self._low and self._high:
            self._a = 0.5 * lengths[:, None, None] * unit
            self._r = self._a.copy()
        elif self._low:
            self._a = unit.copy()
        elif self._high:
            self._a, self._r = (high - 1.0) * unit, unit.copy()
        short = self._h - self._gamma * self._x / self.s
        self._sigma = (np.maximum(-short, 0.0) + 1.0) if self._slacks[0] else np.zeros(shape)
        self._xi = (np.maximum(short, 0.0) + 1.0) if self._slacks[1] else np.zeros(shape)

    @property
    def _slacks(self) -> tuple[bool, bool]:
        return self._low and not self._entropy, self._high and not self._entropy

    @property
    def _x(self) -> Any:
        return self._a + self._end

    @property
    def slope(self) -> Matrix:
        """q"""
        return np.asarray(-(self._g * self._x).sum(axis=0))

    def _pairs(self) -> Any:
        if self._slacks[0]:
            yield self._a, self._sigma
        if self._slacks[1]:
            yield self._r, self._xi

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return math.fsum(float(np.vdot(a, b)) for a, b in self._pairs())

    @property
    def count(self) -> int:
        """Of how many numbers that is the sum."""
        return sum(self._slacks) * self._a.size

    def weigh(self, z: Matrix) -> None:
        """What a step at these predictions begins with."""
        each = self._gamma / self.s + np.zeros_like(self._a)
        self._short = self._h - self._g * z - self._gamma * self._x / self.s
        if self._entropy:
            half = np.tanh(0.5 * (self._g * z - self._h))
            self._a = 0.5 * self.s * np.maximum(1 - half, LEAST)
            self._r = 0.5 * self.s * np.maximum(1 + half, LEAST)
            each = 1 / self._a + 1 / self._r
            self._short, self._z = np.zeros_like(self._a), z
        if self._slacks[0]:
            each = each + self._sigma / self._a
        if self._slacks[1]:
            each = each + self._xi / self._r
        self._short = self._short - self._xi + self._sigma
        self._each = each
        self._weight = (1 / each).sum(axis=0)
        self.theta = 1 / self._weight

    def pull(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        lower, upper = second if isinstance(second, tuple) else (0.0, 0.0)
        self._own = self._short
        if self._slacks[0]:
            self._aim_low = centre - self._a * self._sigma - lower
            self._own = self._own + self._aim_low / self._a
        if self._slacks[1]:
            self._aim_high = centre - self._r * self._xi - upper
            self._own = self._own - self._aim_high / self._r
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
        return self._da * self._dsigma, -self._da * self._dxi

    def direct(self, dz: Matrix, pull: Matrix, dq: Matrix) -> None:
        """Take this step as the next."""
        self._da, self._dz = (self._own - self._g * dz) / self._each, dz
        # exactly dq, of which dz has lost digits where theta is small
        rest = dq + (self._g * self._da).sum(axis=0)
        self._da = self._da - self._g * (rest / self._weight) / self._each
        self._dsigma = self._dxi = np.zeros_like(self._da)
        if self._slacks[0]:
            self._dsigma = (self._aim_low - self._sigma * self._da) / self._a
        if self._slacks[1]:
            self._dxi = (self._aim_high + self._xi * self._da) / self._r

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        if self._entropy:
            return 0.0
        found = [0.0]
        if self._low:
            found.append(float((-self._da / self._a).max()))
        if self._high:
            found.append(float((self._da / self._r).max()))
        if self._slacks[0]:
            found.append(float((-self._dsigma / self._sigma).max()))
        if self._slacks[1]:
            found.append(float((-self._dxi / self._xi).max()))
        return max(found)

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
        total = 0.0
        if self._slacks[0]:
            total += float(np.vdot(self._a + t * self._da, self._sigma + t * self._dsigma))
        if self._slacks[1]:
            total += float(np.vdot(self._r - t * self._da, self._xi + t * self._dxi))
        return total

    def move(self, t: float) -> None:
        """Step."""
        if self._entropy:
            return
        self._a, self._r = self._a + t * self._da, self._r - t * self._da
        self._sigma, self._xi = self._sigma + t * self._dsigma, self._xi + t * self._dxi
