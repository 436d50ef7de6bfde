"""Large d: directions by quasi-Newton, or by a local step of each shard, and a search over a few.

    quasi-Newton   p = -(L-BFGS) gradient: a vector and a pass an iteration
    local          each shard solves its own dual, the others replaced by their gradient; p is the
                   mean of what they found less w: one vector and some passes more

Which is better depends on the data: the fall of log(gap) for each pass and vector is measured over
blocks of iterations, and the better one is kept until it falls behind. Then P is minimised over p
and the last steps.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from .search import LineSearch
from .sums import Sums

PAIRS = 20  #: of L-BFGS
MEMORY = 5  #: last steps to search over (15: 0 to 4 iterations fewer; 1: one or two more)
PASSES = 5  #: sweeps of a local step (10: as many vectors, a third more passes)
PULL = 0.03  #: rho n/shards: how strongly a local step stays at w
BLOCKS = (3, 6)  #: local and quasi-Newton iterations that are measured
VECTOR = 1.0  #: what a vector costs, in passes
BEHIND = 0.9  #: the rate at which the other one is tried again
CAREFUL = 3  #: searches with probes at first


class Directions:
    """An iteration after the other, from where `sums` is."""

    stuck = False

    def __init__(self, sums: Sums, seed: int, local: bool) -> None:
        self.sums, self._seed = sums, seed
        self._local = self._can = local
        self._rates = [math.inf, math.inf] if local else [-math.inf, math.inf]
        self.iterations = 0
        self.forget()

    @property
    def name(self) -> str:
        """What it is at work on."""
        return "local dual steps" if self._local else "quasi-Newton"

    @property
    def unmixed(self) -> bool:
        """Whether local steps were measured, and brought less than a fifth of quasi-Newton's."""
        local, other = self._rates
        return self._can and math.isfinite(local + other) and local < 0.2 * other

    def forget(self) -> None:
        """The shards have lost their directions: begin anew at w."""
        self._steps: list[Table] = []
        self._pairs: list[tuple[Vector, Vector, float]] = []
        self._block()

    def _block(self) -> None:
        s = self.sums
        self._begun = s.gap, s.passes + VECTOR * s.vectors, 0

    def step(self) -> None:
        """One iteration: a direction, a search, a look."""
        sums = self.sums
        w, gradient = sums.w, sums.gradient
        p = self._local_way() if self._local else self._quasi_newton(gradient)
        search = LineSearch(sums, p, self._steps)
        c = search.find() if self.iterations < CAREFUL else search.newton()
        self._look(search, c)
        step, change = sums.w - w, sums.gradient - gradient
        self._steps = [step, *self._steps][:MEMORY]
        s, y = step.reshape(-1), change.reshape(-1)
        if (along := float(s @ y)) > 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self._pairs = [(s, y, along), *self._pairs][:PAIRS]
        self.iterations += 1
        self._choose()

    def _look(self, search: LineSearch, c: Vector) -> None:
        """Move by c. Where P has risen, or its slopes are not flat, search on from there."""
        sums, before, slope = self.sums, search.value, float(np.abs(search.slope @ c))
        sums.look(c, search.step(c))
        along = float(np.abs(search.W @ sums.gradient.reshape(-1) @ c))
        if sums.smooth <= before and along <= 0.5 * slope:
            return
        if abs(sums.smooth - before) <= 1e-14 * abs(before):
            return
        more = search.again().find()
        sums.look(more, search.step(more))

    def _local_way(self) -> Table:
        s = self.sums
        p = s.problem
        lam = float(p.ridge.reshape(-1)[0])
        alpha = lam + PULL * s.engine.shards / p.n
        return s.local(alpha, PASSES, self._seed + self.iterations) - s.w

    def _quasi_newton(self, gradient: Table) -> Table:
        q, kept = gradient.reshape(-1).copy(), []
        for s, y, along in self._pairs:
            a = float(s @ q) / along
            q -= a * y
            kept.append(a)
        if self._pairs:
            s, y, along = self._pairs[0]
            q *= along / float(y @ y)
        for (s, y, along), a in zip(reversed(self._pairs), reversed(kept), strict=True):
            q += (a - float(y @ q) / along) * s
        return -q.reshape(gradient.shape)

    def _choose(self) -> None:
        """Keep to the direction that brings more, by what was measured of both."""
        if not self._can:
            return
        s, (gap, spent, count) = self.sums, self._begun
        count += 1
        self._begun = gap, spent, count
        if count < BLOCKS[0 if self._local else 1]:
            return
        fall = math.log(max(gap, 1e-300) / max(s.gap, 1e-300))
        rate = fall / max(s.passes + VECTOR * s.vectors - spent, 1e-9)
        own, other = (0, 1) if self._local else (1, 0)
        self._rates[own] = rate
        if rate < BEHIND * self._rates[other] or rate < self._rates[other] == math.inf:
            self._local = not self._local
        self._block()
