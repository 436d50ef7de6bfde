"""Dense data with no fewer rows than columns: sweeps over columns first, Gram matrices then."""

from __future__ import annotations

import math

import numpy as np

from ...._base.validation import Index, Mask, Matrix, Vector
from ....certify.points import Start
from ....problems.erm import ERM
from ...base import Target
from ..run import SparseRun
from ..tuning import SetTuning
from .columns_float32 import Strips


class DenseRun(SparseRun):
    """A round: sweeps while these are predicted to be faster, else one by a Gram matrix.

    Where sweeps are not for the data, all rounds are by Gram matrices.
    """

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        self.strips: Strips | None = None
        #: how many Gram matrices may still be made in float32
        self.narrow_left = tuning.narrow_grams
        self.narrowed = False  # the last one was
        self.sweeping = Strips.fit(problem, tuning)
        self._swept = (math.inf, math.inf, 0.0)

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        self.sweeping = Strips.fit(problem, self.tuning)
        self._swept, self.narrow_left = (math.inf, math.inf, 0.0), self.tuning.narrow_grams
        return super().turn(problem, target)

    def round(self, gap: float, value: float) -> bool:
        self.sweeping = self.sweeping and self._sweeps_pay(gap, value) and self._sweep(value)
        return self.sweeping or self.matrix_round(gap, value)

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
        near: Mask = (self.w != 0) | (np.abs(self.slope) > self.tuning.active * penalty.a)
        return np.flatnonzero(near)

    def _sweeps_pay(self, gap: float, value: float) -> bool:
        """Whether sweeps to the end, or some more of them, take no longer than Gram matrices.

        Every round of sweeps brings what is left of P to the same part, and the gap to about the
        root of that.
        """
        fell, last, theta = self._swept
        now = last - value if theta == self.theta else math.inf
        self._swept = (now, value, self.theta)
        if not 0 < now < fell < math.inf:
            return now > 0
        p, tuning, rate = self.problem, self.tuning, now / fell
        columns, fall = self.moving().size, -math.log(rate)
        a_sweep, a_pass, a_product = tuning.strip_costs
        each = tuning.strip_sweeps * a_sweep[self.losses.constant] * columns + a_pass * p.d
        gram = a_product * columns**2
        rest = now * rate / (1 - rate) / abs(value) if value else math.inf
        least, left = self._tol * abs(value), math.inf
        if least > 0 and gap < math.inf:
            left = math.ceil(2 * math.log(max(gap / least, 1.0)) / fall)
        exact = self.losses.constant
        if left * each <= (1 if exact or rest <= tuning.strip_rest[0] else 2) * gram:
            return True
        # far out a Gram matrix brings a digit or so, as curvatures change
        far = rest > tuning.strip_rest[1] and not exact
        return far and each <= fall / math.log(10) * gram

    def _sweep(self, value: float) -> bool:
        """Sweeps over the columns that are near to moving; False, and nothing new, if P rises."""
        if self.strips is None:
            self.strips = Strips(self.problem)
            self.cost += 1
        W, w, sweeps = self.moving(), self.w.copy(), self.tuning.strip_sweeps
        penalty = self.penalty.times(self.theta)
        before = self.w, self.b, self.seen_at, self.slope, self._pair, self._fresh
        b = self.strips.sweep(W, w, self.b, self.at, penalty, self.floor, sweeps)
        self.cost += sweeps * W.size / w.size
        if not math.isfinite(float(w @ w) + b):
            return False
        self.w, self.b = w, b
        self.released()
        self.arrive(self.predict())
        self._fresh = True
        if self.at.value + penalty.value(w) < value:
            return True
        self.w, self.b, self.seen_at, self.slope, self._pair, self._fresh = before
        return False

    def narrow_gram(self, W: Index) -> tuple[Matrix, Vector | None] | None:
        """The Gram matrix of the columns W in float32; None if that is not for them any more."""
        self.narrowed = False
        if self.strips is None or self.narrow_left == 0 or W.size == 0:
            return None
        bend = np.broadcast_to(self.bend(), self.problem.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            G, mean = self.strips.gram(W, bend, self.problem.intercept)
        if not np.isfinite(G).all():
            return None
        self.narrow_left, self.narrowed = self.narrow_left - 1, True
        self.cost += 0.25 * W.size**2 / self.problem.d
        return G, mean

    def widens(self) -> bool:
        """Nothing moved: whether that was by a Gram matrix in float32; the next are float64."""
        was, self.narrowed = self.narrowed, False
        self.narrow_left = 0 if was else self.narrow_left
        return was
