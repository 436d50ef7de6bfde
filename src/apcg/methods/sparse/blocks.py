"""Some columns of X, or all, as a round multiplies with them; and where they are from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.sparse import hstack, issparse

from ..._base.validation import Index, Matrix, Vector
from ...data import views
from ...problems.erm import ERM


class Block(Protocol):
    """The columns X_W of X."""

    #: what a Gram matrix of it costs, in passes over X
    cost: float

    def gram(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        """X_W' diag(bend) X_W; if `centred` with the means weighted by bend off, and these."""

    def descent(self, slope: Vector) -> Vector:
        """-X_W' slope"""

    def times(self, step: Vector) -> Vector:
        """X_W step"""


class ColumnSource:
    """Where the sets of columns of a run are from."""

    def __init__(self, make: Callable[[Index], Any], *, dear: bool = False) -> None:
        """`dear` if the Gram matrix of a set is one of sparse columns."""
        self.make, self.dear = make, dear

    def begin(self) -> None:
        """With another alpha."""

    def count(self, last: bool) -> bool:
        """A matrix is made, of the last stage or not: whether it is the first one in float64."""
        return False

    def refine(self) -> bool:
        """Nothing moves any more: whether matrices were float32; the next are float64."""
        return False


def dense_columns(problem: ERM) -> ColumnSource:
    """Dense copies."""
    return ColumnSource(lambda W: DenseColumns(problem, W))


def stored_columns(problem: ERM) -> ColumnSource:
    """As sparse data is stored."""
    return ColumnSource(lambda W: StoredColumns(problem, W), dear=True)


class ColumnBlock:
    """The columns W of X, X_W, whose Gram matrix can be kept, and grows with them."""

    def __init__(self, problem: ERM, W: Index, X: Any = None) -> None:
        self._problem, self.W = problem, W
        self.X = self.taken(W) if X is None else X
        self._kept: tuple[Matrix, Vector | None] | None = None
        self._bend = np.empty(0)
        #: what the last Gram matrix cost, in passes over X
        self.cost = 0.0

    def taken(self, W: Index) -> Any:
        """The columns W in float64."""
        raise NotImplementedError

    def extend(self, more: Index) -> None:
        """With more columns, and their part of a Gram matrix that is kept."""
        m = self.W.size
        self.W = np.concatenate([self.W, more])
        both: list[Any] = [self.X, self.taken(more)]
        self.X = hstack(both, format="csc") if issparse(both[0]) else np.hstack(both)
        if self._kept is None:
            return
        (G, mean), bend = self._kept, self._bend
        whole = np.empty((self.W.size,) * 2)
        whole[:m, :m], whole[m:] = G, self.rows(m, bend)
        if mean is not None:
            total = float(bend.sum())
            mean = -self.descent(bend) / total
            whole[m:] -= total * np.outer(mean[m:], mean)
        whole[:m, m:] = whole[m:, :m].T
        self._kept = whole, mean

    def gram(
        self, bend: Vector, centred: bool, *, kept: bool = False
    ) -> tuple[Matrix, Vector | None]:
        """As in `Block`; `kept` if the same bend will come again, and the last one was this."""
        self.cost = 0.0
        if kept and self._kept is not None:
            return self._kept
        self.cost = self.gram_cost
        bend = np.ascontiguousarray(np.broadcast_to(bend, self._problem.n_samples))
        made = self.made(bend, centred)
        if kept:
            self._kept, self._bend = made, bend
        return made

    @property
    def gram_cost(self) -> float:
        """What a Gram matrix of all its columns takes, in passes."""
        return 0.25 * self.W.size**2 / self._problem.d

    def rows(self, first: int, bend: Vector) -> Matrix:
        """X_V' diag(bend) X_W, where V is W from `first` on."""
        raise NotImplementedError

    def made(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        """As `gram`, made anew."""
        raise NotImplementedError

    def descent(self, slope: Any) -> Any:
        """As in `Block`."""
        return -(self.X.T @ slope if slope.ndim == 2 else slope @ self.X)

    def times(self, step: Any) -> Any:
        """As in `Block`."""
        return np.asarray(self.X @ step)


class DenseColumns(ColumnBlock):
    """The columns W, a dense copy unless they are all that there are."""

    def taken(self, W: Index) -> Matrix:
        whole = W.size == self._problem.d and np.array_equal(W, np.arange(W.size))
        made: Any = self._problem.samples.view(views.whole)
        made = made if whole else made[:, W]
        dense = made.toarray() if hasattr(made, "toarray") else made
        return np.asarray(dense, dtype=np.float64)

    def part(self, some: Index) -> DenseColumns:
        """Some of its columns, by their place in it."""
        return DenseColumns(self._problem, self.W[some], self.X[:, some])

    def made(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        X, mean = self.X, None
        if centred:
            mean = bend @ X / float(bend.sum())
            X = X - mean
        if bend.min() == bend.max():
            return float(bend[0]) * (X.T @ X), mean
        A = np.sqrt(bend)[:, None] * X
        return A.T @ A, mean

    def rows(self, first: int, bend: Vector) -> Matrix:
        return np.asarray((bend[:, None] * self.X[:, first:]).T @ self.X)


class StoredColumns(ColumnBlock):
    """The columns W of sparse data, in CSC form; their Gram matrix is by the rows of X."""

    def taken(self, W: Index) -> Any:
        return self._problem.samples.view(views.stored_columns)[:, W]

    def made(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        G, mean = self.rows(0, bend), None
        if centred:
            total = float(bend.sum())
            mean = -self.descent(bend) / total
            G -= total * np.outer(mean, mean)
        return G, mean

    @property
    def gram_cost(self) -> float:
        """To read X, and to multiply what a row has in these columns with itself."""
        X = self._problem.samples
        return 0.5 + 0.25 * float(self.X.nnz) ** 2 / (self._problem.n_samples * max(X.nnz, 1))

    def rows(self, first: int, bend: Vector) -> Matrix:
        samples: Any = self._problem.samples
        return np.asarray(samples.gram_rows(bend, self.W, first))


class AllColumns:
    """All columns, by passes over the rows: for many more rows than columns."""

    def __init__(self, problem: ERM) -> None:
        self._X = problem.samples
        self.cost = self._X.gram_madds / (2 * max(self._X.nnz, 1))

    def gram(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        upper = self._X.gram(bend)
        G = np.triu(upper)
        G += np.triu(upper, 1).T
        if not centred:
            return G, None
        total = float(bend.sum())
        mean = self._X.adjoint(bend) / total
        G -= total * np.outer(mean, mean)
        return G, mean

    def descent(self, slope: Vector) -> Vector:
        return -self._X.adjoint(slope)

    def times(self, step: Vector) -> Vector:
        return self._X.times(step)
