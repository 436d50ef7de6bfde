"""X with few numbers that are not zero: the arrays of a CSR matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._base.validation import Index, Vector
from .._base.validation import Matrix as Table
from .._kernels.sparse import columns as kernel
from .columns import stored_columns
from .matrix import Stored

#: A product with a vector is by columns, where these are at hand, if one entry in so many is not 0.
_FEW = 4


class Sparse(Stored):
    """The arrays of a CSR matrix with d columns.

    The kernels trust them: `check` makes a Sparse of what a user gave. No row has a column twice.
    `norms` are the squared norms of the rows, if they are known.
    """

    sparse = True

    def __init__(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        d: int,
        norms: Vector | None = None,
        constant: float = 0.0,
    ) -> None:
        super().__init__((data, indices, indptr), indptr.size - 1, d, norms, constant)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (*self._arrays, self._d, self._norms, self.constant)  # without its views

    @cached_property
    def stored(self) -> Any:
        data, indices, indptr = self._arrays
        made = sp.csr_array((self.shape[0], self._d), dtype=data.dtype)
        # The constructor would copy int64 indices to int32 where these suffice.
        made.data, made.indices, made.indptr = data, indices, indptr
        return made

    def _times(self, w: Vector) -> Vector:
        by_column = self._views.get((stored_columns,))
        if by_column is not None and not self.constant:  # zeros cost nothing then
            some = np.flatnonzero(w)
            if _FEW * some.size <= self._d:
                return np.asarray(by_column[:, some] @ w[some])
        return super()._times(w)

    def _gram_of(self, s: Vector, columns: Index) -> Table:
        return self.gram_rows(s, columns, 0)

    def gram_rows(self, s: Vector, columns: Index, first: int) -> Table:
        """X_V'diag(s) X_W of the columns W, where V are those from `first` on."""
        size = columns.size
        place, out = np.full(self._d, -1), np.empty((size - first, size))
        place[columns] = np.arange(size)
        room = np.empty(size, np.int64), np.empty(size)
        kernel.gram_rows(*self._arrays, place, first, s, *room, out)
        return out

    def _row_gram(self, root: Vector | None) -> Table:
        A = self.stored.astype(np.float64)
        A = A if root is None else A.multiply(root).tocsr()
        return np.asarray((A @ A.T).toarray())

    @cached_property
    def lengths(self) -> Vector:
        return np.maximum(np.diff(self._arrays[2]), 1.0)

    @cached_property
    def gram_madds(self) -> float:
        each = np.diff(self._arrays[2])
        return float(0.5 * (float(np.dot(each, each)) + self.nnz))

    def rows(self, some: Index) -> Sparse:
        made = self.stored[some]
        return Sparse(made.data, made.indices, made.indptr, self._d, constant=self.constant)

    def pick(self, columns: Index) -> Sparse:
        made = self.stored[:, columns]
        return Sparse(made.data, made.indices, made.indptr, columns.size)

    def part(self, at: slice, norms: Vector | None) -> Sparse:
        data, indices, indptr = self._arrays
        begin, end = indptr[at.start], indptr[at.stop]
        own = indptr[at.start : at.stop + 1] - begin  # one small number for each row
        return Sparse(data[begin:end], indices[begin:end], own, self._d, norms, self.constant)

    def _with_constant(self, constant: float) -> Sparse:
        return Sparse(*self._arrays, self._d, self._norms, constant)

    def absolute(self) -> Sparse:
        data, indices, indptr = self._arrays
        return Sparse(np.abs(data), indices, indptr, self._d, constant=abs(self.constant))

    def scaled(self, each: Vector) -> Sparse:
        data, indices, indptr = self._arrays
        return Sparse(data * each[indices], indices, indptr, self._d)

    def transpose(self) -> Sparse:
        made, n = self.stored.T.tocsr(), self.shape[0]
        data, indices, indptr = made.data, made.indices, made.indptr
        if self.constant:
            size = data.size + n
            index = index_type(indptr.dtype, size)
            data = np.append(data, np.full(n, self.constant, dtype=data.dtype))
            indices = np.concatenate([indices, np.arange(n)], dtype=index)
            indptr = np.concatenate([indptr, [size]], dtype=index)
        return Sparse(data, indices, indptr, n)


def index_type(known: np.dtype[Any], largest: int) -> np.dtype[Any]:
    """The type of indices up to `largest`: that which they have, or int64 if it is too small."""
    return known if largest <= np.iinfo(known).max else np.dtype(np.int64)
