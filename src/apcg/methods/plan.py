"""`auto`: a plan. A method that chooses a method, watches it, and replaces it by a better one.

Which method it starts with follows from the problem:

    quadratic penalty, smooth loss, many more samples than features   Newton's method
    quadratic penalty, squared loss, a cheap Gram matrix              Newton's method
    L2, dense, few samples with many features                         either, in their span
    L2 otherwise                                                      lean dual sweeps
    an L1 part, smooth loss                                           working sets
    bounds, weights of features                                       adaptive coordinate steps
    a penalty that is no sum over features                            AFG

A dual method pays for every sample, however few features the samples have in common; Newton's
method pays for pairs of features. Which is cheaper depends on the conditioning, and the gaps seen
tell that. At a relative gap r, and a rate of c = log(r_before/r) a pass over the last half of the
run or so, the dual still needs log(r/tol)/c passes. If Newton's method takes less time by the table
of `costs`, it takes over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._validation import Index, Vector, choice
from ..erm import ERM
from ..points import Certificate, Point, Start
from . import adaptive, costs, lean_setup
from .adaptive import AdaptiveMethod
from .adaptive.tuning import Tuning
from .afg import AFGMethod
from .base import Budget, Method, Need, Needs, Run, Target, Work, check_dual_start, unmet
from .group_set import GroupSet
from .interior import Interior, InteriorRun
from .lean import Lean
from .newton import Newton
from .newton import Tuning as NewtonTuning
from .span import Span
from .working_set import WorkingSet

#: What can be left out of the plan.
IDEAS = (
    "newton",
    "dual",
    "span",
    "working_set",
    *dict.fromkeys((*lean_setup.PARTS, *adaptive.IDEAS)),
)

SOLVABLE = Need(
    "a smooth loss, or a penalty that is a sum over features",
    lambda p: p.separable or p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth and penalty {p.penalty} is no such sum",
)


@dataclass(frozen=True)
class PlanTuning:
    """When Newton's method is taken (docs/decisions/0003-plan.md)."""

    #: Newton's method at once with so many samples for each feature: the dual, raced on a9a,
    #: covtype and one-hot data, was never better by more than noise and up to 3 times slower.
    tall: float = 10.0
    #: ... and at most so many features: a factor of more takes longer than dual sweeps do.
    widest: int = 2000
    #: Squared loss: at once if one Gram matrix costs at most so many passes.
    gram: float = 30.0

    #: Dense samples, fewer than 1/`wide` of the features: in their span, ...
    wide: float = 2.0
    #: ... if their inner products cost at most so many passes (squared loss; other losses). A pass
    #: is n d numbers of `number` ns; a product of the n^2 d/2 takes `product` ns.
    span: tuple[float, float] = (100.0, 15.0)

    #: Steps of a whole run of Newton's method. 5 to 9 on a9a, covtype and one-hot data.
    steps: float = 7.0
    #: The rate is trusted once this share of Newton's cost is spent: an early one tells little.
    #: 0.1 left too early on 7 of 51 random problems, and took up to 3 times longer there.
    earliest: float = 0.5
    #: The rest of the dual must take so many times longer: Newton's steps may be twice as many.
    margin: float = 2.0
    #: With so many samples for each feature the interior point method takes the place of momentum.
    interior_tall: float = 5.0
    #: It needs at most so many features, ...
    interior_widest: int = 1000
    #: ... and this share of its cost spent before: without, it came too early (395 ms, not 83).
    interior_earliest: float = 0.3
    #: A tolerance below this is not reached by either, and does not count in the prediction.
    finest: float = 1e-12
    #: The Hessian takes about the room of the data, at most: d^2 <= room + 2 nnz.
    room: float = 1e6
    #: Below this tolerance all digits of w are wanted: one more step of Newton's method ...
    tight: float = 1e-10
    #: ... if it costs no more than so many passes.
    affordable: float = 20.0


def interior_applies(problem: ERM, tuning: PlanTuning) -> bool:
    """Whether the interior point method is for this problem: its loss, and few enough features."""
    return problem.d <= tuning.interior_widest and unmet(Interior(), problem) is None


def seconds(ns: float) -> str:
    """Nanoseconds of the table of costs, in words."""
    return f"{ns / 1e9:.2g} s" if ns >= 1e9 else f"{ns / 1e6:.2g} ms"


class Watch:
    """The gaps seen in the dual, and whether another method would take less time from here.

    For a smooth loss that is Newton's method. For the hinge and epsilon-insensitive losses it is
    the interior point method on the rows that are still stepped on.
    """

    def __init__(self, problem: ERM, target: Target, tuning: PlanTuning = PlanTuning()) -> None:
        self.problem, self._tuning, self._max = problem, tuning, target.max_passes
        self._tol = max(target.tol, tuning.finest)
        self._seen: list[tuple[float, float]] = []
        #: In words, what the last answer of `leave` was based on.
        self.why = ""
        self._pass = costs.sweep(problem) + costs.RATES.call
        self._step = self._step_passes = math.inf
        small = problem.d**2 <= tuning.room + 2 * problem.samples.nnz
        if small and unmet(Newton(), problem) is None:
            self._step = costs.newton_step(problem)
            self._step_passes = 1 + costs.in_passes(problem, costs.gram_entries(problem))
        self.interior = interior_applies(problem, tuning)

    @property
    def affordable(self) -> bool:
        """Whether a step of Newton's method costs no more than a few passes."""
        return self._step <= self._tuning.affordable * self._pass

    @property
    def newton_in_passes(self) -> float:
        """Passes that take as long as a run of Newton's method; infinite if it does not apply."""
        return self._tuning.steps * self._step / self._pass

    def leave(
        self, passes: int, gap: float, rows: Index | None = None, spent: float | None = None
    ) -> bool:
        """Whether to leave the dual, at a relative gap seen after so many passes.

        `rows` are those that are still stepped on, `spent` is what the passes took, in ns.
        """
        spent = passes * self._pass if spent is None else spent
        possible = self.interior if self._step == math.inf else True
        if not (possible and gap > self._tol):
            return False
        self._seen.append((spent, math.log(gap)))
        left = self._max - passes
        if self._step == math.inf:
            cost = costs.interior(self.problem, self._all if rows is None else rows)
            trusted, margin = self._tuning.interior_earliest * cost, 1.0
        else:
            steps = self._steps(gap)
            if left < self._step_passes * steps:
                return False
            cost = self._step * steps
            trusted, margin = self._tuning.earliest * cost, self._tuning.margin
        if spent < trusted:
            return False
        rest, most = self._time_left(), left * self._pass
        self.why = self._compare(rest, most, cost)
        return min(rest, most) > margin * cost

    def _compare(self, rest: float, most: float, cost: float) -> str:
        """In words, what is left here and what the other method takes, in ns."""
        here = "not within max_epochs" if rest > most else f"{seconds(rest)} left"
        return f"{here} by the observed rate, {seconds(cost)} predicted"

    @property
    def _all(self) -> Index:
        return np.arange(self.problem.n_samples)

    def _steps(self, gap: float) -> float:
        """Steps to the tolerance: near the end each doubles the number of digits."""
        most = self._tuning.steps
        if gap >= 1:
            return most
        return min(most, 2 + math.log2(1 + math.log(self._tol) / math.log(gap)))

    def _time_left(self) -> float:
        """By the rate of the later half, in ns."""
        spent, gap = self._seen[-1]
        before = [seen for seen in self._seen if seen[0] <= spent / 2]
        if not before or before[-1][1] <= gap:
            return math.inf
        rate = (before[-1][1] - gap) / (spent - before[-1][0])
        return (gap - math.log(self._tol)) / rate


@dataclass(frozen=True)
class Auto:
    """The plan. `without` leaves out methods ("newton", "dual") and ideas of those it takes."""

    without: tuple[str, ...] = ()
    tuning: PlanTuning = PlanTuning()
    adaptive: Tuning = Tuning()
    name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = (SOLVABLE,)

    def __post_init__(self) -> None:
        for idea in self.without:
            choice(idea, "without", IDEAS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> PlanRun:
        """Begin with the method that fits; where a plan ended with Newton's method, with that."""
        first, why = self.first(problem, at)
        primal = first.name == "newton" or (first.name == "working_set" and problem.dual_form)
        if primal and at.w is None and at.x is not None:
            at = replace(at, w=problem.omega(check_dual_start(problem, at.x)))
        run = first.start(problem, at, target, rng)
        tight = target.tol < self.tuning.tight
        final = first.name in ("newton", "span") and not tight  # nothing to change over to
        watch = None
        if not final and "newton" not in self.without:
            watch = Watch(problem, target, self.tuning)
        polish = tight and watch is not None and watch.affordable
        return PlanRun(problem, run, watch, polish, target, rng, first.name, why)

    def first(self, problem: ERM, at: Start) -> tuple[Method, str]:
        """The method to start with, and why."""
        if "working_set" not in self.without and unmet(GroupSet(), problem) is None:
            return GroupSet(alone=False), "the penalty makes groups of weights zero"
        if not problem.separable:
            return AFGMethod(), "the penalty is no sum over features"
        shape = f"{problem.n_samples:,} samples for {problem.d:,} features"
        smooth = "newton" not in self.without and unmet(Newton(), problem) is None
        if smooth:
            if at.side == "primal":
                return Newton(), "the run before ended in the primal"
            if why := self._is_tall(problem, shape):
                return Newton(), why
        sparse = "working_set" not in self.without and unmet(WorkingSet(), problem) is None
        if sparse and problem.interval.a.any():  # with bounds alone there are no zeros to gain by
            return WorkingSet(alone=False), "the penalty makes weights zero, and the loss is smooth"
        if "span" not in self.without and self._is_wide(problem):
            return Span(self._in_span(problem, smooth)), f"only {shape}"
        left_out = {idea for idea in self.without if idea in lean_setup.PARTS}
        tall = problem.n >= self.tuning.interior_tall * problem.d
        if tall and "newton" not in self.without and interior_applies(problem, self.tuning):
            left_out.add("momentum")  # the interior point method is there for what is slow
            shape += ", and the interior point method for what is slow"
        lean = Lean(tuple(left_out))
        need = unmet(lean, problem)
        if "dual" not in self.without and need is None:
            return lean, shape
        others = tuple(idea for idea in self.without if idea in adaptive.IDEAS)
        why = "the dual is left out" if need is None else f"dual needs {need.what}"
        return AdaptiveMethod(others, self.adaptive), why

    def _is_tall(self, problem: ERM, shape: str) -> str:
        """Why Newton's method is the fastest from the start; nothing if it is not."""
        t, d = self.tuning, problem.d
        if d > t.widest:
            return ""
        if problem.n >= t.tall * d:
            return shape
        constant = problem.loss.eta == problem.loss.gamma  # phi'' is constant: the squared loss
        entries = costs.gram_entries(problem) + d**3 / 6
        if constant and entries <= t.gram * problem.samples.nnz:
            return "the squared loss has one matrix, and it is cheap"
        return ""

    def _in_span(self, problem: ERM, smooth: bool) -> Method:
        """What solves the small problem.

        With about as many samples as unknowns, Newton's method may go round between the pieces of
        a loss whose phi'' jumps (squared hinge on alon, lambda 1e-6: 1.2 s in place of 17 ms).
        """
        loss = problem.loss
        if smooth and (loss.eta == loss.gamma or loss.kinks.size == 0):
            return Newton(NewtonTuning(direct=math.inf))
        return Lean() if loss.gamma > 0 and unmet(Lean(), problem) is None else self

    def _is_wide(self, problem: ERM) -> bool:
        """Whether the samples are few, dense and long."""
        t, n = self.tuning, problem.n_samples
        constant = problem.loss.eta == problem.loss.gamma
        passes = costs.inner_products(problem) / costs.dense_sweep(problem)
        return (
            problem.d >= t.wide * n
            and passes <= t.span[0 if constant else 1]
            and unmet(Span(self), problem) is None
        )


class PlanRun:
    """The method at work, what is known of it, and what may replace it."""

    def __init__(
        self,
        problem: ERM,
        run: Run,
        watch: Watch | None,
        polish: bool,
        target: Target,
        rng: np.random.Generator,
        name: str,
        why: str,
    ) -> None:
        self.problem, self.target, self._rng = problem, target, rng
        self._run, self._watch, self._polish = run, watch, polish
        #: The method at work, by name.
        self.at_work = name
        #: What was chosen and why, in words.
        self.notes = [f"{name}: {why}"]
        self._passes, self._on_kept_rows = 0, False
        self._spent = 0.0  # in sweeps of runs that were replaced, in ns

    @property
    def at_last(self) -> Run:
        """The run of the method at work."""
        return self._run

    @property
    def side(self) -> str:
        """What the method at work is at work on: "dual" or "primal"."""
        return str(getattr(self._run, "side", "primal"))

    @property
    def knows_its_gap(self) -> bool:
        """Whether the method at work looks at its start itself."""
        return bool(getattr(self._run, "knows_its_gap", False))

    @property
    def mu(self) -> float:
        """mu-hat; 1 for a method without momentum of that kind."""
        mu = float(getattr(self._run, "mu", 1.0))
        return mu if math.isfinite(mu) else 1.0

    @property
    def restarts(self) -> int:
        """How often the method at work dropped its momentum."""
        return int(getattr(self._run, "restarts", 0))

    def advance(self, budget: Budget) -> Work:
        """Go on with the method at work.

        The lean sweeps return when a look can pass. In between their own estimate of the gap is
        watched, a few times while the passes double.
        """
        spent = 0
        while True:
            stretch = budget.passes - spent
            sweeps = None
            if hasattr(self._run, "estimate"):
                stretch = min(stretch, max(4, self._passes // 4))
                sweeps = 8  # of few rows a pass is many sweeps
            work = self._run.advance(replace(budget, passes=stretch, sweeps=sweeps))
            spent += work.passes
            self._passes += work.passes
            estimate = getattr(self._run, "estimate", None)
            if estimate is None or spent >= budget.passes or budget.expired:
                return Work(spent)
            if self._leaves(estimate):
                self._replace(self._run.point())

    def point(self) -> Point | Certificate:
        """The answer of the method at work."""
        return self._run.point()

    def seen(self, certificate: Certificate) -> None:
        """Tell the method at work, and replace it if another would be faster."""
        self._run.seen(certificate)
        stuck = bool(getattr(self._run, "stuck", False))
        if stuck and self._on_kept_rows:  # those left out have no digits to give: x of all rows
            self._on_kept_rows = False
            self._change("interior", InteriorRun(self.problem, self.target), "on all samples")
            return
        if stuck:  # it would be again
            self._watch = None
        if self._on_kept_rows or stuck:  # the rows left out were not at rest after all
            self._on_kept_rows = False
            b = certificate.b if self.problem.intercept else None
            at = Start(x=certificate.x, w=certificate.w, b=b)
            reason = getattr(self._run, "why", "") or "it got stuck"
            why = reason if stuck else "samples that were left out matter after all"
            lean = unmet(Lean(), self.problem) is None
            general: Method = Lean() if lean else AdaptiveMethod()
            general = general if self.problem.separable else AFGMethod()
            run = general.start(self.problem, at, self.target, self._rng)
            self._change(general.name, run, why)
        elif self._leaves(certificate.relative):
            self._replace(certificate)

    def _leaves(self, gap: float) -> bool:
        """Whether another method should take over, at this relative gap."""
        if self._watch is None or self.side != "dual":
            return False
        keep, spent = (getattr(self._run, name, None) for name in ("keep", "spent"))
        if spent is not None:
            spent += self._spent
        return self._watch.leave(self._passes, gap, keep, spent)

    def _replace(self, found: Point | Certificate) -> None:
        """Go on with the interior point method on the rows kept, or with Newton's."""
        assert self._watch is not None
        self._spent += getattr(self._run, "spent", 0.0)
        if self._watch.interior:
            keep = getattr(self._run, "keep", None)
            self._on_kept_rows = keep is not None and keep.size < self.problem.n
            run = InteriorRun(self.problem, self.target, free=keep, x=found.x)
            self._change("interior", run, self._watch.why)
            return
        w = found.w
        if w is None:
            assert found.x is not None
            w = self.problem.g.conjugate_gradient(self.problem._combine(found.x))
        self._change("newton", self._newton(w, found.b), self._watch.why)

    def _change(self, name: str, run: Run, why: str) -> None:
        """Another method is at work from here on."""
        self.notes.append(f"{self.at_work} -> {name}: {why}")
        self.at_work, self._run = name, run

    def _newton(self, w: Vector, b: float) -> Run:
        at = Start(w=w, b=b if self.problem.intercept else None)
        return Newton().start(self.problem, at, self.target, self._rng)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What a last step of Newton's method, or the method at work, makes of the answer.

        Where the gap is rounding, P tells w to half its digits only; that step gives the others.
        """
        if self._polish and converged:
            run = self._newton(certificate.w, certificate.b)
            run.advance(Budget(1))
            return run.point().bare()
        finish = getattr(self._run, "finish", None)
        point: Point | None = None if finish is None else finish(certificate, converged)
        return point
