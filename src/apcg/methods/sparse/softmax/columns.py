"""Rounds on sparse columns: for sparse data with many columns.

Slopes of a column are taken for all classes at once, and with them the largest, so that nothing
else runs over all d K of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...._base.validation import Index, Vector
from ...._kernels.sparse import softmax_columns as kernels
from ....certify.points import Certificate, Point, Start
from ....problems.erm import ERM
from ...base import Budget, Report, Run, Target, Work
from ..columns.packed import ENTERING, PackedRun
from ..dense.chosen_columns import ChosenColumnsRun
from ..penalty import ScaledPenalty
from ..run import STALL, SparseRun
from ..tuning import SetTuning
from .support_cg import EntryModel


class ClassColumnsRun(PackedRun):
    """A prox-Newton step on the entries of W that may move.

    W and its slopes are long, and nothing is taken back here: both are changed in place.

    support  the entries of W that are not zero
    slopes   a row for each column, as they were last computed
    top      max_k |slope_jk| of each column
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self.support = np.flatnonzero(self.w)
        self.slopes, self.top = np.zeros((problem.d, problem.K)), np.zeros(problem.d)

    @property
    def by_column(self) -> ScaledPenalty:
        """The same for all classes: that of the first entry of each column."""
        mine: ScaledPenalty = self.penalty
        if all(part.size == 1 for part in mine.parts):
            return mine
        return mine.on(self.losses.K * np.arange(self.problem.d))

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        zero = self.support.size == 0
        self.arrive(self.begin_at() if zero else self.predict())
        if self.theta > 1:
            self.theta = self.fallen(self.by_column.most(self.top)) if zero else 1.0

    def predict(self) -> Vector:
        """X W + b by the columns of the support."""
        z = np.repeat(self.b[:, None], self.problem.n_samples, axis=1)
        ids, classes = np.divmod(self.support, self.losses.K)
        self._packed.add_to(ids, classes, self.w[self.support], z)
        return z.T.reshape(-1)

    def _descend_by_columns(self) -> None:
        d = self.problem.d
        some = np.arange(d) if self.kept is None else self.kept
        slope = -self.losses.rows(self.at.slope)
        kernels.slopes(self._packed.columns, some, slope, self.slopes, self.top)
        self.cost += 0.5 * some.size / d

    @property
    def falls(self) -> float:
        return self.tuning.stage[0]

    # ---- the gap --------------------------------------------------------------------------------

    def value(self) -> float:
        S = self.support
        return float(self.at.value + self.penalty.times(self.theta).on(S).value(self.w[S]))

    def _gap_here(self) -> tuple[float, float]:
        penalty, losses, value = self.by_column.times(self.theta), self.losses, self.value()
        if self._is_paired():
            over = self._over(penalty) if penalty.ridged else 0.0
            return value - losses.dual_value(self._paired_x) + over, value
        x = losses.dual_of(self.at.slope)
        s = 1 / max(1.0, penalty.most(self.top) * (1 + self.slack))
        return value - self._best_dual(x, s, self._over(penalty)), value

    def _over(self, penalty: ScaledPenalty) -> float:
        """The conjugate of the penalty at the slopes; infinite without squares."""
        if not penalty.ridged:
            return math.inf
        J = np.flatnonzero(self.top > penalty.a)
        on = penalty.on(J)
        a, b = (np.broadcast_to(part, J.shape)[:, None] for part in (on.a, on.b))
        over = np.maximum(np.abs(self.slopes[J]) - a, 0.0)
        return 0.5 * float(np.sum(over * over / b))

    def _descend_exactly(self) -> None:
        super()._descend_exactly()
        self._sloped()

    def _all_slopes(self) -> None:
        super()._all_slopes()
        self._sloped()

    def _sloped(self) -> None:
        """The slopes, by column."""
        self.slopes = self.losses.rows(self.descent)
        self.top = np.maximum(self.slopes.max(axis=1), -self.slopes.min(axis=1))

    def most_inside(self, near: Vector | None) -> float:
        return self.by_column.most(self.top) * (1 + self.slack)

    def refine(self) -> bool:
        was, self.exact = self.exact, True
        return not was

    # ---- how long it goes on --------------------------------------------------------------------

    def _idles(self, gap: float, value: float) -> bool:
        """Also if it has spent what another method would take, and that is there to go on."""
        long = not self.alone and self.cost > self.tuning.columns_passes
        return (long and self.cost > self.price()) or super()._idles(gap, value)

    def price(self) -> float:
        """What sets by their matrices would cost, in passes; infinite if these are too large."""
        p, size, tuning = self.problem, self.support.size, self.tuning
        columns = np.unique(self.support // self.losses.K).size
        if size > tuning.widest or p.n_samples * columns > tuning.dense_room:
            return math.inf
        nnz: int = max(self._samples.nnz, 1)
        return tuning.matrices * tuning.product * size**2 * p.n_samples / (nnz * p.K)

    # ---- a round --------------------------------------------------------------------------------

    def put(self, W: Index | slice, v: Vector) -> Vector:
        w: Vector = self.w
        w[W] = v
        return w

    def _near(self, bound: Vector) -> Index:
        near = self.top > bound
        near[self.support // self.losses.K] = True
        return np.flatnonzero(near)

    def _choose(self) -> Index:
        penalty = self.by_column.times(self.theta)
        J = self._known(self._near(ENTERING * penalty.a))
        bound = np.broadcast_to(ENTERING * penalty.on(J).a, J.shape)
        may = (np.abs(self.slopes[J]) > bound[:, None]) | (self.losses.rows(self.w)[J] != 0)
        k, at = np.nonzero(may.T)  # by class
        return np.asarray(J[at] * self.losses.K + k)

    def _worst(self, W: Index) -> float:
        ids, k = np.divmod(W, self.losses.K)
        on = self.by_column.on(ids)
        return float(on.violations(self.w[W], self.slopes[ids, k]).max(initial=0.0))

    def _step_on(self, W: Index, value: float) -> bool:
        """A step of Newton's method on the entries W, inside a region of trust."""
        if not W.size:
            return False
        packed, w = self._packed, self.w[W]
        on = self.penalty.times(self.theta).on(W)
        with np.errstate(divide="ignore"):
            far = self.pace.trust / packed.most[W // self.losses.K]
        near = ScaledPenalty(on.a, on.b, w - far, w + far)
        bend = self.losses.bend(self.at, self.floor, None)
        ids, classes = np.divmod(W, self.losses.K)
        model = EntryModel(
            packed, W, w, self.slopes[ids, classes], near, self.at, self.losses, bend.floor,
            self.problem.intercept,
        )  # fmt: skip
        *_, high = self._sweep(model, value)
        if self.theta == 1 and high:
            model.face(self.pace.most, self.tuning.residual)
        self.cost += model.spent / (2 * max(self._samples.nnz * self.losses.K, 1))
        if not (model.v != w).any():
            return self.lifts()
        taken = self.move(W, model.v, model.way().T.reshape(-1), model.b, on)
        if taken > 0:
            self.support = W[self.w[W] != 0]
        self._steer(taken, int(np.count_nonzero(model.v)))
        return taken > 0 or self.lifts()


class ColumnsFirst(Run):
    """Rounds on sparse columns; where these hardly get on, sets by their matrices.

    Columns that are nearly alike take conjugate gradients more iterations than they have.
    """

    def __init__(self, run: ClassColumnsRun, target: Target) -> None:
        self._alone, run.alone = run.alone, False
        #: the run that is at work
        self.at_last: SparseRun = run
        self._target = target
        self.notes: list[str] = []

    @property
    def report(self) -> Report:
        """That of the run at work."""
        return replace(self.at_last.report, notes=self.notes)

    def point(self) -> Point | Certificate:
        """The answer of the run at work."""
        return self.at_last.point()

    def seen(self, certificate: Certificate) -> None:
        """Tell the run at work."""
        self.at_last.seen(certificate)

    def resume(self, problem: ERM, target: Target, w: Any = None) -> Run | None:
        """The run at work goes on by itself."""
        return self.at_last.resume(problem, target, w)

    def advance(self, budget: Budget) -> Work:
        """With the run at work, and with another one if it gets no further."""
        run = self.at_last
        work = run.advance(budget)
        if not (isinstance(run, ClassColumnsRun) and run.stuck and run.relative > STALL):
            return work
        if run.price() < math.inf:
            at = Start(w=run.losses.own(run.w), b=run.b.copy())
            self.at_last = ChosenColumnsRun(run.problem, at, self._target, run.tuning)
            self.at_last.alone = self._alone
            self.notes.append("working_set: by matrices, as rounds on columns hardly get on")
        elif self._alone:
            run.stuck = False
            return Work(max(budget.passes, work.passes))
        return work
