"""What runs with K classes share: W and predictions as vectors, intercepts, dual points.

The rounds are those of `working_set.run`, whose columns are the entries of W here: entry j K + k is
that of feature j and class k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._base.validation import Matrix, Vector
from ....certify.certificate import certify_given
from ....certify.points import Certificate, Point, Start
from ....problems.erm import ERM
from ...base import Budget, Target, Work
from ..penalty import ScaledPenalty
from ..run import SparseRun
from .losses_at import ClassLosses


class ClassRun(SparseRun):
    """The shapes of K classes.

    narrow    whether models are made in float32, while that is good enough
    matrices  how many matrices of second derivatives there were for this alpha itself
    """

    losses: Any
    narrow, matrices = True, 0

    def _prepare(self, problem: ERM, at: Start) -> None:
        self._penalise(problem)
        self.losses, self.K = ClassLosses(problem), problem.K
        if at.w is not None and not problem.g.contains(at.w):
            raise ValueError("x0 must be within the bounds of the penalty.")
        size = problem.d * problem.K
        self.w = self.penalty.start(size) if at.w is None else np.array(at.w).reshape(-1)
        self.b = np.zeros(self.K) if at.b is None else np.array(at.b, float)
        if at.w is None and problem.intercept and not self.b.any():
            share = np.bincount(problem.y, self.losses.each, minlength=self.K)
            self.b = np.log(share) - np.log(share).mean()

    def _penalise(self, problem: ERM) -> None:
        g, alpha = problem.interval.entries, problem.alpha
        self.penalty = ScaledPenalty(alpha * g.a, alpha * g.b, g.lower, g.upper)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        self.matrices = 0
        return super().turn(problem, target)

    def kind(self) -> type[np.floating[Any]]:
        """The type of the next matrix of second derivatives."""
        self.matrices += self.theta == 1
        if self.narrow and self.matrices > self.tuning.narrow_matrices:
            self.widen()
        return np.float32 if self.narrow else np.float64

    def _give_up(self, rounding: bool, budget: Budget) -> Work:
        """Not before float64 was tried."""
        if rounding or not self.narrow:
            return super()._give_up(rounding, budget)
        self.widen()
        return self._work()

    def widen(self) -> None:
        """To float64, which gets a chance of its own."""
        self.narrow, self._idle, self.floor = False, 0, self.tuning.floor

    def rows(self, flat: Vector) -> Matrix:
        """By rows of K numbers."""
        return flat.reshape(-1, self.K)

    def is_at(self, w: Vector) -> bool:
        return np.array_equal(np.reshape(w, -1), self.w)

    def point(self) -> Point | Certificate:
        w = self.rows(self.w).copy()
        if self._paired and self._pair is not None:
            x, v = self._pair
            return certify_given(self.problem, Point(w, self.rows(x), self.b, v=v))
        return Point(w, None if self._dual is None else self.rows(self._dual), self.b)

    def shifted(self, z: Vector, b: Any) -> Vector:
        return np.ascontiguousarray(self.rows(z) + b).reshape(-1)

    def begin_at(self) -> Vector:
        return np.tile(self.b, self.problem.n_samples)

    def predict(self) -> Vector:
        self.cost += 0.5
        z = self.problem.samples.times(self.rows(self.w)) + self.b
        return np.ascontiguousarray(z).reshape(-1)

    def descend(self) -> None:
        self.slope = -np.ascontiguousarray(
            self.problem.samples.adjoint(self.rows(self.at.slope))
        ).reshape(-1)
        self.cost += 0.5

    def descend_scaled(self, most: float) -> None:
        p, s = self.problem, 1 / max(1.0, most)
        x = self.losses.dual_of(self.at.slope) * s
        v = np.ascontiguousarray(p.v_of(self.rows(x)))
        self.slope, self._pair = v.reshape(-1) * (p.alpha / s), (x, v)
        self.cost += 0.5

    def bend(self) -> Vector:
        """The probabilities; the floor is added where they are used."""
        return self.at.bend

    @property
    def least_bend(self) -> float:
        """What is added to the curvature of each output."""
        return self.floor * float(self.losses.most_bend)

    @staticmethod
    def _secant(seen: Any, new: Any, way: Vector) -> Any:
        """Not for the softmax, whose curvatures are smooth."""
        return None
