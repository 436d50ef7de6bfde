"""Resting: coordinates that very likely need no step are left out of the passes.

Excluded coordinates are reconsidered at every look, and the gap that ends a run is over all of
them: resting cannot change the answer.

Dual, where x_i has values to rest at (the bounds of the hinge family and of Huber, the zeros of
epsilon-insensitive). x_i = -s_i phi'(m_i) at the optimum, m_i the margin or residual of sample i.
If phi' is constant within delta of m_i, and the margins are right to delta, x_i rests there. By
Lemma 4 the gap bounds the mean of (m_i - its optimum)^2/(2 gamma), so delta = sqrt(2 gamma gap), or
2 gap for a loss that is not smooth, is the error of the margins on average.

Dual, logistic loss: nothing rests, but the gap is a sum over samples of
phi(m_i) + phi*(-x_i) + m_i x_i >= 0. The samples that together hold a small share of it are left
out, for a pass, because their share grows.

Primal with L1: w_j = 0 at the optimum if |v_j| < a_j there, v = A x/(lambda n). D is strongly
concave, so v_j is within |X_j| sqrt(2 n gap/gamma)/(lambda n) of its optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...._base.validation import Index, Mask, Vector
from ....certify.points import Certificate
from ....problems.erm import ERM
from .iterate import Adaptive
from .settling import SettlingTuning, settle


@dataclass(frozen=True)
class RestingTuning:
    """Which coordinates are left out (docs/decisions/0004-adaptive-tuning.md)."""

    #: A coordinate this near its resting value, in units of the mean of |x_i|, is placed there.
    near: float = 1e-3
    #: w_j rests at zero if |v_j| is below a_j by this share of the radius that is certain.
    caution: float = 0.3
    #: Logistic: samples that together hold this share of the gap are left out ...
    share: float = 1e-3
    #: ... for so many passes ...
    hold: float = 1.0
    #: ... from this relative gap on ...
    early: float = 0.1
    #: ... and, as settling, only with momentum: at this mu-hat or less.
    accelerated: float = 0.3


def applies(problem: ERM) -> bool:
    """Whether there is anything to leave out."""
    return rests(problem) or (problem.dual_form and problem.loss.kernel == "logistic")


def rests(problem: ERM) -> bool:
    """Whether there are values that coordinates come to rest at."""
    if problem.dual_form:
        return bool(problem.loss.rests)
    return problem.separable and bool(problem.interval.a.any())


class Resting:
    """Which of the coordinates to sample, after each look at the gap."""

    def __init__(
        self,
        problem: ERM,
        coordinates: Index,
        tuning: RestingTuning = RestingTuning(),
        settling: SettlingTuning | None = SettlingTuning(),
    ) -> None:
        self.problem, self.all, self.tuning = problem, coordinates, tuning
        self._settling = settling
        self._until = math.inf

    def after_look(self, method: Adaptive, found: Certificate, passes: float) -> Index:
        """The coordinates to sample from now on; those that rest are placed where they rest."""
        p, gap, t = self.problem, max(found.gap, 0.0), self.tuning
        self._until = math.inf
        if rests(p):
            if p.dual_form:
                if self._settling and method.mu <= t.accelerated:
                    settle(p, method, found, self._settling)
                idle, values = _resting(p, found, _error(p, gap))
            else:
                idle, values = _zeros(p, found, gap, t.caution)
            idle &= _near(method, values, t.near)
            method.place(idle, values)
        elif method.mu <= t.accelerated and found.relative <= t.early:
            idle = _holding_little(p, found, t.share)
            self._until = passes + t.hold
        else:
            return self.all
        kept = np.setdiff1d(self.all, np.flatnonzero(idle), assume_unique=True)
        return kept if kept.size else self.all

    def expired(self, passes: float) -> bool:
        """Whether what was known at the last look is too old."""
        return passes >= self._until


def _near(method: Adaptive, values: Vector, share: float) -> Mask:
    """Which coordinates are about at their resting values."""
    x = method.x
    off = np.maximum(np.abs(x - values), np.abs(method.z - values))
    return np.asarray(off <= share * np.mean(np.abs(x)))


def _error(problem: ERM, gap: float) -> float:
    """How wrong the margins are, on average."""
    gamma = problem.loss.gamma
    return math.sqrt(2 * gamma * gap) if gamma > 0 else 2 * gap


def _resting(problem: ERM, found: Certificate, delta: float) -> tuple[Mask, Vector]:
    """The dual coordinates that rest if the margins are right to delta, and where."""
    rests_there, value = problem.loss.resting(problem.loss.argument(found.z, problem.y), delta)
    return rests_there, problem.weights * value


def _holding_little(problem: ERM, found: Certificate, share: float) -> Mask:
    """The samples that together hold this share of the gap."""
    m = problem.loss.argument(found.z, problem.y)
    parts = problem.loss.gap_share(m, found.x, problem.weights)
    order = np.argsort(parts)
    total = np.cumsum(np.maximum(parts[order], 0.0))
    little = np.zeros(found.x.size, dtype=bool)
    little[order[: np.searchsorted(total, share * total[-1])]] = True
    return little


def _zeros(problem: ERM, found: Certificate, gap: float, caution: float) -> tuple[Mask, Vector]:
    """The weights that are very likely zero, and zeros."""
    s = np.broadcast_to(problem.weights, problem.n_samples)
    norms = np.sqrt(problem.samples.column_squares(s))
    radius = norms * math.sqrt(2 * problem.n * gap / problem.loss.gamma)
    v = problem.v_of(found.x)
    likely = np.abs(v) + caution * radius / (problem.alpha * problem.n) < problem.interval.a
    likely &= (problem.interval.lower < 0) & (problem.interval.upper > 0)
    if problem.intercept:  # the last coordinate, which is never idle
        likely = np.append(likely, False)
    return likely, np.zeros(likely.size)
