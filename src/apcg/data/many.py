"""Products of a stored matrix with K columns at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.validation import Matrix
from .._kernels.data import products_k


def padded(K: int) -> int:
    """K up to a multiple of four: the kernels take vectors of four columns."""
    return -(-K // 4) * 4


def zeros(rows: int, columns: int) -> Matrix:
    """Zeros that begin with a line of the cache: rows that are cut by lines cost a tenth more."""
    spare = np.zeros(rows * columns + 7)
    begin = -spare.ctypes.data % 64 // 8
    return spare[begin : begin + rows * columns].reshape(rows, columns)


def with_pads(x: Matrix, size: int) -> Matrix:
    """x with columns of zeros up to `size`, by rows; x itself if it is that already."""
    if x.shape[1] == size and x.flags.c_contiguous:
        return x
    out = np.zeros((x.shape[0], size))
    out[:, : x.shape[1]] = x
    return out


def dot(arrays: Any, x: Matrix, n_rows: int) -> Matrix:
    """A x, one column for each of x."""
    K, size = x.shape[1], padded(x.shape[1])
    out = np.zeros((n_rows, size))
    data, indices, indptr = arrays
    products_k.dot(data, indices, indptr, with_pads(x, size), out)
    return out if size == K else np.ascontiguousarray(out[:, :K])


def tdot(arrays: Any, r: Matrix, n_coordinates: int) -> Matrix:
    """A' r, one column for each of r."""
    K, size = r.shape[1], padded(r.shape[1])
    out = np.empty((n_coordinates, size))
    data, indices, indptr = arrays
    products_k.tdot(data, indices, indptr, with_pads(r, size), out)
    return out if size == K else np.ascontiguousarray(out[:, :K])
