"""Follow the rate: a mu-hat between 1, which is SDCA, and the mu of the theorem.

Where mu-hat is at most the convexity that the problem really has, momentum gives a rate of about
sqrt(mu-hat) a sweep. Where it is larger, the method is over-damped and the rate is about
mu_eff/sqrt(mu-hat). So the observed rate c tells mu_eff = c sqrt(mu-hat).

F is evaluated every w = ceil(window/sqrt(mu-hat)) sweeps, which costs O(n + d). Let S1 be its fall
in the last w sweeps and S2 in the w before, and c = log(S2/S1)/w. Then

    c < safe sqrt(mu-hat)   mu-hat <- shrink c sqrt(mu-hat), but not below mu-hat/steepest at a time
                            (c is noisy), and never below the mu of the theorem
    c about sqrt(mu-hat)    (safe to limited times it) `patience` times running: momentum, not the
                            problem, limits the rate, and mu-hat <- grow mu-hat
    c <= 0                  mu-hat <- mu-hat/2, unless F did not fall at all: that says nothing
    F has risen             restart (z = x) with grow mu-hat

and new windows begin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Where no mu is known, mu-hat stops here: the momentum of a run of 1e5 sweeps.
LEAST = 1e-10


@dataclass(frozen=True)
class RateTuning:
    """How mu-hat follows the rate (docs/decisions/0004-adaptive-tuning.md)."""

    #: Sweeps between two values of F, times sqrt(mu-hat). 0.5 takes 0.94 of the time: flat.
    window: float = 0.2
    #: Below this share of sqrt(mu-hat) a rate is too slow for the momentum there is.
    safe: float = 0.9
    #: Up to this multiple of sqrt(mu-hat), momentum limits the rate.
    limited: float = 1.15
    #: So many limited windows in a row before mu-hat grows. Never growing takes 1.07 of the time.
    patience: int = 3
    #: mu-hat falls to this share of c sqrt(mu-hat). 1 takes 0.95 of the time: flat.
    shrink: float = 0.5
    #: mu-hat falls at most by this factor at a time. 4 takes 1.02 of the time: flat.
    steepest: float = 16.0
    #: The same where visits are uneven: more visits may be the cure, not more momentum.
    gentle: float = 2.0
    #: mu-hat grows by this factor, after a restart too.
    grow: float = 4.0
    #: A window has at least this many steps: fewer tell no rate.
    fewest: int = 20


class Rate:
    """mu-hat and the values of F that decide on it."""

    def __init__(self, first: float, least: float, value: float, tuning: RateTuning) -> None:
        self.least = min(max(least, LEAST), 1.0)
        #: mu-hat
        self.mu = max(first, self.least)
        self.restarts = 0
        self._tuning = tuning
        self._values = [value]
        self._steps, self._limited = 0, 0

    def left(self, n: int) -> int:
        """Steps until F is evaluated next, in a sweep of n steps; at least 1."""
        window = math.ceil(self._tuning.window / math.sqrt(self.mu)) * n
        return max(max(window, self._tuning.fewest) - self._steps, 1)

    def stepped(self, steps: int) -> None:
        """Count steps of the present window."""
        self._steps += steps

    def resize(self, n: int, before: int) -> None:
        """A sweep has n steps now, and had `before`: the window keeps its part of a sweep."""
        self._steps = self._steps * n // before

    def saw(self, value: float, n: int, highest: int) -> bool:
        """End a window with F = value, in a sweep of n steps with at most `highest` visits.

        Returns whether to restart, because F has risen.
        """
        sweeps, self._steps = self._steps / n, 0
        self._values.append(value)
        values = self._values
        if values[-1] > values[-2]:
            self.restarts += 1
            self._set(self._tuning.grow * self.mu)
            return True
        if len(values) > 2:
            last, before = values[1] - values[2], values[0] - values[1]
            self._values = values[-1:]
            if last > 0 and before > 0:
                self._adjust(math.log(before / last) / sweeps, highest)
        return False

    def shift(self, change: float) -> None:
        """Shift the recorded values after F changed for a reason other than a step."""
        self._values = [value + change for value in self._values]

    def forget(self, value: float) -> None:
        """F is another function now: begin new windows."""
        self._values, self._steps = [value], 0

    def _adjust(self, c: float, highest: int) -> None:
        t, root = self._tuning, math.sqrt(self.mu)
        limited = t.safe * root <= c <= t.limited * root
        self._limited = self._limited + 1 if limited else 0
        if c <= 0:
            self._set(self.mu / 2)
        elif c < t.safe * root:
            steepest = max(t.gentle, t.steepest / highest)
            self._set(max(t.shrink * c * root, self.mu / steepest))
        elif self._limited == t.patience:
            self._limited = 0
            self._set(t.grow * self.mu)

    def _set(self, mu: float) -> None:
        self.mu = min(max(mu, self.least), 1.0)
        self._values = self._values[-1:]
