"""Newton's method for bounds on the weights, a smooth loss and L2 or no penalty.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + (lambda/2) sum_j b_j w_j^2,  lower <= w <= upper

Weights at a bound that the gradient holds there rest; for the others a step of Newton's method is
found with a factor of their part of H, and taken along the projection on the bounds (Bertsekas's
projected Newton method). Once the right weights rest, it is Newton's method on the others. H of the
squared loss is made once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Mask, Vector
from ..._base.validation import Matrix as Table
from ...certify.points import Point, Start
from ...problems.erm import ERM
from ...problems.objective import At, Objective
from ..base import (
    BOUNDS,
    COMPILED_LOSS,
    ONE_OUTPUT,
    SMOOTH_LOSS,
    Budget,
    Needs,
    Stepping,
    Target,
    Work,
)
from ..linalg import factor
from ..linalg.factor import Factor

#: Armijo's share of the slope, and the halves of a step that are tried
SHARE = 1e-4
HALVES = 30
#: a weight so near to its bound, in units of the step it would take, counts as there
NEAR = 1e-3
#: what H gets where there is no ridge, as a part of a column's square
LEAST_CURVATURE = 1e-12
#: a slope that can change P by less than this part of it is rounding
ROUNDING = 1e-14


@dataclass(frozen=True)
class BoundedNewton:
    """The method "newton_bounds"."""

    name: ClassVar[str] = "newton_bounds"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, BOUNDS)
    side: ClassVar[str] = "primal"

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> BoundedNewtonRun:
        """Begin at w, or at zero, as far as it is within the bounds."""
        return BoundedNewtonRun(problem, at)


class BoundedNewtonRun(Stepping):
    """The method at work; an intercept is the last entry of w, without bounds."""

    def __init__(self, problem: ERM, at: Start) -> None:
        self.problem = problem
        self._rows = rows = Objective.of(problem)
        least = LEAST_CURVATURE / (rows.loss.gamma or 1.0)
        self._ridge = rows.least_curvature(least)
        free = np.full(rows.size - problem.d, np.inf)
        g = problem.interval
        self._lower = np.append(np.broadcast_to(g.lower, problem.d), -free)
        self._upper = np.append(np.broadcast_to(g.upper, problem.d), free)
        self._now = self._arrive(np.clip(rows.joined(at.w, at.b), self._lower, self._upper))
        self._H: Table | None = None
        self._cost = 0.0

    def advance(self, budget: Budget) -> Work:
        """One step."""
        if not self.stuck:
            self.stuck = not self._step()
        return self._since(self._cost, least=1)

    def point(self) -> Point:
        """The iterate."""
        w, b = self._rows.apart(self._now.w)
        return Point(w=w, b=b)

    def _arrive(self, w: Vector) -> At:
        return self._rows.at(w, self._rows.X.times(w))

    def _hessian(self, at: At) -> Table:
        """H at a point, its upper triangle; that of the squared loss is kept."""
        if self._H is None or self._rows.loss.eta != self._rows.loss.gamma:
            self._H = self._rows.X.gram(at.bend)
            self._H.ravel()[:: len(self._H) + 1] += self._ridge
            nnz = max(self.problem.samples.nnz, 1)
            self._cost += self._rows.X.gram_madds / (2 * nnz)
        return self._H

    def _resting(self, w: Vector, gradient: Vector, H: Table) -> Mask:
        """Which weights are at a bound, or next to it, and held there by the gradient."""
        near = NEAR * np.abs(gradient) / H.diagonal()
        low = (w <= self._lower + near) & (gradient > 0)
        return np.asarray(low | ((w >= self._upper - near) & (gradient < 0)))

    def _step(self) -> bool:
        """A step along the projection; False if it brought nothing."""
        at, rows = self._now, self._rows
        gradient, H = rows.gradient(at), self._hessian(self._now)
        rests = self._resting(at.w, gradient, H)
        moves = np.flatnonzero(~rests)
        way = -gradient / H.diagonal()  # what rests goes to its bound, if it is next to it
        if moves.size:
            way[moves] = -Factor(H[np.ix_(moves, moves)]).solve(gradient[moves])
        self._cost += factor.madds(moves.size) / (2 * max(self.problem.samples.nnz, 1)) + 1
        if not np.isfinite(way).all():
            return False
        t = 1.0
        for _ in range(HALVES):
            w = np.clip(at.w + t * way, self._lower, self._upper)
            promised = float(np.dot(gradient, w - at.w))
            new = self._arrive(w)
            self._cost += 0.5
            slack = ROUNDING * abs(at.value)
            if new.value <= at.value + SHARE * min(promised, 0.0) + slack:
                moved = not np.array_equal(w, at.w)
                self._now = new
                return moved and (new.value < at.value or -promised > slack or self._falls(new))
            t *= 0.5
        return False

    def _falls(self, new: At) -> bool:
        """Whether the gradient of the weights that move is not yet rounding."""
        gradient = self._rows.gradient(new)
        size = float(np.dot(np.abs(new.slope), np.abs(new.z))) or abs(new.value)
        inside = (new.w > self._lower) & (new.w < self._upper)
        return float(np.abs(gradient * new.w)[inside].max(initial=0.0)) > 1e-15 * size
