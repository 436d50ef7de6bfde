"""The first rounds on sparse columns with losses that are not squares: sweeps with fresh slopes.

Far from the optimum a model is soon out of date, and what it takes to solve one is lost. A sweep
here steps on the columns themselves, with the slopes and curvatures of the rows; these are computed
anew as soon as the predictions have moved enough, and P is then searched along the line.

A sweep meets every column that may move, and what it finds there are the slopes by which the next
stage leaves out columns: no pass is made for them alone.
"""

from __future__ import annotations

import math

import numpy as np

from ..._kernels import fresh
from ..._validation import Index, Vector
from ...erm import ERM
from ...points import Start
from ..base import Target
from .packed import PackedRun
from .penalty import ScaledPenalty
from .tuning import Tuning


class FreshRun(PackedRun):
    """Rounds of such sweeps at first, those of the subclass then.

    _left    how many rounds of sweeps there may be at theta = 1
    _rough   whether the slopes are those that sweeps met, each at another point
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: Tuning) -> None:
        super().__init__(problem, at, target, tuning)
        self._left = 0 if self.losses.constant or at.w is not None else tuning.fresh_rounds
        self._rough = False

    def gap(self) -> tuple[float, float]:
        """Not known in a stage, or before the slopes are those of one point."""
        if self._left and (self._rough or self.theta > 1):
            return math.inf, self.at.value + self.penalty.times(self.theta).value(self.w)
        return super().gap()

    def round(self, gap: float, value: float) -> bool:
        if not self._left:
            return super().round(gap, value)
        penalty, last = self.penalty.times(self.theta), self.theta == 1
        W = np.arange(self.w.size)
        if not last:
            W = self._near(self.tuning.near * penalty.a)
        elif not self._rough:
            W = self._near(self.tuning.entering * penalty.a)
        moved = False
        first=None
        for _ in range(self.tuning.fresh_sweeps[last]):
            t, worst = self._meet(W, penalty)
            moved |= t
            if first is None: first=worst
            if worst < .1*first: break
            W = W[self.w[W] != 0]
        self._rough = not last
        if not last:
            self.theta = self.fallen(self.theta)
            return True
        self._left -= 1
        if self._left and self.choose_end(value): self._left = 0
        self.kept = None
        self._shrink(worst)
        self.descend()
        return moved or self.lifts()
    def choose_end(self, value): return False

    def _meet(self, W: Index, penalty: ScaledPenalty) -> tuple[bool, float]:
        """One step on each of these columns: whether any was taken, and the greatest violation."""
        packed, tuning, n = self._packed, self.tuning, self.problem.n_samples
        on, v, rows = penalty.on(W), self.w[W], np.empty((n, 2))
        with np.errstate(divide="ignore"):
            far = (self._trust if self.problem.loss.margin else np.inf) / packed.most[W]
        at, worst, moved = 0, 0.0, False
        while at < W.size:
            fresh.fill(self.at.slope, self.bend(), rows)
            end, violation = fresh.steps(
                packed.entries, packed.wide, packed.start, W, far, packed.squares,
                tuning.fresh_move * n, at, v, self.slope, rows, *on.parts,
            )  # fmt: skip
            if violation > 0:
                some = slice(at, end)
                taken = self.move(W[some], v[some].copy(), np.ascontiguousarray(rows[:, 1]), 0.0)
                moved, worst = moved or taken > 0, max(worst, violation)
                low, high = tuning.trusts
                self._trust = min(high, 2 * self._trust) if taken == 1 else max(low, 0.5 * self._trust)
            at = end
        self.cost += float((packed.start[W + 1] - packed.start[W]).sum()) / (2 * max(self._samples.nnz, 1))
        return moved, worst
