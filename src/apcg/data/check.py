"""The check of a matrix that a user gave.

SciPy does not look at the contents of the arrays that a sparse matrix is made of. Its conversions
and products trust them, and so do the kernels: an index outside the matrix makes them read and
write outside of arrays. So a sparse matrix is checked in the format that it comes in, before
anything is done with it, and once more after a conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.validation import check_finite, check_real, is_sparse, to_array
from .._kernels.data import matrix
from .chunked import Chunked
from .dense import Dense
from .matrix import Arrays, Matrix, Stored
from .sparse import Sparse


def by_coordinate(A: Any, name: str) -> Stored:
    """The transpose of A, whose *columns* are the coordinates' (minimize: A x)."""
    return _sparse(A, name, True) if is_sparse(A) else _dense(A, name, True)


def by_row(X: Any, name: str) -> Matrix:
    """X itself, whose *rows* are the coordinates' (the dual of ERM: one sample, one coordinate).

    What is a `Matrix` already is not looked at again.
    """
    if isinstance(X, Stored | Chunked):
        return X
    return _sparse(X, name, False) if is_sparse(X) else _dense(X, name, False)


def check_sparse(A: Any, name: str) -> None:
    """Refuse a sparse matrix whose arrays do not fit its shape; all else passes.

    It is for matrices that go to SciPy or scikit-learn next. Values are not looked at.
    """
    if not is_sparse(A):
        return
    _check_dimensions(A.shape, name)
    if not _fits(A):
        raise _broken(A, name)


def _broken(A: Any, name: str) -> ValueError:
    return ValueError(
        f"{name} is a broken sparse matrix: its index arrays point outside its shape "
        f"{A.shape}. Look at how it was made; .check_format(full_check=True) says more."
    )


def _dense(A: Any, name: str, transpose: bool) -> Dense:
    A = to_array(A, name)
    _check_shape(A.shape, name)
    A = np.ascontiguousarray(A.T if transpose else A)
    norms = np.empty(A.shape[0])
    found = matrix.inspect_dense(A.reshape(-1), norms)
    if found >= 0:
        check_finite(A.reshape(-1), name, lambda k: _place(divmod(k, A.shape[1]), transpose))
    return Dense(A, norms)


def _sparse(A: Any, name: str, transpose: bool) -> Sparse:
    _check_shape(A.shape, name)
    given = A
    if A.format != ("csc" if transpose else "csr"):
        check_sparse(A, name)
        check_real(A.dtype, name)
        A = A.tocsc() if transpose else A.tocsr()  # CSC is CSR of the transpose
    arrays = _arrays(A)
    if arrays is None:
        raise _broken(given, name)
    data, indices, indptr = arrays
    check_real(data.dtype, name)
    if data.dtype not in (np.float32, np.float64) or not data.dtype.isnative:
        data = data.astype(np.float64)
    arrays = data, indices, indptr
    n_rows = given.shape[0] if transpose else given.shape[1]
    code, norms = _inspect(arrays, n_rows)
    if code == matrix.REPEATED:
        arrays = _without_repeats(arrays, n_rows)
        code, norms = _inspect(arrays, n_rows)
    if code == matrix.BROKEN:
        raise _broken(given, name)
    made = Sparse(*arrays, n_rows, norms)
    if code == matrix.NOT_FINITE:
        check_finite(arrays[0], name, lambda k: _place(_entry(arrays, k), transpose))
    return made


def _inspect(arrays: Arrays, n_rows: int) -> tuple[int, NDArray[np.float64]]:
    """What is wrong with a CSR matrix whose sizes are right, and the squared norms of its rows."""
    norms = np.empty(arrays[2].size - 1)
    code, _ = matrix.inspect_csr(*arrays, n_rows, np.empty(0, dtype=np.intp), norms)
    if code == matrix.UNSORTED:
        seen = np.full(n_rows, -1, dtype=np.intp)
        code, _ = matrix.inspect_csr(*arrays, n_rows, seen, norms)
    return code, norms


def _without_repeats(arrays: Arrays, n_rows: int) -> Arrays:
    """A copy in which entries at the same place are added up."""
    data, indices, indptr = (a.copy() for a in arrays)
    copy = Sparse(data, indices, indptr, n_rows).stored
    copy.sum_duplicates()
    return copy.data, copy.indices, copy.indptr


def _check_dimensions(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        cure = f"; {name}.reshape(-1, 1) makes a single column of it" if len(shape) == 1 else ""
        raise ValueError(
            f"{name} must be a matrix with two dimensions, got an array of shape {shape}{cure}."
        )


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    _check_dimensions(shape, name)
    if 0 in shape:
        raise ValueError(
            f"{name} is empty: its shape is {shape}. Give at least one row and column."
        )


def _entry(arrays: Arrays, k: int) -> tuple[int, int]:
    """The row and column, as they are stored, of the k-th number."""
    _, indices, indptr = arrays
    return int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])


def _place(stored: tuple[int, int], transpose: bool) -> str:
    """The place of an entry in the matrix as the user knows it."""
    i, j = stored[::-1] if transpose else stored
    return f"row {i}, column {j}"


# ---- sparse formats, as they come ---------------------------------------------------------------


def _fits(A: Any) -> bool:
    """Whether the arrays of a sparse matrix fit its shape, so that SciPy can work with it."""
    if A.format in ("csr", "csc", "bsr"):
        arrays = _arrays(A)
        return arrays is not None and matrix.within(*arrays[1:], _minor(A))
    if A.format == "coo":
        return _fits_coo(A)
    if A.format == "dia":
        lined_up = _is_array(A.data, 2) and _is_index(A.offsets)
        return lined_up and A.offsets.size == A.data.shape[0]
    if A.format == "lil":
        return _fits_lil(A)
    keys = A.keys()  # format "dok", a dictionary
    return all(0 <= i < A.shape[0] and 0 <= j < A.shape[1] for i, j in keys)


def _minor(A: Any) -> int:
    """The number of columns of a CSR matrix, rows of a CSC one, columns of blocks of a BSR one."""
    if A.format == "bsr":
        return int(A.shape[1] // A.data.shape[2])
    return int(A.shape[A.format == "csr"])


def _arrays(A: Any) -> Arrays | None:
    """Data, indices and indptr of a CSR, CSC or BSR matrix, or None if their sizes are wrong.

    The index arrays come as one integer type that the kernels know, and what is stored behind the
    last row is cut off. None of it is a copy if A has these types.
    """
    data, indices, indptr = A.data, A.indices, A.indptr
    major = A.shape[A.format == "csc"]
    if A.format == "bsr":
        if not _is_array(data, 3) or 0 in data.shape[1:]:
            return None
        if A.shape[0] % data.shape[1] or A.shape[1] % data.shape[2]:
            return None
        major //= data.shape[1]
    elif not _is_array(data, 1):
        return None
    if not (_is_index(indices) and _is_index(indptr)) or indptr.size != major + 1:
        return None
    index = indices.dtype if indices.dtype == indptr.dtype else np.dtype(np.int64)
    if index not in (np.int32, np.int64) or not index.isnative:
        index = np.dtype(np.int64)
    indices = np.ascontiguousarray(indices, dtype=index)
    indptr = np.ascontiguousarray(indptr, dtype=index)
    stored = int(indptr[-1])
    if indptr[0] != 0 or stored > len(data):  # the kernels look at the rest of indptr
        return None
    return np.ascontiguousarray(data[:stored]), indices[:stored], indptr


def _is_array(a: Any, dimensions: int) -> bool:
    return isinstance(a, np.ndarray) and a.ndim == dimensions


def _is_index(a: Any) -> bool:
    return _is_array(a, 1) and a.dtype.kind in "iu"


def _fits_coo(A: Any) -> bool:
    places = A.coords if hasattr(A, "coords") else (A.row, A.col)  # before SciPy 1.13
    if not _is_array(A.data, 1) or len(places) != 2:
        return False
    for place, length in zip(places, A.shape, strict=True):
        if not _is_index(place) or place.size != A.data.size:
            return False
        if place.size and (place.min() < 0 or place.max() >= length):
            return False
    return True


def _fits_lil(A: Any) -> bool:
    if not (_is_array(A.rows, 1) and _is_array(A.data, 1)):
        return False
    if not len(A.rows) == len(A.data) == A.shape[0]:
        return False
    return all(
        len(row) == len(values) and all(0 <= j < A.shape[1] for j in row)
        for row, values in zip(A.rows, A.data, strict=True)
    )
