"""Some columns of X, or all, as a round multiplies with them; and where they are from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ...data import Sparse, views
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
    """The columns W of X, whose Gram matrix can be kept, and grows with them."""

    def __init__(self, problem: ERM, W: Index) -> None:
        self._problem, self.W = problem, W
        self._kept: tuple[Matrix, Vector | None] | None = None
        self._bend = np.empty(0)
        #: what the last Gram matrix cost, in passes over X
        self.cost = 0.0

    def extend(self, more: Index) -> None:
        """With more columns, and their part of a Gram matrix that is kept."""
        m = self.W.size
        self.W = np.concatenate([self.W, more])
        self.join(more)
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

    def join(self, more: Index) -> None:
        """Make ready what the new columns need; W has them already."""

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

    def descent(self, slope: Vector) -> Vector:
        """As in `Block`."""
        raise NotImplementedError


class DenseColumns(ColumnBlock):
    """The columns W, a dense copy unless they are all that there are."""

    def __init__(self, problem: ERM, W: Index, X: Matrix | None = None) -> None:
        super().__init__(problem, W)
        if X is None:
            whole = W.size == problem.d and np.array_equal(W, np.arange(W.size))
            X = problem.samples.view(views.whole)
            made = X if whole else X[:, W]
            X = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        self.X = X

    def part(self, some: Index) -> DenseColumns:
        """Some of its columns, by their place in it."""
        return DenseColumns(self._problem, self.W[some], self.X[:, some])

    def join(self, more: Index) -> None:
        self.X = np.hstack([self.X, DenseColumns(self._problem, more).X])

    def made(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector | None]:
        X, mean = self.X, None
        if centred:
            mean = bend @ X / float(bend.sum())
            X = X - mean
        if bend.min() == bend.max():
            return float(bend[0]) * (X.T @ X), mean
        A = np.sqrt(bend)[:, None] * X
        return A.T @ A, mean

    def centred(self, bend: Vector, centred: bool) -> tuple[Matrix, Vector, Vector | None]:
        """The columns as rows, less their means if `centred`, and a bend: A diag(bend) A' is G.

        All entries of that bend are the same. The last of the three are the means.
        """
        A, mean, scale = self.X.T, None, bend
        if centred:
            mean = bend @ self.X / float(bend.sum())
            A = A - mean[:, None]
        if bend.min() < bend.max():
            scale = np.full(bend.size, bend.mean())
            A = A * np.sqrt(bend / scale)
        return np.ascontiguousarray(A), scale, mean

    def rows(self, first: int, bend: Vector) -> Matrix:
        return np.asarray((bend[:, None] * self.X[:, first:]).T @ self.X)

    def descent(self, slope: Vector) -> Vector:
        return -(self.X.T @ slope if slope.ndim == 2 else slope @ self.X)

    def times(self, step: Vector) -> Vector:
        return np.asarray(self.X @ step)


class StoredColumns(ColumnBlock):
    """The columns W of sparse data, as they are stored by columns and by rows, in float64."""

    def __init__(self, problem: ERM, W: Index) -> None:
        super().__init__(problem, W)
        assert isinstance(problem.samples, Sparse)
        self._samples, self._n, self._d = problem.samples, problem.n_samples, problem.d
        # so that products with few columns are by these
        self._packed = self._samples.view(views.columns, np.float64)

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
        start = self._packed.start
        entries = float((start[self.W + 1] - start[self.W]).sum())
        return 0.5 + 0.25 * entries**2 / (self._n * max(self._samples.nnz, 1))

    def rows(self, first: int, bend: Vector) -> Matrix:
        return self._samples.gram_rows(bend, self.W, first)

    def descent(self, slope: Vector) -> Vector:
        if slope.ndim == 2:
            return _by_output(self.descent, slope)
        out = np.empty(self._d)
        self._packed.products(slope, out, self.W)
        return -out[self.W]

    def times(self, step: Vector) -> Vector:
        if step.ndim == 2:
            return _by_output(self.times, step)
        out = np.zeros(self._n)
        self._packed.add(self.W, step, out)
        return out


def _by_output(made: Callable[[Vector], Vector], given: Matrix) -> Matrix:
    """What is made of each column of `given`, side by side."""
    return np.stack([made(np.ascontiguousarray(one)) for one in given.T], axis=1)


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
