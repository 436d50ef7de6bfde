"""Rounds on working sets: for dense data with more columns than matter."""

from __future__ import annotations

import numpy as np

from ..._validation import Index, Vector
from .blocks import Block, Copied
from .gram import GramModel
from .run import SparseRun


class WideRun(SparseRun):
    """A round: the support and the columns nearest to it, a model on them, a few steps."""

    _size = 0

    def round(self, gap: float, value: float) -> bool:
        W = self._choose()
        block = Copied(self.problem, W)
        self.cost += 0.5 * W.size / self.problem.d
        steps = 1 if self.losses.constant or self.theta > 1 else self.tuning.steps
        moved = False
        for k in range(steps):
            slope = self.slope[W] if k == 0 else block.slope(self.at.slope)
            if not self.step(W, block, slope, gap, value):
                break
            moved = True
        if moved:
            self.descend()
        return moved or self.lifts()

    def predict(self) -> Vector:
        S = np.flatnonzero(self.w)
        self.cost += 0.5 * S.size / self.problem.d
        return np.asarray(self.problem.samples.stored[:, S] @ self.w[S]) + self.b

    def _choose(self) -> Index:
        """The support and the columns that are nearest to entering it."""
        penalty, d = self.penalty.times(self.theta), self.problem.d
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.abs(self.slope) / penalty.a
        inside = (self.w != 0) | (penalty.a == 0)
        if penalty.bounded:
            inside |= penalty.violations(self.w, self.slope) > 0
        support = int(np.count_nonzero(inside))
        outside = int(np.count_nonzero(score[~inside] > 1))
        least = self.tuning.first
        size = min(max(2 * support, support + min(outside, max(self._size, least)), least), d)
        self._size = size
        if size == d:
            return np.arange(d)
        score[inside] = np.inf
        return np.sort(np.argpartition(-score, size - 1)[:size])

    def step(self, W: Index, block: Block, slope: Vector, gap: float, value: float) -> bool:
        """Minimise a model over the columns of W, and go there as far as P falls."""
        G, mean = block.gram(self.bend(), self.problem.intercept)
        self.cost += block.cost
        penalty = self.penalty.times(self.theta).on(W)
        model = GramModel(G, slope, self.w[W], penalty, self.tuning)
        model.solve(*self.wanted(slope, model.v, penalty, gap, value))
        step = model.v - self.w[W]
        if not step.any():
            return False
        way_b = 0.0 if mean is None else -float(np.dot(mean, step))
        return self.move(W, model.v, block.times(step) + way_b, way_b) > 0
