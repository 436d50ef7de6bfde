"""Shrinking: coordinates that very likely stay where they are, left out of the passes.

Dual. x_i = -s_i phi'(m_i) at the optimum, m_i the margin or residual of sample i. Where phi' is
constant (beyond the bounds of the hinge family and of Huber, within epsilon of a label) for every m
within delta of m_i, x_i has its final value if the margins are right to delta. The gap tells how
right they are: Lemma 4 has it against the mean of (m_i - its optimum)^2/(2 gamma), so

    delta = sqrt(2 gamma gap),   or 2 gap for a loss that is not smooth

is their error on average. That is likely, not certain.

Primal with L1. w_j = 0 at the optimum if |v_j| < a_j there, v = A x/(lambda n). D is strongly
concave, so v_j is within |X_j| sqrt(2 n gap/gamma)/(lambda n) of its optimum: CAUTION times that is
likely enough.

Whoever is left out comes back at the next look at the gap that says so, and the gap that ends a run
is over all coordinates: shrinking cannot change the answer.
"""

from __future__ import annotations

import math

import numpy as np

from .._validation import Mask, Vector
from ..certificate import Certificate
from ..erm import ERM

CAUTION = 0.3


def applies(problem: ERM) -> bool:
    """Whether there are values that coordinates come to rest at."""
    if not problem.dual_form:
        return bool(problem.g.a.any())
    low, high = problem.loss.domain
    bounded = math.isfinite(low) or math.isfinite(high)
    return problem.loss.kernel == "interval" and (bounded or problem.loss.theta[1] > 0)


def resting(problem: ERM, found: Certificate) -> tuple[Mask, Vector]:
    """(mask, value): the coordinates that very likely rest, and where."""
    gap = max(found.gap, 0.0)
    if problem.dual_form:
        gamma = problem.loss.gamma
        delta = math.sqrt(2 * gamma * gap) if gamma > 0 else 2 * gap
        m = problem.loss.argument(found.z, problem.y)
        derivative = problem.loss.arrays.derivative
        below, above = derivative(m - delta), derivative(m + delta)
        return below == above, -problem.weights * below
    weights = None if problem.weights.size == 1 else problem.weights
    norms = np.sqrt(problem.features.squared_norms(weights))
    radius = norms * math.sqrt(2 * problem.n * gap / problem.loss.gamma)
    v = problem.combine(found.x)
    likely = np.abs(v) + CAUTION * radius / (problem.alpha * problem.n) < problem.g.a
    inside = (problem.g.lower < 0) & (problem.g.upper > 0)
    return likely & inside, np.zeros(problem.d)
