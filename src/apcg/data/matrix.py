"""A matrix as the solvers see it: products with it, and the arrays that the kernels read.

A matrix A is stored by coordinate: row i of what is stored is the column A_i, which a step on
coordinate i reads. In the dual of ERM a coordinate is a sample, and what is stored is X; in
`minimize` a coordinate is an entry of x, and what is stored is the transpose of A.

`Sparse` and `Dense` hold arrays, in memory or mapped from a file; nothing here copies them. Data
of type float32 stays as it is, and all sums are float64. `Bordered` adds one entry, the same
number, at the end of every column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._base.validation import Index, Vector, check_length, is_sparse
from .._base.validation import Matrix as Table
from .._kernels.data import matrix
from . import many
from .compact import Compact
from .packed import Packed

#: The gram matrix of dense columns is summed over parts of this many numbers, which are copied.
_PART = 1_000_000
_NO_INDEX = np.empty(0, dtype=np.int32)
#: Of a dense matrix with fewer than one in so many entries of r that are not zero, their rows are
#: gathered: a number that is picked out takes ten times as long as one that is passed by.
_FEW = 16

#: The data, indices and indptr of a CSR matrix.
Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


class Matrix(Protocol):
    """A matrix A with n_rows rows, and one column for each coordinate.

    A vector x has one entry for each coordinate, r and `weight` of `squared_norms` one for each
    row. Methods raise ValueError if a vector has another length.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_coordinates)"""

    @property
    def n_coordinates(self) -> int:
        """The number of columns of A, the length of x."""

    @property
    def n_rows(self) -> int:
        """The number of rows of A, the length of A x."""

    @property
    def nnz(self) -> int:
        """How many numbers are stored."""

    @property
    def arrays(self) -> Arrays:
        """The data, indices and indptr that every kernel takes first.

        They are those of a CSR matrix. For a dense one, `data` is the flat array and the other two
        are empty.
        """

    @property
    def constant(self) -> float:
        """The last entry of every column if it is in no array; 0 if there is no such entry."""

    @property
    def lengths(self) -> Vector:
        """How many numbers are stored of each column; one if none, for a step costs something."""

    @property
    def transposed(self) -> Matrix:
        """A by rows: a copy, made once for all who share this map."""

    def adjoint(self, x: Vector) -> Vector:
        """A x; of an x with K columns, K columns"""

    def times(self, r: Vector) -> Vector:
        """A' r; of an r with K columns, K columns"""

    def squared_norms(self, weight: Vector | None = None) -> Vector:
        """|A_i|^2 for every i, with row j weighted by weight_j if given."""

    def gram(self, weight: Vector) -> tuple[Table, float]:
        """sum_i weight_i A_i A_i', and the multiply-adds that it took."""

    def take(self, coordinates: Index) -> Any:
        """The columns of A with these numbers, as the rows of a float64 matrix."""

    def chunks(self, n: int) -> Iterator[Matrix]:
        """A in slices of n consecutive coordinates (the last may have fewer), all of them views.

        A product with a slice reads only that part of the arrays, which may be mapped from a file.
        """

    def bordered(self, constant: float) -> Bordered:
        """The same memory, with one more entry, `constant`, at the end of every column."""


class Stored(ABC):
    """What `Sparse` and `Dense` share: the kernels, which read the arrays of either.

    `stored` is the same memory as a SciPy or NumPy matrix, with a row for each coordinate.
    """

    constant = 0.0
    stored: Any

    def __init__(
        self, arrays: Arrays, n_coordinates: int, n_rows: int, norms: Vector | None
    ) -> None:
        self.data, self.indices, self.indptr = arrays
        self.n_coordinates, self.n_rows = n_coordinates, n_rows
        self._norms = norms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows} x {self.n_coordinates}, {self.nnz} stored)"

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_coordinates

    @property
    def nnz(self) -> int:
        return self.data.size

    @property
    def arrays(self) -> Arrays:
        return self.data, self.indices, self.indptr

    def adjoint(self, x: Vector) -> Vector:
        check_length(x, self.n_coordinates, "x", columns=True)
        if x.ndim == 2:
            return many.dot(self.arrays, x, self.n_rows)
        out = np.zeros(self.n_rows)
        matrix.dot(*self.arrays, np.ascontiguousarray(x), out)
        return out

    def times(self, r: Vector) -> Vector:
        check_length(r, self.n_rows, "r", columns=True)
        if r.ndim == 2:
            return many.tdot(self.arrays, r, self.n_coordinates)
        out = np.empty(self.n_coordinates)
        matrix.tdot(*self.arrays, np.ascontiguousarray(r), out)
        return out

    def squared_norms(self, weight: Vector | None = None) -> Vector:
        if weight is not None:
            check_length(weight, self.n_rows, "weight")
            return self._squared_norms(np.ascontiguousarray(weight))
        if self._norms is None:
            self._norms = self._squared_norms(np.empty(0))
        self._norms.flags.writeable = False  # all who ask get the same array
        return self._norms

    def _squared_norms(self, weight: Vector) -> Vector:
        out = np.empty(self.n_coordinates)
        matrix.squared_norms(*self.arrays, weight, out)
        return out

    def _part_of_norms(self, first: int, last: int) -> Vector | None:
        return None if self._norms is None else self._norms[first:last]

    def take(self, coordinates: Index) -> Any:
        return self.stored[coordinates].astype(np.float64)

    @cached_property
    def with_ones(self) -> Bordered:
        """`bordered(1.0)`, the same object every time, so that its copy by rows is made once."""
        return Bordered(self, 1.0)

    def bordered(self, constant: float) -> Bordered:
        return Bordered(self, constant)

    @cached_property
    def transposed(self) -> Stored:
        return self.transpose()

    @property
    @abstractmethod
    def lengths(self) -> Vector:
        """As in `Matrix`."""

    @abstractmethod
    def gram(self, weight: Vector) -> tuple[Table, float]:
        """As in `Matrix`."""

    @abstractmethod
    def chunks(self, n: int) -> Iterator[Stored]:
        """As in `Matrix`."""

    @abstractmethod
    def transpose(self) -> Stored:
        """A by rows, a copy."""

    @abstractmethod
    def with_column(self, value: float) -> Stored:
        """A copy with one more coordinate at the end, whose column is all `value`."""


class Sparse(Stored):
    """The arrays of a CSR matrix with a row for each coordinate and `n_rows` columns.

    The kernels trust them: `check` makes a Sparse of what a user gave. No row has a column twice.
    `norms` are the squared norms of the rows, if they are known.
    """

    def __init__(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        n_rows: int,
        norms: Vector | None = None,
    ) -> None:
        super().__init__((data, indices, indptr), indptr.size - 1, n_rows, norms)
        self._columns: dict[type[np.floating[Any]], Packed] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (*self.arrays, self.n_rows, self._norms)  # without copies made of it

    @cached_property
    def compact(self) -> Compact:
        """The features by how many rows have them: a copy, made once for all who share this map."""
        return Compact.of(self.arrays, self.n_rows, alone=False)

    @cached_property
    def compact_alone(self) -> Compact:
        """The same, with features that one row has alone set apart."""
        return Compact.of(self.arrays, self.n_rows, alone=True)

    def columns(self, dtype: type[np.floating[Any]]) -> Packed:
        """X by columns, packed, in float32 or float64: a copy, made once for all who share it."""
        if dtype not in self._columns:
            self._columns[dtype] = Packed.of(self.arrays, self.n_rows, double=dtype is np.float64)
        return self._columns[dtype]

    @cached_property
    def stored(self) -> Any:
        """The same memory as a SciPy matrix, a row for each coordinate."""
        made = sp.csr_array((self.n_coordinates, self.n_rows), dtype=self.data.dtype)
        # The constructor would copy int64 indices to int32 where these suffice.
        made.data, made.indices, made.indptr = self.arrays
        return made

    def times(self, r: Vector) -> Vector:
        check_length(r, self.n_rows, "r", columns=True)
        packed = self._columns.get(np.float64)
        if packed is not None and r.ndim == 1:  # so that zeros cost nothing
            out, some = np.zeros(self.n_coordinates), np.flatnonzero(r)
            if 4 * some.size <= self.n_rows:
                packed.add(some, r[some], out)
                return out
        return super().times(r)

    def gram(self, weight: Vector) -> tuple[Table, float]:
        check_length(weight, self.n_coordinates, "weight")
        out = np.zeros((self.n_rows, self.n_rows))
        count = matrix.gram(*self.arrays, np.ascontiguousarray(weight), out)
        return out + out.T - np.diag(out.diagonal()), float(count)

    @cached_property
    def lengths(self) -> Vector:
        return np.maximum(np.diff(self.indptr), 1.0)

    def chunks(self, n: int) -> Iterator[Sparse]:
        for first, last in _slices(self.n_coordinates, n):
            begin, end = self.indptr[first], self.indptr[last]
            yield Sparse(
                self.data[begin:end],
                self.indices[begin:end],
                self.indptr[first : last + 1] - begin,  # one small number for each coordinate
                self.n_rows,
                self._part_of_norms(first, last),
            )

    def transpose(self) -> Sparse:
        made = self.stored.T.tocsr()
        return Sparse(made.data, made.indices, made.indptr, self.n_coordinates)

    def with_column(self, value: float) -> Sparse:
        size = self.nnz + self.n_rows
        index = index_type(self.indptr.dtype, size)
        return Sparse(
            np.append(self.data, np.full(self.n_rows, value, dtype=self.data.dtype)),
            np.concatenate([self.indices, np.arange(self.n_rows)], dtype=index),
            np.concatenate([self.indptr, [size]], dtype=index),
            self.n_rows,
        )


class Dense(Stored):
    """An array in C order with a row for each coordinate, and their squared norms, if known."""

    def __init__(self, stored: NDArray[Any], norms: Vector | None = None) -> None:
        n_coordinates, n_rows = stored.shape
        super().__init__((stored.reshape(-1), _NO_INDEX, _NO_INDEX), n_coordinates, n_rows, norms)
        self.stored = stored

    def __reduce__(self) -> tuple[Any, ...]:
        return Dense, (self.stored, self._norms)  # one array, not two that share their memory

    def adjoint(self, x: Vector) -> Vector:
        if self.data.dtype != np.float64:  # NumPy would make a copy of float32 first
            return super().adjoint(x)
        check_length(x, self.n_coordinates, "x", columns=True)
        if x.ndim == 2:  # by rows of x': BLAS takes 0.4 to 0.7 of the time for few outputs
            return np.ascontiguousarray((x.T @ self.stored).T)
        return np.asarray(x @ self.stored)

    def times(self, r: Vector) -> Vector:
        if self.data.dtype != np.float64:
            return super().times(r)
        check_length(r, self.n_rows, "r", columns=True)
        if r.ndim == 1 and _FEW * np.count_nonzero(r) <= self.n_rows:
            some = np.flatnonzero(r)
            return np.asarray(self.stored[:, some] @ r[some])
        return np.asarray(self.stored @ r)

    def gram(self, weight: Vector) -> tuple[Table, float]:
        check_length(weight, self.n_coordinates, "weight")
        d = self.n_rows
        out = np.zeros((d, d))
        kept = np.flatnonzero(weight)
        for part in np.array_split(kept, 1 + kept.size * d // _PART):
            rows = self.take(part)
            out += rows.T @ (weight[part, None] * rows)
        return out, 0.5 * kept.size * d * (d + 1)

    @cached_property
    def lengths(self) -> Vector:
        return np.full(self.n_coordinates, max(float(self.n_rows), 1.0))

    def chunks(self, n: int) -> Iterator[Dense]:
        for first, last in _slices(self.n_coordinates, n):
            yield Dense(self.stored[first:last], self._part_of_norms(first, last))

    def transpose(self) -> Dense:
        return Dense(self.stored.T.copy(order="C"))

    def with_column(self, value: float) -> Dense:
        column = np.full((1, self.n_rows), value, dtype=self.data.dtype)
        return Dense(np.vstack([self.stored, column]))


@dataclass(frozen=True, eq=False)
class Bordered:
    """A map and one more entry, `constant`, at the end of every column, which is stored nowhere.

    It is the feature of an intercept: A x gets one more entry, `constant` times the sum of x.
    """

    inner: Stored
    constant: float

    def __post_init__(self) -> None:
        if self.constant == 0 or not np.isfinite(self.constant):
            raise ValueError(
                f"constant must be finite and not 0, which would be no border; got {self.constant}."
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_coordinates

    @property
    def n_coordinates(self) -> int:
        return self.inner.n_coordinates

    @property
    def n_rows(self) -> int:
        return self.inner.n_rows + 1

    @property
    def nnz(self) -> int:
        return self.inner.nnz

    @property
    def arrays(self) -> Arrays:
        return self.inner.arrays

    @property
    def lengths(self) -> Vector:
        return self.inner.lengths

    def adjoint(self, x: Vector) -> Vector:
        check_length(x, self.n_coordinates, "x", columns=True)
        if x.ndim == 2:
            return np.vstack([self.inner.adjoint(x), self.constant * x.sum(axis=0)])
        return np.append(self.inner.adjoint(x), self.constant * np.sum(x))

    def times(self, r: Vector) -> Vector:
        check_length(r, self.n_rows, "r", columns=True)
        if r.ndim == 2:
            return np.asarray(self.inner.times(r[:-1]) + self.constant * r[-1])
        return self.inner.times(r[:-1]) + self.constant * float(r[-1])

    def squared_norms(self, weight: Vector | None = None) -> Vector:
        if weight is None:
            return self.inner.squared_norms() + self.constant**2
        check_length(weight, self.n_rows, "weight")
        return self.inner.squared_norms(weight[:-1]) + self.constant**2 * float(weight[-1])

    def gram(self, weight: Vector) -> tuple[Table, float]:
        block, count = self.inner.gram(weight)
        edge = self.constant * self.inner.adjoint(weight)[:, None]
        corner = self.constant**2 * np.sum(weight)
        return np.block([[block, edge], [edge.T, corner]]), count + self.nnz

    def take(self, coordinates: Index) -> Any:
        rows = self.inner.take(coordinates)
        column = np.full((rows.shape[0], 1), self.constant)
        if is_sparse(rows):
            return sp.hstack([rows, sp.csr_array(column)], format="csr")
        return np.hstack([rows, column])

    def chunks(self, n: int) -> Iterator[Bordered]:
        return (Bordered(part, self.constant) for part in self.inner.chunks(n))

    def bordered(self, constant: float) -> Bordered:
        raise ValueError("this map has a border already, and the kernels know of one only.")

    @cached_property
    def transposed(self) -> Stored:
        return self.inner.transpose().with_column(self.constant)


def index_type(known: np.dtype[Any], largest: int) -> np.dtype[Any]:
    """The type of indices up to `largest`: that which they have, or int64 if it is too small."""
    return known if largest <= np.iinfo(known).max else np.dtype(np.int64)


def _slices(n_coordinates: int, n: int) -> Iterator[tuple[int, int]]:
    if n < 1:
        raise ValueError(f"a chunk must have at least one coordinate, got {n}.")
    for first in range(0, n_coordinates, n):
        yield first, min(first + n, n_coordinates)
