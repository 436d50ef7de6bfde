"""A loss made of lines and parabolas as interior points see it: pieces with dual variables a.

    phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2 on [lower, upper]

x is a starting value plus or minus a with 0 <= a <= u, or the difference of two such a if phi* has
a kink at 0. In terms of a, the dual function of row i is the sum over its pieces of

    h a - (c/2) a^2,   c = gamma/s

and its row of X counts g a, plus `shift`. `InteriorPoints` is what both methods on such pieces
share.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..._base.validation import Matrix, Vector
from ...losses import Loss
from ..base import Budget, Stepping, Work


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of all rows: g, h and upper (u) have a row for each piece, 1 or 2."""

    loss: Loss
    y: Vector
    s: Vector
    g: Matrix
    h: Matrix
    upper: Matrix
    c: Vector
    shift: Vector

    @classmethod
    def of(cls, loss: Loss, y: Vector, s: Vector) -> Pieces:
        """For labels y and weights s > 0."""
        k, epsilon, gamma, lower, upper = loss.theta
        label = y if loss.margin else np.ones(y.size)
        slope = np.full(y.size, k) if loss.margin else y + k
        c = gamma / s
        if loss.conjugate_kink:
            g = np.stack([label, -label])
            h = np.stack([slope - epsilon, -slope - epsilon])
            return cls(loss, y, s, g, h, np.stack([upper * s, -lower * s]), c, np.zeros(y.size))
        up = math.isfinite(lower)  # from the lower end up, or from the upper end down
        end, way = (lower, 1.0) if up else (upper, -1.0)
        slope = slope - (epsilon if upper > 0 else -epsilon) if epsilon else slope
        h = way * (slope - gamma * end)
        return cls(
            loss, y, s, way * label[None], h[None], ((upper - lower) * s)[None], c, end * s * label
        )

    @property
    def bounded(self) -> bool:
        """Whether a has an upper bound."""
        return bool(np.isfinite(self.upper[0, 0]))

    @property
    def holds_zero(self) -> bool:
        """Whether x = 0 is in the domain of phi*, which is 0 there: then phi >= 0."""
        lower, upper = self.loss.domain
        return bool(lower <= 0 <= upper)

    def start(self) -> tuple[Matrix, Matrix, Matrix]:
        """a in the middle, and sigma and xi that fit z = 0."""
        a = 0.5 * self.upper if self.bounded else np.broadcast_to(2 / self.c, self.g.shape).copy()
        short = self.h - self.c * a
        if self.bounded:
            return a, np.maximum(-short, 0.0) + 1.0, np.maximum(short, 0.0) + 1.0
        return a, np.maximum(-short, 1.0), np.zeros_like(a)

    def total(self, z: Vector) -> float:
        """sum_i s_i phi_i(z_i)"""
        return float(self.loss.arrays.total(z, self.y, self.loss.margin, self.s))


class InteriorPoints(Stepping):
    """Steps of Mehrotra's predictor and corrector until mu is small enough."""

    def __init__(self, aim: float) -> None:
        #: the relative gap that is aimed at; passes so far
        self._aim, self._cost = aim, 0.0

    @abstractmethod
    def _step(self) -> None:
        """One step; `stuck` if it leads nowhere."""

    @abstractmethod
    def _passes(self) -> bool:
        """Whether mu is small enough for the gap that is aimed at."""

    def advance(self, budget: Budget) -> Work:
        """Steps until the gap is predicted to pass, or the budget is spent."""
        first = self._cost
        while not (self.stuck or budget.expired or self._cost - first >= budget.passes):
            if self._passes() and not budget.fixed:
                break
            self._step()
        return self._since(self._cost, self.least_passes)

    #: an `advance` that made no step counts as so many passes
    least_passes = 0


def centred(products: float, after: float, count: int) -> float:
    """What each product is to become, by Mehrotra: their mean times the cube of how it can fall.

    after  what a whole step of the predictor leaves of `products`, their sum
    """
    return products / count * (max(after, 0.0) / products) ** 3


def step_length(fastest: float, part: float) -> float:
    """At most 1, and `part` of the way to where the first of all becomes zero."""
    return 1.0 if fastest <= part else part / fastest
