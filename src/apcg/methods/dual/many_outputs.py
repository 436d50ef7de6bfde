"""The dual of ERM with K outputs: sweeps over blocks, plain first, with momentum if need be.

It is the method of `lean` with a block of K dual numbers for each row (Algorithm 5 of the paper,
A_i a matrix). A plain sweep steps on each row by exact maximisation of D over its block, r_i times:
most on rows that moved most in the last sweep. Each step is an ascent, whatever the order. The
rows' parts of the gap are known in passing, so that the gap is asked for only where it can be small
enough. When too many plain sweeps seem to be left, the sweeps go on with momentum.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ..._kernels.dual import many_outputs as kernel
from ...certify.points import Certificate, Point, Start
from ...losses.outputs import LOGISTIC, SOFTMAX
from ..base import REFRESH, Budget, Report, Run, Target, Work
from .many_outputs_look import Look, error_bound
from .many_outputs_momentum import Momentum
from .many_outputs_setup import Setup
from .many_outputs_start import start

#: Below this, relative to P, an estimate is rounding.
ROUNDING = 1e-15


class PlainBlocks:
    """Sweeps without momentum: the blocks, W and b."""

    #: how far looks are apart, in sweeps
    pause = 0.0
    #: mu-hat: there is no momentum
    mu = 1.0

    def __init__(self, setup: Setup, without: tuple[str, ...], at: Start) -> None:
        self.setup = setup
        self.most = 1.0 if "visits" in without else setup.tuning.most_visits
        self.highest = 1
        self.factor = setup.tuning.calm
        #: sweeps to come in which all rows are visited once
        self._even = setup.tuning.even if at.is_cold else 1
        x, b, W = start(setup, at)
        theta = np.empty((1, 1))
        if setup.kind == SOFTMAX:
            theta = np.maximum(x, 1e-150)
            np.log(theta, out=theta)
        elif setup.kind == LOGISTIC:
            theta = np.log(np.maximum(x, 1e-150)) - np.log(np.maximum(1 - x, 1e-150))
        intercepts = np.zeros(setup.size)
        intercepts[: setup.K] = b
        moved, part, room = np.zeros(x.shape[0]), np.zeros(x.shape[0]), np.zeros((4, setup.size))
        self.state = kernel.PlainState(x, theta, W, intercepts, moved, part, room)
        self._L = np.sqrt(setup.problem.weights * (setup.q + setup.problem.loss.gamma))
        #: steps since W was computed, and its sum of squares then
        self.steps, self._first = 0, setup.square_of(W)

    @property
    def blocks(self) -> Matrix:
        """The blocks, in their domain."""
        return np.asarray(self.state.x)

    @property
    def W(self) -> Matrix:
        """A x times the scale, as kept."""
        return np.asarray(self.state.W)

    @property
    def b(self) -> Vector:
        """The intercepts."""
        return np.array(self.state.b)[: self.setup.K]

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, ...]:
        """The rows in the order of the sweep, and their visits."""
        moved = np.asarray(self.state.moved)
        far = (np.sqrt(moved) * self._L)[keep]
        most = 1.0 if self._even else self.most
        self._even = max(self._even - 1, 0)
        order, visits, _ = self.setup.sweep(keep, far, most, rng)
        moved[keep] = 0.0
        self.highest = int(visits.max())
        return order, visits

    def call(self, rows: tuple[Index, ...], count: kernel.Count) -> None:
        """Steps on these rows."""
        order, visits = rows
        bounds = np.empty((order.size, 2), dtype=np.intp)
        kernel.plain_sweep(
            *self.setup.working, self.setup.blocks, self.state, count, order, visits, bounds
        )
        self.steps += order.size

    def estimate(self, count: kernel.Count) -> float:
        """The gap: the sum of the parts of the rows, each when it was seen last."""
        return float(np.dot(self.setup.s, self.state.part)) / self.setup.problem.n

    def sample(self, count: kernel.Count, share: float) -> float:
        """An estimate of the gap from a part of a sweep: a sum over its rows, scaled up.

        One standard deviation is added. A row with r visits counts 1/r each time. Rows are measured
        before their step: the first ones of a sweep speak for all, later the estimate is too high.
        """
        total = count.est + math.sqrt(count.square)
        count.est = count.square = 0.0
        return total / (share * self.setup.problem.n)

    def after(self) -> None:
        """After a sweep: the centre of the intercepts moves."""
        if self.setup.constant:
            change = self.setup.blocks.border * self.setup.imbalance(self.blocks)
            np.asarray(self.state.b)[: self.setup.K] += change

    def refresh(self) -> None:
        """Compute W anew from the blocks."""
        np.asarray(self.state.W)[:] = self.setup.rows(self.setup.x(self.blocks))
        self.steps = 0

    def look(self) -> Look:
        """The values at the blocks and W as kept; for L2 without intercepts."""
        error = error_bound(self.setup, self.steps, self._first)
        return Look.at(self.setup, self.blocks, self.W, error)


class BlockRun(Run):
    """The sweeps of one problem, the rows they are over, and when to look."""

    def __init__(
        self,
        setup: Setup,
        without: tuple[str, ...],
        at: Start,
        target: Target,
        rng: np.random.Generator,
        *,
        fixed_mu: float | None = None,
    ) -> None:
        self.setup, self.without, self.target, self.rng = setup, without, target, rng
        self.tuning = setup.tuning
        self.sweeps: PlainBlocks | Momentum = PlainBlocks(setup, without, at)
        if fixed_mu is not None:
            self.sweeps = Momentum(setup, without, self.sweeps.state, fixed_mu, fixed=True)
        self.count = kernel.Count()
        self.keep = setup.all
        #: the estimated gap after each sweep; P, as far as it is known
        self.estimates: list[float] = []
        self.primal = setup.primal_at_zero()
        self._sure = False
        self._since_look = 0
        #: whole passes so far
        self.passed = 0
        self._optimism = 1.0
        #: what was changed and why, in words
        self.notes: list[str] = []
        #: whether to return, too, when too many plain sweeps are left
        self.impatient = False
        #: a look is wanted, and none has failed yet
        self._confident = False
        #: the rows of the sweep begun; the calls that are left of it: from where, to where, and
        #: where the sample began that ends with it (-1 if none does)
        self._rows: tuple[Index, ...] = ()
        self._ends: list[tuple[int, int, int]] = []
        #: the gap, as far as it can be told now
        self._now = math.inf
        #: what a step of all rows is expected to leave of the gap; 1: none is made
        q = float(np.mean(setup.q)) if setup.quick_looks and setup.kind == SOFTMAX else math.inf
        self._joint = q / (1 + q) if q <= self.tuning.joint else 1.0
        #: how far b moved in the last two sweeps
        self._moves = (np.zeros(setup.K), np.zeros(setup.K))

    @property
    def report(self) -> Report:
        """The momentum, and the estimate while no look is likely to pass."""
        restarts = self.sweeps.rate.restarts if isinstance(self.sweeps, Momentum) else 0
        known = bool(self.estimates) and self.primal > 0
        estimate = self.estimates[-1] / self.primal if known else math.inf
        return Report(
            "dual", mu=self.sweeps.mu, restarts=restarts, estimates=True, rows_left=self.keep,
            estimate=None if self._confident else estimate, notes=self.notes,
        )  # fmt: skip

    # ---- what the loop asks ---------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Sweeps until the estimate says that a look can pass."""
        passes, looked = 0, False
        while not looked and passes < budget.passes:
            if self.keep.size == 0:
                self._open()
            whole = self._sweep(budget)
            more, rest = divmod(self.count.work, self.setup.work)
            passes, self.count.work = passes + more, rest
            if self.passed // REFRESH < (self.passed + more) // REFRESH:
                self.sweeps.refresh()
            self.passed += more
            looked = self._confident = self._look_pays() if whole else self._confident
            if budget.expired:
                break
            if not looked and whole:
                self._maybe_accelerate()
                if self.impatient and self.sweeps_left()[0] > self.tuning.patience:
                    break
        return Work(int(passes))

    def point(self) -> Point | Certificate:
        """x, in its domain, and the v and b that go with it; or the certificate of x.

        Without v where the first look is likely to end the run: that takes a certificate from x
        alone, and two of them would be one too many.
        """
        s, setup = self.sweeps, self.setup
        if isinstance(s, PlainBlocks) and setup.quick_looks:
            return self._look(s)
        x = setup.x(s.blocks)
        if setup.alone.size:
            return setup.certificate(x, s.b)
        if self._confident and not self._sure:
            return Point(x=x, b=s.b)
        v = setup.expand(s.W, x)
        return Point(x=x, v=v if setup.threshold > 0 or setup.b == 1 else v * setup.b, b=s.b)

    def _look(self, sweeps: PlainBlocks) -> Certificate:
        """The certificate at W as kept; if it does not do, of a better x by a step of all rows."""
        look = sweeps.look()
        if not look.charge <= ROUNDING * abs(look.primal):
            return self.setup.certificate(look.x, sweeps.b)
        gap, wanted = look.primal - look.dual, self.target.tol * abs(look.primal)
        if self._ends and self._joint < 1 and gap > wanted:
            look.step()
            self._joint = min((look.primal - look.dual) / gap, 1.0)
        return look.certificate()

    def seen(self, certificate: Certificate) -> None:
        """Rows that were left out and should not be come back."""
        if certificate.exact and self._sure and not self.setup.quick_looks:
            self.sweeps.refresh()
        if not certificate.finite or not self.estimates:
            return
        self.primal, self._sure, self._since_look = abs(certificate.primal), True, 0
        found, est = certificate.gap, self._now
        self._optimism = min(max(found / est, 1.0), 100.0) if est > 0 else 1.0
        if self.keep.size < self.setup.all.size and found > self.tuning.missing * est:
            self._bring_back(certificate.z)

    # ---- sweeps ---------------------------------------------------------------------------------

    def _sweep(self, budget: Budget) -> bool:
        """One sweep over the rows kept, in calls short enough for the clock; was it whole?

        It ends early where a look pays, and the next one takes up the rest.
        """
        self._confident = False
        if not self._ends:
            self._schedule()
        while self._ends:
            begin, end, sampled = self._ends.pop()
            self.sweeps.call(tuple(a[begin:end] for a in self._rows), self.count)
            if sampled >= 0 and isinstance(self.sweeps, PlainBlocks):
                self._now = self.sweeps.sample(self.count, (end - sampled) / self._rows[0].size)
                self._confident = bool(self._ends) and self._look_pays()
            if self._ends and (budget.expired or self._confident):
                return False
        self._drop(~self._rows[0][self._rows[0] < 0])
        before = self.sweeps.b
        self.sweeps.after()
        self._moves = (self._moves[1], self.sweeps.b - before)
        self._since_look += 1
        self.estimates.append(max(self.sweeps.estimate(self.count), 0.0))  # below it is rounding
        if sampled < 0:
            self._now = self._late()
        self._set_threshold()
        return True

    def _schedule(self) -> None:
        """A new sweep, cut into samples of its rows, and these into calls, from the last one on.

        Rows with r visits are once in each r-th of a sweep, so that such a part is a fair sample.
        """
        setup, t = self.setup, self.tuning
        if len(self.estimates) >= t.gather_from:
            setup.gather(self.keep)
        self._rows = self.sweeps.schedule(self.keep, self.rng)
        size = self._rows[0].size
        work = setup.work * setup.K * (size / setup.all.size)
        samples = min(t.samples, size) if self.sweeps.highest == 1 else self.sweeps.highest
        if work < samples * t.sample or not isinstance(self.sweeps, PlainBlocks):
            samples = 1
        calls = 1 + int(work / samples / t.call)
        ends = [k * size // (samples * calls) for k in range(samples * calls + 1)]
        self._ends = [
            (
                ends[k],
                ends[k + 1],
                ends[k + 1 - calls] if samples > 1 and not (k + 1) % calls else -1,
            )
            for k in reversed(range(samples * calls))
        ]
        self.count.est = self.count.square = 0.0

    def _set_threshold(self) -> None:
        """How far above the others a vertex must be for its row to be dropped in the next sweep.

        |W - W*|^2 <= 2 gap/sigma bounds by how much the slopes of a row differ from those at the
        optimum: 2 sqrt(q_i n gap). A part of that does, since W - W* is along few of the a_i.
        """
        gap = self.estimates[-1]
        self.count.high = math.inf
        if "shrinking" not in self.without and gap <= self.tuning.drop_from * self.primal:
            self.count.high = self.tuning.drop * math.sqrt(max(gap, 0.0) * self.setup.problem.n)

    def _drop(self, rows: Index) -> None:
        if rows.size:
            kept = np.ones(self.setup.problem.n_samples, dtype=bool)
            kept[rows] = False
            self.keep = self.keep[kept[self.keep]]

    def _bring_back(self, z: Matrix) -> None:
        """Rows left out that are not above the threshold any more, by their predictions."""
        setup = self.setup
        out = np.ones(setup.problem.n_samples, dtype=bool)
        out[self.keep] = False
        rows = setup.all[out[setup.all]]
        back = rows[~setup.resting(self.sweeps.blocks, z, rows, self.count.high)]
        if back.size:
            self.keep = np.sort(np.concatenate([self.keep, back]))
            setup.release()
            self.count.high = math.inf
            self._optimism, self._ends = 1.0, []
            self.estimates[-1] = self._now = math.inf  # of other rows: it tells nothing of these

    def _open(self) -> None:
        """All rows again, and none dropped in the next sweep."""
        self.keep = self.setup.all
        self.setup.release()
        self.count.high = math.inf

    # ---- when to look, when to accelerate ----------------------------------------------------

    def _wanted(self) -> float:
        """The estimate that a look is likely to pass at."""
        return max(self.sweeps.factor * self.target.tol / self._optimism, ROUNDING) * self.primal

    def _look_pays(self) -> bool:
        """Whether the estimate is low enough, with P from D where P is not known yet."""
        if self._step_pays():
            return True
        if self._since_look <= self.sweeps.pause:
            return False
        est = self._now
        if est <= self._wanted() and self.setup.constant:
            est += self._unbalanced()
        if est <= self._wanted() and not self._sure:
            self._guess_primal(est)
        return est <= self._wanted()

    def _step_pays(self) -> bool:
        """Whether a look is likely to pass with a step of all rows, in the middle of a sweep.

        The estimate is that of rows that still wait for their step. It tells little before W has
        learned from a part of them.
        """
        if self._joint == 1 or not self._ends or not self.estimates:
            return False
        left = sum(end - begin for begin, end, _ in self._ends) / self._rows[0].size
        gap = left * self._now
        if left > 1 - self.tuning.joint_from or gap * self._joint > self._wanted():
            return False
        if not self._sure:
            self._guess_primal(gap)
        return gap * self._joint <= self._wanted()

    def _late(self) -> float:
        """The gap at the end of the sweep: the estimate is of its middle, say."""
        est = self.estimates[-1]
        if isinstance(self.sweeps, PlainBlocks) and len(self.estimates) > 1:
            before = self.estimates[-2]
            if est < before < math.inf:
                est *= (est / before) ** self.tuning.late
        return est

    def _unbalanced(self) -> float:
        """What balancing x costs: <sum_i x_i, the way that b has still to go> over n."""
        before, last = self._moves
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.clip(np.where(before != 0, last / before, 0.0), 0.0, 0.95)
        off = np.abs(self.setup.imbalance(self.sweeps.blocks)) / self.setup.problem.n
        return float(off @ (np.abs(last) / (1 - ratio)))

    def _guess_primal(self, est: float) -> None:
        """P = D + est, less what intercepts make of an x that is not balanced."""
        s, setup = self.sweeps, self.setup
        square = setup.square(s.W, s.blocks)
        dual = -setup.cost(s.blocks) - setup.square_cost(square)
        off = 0.0
        if setup.constant:
            off = float(s.b @ setup.imbalance(s.blocks)) / setup.problem.n
        guess = abs(dual + est - off)
        if math.isfinite(guess):
            self.primal = min(self.primal, guess)

    def _maybe_accelerate(self) -> None:
        """Change over if too many plain sweeps are left."""
        t = self.tuning
        if not isinstance(self.sweeps, PlainBlocks) or "momentum" in self.without:
            return
        left, c = self.sweeps_left()
        if left > t.patience and self.keep.size >= Momentum.FEWEST:
            mu = min(max(c / 2, t.first_mu[0]), t.first_mu[1])
            self.sweeps = Momentum(self.setup, self.without, self.sweeps.state, mu)
            self.notes.append(
                f"momentum: {left:.0f} plain sweeps left by the observed rate"
                if left < math.inf
                else "momentum: plain sweeps gain nothing"
            )

    def sweeps_left(self) -> tuple[float, float]:
        """How many sweeps seem to be left, and the rate of the later half that says so."""
        t, count = self.tuning, len(self.estimates)
        if count < t.earliest:
            return 0.0, 0.0
        if not self._sure and count & (count - 1) == 0:  # 4, 8, 16, ..: P falls with them
            self._guess_primal(self.estimates[-1])
        est, middle = self.estimates[-1], count // 2
        c, before = 0.0, self.estimates[middle - 1]
        if est > 0 and 0 < before < math.inf:  # it may be 0, with no row left to step on
            c = math.log(before / est) / (count - middle)
        wanted = self._wanted()  # 0 if P is
        return (math.log(est / wanted) / c if c > 0 and wanted > 0 else math.inf), c
