"""The choice of side: when to leave the dual for Newton's method on the primal.

A dual coordinate method pays for every sample, however few features they have in common; Newton's
method pays for pairs of features. Which is cheaper depends on the conditioning, and the gaps seen
tell that. At a look with relative gap r, and a rate of c = log(r_before/r) a pass over the last
half of the run or so, the dual still needs log(r/tol)/c passes. If a run of Newton's method (STEPS
steps) costs less, it takes over, from the w of the dual or a shorter one. It waits for EARLIEST of
that cost first: an early rate tells little.
"""

from __future__ import annotations

import math

from ..erm import ERM
from . import newton_steps as newton

STEPS, EARLIEST = 7, 0.1

#: A tolerance below this is not reached by either: it does not count in the prediction.
_FINEST = 1e-12


class Choice:
    """The gaps seen on the dual side, and what Newton's method would cost, in passes."""

    def __init__(self, problem: ERM, tol: float, max_epochs: int) -> None:
        self._step = math.inf
        # H takes about the room of the data, at most
        if newton.applies(problem) and problem.d**2 <= 1_000_000 + 2 * problem.samples.nnz:
            self._step = newton.step_cost(problem)
        self._tol, self._max = max(tol, _FINEST), max_epochs
        self._seen: list[tuple[float, float]] = []

    @property
    def cost(self) -> float:
        """Passes that all of Newton's method would cost; infinite where it is not an option."""
        return STEPS * self._step

    @property
    def affordable(self) -> bool:
        """Whether a step of Newton's method is no more than a few passes."""
        return self._step <= 20

    def leave(self, passes: float, gap: float) -> bool:
        """Whether to leave the dual, at a relative gap seen after so many passes."""
        if not (math.isfinite(self._step) and gap > self._tol):
            return False
        self._seen.append((passes, math.log(gap)))
        cost = self._step * self._steps(gap)
        left = min(self._passes_left(), self._max - passes)
        return passes >= EARLIEST * cost and left > cost

    def _steps(self, gap: float) -> float:
        """Steps to the tolerance: near the end each doubles the number of digits."""
        if gap >= 1:
            return STEPS
        return min(STEPS, 2 + math.log2(1 + math.log(self._tol) / math.log(gap)))

    def _passes_left(self) -> float:
        passes, gap = self._seen[-1]
        before = [seen for seen in self._seen if seen[0] <= passes / 2]
        if not before or before[-1][1] <= gap:
            return math.inf
        rate = (before[-1][1] - gap) / (passes - before[-1][0])
        return (gap - math.log(self._tol)) / rate
