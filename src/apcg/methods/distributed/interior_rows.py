"""Interior points, as a shard sees them: the pieces of its rows. `interior` has the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from ..._kernels.interior import interior as kernel
from ...data import Stored, views
from ..interior.interior import InnerRows, InteriorTuning

_TUNING = InteriorTuning()


class InteriorRows:
    """What a shard does: `X` are its rows of positive weight, those at `kept`."""

    def __init__(self, X: Stored, y: Vector, s: Vector, loss: Any) -> None:
        s = np.ascontiguousarray(np.broadcast_to(s, X.shape[0]))
        self.kept = np.flatnonzero(s)
        few = self.kept.size < s.size
        self._X, y, s = (X.rows(self.kept), y[self.kept], s[self.kept]) if few else (X, y, s)
        self._rows = InnerRows(loss, np.ascontiguousarray(y), s)
        self._weight, self._pull = np.empty((2, y.size))

    def move(self, t: float) -> Vector:
        """Go on by t of the last step; x of the kept rows."""
        if t:
            kernel.move(self._rows.at, t)
        return self._rows.x()

    def weigh(self) -> tuple[float, int, Table, Vector]:
        """(sum of the products that mu is the mean of, how many, the Gram matrix, X' pull)."""
        at = self._rows.at
        products = kernel.weigh(at, _TUNING.skip, self._weight, self._pull)[0]
        X = self._X
        return products, 2 * self._rows.a.size, X.gram(self._weight), X.adjoint(self._pull)

    def predict(self, dw: Vector) -> tuple[float, float, float, Table]:
        """(how fast the first reaches a bound, two sums, X' of two vectors)."""
        (data, indices, indptr), (n, d), c = self._raw()
        pair = np.zeros((dw.size, 2))
        at, flat = self._rows.at, pair.reshape(-1)
        return *kernel.predict(data, indices, indptr, d, c, dw, at, 0, n, flat), pair

    def correct(self, dw: Vector, centre: float) -> float:
        """How fast the first reaches a bound."""
        (data, indices, indptr), (n, d), c = self._raw()
        at, pull = self._rows.at, np.zeros(dw.size)
        return kernel.correct(data, indices, indptr, d, c, dw, centre, at, 0, n, pull)

    def _raw(self) -> tuple[Any, tuple[int, int], float]:
        """The arrays of X, its rows and columns without the border, the number in the border."""
        X = self._X
        n, size = X.shape
        return X.view(views.arrays), (n, size - bool(X.constant)), X.constant
