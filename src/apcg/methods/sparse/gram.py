"""The model of P on a set of columns by their Gram matrix: sweeps, Newton steps on the support.

    M(v) = (1/2)(v - w)'G (v - w) - descent'(v - w) + sum_j a_j |v_j| + (b_j/2) v_j^2

A sweep finds which v_j are zero, and is slow where columns are alike. A Newton step is exact on
the support, and knows nothing of what is off it. So they take turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._base.validation import Matrix, Vector
from ..._kernels.sparse import lasso
from .penalty import ScaledPenalty
from .tuning import SetTuning

#: Newton's steps in a row, between sweeps
NEWTONS = 5
#: ns of a multiply-add of a sweep (0.07 at 500 columns, 0.2 at 50), and of a Newton step over the
#: cube of the support
MADD, CUBE = 0.1, 0.02

#: Whether after so much work, in ns, the sweeps are the last.
IsOver = Callable[[float], bool]


def never(work: float) -> bool:
    """There is no limit."""
    return False


class GramModel:
    """M at v, which begins at w. G has both triangles; `sweeps` are between Newton's steps."""

    def __init__(
        self, G: Matrix, descent: Vector, w: Vector, penalty: ScaledPenalty, tuning: SetTuning,
        sweeps: int = 0,
    ) -> None:  # fmt: skip
        self.G, self.g, self.v = G, descent.copy(), w.copy()
        self._penalty, self._tuning, self._sweeps = penalty, tuning, sweeps or tuning.sweeps
        #: ns that it took, as predicted
        self.work = 0.0

    def solve(
        self, target: float, enough: float, fine: float, least: float, is_over: IsOver = never
    ) -> bool:
        """Until no v_j violates by over `target` and the gain to come is at most `enough`.

        Or until these are at most `fine` and `least`, or it `is_over` after so much work. Whether
        it got there.
        """
        tuning, parts, size = self._tuning, self._penalty.parts, self.v.size
        most = self._sweeps
        for _ in range(tuning.turns):
            sweeps, worst = lasso.gram_sweeps(
                self.G, self.g, self.v, *parts, most, target, enough, fine, least
            )
            few = max(1, int(np.count_nonzero(self._penalty.free(self.v))))
            self.work += sweeps * MADD * size * few
            if sweeps < most or worst == 0:
                return True
            # a step moves v_j that is not zero, or has a_j = 0, so that none joins in the next ones
            room = np.empty((few, few)), np.empty(few, np.intp), np.empty((4, size))
            failed = np.array([size + 1])
            for _ in range(NEWTONS):
                if is_over(self.work):
                    return False
                self.work += CUBE * few**3
                if lasso.gram_newton(self.G, self.g, self.v, *parts, *room, failed) < 2:
                    break
        return False
