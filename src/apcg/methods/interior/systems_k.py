"""Interior points, the general ones: the linear system of a step, by features or by rows.

    C dW + X'dq = r_W      1'dq = r_b      dq = D (X dW + 1 db + pull)

C is diag(c_jk) - u_j u_j' for feature j, or diag(c) - U U' for one output with groups of features.
By features it is one matrix of (dK)^2 numbers. By rows dW is eliminated: a matrix of (nK)^2
numbers. A loss over classes makes K - 1 of K.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._base.validation import Matrix, Vector
from ..linalg.factor import Factor

#: Rounds of refinement, at most, while each takes so much of what is missing; they end at this part
#: of what there was. With 3 rounds a hinge of 3 classes, 599 x 52, L1, got stuck at a gap of 3e-2.
REFINED, FALLS, EXACT = 30, 0.95, 1e-12


class Bend(NamedTuple):
    """C: c (d, K), and u (d, K) or, with one output, U with a column for each group; or neither."""

    c: Matrix
    u: Matrix | None = None
    U: Matrix | None = None

    def times(self, W: Matrix) -> Matrix:
        """C W"""
        made = self.c * W
        if self.u is not None:
            made -= self.u * np.sum(self.u * W, axis=1, keepdims=True)
        return made if self.U is None else made - self.U @ (self.U.T @ W)


class _Parts:
    """The matrix of a step, in parts for two of `free` outputs of `size` numbers each.

    Where neither the loss nor the penalty couples outputs, it is one matrix for each of them.
    """

    def __init__(self, free: int, size: int, rows: Any, C: Bend) -> None:
        self._free, self._size, self._alone = free, size, not rows.coupled and C.u is None
        count, length = (free, size) if self._alone else (1, free * size)
        self.matrices = np.zeros((count, length, length))

    def __iter__(self) -> Iterator[tuple[int, int, Matrix]]:
        """k, m >= k and their part."""
        size = self._size
        for k in range(self._free):
            if self._alone:
                yield k, k, self.matrices[k]
                continue
            for m in range(k, self._free):
                at = slice(k * size, (k + 1) * size), slice(m * size, (m + 1) * size)
                yield k, m, self.matrices[0][at]

    def factors(self) -> list[Factor]:
        """Of each matrix."""
        return [Factor(one) for one in self.matrices]


def solved(factors: list[Factor], r: Matrix) -> Vector:
    """H^-1 r of numbers that are in the order of the matrices."""
    each = np.ascontiguousarray(r).reshape(len(factors), -1)
    return np.concatenate([factor.solve(one) for factor, one in zip(factors, each, strict=True)])


class ByFeatures:
    """The system by features, the intercepts as those of a last one.

    A loss over classes does not change if all classes get the same: D 1 = 0. So it is one in the
    differences from the last class, and what the last class gets follows from C alone. (In H it
    would be the difference of large numbers: C is small where W_jk is not zero.)
    """

    def __init__(self, X: Matrix, intercept: bool, rows: Any, C: Bend) -> None:
        self._X, self._C, self._rows, self._intercept = X, C, rows, intercept
        D = X.shape[1]
        d, K = C.c.shape
        self._free = K - 1 if rows.coupled else K
        own, self._sums = _differences(C) if rows.coupled else (_whole(C), np.zeros((d, K)))
        parts = _Parts(self._free, D, rows, C)
        at = np.arange(d)
        for k, m, part in parts:
            weight = rows.block(k, m)
            if weight is not None:  # all of one sign: half the work, by symmetry
                root = np.sqrt(np.abs(weight))[:, None] * X
                np.multiply(root.T @ root, 1.0 if k == m else -1.0, out=part)
            part[at, at] += own[:, k, m]
        if C.U is not None:
            parts.matrices[0][:d, :d] -= C.U @ C.U.T
        self._factors = parts.factors()
        self.short = 0.0  # as of `ByRows`, which it is not watched for

    def solve(self, r: Matrix, r_b: Vector, pull: Matrix) -> tuple[Matrix, Vector, Matrix]:
        """dW, db and dq."""
        full = np.vstack([r, r_b]) if self._intercept else r
        way, dq = np.zeros_like(full), self._rows.bent(pull)
        rest = full - self._X.T @ dq
        size = first = float(np.abs(rest).max())
        for _ in range(1 + REFINED):  # dq has more digits than D times the sum of what it is of
            added = self._solve(rest)
            new, new_dq = way + added, dq + self._rows.bent(self._X @ added)
            after = full - self._bent(new) - self._X.T @ new_dq
            now = float(np.abs(after).max())
            if not now < FALLS * size:
                break
            way, dq, rest, size = new, new_dq, after, now
            if now <= EXACT * first:
                break
        if self._intercept:
            return way[:-1], way[-1], dq
        return way, np.zeros(way.shape[1]), dq

    def _bent(self, way: Matrix) -> Matrix:
        """C times this, zero for the intercepts."""
        d, made = len(self._C.c), np.zeros_like(way)
        made[:d] = self._C.times(way[:d])
        return made

    def _solve(self, r: Matrix) -> Matrix:
        """H^-1 r, and what all classes get."""
        (d, K), free = self._C.c.shape, self._free
        if free == K:
            return self._by_factor(r)
        total = self._sums.sum(axis=1)
        same = r[:d].sum(axis=1) / total
        short = r[:, :free].copy()
        short[:d] -= self._sums[:, :free] * same[:, None]
        found = np.hstack([self._by_factor(short), np.zeros((len(r), 1))])
        found[:d] += (same - np.sum(self._sums * found[:d], axis=1) / total)[:, None]
        return found

    def _by_factor(self, r: Matrix) -> Matrix:
        return solved(self._factors, r.T).reshape(r.shape[1], -1).T


class ByRows:
    """The system by rows: theta dq + X C^-1 X'dq = X C^-1 r + pull + 1 db, with sums of dq given.

    Of a loss over classes dq sums to zero in each row: one class has minus what the others have. It
    is the one with the least theta: beside that of an unlikely class all digits would be lost.
    """

    def __init__(self, X: Matrix, intercept: bool, rows: Any, C: Bend) -> None:
        self._X, self._inverse, self._blocks = X[:, : len(C.c)], _inverse(C), _of_blocks(C)
        self._theta, self._intercept = rows.theta, intercept
        (n, K), M = rows.theta.shape, self._inverse
        self._less_one = _less_one(rows.theta) if rows.coupled else None
        parts = _Parts(K, n, rows, C)
        at = np.arange(n)
        for k, m, part in parts:
            if k == m or C.u is not None:
                np.matmul(self._X * M[:, k, m], self._X.T, out=part)
            if k == m:
                part[at, at] += rows.theta[:, k]
        if self._blocks is not None:
            far = self._X @ self._blocks
            parts.matrices[0] += far @ far.T
        if self._less_one is not None:
            H, upper = parts.matrices[0], np.triu_indices(n * K, 1)
            H.T[upper] = H[upper]
            parts.matrices = (self._less_one @ (self._less_one @ H).T)[None]
        self._factors = parts.factors()
        if intercept:
            self._with_intercepts(n, K)
        #: how far the last step was from solving the system, as part of the terms of a row
        self.short = 0.0

    def _with_intercepts(self, n: int, K: int) -> None:
        """All classes may get the same: the most likely one gets nothing."""
        ones = self._of_others(np.repeat(np.eye(K), n, axis=0))
        of_ones = np.column_stack([solved(self._factors, one) for one in ones.T])
        border = ones.T @ of_ones
        free = np.arange(K)
        self._free = free if self._less_one is None else np.delete(free, border.diagonal().argmax())
        self._ones, self._of_ones = ones[:, self._free], of_ones[:, self._free]
        self._border = Factor(border[np.ix_(self._free, self._free)])

    def _of_others(self, flat: Matrix) -> Matrix:
        """Numbers of all classes, less those of the one that is left out."""
        return flat if self._less_one is None else np.asarray(self._less_one @ flat)

    def solve(self, r: Matrix, r_b: Vector, pull: Matrix) -> tuple[Matrix, Vector, Matrix]:
        """dW, db and dq."""
        rest, short_b, size = self._X @ self._less(r) + pull, r_b, np.inf
        first = float(np.abs(rest).max())
        dW, dq, db = np.full_like(r, np.nan), np.zeros_like(pull), np.zeros(len(r_b))
        for _ in range(1 + REFINED):
            more, more_b = self._solve(rest, short_b)
            new, new_b = dq + more, db + more_b
            way = self._less(r - self._X.T @ new)
            rest, short_b = self._X @ way + new_b + pull - self._theta * new, r_b - new.sum(axis=0)
            now = float(np.abs(self._of_others(rest.T.reshape(-1))).max())
            if not now < FALLS * size:
                break
            dW, db, dq, size = way, new_b, new, now
            if now <= EXACT * first:
                break
        self.short = size / max(float(np.abs(self._theta * dq).max()), 1e-300)
        return dW, db, dq

    def _solve(self, first: Matrix, r_b: Vector) -> tuple[Matrix, Vector]:
        """dq and db"""
        flat, db = solved(self._factors, self._of_others(first.T.reshape(-1))), np.zeros(len(r_b))
        if self._intercept:
            db[self._free] = self._border.solve(r_b[self._free] - self._ones.T @ flat)
            flat = flat + self._of_ones @ db[self._free]
        dq = flat if self._less_one is None else self._less_one.T @ flat
        return dq.reshape(first.shape[1], -1).T, db

    def _less(self, r: Matrix) -> Matrix:
        """C^-1 r"""
        less = np.asarray(np.einsum("jkm,jm->jk", self._inverse, r))
        return less if self._blocks is None else less + self._blocks @ (self._blocks.T @ r)


def _less_one(theta: Matrix) -> Any:
    """For each row and class but that with the least theta: its number less that one's.

    Numbers of all rows of a class follow one another.
    """
    n, K = theta.shape
    out = theta.argmin(axis=1)
    at = np.tile(np.arange(n), K - 1)
    own = np.arange(K - 1)[:, None] + (np.arange(K - 1)[:, None] >= out)
    size = np.arange(at.size)
    ones, places = np.ones(at.size), (own.reshape(-1), out[at])
    made = [
        sp.csr_array((sign * ones, (size, k * n + at)), shape=(at.size, n * K))
        for sign, k in zip((1.0, -1.0), places, strict=True)
    ]
    return made[0] + made[1]


def _whole(C: Bend) -> Any:
    """C of each feature as a K x K matrix."""
    c, u = C.c, C.u
    made = np.zeros((*c.shape, c.shape[1]))
    at = np.arange(c.shape[1])
    made[:, at, at] = c
    return made if u is None else made - u[:, :, None] * u[:, None, :]


def _differences(C: Bend) -> tuple[Any, Matrix]:
    """C in the differences from the last class, with the best for that one; and C 1."""
    c, u = C.c, C.u
    if u is None:  # diag(c) - c c'/sum c, without a subtraction
        share = c / c.sum(axis=1, keepdims=True)
        made = -c[:, :, None] * share[:, None, :]
        for k in range(c.shape[1]):
            made[:, k, k] = c[:, k] * np.delete(share, k, axis=1).sum(axis=1)
        return made, c
    whole = _whole(C)
    sums = whole.sum(axis=2)
    over = sums[:, :, None] * sums[:, None, :] / sums.sum(axis=1)[:, None, None]
    return whole - over, sums


def _of_blocks(C: Bend) -> Any:
    """What U adds to C^-1: this times its transpose."""
    if C.U is None:
        return None
    less = C.U / C.c
    return less / np.sqrt(1 - np.sum(C.U * less, axis=0))


def _inverse(C: Bend) -> Any:
    """C^-1 of each feature."""
    c, u = C.c, C.u
    made = np.zeros((*c.shape, c.shape[1]))
    at = np.arange(c.shape[1])
    made[:, at, at] = 1 / c
    if u is None:
        return made
    less = u / c
    rest = 1 - np.sum(u * less, axis=1)
    return made + less[:, :, None] * less[:, None, :] / rest[:, None, None]
