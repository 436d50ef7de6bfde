"""The losses phi of ERM: value, derivative, conjugate, prox of the conjugate, constants.

phi is 1/gamma-smooth and 1/eta-strongly convex; gamma = 0 means not smooth, eta = inf not strongly
convex. A loss of margins is a function of m = y a'w with labels y = -1 or 1, a loss of residuals
of r = a'w - y. In every method z is a'w and y the label; without y it is a function of m or r.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _validation as check
from ._kernels import losses as kernels
from ._validation import Vector

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "StronglyConvex",
    "by_name",
]


class Loss:
    """A loss the kernels know. A subclass sets the class attributes and `theta`."""

    #: the name of `by_name`
    name: str
    #: whether it is a function of the margin (labels -1 and 1) or of the residual (real labels)
    margin = True
    #: the compiled functions, and their parameters
    kernel = "interval"
    gamma = 0.0
    eta = math.inf
    #: dual variables x_i are in this interval: phi*(-x) is finite there
    domain = (0.0, 1.0)

    @property
    def theta(self) -> tuple[float, ...]:
        """(k, epsilon, gamma, lower, upper) of phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2."""
        return float(self.margin), 0.0, self.gamma, *self.domain

    @property
    def arrays(self) -> kernels.Loss:
        """The compiled loss."""
        return kernels.Loss(self.kernel, self.theta)

    @property
    def kinks(self) -> Vector:
        """Every m (or r) where phi'' jumps or phi' does."""
        k, epsilon, gamma, lower, upper = self.theta
        with np.errstate(invalid="ignore"):
            ends = k - np.array([epsilon, -epsilon]) - gamma * np.array([upper, lower])
        points = np.array([k - epsilon, k + epsilon, *ends])
        return np.unique(points[np.isfinite(points)])

    @property
    def rests(self) -> bool:
        low, high = self.domain
        bounded = math.isfinite(low) or math.isfinite(high)
        return self.kernel == "interval" and (bounded or self.theta[1] > 0)

    def resting(self, m: Vector, delta: float) -> Any:
        below, above = self.arrays.derivative(m - delta), self.arrays.derivative(m + delta)
        return below == above, -below

    def gap_share(self, m: Vector, x: Vector, weights: Vector) -> Vector:
        s = np.where(weights > 0, weights, 1.0)
        return s * (self.arrays.value(m) + self.arrays.conjugate(x / s)) + m * x

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
        x = self.arrays.dual_prox(_flat(-v / shrink), _flat(step / shrink)).reshape(v.shape)
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

    def check_labels(self, y: Any, n: int) -> Vector:
        """The labels as float64, or an error that says what they should be."""
        cure = "map your classes to -1 and 1, for example np.where(y == positive_class, 1, -1)"
        given = np.asarray(y)
        if self.margin and given.dtype.kind in "OUST":
            raise TypeError(f"y must hold the labels -1 and 1, got dtype {given.dtype}; {cure}.")
        labels = check.vector(y, n, "y", each="row of X").copy()
        if self.margin:
            found = np.unique(labels)
            if not np.isin(found, (-1.0, 1.0)).all():
                shown = ", ".join(f"{v:g}" for v in found[:5])
                raise ValueError(
                    f"loss {self.name!r} takes the labels -1 and 1 only, got {shown}"
                    f"{', ...' if found.size > 5 else ''}; {cure}."
                )
            if found.size < 2:
                raise ValueError(
                    f"y has only one class ({found[0]:g}): there is nothing to separate. "
                    "Give samples of both classes."
                )
        return labels

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.theta))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({parameters})"


def _flat(array: Any) -> Vector:
    return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)


def _map(function: Any, argument: Any) -> Any:
    return function(_flat(argument)).reshape(np.shape(argument))[()]


class Hinge(Loss):
    """max(0, 1 - m)"""

    name = "hinge"


class SmoothedHinge(Loss):
    """0 if m >= 1; 1 - m - gamma/2 if m <= 1 - gamma; (1 - m)^2/(2 gamma) between (the paper's)."""

    name = "smoothed_hinge"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = check.number(gamma, "gamma", low=0.0, open_low=True)


class SquaredHinge(Loss):
    """max(0, 1 - m)^2"""

    name = "squared_hinge"
    gamma = 0.5
    domain = (0.0, math.inf)


class Logistic(Loss):
    """log(1 + exp(-m))"""

    name = "logistic"
    kernel = "logistic"
    gamma = 4.0

    kinks = np.empty(0)

    @property
    def theta(self) -> tuple[float, ...]:
        return (0.0,)

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """log((1 - x)/x); infinite at 0 and 1, where phi* has no subgradient."""
        with np.errstate(divide="ignore"):
            return np.log1p(-x) - np.log(x)


class Squared(Loss):
    """r^2/2"""

    name = "squared"
    margin = False
    gamma = eta = 1.0
    domain = (-math.inf, math.inf)


class Huber(Loss):
    """r^2/2 if |r| <= delta, else delta |r| - delta^2/2"""

    name = "huber"
    margin = False
    gamma = 1.0

    def __init__(self, delta: float = 1.35) -> None:
        self.delta = check.number(delta, "delta", low=0.0, open_low=True)

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        return -self.delta, self.delta


class EpsilonInsensitive(Loss):
    """max(0, |r| - epsilon)"""

    name = "epsilon_insensitive"
    margin = False
    domain = (-1.0, 1.0)

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = check.number(epsilon, "epsilon", low=0.0)

    @property
    def theta(self) -> tuple[float, ...]:
        return 0.0, self.epsilon, 0.0, *self.domain


class StronglyConvex(Loss):
    """phi(t) + t^2/(2 eta), the small strongly convex term after Corollary 1 of the paper.

    t is the margin or the residual. phi must be smooth. The result is 1/eta-strongly convex and
    (1/gamma + 1/eta)-smooth, so that Theorem 3 holds for the problem, slightly changed.
    """

    kernel = "perturbed"
    domain = (-math.inf, math.inf)

    def __init__(self, loss: Any, eta: float) -> None:
        loss = by_name(loss)
        if loss.gamma == 0 or math.isfinite(loss.eta):
            raise ValueError(f"loss must be smooth and not strongly convex already, got {loss!r}.")
        self.loss: Loss = loss
        self.eta = check.number(eta, "eta", low=0.0, open_low=True)
        self.name = f"{loss.name} + t^2/(2 eta)"
        self.margin = loss.margin
        self.gamma = 1 / (1 / loss.gamma + 1 / self.eta)

    @property
    def kinks(self) -> Vector:
        """Those of phi."""
        return self.loss.kinks

    def __repr__(self) -> str:
        return f"StronglyConvex({self.loss!r}, eta={self.eta!r})"

    @property
    def theta(self) -> tuple[float, ...]:
        is_logistic = float(self.loss.kernel == "logistic")
        return self.eta, self.gamma, self.loss.gamma, is_logistic, *self.loss.theta

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """The one slope: the root a of phi'(a) + a/eta = -x, by the conjugate's inner minimiser."""
        k = self.eta + self.loss.gamma
        x1 = self.loss.arrays.dual_prox(_flat(self.eta * x / k), np.full(x.size, 1 / k))
        return np.asarray(self.eta * (x1 - x))


_NAMED = (Hinge, SmoothedHinge, SquaredHinge, Logistic, Squared, Huber, EpsilonInsensitive)


def by_name(loss: Any) -> Loss:
    """The loss of that name with its default parameters, or the loss object itself."""
    if isinstance(loss, Loss):
        return loss
    known = {cls.name: cls for cls in _NAMED}
    return known[check.choice(loss, "loss", list(known))]()
