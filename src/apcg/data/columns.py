"""Sparse columns packed for coordinate descent: row number and value side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._base.validation import Vector
from .._kernels.sparse import columns as kernel
from .matrix import Arrays, Stored

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Packed:
    """The columns of X, in float32 unless `double`, or some of them times a root.

    start    where each column begins; one entry more than there are columns
    squares  |A_j|^2
    most     max_i |A_ij| of X; <root, A_j> of columns that are scaled
    """

    entries: NDArray[np.uint8]
    double: bool
    start: NDArray[np.int64]
    squares: Vector
    most: Vector

    @classmethod
    def of(cls, arrays: Arrays, d: int, *, double: bool) -> Packed:
        """Of a CSR matrix with d columns."""
        entries = np.empty(arrays[0].size * kernel.entry_size(double), np.uint8)
        start, place = np.empty(d + 1, np.int64), np.empty(d, np.int64)
        squares, most = np.empty(d), np.empty(d)
        kernel.pack(*arrays, double, entries, start, place, squares, most)
        return cls(entries, double, start, squares, most)

    def products(self, u: Vector, out: Vector, some: NDArray[np.int64] | None = None) -> None:
        """out_j = <A_j, u>, for some columns or all."""
        if some is None or some.size:
            some = _NONE if some is None else some
            kernel.products(self.entries, self.double, self.start, some, u, out)

    def add(self, ids: NDArray[np.int64], v: Vector, out: Vector) -> None:
        """out += sum_k v_k A_(ids k)"""
        kernel.add(self.entries, self.double, self.start, ids, v, out)

    def scaled(self, ids: NDArray[np.int64], root: Vector) -> Packed:
        """The columns `ids`, each times root."""
        lengths = self.start[ids + 1] - self.start[ids]
        made = np.empty(int(lengths.sum()) * kernel.entry_size(self.double), np.uint8)
        start = np.zeros(ids.size + 1, np.int64)
        squares, product = np.zeros(ids.size), np.zeros(ids.size)
        kernel.scaled(
            self.entries, self.double, self.start, ids, root, made, start, squares, product
        )
        return Packed(made, self.double, start, squares, product)


def columns(X: Stored, dtype: type[np.float32] | type[np.float64]) -> Packed:
    """Sparse X by columns, in float32 or float64: a layout for `X.view`."""
    if not X.sparse or X.constant:
        raise TypeError("columns are packed of sparse data without a border.")
    return Packed.of(X._arrays, X.shape[1], double=dtype is np.float64)
