"""A plan for K outputs at work: sweeps over blocks, and a method with factors where these are slow.

That is Newton's method for a smooth loss with L2, interior points for all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..._base.validation import Vector
from ...certify.certificate import certify
from ...certify.points import Certificate, Point, Start
from ...losses.base import SIMPLEX, SOFTMAX
from ...problems.erm import ERM
from ..base import Budget, Report, Run, Target, Work
from ..dual.driver import DualRun
from ..interior import general as interior
from ..newton import many_outputs as newton
from ..paper.full import FullRun
from .case import bends_evenly

#: A method with factors that gets no further is at the end of what rounding leaves at this relative
#: gap.
ROUNDING = 1e-9
#: Newton's method may take so many times what it is predicted to take; sets of groups so many times
#: what interior points are: a round of theirs may take as long again.
ROUND, SETS = 2.0, 0.5
#: Methods that interior points take over from, where they do not arrive.
SLOWER = ("group_set", "working_set", "afg")


def factors(problem: ERM) -> str:
    """The method with factors that is for this problem, or "".

    Newton's method may go round between the pieces of the smoothed multiclass hinge.
    """
    if problem.dual_form and newton.applies(problem):
        pieces = problem.loss.kind == SIMPLEX and interior.applies(problem)
        if not (pieces and interior.cost(problem) < newton.cost(problem)):
            return "newton"
    return "interior" if interior.applies(problem) else ""


def slow(problem: ERM, name: str) -> bool:
    """Whether interior points take over early from this method.

    Newton's method is slow where phi'' jumps, sets of groups of a softmax at small alphas.
    """
    loss = problem.loss
    if name == "newton":
        columns = loss.by_output
        return loss.kind == SIMPLEX or (columns and not bends_evenly(loss))
    return name == "group_set" and loss.kind == SOFTMAX


_LESS = "less time than what is left, by the observed rate"


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
    """Sweeps over blocks, until `other` would take less time than what is left of them.

    other   the method with factors: "newton" or "interior"; or "group_set"
    sweeps  goes on from its answer, where that gets no further; None: nothing does
    """

    def __init__(
        self,
        problem: ERM,
        run: Run,
        target: Target,
        other: str,
        sweeps: Callable[[Start], Run] | None,
        why: str,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self._target, self._sweeps = problem, target, sweeps
        self._other, self._rng = other, rng
        #: what was chosen and why, in words
        self.notes: list[str] = []
        cost = newton.cost if other == "newton" else interior.cost
        self._cost, self._sweep = cost(problem), newton.sweep_cost(problem)
        self._passes, self._gaps = 0, [(0, math.inf)]
        self._failed = False
        #: whether interior points can still take over; passes that are kept for them then
        self._rescue, self._kept = interior.applies(problem), interior.kept(problem, target)
        self._take(run, f"{{}}: {why}")

    def _take(self, run: Run, note: str) -> None:
        """Go on with another run; {} in the note stands for its name."""
        self._run = run
        #: whether it is the one with factors
        self._factors = not isinstance(run, DualRun | FullRun)
        rest = "dual" if isinstance(run, DualRun) else "afg"
        self.at_work = self._other if self._factors else rest
        self.notes.append(note.format(self.at_work))
        self._rescue = self._rescue and self.at_work != "interior"
        #: passes after which interior points take over
        self._slow = math.inf
        if self._rescue and self._kept < math.inf:
            self._slow = max(self._passes, self._target.max_passes - self._kept)
            if self._factors and slow(self.problem, self._other):
                share = SETS if self._other == "group_set" else ROUND
                most = self._passes + share * self._cost / self._sweep
                self._slow = min(self._slow, most)
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
            if self._passes < self._slow < math.inf:
                stretch = min(stretch, math.ceil(self._slow) - self._passes)
            work = self._run.advance(replace(budget, passes=stretch))
            spent, self._passes = spent + work.passes, self._passes + work.passes
            said = self._run.report
            if self._rescue and (self._passes >= self._slow or (self._factors and said.stuck)):
                if self._left(self._run):
                    name, self._other = self.at_work, "interior"
                    run = interior.InteriorKRun(self.problem, self._target)
                    self._take(run, f"{name} -> {{}}: it takes longer than predicted")
                self._rescue = False
                return Work(spent)
            if self._factors and said.stuck:
                self._go_back(self._run)
                return Work(spent)
            estimate = said.estimate
            if estimate is None:
                return Work(spent)
            if self._leaves(estimate):
                self._take(self._made(), f"dual -> {{}}: {_LESS}")
                return Work(spent)
            if spent >= budget.passes or budget.expired:
                return Work(spent)

    def _made(self) -> Run:
        """The method with factors, from where the sweeps are if it can."""
        if self._other == "interior":
            return interior.InteriorKRun(self.problem, self._target)
        found = self._run.point()
        assert found.x is not None
        w = self.problem.g.conjugate_gradient(self.problem.v_of(found.x))
        at = Start(w=w, b=found.b if self.problem.intercept else None)
        return newton.BlockNewton().start(self.problem, at, self._target, self._rng)

    def _left(self, run: Run) -> Certificate | None:
        """The certificate of where a run is, unless only rounding is left."""
        found = certify(self.problem, run.point().bare())
        return found if found.relative > max(self._target.tol, ROUNDING) else None

    def _go_back(self, run: Run) -> None:
        """Sweeps from where the method with factors is, unless only rounding is left."""
        found = self._left(run)
        if self._sweeps is not None and found is not None:
            self._failed = True
            sweeps = self._sweeps(Start(found.x, found.w, found.b))
            self._take(sweeps, f"{self._other} -> {{}}: it got no further")

    def _leaves(self, gap: float) -> bool:
        """Whether the dual, at the rate of the last half of the run, takes longer than `other`."""
        early = self._passes * self._sweep < newton.EARLIEST * self._cost
        kept = self._kept if self._kept < math.inf else 0.0
        if self._other == "newton":
            kept += ROUND * self._cost / self._sweep
        room = self._target.max_passes - self._passes - kept
        if self._failed or (early and room > 0) or not 0 < gap < math.inf:
            return False
        self._gaps.append((self._passes, gap))
        before = [seen for seen in self._gaps if seen[0] <= self._passes / 2][-1]
        if not gap < before[1] < math.inf:
            return before[1] < math.inf
        rate = math.log(before[1] / gap) / (self._passes - before[0])
        left = math.log(max(gap / max(self._target.tol, 1e-12), 1.0)) / rate
        late = room <= 0 and left > self._target.max_passes - self._passes
        return late or left * self._sweep > newton.MARGIN * self._cost

    def point(self) -> Point | Certificate:
        """The answer of the method at work."""
        return self._run.point()

    def seen(self, certificate: Certificate) -> None:
        """Tell the method at work."""
        self._run.seen(certificate)

    def resume(self, problem: ERM, target: Target, w: Vector | None = None) -> Run | None:
        """The method at work alone goes on: the next plan chooses anew."""
        return self._run.resume(problem, target, w)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What the method at work has to add."""
        return self._run.finish(certificate, converged)
