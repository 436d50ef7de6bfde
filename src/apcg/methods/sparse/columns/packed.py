"""What runs on sparse columns share, with one output and with K.

The columns are a copy in float32, half as many bytes to read. Slopes by them are right to a few
parts in 1e7, and the gap is always that of the data as it is given. Where that is too coarse,
slopes are taken from the data, and the copy says how they change within a round.

Most columns are far from moving, and their slopes are not taken until the last look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._base.validation import Index, Vector
from ....certify.points import Certificate, Start
from ....data import views
from ....data.columns import Packed
from ....problems.erm import ERM
from ...base import Target
from ..penalty import ScaledPenalty
from ..run import SparseRun
from ..tuning import SetTuning

#: a column may move if its slope is above this part of a_j
ENTERING = 0.999
#: sweeps over a model that is not exact end at this part of the first violation
FORCED = 0.3
#: conjugate gradients while the support is stable: squared loss, others
MOST_GRADIENTS = (160, 40)

#: how much of the gap that is asked for is left to a model, whose violation scales the dual point:
#: squared loss with L1, others. With 0.3 for the first rcv1 at /1000 took 14 of 109 iterations
#: more; with 0.8 for others a run stayed just above tol for 9 rounds, and with L2, where the gap is
#: of second order too, P was within 1e-6 at a tighter tol only
ENOUGH = (0.8, 0.3)


@dataclass(eq=False)
class Pace:
    """How far a round goes.

    most   of conjugate gradients there are at most so many
    trust  no margin changes by more in a step
    size   that of the support in the last round
    """

    most: int
    trust: float
    size: int = 0

    def steer(self, size: int, stable: bool, most: int, first: int) -> None:
        """Twice as many conjugate gradients while the support is stable, up to `most`."""
        self.size, self.most = size, min(2 * self.most, most) if stable else first


class PackedRun(SparseRun):
    """A round: a model on what may move, sweeps, conjugate gradients, a step.

    kept  the columns whose slopes are taken; None for all. The others are far from moving
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        #: whether slopes are those of the data as it is given
        self.exact = target.tol < tuning.narrow
        self._failed = 0
        self.kept: Index | None = None
        self.pace = Pace(tuning.gradients[not self.losses.constant], tuning.trust)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """With the slopes of columns that may enter by the strong rule only."""
        before = self.by_column.a
        super().turn(problem, target)
        self.pace.most = self.tuning.gradients[not self.losses.constant]
        self.kept = None
        if not self.by_column.bounded:
            self.kept = self._near(np.maximum(2 * self.by_column.a - before, 0.0))
        return self

    @property
    def by_column(self) -> ScaledPenalty:
        """The penalty of an entry of w, for each column."""
        mine: ScaledPenalty = self.penalty
        return mine

    @property
    def _samples(self) -> Any:
        return self.problem.samples

    @property
    def _packed(self) -> Packed:
        packed: Packed = self._samples.view(views.columns)
        return packed

    @property
    def slack(self) -> float:  # type: ignore[override]
        """What float32 may do to a slope."""
        return SparseRun.slack if self.exact else 1e-7

    # ---- the gap --------------------------------------------------------------------------------

    def gap(self) -> tuple[float, float]:
        if self.theta > 1:  # a stage is one round, whatever its gap
            return math.inf, self.value()
        gap, value = self._gap_here()
        if self.state.pair is None and gap <= self._tol * abs(value):
            self._descend_exactly()
            gap, value = self._gap_here()
            if self._look.paired and gap > self._tol * abs(value):  # float32 said that it would do
                self._fails()
                gap, value = self._gap_here()
        return gap, value

    def descend(self, near: Vector | None = None) -> None:
        """The slopes of the columns kept, by the copy; or those of all by the data."""
        self.now(pair=None)
        if self.exact:
            self._all_slopes()
        else:
            self._descend_by_columns()

    def _descend_by_columns(self) -> None:
        """`descent` of the columns kept, or of all."""
        raise NotImplementedError

    def _all_slopes(self) -> None:
        """`descent` by a pass over the data."""
        self.kept = None
        self.cost += 0.5
        self.now(descent=self.losses.descent(self.at.slope), pair=None)

    def _descend_exactly(self) -> None:
        """All slopes in float64, of a dual point that is feasible unless other columns violate."""
        SparseRun.descend(self)
        self.kept = None

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: everything anew in float64, maybe from now on.

        Where it was that already, rounding is between the two gaps, and it aims lower.
        """
        if self.begun:
            self._tol *= 0.5 if self.exact else 1.0
            self._fails(self.theta == 1)

    def _fails(self, counts: bool = True) -> None:
        """Everything in float64; all slopes from now on, if that was needed before."""
        self._failed += counts
        self.exact |= self._failed >= self.tuning.failures
        self._anew()

    def _anew(self) -> None:
        """Predictions and all slopes from w alone."""
        self.now(seen=self.losses.at(super().predict()), fresh=True)
        if self.problem.intercept:
            self.settle()
        self._all_slopes()

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        W = self._choose()
        moved = self._step_on(W, value)
        if self.theta > 1:
            self.theta = self.fallen(self.theta)
            near = self.tuning.near * self.theta
            self.kept = self._near(near * self.by_column.a) if self.theta > 1 else None
            self.descend()
            return True
        if moved:
            self._shrink(self._worst(W))
            if self.exact:
                self._anew()
            else:
                self.descend()
        elif self.kept is not None:
            self.kept = None
            self.descend()
            return True
        return moved

    def _choose(self) -> Index:
        """What may move: columns, or entries of W with K outputs."""
        raise NotImplementedError

    def _step_on(self, W: Index, value: float) -> bool:
        """A step on what may move, if P falls."""
        raise NotImplementedError

    def _near(self, bound: Vector) -> Index:
        """The columns of the support, and those whose slope was above the bound."""
        raise NotImplementedError

    def _known(self, columns: Index) -> Index:
        """Those of some columns whose slopes are taken: the support is always in them."""
        if self.kept is None:
            return columns
        return np.intersect1d(columns, self.kept, assume_unique=True)

    def _worst(self, W: Index) -> float:
        """The largest violation of what may move."""
        raise NotImplementedError

    def _shrink(self, worst: float) -> None:
        """Leave out columns that are further from moving than any that moves violates."""
        penalty = self.by_column
        if self.kept is None and worst < 0.5 * penalty.least and not penalty.bounded:
            self.kept = self._near(penalty.a - worst)

    @property
    def _more_sweeps(self) -> int:
        """After the first one."""
        return self.tuning.more_sweeps

    def _sweep(self, model: Any, value: float) -> tuple[float, float, bool]:
        """Sweeps: the violation left, that which would do, and whether it is still much."""
        first = worst = model.sweep()
        needed = self._needed(value, model.v)
        exact = self.losses.constant
        enough = max(self.tuning.settled * first, needed) if exact else FORCED * first
        for _ in range(self._more_sweeps):
            if worst <= enough:
                break
            worst = model.sweep()
        return worst, needed, worst > (needed if exact else enough)

    def _needed(self, value: float, v: Vector) -> float:
        """The violation that is small enough for the gap that is asked for: see `wanted`."""
        share = self._tol * ENOUGH[not (self.losses.constant and not self.penalty.ridged)]
        least, size = share * abs(value), float(np.abs(v).sum())
        fine: float = self.penalty.least * math.sqrt(share)
        return min(fine, least / size) if size > 0 else fine

    def _steer(self, taken: float, size: int) -> None:
        """How long conjugate gradients are, and how far a step may go, after this one."""
        tuning = self.tuning
        if self.theta == 1:
            stable = taken == 1 and abs(size - self.pace.size) <= tuning.stable[1] * size
            self.pace.steer(size, stable, MOST_GRADIENTS[1], tuning.gradients[1])
        self._steer_trust(taken)

    def _steer_trust(self, taken: float) -> None:
        """How far a step may go, after one of which so much was taken."""
        low, high = self.tuning.trusts
        trust = self.pace.trust
        self.pace.trust = min(high, 2 * trust) if taken == 1 else max(low, 0.5 * trust)
