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
    IN_MEMORY,
    SMOOTH_OR_SEPARABLE,
    Method,
    Needs,
    Run,
    Target,
    check_dual_start,
)
from ..dual.tuning import MANY, PARTS, TuningK
from ..paper import adaptive
from ..paper.adaptive.tuning import AdaptiveTuning
from .case import Case
from .rules import choose
from .run import PlanRun
from .watch import BlockWatch, PlanTuning, Watch, factors

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
        primal = first.name in ("newton", "newton_ids", "working_set") and problem.dual_form
        if primal and at.w is None and at.x is not None:
            at = replace(at, w=problem.omega(check_dual_start(problem, at.x)))
        run = first.start(problem, at, target, rng)
        watch, tight = self._watch(problem, target, first.name), target.tol < self.tuning.tight
        return PlanRun(
            problem, run, target, rng, first.name, why, watch,
            polish=tight and watch is not None and watch.affordable,
            alone=problem.K > 1 and (self._unwatched(problem) or first.name == "one_by_one"),
            left_out="orthogonal" in self.without,
        )  # fmt: skip

    def _watch(self, problem: ERM, target: Target, first: str) -> Watch | BlockWatch | None:
        """What says when to leave the dual; None where there is nothing to change over to."""
        if self._unwatched(problem):
            return None
        if problem.K > 1:
            leaves = first == "dual" and factors(problem)
            return BlockWatch(problem, target) if leaves else None
        final = first in ("newton", "newton_ids", "span") and target.tol >= self.tuning.tight
        return None if final else Watch(problem, target, self.tuning)

    def _unwatched(self, problem: ERM) -> bool:
        return problem.box is not None or "newton" in self.without
