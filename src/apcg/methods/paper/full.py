"""The inner loop of methods that look at all the data in each step: AFG, Newton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ..base import Budget, Run, Work
from .coordinate import with_zeros


@dataclass
class Predicted:
    """A vector w and its predictions X w."""

    w: Vector
    z: Vector

    def towards(self, other: Predicted, share: float) -> Predicted:
        """(1 - share) self + share other"""
        return Predicted(self.w + share * (other.w - self.w), self.z + share * (other.z - self.z))


class FullIterate(Protocol):
    """The state of such a method. With an intercept, b is the last entry of w."""

    @property
    def at(self) -> Predicted:
        """The present w and X w."""

    def step(self) -> int:
        """One step; returns the passes over the data that it took."""


class FullRun(Run):
    """Steps of an iterate, with a look after every few."""

    def __init__(
        self, problem: ERM, iterate: FullIterate, every: int, rng: np.random.Generator
    ) -> None:
        self.problem, self.iterate, self._every, self._rng = problem, iterate, every, rng

    def advance(self, budget: Budget) -> Work:
        """Steps until a look is due."""
        wanted = budget.passes if budget.fixed else min(budget.passes, self._every)
        passes = 0
        while passes < wanted:
            passes += self.iterate.step()
            if budget.expired:
                break
        return Work(passes)

    def point(self) -> Point:
        """The present answer."""
        at = self.iterate.at
        if self.problem.intercept:
            last = at.w[-1]
            return Point(w=at.w[:-1], b=last if self.problem.K > 1 else float(last), z=at.z)
        return Point(w=at.w, z=at.z)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """Exact zeros: by one pass of coordinate descent, or by the prox of all of w.

        Of an X that comes in parts that would need a copy by columns.
        """
        p = self.problem
        if not p.samples.in_memory:
            return None
        if not p.dual_form and p.separable and p.K == 1 and p.loss.compiled:
            return with_zeros(self.problem, certificate, self._rng)
        put = getattr(self.iterate, "with_zeros", None)
        return None if put is None or self.problem.g.is_quadratic else put(certificate)


def start_vector(problem: ERM, at: Start) -> Vector:
    """The w to start from, with b at its end if the problem has an intercept."""
    start = problem.g.clip(np.zeros((problem.d, problem.K) if problem.K > 1 else problem.d))
    if at.w is not None:
        start = problem.check_w(at.w).copy()
        if not problem.g.contains(start):
            raise ValueError("x0 must be within the bounds of the penalty.")
    if problem.intercept:
        b = problem.best_shift(problem.samples.times(start)) if at.b is None else at.b
        start = np.concatenate([start, np.asarray(b)[None]])
    return start
