"""Losses of one prediction whose conjugate is a quadratic with a kink on an interval.

    phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2   for lower <= x <= upper, infinite elsewhere

A loss of margins is a function of m = y a'w with labels y = -1 or 1, a loss of residuals of
r = a'w - y. In every method z is a'w and y the label; without y it is a function of m or r.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Mask, Vector
from .._base.weights import divisor
from .._kernels.data.matrix import inner
from .._kernels.losses import scalar as kernels
from . import shift
from .base import ScalarLoss


class Loss(ScalarLoss):
    """A loss the kernels know. A subclass sets the class attributes, or `theta` as a whole.

    Examples
    --------
    >>> from apcg import losses
    >>> isinstance(losses.Hinge(), losses.Loss), losses.Hinge().name, losses.Hinge().margin
    (True, 'hinge', True)
    """

    #: whether it is a function of the margin (labels -1 and 1) or of the residual (real labels)
    margin = True
    #: the compiled functions, and their parameters
    kernel = "interval"
    compiled = True
    #: dual variables x_i are in this interval: phi*(-x) is finite there
    domain = (0.0, 1.0)

    @property
    def theta(self) -> tuple[float, ...]:
        """(k, epsilon, gamma, lower, upper) of phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2."""
        return float(self.margin), 0.0, self.gamma, *self.domain

    @property
    def arrays(self) -> kernels.Loss:
        """The compiled loss. Losses with the same parameters share one."""
        return _compiled(self.kernel, tuple(map(float, self.theta)))

    @property
    def kinks(self) -> Vector:
        """Every m (or r) where phi'' jumps or phi' does."""
        k, epsilon, gamma, lower, upper = self.theta
        with np.errstate(invalid="ignore"):
            ends = k - np.array([epsilon, -epsilon]) - gamma * np.array([upper, lower])
        points = np.array([k - epsilon, k + epsilon, *ends])
        return np.unique(points[np.isfinite(points)])

    @property
    def in_pieces(self) -> bool:  # type: ignore[override]
        """Whether it is made of lines and parabolas, with a kink: interior points know it then."""
        if self.kernel != "interval":
            return False
        finite = sum(map(math.isfinite, self.domain))
        return finite != 1 if self.conjugate_kink else finite > 0

    @property
    def conjugate_kink(self) -> bool:
        """Whether phi* has a kink at 0, inside its domain."""
        lower, upper = self.domain
        return self.theta[1] > 0 and lower < 0 < upper

    @property
    def rests(self) -> bool:
        """Whether x has values to rest at: phi' is constant over an interval of margins."""
        return bool(self._resting_values)

    @property
    def _resting_values(self) -> tuple[float, ...]:
        """Where x/s can rest: at a bound, where phi is linear, and at a kink of phi*."""
        kink = (0.0,) if self.conjugate_kink else ()
        return *(bound for bound in self.domain if math.isfinite(bound)), *kink

    def value(self, z: Any, y: Any = None) -> Any:
        """phi(z)"""
        return _map(self.arrays.value, self.argument(z, y))

    def derivative(self, z: Any, y: Any = None) -> Any:
        """phi'(z), in z; at a kink, the slope nearest to zero."""
        slope = _map(self.arrays.derivative, self.argument(z, y))
        return slope if y is None or not self.margin else slope * np.asarray(y, dtype=float)

    def conjugate(self, u: Any, y: Any = None) -> Any:
        """phi*(u) = max_z u z - phi(z)"""
        u = np.asarray(u, dtype=float)
        if y is None:
            return _map(self.arrays.conjugate, -u)
        y = np.asarray(y, dtype=float)
        if self.margin:
            return _map(self.arrays.conjugate, -u * y)
        return _map(self.arrays.conjugate, -u) + u * y

    def prox_conjugate(self, v: Any, step: Any, y: Any = None) -> Any:
        """argmin_u phi*(u) + (u - v)^2/(2 step)"""
        v, step = np.broadcast_arrays(np.asarray(v, float), np.asarray(step, float))
        if y is not None:
            y = np.asarray(y, dtype=float)
            v = v * y if self.margin else v - step * y
        # phi*(-x) is psi(x) + (gamma/2) x^2, and dual_prox is the prox of psi
        shrink = 1 + self.gamma * step
        x = self.arrays.dual_prox(flat(-v / shrink), flat(step / shrink)).reshape(v.shape)
        return (-x * y if y is not None and self.margin else -x)[()]

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """The point of the subdifferential of phi* at -x that is nearest to m (Lemma 4)."""
        k, epsilon, gamma, lower, upper = self.theta
        middle = k - gamma * x
        low = np.where(x < 0, middle + epsilon, middle - epsilon)
        high = np.where(x > 0, middle - epsilon, middle + epsilon)
        high = np.where(x <= lower, np.inf, high)
        low = np.where(x >= upper, -np.inf, low)
        return np.clip(m, low, high)

    def argument(self, z: Any, y: Any) -> Any:
        """The margin m = y z or the residual r = z - y."""
        z = np.asarray(z, dtype=float)
        if y is None:
            return z
        return z * y if self.margin else z - y

    def prediction(self, m: Any, y: Any) -> Any:
        """The z that has the margin m, or the residual m."""
        return m * y if self.margin else m + y

    # ---- sums, and dual variables ----------------------------------------------------------------

    def total(self, z: Vector, y: Any, s: Vector) -> float:
        return self.arrays.total(z, y, self.margin, s)

    def duals(self, z: Vector, y: Any, s: Vector) -> Vector:
        if y is None:
            return np.asarray(-s * self.arrays.derivative(z))
        return np.asarray(self.arrays.duals(z, y, self.margin, s))

    def conjugate_total(self, x: Vector, y: Any, s: Vector) -> float:
        total = self.arrays.total_conjugate(x, s)
        return total if self.margin else total - inner(y, x)

    def clip(self, x: Vector, y: Any, s: Vector) -> Vector:
        """The dual feasible point nearest to x: in s times the domain, and 0 where s = 0."""
        lower, upper = self.domain
        with np.errstate(invalid="ignore"):  # 0 times infinity
            return np.where(s > 0, np.clip(x, s * lower, s * upper), 0.0)

    def best_shift(self, z: Vector, y: Any, s: Vector, guess: float) -> float:
        """The b that is best with the predictions z + b; the middle if it is an interval."""
        return shift.best(self, z, y, s, guess)

    def balance(self, x: Vector, y: Any, s: Vector, z: Vector | None = None) -> Vector:
        return shift.balance(self, x, y, s)

    def room(self, x: Vector, s: Vector) -> Vector:
        """How far x can go up and down, as a smooth function: x - room and x + room are feasible.

        phi* is smooth between its bounds, or between them and a kink at 0. Room is 0 at the ends of
        such a piece, and between them it is the product of the distances to both over the length of
        the piece; the distance to the one end if the other is infinite; s if both are.
        """
        u = x / divisor(s)
        lower, upper = self.domain
        if self.conjugate_kink:
            room = np.where(u < 0, _between(u, lower, 0.0), _between(u, 0.0, upper))
        else:
            room = _between(u, lower, upper)
        return np.asarray(s * np.maximum(room, 0.0))

    def resting(self, m: Vector, delta: float) -> tuple[Mask, Vector]:
        """Where phi' is constant within delta of the margin (or residual) m, and x/s there.

        If the margins are right to delta, those are the x/s of the optimum. What the second array
        has in the other places is -phi'(m - delta).
        """
        below, above = (-self.arrays.derivative(m + change) for change in (-delta, delta))
        at_rest = np.zeros(below.shape, dtype=bool)
        for value in self._resting_values:
            at_rest |= below == value
        return at_rest & (below == above), below

    def gap_share(self, m: Vector, x: Vector, s: Vector) -> Vector:
        """s (phi(m) + phi*(-x/s)) + m x >= 0 for each sample: n times its part of P - D."""
        return np.asarray(self.arrays.gap_share(m, x, s))

    def __hash__(self) -> int:
        return hash((type(self), self.theta))

    __eq__ = ScalarLoss.__eq__


def flat(array: Any) -> Vector:
    """The array as the kernels read it."""
    return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)


def _map(function: Any, argument: Any) -> Any:
    return function(flat(argument)).reshape(np.shape(argument))[()]


def _between(u: Vector, lower: float, upper: float) -> Vector:
    """The distances of u from both bounds multiplied, over the length between them; see `room`."""
    if math.isfinite(lower) and math.isfinite(upper):
        return (u - lower) * (upper - u) / (upper - lower)
    if math.isfinite(lower):
        return u - lower
    return upper - u if math.isfinite(upper) else np.ones_like(u)


@lru_cache(maxsize=256)
def _compiled(kernel: str, theta: tuple[float, ...]) -> kernels.Loss:
    """The compiled loss, made once for each set of parameters; it never changes."""
    made = kernels.Loss(kernel, theta)
    if kernel == "interval":
        _, epsilon, gamma, lower, upper = theta
        if not (epsilon >= 0 and gamma >= 0 and lower <= 0 <= upper and lower < upper):
            raise ValueError(
                "theta of a loss is (k, epsilon, gamma, lower, upper) with epsilon >= 0, gamma >= "
                f"0 and lower <= 0 <= upper, not both 0; got {theta}."
            )
        if gamma == 0 and math.isinf(upper - lower):
            raise ValueError(
                f"a loss with gamma = 0 must have a bounded domain, got {lower, upper}: without a "
                "bound on its slopes it is infinite somewhere."
            )
    return made


class Hinge(Loss):
    """max(0, 1 - m)

    Examples
    --------
    >>> from apcg.losses import Hinge
    >>> Hinge().value([0.0, 2.0], [1, 1]).round(3)
    array([ 1., -0.])
    """

    name = "hinge"


class SmoothedHinge(Loss):
    """0 if m >= 1; 1 - m - gamma/2 if m <= 1 - gamma; (1 - m)^2/(2 gamma) between (the paper's).

    Examples
    --------
    >>> from apcg.losses import SmoothedHinge
    >>> SmoothedHinge(gamma=1.0).value([-1.0, 0.5, 2.0], [1, 1, 1]).round(3)
    array([ 1.5  ,  0.125, -0.   ])
    """

    name = "smoothed_hinge"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = check.number(gamma, "gamma", low=0.0, open_low=True)


class SquaredHinge(Loss):
    """max(0, 1 - m)^2

    Examples
    --------
    >>> from apcg.losses import SquaredHinge
    >>> SquaredHinge().value([-1.0, 2.0], [1, 1]).round(3)
    array([ 4., -0.])
    """

    name = "squared_hinge"
    gamma = 0.5
    domain = (0.0, math.inf)


class Squared(Loss):
    """r^2/2

    Examples
    --------
    >>> from apcg.losses import Squared
    >>> Squared().value([3.0], [1]).round(3)
    array([2.])
    """

    name = "squared"
    margin = False
    gamma = eta = 1.0
    domain = (-math.inf, math.inf)


class Huber(Loss):
    """r^2/2 if |r| <= delta, else delta |r| - delta^2/2

    Examples
    --------
    >>> from apcg.losses import Huber
    >>> Huber(delta=1.0).value([0.5, 3.0], [0, 0]).round(3)
    array([0.125, 2.5  ])
    """

    name = "huber"
    margin = False
    gamma = 1.0

    def __init__(self, delta: float = 1.35) -> None:
        self.delta = check.number(delta, "delta", low=0.0, open_low=True)

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        return -self.delta, self.delta


class EpsilonInsensitive(Loss):
    """max(0, |r| - epsilon)

    Examples
    --------
    >>> from apcg.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(epsilon=0.1).value([0.05, 1.1], [0, 0]).round(3)
    array([0., 1.])
    """

    name = "epsilon_insensitive"
    margin = False
    domain = (-1.0, 1.0)

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = check.number(epsilon, "epsilon", low=0.0)

    @property
    def theta(self) -> tuple[float, ...]:
        return 0.0, self.epsilon, 0.0, *self.domain


class SquaredEpsilonInsensitive(EpsilonInsensitive):
    """max(0, |r| - epsilon)^2

    Examples
    --------
    >>> from apcg.losses import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(epsilon=0.1).value([0.05, 1.1], [0, 0]).round(3)
    array([0., 1.])
    """

    name = "squared_epsilon_insensitive"
    gamma = 0.5
    domain = (-math.inf, math.inf)

    @property
    def theta(self) -> tuple[float, ...]:
        return 0.0, self.epsilon, self.gamma, *self.domain


class Pinball(Loss):
    """q max(0, -r) + (1 - q) max(0, r): its best constant is the q-quantile of the labels.

    Examples
    --------
    >>> from apcg.losses import Pinball
    >>> Pinball(q=0.9).value([-1.0, 1.0], [0, 0]).round(3)
    array([0.9, 0.1])
    """

    name = "pinball"
    margin = False

    def __init__(self, q: float = 0.5) -> None:
        self.q = check.number(q, "q", low=0.0, high=1.0, open_low=True)
        if self.q == 1.0:
            raise ValueError("q must be in (0, 1), got 1: no loss has a minimum there.")

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        return self.q - 1.0, self.q
