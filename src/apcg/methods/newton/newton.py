"""Newton's method on the primal of ERM, for many more samples than features.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + (lambda/2) sum_j b_j w_j^2

    H = (1/n) sum_i s_i phi_i''(A_i' w) A_i A_i' + lambda diag(b)
    w+ = w - t H^-1 grad P(w),   t by a search along the line

Where phi' has kinks (the hinge family, Huber) phi'' is one of its generalised derivatives, and the
method is the semismooth one. Few features that are nearly collinear make every coordinate method
slow, whatever its momentum: a Cholesky factor does not see the difference.

The first steps are taken on a sample of the rows, with a factor of their H. On all rows H^-1 grad P
is found by conjugate gradients with the factor R of the sample's H as preconditioner: one pass over
the data an iteration, and few of them, because the sample's H is nearly that of all rows. Where it
is not, H of all rows is factored. X w is linear in t, so the search along the line takes no pass.

The stop needs no dual point: with x_i = -s_i phi_i'(A_i' w) Fenchel's equality makes the gap
sum_j (grad P)_j^2/(2 lambda b_j). With an intercept that holds at the b that is best for w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ...problems.objective import At, Objective
from ..base import (
    COMPILED_LOSS,
    ONE_OUTPUT,
    QUADRATIC_OR_NONE,
    SMOOTH_LOSS,
    Budget,
    Needs,
    Report,
    Stepping,
    Target,
    Work,
)
from .hessian import ROWS_PER_FEATURE, Hessian

#: The sample is solved until a step promises less than this part of P, for 10 rows a feature, and
#: less for more rows: its optimum is not ours (0.1 takes 1.07 times as long).
ROUGH = 0.02
#: A step is good enough when the residual, the gradient to come, has this part of the gap that is
#: asked for (flat).
ENOUGH = 0.5
#: A search along the line ends at this part of the first slope: e^-1 is where a separable problem
#: is after a whole step, and that will do.
FLAT = 0.5
#: ... and after EARLY steps at this part (600 x 200, squared hinge, lambda 1e-9, in orthogonal
#: coordinates: 1.45 times as long without; 138 other cells: flat).
FLATTER = 0.1
#: A step that overshoots is tried again with another phi'', so many times in all, ...
ATTEMPTS = 3
#: ... but only in the first so many steps: with it in all, squared hinge on 400 clustered rows at
#: lambda = 1e-8 was not solved in 20,000 passes; without it in 212.
EARLY = 8
#: Squared loss: a factor with a pivot below this, for a unit diagonal, leaves w too few digits.
WEAK = 1e-7
#: Steps in a row that bring nothing before it says that it is stuck.
PATIENCE = 3
#: b is best when the slope in b is this part of the sum of its terms' sizes.
BALANCE = 1e-9


@dataclass(frozen=True)
class Newton:
    """The method "newton"."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, QUADRATIC_OR_NONE)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> NewtonRun:
        """Begin at at.w (with at.b), or at zero."""
        return NewtonRun(problem, at, target, rng)


class NewtonRun(Stepping):
    """Newton's method at work on all rows of a problem."""

    def __init__(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        hessian: Hessian | None = None,
        rows: Objective | None = None,
    ) -> None:
        self._start, self._rng = at, rng
        self._aim = target.tol
        self._rows = rows or Objective.of(problem)
        self._free, self._g = problem.intercept, problem.g
        self._hessian = hessian or Hessian(self._rows)
        self._now: At | None = None
        self._gradient = np.empty(0)
        self._solved: Vector | None = None  # w by one factor, not yet looked at
        self._moved, self._idle, self._weak = False, 0, False
        self._own, self._steps = 0.0, 0
        self._first = 0.0  # the largest P there was

    # ---- the protocol ---------------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Go on until the gap is predicted to pass, or the budget is spent, or rounding has won."""
        first = self._cost
        self._moved = False
        if self._now is None and self._solved is None:
            self._begin(budget)
        while not self._done(budget, self._cost - first):
            if self._solved is not None:
                self._restore(self._solved)
            elif self._step(budget):
                self._idle = 0
            else:
                self._idle += 1
                break
        return self._since(self._cost)

    @property
    def report(self) -> Report:
        """A start that is good enough is returned at once.

        It is stuck if steps bring nothing, one after the other: rounding has won.
        """
        stuck = self._idle > PATIENCE
        exact = self._solved is not None and not self._weak
        return Report(knows_its_gap=True, stuck=stuck, lacks_digits=self._weak, exact=exact)

    def point(self) -> Point:
        """The iterate; with its predictions, unless the look is expected to be the last."""
        if self._solved is not None:
            w, b = self._rows.apart(self._solved)
            return Point(w=self._g.clip(w), b=b)
        if self._now is None:
            w, b = self._rows.apart(self._rows.joined(self._start.w, self._start.b))
            return Point(w=w, b=b)
        w, b = self._rows.apart(self._at.w)
        inside = self._g.clip(w)
        z = self._at.z.copy() if np.array_equal(inside, w) and not self.passes() else None
        return Point(w=inside, b=b, z=z)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: if it should have, compute anew and aim lower."""
        if self._solved is not None:
            self._restore(self._solved)
            self._idle = PATIENCE + 1 if self._weak else 0
        elif self._now is None or not self.passes():
            return
        else:
            self._restore(self._at.w)
        self._aim = 0.1 * min(self._aim, max(certificate.relative, 0.0))

    @property
    def _cost(self) -> float:
        """Passes over the data so far."""
        return self._own + self._hessian.cost

    @property
    def _at(self) -> At:
        assert self._now is not None
        return self._now

    def _done(self, budget: Budget, spent: float) -> bool:
        if budget.expired:
            return True
        if spent >= budget.passes:
            return self._moved
        return not budget.fixed and (self._solved is not None or self.passes())

    def passes(self) -> bool:
        """Whether the gap is predicted to pass."""
        if self._rows.box is not None and self._at.value <= self._aim * self._first:
            return True  # next to nothing is left of P: there may be no minimum
        return self._gap() <= self._aim * abs(self._at.value)

    # ---- the start ------------------------------------------------------------------------------

    def _begin(self, budget: Budget) -> None:
        rows = self._rows
        w = rows.joined(self._start.w, self._start.b)
        if self._hessian.is_cheap:
            self._solve_directly()
            return
        self._hessian.draw(self._rng)
        if not w.any():
            w = self._on_sample(budget)
        self._restore(w)
        zero = rows.at(np.zeros(rows.size), np.zeros(rows.n)) if w.any() else self._at
        if zero.value < self._at.value:  # a start that is far too long
            self._arrive(zero)

    def _solve_directly(self) -> None:
        """Squared loss: P is a parabola, and one factor gives its minimum."""
        rows = self._rows
        each = rows.scale / rows.loss.gamma * rows.weights
        made = self._hessian.factor_of(rows, np.broadcast_to(each, rows.n).copy())
        self._weak = made.weakest < WEAK
        even = each.size == 1
        c = each * rows.X.adjoint(rows.y) if even else rows.X.adjoint(each * rows.y)
        self._solved = made.solve(c)
        self._moved = True
        self._own += 1.0

    def _on_sample(self, budget: Budget) -> Vector:
        """A few steps of Newton's method from w = 0 on the sample alone, with its best b."""
        sample = self._hessian.sample
        rows = sample or self._rows
        at = rows.at(np.zeros(rows.size), np.zeros(rows.n))
        if self._free:
            at = self._best_intercept(rows, at)
        if sample is None:
            return at.w
        others = self._hessian.held_out()
        w, least = at.w, others.value(at.w)
        rough = ROUGH * min(1.0, rows.size * ROWS_PER_FEATURE / rows.n)
        for _ in range(self._hessian.sample_steps):
            if budget.expired:
                break
            gradient = rows.gradient(at)
            way = -self._hessian.factor_of(rows, at.bend).solve(gradient)
            slope = float(np.dot(gradient, way))
            self._own += rows.X.nnz / max(self._rows.X.nnz, 1)
            if -0.5 * slope <= rough * at.value:
                break
            new = rows.move(at, way, rows.X.times(way), slope, FLAT)
            if new is None:
                break
            at, value = new, others.value(new.w)
            self._own += 0.5 * others.X.nnz / max(self._rows.X.nnz, 1)
            if value > least:  # this step fits the sample alone
                break
            w, least = at.w, value
        return w

    def _best_intercept(self, rows: Objective, at: At) -> At:
        """The same w with the b that is best for it, found on the stored predictions."""
        way, ones = np.zeros(rows.size), np.ones(rows.n)
        way[-1] = 1.0
        for _ in range(30):
            slope, bend = float(at.slope.sum()), float(at.bend.sum())
            if abs(slope) <= BALANCE * float(np.abs(at.slope).sum()):
                break
            step = -slope / max(bend, self._hessian.least)
            new = rows.move(at, step * way, step * ones, slope * step, FLAT)
            if new is None:
                return rows.at(at.w, at.z)
            at = new
        return at

    # ---- a step ---------------------------------------------------------------------------------

    def _step(self, budget: Budget) -> bool:
        """One step; False if it brought nothing, that is if rounding has won."""
        rows, at, before = self._rows, self._at, self._gap()
        value, bend = at.value, at.bend
        enough = ENOUGH * self._aim * abs(value)
        self._steps += 1
        for _ in range(ATTEMPTS if self._steps <= EARLY else 1):
            way, dz = self._hessian.solve(-self._gradient, bend, enough, budget)
            slope = float(np.dot(self._gradient, way))
            whole = rows.trial(at, way, dz)
            other = rows.gentler(at, dz, whole, slope)
            if other is None or budget.expired:
                break
            bend = other
        self._moved = True
        flat = FLAT if self._steps <= EARLY else FLATTER
        new = rows.move(at, way, dz, slope, flat, whole) if slope < 0 else None
        if new is None:
            self._restore(at.w)
            return self._hessian.distrust()
        self._arrive(new)
        if self._free:
            self._settle_intercept()
        return self._gap() < 0.9 * before or self._at.value < value * (1 - 1e-13)

    def _settle_intercept(self) -> None:
        """The gap is that of the gradient only at the best b: go there when all else would pass."""
        at, g = self._at, float(self._gradient[-1])
        bend = max(float(at.bend.sum()), self._hessian.least)
        if g != 0 and self._rows.gap(self._gradient) + 0.5 * g * g / bend <= self._aim * at.value:
            self._arrive(self._best_intercept(self._rows, at))

    def _restore(self, w: Vector) -> None:
        """To w, with everything computed anew."""
        self._solved = None
        self._own += 0.5
        self._arrive(self._rows.at(w, self._rows.X.times(w)))

    def _arrive(self, at: At) -> None:
        self._now, self._gradient = at, self._rows.gradient(at)
        self._first = max(self._first, at.value)
        self._own += 0.5

    def _gap(self) -> float:
        """P - D at the dual point of w; with an intercept, if b is best, else about that."""
        gap = self._rows.gap(self._gradient)
        return gap + abs(float(self._gradient[-1] * self._at.w[-1])) if self._free else gap
