"""The one door to X: products with it, and the layouts that kernels read.

X has a row for each coordinate that a step moves. In the dual of ERM that is a sample, and X is the
data; in `minimize` it is an entry of x, and X is the transpose of the user's A.

`Sparse` and `Dense` hold arrays in memory, or mapped from a file, and never copy them. `Chunked`
hands its rows out in parts. Data of type float32 stays as it is, and all sums are float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._base.validation import Index, Vector, check_length
from .._base.validation import Matrix as Table
from .._kernels.data import matrix as kernel
from . import products_k, threads

#: The data, indices and indptr of a CSR matrix; of a dense one all numbers, and two empty arrays.
Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

T = TypeVar("T")
P = ParamSpec("P")


class Matrix(Protocol):
    """X, with n rows and d columns.

    Methods raise ValueError if what they are given has another length. Everything but `view` and
    `rows` may be computed part by part, so that X need not be in memory.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)"""

    @property
    def nnz(self) -> int:
        """How many numbers are stored."""

    @property
    def sparse(self) -> bool:
        """Whether zeros are not stored."""

    @property
    def in_memory(self) -> bool:
        """Whether `view` gives layouts of all of X."""

    @property
    def constant(self) -> float:
        """The last entry of every row if it is in no array; 0 if there is no such entry."""

    @property
    def lengths(self) -> Vector:
        """How many numbers are stored of each row; one if none, for a step costs something."""

    @property
    def gram_madds(self) -> float:
        """Multiply-adds of `gram` if no entry of s is zero."""

    def largest(self) -> float:
        """About the largest |number| of X: of a thousand of them, or so many of each part."""

    def times(self, W: Table) -> Table:
        """X W, for a vector or K columns."""

    def adjoint(self, R: Table) -> Table:
        """X'R, for a vector or K columns."""

    def gram(self, s: Vector, columns: Index | None = None) -> Table:
        """X'diag(s) X, of all columns or some: its upper triangle. What is below is not defined.

        No entry of s is negative.
        """

    def gram_times(self, s: Vector, p: Vector, q: Vector) -> Vector:
        """X'diag(s) X p, in one pass over X; q becomes X p."""

    def row_gram(self, weights: Vector | None = None) -> Table:
        """X diag(weights) X', of few rows in memory; a weight for each column, none negative."""

    def squared_norms(self, weights: Vector | None = None) -> Vector:
        """|X_i|^2 of each row, with column j weighted by weights_j if given."""

    def column_squares(self, s: Vector) -> Vector:
        """sum_i s_i X_ij^2 of each column."""

    def rows(self, some: Index) -> Stored:
        """Some rows, in memory: a copy."""

    def pick(self, columns: Index) -> Stored:
        """Some columns of X, in memory: a copy, without the border."""

    def chunks(self, n: int | None = None) -> Iterator[tuple[slice, Stored]]:
        """X in parts of consecutive rows, in order: which rows, and their matrix in memory.

        A part has at most n rows. Without n they are as they come: one, if X is in memory.
        """

    def view(self, kind: Callable[Concatenate[Stored, P], T], *args: P.args, **more: P.kwargs) -> T:
        """kind(X, *args): a layout that some kernel reads (`views`), made once for all who ask.

        It needs all of X in memory: else it raises TypeError.
        """

    def bordered(self, constant: float) -> Matrix:
        """X with one more column, all of it `constant`, which is stored nowhere."""

    @property
    def with_ones(self) -> Matrix:
        """`bordered(1.0)`, the same object every time, so that its views are made once."""


class Stored(ABC):
    """What `Sparse` and `Dense` share: arrays in memory, and the kernels that read them."""

    in_memory = True
    sparse: bool

    def __init__(
        self, arrays: Arrays, n: int, d: int, norms: Vector | None, constant: float
    ) -> None:
        """Of n rows with d columns that are stored, and their squared norms, if known."""
        self._arrays, self._d, self._norms, self.constant = arrays, d, norms, constant
        self.shape = n, d + (constant != 0)
        self._views: dict[tuple[Any, ...], Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, {self.nnz} stored)"

    @property
    def nnz(self) -> int:
        return self._arrays[0].size

    @property
    def _kernel(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int, float]:
        """What each kernel takes first."""
        return *self._arrays, self._d, self.constant

    # ---- products -------------------------------------------------------------------------------

    def times(self, W: Table) -> Table:
        check_length(W, self.shape[1], "W", columns=True)
        by_threads = threads.joined(self, lambda at, part: part.times(W))
        if by_threads is not None:
            return by_threads
        if W.ndim == 1:
            return self._times(W)
        if not self.constant:
            return self._times_k(W)
        return np.asarray(self._times_k(W[:-1]) + self.constant * W[-1])

    def adjoint(self, R: Table) -> Table:
        check_length(R, self.shape[0], "R", columns=True)
        by_threads = threads.total(self, lambda at, part: part.adjoint(R[at]))
        if by_threads is not None:
            return by_threads
        if R.ndim == 1:
            return self._adjoint(R)
        if not self.constant:
            return self._adjoint_k(R)
        return np.vstack([self._adjoint_k(R), self.constant * R.sum(axis=0)])

    def _times(self, w: Vector) -> Vector:
        out = np.empty(self.shape[0])
        kernel.times(*self._kernel, np.ascontiguousarray(w), out)
        return out

    def _adjoint(self, r: Vector) -> Vector:
        out = np.zeros(self.shape[1])
        kernel.adjoint(*self._kernel, np.ascontiguousarray(r), out)
        return out

    def _times_k(self, W: Table) -> Table:
        """X W of K columns, without the border."""
        return products_k.times(self._arrays, W, self.shape[0])

    def _adjoint_k(self, R: Table) -> Table:
        return products_k.adjoint(self._arrays, R, self._d)

    def gram(self, s: Vector, columns: Index | None = None) -> Table:
        check_length(s, self.shape[0], "s")
        by_threads = threads.total(self, lambda at, part: part.gram(s[at], columns))
        if by_threads is not None:
            return by_threads
        if columns is None:
            return self._gram(np.ascontiguousarray(s))
        if self.constant:
            raise ValueError("gram of some columns is for a matrix without a border.")
        return self._gram_of(np.ascontiguousarray(s), columns)

    def _gram(self, s: Vector) -> Table:
        out = np.zeros((self.shape[1],) * 2)
        kernel.gram(*self._kernel, s, out)
        return out

    @abstractmethod
    def _gram_of(self, s: Vector, columns: Index) -> Table:
        """As `gram`, of some columns."""

    def gram_times(self, s: Vector, p: Vector, q: Vector) -> Vector:
        n, d = self.shape
        for given, size, name in ((s, n, "s"), (p, d, "p"), (q, n, "q")):
            check_length(given, size, name)
        by_threads = threads.total(self, lambda at, part: part.gram_times(s[at], p, q[at]))
        if by_threads is not None:
            return by_threads
        out = np.zeros(d)
        kernel.gram_times(*self._kernel, s, p, q, out)
        return out

    def row_gram(self, weights: Vector | None = None) -> Table:
        if weights is not None:
            check_length(weights, self.shape[1], "weights")
        out = self._row_gram(None if weights is None else np.sqrt(weights[: self._d]))
        if self.constant:
            out += self.constant**2 * (1.0 if weights is None else float(weights[-1]))
        return out

    @abstractmethod
    def _row_gram(self, root: Vector | None) -> Table:
        """X X', with the columns of X times `root`."""

    # ---- sizes ----------------------------------------------------------------------------------

    def squared_norms(self, weights: Vector | None = None) -> Vector:
        if weights is not None:
            check_length(weights, self.shape[1], "weights")
            norms = self._squared_norms(np.ascontiguousarray(weights[: self._d]))
            return norms + self.constant**2 * float(weights[-1]) if self.constant else norms
        if self._norms is None:
            self._norms = self._squared_norms(np.empty(0))
        self._norms.flags.writeable = False  # all who ask get the same array
        return self._norms + self.constant**2 if self.constant else self._norms

    def _squared_norms(self, weights: Vector) -> Vector:
        out = np.empty(self.shape[0])
        kernel.squared_norms(*self._arrays, weights, out)
        return out

    def column_squares(self, s: Vector) -> Vector:
        check_length(s, self.shape[0], "s")
        out = np.zeros(self.shape[1])
        kernel.column_squares(*self._arrays, self._d, np.ascontiguousarray(s), out)
        if self.constant:
            out[-1] = self.constant**2 * float(np.sum(s))
        return out

    def largest(self) -> float:
        data = self._arrays[0]
        return float(np.max(np.abs(data[:: max(data.size // 1000, 1)]), initial=0.0))

    @property
    @abstractmethod
    def lengths(self) -> Vector:
        """As in `Matrix`."""

    @property
    @abstractmethod
    def gram_madds(self) -> float:
        """As in `Matrix`."""

    # ---- other forms of it ----------------------------------------------------------------------

    def view(self, kind: Callable[Concatenate[Stored, P], T], *args: P.args, **more: P.kwargs) -> T:
        key = (kind, *args, *more.items())
        if key not in self._views:
            self._views[key] = kind(self, *args, **more)
        made: T = self._views[key]
        return made

    @abstractmethod
    def rows(self, some: Index) -> Stored:
        """As in `Matrix`."""

    @abstractmethod
    def pick(self, columns: Index) -> Stored:
        """As in `Matrix`."""

    def chunks(self, n: int | None = None) -> Iterator[tuple[slice, Stored]]:
        if n is None:
            yield slice(0, self.shape[0]), self
            return
        if n < 1:
            raise ValueError(f"a chunk must have at least one row, got {n}.")
        for first in range(0, self.shape[0], n):
            at = slice(first, min(first + n, self.shape[0]))
            yield at, self.part(at, None if self._norms is None else self._norms[at])

    @abstractmethod
    def part(self, at: slice, norms: Vector | None) -> Stored:
        """These rows, in the same memory."""

    def bordered(self, constant: float) -> Stored:
        if constant == 0 or not np.isfinite(constant):
            raise ValueError(
                f"constant must be finite and not 0, which would be no border; got {constant}."
            )
        if self.constant:
            raise ValueError("this matrix has a border already, and the kernels know of one only.")
        return self._with_constant(constant)

    @abstractmethod
    def _with_constant(self, constant: float) -> Stored:
        """The same memory with that border."""

    @cached_property
    def with_ones(self) -> Stored:
        return self.bordered(1.0)

    @property
    @abstractmethod
    def stored(self) -> Any:
        """The same memory as a SciPy or NumPy matrix, without the border."""

    @abstractmethod
    def absolute(self) -> Stored:
        """|X|, number by number: a copy."""

    @abstractmethod
    def scaled(self, each: Vector) -> Stored:
        """X diag(each) without the border, in float64: a copy."""

    @abstractmethod
    def transpose(self) -> Stored:
        """X', a copy; the border is a row of it."""
