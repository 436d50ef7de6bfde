"""Proximal points on a free intercept, around a coordinate method of the dual; see `intercept`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import Index, Vector
from ..erm import ERM
from ..problem import Composite

#: An inner gap below this, relative to P, is nothing but rounding.
ROUNDING = 1e-14


class Centre:
    """The bordered dual with a centre beta_k of its own: b = c beta, kappa the proximal weight."""

    def __init__(self, problem: ERM, b: float) -> None:
        border = problem.bordered()
        self.form: Composite = border.form
        self.form.f.shift = np.zeros(border.d)
        self.kappa, self.c, self.n = border.strong_convexity, border.samples.constant, border.n
        self.mu = border.mu
        self.beta = 0.0
        self.move_to(b / self.c)

    def move_to(self, beta: float) -> float:
        """Set beta_k; gives the change of the last row of A x less its shift."""
        change = self.kappa * self.n * (beta - self.beta)
        self.form.f.shift[-1] -= change
        self.beta = beta
        return change


class Centred:
    """A method on `centre.form`, whose centre follows it."""

    def __init__(self, method: Any, centre: Centre) -> None:
        self.method, self.centre = method, centre

    def epoch(self, order: Index) -> int:
        """One step on each coordinate of `order`."""
        return int(self.method.epoch(order))

    @property
    def x(self) -> Vector:
        """The present answer, which need not have sum_i y_i x_i = 0."""
        return np.asarray(self.method.x)

    def rows(self, scale: float = 1.0) -> Vector:
        """scale A x, without the row of the intercept."""
        return np.asarray(self.method.rows(scale)[:-1])

    def refresh(self) -> None:
        """Compute what rounding errors gather in anew."""
        self.method.refresh()

    @property
    def intercept(self) -> float:
        """b = c beta, as the last row has it."""
        return float(self.centre.c * self._beta)

    @property
    def _beta(self) -> float:
        return float(self.method.rows()[-1]) / (self.centre.kappa * self.centre.n)

    def follow(self, primal: float) -> None:
        """Move beta_k to beta if the inner gap is at most the proximal term, or rounding.

        `primal` is P(w, b) at the w of x and `self.intercept`. The gap bounds kappa/2 times the
        squared error of beta, so that error is then no larger than the step.
        """
        centre, beta = self.centre, self._beta
        x = centre.form.nearest(self.x)
        inner_dual = 0.5 * centre.kappa * centre.beta**2 - centre.form.value_from(
            x, self.method.rows()
        )
        if primal - inner_dual <= ROUNDING * abs(primal):
            self.method.shift(centre.move_to(beta))
