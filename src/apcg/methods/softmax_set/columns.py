"""Rounds on sparse columns: for sparse data with many columns.

A round is a prox-Newton step on the entries that may move. Slopes of a column are taken for all
classes at once, and with them the largest, so that nothing else runs over all d K of them. As in
`working_set.columns`, the columns are a copy in float32 while that is good enough, and the gap is
always that of the data as it is given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._kernels import softmax_columns as kernels
from ..._validation import Index, Vector
from ...data.packed import Packed
from ...erm import ERM
from ...points import Certificate, Start
from ..base import Budget, Target
from ..working_set.penalty import ScaledPenalty
from ..working_set.run import SparseRun
from ..working_set.tuning import Tuning
from .entries import MATRIX, ROOM
from .face import EntryModel
from .run import ClassRun


class ClassColumnsRun(ClassRun):
    """A round: a model on the entries that may move, sweeps, conjugate gradients, a step.

    support  the entries of W that are not zero
    top      max_k |slope_jk| of each column, when it was last computed
    kept     the columns whose slopes are taken; None for all. The others are far from moving
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: Tuning) -> None:
        super().__init__(problem, at, target, tuning)
        self._samples: Any = problem.samples
        self.narrow, self._failed = target.tol >= tuning.narrow, 0
        self.support = np.flatnonzero(self.w)
        self._slopes, self.top = np.zeros((problem.d, problem.K)), np.zeros(problem.d)
        self.kept: Index | None = None
        self._most, self._size, self._trust = tuning.gradients[1], 0, tuning.trust

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """With the slopes of columns that may enter by the strong rule only."""
        before = self._columns.a
        super().turn(problem, target)
        self._most = self.tuning.gradients[1]
        self.kept = self._near(np.maximum(2 * self._columns.a - before, 0.0))
        return self

    def _penalise(self, problem: ERM) -> None:
        super()._penalise(problem)
        whole: Any = problem.g
        g, alpha = whole.each, problem.alpha
        #: that of a column, the same for all classes
        self._columns = ScaledPenalty(alpha * g.a, alpha * g.b, g.lower, g.upper)

    @property
    def _packed(self) -> Packed:
        packed: Packed = self._samples.narrow if self.narrow else self._samples.wide
        return packed

    @property
    def slack(self) -> float:  # type: ignore[override]
        """What float32 may do to a slope."""
        return 1e-7 if self.narrow else SparseRun.slack

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        zero = self.support.size == 0
        self.arrive(self.begin_at() if zero else self.predict())
        if self.theta > 1:
            self.theta = self.fallen(self._columns.most(self.top)) if zero else 1.0

    @property
    def falls(self) -> float:
        return self.tuning.stage[0]

    def predict(self) -> Vector:
        """X W + b by the columns of the support."""
        z, packed = np.repeat(self.b[:, None], self.problem.n_samples, axis=1), self._packed
        ids, classes = np.divmod(self.support, self.K)
        values = self.w[self.support]
        kernels.add(packed.entries, packed.wide, packed.start, ids, classes, values, z)
        return z.T.reshape(-1)

    def descend(self) -> None:
        """The slopes of the columns kept."""
        self._pair, packed, d = None, self._packed, self.problem.d
        some = np.arange(d) if self.kept is None else self.kept
        kernels.slopes(
            packed.entries, packed.wide, packed.start, some, -self.rows(self.at.slope),
            self._slopes, self.top,
        )  # fmt: skip
        self.cost += 0.5 * some.size / d

    # ---- the gap --------------------------------------------------------------------------------

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

    def _gap_at(self, theta: float) -> tuple[float, float]:
        penalty, losses, S = self._columns.times(theta), self.losses, self.support
        value = self.at.value + self.penalty.times(theta).on(S).value(self.w[S])
        self._paired = False
        if self._pair is not None and theta == 1 and self.problem.g.excess(self._pair[1]) <= 1:
            self._paired = True
            over = self._over(penalty) if penalty.ridged else 0.0
            return value - losses.dual_value(self._pair[0]) + over, value
        x = losses.dual_of(self.at.slope)
        s = 1 / max(1.0, penalty.most(self.top) * (1 + self.slack))
        best, self._dual = losses.dual_value(s * x), s * x
        if penalty.ridged:
            whole = losses.dual_value(x) - self._over(penalty)
            if whole > best:
                best, self._dual = whole, x
        return value - best, value

    def _over(self, penalty: ScaledPenalty) -> float:
        """The conjugate of the penalty at the slopes."""
        J = np.flatnonzero(self.top > penalty.a)
        on = penalty.on(J)
        a, b = (np.broadcast_to(part, J.shape)[:, None] for part in (on.a, on.b))
        over = np.maximum(np.abs(self._slopes[J]) - a, 0.0)
        return 0.5 * float(np.sum(over * over / b))

    def _descend_exactly(self) -> None:
        """All slopes in float64, of a dual point that is feasible unless other columns violate."""
        p, x, s = self.problem, self.losses.dual_of(self.at.slope), 1.0
        if not self._columns.ridged:
            s = 1 / max(1.0, self._columns.most(self.top) * (1 + self.slack))
            x *= s
        v = np.ascontiguousarray(p._combine(self.rows(x)))
        self.kept, self._pair = None, (x, v)
        np.multiply(v, p.alpha / s, out=self._slopes)
        self.top = np.maximum(self._slopes.max(axis=1), -self._slopes.min(axis=1))
        self.cost += 0.5

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: everything anew in float64, maybe the columns too."""
        if self.seen_at is not None:
            self._failed += self.theta == 1
            self._anew()

    def _anew(self) -> None:
        """Everything in float64; from now on the columns too, if that was needed before."""
        if self._failed >= self.tuning.failures and self.narrow:
            self.widen()
        self.kept = None
        self.arrive(super().predict())

    # ---- how long it goes on --------------------------------------------------------------------

    def _idles(self, gap: float, value: float) -> bool:
        """Also if it has spent what another method would take, and that is there to go on."""
        long = not self.alone and self.cost > self.tuning.columns_passes
        return (long and self.cost > self.price()) or super()._idles(gap, value)

    def price(self) -> float:
        """What sets by their matrices would cost, in passes; infinite if these are too large."""
        p, size, tuning = self.problem, self.support.size, self.tuning
        columns = np.unique(self.support // self.K).size
        if size > tuning.widest or p.n_samples * columns > ROOM:
            return math.inf
        nnz: int = max(self._samples.nnz, 1)
        return tuning.matrices * MATRIX * size**2 * p.n_samples / (nnz * self.K)

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        W = self._choose()
        moved = self._newton(W, gap, value)
        if self.theta > 1:
            self.theta = self.fallen(self.theta)
            near = self.tuning.near * self.theta
            self.kept = self._near(near * self._columns.a) if self.theta > 1 else None
            self.descend()
            return True
        if moved:
            self._shrink(W)
            self.descend()
        elif self.kept is not None:
            self.kept = None
            self.descend()
            return True
        return moved

    def _near(self, bound: Vector) -> Index:
        """The columns of the support, and those with a slope above the bound."""
        near = self.top > bound
        near[self.support // self.K] = True
        return np.flatnonzero(near)

    def _choose(self) -> Index:
        """The entries that may move."""
        penalty = self._columns.times(self.theta)
        J = self._near(self.tuning.entering * penalty.a)
        bound = np.broadcast_to(self.tuning.entering * penalty.on(J).a, J.shape)
        may = (np.abs(self._slopes[J]) > bound[:, None]) | (self.rows(self.w)[J] != 0)
        k, at = np.nonzero(may.T)  # by class
        return np.asarray(J[at] * self.K + k)

    def _shrink(self, W: Index) -> None:
        """Leave out columns that are further from moving than any that moves violates."""
        ids, k = np.divmod(W, self.K)
        on = self._columns.on(ids)
        worst = float(on.violations(self.w[W], self._slopes[ids, k]).max(initial=0.0))
        if self.kept is None and worst < 0.5 * self._columns.least:
            self.kept = self._near(self._columns.a - worst)

    def _newton(self, W: Index, gap: float, value: float) -> bool:
        """A step of Newton's method on the entries W, inside a region of trust."""
        if not W.size:
            return False
        tuning, packed, w = self.tuning, self._packed, self.w[W]
        on = self.penalty.times(self.theta).on(W)
        with np.errstate(divide="ignore"):
            far = self._trust / packed.most[W // self.K]
        near = ScaledPenalty(on.a, on.b, w - far, w + far)
        model = EntryModel(
            packed, W, w, self.at, self.losses, self.least_bend, near, self.problem.intercept
        )
        first = worst = model.sweep()
        for _ in range(tuning.more_sweeps):
            if worst <= tuning.forced * first:
                break
            worst = model.sweep()
        if self.theta == 1 and worst > tuning.forced * first:
            model.face(self._most, tuning.residual)
        self.cost += model.spent / (2 * max(self._samples.nnz * self.K, 1))
        if not (model.v != w).any():
            return self.lifts()
        taken = self.move(W, model.v, model.way().T.reshape(-1), model.b, on)
        if taken > 0:
            self.support = W[self.w[W] != 0]
        self._steer(taken, int(np.count_nonzero(model.v)))
        return taken > 0 or self.lifts()

    def _steer(self, taken: float, size: int) -> None:
        """How long conjugate gradients are, and how far a step may go, after this one."""
        tuning = self.tuning
        if self.theta == 1:
            stable = taken == 1 and abs(size - self._size) <= tuning.stable[1] * size
            self._size = size
            most = min(2 * self._most, tuning.most_gradients[1])
            self._most = most if stable else tuning.gradients[1]
        low, high = tuning.trusts
        self._trust = min(high, 2 * self._trust) if taken == 1 else max(low, 0.5 * self._trust)
