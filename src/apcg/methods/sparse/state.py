"""Records of a run: where it is, its last look at the gap, how it gets on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._base.validation import Index, Vector
from ...certify.points import Certificate
from ..base import Budget, Work
from .losses_at import Evaluated


@dataclass(frozen=True, eq=False)
class State:
    """Where a run is. It is never changed, so that the one before can be kept and taken up again.

    w, b   the point
    seen   its predictions with their losses; None before the first pass
    descent  minus the gradient of the losses by w, at the best b
    pair   a dual point x with its v = A x/(lambda n), which was computed from that x alone
    fresh  whether the predictions were computed from w alone
    """

    w: Any
    b: Any = 0.0
    seen: Evaluated | None = None
    descent: Any = field(default_factory=lambda: np.empty(0))
    pair: tuple[Vector, Any] | None = None
    fresh: bool = False

    def but(self, **changes: Any) -> State:
        """The same with some fields anew, without the time that `replace` takes."""
        made = object.__new__(State)
        made.__dict__.update(self.__dict__, **changes)
        return made


@dataclass(frozen=True, eq=False)
class GapLook:
    """The dual point of the last gap: x, or that of the state's pair; and its certificate."""

    x: Vector | None = None
    paired: bool = False
    certificate: Certificate | None = None


@dataclass(frozen=True)
class Progress:
    """The least gap and P so far, rounds since one of them fell, and rounds of this stage."""

    gap: float = math.inf
    value: float = math.inf
    idle: int = 0
    rounds: int = 0

    def after(self, gap: float, value: float, little: float) -> Progress:
        """After a round: idle unless the gap fell by a tenth, or P by more than little."""
        if gap < 0.9 * self.gap or value < self.value - little:
            return Progress(min(gap, self.gap), min(value, self.value), 1, self.rounds)
        return replace(self, idle=self.idle + 1)

    def in_stage(self) -> Progress:
        """With one round more in this stage."""
        return replace(self, rounds=self.rounds + 1)


class Told:
    """The passes that a run has told of, and the budget it has."""

    def __init__(self) -> None:
        self._passes, self._budget, self._end = 0, Budget(0), math.inf

    def begin(self, budget: Budget, cost: float) -> None:
        """A budget, for a run that has taken `cost` passes so far."""
        self._budget, self._end = budget, cost + budget.passes

    def is_over(self, cost: float) -> bool:
        """Whether the budget is spent."""
        return self._budget.expired or cost >= self._end

    def more(self, cost: float) -> Work:
        """The passes that were not told yet."""
        passes = max(math.ceil(cost) - self._passes, 1)
        self._passes += passes
        return Work(passes)


def placed(w: Any, W: Index | slice, v: Any) -> Any:
    """A copy of w with v in the places W."""
    new = w.copy()
    new[W] = v
    return new
