"""The method of working sets: L1, elastic net, bounds, with a smooth loss, in the primal.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + alpha sum_j (a_j |w_j| + (b_j/2) w_j^2)

A round takes the gradient, chooses the columns W that may move, and minimises a model of P over
them: for the squared loss P itself, for others its second order expansion, with a search along the
line. Few columns matter: those of the support, and those whose slope is near a_j.

The way to small alpha leads through larger ones, theta alpha with theta falling to 1: the sets stay
small, and each answer is a good start for the next.

An intercept is eliminated: the model's columns are centred by their means, weighted as the rows
are, and after each step b is the best there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...certify.points import Start
from ...data import Sparse
from ...problems.erm import ERM
from ..base import ONE_OUTPUT, SEPARABLE, SMOOTH_LOSS, Needs, Target
from .columns.columns import ColumnsRun
from .dense.all_columns import TallRun
from .dense.chosen_columns import WideRun
from .dense.columns_float32 import Strips
from .run import SparseRun
from .tuning import SetTuning


@dataclass(frozen=True)
class WorkingSet:
    """The method "working_set"."""

    tuning: SetTuning = SetTuning()
    #: no other method is there to go on where this one gets no further
    alone: bool = True
    #: after so many passes another one is predicted to be faster
    most: float = math.inf
    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (ONE_OUTPUT, SMOOTH_LOSS, SEPARABLE)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SparseRun:
        """Begin at at.w, or at 0 with a large alpha; or go on with the run that was there."""
        run = at.run.resume(problem, target) if at.run else None
        if not isinstance(run, SparseRun):
            run = self._run(problem, at, target, rng)
        run.alone, run.most = self.alone, self.most
        return run

    def _run(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SparseRun:
        t, d = self.tuning, problem.d
        tall = min(t.tall, t.tall_strips) if Strips.fit(problem, t) else t.tall
        if d <= t.most_columns and problem.n_samples >= tall * d:
            return TallRun(problem, at, target, t, rng)
        if isinstance(problem.samples, Sparse) and problem.n_samples > t.few_rows:
            return ColumnsRun(problem, at, target, t)
        return WideRun(problem, at, target, t)
