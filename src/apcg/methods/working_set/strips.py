"""The columns of dense data in float32, and coordinate descent on them: sweeps with no Gram matrix.

A sweep costs as much as a few passes over the data, and a Gram matrix of many columns as dozens. A
step takes the slope and the curvature where it is, so that there is no model to be outgrown. All is
float32: what comes out is a point, whose predictions are then computed from the data as given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._kernels import strips
from ..._validation import Index, Matrix, Vector
from ...erm import ERM
from ...losses import Logistic
from .fit import Seen
from .penalty import ScaledPenalty


class Strips:
    """The columns of X, each one after the other, and room to work in."""

    def __init__(self, problem: ERM) -> None:
        X = problem.samples.stored
        n, d = X.shape
        wide = -(-n // strips.LANES) * strips.LANES
        self._n = n
        self._X = np.empty((d, wide), np.float32)
        strips.pack(X, self._X)
        self._labels, self._weights = np.zeros((2, wide), np.float32)
        self._labels[:n], self._weights[:n] = problem.y, problem.weights / problem.n
        self._room = np.zeros((4, wide), np.float32)
        self._intercept = problem.intercept
        self._squared = not isinstance(problem.loss, Logistic)
        self._h = np.full(d, -1.0)
        self._room[3] = self._weights

    def sweep(
        self, W: Index, w: Vector, b: float, seen: Seen, penalty: ScaledPenalty, floor: float,
        most: int, target: float,
    ) -> tuple[float, int, int, float]:  # fmt: skip
        """Sweeps over the columns W that change w: the new b, how many there were, how often steps
        were cut, and the greatest violation that the last one met.
        """
        if self._squared:
            self._room[2, : self._n] = -seen.slope
        else:
            self._room[0, : self._n] = seen.z
        shift = np.array([float(b)])
        done, cuts, worst = strips.sweeps(
            self._X, self._labels, self._weights, W, *penalty.parts, floor, most, target,
            self._squared, self._intercept, self._h, w, shift, self._room,
        )  # fmt: skip
        return float(shift[0]), done, cuts, worst

    def gram(self, W: Index, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        """As in `Block`, in float32."""
        X, mean = self._X[W], None
        root = np.zeros(X.shape[1], np.float32)
        scale = float(bend.max())
        root[: self._n] = np.sqrt(bend / scale)
        X *= root
        G = scale * (X @ X.T).astype(np.float64)
        if centred:
            total = float(bend.sum())
            mean = scale * (X @ root).astype(np.float64) / total
            G -= total * np.outer(mean, mean)
        return G, mean
