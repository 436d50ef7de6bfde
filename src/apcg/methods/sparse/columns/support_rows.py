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

from ...._base.validation import Index, Vector
from ...._kernels.sparse import support_rows
from ....data import Sparse, views
from ..tuning import SetTuning

Apply = Callable[[Vector], Vector]
#: the least and the greatest step
Room = tuple[Vector, Vector]
Near = Callable[[bool], Index]
#: on the diagonal of correlations: columns may be alike, and float32 rounds
_JITTER = 1e-3
#: the most positions that are numbers of 16 bits
_NEAR = 1 << 16
#: what conjugate gradients cut is looked at every so many if they brought the residual down by a
#: digit, and in any case. rcv1, squared, /1000 with 10, 15, 20 and 30 in any case: 334, 295, 267
#: and 300 ms; if they do not end there, 600
_CUT_EVERY = (10, 20)
#: a factor is made for a support whose size changed by no more than this part
_NEAR_SIZE = 0.03
#: what an iteration that it saves is worth, in entries of the support: squared loss, others, whose
#: next models profit too. Iterations by rows take half the time of those by columns. Of the time
#: without a factor: rcv1, squared, /100 1.1, logistic, /1000 0.94, and text of 3,000 rows,
#: logistic, /30, 2.1. These pay if it is 1, 2.6 and 4.8
_WORTH = (0.7, 2.7)
#: rows with less than this part of the mean curvature are left out of it: on rcv1, logistic /1000
#: half of all rows, with a hundredth of all curvature
_ROWS = 0.1
#: the residual has fallen by a digit
_DIGIT = 0.1


class Support:
    """Some columns of X by rows, in float32, as parts of the largest |X_ij|.

    Columns are numbered by falling frequency: what is read most is close together. (For a Gram
    matrix they are in order, and so are the entries of a row.) Rows are in the order of their
    lengths, so that the ends of loops over them can be predicted: by that a product takes 0.7 of
    the time.

    place    the position of each column of X; -1 for those that are not here
    ids      the column at each position
    largest  that
    """

    def __init__(self, samples: Sparse, ids: Index, *, in_order: bool = False) -> None:
        columns = samples.view(views.columns, np.float32)
        lengths = columns.start[ids + 1] - columns.start[ids]
        ids = ids if in_order else ids[np.argsort(-lengths, kind="stable")]
        self.ids, self.size, entries = ids, ids.size, int(lengths.sum())
        self.place = np.full(samples.shape[1], -1, np.int32)
        self.place[ids] = np.arange(ids.size, dtype=np.int32)
        self.largest = float(columns.most.max(initial=0.0)) or 1.0
        n, room = samples.shape[0], entries + 1
        of_rows, start = np.empty(n, np.int64), np.empty(n + 1, np.int64)
        arrays = samples.view(views.arrays)
        support_rows.lengths(*arrays[1:], self.place, of_rows)
        # numbers of 16 bits are sorted in no time
        self._order = np.argsort(np.minimum(of_rows, 65535).astype(np.uint16), kind="stable")
        at = np.empty(room, np.uint16) if ids.size < _NEAR else np.empty(room, np.int32)
        values, scale = np.empty(room, np.float32), 1 / self.largest
        support_rows.gather(*arrays, self.place, scale, self._order, start, at, values)
        self.rows = support_rows.Rows(start, at, values)

    def covers(self, ids: Index) -> bool:
        """Whether all of these columns are here."""
        return bool(np.all(self.place[ids] >= 0))

    def bent(self, bend: Vector) -> tuple[NDArray[np.float32], float]:
        """Curvatures by the order of the rows, as parts of the largest, and that."""
        most = float(bend.max()) or 1.0
        ordered = bend[self._order] if bend.size > 1 else bend
        return (ordered / most).astype(np.float32), most

    def gram(self, bend: Vector, share: float) -> tuple[NDArray[np.float32], float]:
        """The upper triangle of A'diag(bend)A as parts of the largest bend, and that.

        Rows of less than a share of the mean are left out.
        """
        made = np.zeros((self.size, self.size), np.float32)
        short, most = self.bent(bend)
        self.rows.gram(short, share * float(short.mean()), made)
        return made, most


class Preconditioner:
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
    every    how many of them there are between looks at what they cut: if the residual fell by a
             digit, and in any case
    """

    def __init__(
        self,
        rows: Support,
        factor: Preconditioner | None,
        names: Index,
        bend: Vector,
        every: tuple[int, int],
    ) -> None:
        self._rows, self._factor, self._names, self._bend = rows, factor, names, bend
        self._every = every

    def solve(
        self, S: Index, left: Vector, squares: Vector, b: Vector, mean: Vector, room: Room,
        most: int, share: float, least: float,
    ) -> tuple[Vector, int, float]:  # fmt: skip
        """The step with (A'diag(bend)A - mean mean' + b) step = left; how many, and what is left.

        `squares` is the diagonal without b. It ends after `most`, when `share` of the residual is
        left, when none of it is above `least`, or when the step leaves its room: the support is
        then not the right one, and what is left to do on it would be wasted.
        """
        rows, ids, bends = self._rows, self._names[S], squares + b
        at, (bend, largest) = rows.place[ids].astype(np.int64), rows.bent(self._bend)
        scale = math.sqrt(largest) * rows.largest
        p, out = np.zeros(rows.size, np.float32), np.empty(rows.size, np.float32)
        apply: Apply = self._factor.on(ids, bends) if self._factor else lambda left: left / bends
        state, done = np.zeros((4, S.size)), 0
        _, step, remains, _ = state
        remains[:] = left
        z, before, worst = apply(left), math.inf, float(np.abs(left).max())
        size = first = last = float(left @ z)
        (often, rarely), seen = self._every, 0
        while done < most and size > share * share * first and worst > least:
            turn, before = size / before, size
            worst = rows.rows.step(bend, at, scale, b, mean, z, size, turn, state, p, out)
            if worst < 0:
                break
            z, done = apply(remains), done + 1
            size = float(remains @ z)
            if done - seen >= often and (size <= _DIGIT**2 * last or done - seen >= rarely):
                if ((step < room[0]) | (step > room[1])).any():
                    break
                seen, last = done, size
        return step, done, math.sqrt(max(size, 0.0) / first) if first > 0 else 0.0


class Faces:
    """How conjugate gradients go from round to round: by columns, by rows, with a factor.

    exact   whether the model is P itself, so that one system is the last
    ready   whether the last ones were by rows
    settled whether the support has hardly changed since the last ones
    """

    def __init__(self, samples: Sparse, tuning: SetTuning, *, exact: bool, intercept: bool) -> None:
        self._samples, self._tuning, self._intercept = samples, tuning, intercept
        self._worth = _WORTH[not exact]
        self._rows: Support | None = None
        self.factor: Preconditioner | None = None
        self._size, self._factors = 0, 0
        self.begin()
        #: by how much, as a logarithm, an iteration without a factor brings it down, at best
        self._rate, self._runs = 0.0, 0

    def turn(
        self, names: Index, S: Index, near: Near, bend: Vector, b: Vector, digits: float
    ) -> Turn | None:  # fmt: skip
        """For a round on the support S; None if it is by columns.

        names, bend   as in `Turn`
        near, b       columns that may be in the support some time, few of them or not; b_j of all
                      columns, or one
        digits        how much is left to do, a logarithm
        """
        ids, tuning = names[S], self._tuning
        nnz = float(self._lengths(ids).sum())
        steady = abs(S.size - self._size) <= _NEAR_SIZE * S.size
        self.settled = abs(S.size - self._size) <= tuning.few_cut * S.size
        self._size = S.size
        made = self.factor is None and steady and self._pays(S.size, nnz, digits)
        covered = self._rows is not None and self._rows.covers(ids)
        few = self._cut <= tuning.few_cut * S.size
        expected = digits / self._rate if few and self._rate > 0 else 0.0
        gains = expected * nnz > tuning.by_rows * self._samples.nnz
        self.ready = bool(made or self.factor or gains or (few and covered))
        if not self.ready:
            return None
        if made or not covered:
            some = np.union1d(near(made), ids)
            self._rows = Support(self._samples, some, in_order=made)
            if made:
                self.factor = self._made(self._rows, bend, b)
        assert self._rows is not None
        return Turn(self._rows, self.factor, names, bend, _CUT_EVERY)

    def begin(self) -> None:
        """With another alpha: the support is not known."""
        self._cut, self.ready, self.settled = math.inf, False, False

    def _made(self, rows: Support, bend: Vector, b: Vector) -> Preconditioner | None:
        self._factors += 1
        mean, n, ids = np.empty(0), self._samples.shape[0], rows.ids
        gram, most = rows.gram(bend, _ROWS)
        if self._intercept:
            bends, out = np.broadcast_to(bend, n).copy(), np.empty(self._samples.shape[1])
            self._samples.view(views.columns, np.float32).products(bends, out, ids)
            mean = out[ids] / (rows.largest * math.sqrt(float(bends.sum()) * most))
        b = (b[ids] if b.size > 1 else b) / (rows.largest**2 * most)
        found = Preconditioner(ids, gram, b, mean)
        return found if found.made else None

    def _lengths(self, ids: Index) -> Index:
        start = self._samples.view(views.columns, np.float32).start
        return np.asarray(start[ids + 1] - start[ids])

    def _pays(self, size: int, nnz: float, digits: float) -> bool:
        """Whether a factor is predicted to cost less than the iterations that it saves."""
        tuning, n = self._tuning, self._samples.shape[0]
        known = self._rate > 0 and self._runs >= tuning.factor_runs
        if self._factors >= tuning.factors or size > tuning.widest or not known:
            return False
        gather, product, cube, with_it, square = tuning.factor_costs
        cost = gather * self._samples.nnz + cube * float(size) ** 3
        cost += with_it * square * size * size
        cost += max(product[0], product[1] * size) * nnz * nnz / n
        return cost < self._worth * nnz * (digits / self._rate - with_it)

    def learn(self, done: int, most: int, left: float, cut: int) -> None:
        """From a run of conjugate gradients: its rate, or that the factor is of no use any more.

        It did so many of `most`, left a part of the residual and cut so many columns.
        """
        self._cut = cut
        self._runs += 1
        if self.factor is None:
            if done and left > 0:
                self._rate = max(self._rate, -math.log(left) / done)
        elif done == most:
            self.factor = None
