"""Cross-validation with K outputs: sweeps over blocks, until the estimated gap is small enough.

A score needs W and b to a few digits and no certificate, which would cost as much as several
sweeps. The final fit, with the alpha that was chosen, is certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.validation import Matrix, Vector
from ..certify.points import Start
from ..methods.base import Budget, Target, unmet
from ..methods.dual.method import BlockSDCA, begin
from ..problems.erm import ERM

#: The relative gaps of the race between alphas: all of them to the first, then those that may still
#: be the best (digits: the scores of the folds are those of LogisticRegressionCV to 0.003, and the
#: time is 0.6 of that with 1e-3, 1e-4, 1e-6).
LEVELS = 1e-2, 1e-3


@dataclass(frozen=True, eq=False)
class SweptAnswer:
    """Where the sweeps are: what a score and the next alpha need."""

    w: Matrix
    intercept: Vector
    x: Matrix
    epochs: int

    @property
    def b(self) -> Vector:
        """The intercepts, by the name that a start has for them."""
        return self.intercept


def applies(problem: ERM, method: str) -> bool:
    """Whether these sweeps are what `auto` would begin with."""
    smooth = problem.loss.gamma > 0
    return method == "auto" and problem.K > 1 and smooth and unmet(BlockSDCA(), problem) is None


def solve(
    problem: ERM, start: Start | SweptAnswer | None, tols: tuple[float, ...], passes: int, rng: Any
) -> list[SweptAnswer]:
    """Answers to relative gaps of about `tols`, one after the other."""
    at = Start() if start is None else Start(x=start.x, b=start.b)
    run = begin(problem, at, Target(tols[0], passes), rng)
    spent, found = 0, []
    for k, tol in enumerate(tols):
        run.estimates.tol = tol
        most = -(-passes * (k + 1) // len(tols))
        with np.errstate(all="ignore"):
            spent += run.advance(Budget(max(most - spent, 0), False, None)).passes
        found.append(SweptAnswer(*run.answer(), spent))
    return found
