"""APCG that finds its own mu: from mu-hat = 1, which is SDCA, down towards the mu of the theorem.

Where mu-hat is at most the convexity that the problem really has, momentum gives a rate of about
sqrt(mu-hat) a pass. Where it is larger, the method is over-damped and the rate is about
mu_eff/sqrt(mu-hat). So the observed rate c tells mu_eff = c sqrt(mu-hat): *follow the rate*.

F is looked at every w = ceil(WINDOW/sqrt(mu-hat)) sweeps, which costs O(n + d). Let S1 be its fall
in the last w sweeps and S2 in the w before, and c = log(S2/S1)/w. Then

    c < SAFE sqrt(mu-hat)   mu-hat <- SHRINK c sqrt(mu-hat), but not below mu-hat/STEEPEST at a time
                            (c is noisy; less where more steps on a few coordinates may be the
                            cure), and never below the mu of the theorem
    c about sqrt(mu-hat)    (SAFE to LIMITED times it) PATIENCE times running: momentum, not the
                            problem, limits the rate, and mu-hat <- RAISE mu-hat
    c <= 0                  mu-hat <- mu-hat/2, unless F did not fall at all: that says nothing
    F has risen             restart (z = x) with RAISE mu-hat

and new windows begin. The state changes mu between steps without touching a vector.

Once there is momentum, coordinates that move much are sampled more often: `sweep.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .._validation import Index, Mask, Vector
from ..problem import Composite
from ..sequences import Sequence
from .apcg import APCG
from .sweep import Sweep, visits

WINDOW, SAFE, LIMITED, PATIENCE = 0.2, 0.9, 1.15, 3
SHRINK, STEEPEST, GENTLE, RAISE = 0.5, 16.0, 2.0, 4.0

#: Fewer steps than this tell no rate, and fewer coordinates not which of them are slow.
FEWEST = 20

#: r_i is at most UNEVEN over sqrt(mu-hat), because i has the momentum of mu-hat/r_i^2; and r = 1 if
#: mu-hat is at most FLOOR times the mu of the theorem, or if CROWDED coordinates move for each row.
UNEVEN, FLOOR, CROWDED = 8.0, 2.0, 3.0

#: Where no mu is known mu-hat stops here: the momentum of a run of 1e5 passes.
LEAST = 1e-10


class Auto:
    """APCG, the present mu-hat, and the values of F at the looks since it was set."""

    def __init__(
        self, problem: Composite, x0: Vector, sampled: Index, least: float, first: float = 1.0
    ) -> None:
        self.problem = problem
        self.least = min(max(least, LEAST), 1.0)
        #: mu-hat
        self.mu = max(first, self.least)
        self.sweep = Sweep(sampled)
        self.restarts = 0
        self._apcg = APCG(problem, x0, Sequence(max(sampled.size, 1), self.mu, self.mu))
        self._sweeps, self._limited = 0.0, 0
        self._values = [self._value()]
        self._last = x0

    @property
    def x(self) -> Vector:
        """The present answer."""
        return self._apcg.x

    @property
    def z(self) -> Vector:
        """What the prox steps are taken from; x follows it."""
        return self._apcg.z

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x less the shift of h)."""
        return self._apcg.rows(scale)

    def refresh(self) -> None:
        """Compute p and q anew."""
        self._apcg.refresh()

    def shift(self, change: float) -> None:
        """As in `APCG`. It changes F, so the values seen before say nothing any more."""
        self._apcg.shift(change)
        self._values, self._sweeps = [self._value()], 0.0

    def epoch(self, order: Index) -> int:
        """One step on each coordinate of `order`; the rule is applied at the end of a window."""
        n = max(self.sweep.indices.size, 1)
        while order.size:
            window = max(math.ceil(WINDOW / math.sqrt(self.mu)), FEWEST / n)
            left = math.ceil((window - self._sweeps) * n - 1e-6)
            part, order = np.split(order, [max(left, 1)])
            self._steps(part, n)
            self._sweeps += part.size / n
            if part.size >= left:
                self._values.append(self._value())
                self._follow_the_rate(self._sweeps)
                self._sweeps = 0.0
        return 1

    def _steps(self, order: Index, n: int) -> None:
        """Algorithm 2 with n/r for n and mu-hat/r^2 for mu."""
        state = self._apcg.state
        for r, part in self.sweep.runs(order):
            state.n, state.mu = n / r, self.mu / r**2
            state.gamma = state.mu
            self._apcg.epoch(part)

    def put(self, which: Mask, values: Vector) -> None:
        """x_i = z_i = values_i for those."""
        state, f = self._apcg.state, self.problem.f
        u, v = np.asarray(state.u), np.asarray(state.v)
        move = np.flatnonzero(which & ((u != 0) | (v != values)))
        if move.size:
            change = np.zeros(v.size)
            for k, (array, to) in enumerate(((u, np.zeros(v.size)), (v, values))):
                change[move] = (to - array)[move]
                array[move] = to[move]
                np.asarray(state.pq)[:, k] += f.columns.dot(f.sign * change)

    def fell(self, change: float) -> None:
        """F has changed by so much, not by steps: that is no part of the rate."""
        self._values = [value + change for value in self._values]

    def sample(self, kept: Index) -> Sweep:
        """Sample these from now on, those that have moved most since the last time most often."""
        x, p = self.x, self.problem
        moved, self._last = p.block_norms(x - self._last) * np.sqrt(p.L), x
        r = None
        if kept.size >= FEWEST and self._may_be_local(moved[kept]):
            r = visits(moved[kept], p.lengths[kept], UNEVEN / math.sqrt(self.mu))
        if r is not None and r.max() > 1:
            self.sweep = Sweep(kept, p.lengths, r)
        elif not np.array_equal(kept, self.sweep.indices):
            self.sweep = Sweep(kept, p.lengths)
        return self.sweep

    def _may_be_local(self, moved: Vector) -> bool:
        """Whether what is slow may be a few coordinates.

        Not if mu-hat is down to the mu of the theorem, or nearly. And not if many more coordinates
        move than A has rows: f has only that mu then in directions that they all have part in.
        """
        rows = self.problem.f.columns.n_rows
        if self.least > LEAST and np.count_nonzero(moved) > CROWDED * rows:
            return False
        return FLOOR * self.least < self.mu < 1

    def _value(self) -> float:
        """F(x) from p and q: no pass over the data."""
        return self.problem.value_from(self.problem.nearest(self.x), self.rows())

    def _follow_the_rate(self, w: float) -> None:
        values, root = self._values, math.sqrt(self.mu)
        if values[-1] > values[-2]:
            self._apcg.state.restart()
            self.restarts += 1
            self._set(RAISE * self.mu)
        elif len(values) > 2:
            last, before = values[1] - values[2], values[0] - values[1]
            self._values = values[-1:]
            if last > 0 and before > 0:
                self._adjust(math.log(before / last) / w, root)

    def _adjust(self, c: float, root: float) -> None:
        limited = SAFE * root <= c <= LIMITED * root
        self._limited = self._limited + 1 if limited else 0
        if c <= 0:
            self._set(self.mu / 2)
        elif c < SAFE * root:
            self._set(max(SHRINK * c * root, self.mu / self._steepest))
        elif self._limited == PATIENCE:
            self._limited = 0
            self._set(RAISE * self.mu)

    @property
    def _steepest(self) -> float:
        """How far mu-hat may fall at a time: less where more steps on a few may be the cure."""
        return max(GENTLE, STEEPEST / self.sweep.highest)

    def _set(self, mu: float) -> None:
        self.mu = min(max(mu, self.least), 1.0)
        self._values = self._values[-1:]
