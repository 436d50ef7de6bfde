"""Late rounds on sparse columns: conjugate gradients by rows, and with a factor.

Once the support hardly changes, all rounds solve nearly the same system, and it pays to prepare for
that. Column by column, a product with the Gram matrix of the support takes two passes, over vectors
as long as there are samples. With the support gathered by rows it takes one, over vectors as long
as the support. If the support is small enough, a Cholesky factor of its Gram matrix is made once,
and is the preconditioner of all later rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ..._kernels import support
from ..._validation import Index, Vector
from ...data.linear_map import Sparse
from .tuning import Tuning

Apply = Callable[[Vector], Vector]
#: on the diagonal of correlations: columns may be alike, and float32 rounds
_JITTER = 1e-3


class Support:
    """Some columns of X by rows, in float32.

    place    the position of each column of X; -1 for those that are not here
    """

    def __init__(self, samples: Sparse, ids: Index, entries: int) -> None:
        self.size, self.entries = ids.size, entries
        self.place = np.full(samples.n_rows, -1, np.int32)
        self.place[ids] = np.arange(ids.size, dtype=np.int32)
        start = np.empty(samples.n_coordinates + 1, np.int64)
        self._rows = start, np.empty(entries + 1, np.int32), np.empty(entries + 1, np.float32)
        support.gather(*samples.arrays, self.place, *self._rows)

    def covers(self, ids: Index) -> bool:
        """Whether all of these columns are here."""
        return bool(np.all(self.place[ids] >= 0))

    def times(self, bend: Vector, p: Vector, out: Vector) -> None:
        """out = A'diag(bend)A p"""
        support.times(*self._rows, bend, p, out)

    def gram(self, bend: Vector, least: float) -> NDArray[np.float32]:
        """The upper triangle of A'diag(bend)A, without rows of less bend."""
        made = np.zeros((self.size, self.size), np.float32)
        support.gram(*self._rows, bend, least, made)
        return made


class Factor:
    """A Cholesky factor of the correlations of some columns, in float32: a preconditioner.

    It serves any support among these columns: x = L^-T L^-1 u is 0 on the others once L^-1 u is
    orthogonal to their columns of L^-1. Curvatures may change a little after it was made: it is
    scaled with the squares as they are. Of a column that is new it knows the square alone.
    """

    def __init__(self, ids: Index, gram: NDArray[np.float32], b: Vector, mean: Vector) -> None:
        bends = gram.diagonal() + b
        if mean.size:
            gram -= np.outer(mean, mean).astype(np.float32)
        known = gram.diagonal() + b > _JITTER * bends  # others are constant, or in no row
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(known, 1 / np.sqrt(gram.diagonal() + b), 0.0).astype(np.float32)
        gram *= scale
        gram *= scale[:, None]
        np.fill_diagonal(gram, 1 + _JITTER)
        # the upper triangle by rows is the lower one by columns, as LAPACK reads it
        self._factor, info = lapack.spotrf(gram.T, lower=1, overwrite_a=1, clean=0)
        self.ids, self.made = ids, info == 0
        none = np.empty((ids.size, 0), np.float32)
        self._gone, self._left = np.empty(0, np.int64), (none, none[:0])

    def on(self, ids: Index, squares: Vector) -> Apply:
        """What multiplies a residual on these columns."""
        _, mine, theirs = np.intersect1d(self.ids, ids, assume_unique=True, return_indices=True)
        scale, u = 1 / np.sqrt(squares[theirs]), np.zeros(self.ids.size, np.float32)
        self._leave(np.delete(np.arange(self.ids.size), mine))
        Y, inner = self._left

        def apply(left: Vector) -> Vector:
            z, top = left / squares, scale * left[theirs]
            size = float(np.abs(top).max(initial=0.0)) or 1.0  # float32 has no small numbers
            u[:] = 0.0
            u[mine] = top / size
            x = blas.strsv(self._factor, u, lower=1)
            if Y.size:
                x -= Y @ (inner @ (x @ Y))
            x = blas.strsv(self._factor, x, lower=1, trans=1, overwrite_x=1)
            z[theirs] = size * scale * x[mine]
            return z

        return apply

    def _leave(self, gone: Index) -> None:
        """Make ready what keeps x at 0 on these: their columns Y of L^-1, and (Y'Y)^-1."""
        if np.array_equal(gone, self._gone):
            return
        Y = np.zeros((self.ids.size, gone.size), np.float32, order="F")
        Y[gone, np.arange(gone.size)] = 1.0
        Y = blas.strsm(1.0, self._factor, Y, lower=1, overwrite_b=1)
        self._gone, self._left = gone, (Y, np.linalg.inv(Y.T @ Y))


class Turn:
    """What conjugate gradients are given in one round.

    names    the columns of X by the positions of the model
    bend     the curvature of each row, or one for all
    """

    def __init__(self, rows: Support, factor: Factor | None, names: Index, bend: Vector) -> None:
        self._rows, self._factor, self._names, self._bend = rows, factor, names, bend

    def solve(
        self, S: Index, left: Vector, squares: Vector, b: Vector, mean: Vector,
        most: int, share: float, least: float,
    ) -> tuple[Vector, int, float]:  # fmt: skip
        """The step with (A'diag(bend)A - mean mean' + b) step = left; how many, and what is left.

        `squares` is the diagonal without b. It ends after `most`, when `share` of the residual is
        left, or when none of it is above `least`.
        """
        ids, bends = self._names[S], squares + b
        at, p, out = self._rows.place[ids], np.zeros(self._rows.size), np.empty(self._rows.size)
        apply: Apply = self._factor.on(ids, bends) if self._factor else lambda left: left / bends
        step, way, done = np.zeros(S.size), np.zeros(S.size), 0
        z, before = apply(left), math.inf
        size = first = float(left @ z)
        while done < most and size > share * share * first and np.abs(left).max() > least:
            way = z + (size / before) * way
            p[at] = way
            self._rows.times(self._bend, p, out)
            turned = out[at] + b * way
            if mean.size:
                turned -= float(mean @ way) * mean
            steep = float(way @ turned)
            if not steep > 0:
                break
            step += (size / steep) * way
            left = left - (size / steep) * turned
            z, before = apply(left), size
            size, done = float(left @ z), done + 1
        return step, done, math.sqrt(max(size, 0.0) / first) if first > 0 else 0.0


class Faces:
    """How conjugate gradients go from round to round: by columns, by rows, with a factor."""

    def __init__(self, samples: Sparse, tuning: Tuning, *, intercept: bool) -> None:
        self._samples, self._tuning, self._intercept = samples, tuning, intercept
        self._rows: Support | None = None
        self.factor: Factor | None = None
        self._size, self._factors = 0, 0
        #: by how much, as a logarithm, an iteration without a factor brings it down, at best
        self._rate, self._runs = 0.0, 0

    def turn(
        self, names: Index, S: Index, near: Callable[[], Index], bend: Vector, b: Vector,
        most: int, digits: float,
    ) -> Turn | None:  # fmt: skip
        """For a round on the support S; None if it is by columns.

        names, bend   as in `Turn`
        near, b       columns that may be in the support some time; b_j of all columns, or one
        most, digits  how many iterations there may be, and how much is left to do, a logarithm
        """
        ids, tuning = names[S], self._tuning
        nnz = float(self._lengths(ids).sum())
        steady = abs(S.size - self._size) <= tuning.factor_near * S.size
        self._size = S.size
        made = self.factor is None and steady and self._pays(S.size, nnz, digits)
        covered = self._rows is not None and self._rows.covers(ids)
        expected = min(most, digits / self._rate) if self._rate > 0 else 0.0
        gains = expected * nnz > tuning.by_rows * self._samples.nnz
        if not (made or covered or self.factor or gains):
            return None
        if made or not covered:
            some = np.union1d(near(), ids)
            self._rows = Support(self._samples, some, int(self._lengths(some).sum()))
            if made:
                self.factor = self._made(some, bend, b[some] if b.size > 1 else b)
        assert self._rows is not None
        return Turn(self._rows, self.factor, names, bend)

    def _made(self, ids: Index, bend: Vector, b: Vector) -> Factor | None:
        assert self._rows is not None
        self._factors += 1
        mean, n = np.empty(0), self._samples.n_coordinates
        if self._intercept:
            bends, out = np.broadcast_to(bend, n).copy(), np.empty(self._samples.n_rows)
            self._samples.narrow.products(bends, out, ids)
            mean = out[ids] / math.sqrt(float(bends.sum()))
        gram = self._rows.gram(bend, self._tuning.factor_rows * float(bend.mean()))
        found = Factor(ids, gram, b, mean)
        return found if found.made else None

    def _lengths(self, ids: Index) -> Index:
        start = self._samples.narrow.start
        return np.asarray(start[ids + 1] - start[ids])

    def _pays(self, size: int, nnz: float, digits: float) -> bool:
        """Whether a factor is predicted to cost less than the iterations that it saves."""
        tuning, n = self._tuning, self._samples.n_coordinates
        known = self._rate > 0 and self._runs >= tuning.factor_runs
        if self._factors >= tuning.factors or size > tuning.widest or not known:
            return False
        gather, product, cube, with_it = tuning.factor_costs
        cost = gather * self._samples.nnz + cube * float(size) ** 3
        cost += max(product[0], product[1] * size) * nnz * nnz / n
        return cost < 2 * nnz * (digits / self._rate - with_it)

    def learn(self, done: int, most: int, left: float) -> None:
        """From a run of conjugate gradients: its rate, or that the factor is of no use any more."""
        self._runs += 1
        if self.factor is None:
            if done and left > 0:
                self._rate = max(self._rate, -math.log(left) / done)
        elif done == most:
            self.factor = None
