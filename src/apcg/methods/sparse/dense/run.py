"""Dense data with no fewer rows than columns: sweeps over columns first, Gram matrices then."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...._base.validation import Index, Mask, Matrix, Vector
from ....certify.points import Start
from ....problems.erm import ERM
from ...base import Target
from ..run import SparseRun
from ..tuning import SetTuning
from .columns_float32 import ColumnsFloat32

#: a column is near to moving if its slope is above this part of a_j
ACTIVE = 0.9
#: two Gram matrices are predicted where sweeps leave more than the first part of P, else one; and
#: sweeps go on above the second part if they bring a digit for less than a Gram matrix. With two
#: all along, 20,000 x 100 (logistic, /1000) to 1e-3 took 1.7 times as long
REST = (1e-4, 1e-3)


@dataclass(eq=False)
class Float32:
    """What a run does in float32.

    on      whether it sweeps
    fell    by how much P fell in the round before the last sweeps, P there, and theta
    grams   how many Gram matrices may still be made
    last    whether the last Gram matrix was one of them
    columns the columns, once they are needed
    """

    on: bool
    grams: int
    fell: tuple[float, float, float] = (math.inf, math.inf, 0.0)
    last: bool = False
    columns: ColumnsFloat32 | None = None


class DenseRun(SparseRun):
    """A round: sweeps while these are predicted to be faster, else one by a Gram matrix.

    Where sweeps are not for the data, all rounds are by Gram matrices.
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self.float32 = Float32(ColumnsFloat32.fit(problem, tuning), tuning.float32_grams)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        on, t, columns = ColumnsFloat32.fit(problem, self.tuning), self.tuning, self.float32.columns
        self.float32 = Float32(on, t.float32_grams, last=self.float32.last, columns=columns)
        return super().turn(problem, target)

    def round(self, gap: float, value: float) -> bool:
        sweeps = self.float32.on and self._sweeps_pay(gap, value) and self._sweep(value)
        self.float32.on = sweeps
        return sweeps or self.matrix_round(gap, value)

    def matrix_round(self, gap: float, value: float) -> bool:
        """A round by a Gram matrix."""
        raise NotImplementedError

    def released(self) -> None:
        """w was changed by sweeps: what is kept of another w is of no use."""

    def moving(self) -> Index:
        """The columns that are near to moving, or all where there are bounds."""
        penalty = self.penalty.times(self.theta)
        if penalty.bounded:
            return np.arange(self.w.size)
        near: Mask = (self.w != 0) | (np.abs(self.descent) > ACTIVE * penalty.a)
        return np.flatnonzero(near)

    def _sweeps_pay(self, gap: float, value: float) -> bool:
        """Whether sweeps to the end, or some more of them, take no longer than Gram matrices.

        Every round of sweeps brings what is left of P to the same part, and the gap to about the
        root of that.
        """
        fell, last, theta = self.float32.fell
        now = last - value if theta == self.theta else math.inf
        self.float32.fell = (now, value, self.theta)
        if not 0 < now < fell < math.inf:
            return now > 0
        p, tuning, rate = self.problem, self.tuning, now / fell
        columns, fall = self.moving().size, -math.log(rate)
        a_sweep, a_pass, a_product = tuning.float32_costs
        each = tuning.float32_sweeps * a_sweep[self.losses.constant] * columns + a_pass * p.d
        gram = a_product * columns**2
        rest = now * rate / (1 - rate) / abs(value) if value else math.inf
        least, left = self._tol * abs(value), math.inf
        if least > 0 and gap < math.inf:
            left = math.ceil(2 * math.log(max(gap / least, 1.0)) / fall)
        exact = self.losses.constant
        if left * each <= (1 if exact or rest <= REST[0] else 2) * gram:
            return True
        # far out a Gram matrix brings a digit or so, as curvatures change
        far = rest > REST[1] and not exact
        return far and each <= fall / math.log(10) * gram

    def _sweep(self, value: float) -> bool:
        """Sweeps over the columns that are near to moving; False, and nothing new, if P rises."""
        own = self.float32
        if own.columns is None:
            own.columns = ColumnsFloat32(self.problem)
            self.cost += 1
        W, w, sweeps = self.moving(), self.w.copy(), self.tuning.float32_sweeps
        penalty = self.penalty.times(self.theta)
        before = self.state
        b = own.columns.sweep(W, w, self.b, self.at, penalty, self.floor, sweeps)
        self.cost += sweeps * W.size / w.size
        if not math.isfinite(float(w @ w) + b):
            return False
        self.now(w=w, b=b)
        self.released()
        self.arrive(self.predict())
        self.now(fresh=True)
        if self.value() < value:
            return True
        self.state = before
        return False

    def narrow_gram(self, W: Index) -> tuple[Matrix, Vector | None] | None:
        """The Gram matrix of the columns W in float32; None if that is not for them any more."""
        own = self.float32
        own.last = False
        if own.columns is None or own.grams == 0 or W.size == 0:
            return None
        bend = np.broadcast_to(self.bend(), self.problem.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            G, mean = own.columns.gram(W, bend, self.problem.intercept)
        if not np.isfinite(G).all():
            return None
        own.grams, own.last = own.grams - 1, True
        self.cost += 0.25 * W.size**2 / self.problem.d
        return G, mean

    def widens(self) -> bool:
        """Nothing moved: whether that was by a Gram matrix in float32; the next are float64."""
        own = self.float32
        was, own.last = own.last, False
        own.grams = 0 if was else own.grams
        return was
