"""Small d: Newton's method from the sum of the shards' Gram matrices. It knows no shards."""

from __future__ import annotations

import numpy as np

from ..linalg.factor import Factor
from .search import LineSearch
from .sums import Sums

#: The slope along a step that is left of that there was: the step is long enough.
_FLAT = 0.5
#: The least curvature of a weight without a ridge: this part of the mean of all.
_LEAST = 1e-12
#: Where a step brings nothing, the most curvature there can be is added, times this; each further
#: failure takes ten times as much, each success a tenth.
_DAMPING = (1e-4, 1e-7)


class NewtonSteps:
    """A Hessian, a step, a search along it, a look. A loss of squares keeps its first Hessian."""

    name = "newton"
    unmixed = False

    def __init__(self, sums: Sums) -> None:
        p, self.sums = sums.problem, sums
        self._squares = p.loss.eta == p.loss.gamma == 1.0
        self._factor: Factor | None = None
        self._damping = 0.0
        most = np.full(p.shape, p.mean_square / p.loss.gamma if p.loss.gamma else 1.0)
        if p.intercept:
            most[-1] *= p.constant**2 / (p.mean_square or 1.0)
        self._most = most.reshape(-1)

    def forget(self) -> None:
        """Nothing is kept that the shards would have to know."""

    def step(self) -> None:
        """One iteration."""
        sums = self.sums
        if self._factor is None or not self._squares:
            H = sums.hessian()
            diagonal = np.diag(H)
            least = _LEAST * float(diagonal.mean()) or 1.0
            H[np.diag_indices(len(H))] = np.maximum(diagonal, least) + self._damping * self._most
            self._factor = Factor(np.ascontiguousarray(H))
        way = -self._factor.solve(sums.gradient.reshape(-1)).reshape(sums.w.shape)
        search = LineSearch(sums, way, [])
        c = search.find(_FLAT)
        if abs(c[0]) > 1e-3:
            self._damping = self._damping / 10 if self._damping > _DAMPING[1] else 0.0
        else:
            self._damping = max(10 * self._damping, _DAMPING[0])
        sums.look(c, search.step(c))
