"""Uneven sampling: coordinates that still move much are stepped on more often than the others.

Where momentum is needed, a run spends most of its passes on a few slow directions, and in sparse
data these are local: differences of nearly equal rows, say. Their coordinates are those in which x
still moves when it has come to rest in the others; and steps on few coordinates are cheap.

Let coordinate i have r_i of the N = sum_i r_i steps of a sweep, so that p_i = r_i/N is in the place
of 1/n in Algorithm 2. With alpha = sqrt(mu_r)/N and zbar = (1 - alpha) z + alpha y a step on it is

    h = argmin_h (alpha L_i/(2 p_i)) h^2 + grad_i f(y) h + psi_i(zbar_i + h)
    z = zbar + h e_i,    x = y + (alpha/p_i) h e_i

The proof of Theorem 1 goes through with mu_r the convexity of f in the norm sum_i (L_i/r_i^2) x_i^2
and alpha <= p_i (`reference.uneven` is this as printed here). As r_i >= 1, mu_r is at least mu; and
it is larger by up to r^2 if the slow directions are all among coordinates of rate r.

To the kernels that is the step of Algorithm 2 with N/r_i for n and mu_r/r_i^2 for mu: they have the
same alpha, exactly so because r_i is a power of two. So a sweep is run in parts of one rate each.

r_i is how far x_i has come in the last epoch, in the norm of L, over the mean of that, from 1 to
HIGHEST: a sweep is at most twice as long as it was, and r = 1 if all coordinates move alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._validation import Index, Vector

HIGHEST = 16


class Sweep:
    """The steps of a sweep over the coordinates `kept`: i comes rate_i times."""

    def __init__(self, kept: Index, moved: Vector) -> None:
        r = rates(moved[kept])
        self.steps = np.repeat(kept, r)
        self.highest = int(r.max())
        self.rate = np.ones(moved.size, dtype=np.intp)
        self.rate[kept] = r
        self._visit = np.arange(self.steps.size) - np.repeat(np.cumsum(r) - r, r)

    def shuffled(self, rng: np.random.Generator) -> Index:
        """All steps in random order, those on one coordinate spread out: one in each 1/r_i."""
        when = (self._visit + rng.random(self.steps.size)) / self.rate[self.steps]
        return self.steps[np.argsort(when)]

    def runs(self, order: Index) -> Iterator[tuple[int, Index]]:
        """`order` in parts of one rate each; it changes within a HIGHEST-th of a sweep only."""
        slot = np.arange(order.size) // max(self.steps.size // HIGHEST, 1)
        key = slot * (HIGHEST + 1) + self.rate[order]
        by_key = np.argsort(key, kind="stable")
        order, key = order[by_key], key[by_key]
        ends = np.append(np.flatnonzero(np.diff(key)) + 1, order.size)
        start = 0
        for end in ends[ends > 0]:
            yield int(key[start] % (HIGHEST + 1)), order[start:end]
            start = end


def rates(moved: Vector) -> Index:
    """r, from how far each coordinate has moved."""
    mean = float(np.mean(moved))
    if not 0 < mean < np.inf:
        return np.ones(moved.size, dtype=np.intp)
    exponents = np.log2(np.clip(moved / mean, 1, HIGHEST)).astype(np.intp)
    return np.left_shift(1, exponents)
