"""The logistic loss, and phi plus a small square: losses of one prediction, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Vector
from .interval import Loss, flat


class Logistic(Loss):
    """log(1 + exp(-m))

    Examples
    --------
    >>> from apcg.losses import Logistic
    >>> Logistic().value([0.0, 2.0], [1, 1]).round(3)
    array([0.693, 0.127])
    """

    name = "logistic"
    kernel = "logistic"
    gamma = 4.0

    kinks = np.empty(0)
    conjugate_kink = False
    _resting_values = ()  # phi' tends to its bounds, and never is there
    theta = (0.0,)

    def separates(self, z: Vector, y: Any, s: Vector) -> bool:
        return bool(np.all((y * z > 0) | (s == 0)))

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """log((1 - x)/x); infinite at 0 and 1, where phi* has no subgradient."""
        with np.errstate(divide="ignore"):
            return np.log1p(-x) - np.log(x)


class StronglyConvex(Loss):
    """phi(t) + t^2/(2 eta), the small strongly convex term after Corollary 1 of the paper.

    t is the margin or the residual. phi must be smooth. The result is 1/eta-strongly convex and
    (1/gamma + 1/eta)-smooth, so that Theorem 3 holds for the problem, slightly changed.

    Examples
    --------
    >>> from apcg.losses import Logistic, StronglyConvex
    >>> StronglyConvex(Logistic(), eta=100.0).value([2.0], [1]) - Logistic().value([2.0], [1])
    array([0.02])
    """

    kernel = "perturbed"
    domain = (-math.inf, math.inf)
    conjugate_kink = False
    _resting_values = ()  # phi' increases everywhere

    def __init__(self, loss: Any, eta: float) -> None:
        from .registry import by_name

        loss = by_name(loss)
        if not isinstance(loss, Loss):
            raise TypeError(
                f"loss must be one of a single prediction that the kernels know, got {loss!r}."
            )
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
        x1 = self.loss.arrays.dual_prox(flat(self.eta * x / k), np.full(x.size, 1 / k))
        return np.asarray(self.eta * (x1 - x))
