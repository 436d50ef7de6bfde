"""The linear equations of a step of interior points with an L1 part (`interior_l1` has them).

    R dw - X'e = r,    X dw + db + e/W = f,    sum_i e_i = total

without db and the last one if there is no intercept. e or dw is eliminated, whichever is longer:
the matrix is then 1/W + X (1/R) X', of the samples, or R + X'W X, of the features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._base.validation import Index, Vector
from ..._base.validation import Matrix as Table
from ...data import Matrix
from ..linalg import factor
from ..linalg.factor import Factor


@dataclass(frozen=True)
class KKTTuning:
    """How well the equations are solved."""

    #: a solution is refined until it leaves this part of each equation, so often at the most (not
    #: at all: 1e-9 is missed on 300 x 1,000 with the Huber loss; once and three times: as well)
    left: float = 1e-12
    refined: int = 3
    #: no factor is made of an intercept without curvature: so much, at least
    least_curvature: float = 1e-12
    #: columns that together add less than this part of the least of 1/W to the matrix of the
    #: samples are left out of it
    skip: float = 0.01


class Saddle:
    """R dw - X'e = r,  X dw + db + e/W = f,  sum_i e_i = total, by the smaller of two matrices."""

    def __init__(
        self, X: Matrix, R: Vector, W: Vector, tuning: KKTTuning, *, intercept: bool
    ) -> None:
        self._X, self.R, self.W, self._tuning = X, R, W, tuning
        self._intercept = intercept
        n, d = X.shape
        self._by_rows = n < d
        own = min(n, d)
        #: multiply-adds of the matrix and its factor
        self.madds = 0.5 * float(own) ** 2 * max(n, d) + factor.madds(own)
        self._factor = Factor(self._of_rows() if self._by_rows else self._of_columns())
        if intercept and self._by_rows:
            self._ones = self._factor.solve(np.ones(n))

    def _of_rows(self) -> Table:
        """1/W + X (1/R) X', without columns that change it by next to nothing."""
        X, d, flat = self._X, self.R.size, 1 / self.W
        share = X.column_squares(np.ones(self.W.size)) / self.R
        some: Index = np.flatnonzero(share > self._tuning.skip * flat.min() / d)
        H = (X if some.size == d else X.pick(some)).row_gram(1 / self.R[some])
        H.ravel()[:: len(H) + 1] += flat
        return H

    def _of_columns(self) -> Table:
        """R + X'W X, with a column of ones and next to no R for an intercept."""
        R = np.append(self.R, self._tuning.least_curvature) if self._intercept else self.R
        X = self._X.with_ones if self._intercept else self._X
        self.madds = X.gram_madds + factor.madds(R.size)
        H = X.gram(self.W)
        H.ravel()[:: len(H) + 1] += R
        return H

    def solve(self, r: Vector, f: Vector, total: float) -> tuple[Vector, Vector, float]:
        """dw, e and db, refined."""
        X, R, W, tiny = self._X, self.R, self.W, self._tuning.left
        dw, e, db = self._solved(r, f, total)
        for _ in range(self._tuning.refined):
            left = r + X.adjoint(e) - R * dw, f - X.times(dw) - db - e / W
            if size(left[0]) <= tiny * size(r) and size(left[1]) <= tiny * size(f):
                break
            more = self._solved(*left, total - float(e.sum()))
            dw, e, db = dw + more[0], e + more[1], db + more[2]
        return dw, e, db

    def _solved(self, r: Vector, f: Vector, total: float) -> tuple[Vector, Vector, float]:
        X, R, W, db = self._X, self.R, self.W, 0.0
        if self._by_rows:
            e = self._factor.solve(f - X.times(r / R))
            if self._intercept:
                db = float((e.sum() - total) / self._ones.sum())
                e = e - db * self._ones
            return (r + X.adjoint(e)) / R, e, db
        right = r + X.adjoint(W * f)
        if self._intercept:
            right = np.append(right, float(np.dot(W, f)) - total)
        dw = self._factor.solve(right)
        if self._intercept:
            dw, db = dw[:-1], float(dw[-1])
        return dw, W * (f - X.times(dw) - db), db


def size(u: Vector) -> float:
    """The largest |u_i|."""
    return float(np.abs(u).max(initial=0.0))
