"""Algorithms 1 and 2 run directly, in Python, for an f or Psi that the kernels do not know.

A step costs O(N) besides the user's own functions.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from ..._base.validation import Index, Vector
from ...problems.composite import Composite
from ...sequences import Sequence
from .adaptive.rate import Rate, RateTuning
from .reference import algorithm_1, prox_step


class Direct:
    """`reference.algorithm_1` fed with the blocks of one epoch after the other."""

    def __init__(self, problem: Composite, x0: Vector, sequence: Sequence) -> None:
        self.x, self.mu = x0, sequence.mu
        self._queue: deque[int] = deque()
        self._iterates = algorithm_1(
            problem, x0, sequence.mu, sequence.gamma0, self._indices(), sequence.n
        )

    def _indices(self) -> Iterator[int]:
        while True:
            yield self._queue.popleft()

    def epoch(self, order: Index) -> None:
        """One step on each block of `order`."""
        self._queue.extend(order.tolist())
        for _ in range(len(order)):
            self.x, _, _ = next(self._iterates)


class DirectAdaptive:
    """Algorithm 2 with a mu-hat that follows the rate (`adaptive.rate`), from 1 down to `least`."""

    def __init__(self, problem: Composite, x0: Vector, n: int, least: float) -> None:
        self.problem, self.n = problem, n
        self.x = self._z = x0
        self._rate = Rate(1.0, least, self._value(), RateTuning())

    @property
    def mu(self) -> float:
        """mu-hat"""
        return self._rate.mu

    def epoch(self, order: Index) -> None:
        """One step on each block of `order`; F is evaluated at the end of each window."""
        for i in order.tolist():
            self._step(i)
            left = self._rate.left(self.n)
            self._rate.stepped(1)
            if left == 1 and self._rate.saw(self._value(), self.n, 1):
                self._z = self.x

    def _step(self, i: int) -> None:
        n, alpha, x, z = self.n, math.sqrt(self.mu) / self.n, self.x, self._z
        y = (x + alpha * z) / (1 + alpha)
        moved = (1 - alpha) * z + alpha * y
        moved[self.problem.block(i)] = prox_step(self.problem, i, moved, y, n * alpha)
        self.x = y + n * alpha * (moved - z) + n * alpha**2 * (z - y)
        self._z = moved

    def _value(self) -> float:
        return self.problem.value(self.problem.nearest(self.x))
