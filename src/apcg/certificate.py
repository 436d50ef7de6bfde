"""Duality gaps: what is known of a point, and how well. Knows problems, not methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._validation import Vector
from .erm import ERM

#: Values that differ by less, relative to P and D, are the same; their points may still differ.
_ROUNDING = 1e-13
#: While the gap falls faster than this from point to point, none between is better by much.
_FAST = 0.2


@dataclass
class Certificate:
    """A primal and a dual point with their values: P* is in [dual, primal]."""

    w: Vector
    x: Vector
    primal: float
    dual: float
    z: Vector  # the predictions X w, with the intercept
    intercept: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether both values are numbers."""
        return bool(np.isfinite(self.gap))

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
    v = problem._combine(x) if v is None else v
    w = problem.g.conjugate_gradient(v)
    z = problem.samples.tdot(w)
    return Certificate(w, x, problem.primal_from(w, z), problem.dual_from(x, v), z)


def with_intercept(problem: ERM, w: Vector, x: Vector, b: float, *, best: bool) -> Certificate:
    """P(w, b) and D at a point next to x that has sum_i y_i x_i = 0; `best` improves b first.

    w is not the w of that point: P is lower at the w of x itself.
    """
    z = problem.samples.tdot(w)
    b = problem._best_intercept(z, b) if best else b
    x, z = problem._balance(x), z + b
    dual = problem.dual_from(x, problem._combine(x))
    return Certificate(w, x, problem.primal_from(w, z), dual, z, b)


def of_primal(problem: ERM, w: Vector, z: Vector | None = None, b: float = 0.0) -> Certificate:
    """From a primal point w alone; or quicker, with the method's own z = X w.

    With an intercept, b is a guess at the best one.
    """
    exact = z is None
    z = problem.samples.tdot(w) if z is None else z
    if problem.intercept:
        b = problem._best_intercept(z, b)
        z = z + b
    x, v = problem._dual_point(z, exact)
    return Certificate(w, x, problem.primal_from(w, z), problem.dual_from(x, v), z, b)


def of_pair(problem: ERM, w: Vector, x: Vector, b: float = 0.0) -> Certificate:
    """From a primal and a dual point that need not belong together; b is a guess at the best."""
    z = problem.samples.tdot(w)
    b = problem._best_intercept(z, b) if problem.intercept else 0.0
    z = z + b
    return Certificate(w, x, problem.primal_from(w, z), problem.dual(x), z, b)


def combine(problem: ERM, best: Certificate, new: Certificate) -> Certificate:
    """The better x of the two, and the w of the two or on the line through them that has least P.

    P(omega(x)) of a dual method goes up and down; a point between two is often better than either.
    P is taken for a parabola through three points of the line. The predictions z are linear in w,
    so this needs no pass over the data.
    """
    slack = _ROUNDING * (abs(new.primal) + abs(new.dual))  # of two that are as good, the new one
    x, dual = (best.x, best.dual) if best.dual > new.dual + slack else (new.x, new.dual)

    def value(t: float) -> float:
        return problem.primal_from(_between(best.w, new.w, t), _between(best.z, new.z, t))

    values = {0.0: best.primal, 1.0: new.primal}
    if new.gap > _FAST * best.gap:
        values[0.5] = value(0.5)
        bend = best.primal - 2 * values[0.5] + new.primal
        if bend > 0:
            t = float(np.clip(0.5 + 0.25 * (best.primal - new.primal) / bend, -1.0, 2.0))
            values[t] = value(t)
    t = min(values, key=lambda t: values[t] + slack * (t != 1.0))
    w, z, b = (
        _between(getattr(best, name), getattr(new, name), t) for name in ("w", "z", "intercept")
    )
    return Certificate(w, x, values[t], dual, z, b)


def _between(first: Any, second: Any, t: float) -> Any:
    """first + t (second - first), exactly one of them at t = 0 and t = 1."""
    if t in (0.0, 1.0):
        return second if t else first
    return first + t * (second - first)
