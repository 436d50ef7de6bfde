"""A set of groups by the Gram matrix of its columns, from the start: for few columns and many rows.

It costs n s^2/2 once, and a sweep over panels 2 n s K: where s is small that is less than the
sweeps that any data takes, and it does not matter how much columns are alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ..run import Wanted
from .model import largest
from .panels import PanelSource


class GramSet:
    """The columns of some groups and their Gram matrix."""

    by_gram = True

    def __init__(self, source: PanelSource, columns: Index, sizes: Index, a: Vector) -> None:
        """Group q has the next sizes[q] of `columns`."""
        self._source, self._sizes, self.a = source, sizes, a
        self._X = source.columns(columns)
        self._G = (self._X.T @ self._X) * source.scale
        #: multiply-adds so far
        self.work = 0.5 * len(self._X) * columns.size**2
        self._measure()

    def extend(self, columns: Index, sizes: Index, a: Vector, W: Matrix) -> None:
        """With more groups; `a` is of all of them."""
        X, old = self._source.columns(columns), len(self._G)
        self._X = np.concatenate([self._X, X], axis=1)
        G = np.empty((old + columns.size,) * 2)
        G[:, old:] = (self._X.T @ X) * self._source.scale
        G[:old, :old], G[old:, :old] = self._G, G[:old, old:].T
        self._G, self.a = G, a
        self._sizes = np.concatenate([self._sizes, sizes])
        self.work += float(self._X.size) * columns.size
        self._measure()

    def _measure(self) -> None:
        count, size = self._sizes.size, len(self._G)
        self._starts = np.arange(count + 1)
        if size > count:
            np.cumsum(self._sizes, out=self._starts[1:])
        self._bend = largest(self._G, self._starts)

    def begin_at(self, descent: Any, w: Any) -> None:
        """From w, where minus the gradient of the loss is `descent`."""
        size = len(self._G)
        self._g, self.weights = descent.reshape(size, -1), w.reshape(size, -1)

    def solve(self, wanted: Wanted, model: Any) -> None:
        """By the model, as in `Panels`."""
        self.weights = model(
            self._G, self._g, self.weights, self._starts, self._bend, self.a, wanted
        )
