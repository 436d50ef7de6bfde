"""The plan for an X that is not in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...certify.points import Start
from ...problems import costs
from ...problems.erm import ERM
from ..base import (
    IN_PARTS,
    QUADRATIC_PENALTY,
    SMOOTH_LOSS,
    Method,
    Needs,
    Run,
    Target,
    unmet,
)
from ..newton.newton import Newton
from ..paper.afg import AFGMethod
from ..plan.plan import PlanRun
from .sweeps import PartSweeps

#: Sweeps that a step of Newton's method may cost: it takes about ten steps, sweeps are 10 to 100.
_SWEEPS = 5.0
#: Square matrices of d numbers a side that Newton's method has at a time.
_SQUARES = 4


@dataclass(frozen=True)
class InParts:
    """Newton's method from sums of Gram matrices where d is small; else sweeps over parts.

    Where neither fits (L1 alone, many outputs), gradients of all of X, accelerated.
    """

    name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = (IN_PARTS,)

    def first(self, problem: ERM) -> tuple[Method, str]:
        """The method to take, and why."""
        few = "X comes in parts"
        if problem.K == 1 and _newton_pays(problem):
            return Newton(), f"{few}, and its Gram matrices are small"
        sweeps = PartSweeps()
        if unmet(sweeps, problem) is None:
            return sweeps, f"{few}, some of which are in memory at a time"
        if unmet(AFGMethod, problem) is None:
            return AFGMethod(), f"{few}, which are multiplied with only"
        raise ValueError(
            f"loss {problem.loss.name!r} with penalty {problem.penalty} and {problem.K} outputs "
            "needs all of X in memory. Allow more (memory_limit, --memory), or take a smooth loss "
            '(losses.SmoothedHinge, "huber"), or penalty "l2" or "elasticnet".'
        )

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin with the method that fits."""
        method, why = self.first(problem)
        if method.name == "newton" and at.w is None and at.x is not None:
            at = Start(x=at.x, w=problem.omega(at.x), b=at.b)
        run = method.start(problem, at, target, rng)
        return PlanRun(problem, run, target, rng, method.name, why, alone=True, left_out=True)


def _newton_pays(problem: ERM) -> bool:
    """Whether a step of Newton's method costs no more than some sweeps, and fits into memory."""
    if unmet(Newton, problem) is not None or not _holds(problem):
        return False
    X, d = problem.samples, problem.d
    if 8.0 * _SQUARES * d * d > getattr(X, "room", np.inf):
        return False
    rate = costs.RATES.gram_entry if X.sparse else costs.RATES.gram_dense
    step = rate * X.gram_madds + costs.RATES.cholesky_entry * d**3 / 6
    return step <= _SWEEPS * costs.sweep(problem)


def _holds(problem: ERM) -> bool:
    return QUADRATIC_PENALTY.holds(problem) and SMOOTH_LOSS.holds(problem)
