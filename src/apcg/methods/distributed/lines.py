"""Losses made of lines (hinge, epsilon-insensitive, pinball), large d: augmented Lagrangian.

    phi_c(m) = max_x -x m - phi*(-x) - (gamma/2)(x - c)^2

is smooth. Its minimum over w has an x; c moves there, and gamma falls, or rises where the minimum
was not reached. It is the smoothed loss at margins that are shifted by gamma c. The certificate is
that of the loss itself.
"""

from __future__ import annotations

from .directions import Directions
from .sums import Sums

#: gamma at first, what it is multiplied by, and the least.
_FIRST, _FALL, _LEAST = 1.0, 0.3, 1e-3
#: An inner problem ends where |gradient|^2 over the ridge is this part of the gap, or after so many
#: steps.
_INNER, _STEPS = 0.1, 80


class LineSteps:
    """Steps on the smoothed problem, which moves when it is nearly solved."""

    unmixed = stuck = False

    def __init__(self, sums: Sums, seed: int) -> None:
        self.sums, self._seed = sums, seed
        self._gamma, self._begun = _FIRST, False
        self._count = 0
        self._inner = self._start()

    def _start(self) -> Directions:
        return Directions(self.sums, self._seed, False)

    @property
    def name(self) -> str:
        """What it is at work on."""
        return f"augmented Lagrangian, {self._inner.name}"

    def forget(self) -> None:
        """The shards are at x = 0 again: gamma begins anew there."""
        self._gamma, self._begun = _FIRST, False
        self._inner = self._start()

    def step(self) -> None:
        """A step on the smoothed problem; where that is nearly solved, its centre moves first."""
        if not self._begun or self._solved():
            self._move()
        self._inner.step()
        self._count += 1

    def _solved(self) -> bool:
        s = self.sums
        p = s.problem
        gradient = s.gradient[: p.d].reshape(-1)
        least = float(p.ridge.reshape(-1)[: p.d].min())
        left = float(gradient @ gradient) / (2 * least)
        return self._count >= _STEPS or left <= _INNER * max(s.gap, 1e-16 * abs(s.primal))

    def _move(self) -> None:
        s = self.sums
        if self._begun:
            by = _FALL if self._count < _STEPS else 1 / _FALL
            self._gamma = min(max(by * self._gamma, _LEAST), _FIRST)
        s.centre(self._gamma, cold=not self._begun)
        self._begun, self._count, self._inner = True, 0, self._start()
        s.look()
