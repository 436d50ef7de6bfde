"""Newton's method with a Cholesky factor on the primal of ERM, for n >> d.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + (lambda/2) sum_j b_j w_j^2

    H = (1/n) sum_i s_i phi_i''(A_i' w) A_i A_i' + lambda diag(b)
    w+ = w - t H^-1 grad P(w),   t by a search along the line

Where phi' has kinks (the hinge family, Huber) phi'' is one of its generalised derivatives, and the
method is the semismooth one. Few features that are nearly collinear make every coordinate method
slow, whatever its momentum: the Cholesky factor does not see the difference. A step costs H,
sum_i nnz_i^2/2 multiply-adds, its factor, d^3/6, and one pass for X H^-1 grad P and the next
gradient; the search along the line needs no pass, because X w is linear in t.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._validation import Index, Matrix, Vector
from ..erm import ERM
from ..intercept import unpenalised
from .afg import Point

#: The slope along the line is brought down to this part of what it was.
_FLATTER = 0.1
#: An intercept may have no curvature at all, where every phi'' is zero: so much, at least.
_LEAST = 1e-12


def applies(problem: ERM) -> bool:
    """Whether P has second derivatives everywhere (almost), and no bounds or L1."""
    return problem.loss.gamma > 0 and problem.dual_form and problem.g.is_quadratic


def step_cost(problem: ERM) -> float:
    """At most so many passes over the data does a step take, a pass being 2 nnz multiply-adds."""
    X = problem.samples
    each = np.diff(X.indptr).astype(float) if X.indptr.size else np.full(X.n_coordinates, X.n_rows)
    return 1.0 + _in_passes(problem, 0.5 * float(np.sum(each * (each + 1))))


def _in_passes(problem: ERM, gram: float) -> float:
    return (gram + problem.d**3 / 6) / (2 * max(problem.samples.nnz, 1))


class Newton:
    """The iterate w with its predictions X w. With an intercept it is the last entry of w."""

    def __init__(self, problem: ERM, w0: Vector) -> None:
        problem = unpenalised(problem) if problem.intercept else problem
        self.problem = problem
        self._cost, self._counted = 0.0, 0
        # w0 may be far too long where lambda is small: the best point between 0 and beyond it.
        self.point = Point(np.zeros(problem.d), np.zeros(problem.n_samples))
        if w0.any():
            self._move(Point(w0, problem.predictions(w0)))

    def epoch(self, order: Index) -> int:
        """One step; gives the passes over the data that it took."""
        p, z = self.problem, self.point.z
        argument = p.loss.argument(z, p.y)
        slope = p.weights * p.loss.derivative(z, p.y) / p.n
        gradient = p.samples.dot(slope) + p.alpha * p.g.b * self.point.w
        H, count = p.samples.gram(p.weights * p.loss.arrays.curvature(argument) / p.n)
        H[np.diag_indices_from(H)] += np.where(p.g.b > 0, p.alpha * p.g.b, _LEAST / p.loss.gamma)
        direction = _solve(H, -gradient)
        self._move(Point(direction, p.predictions(direction)))
        self._cost += 1.0 + _in_passes(p, count)
        passes = math.ceil(self._cost) - self._counted
        self._counted += passes
        return passes

    def _move(self, way: Point) -> None:
        """To about the minimum of P along a line, and not up, by Newton's method with a bracket."""
        t, low, high = 1.0, 0.0, math.inf
        flat = _FLATTER * abs(self._along(way, 0.0)[0])
        start = self.problem.primal_from(self.point.w, self.point.z)
        for _ in range(50):
            slope, curvature = self._along(way, t)
            new = Point(self.point.w + t * way.w, self.point.z + t * way.z)
            if abs(slope) <= flat and self.problem.primal_from(new.w, new.z) <= start:
                self.point = new
                return
            low, high = (t, high) if slope < 0 else (low, t)
            t = t - slope / curvature if curvature > 0 else math.nan
            if not low < t < high:
                t = 0.5 * (low + high) if math.isfinite(high) else 2 * low

    def _along(self, way: Point, t: float) -> tuple[float, float]:
        """The first and second derivative of P(w + t way) in t."""
        p = self.problem
        w, z = self.point.w + t * way.w, self.point.z + t * way.z
        s = p.weights / p.n
        first = np.dot(s * p.loss.derivative(z, p.y), way.z) + p.alpha * np.dot(p.g.b * w, way.w)
        bend = s * p.loss.arrays.curvature(p.loss.argument(z, p.y))
        second = np.dot(bend, way.z**2) + p.alpha * np.dot(p.g.b * way.w, way.w)
        return float(first), float(second)

    @property
    def x(self) -> Vector:
        """The primal iterate w."""
        return self.point.w


def _solve(H: Matrix, r: Vector) -> Vector:
    """H^-1 r, with a unit diagonal and as little added to it as makes H positive in rounding."""
    scale = 1 / np.sqrt(H.diagonal())
    H = H * scale * scale[:, None]
    jitter = 0.0
    while True:
        try:
            return scale * cho_solve(cho_factor(H, lower=True), scale * r)
        except LinAlgError:
            grown = max(100 * jitter, 1e-14)
            H[np.diag_indices_from(H)] += grown - jitter
            jitter = grown
