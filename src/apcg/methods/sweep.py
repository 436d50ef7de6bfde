"""Uneven sampling: coordinates that still move much are visited more often than the others.

Where momentum is needed, a run spends most of its passes on a few slow directions, and in sparse
data these are local: differences of nearly equal rows, say. Their coordinates are those in which x
still moves when it has come to rest in the others; and visits to few coordinates are cheap.

Let r_i of the N = sum_i r_i steps of a sweep be on coordinate i: p_i = r_i/N is in the place of 1/n
in Algorithm 2. With alpha = sqrt(mu_r)/N and zbar = (1 - alpha) z + alpha y such a step is

    h = argmin_h (alpha L_i/(2 p_i)) h^2 + grad_i f(y) h + psi_i(zbar_i + h)
    z = zbar + h e_i,    x = y + (alpha/p_i) h e_i

The proof of Theorem 1 goes through with mu_r the convexity of f in the norm sum_i (L_i/r_i^2) x_i^2
and alpha <= p_i (`reference.uneven` is this as printed here). As r_i >= 1, mu_r is at least mu; and
it is larger by up to r^2 if the slow directions are all among coordinates with r_i = r.

To the kernels that is the step of Algorithm 2 with N/r_i for n and mu_r/r_i^2 for mu: they have the
same alpha, exactly so because r_i is a power of two. So a sweep is run in parts of one r each.

r_i is how far x_i has come in the last epoch, in the norm of L, over the mean of that, from 1 to
HIGHEST. The mean is weighted by the lengths of the columns, so that a sweep takes at most twice as
long as before; and r = 1 if all coordinates move alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from .._validation import Index, Vector

HIGHEST = 16


class Sweep:
    """The steps of a sweep over the blocks `kept`: one on each, or r_i of them.

    `steps` of them make a pass, by the lengths of the columns of all blocks.
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
        """The steps in random order, those on one block spread out: one in each 1/r_i of it.

        But in each HIGHEST-th of the sweep they are in order of r, so that there are few runs.
        """
        if self.highest == 1:
            return rng.permutation(self.indices)
        when = HIGHEST * (self._visit + rng.random(self.indices.size)) / self._r
        slot = np.floor(when)
        return self.indices[np.argsort((HIGHEST + 1) * slot + self._r + (when - slot))]

    def left_of(self, rest: Index) -> Index:
        """What of the rest of an earlier sweep is still to be sampled, in few runs."""
        rest = rest[np.isin(rest, self.indices)]
        if self.highest == 1:
            return rest
        slot = np.arange(rest.size) // max(self.indices.size // HIGHEST, 1)
        return rest[np.argsort((HIGHEST + 1) * slot + self.visits[rest], kind="stable")]

    def runs(self, order: Index) -> Iterator[tuple[int, Index]]:
        """`order` in parts of one r each."""
        if self.highest == 1:
            yield 1, order
            return
        r = self.visits[order]
        changes = np.flatnonzero(np.diff(r)) + 1
        for start, end in pairwise([0, *changes.tolist(), order.size]):
            yield int(r[start]), order[start:end]


def visits(moved: Vector, lengths: Vector, most: float = HIGHEST) -> Index:
    """r, from how far blocks have moved and the lengths of their columns; at most `most`."""
    mean = float(np.average(moved, weights=lengths))
    if not 0 < mean < np.inf:
        return np.ones(moved.size, dtype=np.intp)
    exponents = np.log2(np.clip(moved / mean, 1, max(1, min(most, HIGHEST)))).astype(np.intp)
    return np.left_shift(1, exponents)
