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
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._validation import Matrix, Vector
from ..erm import ERM
from ..points import Start
from . import costs
from .base import QUADRATIC_PENALTY, SMOOTH_LOSS, Needs, Target
from .full import FullRun, Predicted, start_vector

#: The slope along the line is brought down to this part of what it was.
_FLATTER = 0.1
#: An intercept may have no curvature at all, where every phi'' is zero: so much, at least.
_LEAST = 1e-12


class Newton:
    """The iterate w with its predictions X w. With an intercept it is the last entry of w."""

    def __init__(self, problem: ERM, w0: Vector) -> None:
        problem = problem.unpenalised() if problem.intercept else problem
        self.problem = problem
        self._cost, self._counted = 0.0, 0
        # w0 may be far too long where lambda is small: the best point between 0 and beyond it.
        self.at = Predicted(np.zeros(problem.d), np.zeros(problem.n_samples))
        if w0.any():
            self._move(Predicted(w0, problem.samples.tdot(w0)))

    def step(self) -> int:
        """One step; returns the passes over the data that it took."""
        p, z = self.problem, self.at.z
        argument = p.loss.argument(z, p.y)
        slope = p.weights * p.loss.derivative(z, p.y) / p.n
        gradient = p.samples.dot(slope) + p.alpha * p.g.b * self.at.w
        H, count = p.samples.gram(p.weights * p.loss.arrays.curvature(argument) / p.n)
        H[np.diag_indices_from(H)] += np.where(p.g.b > 0, p.alpha * p.g.b, _LEAST / p.loss.gamma)
        direction = _solve(H, -gradient)
        self._move(Predicted(direction, p.samples.tdot(direction)))
        self._cost += 1.0 + costs.in_passes(p, count)
        passes = math.ceil(self._cost) - self._counted
        self._counted += passes
        return passes

    def _move(self, way: Predicted) -> None:
        """To about the minimum of P along a line, and not up, by Newton's method with a bracket."""
        t, low, high = 1.0, 0.0, math.inf
        flat = _FLATTER * abs(self._along(way, 0.0)[0])
        start = self.problem.primal_from(self.at.w, self.at.z)
        for _ in range(50):
            slope, curvature = self._along(way, t)
            new = Predicted(self.at.w + t * way.w, self.at.z + t * way.z)
            if abs(slope) <= flat and self.problem.primal_from(new.w, new.z) <= start:
                self.at = new
                return
            low, high = (t, high) if slope < 0 else (low, t)
            t = t - slope / curvature if curvature > 0 else math.nan
            if not low < t < high:
                t = 0.5 * (low + high) if math.isfinite(high) else 2 * low

    def _along(self, way: Predicted, t: float) -> tuple[float, float]:
        """The first and second derivative of P(w + t way) in t."""
        p = self.problem
        w, z = self.at.w + t * way.w, self.at.z + t * way.z
        s = p.weights / p.n
        first = np.dot(s * p.loss.derivative(z, p.y), way.z) + p.alpha * np.dot(p.g.b * w, way.w)
        bend = s * p.loss.arrays.curvature(p.loss.argument(z, p.y))
        second = np.dot(bend, way.z**2) + p.alpha * np.dot(p.g.b * way.w, way.w)
        return float(first), float(second)


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


@dataclass(frozen=True)
class NewtonMethod:
    """Newton's method on the primal of ERM."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[Needs] = (SMOOTH_LOSS, QUADRATIC_PENALTY)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> FullRun:
        """Begin at about the best point on the line from 0 through w."""
        return FullRun(problem, Newton(problem, start_vector(problem, at)), 1, rng)
