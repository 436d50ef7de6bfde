"""Rows of W as groups: a feature is in or out for all classes.

The rounds are those of `group_run`. The K entries of a row are a group, and the model on some of
them is that of `entries`. A square of the penalty is part of the model.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ....problems.erm import ERM
from ..groups.model import GroupPenalty
from ..groups.run import GroupRun
from .entries import Entries
from .run import ClassRun


class RowPenalty(GroupPenalty):
    """alpha (a |W_j| + (b/2)|W_j|^2) over rows of K entries."""

    def __init__(self, a: Vector, starts: Index, b: float) -> None:
        super().__init__(a, starts)
        self.b = b

    def value(self, w: Matrix) -> float:
        return super().value(w) + 0.5 * self.b * float(np.vdot(w, w))

    def times(self, theta: float) -> RowPenalty:
        return self if theta == 1 else RowPenalty(theta * self.a, self.starts, self.b)

    def start(self, size: int) -> Vector:
        """Where a run begins."""
        return np.zeros(size)

    def conjugate(self, slope: Matrix) -> float:
        """sum_j (|slope_j| - a_j)_+^2/(2 b), with b > 0"""
        over = np.maximum(self.norms(slope) - self.a, 0.0)
        return 0.5 * float(over @ over) / self.b


class RowsRun(ClassRun, GroupRun):
    """The method at work."""

    def __init__(self, problem: ERM, at: Any, target: Any, tuning: Any) -> None:
        super().__init__(problem, at, target, tuning)
        self._K, self._members = 1, np.arange(problem.d * problem.K)

    def _penalise(self, problem: ERM) -> None:
        g: Any = problem.g
        starts = np.arange(problem.d + 1, dtype=np.intp) * problem.K
        self.penalty = RowPenalty(
            np.full(problem.d, problem.alpha * g.a), starts, problem.alpha * g.ridge
        )

    def pick(self, features: Index) -> Any:
        return Entries(self, features)

    def _on(self) -> RowPenalty:
        on = super()._on()
        return RowPenalty(on.a, on.starts, self.penalty.b)

    def ridged(self, G: Matrix, slope: Any, w: Any) -> tuple[Matrix, Any]:
        b = self.penalty.b
        if b > 0:
            at = np.arange(w.size)
            G[at, at] += b
            slope = slope - b * w
        return G, slope

    def _gap_at(self, theta: float) -> tuple[float, float]:
        penalty = self.penalty.times(theta)
        value = self.at.value + penalty.value(self.w)
        x = self.losses.dual_of(self.at.slope)
        s = 1 / max(1.0, penalty.most(self.slope) * (1 + self.slack))
        over = penalty.conjugate(self.slope) if penalty.b > 0 else math.inf
        return value - self._best_dual(x, s, over), value
