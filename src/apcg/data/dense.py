"""X as an array with all its numbers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.validation import Index, Vector
from .._base.validation import Matrix as Table
from .._kernels.data import products_k
from .matrix import Stored
from .products_k import padded

_NO_INDEX = np.empty(0, dtype=np.int32)
#: If fewer than one in so many entries of w are not zero, only their columns are read: to gather a
#: number takes ten times as long as to stream one.
_FEW = 16
#: Products with a vector are by BLAS if X has at most _SMALL numbers, or its rows more than _LONG.
#: Else our own loops take less time. CPU of X w, BLAS on one thread over ours: 1,000 x 60 0.6,
#: 1,000 x 200 0.6, 30,000 x 60 1.5, 20,000 x 200 2.3, 5,000 x 500 1.2, 2,000 x 2,000 0.7.
#: (On more threads BLAS takes several times as much CPU there.)
_SMALL, _LONG = 2**18, 600
#: Gram matrices of rows of more features are by BLAS (at 60 ours takes 1.8 times the CPU of BLAS on
#: one thread, at 200 2.2 times; but the threads that BLAS starts cost more on small ones).
_GRAM_BLAS = 150
#: With one weight for all rows X is not copied for BLAS, which then takes 0.6 of the CPU of ours
#: for few features too, if X has so many numbers.
_GRAM_LARGE = 2**16
#: Numbers in a block of rows that is copied for BLAS, 1 MB.
_BLOCK = 131_072
#: Columns of float32 that are copied at a time for products of rows: the copy is small then.
_COLUMNS = 1024
#: With so many outputs products are by loops of ours, which take 0.7 of the time of BLAS on 2,000 x
#: 200 with 5 outputs and 0.45 on 500 x 2,000 with 3; 1.5 with 2 outputs, 1.0 to 1.3 with 8 to 20.
#: But an X of at most so many numbers goes to BLAS: calls cost more than products there.
_FEW_OUTPUTS, _FEW_NUMBERS = range(3, 7), 20_000


class Dense(Stored):
    """An array in C order, and the squared norms of its rows, if known."""

    sparse = False

    def __init__(
        self, stored: NDArray[Any], norms: Vector | None = None, constant: float = 0.0
    ) -> None:
        n, d = stored.shape
        super().__init__((stored.reshape(-1), _NO_INDEX, _NO_INDEX), n, d, norms, constant)
        self._stored = stored
        self._double = stored.dtype == np.float64  # NumPy would make a copy of float32 first
        self._blas = self._double and (stored.size <= _SMALL or d > _LONG)

    def __reduce__(self) -> tuple[Any, ...]:
        # one array, not two that share their memory
        return Dense, (self._stored, self._norms, self.constant)

    @property
    def stored(self) -> NDArray[Any]:
        return self._stored

    # ---- products -------------------------------------------------------------------------------

    def _times(self, w: Vector) -> Vector:
        X, own = self._stored, w[: self._d]
        if self._double and _FEW * np.count_nonzero(own) <= self._d:
            some = np.flatnonzero(own)
            z = X[:, some] @ own[some]
        elif self._blas:
            z = X @ own
        else:
            return super()._times(w)
        return np.asarray(z + self.constant * float(w[-1]) if self.constant else z)

    def _adjoint(self, r: Vector) -> Vector:
        if not self._blas:
            return super()._adjoint(r)
        own = r @ self._stored
        return np.append(own, self.constant * np.sum(r)) if self.constant else np.asarray(own)

    def _times_k(self, W: Table) -> Table:
        if not self._double:
            return super()._times_k(W)
        X, K = self._stored, W.shape[1]
        if X.size > _FEW_NUMBERS:
            some = np.flatnonzero(W.any(axis=1))
            if K in _FEW_OUTPUTS or _FEW * some.size <= self._d:
                chosen, out = np.zeros((some.size, padded(K))), np.empty((len(X), padded(K)))
                chosen[:, :K] = W[some]
                products_k.dense_times(X, some, chosen, out)
                return np.ascontiguousarray(out[:, :K])
        return np.asarray(X @ W)

    def _adjoint_k(self, R: Table) -> Table:
        if not self._double:
            return super()._adjoint_k(R)
        X, K = self._stored, R.shape[1]
        if K not in _FEW_OUTPUTS or X.size <= _FEW_NUMBERS:
            # by rows of R': BLAS takes 0.4 to 0.7 of the time for few outputs
            return np.ascontiguousarray((R.T @ X).T)
        if R.strides[1] != R.itemsize or R.strides[0] < R.itemsize * K:
            R = np.ascontiguousarray(R)
        out, rest = np.zeros((K, self._d)), np.zeros((K, 8))
        products_k.dense_adjoint(X, R, rest, out)
        return np.ascontiguousarray(out.T)

    def _gram(self, s: Vector) -> Table:
        d, X = self._d, self._stored
        large = d > _GRAM_BLAS or X.size >= _GRAM_LARGE
        even = large and self._double and s.size and s.min() == s.max()
        if d <= _GRAM_BLAS and not even:
            return super()._gram(s)
        out = np.zeros((self.shape[1],) * 2)
        if even:  # no copy of X
            out[:d, :d] = s[0] * (X.T @ X)
        else:
            kept = np.flatnonzero(s)
            root = np.sqrt(s[kept])
            for part in np.array_split(np.arange(kept.size), 1 + kept.size * d // _BLOCK):
                block = root[part, None] * X[kept[part]]
                out[:d, :d] += block.T @ block
        if self.constant:
            out[:, d] = self.constant * self._adjoint(s)
        return out

    def _gram_of(self, s: Vector, columns: Index) -> Table:
        return self.pick(columns).gram(s)

    def _row_gram(self, root: Vector | None) -> Table:
        X, out = self._stored, np.zeros((self.shape[0],) * 2)
        step = max(self._d, 1) if self._double else _COLUMNS
        for first in range(0, self._d, step):
            some = slice(first, first + step)
            part = X[:, some].astype(np.float64, copy=False)
            part = part if root is None else part * root[some]
            out += part @ part.T
        return out

    # ---- sizes, and other forms of it ------------------------------------------------------------

    @cached_property
    def lengths(self) -> Vector:
        return np.full(self.shape[0], max(float(self._d), 1.0))

    @property
    def gram_madds(self) -> float:
        return float(0.5 * self.shape[0] * self._d * (self._d + 1))

    def rows(self, some: Index) -> Dense:
        return Dense(self._stored[some], constant=self.constant)

    def pick(self, columns: Index) -> Dense:
        return Dense(np.ascontiguousarray(self._stored[:, columns]))

    def part(self, at: slice, norms: Vector | None) -> Dense:
        return Dense(self._stored[at], norms, self.constant)

    def _with_constant(self, constant: float) -> Dense:
        return Dense(self._stored, self._norms, constant)

    def absolute(self) -> Dense:
        return Dense(np.abs(self._stored), constant=abs(self.constant))

    def scaled(self, each: Vector) -> Dense:
        return Dense(self._stored * each)

    def transpose(self) -> Dense:
        turned = self._stored.T.copy(order="C")
        if not self.constant:
            return Dense(turned)
        row = np.full((1, self.shape[0]), self.constant, dtype=turned.dtype)
        return Dense(np.vstack([turned, row]))
