"""Some columns of X, or all, as a round multiplies with them."""

from __future__ import annotations

from typing import Any, Protocol

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
    """A copy of the columns W, to which others can be added."""

    def __init__(self, problem: ERM, W: Index, X: Matrix | None = None) -> None:
        self._problem, self._stored, self._d = problem, problem.samples.stored, problem.d
        self.W, self.X = W, self._copy(W) if X is None else X
        self._kept: tuple[Matrix, Vector | None] | None = None
        self._bend = np.empty(0)
        #: what the last Gram matrix cost, in passes over X
        self.cost = 0.0

    def _copy(self, W: Index) -> Matrix:
        made = self._stored[:, W]
        made = made.toarray() if hasattr(made, "toarray") else made
        return np.asarray(made, dtype=np.float64)

    def part(self, some: Index) -> Copied:
        """Some of its columns, by their place in it."""
        return Copied(self._problem, self.W[some], self.X[:, some])

    def extend(self, more: Index) -> None:
        """With more columns, and their part of a Gram matrix that is kept."""
        new, old = self._copy(more), self.X
        self.W, self.X = np.concatenate([self.W, more]), np.hstack([old, new])
        if self._kept is None:
            return
        G, mean = self._kept
        bend, m = self._bend, G.shape[0]
        cross, corner = (bend[:, None] * old).T @ new, (bend[:, None] * new).T @ new
        if mean is not None:
            total = float(bend.sum())
            own = bend @ new / total
            cross -= total * np.outer(mean, own)
            corner -= total * np.outer(own, own)
            mean = np.concatenate([mean, own])
        whole = np.empty((m + more.size,) * 2)
        whole[:m, :m], whole[:m, m:], whole[m:, :m], whole[m:, m:] = G, cross, cross.T, corner
        self._kept = whole, mean

    def gram(
        self, bend: Vector, centred: bool, *, kept: bool = False
    ) -> tuple[Matrix, Vector | None]:
        """As in `Block`; `kept` if the same bend will come again, and the last one was this."""
        self.cost = 0.0
        if kept and self._kept is not None:
            return self._kept
        X, mean = self.X, None
        if centred:
            mean = bend @ X / float(bend.sum())
            X = X - mean
        A = np.sqrt(bend)[:, None] * X
        self.cost = 0.25 * self.W.size**2 / self._d
        made = A.T @ A, mean
        if kept:
            self._kept, self._bend = made, np.broadcast_to(bend, A.shape[:1])
        return made

    def slope(self, slope: Vector) -> Vector:
        return -(self.X.T @ slope if slope.ndim == 2 else slope @ self.X)

    def times(self, step: Vector) -> Vector:
        return np.asarray(self.X @ step)


class Sliced:
    """Columns of sparse data, as a sparse matrix."""

    def __init__(self, columns: Any, W: Index) -> None:
        self._X = columns[:, W].astype(np.float64)
        self._kept: tuple[Matrix, Vector | None] | None = None
        self.cost = 0.0

    def gram(
        self, bend: Vector, centred: bool, *, kept: bool = False
    ) -> tuple[Matrix, Vector | None]:
        """As in `Block`; `kept` if the same bend will come again, and the last one was this."""
        if kept and self._kept is not None:
            return self._kept
        bend = np.broadcast_to(bend, self._X.shape[:1])
        G, mean = (self._X.T @ self._X.multiply(bend[:, None]).tocsc()).toarray(), None
        if centred:
            total = float(bend.sum())
            mean = self._X.T @ bend / total
            G -= total * np.outer(mean, mean)
        self._kept = (G, mean) if kept else None
        return G, mean

    def slope(self, slope: Vector) -> Vector:
        return np.asarray(-(self._X.T @ slope))

    def times(self, step: Vector) -> Vector:
        return np.asarray(self._X @ step)


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
