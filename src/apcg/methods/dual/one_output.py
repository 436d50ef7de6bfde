"""The dual of ERM with g = L2, for seconds: plain sweeps first, momentum where they would be many.

A plain sweep steps once on each row, by exact maximisation of D (`_kernels/dual/one_output.pyx`):

    a_i <- argmax_a D(.., a, ..),    w += s_i (change) y_i x_i/(sigma n)

Rows are taken in blocks of consecutive ones, the blocks in random order: neighbours share cache
lines. Rows that rest at a bound are dropped as LIBLINEAR drops them. The rows' parts of the gap,
phi(m_i) + phi*(-a_i) + m_i a_i, are summed in passing, each at the w of its step: `est`. It is
close to the gap, and costs nothing, so the gap is asked for only where it can be small enough.

est falls by a factor exp(-c) a sweep. When log(est/wanted)/c sweeps, a prediction, are too many,
the sweeps go on with momentum, in `lean_momentum`.

A free intercept is one more feature, of value c and stored nowhere, whose weight has the penalty
(sigma/2)(beta - beta_k)^2, b = c beta: proximal points. beta_k moves to beta after every sweep,
which adds (c^2/(sigma n)) sum_i y_i x_i to b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._base.validation import Index, Vector
from ..._kernels.dual import one_output as kernel
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ..base import (
    ONE_OUTPUT,
    REFRESH,
    Budget,
    Need,
    Needs,
    Report,
    Run,
    Target,
    Work,
    check_dual_start,
)
from ..plan import costs
from .one_output_momentum import Momentum
from .one_output_setup import PARTS, DualTuning, Setup

L2_PENALTY = Need(
    'penalty "l2", the same for all features',
    lambda p: bool(p.dual_form and p.g.is_l2),
    lambda p: f"penalty {p.penalty} is not of that kind",
)
KNOWN_LOSS = Need(
    "a loss of the interval family, or the logistic one",
    lambda p: p.loss.kernel in ("interval", "logistic"),
    lambda p: f"loss {p.loss.name!r} is neither",
)

#: Rows of which the order is mixed, in one piece of a kernel call.
PIECE = 1024
#: So many looks may fail; after each further one the next waits twice as long, in sweeps.
FREE_LOOKS, MOST_WAIT = 8, 255
#: After a look that failed the next one is to pass with this much to spare.
SURE = 0.9
#: Below this, relative to P, an estimate is rounding.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Lean:
    """Dual coordinate sweeps, plain and with momentum.

    without  ideas to leave out: "momentum", "visits", "shrinking", "settling", "blocks"
    """

    without: tuple[str, ...] = ()
    tuning: DualTuning = DualTuning()
    name: ClassVar[str] = "dual"
    needs: ClassVar[Needs] = (ONE_OUTPUT, L2_PENALTY, KNOWN_LOSS)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(PARTS))
        if unknown:
            raise ValueError(f"without: got {unknown}, expected some of {', '.join(PARTS)}.")

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> LeanRun:
        """Begin at x, or at what fits w, or at zero."""
        if at.x is not None:
            check_dual_start(problem, at.x)
        return LeanRun(Setup(problem, self.tuning), self.without, at, target, rng)


class PlainSweeps:
    """Sweeps without momentum: a, w and b."""

    #: how far looks are apart, in sweeps
    pause = 0.0
    #: mu-hat: there is no momentum
    mu = 1.0

    def __init__(self, setup: Setup, without: tuple[str, ...], at: Start) -> None:
        a, b = setup.start(at)
        eta = np.log(a) - np.log1p(-a) if setup.logistic else np.empty(0)
        w = setup.w(a) if a.any() else np.zeros(setup.problem.d)
        self.setup, self.split = setup, "blocks" not in without
        self.factor = setup.tuning.calm
        self.state = kernel.Plain(a, eta, w, b)

    @property
    def a(self) -> Vector:
        """The dual point, in its domain."""
        return np.asarray(self.state.a)

    @property
    def w(self) -> Vector:
        """A x/(sigma n), as kept."""
        return np.asarray(self.state.w)

    @property
    def b(self) -> float:
        """The intercept."""
        return float(self.state.b)

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, tuple[Index, ...]]:
        """The rows in the order of the sweep's list, and its blocks."""
        length = self.setup.block(keep.size, self.split)
        if self.setup.tall and length > 1:
            if keep.size > PIECE:
                return self._mixed(keep, length, rng)
            return rng.permutation(keep), (np.array([0]), np.array([keep.size]))
        begin = length * rng.permutation(-(-keep.size // length))
        return keep.copy(), (begin, np.minimum(begin + length, keep.size))

    def _mixed(
        self, keep: Index, length: int, rng: np.random.Generator
    ) -> tuple[Index, tuple[Index, ...]]:
        """The same with the rows of each block in random order, one order for all blocks."""
        count = keep.size // length
        whole = keep[: count * length].reshape(count, length)[rng.permutation(count)]
        listed = np.concatenate([whole[:, rng.permutation(length)].ravel(), keep[whole.size :]])
        begin = np.arange(0, keep.size, PIECE)
        return listed, (begin, np.minimum(begin + PIECE, keep.size))

    def call(self, keep: Index, tally: kernel.Tally, blocks: tuple[Index, ...]) -> None:
        """Steps on the rows of these blocks."""
        kernel.plain_sweep(*self.setup.working, self.setup.rows, self.state, tally, keep, *blocks)

    def calls(
        self, keep: Index, tally: kernel.Tally, random: NDArray[np.uint32], shrink: bool
    ) -> tuple[int, Vector]:
        """Sweeps over `keep`, one for each row of `random`: how many rows are left, estimates."""
        found = np.empty(len(random))
        setup = self.setup
        left = kernel.plain_sweeps(
            *setup.working, setup.rows, self.state, tally, keep, random, shrink, found
        )
        return left, found

    def after(self) -> None:
        """After a sweep: the centre of the intercept moves."""
        if self.setup.constant:
            change = self.setup.constant * self.setup.scale * self.setup.imbalance(self.a)
            self.state.b += change

    def refresh(self) -> None:
        """Compute w anew from a."""
        np.asarray(self.state.w)[:] = self.setup.w(self.a)


class LeanRun(Run):
    """The sweeps of one problem, the rows they are over, and when to look."""

    def __init__(
        self,
        setup: Setup,
        without: tuple[str, ...],
        at: Start,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        self.setup, self.without, self.target, self.rng = setup, without, target, rng
        self.tuning = setup.tuning
        self.sweeps: PlainSweeps | Momentum = PlainSweeps(setup, without, at)
        self.tally = kernel.Tally()
        self.keep = setup.all
        #: the estimated gap after each sweep; P, as far as it is known
        self.estimates: list[float] = []
        self.primal = setup.primal_at_zero()
        self._sure = False
        #: passes when P was last guessed
        self._guessed = -math.inf
        self._since_look = 0
        #: sweeps so far, over however few rows, and whole passes
        self._swept = self._passed = 0
        #: calls of the kernel
        self._calls = 0
        #: the estimate that is likely to do over what is asked for, by the last look
        self._share: float | None = None
        #: a look is wanted, and none has failed yet
        self._confident = False
        #: looks that were wanted and did not end the run, and sweeps to wait after the next one
        self._failed, self._wait = 0, 0
        #: how far b moved in the last two sweeps
        self._moves = (0.0, 0.0)
        #: the estimate when it was last asked for
        self._told: float | None = None

    # ---- what the loop asks ---------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Sweeps until the estimate says that a look can pass."""
        passes, looked = 0, False
        last = math.inf if budget.sweeps is None else self._swept + budget.sweeps
        while not looked and passes < budget.passes and self._swept < last:
            if self.keep.size == 0:
                self._open()
            count = self._in_a_row(budget.passes - passes)
            whole = self._burst(count) if count > 1 else self._sweep(budget)
            more, rest = divmod(self.tally.count, self.setup.work)
            passes, self.tally.count = passes + more, rest
            if self._passed // REFRESH < (self._passed + more) // REFRESH:
                self.sweeps.refresh()
            self._passed += more
            if not whole or budget.expired:
                break
            looked = self._confident = self._look_pays()
            if not looked:
                self._maybe_accelerate()
        self._told = None if budget.sweeps is None else self.estimate
        return Work(int(passes))

    @property
    def report(self) -> Report:
        """The estimate, the rows kept and the time spent, for who may take over."""
        return Report(
            "dual", mu=self.sweeps.mu, estimates=True, estimate=self._told, rows_left=self.keep,
            spent=self.spent,
        )  # fmt: skip

    def point(self) -> Point:
        """x, in its domain, and the v and b that go with it.

        Without v where the first look is likely to end the run: that takes a certificate from x
        alone, and two of them would be one too many.
        """
        s, p = self.sweeps, self.setup.problem
        if self._confident and not self._sure and isinstance(s, PlainSweeps):
            return Point(x=self.setup.x(s.a), b=s.b)
        return Point(x=self.setup.x(s.a), v=s.w * float(p.g.b[0]), b=s.b)

    def seen(self, certificate: Certificate) -> None:
        """Rows that were left out and should not be come back."""
        if certificate.exact:
            self.sweeps.refresh()
        if self._confident:  # where rounding keeps the gap up, the estimate goes on to be low
            self._failed += 1
            self._wait = min(2 * self._wait + 1, MOST_WAIT) if self._failed > FREE_LOOKS else 0
        if not certificate.finite or not self.estimates:
            return
        self.primal, self._sure, self._since_look = abs(certificate.primal), True, 0
        found, est = certificate.gap, self.estimates[-1]
        if self._confident and found > 0:
            self._share = min(max(SURE * self._now() / found, 0.01), self.sweeps.factor)
        if self.keep.size < self.setup.all.size and found > self.tuning.missing * est:
            self._bring_back(certificate.z)

    @property
    def estimate(self) -> float | None:
        """The relative gap as estimated, or None if a look is likely to pass."""
        if self._confident or not self.estimates:
            return None
        more, times = self.tuning.guess
        if not self._sure and self._steps >= max(self._guessed + more, times * self._guessed):
            self._guess_primal(self.estimates[-1])
        est = self.estimates[-1] + (self._unbalanced() if self.setup.constant else 0.0)
        est /= min(self._share or 1.0, 1.0)  # a look found more than was estimated
        return est / self.primal if self.primal > 0 else None

    @property
    def spent(self) -> float:
        """What all sweeps took, in ns, as `costs` predicts it; one of few rows is a call too."""
        calls = self._calls * costs.RATES.call
        return self._steps * costs.lean_sweep(self.setup.problem) + calls

    @property
    def _steps(self) -> float:
        """Passes so far."""
        return self._passed + self.tally.count / max(self.setup.work, 1)

    # ---- sweeps ---------------------------------------------------------------------------------

    def _sweep(self, budget: Budget) -> bool:
        """One sweep over the rows kept, in calls short enough for the clock; was it whole?"""
        tally, setup = self.tally, self.setup
        t = self.tuning
        if len(self.estimates) >= (t.gather_from_tall if setup.tall else t.gather_from):
            self.keep = setup.gather(self.keep, self.rng)
        keep, blocks = self.sweeps.schedule(self.keep, self.rng)
        pieces = 1 + int(setup.work * (keep.size / setup.all.size)) // self.tuning.call
        whole = True
        tally.begin()
        for k in range(pieces):
            part = slice(k * blocks[0].size // pieces, (k + 1) * blocks[0].size // pieces)
            self.sweeps.call(keep, tally, tuple(array[part] for array in blocks))
            if budget.expired and k + 1 < pieces:
                whole = False
                break
        self._drop(~keep[keep < 0])
        self._note(whole)
        before = self.sweeps.b
        self.sweeps.after()
        self._moves = (self._moves[1], self.sweeps.b - before)
        return whole

    def _note(self, whole: bool = True) -> None:
        """After a sweep: its thresholds and its estimate."""
        if whole and "shrinking" not in self.without:
            self.tally.end()
        else:
            self.tally.open()
        self._since_look += 1
        self._swept += 1
        self._calls += 1
        if whole:
            self.estimates.append(max(self.tally.est, 0.0) / self.setup.problem.n)  # or rounding

    def _in_a_row(self, passes: float) -> int:
        """How many sweeps are made in one call: more than one where they take next to no time.

        At most half as many as there were, since a few may be enough, and no more than the passes.
        """
        setup, t = self.setup, self.tuning
        few = self.keep.size <= t.few_left * setup.all.size
        if not isinstance(self.sweeps, PlainSweeps) or setup.constant:
            return 1
        if not few and "momentum" not in self.without:  # it may be wanted after a few sweeps
            return 1
        work = setup.work * self.keep.size / setup.all.size
        most = min(max(self._swept // 2, 2), t.burst)
        return int(min(t.short / max(work, 1.0), most, passes * setup.work / max(work, 1.0)))

    def _burst(self, count: int) -> bool:
        """Some sweeps in a row, each in an order of its own."""
        keep, shrink = self.keep.copy(), "shrinking" not in self.without
        random = self.rng.integers(0, 1 << 32, size=(count, keep.size), dtype=np.uint32)
        assert isinstance(self.sweeps, PlainSweeps)
        left, found = self.sweeps.calls(keep, self.tally, random, shrink)
        self.keep = keep[:left]
        self._since_look += count
        self._swept += count
        self._calls += 1
        self.estimates += [max(est, 0.0) / self.setup.problem.n for est in found.tolist()]
        return True

    def _drop(self, rows: Index) -> None:
        if rows.size:
            kept = np.ones(self.setup.problem.n_samples, dtype=bool)
            kept[rows] = False
            self.keep = self.keep[kept[self.keep]]

    def _open(self) -> None:
        """All rows again, and none dropped in the next sweep."""
        self.keep = self.setup.all
        self.setup.release()
        self.tally.open()

    def _bring_back(self, z: Vector) -> None:
        """Rows left out that do not rest beyond the thresholds, by their predictions."""
        setup, p = self.setup, self.setup.problem
        out = np.ones(p.n_samples, dtype=bool)
        out[self.keep] = False
        rows = setup.all[out[setup.all]]
        m = p.loss.argument(z[rows], p.y[rows])
        back = rows[~setup.resting(self.sweeps.a[rows], m, self.tally)]
        if back.size:
            self.keep = np.sort(np.concatenate([self.keep, back]))
            setup.release()
            self.tally.open()
            self._share = None
            self.estimates[-1] = math.inf  # of other rows: it tells nothing of what is to come

    # ---- when to look, when to accelerate ----------------------------------------------------

    def _wanted(self) -> float:
        """The estimate that a look is likely to pass at."""
        share = self.sweeps.factor if self._share is None else self._share
        return max(share * self.target.tol, _ROUNDING) * self.primal

    def _look_pays(self) -> bool:
        """Whether the estimate is low enough, with P from D where P is not known yet."""
        if self._since_look <= max(self.sweeps.pause, self._wait):
            return False
        est = self._now()
        if est <= self._wanted() and self.setup.constant:
            est += self._unbalanced()
        if est <= self._wanted() and not self._sure:
            self._guess_primal(self.estimates[-1])
        return est <= self._wanted()

    def _now(self) -> float:
        """The gap at the end of the sweep: the estimate is of its middle, say."""
        est = self.estimates[-1]
        if isinstance(self.sweeps, PlainSweeps) and len(self.estimates) > 1:
            before = self.estimates[-2]
            if est < before < math.inf:
                est *= (est / before) ** self.tuning.late
        return est

    def _unbalanced(self) -> float:
        """What balancing x costs: sum_i y_i x_i times the way that b has still to go, over n.

        The moves of b fall like a geometric sequence, whose sum is that way.
        """
        before, last = self._moves
        ratio = min(max(last / before, 0.0), 0.95) if before != 0 else 0.0
        off = abs(self.setup.imbalance(self.sweeps.a)) / self.setup.problem.n
        return off * abs(last) / (1 - ratio)

    def _guess_primal(self, est: float) -> None:
        """P = D + est, less what an intercept makes of an x that is not balanced."""
        self._guessed = self._steps
        a, b = self.sweeps.a, self.sweeps.b
        off = b * self.setup.imbalance(a) / self.setup.problem.n if b else 0.0
        guess = abs(self.setup.dual(a, self.sweeps.w) + est - off)
        if math.isfinite(guess):
            self.primal = min(self.primal, guess)

    def _maybe_accelerate(self) -> None:
        """Change over if too many plain sweeps are left, by the rate of the later half."""
        t, count = self.tuning, len(self.estimates)
        if not isinstance(self.sweeps, PlainSweeps) or "momentum" in self.without:
            return
        if count < t.earliest or self.keep.size < Momentum.FEWEST:
            return
        if not self._sure and count == t.earliest:
            self._guess_primal(self.estimates[-1])
        est, middle = self.estimates[-1], count // 2
        c = 0.0
        if est > 0 and 0 < self.estimates[middle - 1] < math.inf:
            c = math.log(self.estimates[middle - 1] / est) / (count - middle)
        wanted = self._wanted()  # 0 if P is
        left = math.log(est / wanted) / c if c > 0 and wanted > 0 else math.inf
        if left > t.patience:
            low, high = t.first_mu
            mu = 1.0 if self.setup.logistic else min(max(c / 2, low), high)
            self.sweeps = Momentum(self.setup, self.without, self.sweeps.state, mu)
