"""Settling: x is placed at a bound that z has reached, if F decreases by it.

With momentum the distance from x to z falls by a factor of 1 - sqrt(mu-hat) a sweep, and F is
linear in the distance to a bound: late in a run that is most of the gap. But A x changes with the
coordinates that are placed, and the other coordinates do not fit that A x yet. So those that are
near their bounds are tried alone too, and the best of three trials is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._base.validation import Mask, Vector
from ....certify.points import Certificate
from ....problems.erm import ERM
from .iterate import Adaptive


@dataclass(frozen=True)
class SettlingTuning:
    """Which coordinates are tried (docs/decisions/0004-adaptive-tuning.md)."""

    #: A coordinate rests if phi' is constant within this of its margin: a kink is no place to rest.
    slight: float = 1e-6
    #: The way of x to its bound in each of the trials, in units of the mean of |x_i|.
    levels: tuple[float, ...] = (0.01, 0.1, 1.0)
    #: z has at most this share of that way left (z drifts towards x between its own steps).
    remaining: float = 0.3


def settle(problem: ERM, method: Adaptive, found: Certificate, tuning: SettlingTuning) -> None:
    """Place coordinates of x at the bounds where their margins say that they rest."""
    m = problem.loss.argument(found.z, problem.y)
    resting, value = problem.loss.resting(m, tuning.slight)
    place_if_lower(method, resting, problem.weights * value, tuning)


def place_if_lower(method: Adaptive, resting: Mask, values: Vector, tuning: SettlingTuning) -> None:
    """Of the resting coordinates, place those at their values by which F decreases most."""
    problem, f = method.problem, method.problem.f
    x = problem.nearest(method.x)
    way = np.abs(x - values)
    resting = resting & (way > 0) & (np.abs(method.z - values) <= tuning.remaining * way)
    if not resting.any():
        return
    rows = method.rows()
    now = best = problem.value_from(x, rows)
    chosen: Mask | None = None
    tried = 0
    for level in tuning.levels:
        there = resting & (way <= level * np.mean(np.abs(x)))
        if (count := int(np.count_nonzero(there))) == tried:
            continue
        tried = count
        change = f.columns.adjoint(f.sign * np.where(there, values - x, 0.0))
        value = problem.value_from(np.where(there, values, x), rows + change)
        if value < best:
            best, chosen = value, there
    if chosen is not None:
        method.place(chosen, values)
        method.objective_changed(best - now)
