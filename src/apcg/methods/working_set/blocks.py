"""Some columns of X, or all, as a round multiplies with them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..._validation import Index, Matrix, Vector
from ...erm import ERM
from ..rows import Rows


class Block(Protocol):
    """Columns X_W of X."""

    #: what a Gram matrix of it costs, in passes over X
    cost: float

    def gram(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        """X_W' diag(bend) X_W; if `centred` with the means weighted by bend off, and these."""

    def slope(self, slope: Vector) -> Vector:
        """-X_W' slope"""

    def times(self, step: Vector) -> Vector:
        """X_W step"""


class Copied:
    """A copy of the columns."""

    def __init__(self, problem: ERM, W: Index) -> None:
        made = problem.samples.stored[:, W]
        made = made.toarray() if hasattr(made, "toarray") else made
        self.X = np.asarray(made, dtype=np.float64)
        self.cost = 0.25 * W.size**2 / problem.d

    def gram(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        X, mean = self.X, None
        if centred:
            mean = bend @ X / float(bend.sum())
            X = X - mean
        A = np.sqrt(bend)[:, None] * X
        return A.T @ A, mean

    def slope(self, slope: Vector) -> Vector:
        return -(slope @ self.X)

    def times(self, step: Vector) -> Vector:
        return np.asarray(self.X @ step)


class All:
    """All columns, by passes over the rows: for many more rows than columns."""

    def __init__(self, problem: ERM) -> None:
        p = problem
        none = np.zeros(p.d)
        self._rows = Rows(p.samples.stored, p.y, p.weights, 1 / p.n, p.loss, none)
        self.cost = self._rows.gram_madds / (2 * max(self._rows.nnz, 1))

    def gram(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        upper = self._rows.gram(bend)
        G = np.triu(upper)
        G += np.triu(upper, 1).T
        if not centred:
            return G, None
        total = float(bend.sum())
        mean = self._rows.combine(bend) / total
        G -= total * np.outer(mean, mean)
        return G, mean

    def slope(self, slope: Vector) -> Vector:
        return -self._rows.combine(slope)

    def times(self, step: Vector) -> Vector:
        return self._rows.margins(step)
