"""Small d: Newton's method from the sum of the shards' Gram matrices. It knows no shards.

A step of length 1 is told to the shards at once, and one message brings P, the gradient and the
Hessian where it leads. Where P has not fallen well, the step is searched along.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Matrix as Table
from ..linalg.factor import Factor
from .search import Damping, LineSearch
from .sums import Sums

#: A step is long enough when the slope along it has fallen to this part.
_FLAT = 0.5
#: P has fallen well if it fell by this part of what the slope promises.
_ARMIJO = 1e-4
#: The least curvature of a weight without a ridge: this part of the mean of all.
_LEAST = 1e-12


class NewtonSteps:
    """A step, a look, a search if it needs one. A loss of squares keeps its first Hessian.

    tol   the relative gap that is wanted: no Hessian is asked for where it is expected
    """

    name = "newton"
    unmixed = stuck = False

    def __init__(self, sums: Sums, tol: float = 0.0) -> None:
        p, self.sums, self._tol = sums.problem, sums, tol
        self._squares = p.loss.eta == p.loss.gamma == 1.0
        self._damping = Damping(sums)
        self.forget()

    def forget(self) -> None:
        """Where the shards are is new: the Hessian there is not known."""
        self._factor: Factor | None = None
        self._H: Table | None = None
        self._surely, self._gap = True, math.inf

    def step(self) -> None:
        """One iteration."""
        s = self.sums
        if self._factor is None or not self._squares:
            H = s.hessian() if self._H is None else self._H
            diagonal = np.diag(H)
            least = _LEAST * float(diagonal.mean()) or 1.0
            H[np.diag_indices(len(H))] = np.maximum(diagonal, least) + self._damping.diagonal
            self._factor = Factor(np.ascontiguousarray(H))
        way = -self._factor.solve(s.gradient.reshape(-1)).reshape(s.w.shape)
        if s.problem.intercept and s.problem.K > 1:  # the same for all classes changes nothing
            way[-1] -= way[-1].mean()
        expected = s.gap * s.gap / self._gap if self._gap < math.inf else math.inf
        self._gap = s.gap
        curved = not (self._squares or expected <= self._tol * abs(s.primal))
        if self._surely and self._leap(way, curved):
            t = 1.0
        else:
            search = LineSearch(s, way, None)
            c = search.find(_FLAT)
            self._H, t = s.look(c, search.step(c), curved=curved), float(c[0])
        self._surely = t > _FLAT
        self._damping.learn(t)

    def _leap(self, way: Table, curved: bool) -> bool:
        """All of the step at once. False if there is more to be found along it, or if P rose: then
        it is taken back.
        """
        s, w, before = self.sums, self.sums.w, self.sums.smooth
        slope = float(np.vdot(s.gradient, way))
        self._H = s.look(step=way, new=True, curved=curved)
        if not s.smooth <= before + _ARMIJO * slope + 1e-14 * abs(before):
            s.back(w)
            return False
        return abs(float(np.vdot(s.gradient, way))) <= -_FLAT * slope
