"""The first rounds on sparse columns, for losses that are not squares: sweeps with fresh slopes.

Far from the optimum a model is soon out of date, and what it takes to make and solve one is lost.
So sweeps step on the columns as they are, with the slopes and curvatures of the rows; these are
computed anew as soon as the predictions have moved by much. Up to there it is a model like any
other, on some columns, and P is searched along the line.

A sweep of a stage meets every column that may move. The slopes that it finds say which columns the
next stage leaves out: no pass is made for them alone.

Later such sweeps mend what a step of Newton's method has left: a few columns that violate by much.
They are all that the gap depends on while tol is large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...._base.validation import Index, Vector
from ...._kernels.sparse import first_sweeps
from ....certify.points import Start
from ....problems.erm import ERM
from ...base import Target
from ..penalty import ScaledPenalty
from ..run import SparseRun
from ..tuning import SetTuning
from .packed import PackedRun

#: few columns have at most this part of the entries of the support (0.2, 0.6: both 1.06)
SHARE = 0.4
_NOBODY = np.empty(0, np.int64)


@dataclass(eq=False)
class FirstSweeps:
    """How such sweeps get on.

    on      whether there are any: from w = 0, with a loss that is no square
    rough   whether the slopes are those that a sweep met, each at another point
    mended  the gap before the last round, if that was one of sweeps over few columns
    rng     for the order of few columns
    """

    on: bool
    rng: np.random.Generator
    rough: bool = False
    mended: float = math.inf


class FreshRun(PackedRun):
    """Rounds that are such sweeps, and the rounds of the subclass."""

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        on = not self.losses.constant and at.w is None
        self.first = FirstSweeps(on, np.random.default_rng(0))

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """Without sweeps: it is nearly right."""
        if self.first.rough:
            self.descend()
        self.first.on = self.first.rough = False
        return super().turn(problem, target)

    def gap(self) -> tuple[float, float]:
        """Not known in a stage, nor before the slopes are those of one point."""
        if self.first.rough or (self.first.on and self.theta > 1):
            return math.inf, self.at.value + self.penalty.times(self.theta).value(self.w)
        return super().gap()

    def round(self, gap: float, value: float) -> bool:
        if self.first.on and (self.first.rough or self.theta > 1):
            self._stage(value)
            return True
        W = self._few(gap, value) if self.first.on else _NOBODY
        if W.size == 0:
            self.first.mended = math.inf
            return super().round(gap, value)
        worst, self.first.mended = self._worst(W), gap
        self._progress = self._progress.spared()  # `patience` is for rounds that cost more
        self._mend(W, self._much(value))
        self._shrink(worst)
        self.descend()
        return True

    def _stage(self, value: float) -> None:
        """A sweep over all columns that are near to moving; more of them at theta = 1."""
        penalty, tuning = self.penalty.times(self.theta), self.tuning
        if self.theta > 1:
            self._meet(self._near(tuning.near * penalty.a), penalty)
            self.first.rough, self.theta = True, self.fallen(self.theta)
            return
        W, much = np.arange(self.w.size), self._much(value)
        for _ in range(tuning.fresh_sweeps):
            met = self._meet(W, penalty)
            if not np.any(met > np.broadcast_to(much, self.w.shape)[W]):
                break
            W = W[self.w[W] != 0]
        else:
            self._mend(W, much)
        self.first.rough = False
        self.descend()

    # ---- few columns ----------------------------------------------------------------------------

    def _much(self, value: float) -> Vector:
        """A violation that is worth a step of its own, for each column or for all."""
        needed = self._needed(value, self.w) / self.problem.n
        return np.asarray(np.maximum(self.tuning.fresh_much * self.penalty.a, needed))

    def _few(self, gap: float, value: float) -> Index:
        """The columns that violate by much; none if they are many, or if it did not help before."""
        if gap > self.tuning.fresh_pays * self.first.mended:
            return _NOBODY
        W = np.flatnonzero(self.penalty.violations(self.w, self.slope) > self._much(value))
        most = SHARE * self._entries(np.flatnonzero(self.w))
        return W if self._entries(W) <= most else _NOBODY

    def _entries(self, columns: Index) -> float:
        start = self._packed.start
        return float((start[columns + 1] - start[columns]).sum())

    def _needed(self, value: float, v: Vector) -> float:
        """The violation, times n, that is small enough for the gap that is asked for."""
        raise NotImplementedError

    # ---- sweeps ---------------------------------------------------------------------------------

    def _mend(self, W: Index, much: Vector) -> None:
        """Sweeps over these columns at theta = 1, then over those of them that violated by much.

        In random order: columns that are side by side may be alike. (All columns are swept in the
        order of X. Of two that are alike the first then has all the weight. If both have some, it
        takes a Newton step long to move it.)
        """
        for _ in range(self.tuning.fresh_mends):
            W = self.first.rng.permutation(W)
            met = self._meet(W, self.penalty)
            W = W[met > np.broadcast_to(much, self.w.shape)[W]]

    def _meet(self, W: Index, penalty: ScaledPenalty) -> Vector:
        """A step on each of these columns: by how much each violated, where it moved."""
        packed, n, slope = self._packed, self.problem.n_samples, self.slope.copy()
        self.now(slope=slope)  # which the kernel changes
        on, v, met, rows = penalty.on(W), self.w[W], np.zeros(W.size), np.empty((n, 2))
        with np.errstate(divide="ignore"):
            far = (self.pace.trust if self.problem.loss.margin else np.inf) / packed.most[W]
        at = 0
        while at < W.size:
            bend = self.bend()
            first_sweeps.fill(self.at.slope, bend, rows)
            total = float(bend.sum()) if self.problem.intercept else 0.0
            end, shift = first_sweeps.steps(
                packed.entries, packed.double, packed.start, W, packed.squares, far, *on.parts,
                total, 0.0, self.tuning.fresh_move * n, at, v, met, slope, rows,
            )  # fmt: skip
            if met[at:end].any():
                self._steer_trust(self.move(W[at:end], v[at:end], rows[:, 1] + shift, shift))
            at = end
        self.cost += self._entries(W) / (2 * max(self._samples.nnz, 1))
        return met
