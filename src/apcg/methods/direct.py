"""Algorithm 1 run directly, in Python, for an f or Psi that the kernels do not know.

A step costs O(N) besides the user's own functions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .._validation import Index, Vector
from ..problem import Composite
from ..sequences import Sequence
from .reference import algorithm_1


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
