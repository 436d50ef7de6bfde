"""Uneven visits: coordinates that still move much are stepped on more often than the others.

Where momentum is needed, a run spends most of its passes on a few slow directions. In sparse data
these are local: differences of nearly equal rows, for instance. Their coordinates are those in
which x still moves when it has come to rest in the others, and visits to few coordinates are cheap.

Let r_i of the N = sum_i r_i steps of a sweep be on coordinate i. Then p_i = r_i/N takes the place
of 1/n in Algorithm 2. With alpha = sqrt(mu_r)/N and zbar = (1 - alpha) z + alpha y the step is

    h = argmin_h (alpha L_i/(2 p_i)) h^2 + grad_i f(y) h + psi_i(zbar_i + h)
    z = zbar + h e_i,    x = y + (alpha/p_i) h e_i

The proof of Theorem 1 goes through with mu_r, the convexity of f in the norm
sum_i (L_i/r_i^2) x_i^2, and alpha <= p_i (`reference.uneven` is this as printed here). As r_i >= 1,
mu_r is at least mu. It is larger by up to r^2 if the slow directions are all among coordinates with
r_i = r.

To the kernels that is the step of Algorithm 2 with N/r_i for n and mu_r/r_i^2 for mu: both have the
same alpha, exactly so because r_i is a power of two. So a sweep is run in parts of one r each.

r_i is the distance that x_i travelled in the last epoch, in the norm of L, over the mean of that,
between 1 and HIGHEST. The mean is weighted by the lengths of the columns, so that a sweep takes at
most twice as long as an even one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...._base.validation import Index, Vector
from ....problems.composite import Composite
from ..sampling import HIGHEST, Sweep


@dataclass(frozen=True)
class VisitsTuning:
    """When visits are uneven, and how uneven (docs/decisions/0004-adaptive-tuning.md)."""

    #: r_i is at most this over sqrt(mu-hat), because i has the momentum of mu-hat/r_i^2.
    #: rcv1 hinge: 8 and 32 take the same time (ratio 1.02).
    uneven: float = 8.0
    #: Visits are even if mu-hat is at most this many times the mu of the theorem: then what is slow
    #: is not local. Chosen on ridge problems, where uneven visits cost up to 1.2 times the passes.
    floor: float = 2.0
    #: Visits are even if more than this many coordinates move for each row of A.
    #: a9a (260 moving coordinates a feature): uneven visits gain nothing there.
    crowded: float = 3.0
    #: Fewer coordinates than this are always visited evenly: too few to tell which are slow.
    fewest: int = 20


class Visits:
    """Chooses the sweeps: r from the distances that x travelled since the last choice."""

    def __init__(self, problem: Composite, x0: Vector, tuning: VisitsTuning) -> None:
        self._problem, self._last, self._tuning = problem, x0, tuning

    def choose(self, kept: Index, x: Vector, mu: float, least: float | None) -> Index | None:
        """r for the blocks `kept`, or None for even visits. `least` is the mu of the theorem."""
        p, t = self._problem, self._tuning
        travelled, self._last = p.block_norms(x - self._last) * np.sqrt(p.L), x
        travelled = travelled[kept]
        if kept.size < t.fewest or not self._may_be_local(travelled, mu, least):
            return None
        r = visits(travelled, p.lengths[kept], t.uneven / math.sqrt(mu))
        return r if r.max() > 1 else None

    def sweep(self, kept: Index, r: Index | None) -> Sweep:
        """The sweep with these visits."""
        return Sweep(kept, self._problem.lengths, r)

    def _may_be_local(self, travelled: Vector, mu: float, least: float | None) -> bool:
        """Whether what is slow may be a few coordinates.

        It is not if mu-hat is down to the mu of the theorem, or nearly. It is not if many more
        coordinates move than A has rows: f then has only that mu in directions that they share.
        """
        if mu >= 1:
            return False
        if least is None:
            return True
        rows = self._problem.f.columns.shape[1]
        if np.count_nonzero(travelled) > self._tuning.crowded * rows:
            return False
        return mu > self._tuning.floor * least


def visits(travelled: Vector, lengths: Vector, most: float = HIGHEST) -> Index:
    """r from the distances that blocks travelled and their columns' lengths; at most `most`."""
    mean = float(np.average(travelled, weights=lengths))
    if not 0 < mean < np.inf:
        return np.ones(travelled.size, dtype=np.intp)
    exponents = np.log2(np.clip(travelled / mean, 1, max(1, min(most, HIGHEST)))).astype(np.intp)
    return np.left_shift(1, exponents)
