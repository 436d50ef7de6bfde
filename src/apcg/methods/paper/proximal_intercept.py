"""Proximal points on a free intercept, for coordinate methods of the dual; see `intercept`.

The method runs on the bordered dual, which has one more row. That row stands for a constant feature
c with the weight beta and the penalty (kappa/2)(beta - beta_k)^2, and b = c beta. The centre beta_k
follows beta.
"""

from __future__ import annotations

from typing import Protocol

from ..._base.validation import Vector
from ...certify.points import Certificate
from ...problems.composite import Composite
from ...problems.erm import ERM

#: An inner gap below this share of P is rounding: beta is as good as it gets, and the centre moves.
ROUNDING = 1e-14


class Shiftable(Protocol):
    """A coordinate method whose last row can be shifted."""

    @property
    def x(self) -> Vector:
        """The present answer."""

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x less the shift of h)."""

    def shift(self, change: float) -> None:
        """Add `change` to the last row, at every x."""


class ProximalIntercept:
    """The bordered dual with a centre beta_k; kappa is the weight of the proximal term."""

    def __init__(self, problem: ERM, b: float) -> None:
        self._problem = problem
        border = problem.bordered()
        self.form: Composite = border.form
        self.kappa: float = border.strong_convexity
        self.c: float = border.samples.constant
        self.n: int = border.n
        self.mu: float = border.mu
        self.centre = 0.0
        self._move_to(b / self.c)

    def _move_to(self, beta: float) -> float:
        """Set beta_k; returns the change of the last row of A x less its shift."""
        change = self.kappa * self.n * (beta - self.centre)
        self.form.f.add_to_shift(-1, -change)
        self.centre = beta
        return change

    def b(self, method: Shiftable) -> float:
        """The intercept b = c beta, as the last row has it."""
        return self.c * self._beta(method)

    def _beta(self, method: Shiftable) -> float:
        return float(method.rows()[-1]) / (self.kappa * self.n)

    def follow(self, method: Shiftable, found: Certificate) -> None:
        """Move beta_k to beta if the inner gap is at most the proximal term, or rounding.

        `found` is of the present x. The gap, at the method's own b, bounds kappa/2 times the
        squared error of beta, so that error is then no larger than the step.
        """
        primal = self._problem.primal_from(found.w, found.z - found.b + self.b(method))
        x = self.form.nearest(method.x)
        inner_dual = 0.5 * self.kappa * self.centre * self.centre - self.form.value_from(
            x, method.rows()
        )
        if primal - inner_dual <= ROUNDING * abs(primal):
            method.shift(self._move_to(self._beta(method)))
