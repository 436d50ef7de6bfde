"""The losses at predictions z: their sum, slopes and curvatures; the best intercept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._base.validation import Vector
from ..._kernels.data.matrix import inner
from ..._kernels.newton import objective
from ...problems.erm import ERM

#: b is best when the slope in b is this part of the sum of its terms' sizes.
_BALANCE = 1e-13
_TRIALS = 30


@dataclass(eq=False)
class Seen:
    """Predictions z with the mean loss, and s_i phi_i'/n and s_i phi_i''/n."""

    z: Vector
    value: float
    slope: Vector
    bend: Vector


class Losses:
    """(1/n) sum_i s_i phi_i(z_i)"""

    def __init__(self, problem: ERM) -> None:
        self.problem, self.loss = problem, problem.loss
        self.y, self.weights = problem.y, problem.weights
        if problem.K > 1:  # a sum over outputs; those of a row follow one another
            self.loss, self.y = problem.loss.loss, problem.y.reshape(-1)
            if problem.weights.size > 1:
                self.weights = np.repeat(problem.weights, problem.K)
        loss = self.loss
        self._theta = np.array(loss.theta)
        #: phi'' is constant: the squared loss
        self.constant = loss.eta == loss.gamma
        self.most_bend = 1 / (loss.gamma * problem.n)

    def at(self, z: Vector) -> Seen:
        """At predictions z."""
        return self.along(z, z, 0.0)[0]

    def along(self, z: Vector, way: Vector, t: float) -> tuple[Seen, float, float]:
        """At z + t way, with the first and second derivative in t."""
        loss = self.loss
        at, slope, bend = (np.empty(z.size) for _ in range(3))
        value, first, second = objective.evaluate(
            loss.kernel, self._theta, z, way, t, self.y, loss.margin, self.weights,
            1 / self.problem.n, at, slope, bend,
        )  # fmt: skip
        return Seen(at, value, slope, bend), first, second

    def settle(self, seen: Seen) -> tuple[Seen, float]:
        """The same w with the intercept that is best, and how much it changed."""
        ones, moved = np.ones(seen.z.size), 0.0
        rounding = 2.0**-52 * float(np.abs(seen.z).max(initial=0.0))
        for _ in range(_TRIALS):
            first, second = float(seen.slope.sum()), float(seen.bend.sum())
            if abs(first) <= _BALANCE * float(np.abs(seen.slope).sum()):
                return seen, moved
            step = -first / second if second > 0 else math.inf
            if abs(step) <= rounding:
                return seen, moved
            trial = self.along(seen.z, ones, step)[0] if math.isfinite(step) else seen
            if not trial.value < seen.value:  # far from a parabola: by bisection
                step = self.problem.best_shift(seen.z)
                return self.along(seen.z, ones, step)[0], moved + step
            seen, moved = trial, moved + step
        return seen, moved

    def dual_of(self, slope: Vector) -> Vector:
        """The dual point x of these slopes."""
        x = -self.problem.n * slope
        return np.asarray(self.y * x if self.loss.margin else x)

    def dual_value(self, x: Vector) -> float:
        """D(x) without its part of g*."""
        total = -float(self.loss.arrays.total_conjugate(x, self.weights))
        if not self.loss.margin:
            total += inner(self.y, x)
        return total / self.problem.n
