"""The dual of ERM by sweeps over the rows: plain ones first, momentum where they would be many.

A plain sweep steps on each row by exact maximisation of D (Algorithm 5 of the paper without its
momentum; `_kernels/dual` has the steps, for one output and for K):

    a_i <- argmax_a D(.., a, ..),    w += s_i (change) y_i x_i/(sigma n)

Rows that rest are dropped (`RowsKept`). The gap is estimated in passing, and asked for only where
it can be small enough (`estimates`). The estimate falls by a factor exp(-c) a sweep. When
log(est/wanted)/c sweeps, a prediction, are too many, the sweeps go on with `momentum`.

A free intercept is one more feature, of value c and stored nowhere, whose weight has the penalty
(sigma/2)(beta - beta_k)^2, b = c beta: proximal points. beta_k moves to beta after every sweep,
which adds (c^2/(sigma n)) sum_i y_i x_i to b.

The driver is one for all K. What depends on it is in `setup_one`, `sweeps_one` and `setup_k`,
`sweeps_k`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ...certify.points import Certificate, Point
from ...problems import costs
from ..base import REFRESH, Budget, Report, Run, Target, Work
from .estimates import Estimates, Sweeps
from .momentum import FEWEST, Momentum
from .setup_k import SetupK
from .setup_one import SetupOne
from .sweeps_k import PlainK
from .sweeps_one import PlainOne

#: So many looks may fail. Each further failed look doubles the wait for the next, in sweeps.
FREE_LOOKS, MOST_WAIT = 8, 255


class RowsKept:
    """The rows that sweeps step on: those at rest are dropped, and come back if they should."""

    def __init__(self, setup: SetupOne | SetupK, shrink: bool) -> None:
        self._setup, self._shrink = setup, shrink
        self.keep = setup.all

    def drop(self, listed: Index, gap: float, primal: float) -> None:
        """After a sweep: rows i that it marked with ~i are left out; thresholds for the next."""
        setup, rows = self._setup, ~listed[listed < 0]
        if rows.size:
            kept = np.ones(setup.problem.n_samples, dtype=bool)
            kept[rows] = False
            self.keep = self.keep[kept[self.keep]]
        if self._shrink:
            setup.set_thresholds(gap, primal)
        else:
            setup.tally.open()

    def open(self) -> None:
        """All rows again, and none dropped in the next sweep."""
        self.keep = self._setup.all
        self._setup.tally.open()

    def bring_back(self, a: Vector | Matrix, z: Vector | Matrix) -> bool:
        """Rows left out that do not rest beyond the thresholds, by their predictions; any?"""
        setup = self._setup
        if self.keep.size == setup.all.size:
            return False
        out = np.ones(setup.problem.n_samples, dtype=bool)
        out[self.keep] = False
        rows = setup.all[out[setup.all]]
        back = rows[~setup.resting(a, z, rows)]
        if back.size:
            self.keep = np.sort(np.concatenate([self.keep, back]))
            setup.tally.open()
        return bool(back.size)


class DualRun(Run):
    """The sweeps of one problem, the rows they are over, and when to look."""

    def __init__(
        self,
        sweeps: PlainOne | PlainK,
        without: tuple[str, ...],
        target: Target,
        rng: np.random.Generator,
        *,
        fixed_mu: float | None = None,
        impatient: bool = False,
    ) -> None:
        self.setup, self.without, self.rng = sweeps.setup, without, rng
        #: whether to return, too, when too many plain sweeps are left
        self._impatient = impatient
        self.sweeps: Sweeps = sweeps
        #: how the sweeps go on: plain, or with momentum
        self.pace: PlainOne | PlainK | Momentum = sweeps
        if fixed_mu is not None:
            self._accelerate(sweeps, fixed_mu, fixed=True)
        self.rows = RowsKept(self.setup, "shrinking" not in without)
        self.estimates = Estimates(self.setup, target.tol)
        #: sweeps so far, over however few rows; since the last look; calls of the kernel
        self.swept = self._since_look = self._calls = 0
        #: whole passes so far
        self.passed = 0
        #: a look is wanted, and none has failed yet
        self.looks = False
        #: looks that were wanted and did not end the run, and sweeps to wait after the next one
        self._failed, self._wait = 0, 0
        #: the rows of the sweep begun, what is cut into calls, and the calls that are left
        self._listed: Index = np.empty(0, dtype=np.intp)
        self._parts: tuple[Index, ...] = ()
        self._left: list[tuple[int, int]] = []
        #: the relative gap as estimated, when a stretch of sweeps ended; None: a look may pass
        self._told: float | None = None
        #: what was changed and why, in words
        self.notes: list[str] = []

    # ---- what is known of the run ---------------------------------------------------------------

    @property
    def keep(self) -> Index:
        """The rows that are still stepped on."""
        return self.rows.keep

    @property
    def passes(self) -> float:
        """Passes so far, with the part of one."""
        return self.passed + self.setup.tally.work / max(self.setup.work, 1)

    @property
    def report(self) -> Report:
        """The momentum, the rows kept, the estimate and the time spent, for who may take over."""
        sweeps = self.passes * costs.lean_sweep(self.setup.problem)
        return Report(
            "dual", mu=self.pace.mu, restarts=self.pace.restarts, estimates=True,
            estimate=self._told, rows_left=self.keep, notes=self.notes,
            spent=sweeps + self._calls * costs.RATES.call,
        )  # fmt: skip

    # ---- what the loop asks ---------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Sweeps until the estimate says that a look can pass."""
        passes, looked = 0, False
        last = math.inf if budget.sweeps is None else self.swept + budget.sweeps
        while not looked and passes < budget.passes and self.swept < last:
            if self.keep.size == 0:
                self.rows.open()
            count = self._in_a_row(budget.passes - passes)
            whole = self._burst(count) if count > 1 else self._sweep(budget)
            tally = self.setup.tally
            more, tally.work = divmod(tally.work, self.setup.work)
            passes += more
            if self.passed // REFRESH < (self.passed + more) // REFRESH:
                self.sweeps.refresh()
            self.passed += more
            looked = self.looks = self._look_pays() if whole else self.looks
            if budget.expired or (whole and not looked and self._gives_up()):
                break
        self._told = self._estimate(budget)
        return Work(int(passes))

    def _estimate(self, budget: Budget) -> float | None:
        """The relative gap as estimated, or None if a look is likely to pass."""
        if self.looks:
            return None
        if self.setup.K > 1:
            return self.estimates.relative
        return None if budget.sweeps is None else self.estimates.seen(self.sweeps, self.passes)

    def point(self) -> Point | Certificate:
        """x, in its domain, and the v and b that go with it; or the certificate of x."""
        first = self.looks and not self.estimates.sure
        return self.sweeps.point(first)

    def answer(self) -> tuple[Vector, Any, Vector]:
        """w, b and x as they are, not certified."""
        x = self.setup.x(self.sweeps.a)
        return self.setup.primal(self.sweeps.w, x), self.sweeps.b, x

    def seen(self, certificate: Certificate) -> None:
        """Rows that were left out and should not be come back."""
        known = self.estimates
        if certificate.exact and (known.sure or self.setup.K == 1) and not self.setup.quick_looks:
            self.sweeps.refresh()
        if self.looks:  # where rounding keeps the gap up, the estimate goes on to be low
            self._failed += 1
            self._wait = min(2 * self._wait + 1, MOST_WAIT) if self._failed > FREE_LOOKS else 0
        if not certificate.finite or not known.values:
            return
        known.looked(certificate.primal)
        self._since_look = 0
        if self.looks:
            known.failed(certificate.gap, self.pace.factor)
        missing = certificate.gap > self.setup.tuning.missing * known.last
        if missing and self.rows.bring_back(self.sweeps.a, certificate.z):
            self._left = []
            known.forget()

    # ---- sweeps ---------------------------------------------------------------------------------

    def _sweep(self, budget: Budget) -> bool:
        """One sweep over the rows kept, in calls short enough for the clock; was it whole?"""
        self.looks = False
        known = self.estimates
        if not self._left:
            self._schedule()
        while self._left:
            begin, end = self._left.pop()
            self.sweeps.call(self._listed, tuple(a[begin:end] for a in self._parts))
            if self._left and budget.expired:
                return False
        known.add(self.sweeps.estimate(), plain=self.pace is self.sweeps)
        self.rows.drop(self._listed, known.last, known.primal)
        before = self.sweeps.b
        self.pace.after()
        known.moves = (known.moves[1], self.sweeps.b - before)
        self._count(1)
        return True

    def _schedule(self) -> None:
        """A new sweep, cut into calls, from the last one on."""
        setup = self.setup
        self._listed, self._parts = self.pace.schedule(self.keep, self.rng)
        madds = setup.madds * (self._listed.size / setup.all.size)
        calls, size = 1 + int(madds / setup.tuning.call), self._parts[0].size
        ends = [k * size // calls for k in range(calls + 1)]
        self._left = [(ends[k], ends[k + 1]) for k in reversed(range(calls))]
        setup.tally.begin()

    def _count(self, sweeps: int) -> None:
        self._since_look += sweeps
        self.swept += sweeps
        self._calls += 1

    def _in_a_row(self, passes: float) -> int:
        """How many sweeps are made in one call: more than one where they take next to no time.

        At most half as many as there were, since a few may be enough, and no more than the passes.
        """
        setup = self.setup
        if not isinstance(self.pace, PlainOne) or setup.constant:
            return 1
        t = self.pace.setup.tuning
        few = self.keep.size <= t.few_left * setup.all.size
        if not few and "momentum" not in self.without:  # it may be wanted after a few sweeps
            return 1
        work = setup.work * self.keep.size / setup.all.size
        most = min(max(self.swept // 2, 2), t.burst)
        return int(min(t.short / max(work, 1.0), most, passes * setup.work / max(work, 1.0)))

    def _burst(self, count: int) -> bool:
        """Some sweeps in a row, each in an order of its own."""
        assert isinstance(self.sweeps, PlainOne)
        keep, shrink = self.keep.copy(), "shrinking" not in self.without
        random = self.rng.integers(0, 1 << 32, size=(count, keep.size), dtype=np.uint32)
        left, found = self.sweeps.calls(keep, random, shrink)
        self.rows.keep = keep[:left]
        for est in found.tolist():
            self.estimates.add(est / self.setup.problem.n, plain=True)
        self._count(count)
        return True

    # ---- when to look, when to accelerate ----------------------------------------------------

    def _look_pays(self) -> bool:
        """Whether a look is likely to pass."""
        if self._since_look <= max(self.pace.pause, self._wait):
            return False
        return self.estimates.look_pays(self.sweeps, self.pace.factor, self.passes)

    def _gives_up(self) -> bool:
        """Momentum from here on if too many plain sweeps are left; or nobody waits for them."""
        if self.pace is not self.sweeps or ("momentum" in self.without and not self._impatient):
            return False
        left, rate = self.estimates.sweeps_left(self.sweeps, self.pace.factor, self.passes)
        if left <= self.setup.tuning.patience:
            return False
        if "momentum" not in self.without and self.keep.size >= FEWEST:
            low, high = self.setup.tuning.first_mu
            assert isinstance(self.sweeps, PlainOne | PlainK)
            self._accelerate(self.sweeps, self.setup.first_mu or min(max(rate / 2, low), high))
            self.notes.append(
                f"momentum: {left:.0f} plain sweeps left by the observed rate"
                if left < math.inf
                else "momentum: plain sweeps gain nothing"
            )
        return self._impatient

    def _accelerate(self, plain: PlainOne | PlainK, mu: float, *, fixed: bool = False) -> None:
        """Go on with momentum."""
        sweeps = plain.accelerated(self.without)
        self.sweeps, self.pace = sweeps, Momentum(sweeps, self.without, mu, fixed=fixed)
