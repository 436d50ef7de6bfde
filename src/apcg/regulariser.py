"""The regulariser g of ERM: its value, its conjugate and what the methods need of both.

    g(w) = sum_j a_j|w_j| + (b_j/2) w_j^2   on [lower_j, upper_j]

covers L2, L1, elastic net, w >= 0 and weights and bounds for each feature. With b > 0 it is
strongly convex, g* is smooth and the dual can be solved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import _validation as check
from ._kernels.matrix import inner
from ._validation import Vector
from .penalties import ElasticNet, Penalty


@dataclass(frozen=True, eq=False)
class Regulariser:
    """g, by its four parameters; each has one entry for all features, or one for each."""

    a: Vector
    b: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def of(cls, penalty: Any, l1_ratio: float, positive: bool, d: int) -> Regulariser:
        """From a name or an object of `apcg.penalties`, for d features."""
        ratio = check.number(l1_ratio, "l1_ratio", low=0.0, high=1.0)
        if not isinstance(positive, bool | np.bool_):
            raise TypeError(f"positive must be True or False, got {positive!r}.")
        if not isinstance(penalty, Penalty):
            name = check.choice(penalty, "penalty", ("l2", "l1", "elasticnet"))
            penalty = ElasticNet(1.0, {"l2": 0.0, "l1": 1.0, "elasticnet": ratio}[name])
        if not hasattr(penalty, "_parameters") or penalty.is_block:
            raise TypeError(
                f"penalty must be of coordinates (L1, L2, ElasticNet, ...), got {penalty!r}."
            )
        if penalty.size not in (None, d):
            raise ValueError(f"penalty has parameters for {penalty.size} features, but X has {d}.")
        parts = (np.atleast_1d(np.asarray(p, np.float64)) for p in penalty._parameters())
        a, b, lower, upper = parts
        if positive:
            lower = np.maximum(lower, 0.0)
            if np.any(lower > upper):
                raise ValueError("positive=True leaves nothing of the bounds of the penalty.")
        return cls(a, b, lower, upper)

    def extended(self, d: int, strength: float) -> Regulariser:
        """With one more feature after the d there are, whose penalty is (strength/2)w^2."""
        if self.is_l2 and strength == self.b[0]:
            return self
        own = (0.0, strength, -math.inf, math.inf)
        parts = (self.a, self.b, self.lower, self.upper)
        return Regulariser(
            *(np.append(np.broadcast_to(p, d), e) for p, e in zip(parts, own, strict=True))
        )

    @property
    def strong_convexity(self) -> float:
        """The largest mu with g - (mu/2)|w|^2 convex."""
        return float(self.b.min())

    @cached_property
    def is_l2(self) -> bool:
        """Whether g(w) = (b/2)|w|^2, so that g* is a square too."""
        return self.b.size == 1 and self.b[0] > 0 and self.is_quadratic

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether g(w) = sum_j (b_j/2) w_j^2, without L1 and bounds."""
        bounded = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return not (self.a.any() or bounded)

    @property
    def theta(self) -> np.ndarray:
        """The parameters as the kernels read them."""
        return np.column_stack(np.broadcast_arrays(self.a, self.b, self.lower, self.upper))

    @property
    def leaves_free(self) -> bool:
        """Whether some feature has no penalty and no bound on one side: g* is infinite but at 0."""
        unbounded = (self.lower == -np.inf) | (self.upper == np.inf)
        return bool(np.any((self.a == 0) & (self.b == 0) & unbounded))

    def clip(self, w: Vector) -> Vector:
        """The point of [lower, upper] nearest to w."""
        return np.clip(w, self.lower, self.upper)

    def contains(self, w: Vector) -> bool:
        """Whether w is within the bounds."""
        return not (np.any(w < self.lower) or np.any(w > self.upper))

    def value(self, w: Vector) -> float:
        """g(w)"""
        if self.is_l2:
            return 0.5 * float(self.b[0]) * float(inner(w, w))
        if not self.contains(w):
            return math.inf
        return float(np.sum(self.a * np.abs(w)) + 0.5 * np.sum(self.b * w * w))

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        """The prox of step (a|w| + the bounds), what is left of g when f has its square."""
        return self.clip(_soft(v, step * self.a))

    def excess(self, v: Vector) -> float:
        """How many times v is outside the domain of g*; at most 1 if it is inside."""
        over = np.where((self.b == 0) & (self.upper == np.inf), v, 0.0)
        under = np.where((self.b == 0) & (self.lower == -np.inf), -v, 0.0)
        limit = np.where(self.a > 0, self.a, np.inf)
        return float(np.max(np.maximum(over, under) / limit, initial=0.0))

    def conjugate(self, v: Vector) -> float:
        """g*(v) = max_w <v, w> - g(w)"""
        if self.is_l2:
            return 0.5 * float(inner(v, v)) / float(self.b[0])
        if self.excess(v) > 1:
            return math.inf
        w = self.conjugate_gradient(v)
        return float(np.sum(v * w - self.a * np.abs(w) - 0.5 * self.b * w * w))

    def conjugate_gradient(self, v: Vector) -> Vector:
        """A maximiser of <v, w> - g(w); the gradient of g* at v if b > 0."""
        if self.is_l2:
            return v if self.b[0] == 1 else v / self.b[0]
        slope = _soft(v, self.a)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.clip(np.where(slope == 0, 0.0, slope / self.b))


def _soft(v: Vector, threshold: Vector) -> Vector:
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0))
