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

#: how much of the gap that is asked for is left to a model, whose violation scales the dual point:
#: squared loss with L1, others. With 0.3 for the first rcv1 at /1000 took 14 of 109 iterations
#: more; with 0.8 for others a run stayed just above tol for 9 rounds, and with L2, where the gap is
#: of second order too, P was within 1e-6 at a tighter tol only
ENOUGH = (0.8, 0.3)
#: the columns gathered by rows are those whose slope is above this part of a_j: with 3 % more than
#: the support generated text was gathered anew in three rounds
NEXT_TO = 0.9

_NONE = np.empty(0)


class ColumnsRun(PackedRun):
    """A model on the columns that may move: P itself for the squared loss."""

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self._model: _Fixed | None = None
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
        step = self._squared if self.losses.constant else self._newton
        return step(W, self.penalty.times(self.theta), value)

    # ---- the squared loss -----------------------------------------------------------------------

    def _squared(self, W: Index, penalty: ScaledPenalty, value: float) -> bool:
        """P itself on the columns W."""
        if self._model is None:
            self._model = _Fixed(self, self._packed)
        fixed, tuning = self._model, self.tuning
        model = fixed.on(W, self.w[W], self.descent[W], penalty)
        first = worst = model.sweep()
        needed = self._needed(value, model.v)
        for _ in range(self._more_sweeps):
            if worst <= max(tuning.settled * first, needed):
                break
            worst = model.sweep()
        if self.theta == 1 and worst > needed:
            size, cut = self._face(W, model, self.problem.weights, worst, needed)
            stable = size == self.pace.size and cut <= tuning.stable[0] * size
            self.pace.steer(size, stable, MOST_GRADIENTS[0], tuning.gradients[0])
        self.cost += model.spent / (2 * max(self._samples.nnz, 1))
        return self._go(W, model.v, fixed.way(model.u), fixed.intercept(W, model.v))

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

    def _needed(self, value: float, v: Vector) -> float:
        """The violation that is small enough for the gap that is asked for: see `wanted`."""
        exact, n = self.losses.constant and not self.penalty.ridged, self.problem.n
        share = self._tol * ENOUGH[not exact]
        least, size = n * share * abs(value), float(np.abs(v).sum())
        fine: float = n * self.penalty.least * math.sqrt(share)
        return min(fine, least / size) if size > 0 else fine

    def _go(self, W: Index, v: Vector, way: Vector, mean: Vector) -> bool:
        step = v - self.w[W]
        if not step.any():
            return False
        way_b = -float(np.dot(mean, step)) if mean.size else 0.0
        return self.move(W, v, way, way_b) > 0

    # ---- other losses ---------------------------------------------------------------------------

    def _newton(self, W: Index, penalty: ScaledPenalty, value: float) -> bool:
        """A step of Newton's method on the columns W, inside a region of trust."""
        bend = self.bend()
        root = np.sqrt(bend)
        packed = self._packed
        scaled = packed.scaled(W, root)
        squares, mean, e = scaled.squares, _NONE, _NONE
        if self.problem.intercept:
            total = math.sqrt(float(bend.sum()))
            e, mean = root / total, scaled.most / total
            squares = _centred(squares, mean)
        v = self.w[W]
        with np.errstate(divide="ignore"):
            far = (self.pace.trust if self.problem.loss.margin else np.inf) / packed.most[W]
        on = penalty.on(W)
        on = ScaledPenalty(on.a, on.b, np.maximum(on.lower, v - far), np.minimum(on.upper, v + far))
        model = ColumnModel(
            scaled, np.arange(W.size), v, self.descent[W], on, squares, root.size, mean, e
        )
        worst, high = self._sweep(model)
        if self.theta == 1 and high:
            needed = self._needed(value, model.v) / self.problem.n
            self._face(W, model, bend, worst, needed)
        self.cost += (model.spent + scaled.start[-1]) / (2 * max(self._samples.nnz, 1))
        step = model.v - v
        if not step.any():
            return self.lifts()
        way = np.zeros(self.problem.n_samples)
        packed.add(W, step, way)
        way_b = -float(np.dot(mean, step)) / total if mean.size else 0.0
        taken = self.move(W, model.v, way + way_b, way_b)
        self._steer(taken, int(np.count_nonzero(model.v)))
        return taken > 0 or self.lifts()


def _centred(squares: Vector, mean: Vector) -> Vector:
    """The squares of columns less their means; 0 for a column that is constant up to rounding."""
    made = squares - mean * mean
    return np.where(made > 1e-7 * squares, made, 0.0)


class _Fixed:
    """The columns of the squared loss, which do not change: X, or X times the roots of weights."""

    def __init__(self, run: ColumnsRun, packed: Packed) -> None:
        p = run.problem
        self._problem = p
        n, d = p.n_samples, p.d
        self.mean = self.e = _NONE
        self.root, self._packed = np.sqrt(p.weights), packed
        if p.weights.size > 1:
            self._packed = packed.scaled(np.arange(d), self.root)
        self._squares = self._packed.squares
        if p.intercept:
            total = math.sqrt(p.n)
            self.e = np.broadcast_to(self.root / total, n).copy()
            self.mean = self._packed.dots(self.e)
            self._squares = _centred(self._squares, self.mean)
        self._total = math.sqrt(p.n)

    def on(self, W: Index, w: Vector, descent: Vector, penalty: ScaledPenalty) -> ColumnModel:
        """The model on some columns: n times P, less what does not depend on them."""
        p, n = self._problem, float(self._problem.n)
        on = penalty.on(W)
        on = ScaledPenalty(n * on.a, n * on.b, on.lower, on.upper)
        mean = self.mean[W] if self.mean.size else _NONE
        return ColumnModel(
            self._packed, W, w, n * descent, on, self._squares[W], p.n_samples, mean, self.e
        )

    def way(self, u: Vector) -> Vector:
        """What the predictions change by."""
        if self.root.size == 1:
            return u if self.root[0] == 1 else u / self.root
        return np.where(self.root > 0, u / np.where(self.root > 0, self.root, 1.0), 0.0)

    def intercept(self, W: Index, v: Vector) -> Vector:
        """The means of the columns, weighted: what b changes by is minus their product with it."""
        return self.mean[W] / self._total if self.mean.size else _NONE
