"""Duality gaps: what is known of a point, and how well. Knows problems, not methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._validation import Vector
from .erm import ERM


@dataclass
class Certificate:
    """A primal and a dual point with their values: P* is in [dual, primal]."""

    w: Vector
    x: Vector
    primal: float
    dual: float
    intercept: float = 0.0

    @property
    def gap(self) -> float:
        """P(w) - D(x)"""
        return self.primal - self.dual

    @property
    def relative(self) -> float:
        """gap/|P(w)|"""
        return (
            self.gap / abs(self.primal) if self.primal != 0 else (0.0 if self.gap <= 0 else np.inf)
        )


def of_dual(problem: ERM, x: Vector, v: Vector | None = None) -> Certificate:
    """From a dual point x alone; or quicker, with the method's own v = A x/(lambda n)."""
    v = problem.combine(x) if v is None else v
    w = problem.g.conjugate_gradient(v)
    return Certificate(
        w, x, problem.primal_from(w, problem.predictions(w)), problem.dual_from(x, v)
    )


def with_intercept(problem: ERM, w: Vector, x: Vector, b: float, *, best: bool) -> Certificate:
    """P(w, b) and D at a point next to x that has sum_i y_i x_i = 0; `best` improves b first.

    w is not the w of that point: P is lower at the w of x itself.
    """
    z = problem.predictions(w)
    b = problem.best_intercept(z, b) if best else b
    x = problem.balance(x)
    return Certificate(
        w, x, problem.primal_from(w, z + b), problem.dual_from(x, problem.combine(x)), b
    )


def of_primal(problem: ERM, w: Vector, z: Vector | None = None, b: float = 0.0) -> Certificate:
    """From a primal point w alone; or quicker, with the method's own z = X w.

    With an intercept, b is a guess at the best one.
    """
    exact = z is None
    z = problem.predictions(w) if z is None else z
    if problem.intercept:
        b = problem.best_intercept(z, b)
        z = z + b
    x, v = problem.dual_point(z, exact=exact)
    return Certificate(w, x, problem.primal_from(w, z), problem.dual_from(x, v), b)
