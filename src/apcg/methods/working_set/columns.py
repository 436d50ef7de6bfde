"""Rounds on sparse columns: for sparse data with many columns.

The columns are a copy in float32, half as many bytes to read. That moves the minimiser by a few
parts in 1e7, and nothing else: the gap is always that of the data as it is given. Where that is too
coarse they are float64.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._validation import Index, Vector
from ...data.linear_map import Sparse
from ...data.packed import Packed
from ...erm import ERM
from ...points import Certificate, Start
from ..base import Target
from .face import ColumnModel
from .penalty import ScaledPenalty
from .picked import PickedRun
from .run import SparseRun
from .support import Faces
from .tuning import Tuning

_NONE = np.empty(0)


class ColumnsRun(SparseRun):
    """A round: a model on the columns that may move, sweeps, conjugate gradients, a step.

    kept  the columns whose slopes are taken; None for all. The others are far from moving
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: Tuning) -> None:
        super().__init__(problem, at, target, tuning)
        assert isinstance(problem.samples, Sparse)
        self._samples = problem.samples
        self._wide = target.tol < tuning.narrow
        self._failed = 0
        self.kept: NDArray[np.int64] | None = None
        self._most, self._support = tuning.gradients[not self.losses.constant], 0
        self._trust = tuning.trust
        self._model: _Fixed | None = None
        self._checked = False
        self._faces = Faces(self._samples, tuning, intercept=problem.intercept)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """With the slopes of columns that may enter by the strong rule only."""
        if self.losses.constant and np.count_nonzero(self.w) <= self.tuning.few_picked:
            return PickedRun.after(self, problem, target)
        before = self.penalty
        super().turn(problem, target)
        self._most = self.tuning.gradients[not self.losses.constant]
        self.kept = None
        if not self.penalty.bounded:
            self.kept = self._near(np.maximum(2 * self.penalty.a - before.a, 0.0))
        return self

    @property
    def _packed(self) -> Packed:
        return self._samples.wide if self._wide else self._samples.narrow

    @property
    def slack(self) -> float:  # type: ignore[override]
        """What float32 may do to a slope."""
        return SparseRun.slack if self._wide else 1e-7

    @property
    def falls(self) -> float:
        return self.tuning.stage[0]

    def predict(self) -> Vector:
        """X w + b by the columns of the support."""
        S, z = np.flatnonzero(self.w), np.full(self.problem.n_samples, self.b)
        if S.size:
            self._packed.add(S, self.w[S], z)
        return z

    def descend(self) -> None:
        """The slopes of the columns kept."""
        if self.slope.size == 0:
            self.slope = np.zeros(self.problem.d)
        self._pair = None
        if not self.w.any():  # at the start: a path may never need the columns
            super().descend()
            return
        self._packed.products(-self.at.slope, self.slope, self.kept)
        d = self.problem.d
        self.cost += 0.5 * (1 if self.kept is None else self.kept.size / d)

    def gap(self) -> tuple[float, float]:
        gap, value = self._gap_at(self.theta)
        if self.theta == 1 and self._pair is None and gap <= self._tol * abs(value):
            self._descend_exactly()
            gap, value = self._gap_at(self.theta)
            if self._paired and gap > self._tol * abs(value):  # float32 said that it would do
                self._failed += 1
                self._anew()
                gap, value = self._gap_at(self.theta)
        return gap, value

    def _descend_exactly(self) -> None:
        """All slopes in float64, of a dual point that is feasible unless other columns violate."""
        p, x, s, penalty = self.problem, self.losses.dual_of(self.at.slope), 1.0, self.penalty
        if penalty.bounded or penalty.a.min() == 0:
            self.kept = None
            self.descend()
            return
        if not penalty.ridged:
            near = self.slope if self.kept is None else self.slope[self.kept]
            on = penalty if self.kept is None else penalty.on(self.kept)
            s = 1 / max(1.0, on.most(near) * (1 + self.slack))
            x *= s
        v = p._combine(x)
        self.kept, self.slope, self._pair = None, v * (p.alpha / s), (x, v)
        self.cost += 0.5

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: everything anew in float64, maybe the columns too."""
        if self.seen_at is None:
            return
        self._failed += self.theta == 1
        self._anew()

    def _anew(self) -> None:
        """Everything in float64; from now on the columns too, if that was needed before."""
        if self._failed >= self.tuning.failures and not self._wide:
            self._wide, self._model = True, None
        self.kept = None
        self.arrive(super().predict())
        self.slope = -self._samples.dot(self.at.slope)

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        penalty = self.penalty.times(self.theta)
        W = self._choose(penalty)
        moved = (
            self._squared(W, penalty, value)
            if self.losses.constant
            else self._newton(W, penalty, value)
        )
        if self.theta > 1:
            self.theta = self.fallen(self.theta)
            near = self.tuning.near * self.theta
            self.kept = self._near(near * self.penalty.a) if self.theta > 1 else None
            self.descend()
            return True
        if moved:
            self._shrink()
            self.descend()
        elif self.kept is not None:
            self.kept = None
            self.descend()
            return True
        return moved

    def _choose(self, penalty: ScaledPenalty) -> Index:
        """The columns that may move."""
        if penalty.bounded:
            return np.flatnonzero((self.w != 0) | (penalty.violations(self.w, self.slope) > 0))
        return self._near(self.tuning.entering * penalty.a)

    def _near(self, bound: Vector) -> Index:
        """The support, and the columns whose slope was above the bound."""
        return np.flatnonzero((np.abs(self.slope) > bound) | (self.w != 0))

    def _shrink(self) -> None:
        """Leave out columns that are further from moving than any that moves violates."""
        worst = float(self.penalty.violations(self.w, self.slope).max())
        if self.kept is None and worst < 0.5 * self.penalty.least and not self.penalty.bounded:
            self.kept = self._near(self.penalty.a - worst)

    # ---- the squared loss -----------------------------------------------------------------------

    def _squared(self, W: Index, penalty: ScaledPenalty, value: float) -> bool:
        """P itself on the columns W."""
        if self._model is None:
            self._model = _Fixed(self, self._packed)
        fixed, tuning, p = self._model, self.tuning, self.problem
        model = fixed.on(W, self.w[W], self.at.z, penalty)
        before = model.r.copy()
        first = worst = model.sweep()
        needed = self._needed(value, model.v)
        for _ in range(self._more_sweeps):
            if worst <= max(tuning.settled * first, needed):
                break
            worst = model.sweep()
        if self.theta == 1 and worst > needed:
            size, cut = self._face(W, model, p.weights, p.n * penalty.b, worst, needed)
            stable = size == self._support and cut <= tuning.stable[0] * size
            self._support = size
            most = min(2 * self._most, tuning.most_gradients[0])
            self._most = most if stable else tuning.gradients[0]
        self.cost += model.spent / (2 * max(self._samples.nnz, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            way = (before - model.r) / fixed.root
        if self.problem.weights.size > 1:
            way[self.problem.weights == 0] = 0.0
        return self._go(W, model.v, way, fixed.intercept(W, model.v))

    def _face(
        self, W: Index, model: ColumnModel, bend: Vector, b: Vector, worst: float, needed: float
    ) -> tuple[int, int]:
        """Conjugate gradients on the support, in the way that is predicted to be the fastest."""
        tuning, faces, most, share = self.tuning, self._faces, self._most, self.tuning.residual
        digits = math.log(max(worst / needed, 1.0)) if needed > 0 else math.inf
        turn = faces.turn(W, model.support, self._likely, bend, b, most, digits)
        if faces.factor is not None:
            most, share = tuning.factored
        found = model.face(most, share, needed, turn)
        faces.learn(model.done, most, model.left)
        return found

    @property
    def _more_sweeps(self) -> int:
        """After the first one; with a factor a step on the support is worth more."""
        return 0 if self._faces.factor is not None else self.tuning.more_sweeps

    def _likely(self) -> Index:
        """The columns that may be in the support some time: those next to it."""
        slack = np.where(self.w != 0, np.inf, np.abs(self.slope) - self.penalty.a)
        count = int(np.count_nonzero(self.w) * (1 + self.tuning.factor_room))
        return np.argpartition(-slack, min(count, slack.size - 1))[:count]

    def _needed(self, value: float, v: Vector) -> float:
        """The violation that is small enough for the gap that is asked for: see `wanted`."""
        share, n = self.tuning.enough * self._tol, self.problem.n
        least, size = n * share * abs(value), float(np.abs(v).sum())
        fine = n * self.penalty.least * math.sqrt(share)
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
        tuning, bend = self.tuning, self.bend()
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
            far = (self._trust if self.problem.loss.margin else np.inf) / packed.most[W]
        on = penalty.on(W)
        on = ScaledPenalty(on.a, on.b, np.maximum(on.lower, v - far), np.minimum(on.upper, v + far))
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.where(root > 0, -self.at.slope / root, 0.0)
        model = ColumnModel(scaled, np.arange(W.size), squares, v.copy(), r, on, mean, e)
        first = worst = model.sweep()
        for _ in range(self._more_sweeps):
            if worst <= tuning.forced * first:
                break
            worst = model.sweep()
        if self.theta == 1 and worst > tuning.forced * first:
            self._face(
                W, model, bend, penalty.b, worst, self._needed(value, model.v) / self.problem.n
            )
        self.cost += (model.spent + scaled.start[-1]) / (2 * max(self._samples.nnz, 1))
        step = model.v - v
        if not step.any():
            return self.lifts()
        way = np.zeros(self.problem.n_samples)
        packed.add(W, step, way)
        way_b = -float(np.dot(mean, step)) / total if mean.size else 0.0
        taken = self.move(W, model.v, way + way_b, way_b)
        if self.theta == 1:
            size = int(np.count_nonzero(model.v))
            stable = taken == 1 and abs(size - self._support) <= tuning.stable[1] * size
            self._support = size
            most = min(2 * self._most, tuning.most_gradients[1])
            self._most = most if stable else tuning.gradients[1]
        low, high = tuning.trusts
        self._trust = min(high, 2 * self._trust) if taken == 1 else max(low, 0.5 * self._trust)
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
            self.mean = np.zeros(d)
            self._packed.products(self.e, self.mean)
            self._squares = _centred(self._squares, self.mean)
        self._total = math.sqrt(p.n)

    def on(self, W: Index, w: Vector, z: Vector, penalty: ScaledPenalty) -> ColumnModel:
        """The model on some columns: n times P, less what does not depend on them."""
        p, n = self._problem, float(self._problem.n)
        on = penalty.on(W)
        on = ScaledPenalty(n * on.a, n * on.b, on.lower, on.upper)
        r = self.root * (p.y - z)
        mean = self.mean[W] if self.mean.size else _NONE
        return ColumnModel(self._packed, W, self._squares[W], w.copy(), r, on, mean, self.e)

    def intercept(self, W: Index, v: Vector) -> Vector:
        """The means of the columns, weighted: what b changes by is minus their product with it."""
        return self.mean[W] / self._total if self.mean.size else _NONE
