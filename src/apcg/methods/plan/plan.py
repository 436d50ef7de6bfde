"""`auto`: a plan. A method that chooses a method, watches it, and replaces it by a better one.

Which method it starts with follows from the problem:

    quadratic penalty, smooth loss, many more samples than features   Newton's method ...
    ... but L2 with a lambda so large that few sweeps will do         lean dual sweeps
    quadratic penalty, squared loss, a cheap Gram matrix              Newton's method
    L2, X so large that the rounding of X X' hides lambda             orthogonal coordinates
    L2, dense, few samples with many features                         either, in their span
    L2 otherwise                                                      lean dual sweeps
    an L1 part, smooth loss                                           working sets
    L1, hinge or epsilon-insensitive loss                             interior points
    elastic net with these losses, where a matrix is cheap            interior points
    bounds, weights of features                                       adaptive coordinate steps
    a penalty that is no sum over features                            AFG

`watch` has when another method takes over.
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
    ONE_OUTPUT,
    Budget,
    Method,
    Need,
    Needs,
    Report,
    Run,
    Target,
    Work,
    check_dual_start,
    unmet,
)
from ..dual.method import DualSweeps
from ..dual.tuning import PARTS
from ..interior.interior import Interior, InteriorRun
from ..interior.interior_l1 import LARGEST, InteriorL1
from ..newton.newton import Newton, NewtonTuning
from ..paper import adaptive
from ..paper.adaptive import AdaptiveMethod
from ..paper.adaptive.tuning import AdaptiveTuning
from ..paper.afg import AFGMethod
from ..reductions.orthogonal import Orthogonal, hidden, is_cheap
from ..reductions.row_space import Span
from ..reductions.smoothing import Smoothing
from ..sparse import WorkingSet
from ..sparse.groups.method import GroupSet
from . import predicted
from .watch import PlanTuning, Watch, interior_applies

#: What can be left out of the plan.
IDEAS = (
    "newton",
    "dual",
    "span",
    "orthogonal",
    "working_set",
    *dict.fromkeys((*PARTS, *adaptive.IDEAS)),
)

#: A gap of so many times |P| says that no digit of x is right: it is no place to go on from.
LOST = 1e16

SOLVABLE = Need(
    "a smooth loss, or a penalty that is a sum over features",
    lambda p: p.separable or p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth and penalty {p.penalty} is no such sum",
)


#: Where the rounding of X X' is this part of lambda gamma n, a factor may lack digits.
DOUBTFUL = 1e-9
#: A method that is stuck at this relative gap has come to the end of what rounding leaves.
ROUNDED = 1e-9


@dataclass(frozen=True)
class Auto:
    """The plan. `without` leaves out methods ("newton", "dual") and ideas of those it takes."""

    without: tuple[str, ...] = ()
    tuning: PlanTuning = PlanTuning()
    adaptive: AdaptiveTuning = AdaptiveTuning()
    name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = (ONE_OUTPUT, SOLVABLE)

    def __post_init__(self) -> None:
        for idea in self.without:
            choice(idea, "without", IDEAS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> PlanRun:
        """Begin with the method that fits; where a plan ended with Newton's method, with that."""
        first, why = self.first(problem, at, target.tol)
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
        left_out = "orthogonal" in self.without
        return PlanRun(problem, run, watch, polish, target, rng, first.name, why, left_out)

    def first(self, problem: ERM, at: Start, tol: float = 1e-6) -> tuple[Method, str]:
        """The method to start with, and why."""
        if "working_set" not in self.without and unmet(GroupSet(), problem) is None:
            return GroupSet(alone=False), "the penalty makes groups of weights zero"
        if not problem.separable:
            return AFGMethod(), "the penalty is no sum over features"
        if not problem.loss.compiled:
            return AFGMethod(), "the loss is known by its functions only"
        shape = f"{problem.n_samples:,} samples for {problem.d:,} features"
        smooth = "newton" not in self.without and unmet(Newton(), problem) is None
        if "orthogonal" not in self.without and self._is_raw(problem):
            return Orthogonal(), "lambda is less than the rounding of X X'"
        if smooth:
            if at.side == "primal":
                return Newton(), "the run before ended in the primal"
            if (why := self._is_tall(problem, shape)) and not self._is_easy(problem, at, tol):
                return Newton(), why
        if "working_set" not in self.without and (found := self._sparse(problem)) is not None:
            return found
        if "span" not in self.without and self._is_wide(problem):
            most = (
                math.inf if "orthogonal" in self.without else self.tuning.spent * problem.n_samples
            )
            return Span(self._in_span(problem, smooth), most=most), f"only {shape}"
        left_out = {idea for idea in self.without if idea in PARTS}
        tall = problem.n >= self.tuning.interior_tall * problem.d
        if tall and "newton" not in self.without and interior_applies(problem, self.tuning):
            if predicted.interior(problem, np.arange(problem.n_samples)) <= self.tuning.tiny:
                return Interior(), f"{shape}, so few that the fewest steps count"
            left_out.add("momentum")  # the interior point method is there for what is slow
            shape += ", and the interior point method for what is slow"
        lean = DualSweeps(tuple(left_out))
        need = unmet(lean, problem)
        if "dual" not in self.without and need is None:
            return lean, shape
        others = tuple(idea for idea in self.without if idea in adaptive.IDEAS)
        why = "the dual is left out" if need is None else f"dual needs {need.what}"
        return AdaptiveMethod(others, self.adaptive), why

    def _sparse(self, problem: ERM) -> tuple[Method, str] | None:
        """The method for a penalty with an L1 part, if there is one for the loss."""
        if not problem.interval.a.any():  # with bounds alone there are no zeros to gain by
            return None
        kinks = unmet(InteriorL1(), problem) is None
        cost = predicted.interior_l1(problem) if kinks else math.inf
        if unmet(WorkingSet(), problem) is None:
            most = self.tuning.tried * cost / max(predicted.working_set_pass(problem), 1.0)
            why = "the penalty makes weights zero, and the loss is smooth"
            return WorkingSet(alone=False, most=most), why
        sweeps = self.tuning.interior_l1 * (costs.lean_sweep(problem) + costs.RATES.call)
        if kinks and (cost <= sweeps or not problem.dual_form):
            return InteriorL1(), "the penalty makes weights zero, and the loss has kinks"
        return None

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

    def _is_easy(self, problem: ERM, at: Start, tol: float) -> bool:
        """Whether lambda is so large that a few dual sweeps take less time than Newton's method."""
        if not at.is_cold or "dual" in self.without or unmet(DualSweeps(), problem) is not None:
            return False
        if problem.loss.eta == problem.loss.gamma:  # the squared loss: one factor
            return False
        if problem.intercept and tol < self.tuning.easy_free:
            return False
        return predicted.easy_sweeps(problem, tol) < predicted.newton(problem, tol)

    def _is_raw(self, problem: ERM) -> bool:
        """Whether X is so large that X X' cannot show lambda.

        With many samples and phi'' without jumps Newton's method is tried first: X'X scaled to a
        unit diagonal may do, and where it does not, it gets stuck soon.
        """
        if hidden(problem) < self.tuning.hidden or unmet(Orthogonal(), problem) is not None:
            return False
        return problem.n_samples < problem.d or not _bends_evenly(problem.loss)

    def _in_span(self, problem: ERM, smooth: bool) -> Method:
        """What solves the small problem.

        With about as many samples as unknowns, Newton's method may go round between the pieces of
        a loss whose phi'' jumps (squared hinge on alon, lambda 1e-6: 1.2 s in place of 17 ms).
        """
        loss = problem.loss
        if smooth and _bends_evenly(loss):
            return Newton(NewtonTuning(direct=math.inf))
        return DualSweeps() if loss.gamma > 0 and unmet(DualSweeps(), problem) is None else self

    def _is_wide(self, problem: ERM) -> bool:
        """Whether the samples are few, dense and long."""
        t, n = self.tuning, problem.n_samples
        constant = problem.loss.eta == problem.loss.gamma
        passes = predicted.inner_products(problem) / costs.dense_sweep(problem)
        return (
            problem.d >= t.wide * n
            and passes <= t.span[0 if constant else 1]
            and unmet(Span(self), problem) is None
        )


def _bends_evenly(loss: Any) -> bool:
    """Whether phi'' has no jumps: the squared and the logistic loss."""
    return bool(loss.gamma > 0 and (loss.eta == loss.gamma or loss.kinks.size == 0))


class PlanRun(Run):
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
        left_out: bool = False,
    ) -> None:
        self._left_out = left_out  # orthogonal coordinates
        self.problem, self.target, self._rng = problem, target, rng
        self._run, self._watch, self._polish = run, watch, polish
        #: The method at work, by name.
        self.at_work = name
        #: What was chosen and why, in words.
        self.notes = [f"{name}: {why}"]
        self._passes, self._on_kept_rows, self._came_back = 0, False, False
        self._stuck = False  # nothing is left to try
        self._spent = 0.0  # in sweeps of runs that were replaced, in ns

    @property
    def report(self) -> Report:
        """That of the method at work, with mu = 1 if it has no momentum, and what was chosen."""
        said = self._run.report
        mu = said.mu if math.isfinite(said.mu) else 1.0
        return replace(said, at_work=self.at_work, mu=mu, stuck=self._stuck, notes=self.notes)

    def advance(self, budget: Budget) -> Work:
        """Go on with the method at work.

        The lean sweeps return when a look can pass. In between their own estimate of the gap is
        watched, a few times while the passes double.
        """
        spent = 0
        while True:
            stretch = budget.passes - spent
            sweeps = None
            if self._run.report.estimates:
                stretch = min(stretch, max(2, self._passes // 4))
                sweeps = 8  # of few rows a pass is many sweeps
            work = self._run.advance(replace(budget, passes=stretch, sweeps=sweeps))
            spent += work.passes
            self._passes += work.passes
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
        said = self._run.report
        stuck = said.stuck
        again = self._on_kept_rows and self._came_back
        if again or (stuck and self._on_kept_rows):  # the rows left out are needed, or their digits
            self._on_kept_rows = False
            if not self._doubtful:
                self._change("interior", InteriorRun(self.problem, self.target), "on all samples")
                return
            stuck = True
        if stuck:  # it would be again
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
            general = None if rounded else self._fallback(stuck)
            if general is None:
                self._stuck = True
                return
            run = general.start(self.problem, at, self.target, self._rng)
            self._change(general.name, run, why)
        elif self._leaves(certificate.relative):
            self._replace(certificate)

    def _fallback(self, stuck: bool) -> Method | None:
        """What goes on after the method at work: one that asks for less, and always gets on."""
        if stuck and self._last is not None and (self.at_work != "interior" or self._doubtful):
            return None if self.at_work == "orthogonal" else self._last
        if stuck and self.at_work == "interior":  # its points came too close to their bounds
            return Smoothing()
        p = self.problem
        small = min(p.n_samples, p.d) <= LARGEST
        sparse = stuck and small and self.at_work == "working_set"
        if sparse and unmet(InteriorL1(), p) is None:  # a loss with kinks
            return InteriorL1()
        if not self.problem.separable:
            return AFGMethod()
        others: tuple[Method, ...] = (DualSweeps(), AdaptiveMethod())
        return next((m for m in others if unmet(m, self.problem) is None), None)

    @cached_property
    def _last(self) -> Method | None:
        """For what has too few digits for all others; None if it does not apply."""
        fits = not self._left_out and unmet(Orthogonal(), self.problem) is None
        return Orthogonal() if fits else None

    @cached_property
    def _doubtful(self) -> bool:
        """Whether a factor may lack digits, and `_last` has them."""
        return self._last is not None and hidden(self.problem) >= DOUBTFUL

    def _leaves(self, gap: float) -> bool:
        """Whether another method should take over, at this relative gap."""
        said = self._run.report
        if self._watch is None or said.side != "dual":
            return False
        spent = None if said.spent is None else self._spent + said.spent
        return self._watch.leave(self._passes, gap, said.rows_left, spent)

    def _replace(self, found: Point | Certificate) -> None:
        """Go on with the interior point method on the rows kept, or with Newton's."""
        assert self._watch is not None
        said = self._run.report
        self._spent += said.spent or 0.0
        if self._watch.smooths:
            run: Run = Smoothing().start(self.problem, Start(), self.target, self._rng)
            self._change("smoothing", run, self._watch.why)
            return
        if self._watch.interior:
            keep = said.rows_left
            self._on_kept_rows = keep is not None and keep.size < self.problem.n
            run = InteriorRun(self.problem, self.target, free=keep, x=found.x)
            self._change("interior", run, self._watch.why)
            return
        pieces = not _bends_evenly(self.problem.loss)  # Newton's method may go round between them
        if pieces and self._doubtful and is_cheap(self.problem):
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
        self.notes.append(f"{self.at_work} -> {name}: {why}")
        self.at_work, self._run = name, run

    def _newton(self, w: Vector, b: float) -> Run:
        at = Start(w=w, b=b if self.problem.intercept else None)
        return Newton().start(self.problem, at, self.target, self._rng)

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
        if self._polish and converged and not exact:
            run = self._newton(certificate.w, certificate.b)
            run.advance(Budget(1))
            return run.point().bare()
        return self._run.finish(certificate, converged)

    def resume(self, problem: ERM, target: Target, w: Vector | None = None) -> Run | None:
        """The method at work alone goes on: the next plan chooses anew."""
        return self._run.resume(problem, target, w)
