"""Products of a stored matrix with K columns at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.validation import Matrix as Table
from .._kernels.data import products_k as kernel


def padded(K: int) -> int:
    """K up to a multiple of four: the kernels take vectors of four columns."""
    return -(-K // 4) * 4


def zeros(rows: int, columns: int) -> Table:
    """Zeros that begin with a line of the cache: rows that are cut by lines cost a tenth more."""
    spare = np.zeros(rows * columns + 7)
    begin = -spare.ctypes.data % 64 // 8
    return spare[begin : begin + rows * columns].reshape(rows, columns)


def with_pads(x: Table, size: int) -> Table:
    """x with columns of zeros up to `size`, by rows; x itself if it is that already."""
    if x.shape[1] == size and x.flags.c_contiguous:
        return x
    out = np.zeros((x.shape[0], size))
    out[:, : x.shape[1]] = x
    return out


def times(arrays: Any, W: Table, n: int) -> Table:
    """X W, one column for each of W."""
    K, size = W.shape[1], padded(W.shape[1])
    out = np.empty((n, size))
    data, indices, indptr = arrays
    kernel.times(data, indices, indptr, with_pads(W, size), out)
    return out if size == K else np.ascontiguousarray(out[:, :K])


def adjoint(arrays: Any, R: Table, d: int) -> Table:
    """X'R, one column for each of R."""
    K, size = R.shape[1], padded(R.shape[1])
    out = np.zeros((d, size))
    data, indices, indptr = arrays
    kernel.adjoint(data, indices, indptr, with_pads(R, size), out)
    return out if size == K else np.ascontiguousarray(out[:, :K])
