"""The columns of dense data in float32, and coordinate descent on them: sweeps with no Gram matrix.

A sweep costs as much as a few passes over the data, a Gram matrix of many columns as dozens. And a
step has the slope and the curvature where it is, so that there is no model to be outgrown. All of
it is float32: what comes out is a point, whose predictions are then computed from X as given.
"""

from __future__ import annotations

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ...._kernels.sparse import columns_float32
from ....data import Dense, views
from ....losses import Logistic, Squared
from ....problems.erm import ERM
from ..losses_at import Evaluated
from ..penalty import ScaledPenalty
from ..tuning import SetTuning


class ColumnsFloat32:
    """The columns of X, one after the other, and room to work in."""

    def __init__(self, problem: ERM) -> None:
        X = problem.samples.view(views.whole)
        n, d = X.shape
        wide = -(-n // columns_float32.LANES) * columns_float32.LANES
        self._n, self._X = n, np.empty((d, wide), np.float32)
        columns_float32.pack(X, self._X)
        self._squared, self._intercept = type(problem.loss) is Squared, problem.intercept
        self._labels, self._weights = np.zeros((2, wide), np.float32)
        # what is infinite in float32 gets nowhere, and the run sees that
        with np.errstate(over="ignore"):
            self._labels[:n], self._weights[:n] = problem.y, problem.weights / problem.n
        self._room = np.zeros((4, wide), np.float32)
        self._room[3] = self._weights  # the curvatures of the squared loss
        self._h = np.full(d, -1.0)

    @staticmethod
    def fit(problem: ERM, tuning: SetTuning) -> bool:
        """Whether they are for such data and losses: no fewer rows than columns, and not few."""
        n, d, squared = problem.n_samples, problem.d, type(problem.loss) is Squared
        return (
            isinstance(problem.samples, Dense)
            and type(problem.loss) in (Logistic, Squared)
            and n >= d >= tuning.strip_columns[squared]
            and n * d <= tuning.strip_room
        )

    def sweep(
        self, W: Index, w: Vector, b: float, seen: Evaluated, penalty: ScaledPenalty, floor: float,
        most: int,
    ) -> float:  # fmt: skip
        """Sweeps over the columns W, which change w; the new b."""
        with np.errstate(over="ignore"):
            if self._squared:
                self._room[2, : self._n] = -seen.slope
            else:
                self._room[0, : self._n] = seen.z
        shift = np.array([float(b)])
        columns_float32.sweeps(
            self._X, self._labels, self._weights, W, *penalty.parts, floor, most, self._squared,
            self._intercept, self._h, w, shift, self._room,
        )  # fmt: skip
        return float(shift[0])

    def gram(self, W: Index, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        """As in `Block`, from float32 products."""
        X, mean, scale = self._X[W], None, float(bend.max())
        root = np.zeros(X.shape[1], np.float32)
        root[: self._n] = np.sqrt(bend / scale)  # at most 1, so that none is too small for float32
        if centred:
            total = float(bend.sum())
            mean = scale * ((X * root) @ root).astype(np.float64) / total
            X[:, : self._n] -= mean.astype(np.float32)[:, None]
        X *= root
        return scale * (X @ X.T).astype(np.float64), mean
