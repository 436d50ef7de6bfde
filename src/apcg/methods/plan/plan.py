"""`auto`: a plan. A method that chooses a method, watches it, and replaces it by a better one.

`rules` has which method is the first; `watch` says when another one would take less time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..._base.validation import Vector, choice
from ...certify.points import Certificate, Point, Start
from ...problems import costs
from ...problems.erm import ERM
from ..base import (
    IN_MEMORY,
    SMOOTH_OR_SEPARABLE,
    Budget,
    Method,
    Needs,
    Report,
    Run,
    Target,
    Work,
    check_dual_start,
    unmet,
)
from ..dual.method import DualSweeps
from ..dual.tuning import MANY, PARTS, TuningK
from ..interior import general
from ..interior.interior import InteriorRun
from ..interior.interior_l1 import LARGEST, InteriorL1
from ..newton.many_outputs import BlockNewton
from ..newton.newton import Newton
from ..paper import adaptive
from ..paper.adaptive import AdaptiveMethod
from ..paper.adaptive.tuning import AdaptiveTuning
from ..paper.afg import AFGMethod
from ..reductions.orthogonal import Orthogonal, is_cheap
from ..reductions.smoothing import Smoothing
from ..sparse import ClassSet
from .rules import choose
from .watch import (
    BlockWatch,
    PlanTuning,
    Watch,
    bends_evenly,
    factors,
    most_passes,
    sets_at_last,
)

#: A gap of so many times |P| says that no digit of x is right: it is no place to go on from.
LOST = 1e16
#: Where the rounding of X X' is this part of lambda gamma n, a factor may lack digits.
DOUBTFUL = 1e-9
#: Passes of the dual before its estimate is watched, at least, and sweeps, since of few rows a pass
#: is many sweeps; the same for K outputs.
STRETCH: tuple[tuple[int, int | None], ...] = (2, 8), (4, None)
#: A method that is stuck at this relative gap has come to the end of what rounding leaves.
ROUNDED = 1e-9


#: What can be left out of the plan.
IDEAS = (
    "newton",
    "dual",
    "span",
    "orthogonal",
    "working_set",
    "one_by_one",
    *dict.fromkeys((*PARTS, *adaptive.IDEAS)),
)


@dataclass(frozen=True)
class Auto:
    """The plan. `without` leaves out methods ("newton", "dual") and ideas of those it takes."""

    without: tuple[str, ...] = ()
    tuning: PlanTuning = PlanTuning()
    adaptive: AdaptiveTuning = AdaptiveTuning()
    outputs: TuningK = MANY
    name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = (IN_MEMORY, SMOOTH_OR_SEPARABLE)

    def __post_init__(self) -> None:
        for idea in self.without:
            choice(idea, "without", IDEAS)

    def first(self, problem: ERM, at: Start, tol: float = 1e-6) -> tuple[Method, str]:
        """The method to start with, and why."""
        return choose(problem, at, tol, self)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin with the method that fits; where a plan ended with Newton's method, with that."""
        first, why = self.first(problem, at, target.tol)
        primal = first.name in ("newton", "newton_ids", "working_set") and problem.dual_form
        if primal and at.w is None and at.x is not None:
            at = replace(at, w=problem.omega(check_dual_start(problem, at.x)))
        run = first.start(problem, at, target, rng)
        watch, tight = self._watch(problem, target, first.name), target.tol < self.tuning.tight
        return PlanRun(
            problem, run, target, rng, first.name, why, watch,
            polish=tight and watch is not None and watch.affordable,
            alone=first.name == "scaled"
            or (problem.K > 1 and (self._unwatched(problem) or first.name == "one_by_one")),
            left_out="orthogonal" in self.without,
        )  # fmt: skip

    def _watch(self, problem: ERM, target: Target, first: str) -> Watch | BlockWatch | None:
        """What says when to leave the dual; None where there is nothing to change over to."""
        if self._unwatched(problem) or first == "scaled":
            return None
        if problem.K > 1:
            leaves = first == "dual" and (factors(problem) or sets_at_last(problem))
            return BlockWatch(problem, target) if leaves else None
        final = first in ("newton", "newton_ids", "span") and target.tol >= self.tuning.tight
        return None if final else Watch(problem, target, self.tuning)

    def _unwatched(self, problem: ERM) -> bool:
        return problem.reach > 0 or "newton" in self.without


class PlanRun(Run):
    """The method at work, what is known of it, and what may replace it."""

    def __init__(
        self,
        problem: ERM,
        run: Run,
        target: Target,
        rng: np.random.Generator,
        name: str,
        why: str,
        watch: Watch | BlockWatch | None = None,
        *,
        polish: bool = False,
        alone: bool = False,
        left_out: bool = False,
    ) -> None:
        #: orthogonal coordinates are not to be taken; no other method is
        self._left_out, self._alone = left_out, alone
        self.problem, self.target, self._rng = problem, target, rng
        self._run, self._watch, self._polish = run, watch, polish
        #: The method at work, by name.
        self.at_work = name
        #: What was chosen and why, in words.
        self.notes = [f"{name}: {why}"]
        self._passes, self._on_kept_rows, self._came_back = 0, False, False
        self._stuck = False  # nothing is left to try
        #: whether the general interior points are, or were, at work
        self._rescued = problem.K > 1 and name == "interior"
        self._spent = 0.0  # in sweeps of runs that were replaced, in ns
        self._latest = self._last_pass()
        self._step = 0  # passes of the last stretch of a method that is not told when to end

    def _last_pass(self) -> float:
        """Passes after which general interior points take over: enough are left for them."""
        if self._alone or self._rescued:
            return math.inf
        kept = general.kept(self.problem, self.target)
        if kept == math.inf:
            return math.inf
        last = max(self.target.max_passes - kept, self._passes)
        return min(last, self._passes + most_passes(self.problem, self.at_work))

    @property
    def report(self) -> Report:
        """That of the method at work, with mu = 1 if it has no momentum, and what was chosen."""
        said = self._run.report
        mu = said.mu if math.isfinite(said.mu) else 1.0
        notes = [*self.notes, *said.notes]
        stuck = self._stuck or (self._alone and said.stuck)
        # a plan inside another one wants a look, to change over to another method
        estimate = said.estimate if self._passes < self._latest else None
        made = replace(said, at_work=self.at_work, mu=mu, estimate=estimate)
        return replace(made, stuck=stuck, notes=notes)

    def advance(self, budget: Budget) -> Work:
        """Go on with the method at work.

        Dual sweeps return when a look can pass. In between their own estimate of the gap is
        watched, a few times while the passes double.
        """
        spent = 0
        while True:
            stretch = budget.passes - spent
            if self._passes < self._latest < math.inf:
                stretch = min(stretch, math.ceil(self._latest) - self._passes)
            sweeps, said = None, self._run.report
            many = self.problem.K > 1
            blind = many and self._latest < math.inf and not said.knows_its_gap
            if said.estimates or blind:
                fewest, sweeps = STRETCH[many]
                stretch = min(stretch, max(fewest, self._passes // 4))
            work = self._run.advance(replace(budget, passes=stretch, sweeps=sweeps))
            spent += work.passes
            self._passes += work.passes
            self._step = 0 if said.knows_its_gap else work.passes
            if self._passes >= self._latest:
                return Work(spent)
            estimate = self._run.report.estimate
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
        if self._alone:
            return
        said = self._run.report
        stuck = said.stuck
        late = self._passes + self._step >= self._latest
        if late and certificate.relative > self.target.tol:
            self._rescue("it takes longer than predicted, or than max_epochs")
            return
        again = self._on_kept_rows and self._came_back
        if again or (stuck and self._on_kept_rows):  # rows left out matter
            self._on_kept_rows = False
            if not self._doubtful:
                self._change("interior", InteriorRun(self.problem, self.target), "on all samples")
                return
            stuck = True
        if stuck:  # a method that is stuck will not move again
            self._watch = None
        if self._on_kept_rows or stuck:  # the rows left out were not at rest after all
            self._came_back = self._on_kept_rows
            self._on_kept_rows = False
            b = certificate.b if self.problem.intercept else None
            lost = not certificate.gap <= LOST * abs(certificate.primal)
            at = Start(b=b) if lost else Start(x=certificate.x, w=certificate.w, b=b)
            reason = said.why or "it got stuck"
            why = reason if stuck else "samples that were left out matter after all"
            rounded = stuck and certificate.relative <= ROUNDED and not said.lacks_digits
            can = not self._rescued and self._last is None and general.applies(self.problem)
            if stuck and not rounded and can:
                self._rescue(why)
                return
            other = None if rounded else self._fallback(stuck)
            if other is None or other.name == self.at_work:
                self._stuck = True
                return
            run = other.start(self.problem, at, self.target, self._rng)
            self._change(other.name, run, why)
        elif self._leaves(certificate.relative):
            self._replace(certificate)

    def _rescue(self, why: str) -> None:
        """General interior points take over to the end: they nearly always arrive."""
        self._rescued, self._watch, self._on_kept_rows = True, None, False
        self._change("interior", general.InteriorKRun(self.problem, self.target), why)

    def _fallback(self, stuck: bool) -> Method | None:
        """The method for when the one at work gets no further: it needs less of a problem."""
        if stuck and self._last is not None and (self.at_work != "interior" or self._doubtful):
            return None if self.at_work == "orthogonal" else self._last
        if stuck and self.at_work == "least_squares":  # rounding is all that is left
            return None
        p = self.problem
        if stuck and self.at_work == "interior" and p.K == 1:  # too close to its bounds
            return Smoothing() if unmet(Smoothing, p) is None else None
        small = min(p.n_samples, p.d) <= LARGEST
        sparse = stuck and small and self.at_work == "working_set"
        if sparse and unmet(InteriorL1, p) is None:  # a loss with kinks
            return InteriorL1()
        others: tuple[Method, ...] = (DualSweeps(), AdaptiveMethod(), AFGMethod())
        return next((m for m in others if unmet(m, p) is None), None)

    @cached_property
    def _last(self) -> Method | None:
        """The method for problems on which others lack digits; None if it does not apply."""
        fits = not self._left_out and unmet(Orthogonal, self.problem) is None
        return Orthogonal() if fits else None

    @cached_property
    def _doubtful(self) -> bool:
        """Whether a factor may lack digits, and `_last` has them."""
        return self._last is not None and costs.hidden(self.problem) >= DOUBTFUL

    def _leaves(self, gap: float) -> bool:
        """Whether another method should take over, at this relative gap."""
        said = self._run.report
        if self._watch is None or said.side != "dual":
            return False
        spent = None if said.spent is None else self._spent + said.spent
        return self._watch.leave(self._passes, gap, said.rows_left, spent)

    def _replace(self, found: Point | Certificate) -> None:
        """Go on with interior points, of one output on the rows kept, or with Newton's method."""
        assert self._watch is not None
        said = self._run.report
        self._spent += said.spent or 0.0
        if self._watch.smooths:
            run: Run = Smoothing().start(self.problem, Start(), self.target, self._rng)
            self._change("smoothing", run, self._watch.why)
            return
        if self._watch.interior and self.problem.K > 1:
            self._rescue(self._watch.why)
            return
        if self._watch.sets:
            run = ClassSet().start(self.problem, Start(), self.target, self._rng)
            self._change("working_set", run, self._watch.why)
            return
        if self._watch.interior:
            keep = None if self._watch.whole else said.rows_left
            self._on_kept_rows = keep is not None and keep.size < self.problem.n
            run = InteriorRun(self.problem, self.target, free=keep, x=found.x)
            self._change("interior", run, self._watch.why)
            return
        if self._doubtful and is_cheap(self.problem) and not bends_evenly(self.problem.loss):
            # Newton's method may go round between the pieces of the loss
            run = Orthogonal().start(self.problem, Start(), self.target, self._rng)
            self._change("orthogonal", run, self._watch.why)
            return
        w = found.w
        if w is None:
            assert found.x is not None
            w = self.problem.g.conjugate_gradient(self.problem.v_of(found.x))
        self._change("newton", self._newton(w, found.b), self._watch.why)

    def _change(self, name: str, run: Run, why: str) -> None:
        """Another method is at work from here on."""
        self.notes += [*self._run.report.notes, f"{self.at_work} -> {name}: {why}"]
        self.at_work, self._run = name, run
        self._latest = self._last_pass()

    def _newton(self, w: Any, b: Any) -> Run:
        at = Start(w=w, b=b if self.problem.intercept else None)
        method: Method = Newton() if self.problem.K == 1 else BlockNewton()
        return method.start(self.problem, at, self.target, self._rng)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What a last step of Newton's method, or the method at work, makes of the answer.

        Where the gap is rounding, P tells w to half its digits only; that step gives the others. Of
        columns that are nearly alike a factor does not: then w is found in orthogonal coordinates.
        """
        lacks = converged and self._run.report.lacks_digits
        if lacks and self._last is not None and is_cheap(self.problem):
            again = self._last.start(self.problem, Start(), self.target, self._rng)
            again.advance(Budget(1))
            return again.point().bare()
        constant = self.problem.loss.eta == self.problem.loss.gamma
        exact = self.at_work == "orthogonal" or (self.at_work == "span" and constant)
        exact = exact or self._run.report.exact
        if self._polish and converged and not exact:
            run = self._newton(certificate.w, certificate.b)
            run.advance(Budget(1))
            return run.point().bare()
        return self._run.finish(certificate, converged)

    def resume(self, problem: ERM, target: Target, w: Vector | None = None) -> Run | None:
        """The method at work alone goes on: the next plan chooses anew."""
        return self._run.resume(problem, target, w)
