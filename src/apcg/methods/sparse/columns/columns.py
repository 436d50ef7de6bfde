"""Rounds on sparse columns: for sparse data with many columns."""

from __future__ import annotations

import math

import numpy as np

from ...._base.validation import Index, Vector
from ....certify.points import Start
from ....data.columns import Packed
from ....problems.erm import ERM
from ...base import Target
from ..dense.chosen_columns import ChosenColumnsRun
from ..penalty import ScaledPenalty
from ..run import SparseRun
from ..tuning import SetTuning
from .packed import ENTERING, MOST_GRADIENTS, PackedRun
from .support_cg import ColumnModel
from .support_rows import Faces

#: the columns gathered by rows are those whose slope is above this part of a_j: with 3 % more than
#: the support generated text was gathered anew in three rounds
NEXT_TO = 0.9


class ColumnsRun(PackedRun):
    """A model on the columns that may move: P itself for the squared loss."""

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self._faces = Faces(self._samples, tuning)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """The squared loss with a small support goes on by Gram matrices of sets."""
        if self.losses.constant and np.count_nonzero(self.w) <= self.tuning.few_picked:
            return ChosenColumnsRun.after(self, problem, target)
        self._faces.begin()
        return super().turn(problem, target)

    def predict(self) -> Vector:
        """X w + b by the columns of the support."""
        S, z = np.flatnonzero(self.w), np.full(self.problem.n_samples, self.b)
        if S.size:
            self._packed.add(S, self.w[S], z)
        return z

    def _descend_by_columns(self) -> None:
        if not self.w.any():  # at the start: a path may never need the columns
            self._all_slopes()
            return
        kept, slope = self.kept, -self.at.slope
        if kept is None or not self.descent.size:
            descent, share = self._packed.dots(slope), 1.0
        else:
            descent, share = self.descent.copy(), kept.size / self.problem.d
            descent[kept] = self._packed.dots(slope, kept)
        self.now(descent=descent)
        self.cost += 0.5 * share

    def most_inside(self, near: Vector | None) -> float:
        descent, on = self.descent, self.penalty
        if self.kept is not None:
            descent, on = descent[self.kept], on.on(self.kept)
        return float(on.most(descent)) * (1 + self.slack)

    # ---- a round --------------------------------------------------------------------------------

    def _choose(self) -> Index:
        penalty = self.penalty.times(self.theta)
        if penalty.bounded:
            return np.flatnonzero((self.w != 0) | (penalty.violations(self.w, self.descent) > 0))
        return self._known(self._near(ENTERING * penalty.a))

    def _near(self, bound: Vector) -> Index:
        return np.flatnonzero((np.abs(self.descent) > bound) | (self.w != 0))

    def _worst(self, W: Index) -> float:
        return float(self.penalty.violations(self.w, self.descent).max())

    def _step_on(self, W: Index, value: float) -> bool:
        """A step on the columns W: of the squared loss, or of Newton's method with a model.

        A model holds inside a region of trust. That of the squared loss is P itself.
        """
        tuning, exact, w, p = self.tuning, self.losses.constant, self.w[W], self.problem
        bend, on = self.bend(), self.penalty.times(self.theta).on(W)
        bends = self._packed.bends(W, bend)
        if exact:
            bend = bend if p.weights.size > 1 else bend[:1]
        elif p.loss.margin:
            with np.errstate(divide="ignore"):
                far = self.pace.trust / self._packed.most[W]
            low, high = np.maximum(on.lower, w - far), np.minimum(on.upper, w + far)
            on = ScaledPenalty(on.a, on.b, low, high)
        model = ColumnModel(
            self._packed, W, w, self.descent[W], on, bend, p.n_samples, bends, centred=p.intercept
        )  # fmt: skip
        worst, needed, high = self._sweep(model, value)
        if self.theta == 1 and high:
            size, cut = self._face(W, model, bend, worst, needed)
            if exact:
                stable = size == self.pace.size and cut <= tuning.stable[0] * size
                self.pace.steer(size, stable, MOST_GRADIENTS[0], tuning.gradients[0])
        self.cost += (model.spent + model.cost.sum()) / (2 * max(self._samples.nnz, 1))
        if not (model.v != w).any():
            return self.lifts()
        taken = self.move(W, model.v, *model.way(), on)
        if exact:
            return taken > 0
        self._steer(taken, int(np.count_nonzero(model.v)))
        return taken > 0 or self.lifts()

    def _face(
        self, W: Index, model: ColumnModel, bend: Vector, worst: float, needed: float
    ) -> tuple[int, int]:
        """Conjugate gradients on the support, in the way that is predicted to be the fastest."""
        tuning, faces, most, share = self.tuning, self._faces, self.pace.most, self.tuning.residual
        digits = math.log(max(worst / needed, 1.0)) if needed > 0 else math.inf
        ridged = self.penalty.ridged  # then the gap is of second order, and half of them will do
        digits *= 0.5 if ridged else 1.0
        S = model.support
        turn = faces.turn(W, S, float(model.cost[S].sum()), self._next, bend, digits)
        if turn is not None:
            most = tuning.long_run
            if faces.settled and not ridged:
                share = tuning.rest[not self.losses.constant]
        found = model.face(most, share, needed, turn)
        faces.learn(model.done, model.left, found[1])
        return found

    @property
    def _more_sweeps(self) -> int:
        """After the first one: the better a step on the support, the fewer."""
        return self.tuning.late_sweeps if self._faces.ready else self.tuning.more_sweeps

    def _next(self, ids: Index) -> tuple[Index, Packed]:
        """These columns, and those that may be in the support some time: they are next to it."""
        some = np.union1d(ids, self._near(NEXT_TO * self.penalty.a))
        return some, self._packed
