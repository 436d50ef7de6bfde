"""The methods for K outputs by name, and `auto` among them: a plan that may change to Newton's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._base.validation import number
from ...certify.certificate import certify
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ...problems.outputs import Outputs
from ..base import (
    MANY_OUTPUTS,
    QUADRATIC_PENALTY,
    SMOOTH_LOSS,
    Budget,
    Need,
    Needs,
    Report,
    Run,
    Target,
    Work,
    check_dual_start,
    unmet,
)
from ..dual.driver import DualRun
from ..dual.method import begin
from ..dual.tuning import MANY, TuningK
from ..newton import many_outputs as newton
from ..paper.afg import AFGMethod
from ..reductions.per_output import OneByOne
from ..sparse.softmax.method import ClassSet, OutputsGroupSet

#: What can be left out of the plan, to see what it is worth.
PARTS = ("newton", "one_by_one", "momentum", "visits", "shrinking", "settling")
#: Newton's method that gets no further is at the end of what rounding leaves at this relative gap.
ROUNDING = 1e-9

DUAL_BLOCKS = Need(
    'penalty "l2" or "elasticnet", the same for all entries of W, and a loss that the sweeps know',
    lambda p: isinstance(p, Outputs) and p.loss.kind is not None and p.soft is not None,
    lambda p: f"penalty {p.penalty} or loss {p.loss.name!r} is not of that kind",
)

KNOWN_LOSS = Need(
    "a loss whose second derivatives it knows",
    lambda p: p.loss.kind is not None,
    lambda p: f"loss {p.loss.name!r} is your own",
)


def _start(problem: ERM, at: Start) -> Outputs:
    assert isinstance(problem, Outputs)
    if at.x is not None:
        check_dual_start(problem, at.x)
    return problem


@dataclass(frozen=True)
class BlockSDCA:
    """Exact maximisation over one block at a time, no momentum."""

    tuning: TuningK = MANY
    name: ClassVar[str] = "sdca"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, DUAL_BLOCKS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        without = ("momentum", "visits", "shrinking")
        return begin(problem, at, target, rng, without, self.tuning)


@dataclass(frozen=True)
class BlockAPCG:
    """Algorithm 5 over blocks, with the mu of Theorem 2 all along, or that which is given."""

    mu: float | None = None
    tuning: TuningK = MANY
    name: ClassVar[str] = "apcg"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, DUAL_BLOCKS, SMOOTH_LOSS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        without = ("visits", "shrinking", "settling")
        mu = problem.mu if self.mu is None else number(self.mu, "mu", low=0.0, high=1.0)
        return begin(problem, at, target, rng, without, self.tuning, fixed_mu=mu)


@dataclass(frozen=True)
class BlockNewton:
    """Newton's method on the primal of a problem with K outputs."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, SMOOTH_LOSS, QUADRATIC_PENALTY, KNOWN_LOSS)
    side: ClassVar[str] = "primal"

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> newton.NewtonRun:
        """Begin at w, or at what fits x, or at zero."""
        p = _start(problem, at)
        w = np.zeros((p.d, p.K)) if at.w is None else at.w
        if at.w is None and at.x is not None:
            w = p.omega(at.x)
        return newton.NewtonRun(p, w, p.check_b(0.0 if at.b is None else at.b))


@dataclass(frozen=True)
class BlockAuto:
    """Sweeps over blocks where the dual can be solved by them, else sets, one by one, or AFG.

    without  ideas to leave out: "newton", "one_by_one", "momentum", "visits", "shrinking",
             "settling"
    """

    without: tuple[str, ...] = ()
    tuning: TuningK = MANY
    name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = (MANY_OUTPUTS,)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(PARTS))
        if unknown:
            raise ValueError(f"without: got {unknown}, expected some of {', '.join(PARTS)}.")

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin at x, or at what fits w, or at zero."""
        swept = DUAL_BLOCKS.holds(problem)
        alone = "one_by_one" not in self.without and (not swept or _makes_zeros(problem))
        for method, fits, why in (
            (OutputsGroupSet(), True, "the penalty chooses rows of W"),
            (ClassSet(), not swept, "the penalty chooses entries of W"),
            (OneByOne(), alone, "each output is a problem of its own"),
            (AFGMethod(), not swept, "no sweep over blocks knows this loss with this penalty"),
        ):
            if fits and unmet(method, problem) is None:
                return Named(method.start(problem, at, target, rng), method.name, why)
        p = _start(problem, at)
        small = "newton" not in self.without and newton.applies(p)
        ended_so = at.side == "primal" and at.w is not None

        def sweeps(at: Start) -> DualRun:
            return begin(p, at, target, rng, self.without, self.tuning)

        why = f"sweeps over blocks of {p.K} outputs"
        if not small:
            return Named(sweeps(at), "dual", why)
        if ended_so or newton.at_once(p):
            w = np.zeros((p.d, p.K)) if at.w is None else at.w
            first = newton.NewtonRun(p, w, p.check_b(0.0 if at.b is None else at.b))
            why = f"{p.n_samples:,} samples for {p.d * p.K:,} numbers of W"
            return BlockPlan(p, first, target, sweeps, why)
        return BlockPlan(p, sweeps(at), target, sweeps, why)


def _makes_zeros(problem: ERM) -> bool:
    """Whether a smooth problem has L1 enough for working sets to be faster than dual sweeps.

    Squared loss, 200 x 1,000 with 20 outputs: 0.08 of the time of the sweeps with l1_ratio = 0.9,
    0.5 with 0.5; 2,000 x 100 with 0.1: 1.4 times.
    """
    soft = getattr(problem, "soft", None)
    return soft is not None and problem.loss.gamma > 0 and soft[0] >= soft[1]


class Named(Run):
    """A run, and why it was chosen."""

    def __init__(self, run: Run, name: str, why: str) -> None:
        self._run, self._name, self._note = run, name, f"{name}: {why}"
        self.advance, self.point, self.seen = run.advance, run.point, run.seen  # type: ignore[method-assign]
        self.finish, self.resume = run.finish, run.resume  # type: ignore[method-assign]

    @property
    def report(self) -> Report:
        """That of the run, with its name and the reason."""
        said = self._run.report
        return replace(said, at_work=self._name, notes=[self._note, *said.notes])


class BlockPlan(Run):
    """Sweeps over blocks, until Newton's method would take less time than what is left of them.

    Where that gets no further, `sweeps` go on from its answer.
    """

    def __init__(
        self,
        problem: Outputs,
        run: DualRun | newton.NewtonRun,
        target: Target,
        sweeps: Callable[[Start], DualRun],
        why: str,
    ) -> None:
        self.problem, self._target, self._sweeps = problem, target, sweeps
        #: what was chosen and why, in words
        self.notes: list[str] = []
        self._take(run, f"{{}}: {why}")
        self._failed = False
        self._cost, self._sweep = newton.cost(problem), newton.sweep_cost(problem)
        self._passes, self._gaps = 0, [(0, math.inf)]

    def _take(self, run: DualRun | newton.NewtonRun, note: str) -> None:
        """Go on with another run; {} in the note stands for its name."""
        self._run: DualRun | newton.NewtonRun = run
        self.at_work = "dual" if isinstance(run, DualRun) else "newton"
        self.notes.append(note.format(self.at_work))
        if isinstance(run, DualRun):
            run.notes = self.notes

    @property
    def report(self) -> Report:
        """That of the method at work, with mu = 1 if it has no momentum, and what was chosen."""
        said = self._run.report
        mu = 1.0 if math.isnan(said.mu) else said.mu
        return replace(said, at_work=self.at_work, mu=mu, notes=self.notes)

    def advance(self, budget: Budget) -> Work:
        """Go on with the method at work; the estimate of the gap is watched between stretches."""
        spent = 0
        while True:
            stretch = min(budget.passes - spent, max(4, self._passes // 4))
            work = self._run.advance(replace(budget, passes=stretch))
            spent, self._passes = spent + work.passes, self._passes + work.passes
            if isinstance(self._run, newton.NewtonRun) and self._run.stuck:
                self._go_back(self._run)
                return Work(spent)
            estimate = self._run.report.estimate
            if estimate is None:
                return Work(spent)
            if self._leaves(estimate):
                found = self._run.point()
                assert found.x is not None
                w = self.problem.g.conjugate_gradient(self.problem.v_of(found.x))
                made = newton.NewtonRun(self.problem, w, np.asarray(found.b))
                self._take(made, "dual -> {}: less time than what is left, by the observed rate")
                return Work(spent)
            if spent >= budget.passes or budget.expired:
                return Work(spent)

    def _go_back(self, run: newton.NewtonRun) -> None:
        """Sweeps from where Newton's method is, unless only rounding is left."""
        found = certify(self.problem, run.point().bare())
        if found.relative > max(self._target.tol, ROUNDING):
            self._failed = True
            sweeps = self._sweeps(Start(found.x, found.w, found.b))
            self._take(sweeps, "newton -> {}: it got no further")

    def _leaves(self, gap: float) -> bool:
        """Whether the dual, at the rate of the last half of the run, takes longer than Newton."""
        t = newton.TUNING
        early = self._passes * self._sweep < t.earliest * self._cost
        if self._failed or early or not 0 < gap < math.inf:
            return False
        self._gaps.append((self._passes, gap))
        before = [seen for seen in self._gaps if seen[0] <= self._passes / 2][-1]
        if not gap < before[1] < math.inf:
            return before[1] < math.inf
        rate = math.log(before[1] / gap) / (self._passes - before[0])
        left = math.log(max(gap / max(self._target.tol, 1e-12), 1.0)) / rate
        return left * self._sweep > t.margin * self._cost

    def point(self) -> Point | Certificate:
        """The answer of the method at work."""
        return self._run.point()

    def seen(self, certificate: Certificate) -> None:
        """Tell the method at work."""
        self._run.seen(certificate)
