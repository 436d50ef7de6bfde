"""Sets of entries of W by their matrix of second derivatives.

    H = sum_i s_i/n (x_i x_i') (x) (diag(pi_i + floor) - pi_i pi_i')

On a set of entries that is, for each class, a Gram matrix of its columns, less the products of all
columns x_j pi_k with each other: one matrix product. It is only a model of P: slopes and values are
those of the data. So it is made in float32, which takes less time, while that will do: float32
leaves nothing of the difference of columns that are nearly alike. Free intercepts are eliminated
from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ....data import views
from ....problems.erm import ERM
from ..blocks import ColumnSource
from ..tuning import SetTuning
from .losses_at import ClassBend, ClassLosses


class EntryColumns(ColumnSource):
    """Makes sets of entries. Their matrices are float32, and float64 after many of them."""

    def __init__(self, problem: ERM, losses: ClassLosses, tuning: SetTuning) -> None:
        super().__init__(self._made)
        self.problem, self.losses, self.tuning = problem, losses, tuning
        self.narrow, self._matrices = True, 0

    def _made(self, W: Index) -> Entries:
        return Entries(self, W)

    def begin(self) -> None:
        self._matrices = 0

    def count(self, last: bool) -> bool:
        self._matrices += last
        return self._matrices > self.tuning.narrow_matrices and self.refine()

    def refine(self) -> bool:
        was, self.narrow = self.narrow, False
        return was


class Entries:
    """Entries W of the matrix W, with their columns of X, one after the other."""

    def __init__(
        self, source: EntryColumns, W: Index, X: Matrix | None = None, narrow: Any = None
    ) -> None:
        self._source, self._losses = source, source.losses
        self._gather(W, X, narrow)

    def _gather(self, W: Index, X: Matrix | None = None, narrow: Any = None) -> None:
        problem, self.W, self.cost = self._source.problem, W, 0.0
        features, self._classes = np.divmod(W, self._losses.K)
        self._own, self._places = np.unique(features, return_inverse=True)
        if X is None:
            made = problem.samples.view(views.whole)
            made = made if self._own.size == problem.d else made[:, self._own]
            made = made.toarray() if hasattr(made, "toarray") else made
            X = np.ascontiguousarray(made.T, dtype=np.float64)
            narrow = X.astype(np.float32)
        self.X, self._narrow = X, narrow

    def part(self, some: Index) -> Entries:
        """Some of its entries, by their place in it."""
        own = np.unique(self._places[some])
        if own.size == self._own.size:
            return Entries(self._source, self.W[some], self.X, self._narrow)
        return Entries(self._source, self.W[some], self.X[own], self._narrow[own])

    def extend(self, more: Index) -> None:
        """With more entries."""
        self._gather(np.sort(np.concatenate([self.W, more])))

    def gram(self, bend: ClassBend, centred: bool, *, kept: bool = False) -> tuple[Matrix, Any]:
        """H on the entries, and what the intercepts change by for each of them."""
        m, losses, K, tuning = self.W.size, self._losses, self._losses.K, self._source.tuning
        kind: Any = np.float32 if self._source.narrow else np.float64
        each, floor = losses.each.astype(kind), kind(bend.floor)
        self.cost = tuning.product * m**2 / (self._source.problem.d * K)
        order = np.argsort(self._classes, kind="stable")  # by class
        bounds = np.searchsorted(self._classes[order], np.arange(K + 1))
        p = np.ascontiguousarray(losses.rows(bend.pi).T, dtype=kind)
        columns = self._narrow if kind is np.float32 else self.X
        root, B = np.sqrt(each) * p, columns[self._places[order]]
        own, C = [], np.zeros((K, m), kind)
        for k in range(K):
            A = B[bounds[k] : bounds[k + 1]]
            u = each * (p[k] + floor)
            C[k, bounds[k] : bounds[k + 1]] = A @ u if centred else 0.0
            scaled = A * np.sqrt(u)
            own.append(scaled @ scaled.T)
            A *= root[k]
        G = np.empty((m, m))
        np.negative(B @ B.T, out=G)
        for k in range(K):
            at = slice(bounds[k], bounds[k + 1])
            G[at, at] += own[k]
        back = np.argsort(order, kind="stable")
        mean = None
        if centred:
            C -= root @ B.T
            mean = np.linalg.solve(losses.bend_of_intercepts(losses.rows(bend.pi), bend.floor), C)
            G -= C.T @ mean
            mean = mean[:, back]
        G[np.arange(m), np.arange(m)] *= 1 + tuning.spare * float(np.finfo(kind).eps)
        return G[back[:, None], back], mean

    def descent(self, slope: Vector) -> Vector:
        """-X_W' slope"""
        S = self.X @ self._losses.rows(slope)
        return np.asarray(-S[self._places, self._classes])

    def times(self, step: Vector) -> Vector:
        """What the predictions change by, K numbers for each row."""
        D = np.zeros((self._own.size, self._losses.K))
        D[self._places, self._classes] = step
        return np.asarray(self.X.T @ D)
