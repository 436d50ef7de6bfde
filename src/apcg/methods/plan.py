"""`auto`: a plan. A method that chooses a method, watches it, and replaces it by a better one.

It starts with the adaptive dual method. A dual coordinate method pays for every sample, however few
features the samples have in common; Newton's method pays for pairs of features. Which is cheaper
depends on the conditioning, and the gaps seen tell that. At a look with relative gap r, and a rate
of c = log(r_before/r) a pass over the last half of the run or so, the dual still needs log(r/tol)/c
passes. If Newton's method takes less time by the table of `costs`, it takes over.

A penalty that is no sum over features has no dual coordinates: there AFG is the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import choice
from ..certificate import certify, certify_enough
from ..erm import ERM
from ..points import Certificate, Point, Start
from . import adaptive, costs
from .adaptive import AdaptiveMethod
from .adaptive.pair import Pair
from .adaptive.tuning import Tuning
from .afg import AFGMethod
from .base import Budget, Method, Need, Needs, Run, Target, Work, unmet
from .newton import NewtonMethod

#: What can be left out of the plan.
IDEAS = ("newton", "pair", *adaptive.IDEAS)

SOLVABLE = Need(
    "a smooth loss, or a penalty that is a sum over features",
    lambda p: p.separable or p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth and penalty {p.penalty} is no such sum",
)


@dataclass(frozen=True)
class PlanTuning:
    """When Newton's method takes over (docs/decisions/0003-plan.md)."""

    #: Steps of a whole run of Newton's method. 5 to 9 on a9a, covtype and one-hot data.
    steps: float = 7.0
    #: The rate is trusted once this share of Newton's cost is spent: an early one tells little.
    earliest: float = 0.1
    #: A tolerance below this is not reached by either, and does not count in the prediction.
    finest: float = 1e-12
    #: The Hessian takes about the room of the data, at most: d^2 <= room + 2 nnz.
    room: float = 1e6
    #: Below this tolerance all digits of w are wanted: one more step of Newton's method ...
    tight: float = 1e-10
    #: ... if it costs no more than so many passes.
    affordable: float = 20.0


class Watch:
    """The gaps seen in the dual, and whether Newton's method would take less time."""

    def __init__(self, problem: ERM, target: Target, tuning: PlanTuning = PlanTuning()) -> None:
        self._tuning, self._max = tuning, target.max_passes
        self._tol = max(target.tol, tuning.finest)
        self._seen: list[tuple[int, float]] = []
        self._pass, self._step, self._step_passes = costs.sweep(problem), math.inf, math.inf
        small = problem.d**2 <= tuning.room + 2 * problem.samples.nnz
        if small and unmet(NewtonMethod(), problem) is None:
            self._step = costs.newton_step(problem)
            self._step_passes = 1 + costs.in_passes(problem, costs.gram_entries(problem))

    @property
    def affordable(self) -> bool:
        """Whether a step of Newton's method costs no more than a few passes."""
        return self._step <= self._tuning.affordable * self._pass

    @property
    def newton_in_passes(self) -> float:
        """Passes that take as long as a run of Newton's method; infinite if it does not apply."""
        return self._tuning.steps * self._step / self._pass

    def leave(self, passes: int, gap: float) -> bool:
        """Whether to leave the dual, at a relative gap seen after so many passes."""
        if not (math.isfinite(self._step) and gap > self._tol):
            return False
        self._seen.append((passes, math.log(gap)))
        steps, left = self._steps(gap), self._max - passes
        cost = self._step * steps
        if left < self._step_passes * steps or passes * self._pass < self._tuning.earliest * cost:
            return False
        return min(self._passes_left(), left) * self._pass > cost

    def _steps(self, gap: float) -> float:
        """Steps to the tolerance: near the end each doubles the number of digits."""
        most = self._tuning.steps
        return (
            most if gap >= 1 else min(most, 2 + math.log2(1 + math.log(self._tol) / math.log(gap)))
        )

    def _passes_left(self) -> float:
        passes, gap = self._seen[-1]
        before = [seen for seen in self._seen if seen[0] <= passes / 2]
        if not before or before[-1][1] <= gap:
            return math.inf
        rate = (before[-1][1] - gap) / (passes - before[-1][0])
        return (gap - math.log(self._tol)) / rate


@dataclass(frozen=True)
class Auto:
    """The plan. `without` leaves out ideas: "newton", "pair", and those of the adaptive method."""

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
        fits = "newton" not in self.without and unmet(NewtonMethod(), problem) is None
        first: Method = AdaptiveMethod(
            tuple(i for i in self.without if i in adaptive.IDEAS), self.adaptive
        )
        if not problem.separable:
            first = AFGMethod()
        elif at.side == "primal" and fits:
            first = NewtonMethod()
        run = first.start(problem, at, target, rng)
        watch = Watch(problem, target, self.tuning) if fits else None
        pair = None
        if "pair" not in self.without and problem.dual_form and problem.g.is_quadratic:
            known = at.w is not None and at.x is not None
            start = certify(problem, Point(at.w, at.x, at.b or 0.0)) if known else None
            pair = Pair(problem, start, self.adaptive.pair)
        tight = target.tol < self.tuning.tight
        polish = tight and watch is not None and watch.affordable
        return PlanRun(problem, run, watch, pair, polish, target, rng)


class PlanRun:
    """The method at work, what is known of it, and what may replace it."""

    def __init__(
        self,
        problem: ERM,
        run: Run,
        watch: Watch | None,
        pair: Pair | None,
        polish: bool,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.target, self._rng = problem, target, rng
        self._run, self._watch, self._pair = run, watch, pair
        self._polish = polish
        self._own: Certificate | None = None
        self._passes = 0

    @property
    def side(self) -> str:
        """What the method at work is at work on: "dual" or "primal"."""
        return str(getattr(self._run, "side", "primal"))

    @property
    def mu(self) -> float:
        """mu-hat; 1 for a method without momentum of that kind."""
        mu = float(getattr(self._run, "mu", 1.0))
        return mu if math.isfinite(mu) else 1.0

    @property
    def restarts(self) -> int:
        """Of the adaptive method."""
        return int(getattr(self._run, "restarts", 0))

    def advance(self, budget: Budget) -> Work:
        """Go on with the method at work."""
        work = self._run.advance(budget)
        self._passes += work.passes
        return work

    def point(self) -> Point | Certificate:
        """The answer of the method at work, or the best pair so far."""
        if self._pair is None:
            return self._run.point()
        self._own = certify_enough(self.problem, self._run.point(), self.target.tol)
        return self._pair.take(self._own)

    def seen(self, certificate: Certificate) -> None:
        """Tell the method at work, and replace it if another would be faster."""
        if self._own is None:
            self._run.seen(certificate)
        else:
            self._run.seen(self._own.at(exact=self._own.exact or certificate.exact))
        if (
            self._watch
            and self.side == "dual"
            and self._watch.leave(self._passes, certificate.relative)
        ):
            self._watch = None
            at = Start(w=certificate.w, b=certificate.b if self.problem.intercept else None)
            self._run = NewtonMethod().start(self.problem, at, self.target, self._rng)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What a last step of Newton's method, or the method at work, makes of the answer.

        Where the gap is rounding, P tells w to half its digits only; that step gives the others.
        """
        if self._polish and converged:
            at = Start(w=certificate.w, b=certificate.b if self.problem.intercept else None)
            run = NewtonMethod().start(self.problem, at, self.target, self._rng)
            run.advance(Budget(1))
            return run.point().bare()
        finish = getattr(self._run, "finish", None)
        return None if finish is None else finish(certificate, converged)
