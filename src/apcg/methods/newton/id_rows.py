"""Sparse X with ids: columns of which every row has at most one, sorted by them.

    X = [E F],   E'diag(h) E is diagonal whatever h is

Users, films, shops, postcodes as one column for each make such an X. E is the widest range of
columns of that kind, with columns in no row; where columns are in no such order it is a set that is
chosen greedily, rare columns first. F are all others, and the border, if there is one.

The rows are copied, sorted by id, those of one id by length: loops over rows of lengths that nobody
can predict take twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.memory import vectors
from ..._base.validation import Index, Vector
from ..._kernels.newton import ids as kernel
from ...data import views
from ...data.matrix import Stored

#: Rows that are longer than this are not told apart by length.
_LONGEST = 255
#: A range of columns is taken for E if it leaves at most this part of the columns in use to F;
#: else a greedy set is looked for too, ...
_ENOUGH = 0.5
#: ... if rows have at most so many entries: of longer ones, such as words, few columns are ids.
_SHORT = 16.0


@dataclass(frozen=True, eq=False)
class Split:
    """Which columns are ids.

    place  the place of each column of X in the order E, F
    ids    how many are E
    rows   how many rows have each id
    """

    place: NDArray[np.int32]
    ids: int
    rows: Index

    def pairs_below(self, X: Stored) -> float:
        """Multiply-adds of the columns of F under the ids, at most, of rows of the usual length."""
        others = X.shape[1] - self.ids
        each = np.minimum(self.rows * max(X.nnz / max(X.shape[0], 1) - 1, 0.0), others)
        return 0.5 * float(np.dot(each, each + 1))


def split(X: Stored) -> Split:
    """The columns of X as E and F; a layout for `X.view`."""
    _, indices, indptr = X.view(views.arrays)
    d = X.shape[1] - (X.constant != 0)
    count, following = np.zeros(d, np.int64), np.full(d, d, np.int64)
    ordered = kernel.counts(indices, indptr, count, following)
    chosen = count == 0
    used = d - int(chosen.sum())
    if ordered:
        low, high = kernel.widest(following)
        chosen[low:high] = True
    short = X.nnz <= _SHORT * X.shape[0]
    if used and short and d - int(chosen.sum()) > _ENOUGH * used:
        other = _greedy(X, count)
        chosen = other if other.sum() > chosen.sum() else chosen
    place, ids = np.empty(d, np.int32), int(chosen.sum())
    place[chosen] = np.arange(ids)
    place[~chosen] = np.arange(ids, d)
    return Split(place, ids, count[chosen])


def _greedy(X: Stored, count: Index) -> NDArray[np.bool_]:
    """Columns of which no row has two, rare ones first."""
    _, indices, indptr = X.transpose().view(views.arrays)
    chosen, taken = np.zeros(count.size, np.uint8), np.zeros(X.shape[0], np.uint8)
    order = np.argsort(count, kind="stable")
    kernel.independent(indices, indptr[: count.size + 1], order, taken, chosen)
    return chosen.astype(bool)


class IdRows:
    """The rows of X in the order of their ids, with the products that Newton's method takes.

    Vectors of features are in the order E, F; those of rows in the order of `order`. It has what
    `problems.objective` and a `Hessian` ask of a `Matrix`.
    """

    sparse = True

    def __init__(self, X: Stored) -> None:
        data, indices, indptr = X.view(views.arrays)
        made = X.view(split)
        n, size = X.shape
        self.shape, self.constant, self.ids = X.shape, X.constant, made.ids
        self.others = size - made.ids  # columns of F, with the border
        border = X.constant != 0
        entries = data.size + n * border
        key, order, by_length, own, start, column, value = vectors(
            (n, np.int32), (n, np.int64), (n, np.int64), (n, float), (n + 1, np.int64),
            (entries, np.int32), (entries, float),
        )  # fmt: skip
        kernel.id_of_rows(indices, indptr, made.place, made.ids, key)
        first, room = np.empty(made.ids + 2, np.int64), np.empty(_LONGEST + 2, np.int64)
        kernel.sort_rows(key, indptr, _LONGEST, room, first, by_length, order)
        kernel.copy_rows(
            data, indices, indptr, order, made.place, made.ids, border, self.others - 1,
            own, start, column, value,
        )  # fmt: skip
        self.order: Index = order
        self.nnz = data.size + n * border
        self.rows_of = first, own, start, column, value
        features = np.append(made.place, np.int32(size - 1)) if border else made.place
        #: features in the order E, F are w[self.features]; back[self.place] are those of X
        self.place: NDArray[np.int32] = features
        self.features = np.argsort(features)

    # ---- products -------------------------------------------------------------------------------

    def times(self, w: Vector) -> Vector:
        """X w"""
        out = np.empty(self.shape[0])
        kernel.times(*self.rows_of, np.ascontiguousarray(w), out)
        return out

    def adjoint(self, r: Vector) -> Vector:
        """X'r"""
        out = np.zeros(self.shape[1])
        kernel.adjoint(*self.rows_of, np.ascontiguousarray(r), out)
        return out

    def gram_times(self, s: Vector, p: Vector, q: Vector) -> Vector:
        """X'diag(s) X p; q becomes X p."""
        out = np.zeros(self.shape[1])
        kernel.gram_times(*self.rows_of, s, np.ascontiguousarray(p), q, out)
        return out

    def column_squares(self, s: Vector) -> Vector:
        """sum_i s_i X_ij^2 of each column."""
        out = np.zeros(self.shape[1])
        kernel.squares(*self.rows_of, np.ascontiguousarray(s), out)
        return out

    # ---- under the ids --------------------------------------------------------------------------

    @cached_property
    def under(self) -> tuple[Index, NDArray[np.int32], NDArray[np.int32]]:
        """The columns of F under each id: where they begin, they, and the place of each entry."""
        first, _, start, column, _ = self.rows_of
        with_id = int(start[first[self.ids]])
        under, rank = np.empty(self.ids + 1, np.int64), np.empty(self.others, np.int32)
        slot, columns = vectors((with_id, np.int32), (with_id, np.int32))
        bits = np.zeros(self.others // 64 + 1, np.uint64)
        kernel.pattern(first, start, column, bits, rank, under, columns, slot)
        return under, columns[: under[-1]], slot

    @cached_property
    def gram_madds(self) -> float:
        """Multiply-adds of S: the pairs of entries of a row, and of columns under an id."""
        rows, below = np.diff(self.rows_of[2]).astype(float), np.diff(self.under[0]).astype(float)
        return float(0.5 * (np.dot(rows, rows + 1) + np.dot(below, below + 1)))


def id_rows(X: Stored) -> IdRows:
    """X sorted by its ids; a layout for `X.view`."""
    return IdRows(X)


def ids_of(X: Any) -> int:
    """How many columns of X can be eliminated; 0 if X is not sparse or not in memory."""
    return int(X.view(split).ids) if X.sparse and X.in_memory else 0
