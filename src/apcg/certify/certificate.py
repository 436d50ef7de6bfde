"""Duality gaps: from a point of an ERM problem to a certificate. Knows problems, not methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._base.validation import Vector
from ..problems.erm import ERM
from .points import Certificate, Point, Start

__all__ = [
    "Certificate",
    "certify",
    "certify_again",
    "certify_at_slopes",
    "certify_enough",
    "certify_given",
    "certify_start",
    "joined",
    "stated",
]

_EPS = float(np.finfo(float).eps)
#: A gap that is at most so many times as large is as good.
AS_GOOD = 1.001
#: An x that is not feasible is scaled to be so with this to spare, so many times at most.
SLACK, TRIALS = 1e-15, 8


def certify(problem: ERM, point: Point) -> Certificate:
    """P(w) and D(x) at a point; what is missing of w and x is made from the other.

    A bare point (without sums of the method's own) gets an exact certificate. With an intercept, b
    is the best for w; that of the point is a guess at it.
    """
    if point.x is None:
        return _of_primal(problem, point)
    if point.w is None:
        return _of_dual(problem, point)
    found = _of_pair(problem, point)
    if found.dual > -math.inf:
        return found
    return _of_primal(problem, Point(point.w, None, point.b))  # a rounding put x outside


def certify_enough(problem: ERM, point: Point | Certificate, tol: float) -> Certificate:
    """A certificate that will do: exact if the relative gap is at most tol, or negative.

    The sums that a method keeps are good enough while a run goes on. A certificate that could end
    it is computed from the points alone.
    """
    found = point if isinstance(point, Certificate) else certify(problem, point)
    if found.exact:
        return certify(problem, found.bare()) if impossible(problem, found) else found
    if found.gap <= tol * abs(found.primal):  # or negative
        return certify_again(problem, point.bare(), found, tol)
    return found


def certify_again(problem: ERM, bare: Point, found: Certificate, tol: float) -> Certificate:
    """The exact certificate of what was found with the sums of a method, which may have drifted.

    It is that of the bare point. If its gap is neither within the tolerance nor as good as what was
    found, the w that the sums gave is the better one: the pair of it and x is certified too.
    """
    alone = certify(problem, bare)
    if alone.gap <= max(AS_GOOD * found.gap, tol * abs(alone.primal)):
        return alone
    pair = certify(problem, found.bare())
    return pair if pair.gap < alone.gap else alone


def certify_start(problem: ERM, at: Start) -> Certificate:
    """The certificate of where a run would start: at zero, if nothing is known.

    Its own b stays if the best that is found for w is not better, by rounding.
    """
    w = at.w
    if w is None and (at.x is None or not problem.dual_form):  # no w is known by x alone
        w = np.zeros(problem.d if problem.K == 1 else (problem.d, problem.K))
    found = certify(problem, Point(w, at.x, 0.0 if at.b is None else at.b))
    if not problem.intercept or at.b is None or at.w is None:
        return found
    z = found.z - found.b + at.b
    primal = problem.primal_from(found.w, z)
    return replace(found, b=at.b, z=z, primal=primal) if primal < found.primal else found


def certify_given(problem: ERM, point: Point, *, best_b: bool = False) -> Certificate:
    """The exact certificate of a pair whose v was computed from that very x, and nothing else.

    So was its z from that very w, if it is given; with `best_b`, b is the best for it as it is. It
    spares passes over the data to a method that has to make these in any case.
    """
    assert point.w is not None
    assert point.x is not None
    assert point.v is not None
    if problem.intercept and problem.imbalance(point.x) > 1:
        return certify(problem, point.bare())
    z, b = point.z, point.b
    if z is None or not best_b:
        z, b = _best_predictions(problem, point)
    found = _valued(problem, point.w, point.x, b, z, point.v, True)
    return found if found.dual > -math.inf else certify(problem, point.bare())


def certify_at_slopes(
    problem: ERM, w: Vector, b: Any, x: Vector, primal: float, gap: float
) -> Certificate:
    """The exact certificate of w and x = -s phi'(X w + b), for a quadratic penalty.

    Fenchel's equality holds at such an x: P - D is lambda (g(w) + g*(v) - <v, w>), which is `gap`,
    sum_j G_j^2/(2 lambda b_j) with the gradient G of P. The method computed both P and G from w and
    b alone. With an intercept x must be in balance.
    """
    if not problem.intercept or problem.imbalance(x) <= 1:
        return stated(w, x, b, np.empty(0), primal, primal - gap)
    return certify(problem, Point(w, None, b))


def _of_primal(problem: ERM, point: Point) -> Certificate:
    """x = -s phi'(z), scaled to be feasible."""
    if point.w is None:
        raise ValueError("a point must have w, or x, or both; got neither.")
    w, exact = point.w, point.z is None
    z, b = _best_predictions(problem, point)
    x, v = problem.dual_pair(z, exact)
    return _valued(problem, w, x, b, z, v, exact)


def _of_dual(problem: ERM, point: Point) -> Certificate:
    """w = omega(x). With an intercept x is brought to a point next to it with sum_i y_i x_i = 0.

    w is not the w of that point: P is lower at the w of x itself.
    """
    assert point.x is not None
    x, exact = point.x, point.v is None
    v = problem.v_of(x) if point.v is None else point.v
    w = problem.g.conjugate_gradient(v)
    z, b = problem.samples.times(w), 0.0
    if problem.intercept:
        b = problem.best_shift(z, point.b)
        x, z = problem.balanced(x), z + b
        v = problem.v_of(x)
    return _valued(problem, w, x, b, z, v, exact)


def _of_pair(problem: ERM, point: Point) -> Certificate:
    """w and x that need not belong together."""
    assert point.w is not None
    assert point.x is not None
    w, x, exact = point.w, point.x, point.z is None and point.v is None
    z, b = _best_predictions(problem, point)
    if problem.intercept and problem.imbalance(x) > 1:
        x = problem.balanced(x)
        v = problem.v_of(x)
    else:
        v = problem.v_of(x) if point.v is None else point.v
    return _valued(problem, w, x, b, z, v, exact)


def _valued(
    problem: ERM, w: Vector, x: Vector, b: float, z: Vector, v: Vector, exact: bool
) -> Certificate:
    """The certificate of w, x and b, given X w + b and A x/(lambda n)."""
    P, D = problem.primal_from(w, z), problem.dual_from(x, v)
    found = stated(w, x, b, z, P, D, exact)
    return replace(found, dual=-math.inf) if exact and impossible(problem, found) else found


def stated(
    w: Vector, x: Vector, b: Any, z: Vector, primal: float, dual: float, exact: bool = True
) -> Certificate:
    """A certificate with values that a method has computed in a way of its own.

    It is exact if they come from w, x and b alone. What is not a number certifies nothing: P or -D
    is infinite then. (A gap of NaN compares false with everything, and would look small.)
    """
    primal = math.inf if math.isnan(primal) else primal
    dual = -math.inf if math.isnan(dual) else dual
    return Certificate(w, x, b, z, primal, dual, exact)


def joined(problem: ERM, parts: Sequence[ERM], found: Sequence[Certificate]) -> Certificate:
    """The certificate of a problem whose outputs are problems of their own, from those of these.

    x is feasible by the sums of all outputs together too. They are rounded otherwise than those of
    one output: where |v_j| is at its bound in one of them, it may be beyond it in the other.
    """
    each = ([c.w for c in found], [c.x for c in found], [c.z for c in found])
    w, x, z = (np.ascontiguousarray(np.column_stack(columns)) for columns in each)
    b, exact = np.array([c.b for c in found]), all(c.exact for c in found)
    P, D = math.fsum(c.primal for c in found), math.fsum(c.dual for c in found)
    made = Certificate(w, x, b, z, P, D, exact)
    if not made.exact:
        return made
    for _ in range(TRIALS):
        v = problem.v_of(x)
        over = np.array([part.g.excess(v[:, k]) for k, part in enumerate(parts)])
        if not np.any(over > 1):
            return replace(made, x=x, dual=D)
        x = x / np.maximum(over * (1 + SLACK), 1.0)
        D = problem.dual_from(x, problem.v_of(x))
    return replace(made, exact=False)


def rounding(problem: ERM, found: Certificate, more: Any = 0.0) -> float:
    """What the rounding of z = X w + b and of y can make of P: eps |phi'| (|z| + |y|), the mean.

    With P next to nothing it is far more than 16 eps P. At a kink |x_i| is a slope of phi too.
    `more` is added to |z| + |y|. Features without a penalty add what the rounding of X'x makes of
    the part that the box has in D.
    """
    z = found.z if found.z.size else problem.samples.times(found.w) + found.b
    y = problem.y
    slope = np.maximum(np.abs(problem.loss.duals(z, y, problem.weights)), np.abs(found.x))
    real = y.shape == z.shape and not problem.loss.margin  # not classes
    size = np.abs(z) + (np.abs(y) if real else 0.0) + more
    found_by_box = problem.reach * math.sqrt(float(np.mean(found.x * found.x)))
    return float(_EPS * (np.sum(slope * size) / problem.n + found_by_box))


def impossible(problem: ERM, found: Certificate) -> bool:
    """Whether D is above P by more than rounding can do, so that one of them is wrong.

    Rounding errors of sums of n and of d numbers, which cancel: |a_i| |w| may be far above |z_i|.
    """
    scale = abs(found.primal) + abs(found.dual)
    if not found.gap < -16 * _EPS * scale:  # or it is infinite
        return False
    with np.errstate(all="ignore"):
        rows = np.sqrt(problem.samples.squared_norms())
        size = np.multiply.outer(rows, np.linalg.norm(found.w, axis=0))
        each = rounding(problem, found, size)
        room = (16 + math.sqrt(problem.n)) * _EPS * scale + (16 + math.sqrt(problem.d)) * each
    return found.gap < -room


def _best_predictions(problem: ERM, point: Point) -> tuple[Vector, float]:
    """z = X w + b and b, with the best b; `point.b` is a guess at it."""
    assert point.w is not None
    if not problem.intercept:
        return (problem.samples.times(point.w) if point.z is None else point.z), 0.0
    without = problem.samples.times(point.w) if point.z is None else point.z - point.b
    b = problem.best_shift(without, point.b)
    return without + b, b
