"""Rounds on all columns: for many more rows than columns, dense or sparse.

For the squared loss one Gram matrix is all there is to know. For another loss the Gram matrix of a
sample of the rows is good enough to begin with, and one is used as long as it serves: a new one
costs many passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ....certify.points import Start
from ....data import Dense
from ....problems.erm import ERM
from ...base import Budget, Target
from ..blocks import AllColumns, DenseColumns
from ..gram import GramModel
from ..run import NEAR
from ..tuning import SetTuning
from .run import DenseRun

#: sweeps between Newton's steps where the model is P itself: one-hot rows and a9a at
#: lambda_max/1000 take 0.6 to 0.9 of the time with 30; with 100 and 200 0.7 to 1.2
WHOLE_SWEEPS = 60
#: a sample of the rows is solved to this gap, in at most so many passes over it
SAMPLE_GAP, SAMPLE_PASSES = 0.03, 200


@dataclass(frozen=True, eq=False)
class KeptGram:
    """A Gram matrix that is used as long as it serves, with the means of its columns W."""

    G: Matrix
    mean: Vector | None
    W: Index
    #: whether it is one of all rows
    whole: bool = True


class AllColumnsRun(DenseRun):
    """A round: a model on all columns, or on those that may move, and a step."""

    def __init__(
        self, problem: ERM, at: Start, target: Target, tuning: SetTuning, rng: np.random.Generator
    ) -> None:
        super().__init__(problem, at, target, tuning)
        self.theta = 1.0  # there is no way to save: all columns are in the model
        self._block, self._rng = AllColumns(problem), rng
        self._cold = at.w is None
        self._kept: KeptGram | None = None
        self._last = np.inf  # the gap before the last round by a Gram matrix

    def begin(self, budget: Budget) -> None:
        if self._cold and not self.losses.constant:
            self._on_sample(budget)
        super().begin(budget)

    def _on_sample(self, budget: Budget) -> None:
        """The answer on a sample of the rows, and its Gram matrix."""
        p, tuning = self.problem, self.tuning
        size = int(
            max(tuning.rows_per_feature * p.d, tuning.share * p.n_samples, tuning.least_rows)
        )
        if tuning.sampled[self.float32.on] * size > p.n_samples:
            return
        rows = np.sort(self._rng.choice(p.n_samples, size, replace=False))
        weights = p.weights[rows] if p.weights.size > 1 else p.weights
        y = p.y[rows]
        kept = y[weights > 0] if weights.size > 1 else y
        if kept.size == 0 or (p.loss.margin and np.ptp(kept) == 0):
            return  # nothing, or one class
        n = float(np.sum(weights)) if weights.size > 1 else float(size)
        small = p.altered(samples=p.samples.rows(rows), y=y, weights=weights, n=n, n_samples=size)
        run = AllColumnsRun(small, Start(), Target(SAMPLE_GAP), tuning, self._rng)
        run.advance(Budget(SAMPLE_PASSES, False, budget.deadline))
        self.now(w=run.w, b=run.b)
        self.floor = run.floor
        self._kept = None if run._kept is None else replace(run._kept, whole=False)
        self.cost += run.cost * size / p.n_samples

    def matrix_round(self, gap: float, value: float) -> bool:
        tuning, constant = self.tuning, self.losses.constant
        kept, new = self._kept, self._kept is None
        if kept is not None and (not constant or self.float32.last):
            slow = gap > tuning.kept[kept.whole] * self._last
            new = not self._serves(kept) or (slow and (not constant or self.widens()))
        self._last = gap
        kept = self._gram() if kept is None or new else kept
        self._kept, G, mean, W = kept, kept.G, kept.mean, kept.W
        descent, w, penalty = self.descent[W], self.w[W], self.penalty.on(W)
        sweeps = WHOLE_SWEEPS if constant else tuning.sweeps
        model = GramModel(G, descent, w, penalty, tuning, sweeps)
        wanted = self.wanted(descent, w, penalty, gap, value)
        self.solve(model, *((0.0, 0.0) if constant else wanted[:2]), *wanted[2:])  # exact: once
        step = model.v - w
        if not step.any():
            return self._renew(new)
        if constant:
            return self.arrive_at(W, model, mean, value) or self._renew(new)
        way_b = 0.0 if mean is None else -float(np.dot(mean, step))
        ahead = np.zeros(self.problem.d)
        ahead[W] = step
        taken = self.move(W, model.v, self._block.times(ahead) + way_b, way_b)
        self.cost += 0.5
        if taken < 1:
            self._kept = None
        if taken == 0:
            return self._renew(new)
        self.now(descent=self._block.descent(self.at.slope), pair=None)
        self.cost += 0.5
        return True

    def released(self) -> None:
        self._kept = None

    def _serves(self, kept: KeptGram) -> bool:
        """Whether the Gram matrix kept has all columns that may move."""
        if kept.W.size == self.w.size:
            return True
        outside = self.penalty.violations(self.w, self.descent) > 0
        outside[kept.W] = False
        return not outside.any()

    def _gram(self) -> KeptGram:
        """The Gram matrix of the columns that are near to moving, or of all of them.

        For dense data it costs as the square of their number, and other losses need several.
        """
        p, constant = self.problem, self.losses.constant
        every = np.arange(p.d)
        if isinstance(p.samples, Dense):
            near = self.moving()
            if constant and near.size > self.tuning.moving * p.d:
                near = every  # it then serves to the end
            narrow = self.narrow_gram(near)
            if narrow is not None:
                return KeptGram(*narrow, near)
            if not constant and 0 < near.size <= self.tuning.moving * p.d:
                block = DenseColumns(p, near)
                made = block.gram(self.bend(), p.intercept)
                self.cost += block.cost
                return KeptGram(*made, near)
        self.cost += self._block.cost
        return KeptGram(*self._block.gram(self.bend(), p.intercept), every)

    def most_inside(self, near: Vector | None) -> float:
        if near is None or self._kept is None:
            return 1.0
        return float(self.penalty.on(self._kept.W).most(near)) * (1 + NEAR)

    def _renew(self, new: bool) -> bool:
        """Nothing moved: whether a Gram matrix at this very point is any news."""
        self._kept, constant = None, self.losses.constant
        return self.widens() or (not constant and (not new or self.lifts()))
