"""APCG that finds its own mu, over coordinates that it visits unevenly.

The step is that of Algorithm 2 (`APCG`). Around it are two ideas, each in a file of its own: mu-hat
follows the observed rate (`rate`), and coordinates that move much are visited more often
(`visits`). Which coordinates are sampled at all is decided from outside, with `sample`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ...._base.validation import Index, Mask, Vector
from ....problems.composite import Composite
from ....sequences import Sequence
from ..apcg import APCG
from ..sampling import Sweep
from .rate import LEAST, Rate, RateTuning
from .visits import Visits, VisitsTuning


class Adaptive:
    """x, z and p, q of `APCG`, with mu-hat and the sweep.

    `least` is the mu of the theorem (0 if none is known), `first` the mu-hat to start with, and
    `without` names ideas to leave out: "rate" keeps mu-hat, "visits" keeps visits even.
    """

    def __init__(
        self,
        problem: Composite,
        x0: Vector,
        sampled: Index,
        least: float,
        first: float = 1.0,
        *,
        rate: RateTuning = RateTuning(),
        visits: VisitsTuning = VisitsTuning(),
        without: Collection[str] = (),
    ) -> None:
        self.problem = problem
        self._without = frozenset(without)
        self.sweep = Sweep(sampled)
        mu = max(first, min(max(least, LEAST), 1.0))
        self._apcg = APCG(problem, x0, Sequence(max(sampled.size, 1), mu, mu))
        self.rate = Rate(first, least, self.value(), rate)
        self._visits = Visits(problem, x0, visits)

    @property
    def mu(self) -> float:
        """mu-hat"""
        return self.rate.mu

    @property
    def restarts(self) -> int:
        """How often F rose and the momentum was dropped."""
        return self.rate.restarts

    @property
    def x(self) -> Vector:
        """The present answer."""
        return self._apcg.x

    @property
    def z(self) -> Vector:
        """The point that the prox steps start from; x follows it."""
        return self._apcg.z

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x less the shift of h)."""
        return self._apcg.rows(scale)

    def value(self) -> float:
        """F(x) from p and q: no pass over the data."""
        return self.problem.value_from(self.problem.nearest(self.x), self.rows())

    def epoch(self, order: Index) -> None:
        """One step on each coordinate of `order`; mu-hat is adapted at the end of each window."""
        n = self._n
        while order.size:
            left = self.rate.left(n)
            part, order = order[:left], order[left:]
            self._steps(part, n)
            self.rate.stepped(part.size)
            if part.size == left:
                self._end_window(n)

    def _steps(self, order: Index, n: int) -> None:
        """Algorithm 2 with n/r for n and mu-hat/r^2 for mu."""
        for r, part in self.sweep.runs(order):
            self._apcg.set_momentum(n / r, self.mu / r**2)
            self._apcg.epoch(part)

    def _end_window(self, n: int) -> None:
        if "rate" in self._without:
            self.rate.forget(self.value())
        elif self.rate.saw(self.value(), n, self.sweep.highest):
            self._apcg.restart()

    def sample(self, kept: Index) -> Sweep:
        """Sample these blocks from now on, those that travelled farthest most often."""
        before = self._n
        least = self.rate.least if self.rate.least > LEAST else None
        r = self._visits.choose(kept, self.x, self.mu, least)
        if r is not None and "visits" not in self._without:
            self.sweep = self._visits.sweep(kept, r)
        elif self.sweep.highest > 1 or not np.array_equal(kept, self.sweep.indices):
            self.sweep = self._visits.sweep(kept, None)
        if self._n != before:
            self.rate.resize(self._n, before)
        return self.sweep

    @property
    def _n(self) -> int:
        """Steps of a sweep."""
        return max(self.sweep.indices.size, 1)

    # ---- changes that are no steps ------------------------------------------------------------

    def refresh(self) -> None:
        """Compute p and q anew."""
        self._apcg.refresh()

    def shift(self, change: float) -> None:
        """As in `APCG`. It changes F, so the values seen before say nothing any more."""
        self._apcg.shift(change)
        self.rate.forget(self.value())

    def place(self, which: Mask, values: Vector) -> None:
        """x_i = z_i = values_i for those."""
        self._apcg.place(which, values)

    def objective_changed(self, change: float) -> None:
        """F has changed, not by steps: that is no part of the rate."""
        self.rate.shift(change)
