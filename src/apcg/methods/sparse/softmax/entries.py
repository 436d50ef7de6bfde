"""Sets of entries of W by their matrix of second derivatives: for dense data.

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
from ..dense.chosen_columns import WideRun
from .run import ClassRun


class EntriesRun(ClassRun, WideRun):
    """A round: the entries that matter, a model on them, a few steps."""

    def pick(self, W: Index) -> Any:
        return Entries(self, W)

    def _dual_is_faster(self, columns: int) -> bool:
        return False


class Entries:
    """Entries W of the matrix W, with their columns of X, one after the other."""

    def __init__(self, run: Any, W: Index, X: Matrix | None = None, narrow: Any = None) -> None:
        self._run = run
        self._gather(W, X, narrow)

    def _gather(self, W: Index, X: Matrix | None = None, narrow: Any = None) -> None:
        run, self.W, self.cost = self._run, W, 0.0
        features, self._classes = np.divmod(W, run.K)
        self._own, self._places = np.unique(features, return_inverse=True)
        if X is None:
            made = run.problem.samples.view(views.whole)
            made = made if self._own.size == run.problem.d else made[:, self._own]
            made = made.toarray() if hasattr(made, "toarray") else made
            X = np.ascontiguousarray(made.T, dtype=np.float64)
            narrow = X.astype(np.float32)
        self.X, self._narrow = X, narrow

    def part(self, some: Index) -> Entries:
        """Some of its entries, by their place in it."""
        own = np.unique(self._places[some])
        if own.size == self._own.size:
            return Entries(self._run, self.W[some], self.X, self._narrow)
        return Entries(self._run, self.W[some], self.X[own], self._narrow[own])

    def extend(self, more: Index) -> None:
        """With more entries."""
        self._gather(np.sort(np.concatenate([self.W, more])))

    def gram(self, pi: Vector, free: bool, *, kept: bool) -> tuple[Matrix, Matrix | None]:
        """H on the entries, and what the intercepts change by for each of them."""
        run, m, kind = self._run, self.W.size, self._run.kind()
        each, floor = run.losses.each.astype(kind), kind(run.least_bend)
        self.cost = run.tuning.product * m**2 / (run.problem.d * run.K)
        order = np.argsort(self._classes, kind="stable")  # by class
        bounds = np.searchsorted(self._classes[order], np.arange(run.K + 1))
        p = np.ascontiguousarray(run.rows(pi).T, dtype=kind)
        columns = self._narrow if kind is np.float32 else self.X
        root, B = np.sqrt(each) * p, columns[self._places[order]]
        own, C = [], np.zeros((run.K, m), kind)
        for k in range(run.K):
            A = B[bounds[k] : bounds[k + 1]]
            u = each * (p[k] + floor)
            C[k, bounds[k] : bounds[k + 1]] = A @ u if free else 0.0
            scaled = A * np.sqrt(u)
            own.append(scaled @ scaled.T)
            A *= root[k]
        G = np.empty((m, m))
        np.negative(B @ B.T, out=G)
        for k in range(run.K):
            at = slice(bounds[k], bounds[k + 1])
            G[at, at] += own[k]
        back = np.argsort(order, kind="stable")
        mean = None
        if free:
            C -= root @ B.T
            mean = np.linalg.solve(run.losses.bend_of_intercepts(run.rows(pi), run.least_bend), C)
            G -= C.T @ mean
            mean = mean[:, back]
        G[np.arange(m), np.arange(m)] *= 1 + run.tuning.spare * float(np.finfo(kind).eps)
        return G[back[:, None], back], mean

    def slope(self, slope: Vector) -> Vector:
        """-X_W' slope"""
        S = self.X @ self._run.rows(slope)
        return np.asarray(-S[self._places, self._classes])

    def times(self, step: Vector) -> Vector:
        """What the predictions change by."""
        D = np.zeros((self._own.size, self._run.K))
        D[self._places, self._classes] = step
        return np.asarray(self.X.T @ D).reshape(-1)
