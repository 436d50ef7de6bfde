"""alpha g as the inner loops read it: a_j |w_j| + (b_j/2) w_j^2 on [lower_j, upper_j]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._base.validation import Index, Mask, Vector
from ...problems.erm import ERM

Parts = tuple[Vector, Vector, Vector, Vector]


@dataclass(frozen=True, eq=False)
class ScaledPenalty:
    """Each part has one entry for all features, or one for each."""

    a: Vector
    b: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def of(cls, problem: ERM) -> ScaledPenalty:
        """That of a problem."""
        g, alpha = problem.interval.entries, problem.alpha
        return cls(alpha * g.a, alpha * g.b, g.lower, g.upper)

    @property
    def parts(self) -> Parts:
        """As the kernels take them."""
        return self.a, self.b, self.lower, self.upper

    @cached_property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        if self.lower.size == self.upper.size == 1:
            return math.isfinite(self.lower[0]) or math.isfinite(self.upper[0])
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @cached_property
    def ridged(self) -> bool:
        """Whether every feature has a square."""
        return bool(self.b.min() > 0)

    @cached_property
    def least(self) -> float:
        """The least positive a_j; 0 if there is none."""
        positive = self.a[self.a > 0]
        return float(positive.min()) if positive.size else 0.0

    def on(self, columns: Index) -> ScaledPenalty:
        """That of some features."""
        if all(part.size == 1 for part in self.parts):
            return self
        return ScaledPenalty(*(part[columns] if part.size > 1 else part for part in self.parts))

    def times(self, theta: float) -> ScaledPenalty:
        """The same with theta a in the place of a."""
        return self if theta == 1 else ScaledPenalty(theta * self.a, self.b, self.lower, self.upper)

    def start(self, w: Vector) -> Vector:
        """The point nearest to w."""
        return np.clip(w, self.lower, self.upper)

    def value(self, w: Vector) -> float:
        """sum_j a_j |w_j| + (b_j/2) w_j^2"""
        size = np.abs(w)
        total = float(self.a[0] * size.sum() if self.a.size == 1 else self.a @ size)
        if self.b.size == 1:
            return total + (0.5 * float(self.b[0] * (w @ w)) if self.b[0] else 0.0)
        return total + 0.5 * float(np.sum(self.b * w * w))

    def conjugate(self, descent: Vector) -> float:
        """sum_j (|slope_j| - a_j)_+^2/(2 b_j), without bounds and with all b_j > 0"""
        over = np.maximum(np.abs(descent) - self.a, 0.0)
        return 0.5 * float(np.sum(over * over / self.b))

    def free(self, w: Vector) -> Mask:
        """Where the penalty is smooth: off zero, unless a_j = 0, and off the bounds."""
        off: Mask = (w != 0) | (self.a == 0)
        if self.bounded:
            off &= (w > self.lower) & (w < self.upper)
        return off

    def room(self, w: Vector) -> tuple[Vector, Vector]:
        """The interval around w in which the penalty stays smooth."""
        low = np.where((w > 0) & (self.a > 0), np.maximum(self.lower, 0.0), self.lower)
        high = np.where((w < 0) & (self.a > 0), np.minimum(self.upper, 0.0), self.upper)
        return low, high

    def violations(self, w: Vector, descent: Vector) -> Vector:
        """How far each feature is from rest: `descent` is minus the gradient of the losses."""
        way = descent - self.b * w if self.b.any() else descent
        off = np.where(w == 0, np.maximum(np.abs(way) - self.a, 0.0), way - self.a * np.sign(w))
        if not self.bounded:
            return np.abs(off)
        up = np.maximum(np.where(w == 0, way - self.a, way - self.a * np.sign(w)), 0.0)
        down = np.maximum(np.where(w == 0, -way - self.a, self.a * np.sign(w) - way), 0.0)
        return np.maximum(np.where(w < self.upper, up, 0.0), np.where(w > self.lower, down, 0.0))

    def most(self, descent: Vector) -> float:
        """The least theta at which w = 0 is at rest: the greatest |slope_j|/a_j."""
        if self.a.size == 1:
            largest = float(np.max(np.abs(descent), initial=0.0))
            return largest / self.least if self.least else 0.0
        kept = self.a > 0
        return float(np.max(np.abs(descent[kept]) / self.a[kept], initial=0.0))
