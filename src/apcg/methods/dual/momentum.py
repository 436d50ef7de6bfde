"""Sweeps with momentum: APCG that finds its own mu, on uneven samples of the rows.

`_kernels/dual/one_output_momentum.pyx` has the step. Row i has r_i of the N steps of a sweep, r_i
a power of two: most where x moved most in the last sweep, since what is slow in sparse data is
local. The proof of Theorem 1 goes through with mu the convexity of f in the norm
sum_i (L_i/r_i^2) x_i^2: larger by up to r^2 if the slow directions are all among rows with r_i = r.

mu-hat follows the rate at which F = -D falls. Where mu-hat is at most the convexity mu that the
problem has, the rate is about sqrt(mu-hat) a sweep; where it is larger, mu/sqrt(mu-hat). With S1
the fall of F in the last window of sweeps, S2 in the one before and c = log(S2/S1)/window,

    c well below sqrt(mu-hat)   mu-hat is too large, it falls towards c sqrt(mu-hat)
    c about sqrt(mu-hat)        momentum is the limit: after a while mu-hat is raised
    F has risen                 restart (z = x) with a larger mu-hat
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.validation import Index
from ..paper.adaptive.rate import Rate, RateTuning
from .sweeps_k import MomentumK
from .sweeps_one import MomentumOne

#: The rule for mu-hat is that of the adaptive method; here a window is whole sweeps, however short.
_RATE = RateTuning(fewest=1)
#: r_i is at most HIGHEST and UNEVEN/sqrt(mu-hat), and 1 if mu-hat is at most FLOOR times mu.
HIGHEST, UNEVEN, FLOOR = 16, 8.0, 2.0
#: The centre of the intercept moves by MOVE sqrt(mu-hat) of the way, at most all of it.
MOVE = 2.0
#: Below this s the state is folded: u grows like 1/s, and with it the rounding error.
FOLD_AT = 1e-4
#: Fewer rows than this tell no rate, and alpha is at most one over it.
FEWEST = 20


class Momentum:
    """mu-hat, the visits, and the proximal centre of an intercept, for a state with momentum."""

    def __init__(
        self,
        sweeps: MomentumOne | MomentumK,
        without: tuple[str, ...],
        mu: float,
        *,
        fixed: bool = False,
    ) -> None:
        self.sweeps, self._visits, self._fixed = sweeps, "visits" not in without, fixed
        setup = sweeps.setup
        self.factor = setup.tuning.hasty
        #: the b of the proximal centre
        self.centre = sweeps.b - self._pull()
        self._highest = 1
        least = max(setup.problem.mu, setup.tuning.least_mu if setup.constant else 0.0)
        self.rate = Rate(mu, least, self._value(), _RATE)

    @property
    def mu(self) -> float:
        """mu-hat"""
        return self.rate.mu

    @property
    def restarts(self) -> int:
        """How often mu-hat had to rise."""
        return self.rate.restarts

    @property
    def pause(self) -> float:
        """Looks are so many sweeps apart."""
        return self.sweeps.setup.tuning.pause / math.sqrt(self.rate.mu)

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, tuple[Index, ...]]:
        """The rows of a sweep, and what is cut into calls."""
        listed, parts, steps, self._highest = self.sweeps.schedule(
            keep, self._most_visits(keep), rng
        )
        # with few rows alpha would be near 1, and s near 0
        self.sweeps.set_pace(steps, min(math.sqrt(self.rate.mu), steps / FEWEST))
        return listed, parts

    def _most_visits(self, keep: Index) -> float:
        """1 where there is nothing to gain from uneven visits."""
        mu = self.rate.mu
        even = self._fixed or not self._visits or keep.size < FEWEST
        if even or mu <= FLOOR * self.rate.least:
            return 1.0
        return min(HIGHEST, UNEVEN / math.sqrt(mu))

    def after(self) -> None:
        """After a sweep: mu-hat, the centre of the intercept."""
        self.sweeps.come_inside(FOLD_AT)
        window_ends = self.rate.left(1) == 1
        self.rate.stepped(1)
        if window_ends:
            if self._fixed:
                self.rate.forget(self._value())
            elif self.rate.saw(self._value(), 1, self._highest):
                self.sweeps.restart()
        if self.sweeps.setup.constant:
            self._move_centre()

    def _value(self) -> float:
        """F = -D, with the proximal term of the intercept."""
        setup, value = self.sweeps.setup, self.sweeps.value()
        if setup.constant:
            b = self.centre + self._pull()
            change = float(np.dot(b - self.centre, b + self.centre))
            value += setup.problem.strong_convexity / (2 * setup.constant) * change
        return value

    def _pull(self) -> Any:
        """b less that of the centre: (c^2/(sigma n)) sum_i x_i."""
        setup = self.sweeps.setup
        return setup.pull(self.sweeps.a) if setup.constant else 0.0

    def _move_centre(self) -> None:
        """The centre moves towards b, and b by as much; F jumps, which is no part of its rate.

        Where momentum takes many sweeps to answer, whole moves would make it swing: moves of
        sqrt(mu-hat) are not slower than momentum itself.
        """
        setup, a = self.sweeps.setup, self.sweeps.a
        change: Any = setup.pull(a, min(1.0, MOVE * math.sqrt(self.rate.mu)))
        self.sweeps.move_b(change)
        self.centre = self.centre + change
        self.rate.shift(float(np.dot(change, setup.imbalance(a))) / setup.problem.n)
