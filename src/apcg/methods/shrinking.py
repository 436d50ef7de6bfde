"""Shrinking: coordinates that very likely need no step are left out of the passes.

Whoever is left out comes back at the next look at the gap that says so, and the gap that ends a run
is over all coordinates: shrinking cannot change the answer.

Dual, where x_i has places to rest (the bounds of the hinge family and of Huber, the zeros of
epsilon-insensitive). x_i = -s_i phi'(m_i) at the optimum, m_i the margin or residual of sample i.
If phi' is constant within delta of m_i, and the margins are right to delta, x_i rests there. How
right they are the gap tells: Lemma 4 has it against the mean of (m_i - its optimum)^2/(2 gamma), so
delta = sqrt(2 gamma gap), or 2 gap for a loss that is not smooth, is their error on average.

Dual, logistic loss: nothing rests, but the gap is a sum over samples of
phi(m_i) + phi*(-x_i) + m_i x_i >= 0. Those that together hold SHARE of it are left out.

Primal with L1. w_j = 0 at the optimum if |v_j| < a_j there, v = A x/(lambda n). D is strongly
concave, so v_j is within |X_j| sqrt(2 n gap/gamma)/(lambda n) of its optimum: CAUTION times that is
likely enough.
"""

from __future__ import annotations

import math

import numpy as np

from .._validation import Mask, Vector
from ..certificate import Certificate
from ..erm import ERM

SHARE, CAUTION = 1e-3, 0.3


def rests(problem: ERM) -> bool:
    """Whether there are values that coordinates come to rest at."""
    if not problem.dual_form:
        return bool(problem.g.a.any())
    low, high = problem.loss.domain
    bounded = math.isfinite(low) or math.isfinite(high)
    return problem.loss.kernel == "interval" and (bounded or problem.loss.theta[1] > 0)


def applies(problem: ERM) -> bool:
    """Whether there is anything to leave out."""
    return rests(problem) or (problem.dual_form and problem.loss.kernel == "logistic")


def idle(problem: ERM, found: Certificate) -> tuple[Mask, Vector | None]:
    """The coordinates that very likely need no step, and the values that they rest at, if so."""
    gap = max(found.gap, 0.0)
    if not problem.dual_form:
        return _zeros(problem, found, gap), np.zeros(problem.d)
    m = problem.loss.argument(found.z, problem.y)
    if not rests(problem):
        return _holding_little(problem, found.x, m), None
    gamma = problem.loss.gamma
    delta = math.sqrt(2 * gamma * gap) if gamma > 0 else 2 * gap
    derivative = problem.loss.arrays.derivative
    below, above = derivative(m - delta), derivative(m + delta)
    return below == above, -problem.weights * below


def _holding_little(problem: ERM, x: Vector, m: Vector) -> Mask:
    s = np.where(problem.weights > 0, problem.weights, 1.0)
    share = s * (problem.loss.arrays.value(m) + problem.loss.arrays.conjugate(x / s)) + m * x
    order = np.argsort(share)
    total = np.cumsum(np.maximum(share[order], 0.0))
    little = np.zeros(x.size, dtype=bool)
    little[order[: np.searchsorted(total, SHARE * total[-1])]] = True
    return little


def _zeros(problem: ERM, found: Certificate, gap: float) -> Mask:
    weights = None if problem.weights.size == 1 else problem.weights
    norms = np.sqrt(problem.samples.transposed.squared_norms(weights))
    radius = norms * math.sqrt(2 * problem.n * gap / problem.loss.gamma)
    v = problem.combine(found.x)
    likely = np.abs(v) + CAUTION * radius / (problem.alpha * problem.n) < problem.g.a
    return np.asarray(likely & (problem.g.lower < 0) & (problem.g.upper > 0))
