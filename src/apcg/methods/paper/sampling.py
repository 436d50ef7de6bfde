"""Sweeps: which coordinates a pass steps on, how often, and in what order.

A `Sweep` is a list of visits: one to each coordinate, or r_i of them. A `Sampler` draws the steps
of one pass after the other from it, in random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..._base.validation import Index, Vector

#: The largest number of visits to a coordinate in a sweep; a power of two.
HIGHEST = 16


class Sweep:
    """The steps of a sweep over the blocks `kept`: one on each, or r_i of them.

    `steps` of them make a pass: they touch as many stored numbers as one step on every block.
    """

    def __init__(self, kept: Index, lengths: Vector | None = None, r: Index | None = None) -> None:
        self.highest = 1 if r is None else int(r.max(initial=1))
        self.indices = kept if r is None else np.repeat(kept, r)
        self.steps = kept.size
        if lengths is not None:
            own = np.sum(lengths[self.indices])
            self.steps = round(self.indices.size * float(np.sum(lengths) / own))
        if lengths is not None and r is not None:
            self.visits = np.ones(lengths.size, dtype=np.intp)
            self.visits[kept] = r
            self._r = np.repeat(r, r)
            # which visit to its block a step is, from 0
            self._visit = np.arange(self.indices.size) - np.repeat(np.cumsum(r) - r, r)

    def shuffled(self, rng: np.random.Generator) -> Index:
        """The steps in random order, one of the r_i on a block in each r_i-th part of the sweep.

        Within each HIGHEST-th part of the sweep they are in order of r. Steps of one r then come
        in few runs, and each run is one call of the kernel.
        """
        if self.highest == 1:
            return rng.permutation(self.indices)
        when = HIGHEST * (self._visit + rng.random(self.indices.size)) / self._r
        slot = np.floor(when)
        return self.indices[np.argsort((HIGHEST + 1) * slot + self._r + (when - slot))]

    def left_of(self, remaining: Index) -> Index:
        """The remaining steps of an earlier sweep that this one samples too, in few runs."""
        remaining = remaining[np.isin(remaining, self.indices)]
        if self.highest == 1:
            return remaining
        slot = np.arange(remaining.size) // max(self.indices.size // HIGHEST, 1)
        return remaining[np.argsort((HIGHEST + 1) * slot + self.visits[remaining], kind="stable")]

    def runs(self, order: Index) -> Iterator[tuple[int, Index]]:
        """`order` in parts of one r each."""
        if self.highest == 1:
            yield 1, order
            return
        r = self.visits[order]
        changes = np.flatnonzero(np.diff(r)) + 1
        for start, end in pairwise([0, *changes.tolist(), order.size]):
            yield int(r[start]), order[start:end]


class Sampler:
    """Draws the steps of one pass after the other.

    "permutation" goes through each sweep in random order. What is left of a sweep when the next
    one begins comes first, so that no coordinate waits long. "uniform" draws independently, as in
    the theorems.
    """

    def __init__(self, rng: np.random.Generator, sampling: str) -> None:
        self._rng, self._uniform = rng, sampling == "uniform"
        self._remaining: Index = np.empty(0, dtype=np.intp)
        self._sweep: Sweep | None = None

    def draw(self, sweep: Sweep) -> Index:
        """The coordinates of the next pass, `sweep.steps` of them."""
        steps = sweep.steps
        if self._uniform:
            return sweep.indices[self._rng.integers(sweep.indices.size, size=steps)]
        if sweep is not self._sweep:
            self._remaining, self._sweep = sweep.left_of(self._remaining), sweep
        remaining = self._remaining
        while remaining.size < steps:
            new = sweep.shuffled(self._rng)
            remaining = np.concatenate([remaining, new]) if remaining.size else new
        order, self._remaining = remaining[:steps], remaining[steps:]
        return order
