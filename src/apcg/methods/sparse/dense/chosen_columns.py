"""Rounds on working sets: for dense data with more columns than matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._base.validation import Index, Vector
from ....certify.points import Start
from ....problems import costs
from ....problems.erm import ERM
from ...base import Target
from ..blocks import DenseColumns, stored_columns
from ..gram import GramModel
from ..penalty import ScaledPenalty
from ..run import NEAR, SparseRun
from ..state import placed
from ..tuning import SetTuning
from .run import ACTIVE, DenseRun

#: other losses with an L2 part: a step that takes longer than so many passes of the dual is left to
#: it. On golub (logistic, l1_ratio 0.01) the dual took 60 to 130 passes
DUAL_PASSES = 100.0
#: sweeps between Newton's steps on a path. Paths of golub, alon and generated genes, by 5, 10, 20
#: and 30: 0.89, 0.89, 0.97 and 1; cold solves of these take 1.08 of the time with 10
WARM_SWEEPS = 10


class ChosenColumnsRun(DenseRun):
    """A round: the support and the columns nearest to it, a model on them, a few steps.

    The set stays, with its columns and for the squared loss its Gram matrix, while no column
    outside of it violates.
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self.block: Any = None
        self._size = 0
        #: alpha and w of the last two answers of a path, for a look ahead
        self._known: list[tuple[float, Vector]] = []

    @classmethod
    def after(cls, run: SparseRun, problem: ERM, target: Target) -> ChosenColumnsRun:
        """To go on from where a run on sparse columns is, with another alpha.

        From one alpha to the next few columns enter. Their products with those that are there take
        a pass over the rows, and then sweeps and Newton steps cost next to nothing.
        """
        made = cls(problem, Start(w=run.w, b=run.b), target, run.tuning)
        made.columns = stored_columns(problem)
        made.now(seen=run.state.seen, descent=run.descent)
        made.alone, made.turned = run.alone, True
        return made

    def goes_on(self, problem: ERM, w: Vector | None = None) -> bool:
        """Not with many sparse columns: conjugate gradients cost less than a Newton step."""
        size = 0 if self.block is None or not self.columns.dear else self.block.W.size
        return size <= self.tuning.most_picked and super().goes_on(problem, w)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        if not self.losses.constant:
            self._known = [*self._known[-1:], (self.problem.alpha, self.w.copy())]
        return super().turn(problem, target)

    @property
    def blind(self) -> bool:
        return True

    def matrix_round(self, gap: float, value: float) -> bool:
        self._choose()
        block = self.block
        steps = 1 if self.losses.constant or self.theta > 1 else self.tuning.steps
        moved = ahead = len(self._known) == 2 and self._look_ahead()
        for k in range(steps):
            new = k > 0 or ahead
            descent = block.descent(self.at.slope) if new else self.descent[block.W]
            if not self.step(block, descent, gap, value):
                break
            moved = True
            if self.is_over() or (k + 1 < steps and self._nearly(block)):
                break
        if moved and not self.losses.constant:  # which has arrived
            self.descend()
        return moved or (not self.why and (self.widens() or self.lifts()))

    def _look_ahead(self) -> bool:
        """To where the last two answers point, as lines in log alpha, if P is lower there.

        What is zero stays so, and what would cross zero stops there.
        """
        (before, w), (last, now) = self._known
        self._known = self._known[1:]
        alpha, W = self.problem.alpha, self.block.W
        falls = before > last > alpha and not self.penalty.bounded
        if not falls or not np.array_equal(now, self.w):
            return False
        at = now[W]
        new = at + math.log(last / alpha) / math.log(before / last) * (at - w[W])
        new[new * at <= 0] = 0.0
        way = self.block.times(new - at)
        seen, penalty = self.losses.along(self.at.z, way, 1.0), self.penalty.on(W)
        if not seen.value + penalty.value(new) < self.at.value + penalty.value(at):
            return False
        self.now(w=placed(self.w, W, new), seen=seen, fresh=False)
        if self.problem.intercept:
            self.settle()
        return True

    def released(self) -> None:
        self.block = None

    def _dual_is_faster(self, columns: int) -> bool:
        """Whether one step takes longer than all of the dual, which an L2 part leaves to solve.

        For the squared loss the Gram matrix is made once, and the dual was never faster.
        """
        p, rates = self.problem, costs.RATES
        if self.alone or p.K > 1 or not self.penalty.ridged or columns < p.n_samples:
            return False
        gram = rates.product_dense * 0.5 * p.n_samples * columns**2
        step = gram + rates.cholesky_entry * columns**3 / 6
        return step > DUAL_PASSES * costs.dense_sweep(p)

    def _nearly(self, block: Any) -> bool:
        """Whether the gap would do if no column outside the set violated."""
        penalty = self.penalty.times(self.theta)
        if penalty.bounded or penalty.a.min() == 0:
            return False
        near = block.descent(self.at.slope)
        s = 1 / max(1.0, penalty.on(block.W).most(near))
        x = self.losses.dual_of(self.at.slope)
        value = self.at.value + penalty.on(block.W).value(self.w[block.W])
        return bool(value - self.losses.dual_value(s * x) <= self._tol * abs(value))

    def predict(self) -> Vector:
        if self.block is not None:  # it has the support
            return np.asarray(self.losses.shifted(self.block.times(self.w[self.block.W]), self.b))
        return np.asarray(self.losses.predict(self.w, self.b))

    def most_inside(self, near: Vector | None) -> float:
        if self.block is None:
            return 1.0
        spare = NEAR
        if near is None or self._tol < 1e4 * NEAR:
            near, spare = self.block.descent(self.at.slope), self.slack
        return float(self.penalty.on(self.block.W).most(near)) * (1 + spare)

    def _choose(self) -> None:
        """The support and the columns nearest to entering it; the same set if it will do."""
        penalty, d, block = self.penalty.times(self.theta), self.w.size, self.block
        if block is not None and (block.W.size == d or self._serves(penalty)):
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.abs(self.descent) / penalty.a
        inside = (self.w != 0) | (penalty.a == 0)
        if penalty.bounded:
            inside |= penalty.violations(self.w, self.descent) > 0
        support, least = int(np.count_nonzero(inside)), self.tuning.first
        score[inside] = np.inf
        if block is not None:
            score[block.W] = -1.0  # below any outside, so that none enters twice
            outside = int(np.count_nonzero(score > 1))
            if outside == 0:
                return
            more = min(max(2 * outside, support // 2, self.tuning.more), max(support, least))
            room = self.tuning.roomy[self.columns.dear] * max(support, least)
            few = self.turned and block.W.size + more <= room
            if few:
                block.extend(_largest(score, min(more, d - block.W.size)))
                self.cost += 0.5 * more / d
                return
            score[block.W] = np.abs(self.descent[block.W]) / penalty.on(block.W).a
            score[inside] = np.inf
        outside = int(np.count_nonzero(score > 1)) - support
        size = min(max(2 * support, support + min(outside, max(self._size, least)), least), d)
        self._size = size
        self.block = self.columns.make(np.arange(d) if size == d else _largest(score, size))
        self.cost += 0.5 * size / d

    def _serves(self, penalty: ScaledPenalty) -> bool:
        """Whether no column outside the set violates; the support is always in it."""
        if penalty.bounded:
            return False
        outside = np.abs(self.descent) > penalty.a
        outside[self.block.W] = False
        return not outside.any()

    def step(self, block: Any, descent: Vector, gap: float, value: float) -> bool:
        """Minimise a model over the columns of the set, and go there as far as P falls."""
        constant = self.losses.constant
        if not constant:
            block, descent = self._few(block, descent)
            if self._dual_is_faster(block.W.size):
                self.why = f"a model of {block.W.size:,} columns takes longer than dual sweeps"
                return False
        W = block.W
        if self.columns.count(self.theta == 1):
            self.begin_again()
        narrow = None if constant else self.narrow_gram(W)
        if narrow is None:
            narrow = block.gram(self.bend(), self.problem.intercept, kept=constant)
            self.cost += block.cost
        G, mean = narrow
        penalty = self.penalty.times(self.theta).on(W)
        w = self.w[W]
        sweeps = WARM_SWEEPS if self.turned else self.tuning.sweeps
        model = GramModel(G, descent, w, penalty, self.tuning, sweeps)
        self.solve(model, *self.wanted(descent, w, penalty, gap, value))
        step = model.v - w
        if not step.any():
            return False
        if constant:
            return self.arrive_at(W, model, mean, value)
        way_b: Any = 0.0 if mean is None else -np.dot(mean, step)
        return self.move(W, model.v, self.losses.shifted(block.times(step), way_b), way_b) > 0

    def _few(self, block: DenseColumns, descent: Vector) -> tuple[DenseColumns, Vector]:
        """The columns of the set that are near to moving: a Gram matrix is made for each step."""
        penalty, w = self.penalty.times(self.theta).on(block.W), self.w[block.W]
        if penalty.bounded:
            return block, descent
        some = np.flatnonzero((w != 0) | (np.abs(descent) > ACTIVE * penalty.a))
        return (block, descent) if some.size == w.size else (block.part(some), descent[some])


def _largest(score: Vector, count: int) -> Index:
    """The columns with the highest scores."""
    return np.sort(np.argpartition(-score, count - 1)[:count])
