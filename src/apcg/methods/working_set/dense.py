"""Dense data, other losses than the squared: sweeps over columns first, Gram matrices then."""

from __future__ import annotations

import math
import os
import time

import numpy as np

from ..._validation import Index, Mask, Matrix, Vector
from ...data.linear_map import Dense
from ...erm import ERM
from ...losses import Logistic, Squared
from ...points import Start
from .. import costs
from ..base import Target
from .run import SparseRun
from .strips import Strips
from .tuning import Tuning

DEBUG = bool(os.environ.get("DBG"))
OFF = bool(os.environ.get("OFF"))
SW = {"tall": 2.0, "stage": 1, "n": 1.0, "m": 4}


class DenseRun(SparseRun):
    """A round: some sweeps, while these are predicted to be faster, or one by a Gram matrix."""

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: Tuning) -> None:
        super().__init__(problem, at, target, tuning)
        self.strips: Strips | None = None
        self._sweeping = not OFF and (
            isinstance(problem.samples, Dense) and (type(problem.loss) is Logistic or type(problem.loss) is Squared)
            and problem.n_samples >= SW['n'] * problem.d >= 20 * SW['n']
        )
        if self._sweeping and problem.n_samples >= 2 * problem.d or not SW['stage']:
            self.theta = 1.0
        self._swept, self.grams = (math.inf, math.inf, 0.0), 8

    def round(self, gap: float, value: float) -> bool:
        if DEBUG:
            print(f"    {time.process_time()*1e3:9.2f} gap {gap/value:.2e} P {value:.8f} theta {self.theta:.3g} sweeping {self._sweeping} nnz {np.count_nonzero(self.w)}")
        if self._sweeping and self._sweeps_pay(gap, value) and self._sweep(gap, value):
            return True
        self._sweeping = False
        return self.matrix_round(gap, value)

    def matrix_round(self, gap: float, value: float) -> bool:
        """A round by a Gram matrix."""
        raise NotImplementedError

    def _sweeps_pay(self, gap: float, value: float) -> bool:
        """Whether sweeps to the end, or some more, take no longer than Gram matrices instead.

        P comes down by the same part in every round of sweeps, and the gap by the root of that.
        """
        fell, last, theta = self._swept
        self._swept = (last - value, value, self.theta)
        if theta != self.theta or not math.isfinite(fell):
            return True
        rate = (last - value) / fell if fell > 0 else 1.0
        if rate >= 1:
            return bool(rate < math.inf and value < last)
        p, tuning = self.problem, self.tuning
        k = max(1, int(np.count_nonzero(self._near())))
        sweep = (0.15 if self.losses.constant else 0.3) * k * p.n_samples * 4 + 0.2 * p.n_samples * p.d
        gram = 0.0095 * k * k * p.n_samples
        fall = -math.log(rate)
        left = 2 * math.log(max(gap / (self._tol * abs(value)), 1.0)) / fall
        eps = (last - value) * rate / (1 - rate) / value
        if DEBUG:
            print(f"      rate {rate:.2g} eps {eps:.2g} left {left:.3g} sweeps {left*sweep*1e-6:.3g} ms sweep {sweep*1e-6:.3g} gram {gram*1e-6:.3g} ms k {k}")
        return left * sweep <= 2 * gram or (eps > 1e-3 and sweep <= fall / math.log(10) * gram)

    def _near(self) -> Mask:
        """The columns that are near to moving."""
        penalty = self.penalty.times(self.theta)
        if penalty.bounded:
            return np.full(self.w.size, True)
        return (self.w != 0) | (np.abs(self.slope) > self.tuning.active * penalty.a)

    def narrow_gram(self, W: Index) -> tuple[Matrix, Vector | None] | None:
        """The Gram matrix of the columns W in float32, unless that was done too often."""
        if self.strips is None or self.grams == 0:
            return None
        self.grams -= 1
        self.cost += 0.25 * W.size**2 / self.problem.d
        return self.strips.gram(W, self.bend(), self.problem.intercept)

    def _sweep(self, gap: float, value: float) -> bool:
        """Sweeps over the columns that are near to moving. False, and nothing has changed, if P rises."""
        if self.strips is None:
            self.strips = Strips(self.problem)
            self.cost += 1
        penalty, w, before = self.penalty.times(self.theta), self.w.copy(), (self.w, self.b, self.seen_at, self.slope)
        W = np.flatnonzero(self._near())
        b, done, cuts, worst = self.strips.sweep(W, w, self.b, self.at, penalty, self.floor, SW['m'], 0.0)
        if DEBUG:
            print(f"      sweeps {done} over {W.size} cuts {cuts} worst {worst:.2e}")
        self.cost += done * W.size / w.size
        self.w, self.b = w, b
        self.released()
        self.arrive(self.predict())
        if self.at.value + penalty.value(w) < value:
            return True
        self.w, self.b, self.seen_at, self.slope = before
        self._pair = None
        return False

    def released(self) -> None:
        """w has changed by sweeps."""
