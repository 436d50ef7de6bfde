"""Sparse columns packed for coordinate descent: row number and value side by side, in float32.

That takes two thirds of the bytes of the same data by rows in float64. What float32 does to a value
changes how fast a method is, and no answer: slopes and predictions come from X as it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.validation import Index, Matrix, Vector
from .._kernels.sparse import columns as kernel
from .matrix import Arrays, Stored

_NONE = np.empty(0, np.int64)
#: float32 goes from 1e-38 to 1e38
_TINY = 1e-15


@dataclass(frozen=True, eq=False)
class Packed:
    """The columns of X.

    columns  as the kernels read them
    start    where each column begins; one entry more than there are columns
    most     max_i |A_ij|
    unit     what values are parts of: 1, or a power of two where float32 has no room for them
    """

    columns: kernel.Columns
    start: NDArray[np.int64]
    most: Vector
    unit: float

    @classmethod
    def of(cls, arrays: Arrays, d: int) -> Packed:
        """Of a CSR matrix with d columns."""
        entries = np.empty(arrays[0].size * kernel.ENTRY, np.uint8)
        start, place = np.empty(d + 1, np.int64), np.empty(d, np.int64)
        most = np.empty(d)
        unit = 1.0
        kernel.pack(*arrays, unit, entries, start, place, most)
        if entries.size and not _TINY < most.max() < 1 / _TINY:
            unit = _power_near(float(np.abs(arrays[0]).max()))
            kernel.pack(*arrays, unit, entries, start, place, most)
        return cls(kernel.Columns(entries, start, unit), start, most, unit)

    def dots(self, u: Vector, ids: Index | None = None) -> Vector:
        """<A_j, u> for some columns or all."""
        out = np.empty(self.start.size - 1 if ids is None else ids.size)
        if out.size:
            self.columns.dots(u[None], _NONE if ids is None else ids, _NONE, out)
        return out

    def dots_with(self, u: Matrix, ids: Index, rows: Index) -> Vector:
        """<A_(ids k), u_(rows k)>"""
        out = np.empty(ids.size)
        if out.size:
            self.columns.dots(u, ids, rows, out)
        return out

    def add(self, ids: Index, v: Vector, out: Vector) -> None:
        """out += sum_k v_k A_(ids k)"""
        self.columns.add(ids, _NONE, v, out[None])

    def add_to(self, ids: Index, rows: Index, v: Vector, out: Matrix) -> None:
        """Row rows_k of out += v_k A_(ids k)"""
        self.columns.add(ids, rows, v, out)

    def bends(self, ids: Index, bend: Vector) -> tuple[Vector, Vector]:
        """sum_i bend_i A_ij^2 and sum_i bend_i A_ij of the columns `ids`."""
        squares, products = np.empty(ids.size), np.empty(ids.size)
        if ids.size:
            self.columns.bends(ids, bend, squares, products)
        return squares, products


def _power_near(size: float) -> float:
    """A power of two whose inverse is finite too; no value is rounded otherwise by it."""
    return math.ldexp(1.0, max(math.frexp(size)[1] - 1, -1000)) if 0 < size < math.inf else 1.0


def columns(X: Stored) -> Packed:
    """Sparse X by columns, in float32: a layout for `X.view`."""
    if not X.sparse or X.constant:
        raise TypeError("columns are packed of sparse data without a border.")
    return Packed.of(X._arrays, X.shape[1])


def stored_columns(X: Stored) -> Any:
    """Sparse X in CSC form, in float64: a layout for `X.view`."""
    if not X.sparse or X.constant:
        raise TypeError("the CSC form is of sparse data without a border.")
    return X.stored.tocsc().astype(np.float64, copy=False)
