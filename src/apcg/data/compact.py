"""A sparse matrix with its features in the order of how many samples have them, for the cache.

W has a row for each feature, and in text most features are in few samples: their rows are read
from far away each time. So features that many samples have come first, and their rows stay near.
A feature that only sample i has needs no row: W_j = c a_ij x_i' follows from x_i, and it adds
c a_ij^2 x_i to the predictions of that sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._base.validation import Index, Vector
from .._base.validation import Matrix as Table
from .._kernels.data import products_k
from .matrix import Arrays, Stored

#: The rows of W of so many features are in the second cache in any case, and the others are fetched
#: there during the step before. (20 newsgroups, 20 classes, the products of a sweep: 18.5 ms with
#: all fetched to the first cache, 16 with all to the second, 13.7 with those after 1,000, 13.3
#: after 3,000 to 13,000, 15 after 30,000.)
NEAR = 6000


@dataclass(frozen=True, eq=False)
class Compact:
    """The numbers of a CSR matrix with `d` features in two parts.

    shared   those of features that have a row, numbered anew;  order  which features these are
    far      how many numbers of each row, its last ones, are of features after the first `NEAR`
    own      those of the others, which one row has alone
    squares  the sum of squares of `own`, for each row
    """

    shared: Arrays
    order: Index
    far: NDArray[np.int32]
    own: Arrays
    squares: Vector
    d: int

    @classmethod
    def of(cls, arrays: Arrays, d: int, *, alone: bool) -> Compact:
        """With `alone`, features of one row are set apart; else only those of none are left out."""
        data, indices, indptr = arrays
        counts, place, order = np.zeros(d, np.int32), np.empty(d, np.int32), np.empty(d, np.intp)
        products_k.count_features(indices, counts)
        m = products_k.place_features(counts, 2 if alone else 1, place, order)
        number = int(np.count_nonzero(counts == 1)) if alone else 0

        def room(size: int) -> Arrays:
            return np.empty(size, data.dtype), np.empty(size, indices.dtype), np.empty_like(indptr)

        shared, own = room(data.size - number), room(number)
        squares, far = np.empty(indptr.size - 1), np.empty(indptr.size - 1, np.int32)
        longest = room(int(np.diff(indptr).max(initial=0)))[:2]
        products_k.split_features(
            data, indices, indptr, place, NEAR, *shared, far, *own, squares, *longest
        )
        return cls(shared, order[:m], far, own, squares, d)

    def expand(self, rows: Table, x: Table) -> Table:
        """The sum of A_i x_i', given that of the shared features; rows may have pads."""
        out = np.zeros((self.d, x.shape[1]))
        products_k.spread_features(rows, self.order, *self.own, x, out)
        return out


def compact(X: Stored, alone: bool) -> Compact:
    """Sparse X, without its border, with its features in that order: a layout for `X.view`."""
    if not X.sparse:
        raise TypeError("features are put in order of sparse data.")
    return Compact.of(X._arrays, X.shape[1] - (X.constant != 0), alone=alone)
