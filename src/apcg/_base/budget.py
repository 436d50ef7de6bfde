"""How far a method may go before the next look, and how far it went."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How far a method may go before the next look.

    passes    at most so many passes over the data (a method that works in larger units finishes
              the unit that it is in)
    fixed     the user chose the distance between looks: a method that does not steer by looks uses
              all of `passes`; otherwise it returns when it wants to be looked at
    deadline  a value of time.perf_counter() after which it returns as soon as it can
    sweeps    a method that sweeps over few rows at a time returns after so many sweeps, for who
              wants to see its estimate in between; None is no limit
    """

    passes: int
    fixed: bool = False
    deadline: float | None = None
    sweeps: int | None = None

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() > self.deadline


@dataclass(frozen=True)
class Work:
    """What an `advance` took, in whole passes over the data."""

    passes: int
