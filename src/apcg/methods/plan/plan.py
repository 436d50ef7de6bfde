"""`auto`: a plan. A method that chooses a method, watches it, and replaces it by a better one.

`rules` has which method is the first, `watch` and `run` when another one takes over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._base.validation import choice
from ...certify.points import Start
from ...problems.erm import ERM
from ..base import (
    DUAL_BLOCKS,
    IN_MEMORY,
    SMOOTH_OR_SEPARABLE,
    Method,
    Needs,
    Run,
    Target,
    check_dual_start,
    unmet,
)
from ..dual.method import begin
from ..dual.tuning import MANY, PARTS, TuningK
from ..interior import general as interior
from ..newton import many_outputs as newton_k
from ..paper import adaptive
from ..paper.adaptive.tuning import AdaptiveTuning
from ..paper.afg import AFGMethod
from .case import Case
from .rules import choose
from .run import PlanRun
from .run_k import SLOWER, BlockPlan, Named, factors
from .watch import PlanTuning, Watch

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
        parts = (self.without, self.tuning, self.adaptive, self.outputs)
        return choose(Case(problem, at, tol, *parts, plan=self))

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin with the method that fits; where a plan ended with Newton's method, with that."""
        first, why = self.first(problem, at, target.tol)
        if problem.K > 1:
            return self._start_k(problem, at, target, rng, first, why)
        primal = first.name in ("newton", "newton_ids", "working_set") and problem.dual_form
        if primal and at.w is None and at.x is not None:
            at = replace(at, w=problem.omega(check_dual_start(problem, at.x)))
        run = first.start(problem, at, target, rng)
        tight = target.tol < self.tuning.tight
        final = (
            first.name in ("newton", "newton_ids", "span") and not tight
        )  # nothing to change over to
        watch = None
        if problem.box is None and not final and "newton" not in self.without:
            watch = Watch(problem, target, self.tuning)
        polish = tight and watch is not None and watch.affordable
        left_out = "orthogonal" in self.without
        return PlanRun(problem, run, watch, polish, target, rng, first.name, why, left_out)

    def _start_k(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        first: Method,
        why: str,
    ) -> Run:
        run = first.start(problem, at, target, rng)
        watched = first.name in ("dual", "newton", "interior") and problem.box is None
        watched = watched or (first.name in SLOWER and interior.applies(problem))
        other = factors(problem) if first.name == "dual" else first.name
        if first.name == "newton" and not newton_k.applies(problem):
            watched = False
        if not watched or "newton" in self.without or not other:
            return Named(run, first.name, why)

        def sweeps(at: Start) -> Run:
            if DUAL_BLOCKS.holds(problem):
                return begin(problem, at, target, rng, self.without, self.outputs)
            return AFGMethod().start(problem, at, target, rng)

        goes_on = DUAL_BLOCKS.holds(problem) or unmet(AFGMethod, problem) is None
        return BlockPlan(problem, run, target, other, sweeps if goes_on else None, why, rng)
