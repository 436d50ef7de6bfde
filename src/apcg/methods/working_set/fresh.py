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
        self._mended = math.inf
        self._order = None
        self._rng = np.random.default_rng(0)

    def gap(self) -> tuple[float, float]:
        """Not known in a stage, or before the slopes are those of one point."""
        if self._left and (self._rough or self.theta > 1):
            return math.inf, self.at.value + self.penalty.times(self.theta).value(self.w)
        return super().gap()

    def round(self, gap: float, value: float) -> bool:
        if self._left == 0:
            return super().round(gap, value)
        penalty, last, tuning = self.penalty.times(self.theta), self.theta == 1, self.tuning
        if not last:
            self._sweeps(self._near(tuning.near * penalty.a), penalty, 1)
            self._rough, self.theta = True, self.fallen(self.theta)
            return True
        if self._rough:
            W, full = np.arange(self.w.size), tuning.fresh_full
            self._rough = False
        else:
            W, full = self._few(gap, value), 0
            if W.size == 0:
                self._mended = math.inf
                return super().round(gap, value)
        worst = math.inf if full else self._worst(W)
        moved, _ = self._sweeps(W, penalty, tuning.fresh_sweeps + full, full)
        self._mended = gap
        self._shrink(worst)
        self.descend()
        return moved or self.lifts()

    def _few(self, gap: float, value: float) -> Index:
        """The columns that violate by much, if they are few and it helped the last time."""
        if gap > self.tuning.fresh_pays * self._mended:
            return np.empty(0, np.int64)
        off, start = self.penalty.violations(self.w, self.slope), self._packed.start
        W = np.flatnonzero(off > self._much(value))
        S = np.flatnonzero(self.w)
        most = self.tuning.fresh_share * float((start[S + 1] - start[S]).sum())
        return W if float((start[W + 1] - start[W]).sum()) <= most else W[:0]

    def _much(self, value: float) -> Vector:
        needed = self._needed(value, self.w) / self.problem.n
        return np.maximum(self.tuning.fresh_much * self.penalty.a, needed)

    def _sweeps(self, W: Index, penalty: ScaledPenalty, most: int, full: int = 0) -> tuple[bool, float]:
        """Sweeps over these columns, then over those that moved by much."""
        much = self._much(self.at.value + self.penalty.value(self.w))
        any_moved = False
        if self.tuning.fresh_order == 2 or (self.tuning.fresh_order == 3 and self.theta == 1):
            if self._order is None: self._order = self._rng.permutation(self.w.size)
            flag = np.zeros(self.w.size, bool); flag[W] = True
            W = self._order[flag[self._order]]
        for k in range(most):
            if self.tuning.fresh_order == 0: W = self._rng.permutation(W)
            moved, met = self._meet(W, penalty)
            any_moved |= moved
            W = W[self.w[W] != 0] if k < full else W[met > (much[W] if much.size > 1 else much)]
            if W.size == 0:
                break
        return any_moved, float(met.max(initial=0.0))

    def _meet(self, W: Index, penalty: ScaledPenalty) -> tuple[bool, Vector]:
        """One step on each of these columns: whether any was taken, and what each violated by."""
        packed, tuning, n = self._packed, self.tuning, self.problem.n_samples
        on, v, rows, met = penalty.on(W), self.w[W], np.empty((n, 2)), np.empty(W.size)
        with np.errstate(divide="ignore"):
            far = (self._trust if self.problem.loss.margin else np.inf) / packed.most[W]
        at, moved = 0, False
        while at < W.size:
            fresh.fill(self.at.slope, self.bend(), rows)
            end = fresh.steps(
                packed.entries, packed.wide, packed.start, W, far, packed.squares,
                tuning.fresh_move * n, at, v, met, self.slope, rows, *on.parts,
            )  # fmt: skip
            if met[at:end].any():
                some = slice(at, end)
                taken = self.move(W[some], v[some].copy(), np.ascontiguousarray(rows[:, 1]), 0.0)
                moved = moved or taken > 0
                low, high = tuning.trusts
                self._trust = min(high, 2 * self._trust) if taken == 1 else max(low, 0.5 * self._trust)
            at = end
        self.cost += float((packed.start[W + 1] - packed.start[W]).sum()) / (2 * max(self._samples.nnz, 1))
        return moved, met
