"""The best pair: the best w and the best x of a run, which need not be of one look.

P(omega(x)) of a dual method goes up and down; a point between two is often better than either. P is
taken for a parabola through three points of the line between them. The predictions z are linear in
w, so this needs no pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._validation import Vector
from ...erm import ERM
from ...points import Certificate


@dataclass(frozen=True)
class PairTuning:
    """When points between are tried (docs/decisions/0004-adaptive-tuning.md)."""

    #: Values that differ by less, relative to P and D, are the same; their points may still differ.
    rounding: float = 1e-13
    #: While the gap falls faster than this from look to look, no point between is better by much.
    fast: float = 0.2


class Pair:
    """The best w and x so far, as a certificate."""

    def __init__(self, problem: ERM, start: Certificate | None, tuning: PairTuning = PairTuning()):
        self.problem, self.best, self.tuning = problem, start, tuning

    def take(self, found: Certificate) -> Certificate:
        """The best pair, after a look."""
        if self.best is not None and self.best.finite and found.finite:
            found = combine(self.problem, self.best, found, self.tuning)
        self.best = found
        return found


def combine(
    problem: ERM, best: Certificate, new: Certificate, tuning: PairTuning = PairTuning()
) -> Certificate:
    """The better x of the two, and the w of the two or on the line through them with least P."""
    slack = tuning.rounding * (abs(new.primal) + abs(new.dual))  # of two as good, the new one
    x, dual = (best.x, best.dual) if best.dual > new.dual + slack else (new.x, new.dual)

    def value(t: float) -> float:
        return problem.primal_from(_between(best.w, new.w, t), _between(best.z, new.z, t))

    values = {0.0: best.primal, 1.0: new.primal}
    if new.gap > tuning.fast * best.gap:
        values[0.5] = value(0.5)
        bend = best.primal - 2 * values[0.5] + new.primal
        if bend > 0:
            t = float(np.clip(0.5 + 0.25 * (best.primal - new.primal) / bend, -1.0, 2.0))
            values[t] = value(t)
    t = min(values, key=lambda t: values[t] + slack * (t != 1.0))
    if t == 1.0 and x is new.x:
        return new
    w, z = _between(best.w, new.w, t), _between(best.z, new.z, t)
    b = best.b if t == 0 else (new.b if t == 1 else best.b + t * (new.b - best.b))
    return Certificate(w, x, b, z, values[t], dual)


def _between(first: Vector, second: Vector, t: float) -> Vector:
    """first + t (second - first), exactly one of them at t = 0 and t = 1."""
    if t in (0.0, 1.0):
        return second if t else first
    return first + t * (second - first)
