"""Shrinking: coordinates that very likely need no step are left out of the passes.

Whoever is left out comes back at the next look at the gap that says so, and the gap that ends a run
is over all coordinates: shrinking cannot change the answer.

Dual, where x_i has places to rest (the bounds of the hinge family and of Huber, the zeros of
epsilon-insensitive). x_i = -s_i phi'(m_i) at the optimum, m_i the margin or residual of sample i.
If phi' is constant within delta of m_i, and the margins are right to delta, x_i rests there. How
right they are the gap tells: Lemma 4 has it against the mean of (m_i - its optimum)^2/(2 gamma), so
delta = sqrt(2 gamma gap), or 2 gap for a loss that is not smooth, is their error on average. With
momentum, x comes to such places late, and is put there (`_settle`).

Dual, logistic loss: nothing rests, but the gap is a sum over samples of
phi(m_i) + phi*(-x_i) + m_i x_i >= 0. Those that together hold SHARE of it are left out, for HOLD
passes, because their share grows; and only from a relative gap of EARLY on, and in problems hard
enough for a mu-hat of ACCELERATED or less.

Primal with L1. w_j = 0 at the optimum if |v_j| < a_j there, v = A x/(lambda n). D is strongly
concave, so v_j is within |X_j| sqrt(2 n gap/gamma)/(lambda n) of its optimum: CAUTION times that is
likely enough.
"""

from __future__ import annotations

import math

import numpy as np

from .._validation import Index, Mask, Vector
from ..certificate import Certificate
from ..erm import ERM
from .auto import Auto

SHARE, HOLD, EARLY, ACCELERATED = 1e-3, 1.0, 0.1, 0.3
CAUTION = 0.3

#: A coordinate this near its resting value, in units of the mean of |x_i|, is put there.
NEAR = 1e-3
#: Those that x has a longer way to are tried in three steps, in the same units, ...
LEVELS = (0.01, 0.1, 1.0)
#: ... if z has at most this part of that way left (it drifts towards x between its own steps).
BROUGHT = 0.3
#: They rest if the margins are right; but a kink is no place to rest.
_SLIGHT = 1e-6


def rests(problem: ERM) -> bool:
    """Whether there are values that coordinates come to rest at."""
    if not problem.dual_form:
        return problem.separable and bool(problem.interval.a.any())
    low, high = problem.loss.domain
    bounded = math.isfinite(low) or math.isfinite(high)
    return problem.loss.kernel == "interval" and (bounded or problem.loss.theta[1] > 0)


def applies(problem: ERM) -> bool:
    """Whether there is anything to leave out."""
    return rests(problem) or (problem.dual_form and problem.loss.kernel == "logistic")


class Shrinking:
    """Which of the coordinates to sample, after each look at the gap."""

    def __init__(self, problem: ERM, coordinates: Index) -> None:
        self.problem, self.all = problem, coordinates
        self._until = math.inf

    def after_look(self, method: Auto, found: Certificate, passes: float) -> Index:
        """The coordinates to sample from now on; those that rest are put where they rest."""
        p, gap = self.problem, max(found.gap, 0.0)
        self._until = math.inf
        if rests(p):
            if p.dual_form:
                if method.mu <= ACCELERATED:
                    _settle(method, *_resting(p, found, _SLIGHT))
                idle, values = _resting(p, found, _error(p, gap))
            else:
                idle, values = _zeros(p, found, gap)
            idle &= _near(method, values)
            method.put(idle, values)
        elif method.mu <= ACCELERATED and found.relative <= EARLY:
            idle = _holding_little(p, found)
            self._until = passes + HOLD
        else:
            return self.all
        kept = np.setdiff1d(self.all, np.flatnonzero(idle), assume_unique=True)
        return kept if kept.size else self.all

    def expired(self, passes: float) -> bool:
        """Whether what was known at the last look is too old."""
        return passes >= self._until


def _near(method: Auto, values: Vector) -> Mask:
    """Which coordinates are about at their resting values."""
    x = method.x
    off = np.maximum(np.abs(x - values), np.abs(method.z - values))
    return np.asarray(off <= NEAR * np.mean(np.abs(x)))


def _settle(method: Auto, resting: Mask, values: Vector) -> None:
    """Put those of the resting coordinates there that z has brought there, if F falls by it.

    x follows z by a factor of 1 - sqrt(mu-hat) a sweep, and F is linear in what is left of the way
    to a bound: late in a run that is most of the gap. But A x changes with them, and the others do
    not know: so those with a short way are tried alone too, and what is best is taken.
    """
    problem, f = method.problem, method.problem.f
    x = problem.nearest(method.x)
    way = np.abs(x - values)
    resting = resting & (way > 0) & (np.abs(method.z - values) <= BROUGHT * way)
    if not resting.any():
        return
    rows = method.rows()
    now = best = problem.value_from(x, rows)
    chosen: Mask | None = None
    tried = 0
    for level in LEVELS:
        there = resting & (way <= level * np.mean(np.abs(x)))
        if (count := int(np.count_nonzero(there))) == tried:
            continue
        tried = count
        change = f.columns.dot(f.sign * np.where(there, values - x, 0.0))
        value = problem.value_from(np.where(there, values, x), rows + change)
        if value < best:
            best, chosen = value, there
    if chosen is not None:
        method.put(chosen, values)
        method.fell(best - now)


def _error(problem: ERM, gap: float) -> float:
    """How wrong the margins are, on average."""
    gamma = problem.loss.gamma
    return math.sqrt(2 * gamma * gap) if gamma > 0 else 2 * gap


def _resting(problem: ERM, found: Certificate, delta: float) -> tuple[Mask, Vector]:
    """The coordinates of the dual that rest if the margins are right to delta, and where."""
    m = problem.loss.argument(found.z, problem.y)
    derivative = problem.loss.arrays.derivative
    below, above = derivative(m - delta), derivative(m + delta)
    return below == above, -problem.weights * below


def _holding_little(problem: ERM, found: Certificate) -> Mask:
    """The samples that together hold SHARE of the gap."""
    x, m = found.x, problem.loss.argument(found.z, problem.y)
    s = np.where(problem.weights > 0, problem.weights, 1.0)
    share = s * (problem.loss.arrays.value(m) + problem.loss.arrays.conjugate(x / s)) + m * x
    order = np.argsort(share)
    total = np.cumsum(np.maximum(share[order], 0.0))
    little = np.zeros(x.size, dtype=bool)
    little[order[: np.searchsorted(total, SHARE * total[-1])]] = True
    return little


def _zeros(problem: ERM, found: Certificate, gap: float) -> tuple[Mask, Vector]:
    """The weights that are very likely zero, and zeros."""
    weights = None if problem.weights.size == 1 else problem.weights
    norms = np.sqrt(problem.samples.transposed.squared_norms(weights))
    radius = norms * math.sqrt(2 * problem.n * gap / problem.loss.gamma)
    v = problem.combine(found.x)
    likely = np.abs(v) + CAUTION * radius / (problem.alpha * problem.n) < problem.interval.a
    likely &= (problem.interval.lower < 0) & (problem.interval.upper > 0)
    if problem.intercept:  # the last coordinate, which is never idle
        likely = np.append(likely, False)
    return likely, np.zeros(likely.size)
