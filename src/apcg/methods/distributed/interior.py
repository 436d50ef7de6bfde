"""Losses made of lines with few features: interior points, from the sum of Gram matrices.

The equations are those of `methods/interior/interior.py`. A shard has the pieces of its rows: their
dual variables a, and what belongs to it. The driver has w, and factors lambda n diag(b) + X' W X,
the sum over the shards. A step takes three messages:

    interior          move by the last step; P, D and A x there; the Gram matrix, X' pull
    interior_predict  how far a step may go, how far mu may fall, X' of two vectors
    interior_correct  how far the corrected step may go
"""

from __future__ import annotations

import numpy as np

from ..interior.interior import InteriorTuning
from ..interior.pieces import step_length
from ..linalg.factor import Factor
from .sums import Sums

_TUNING = InteriorTuning()


class InteriorSteps:
    """Steps of Mehrotra's predictor and corrector. They begin at w = 0, and after a loss again.

    `stuck` says that rounding has won, or that a step led nowhere.
    """

    name = "interior points"
    unmixed = False

    def __init__(self, sums: Sums) -> None:
        self.sums = sums
        self.forget()

    def forget(self) -> None:
        """The shards have lost their pieces: begin anew."""
        self.stuck, self._made = False, False

    def step(self) -> None:
        """One step, and a look where it leads."""
        s, p = self.sums, self.sums.problem
        if not self._made:
            s.tell("interior_begin")
            s.w, self._made = np.zeros_like(s.w), True
            self._look(0.0)
        ridge, short = p.n * p.ridge, p.n * s.gradient
        H = np.ascontiguousarray(self._H)
        H[np.diag_indices(len(H))] += ridge
        if p.intercept:
            H[-1, -1] += _TUNING.least_curvature * float(np.trace(H)) / len(H)
        factor, mu = Factor(H), self._products / self._count
        dw = factor.solve(self._pull - short)
        fastest, linear, square, pair = s.furthest("interior_predict", dw)
        t = step_length(fastest, 1.0)
        after = max(self._products + t * (linear + t * square), 0.0) / self._count
        centre = mu * (after / mu) ** 3 if mu > 0 else 0.0
        dw = factor.solve(pair[:, 0] + centre * pair[:, 1] - short)
        (fastest,) = s.furthest("interior_correct", dw, centre)
        t = step_length(fastest, _TUNING.part)
        s.passes += 2.0
        self.stuck = not (mu > 0 and t > _TUNING.least_step and np.isfinite(dw).all())
        if not self.stuck:
            s.w = s.w + t * dw
            self._look(t)

    def _look(self, t: float) -> None:
        found = self.sums.look_inside(t)
        self._products, self._count, self._H, self._pull = found
