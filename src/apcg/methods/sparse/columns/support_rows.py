"""Late rounds on sparse columns: conjugate gradients by rows.

Once the support hardly changes, all rounds solve nearly the same system, and it pays to prepare for
that. Column by column, a product with the Gram matrix of the support takes two passes, over vectors
as long as there are samples. With the support gathered by rows it takes one, over vectors as long
as the support.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...._base.validation import Index, Vector
from ...._kernels.sparse import support_rows
from ....data import Sparse, views
from ....data.columns import Packed
from ..tuning import SetTuning

Near = Callable[[Index], tuple[Index, Packed]]
#: the most positions that are numbers of 16 bits
_NEAR = 1 << 16
#: what conjugate gradients cut is looked at every so many if they brought the residual down by a
#: digit, and in any case. rcv1, squared, /1000 with 10, 15, 20 and 30 in any case: 334, 295, 267
#: and 300 ms; if they do not end there, 600
_CUT_EVERY = (10, 20)


class Support:
    """Some columns of X by rows, in float32, as parts of the largest |X_ij|.

    Columns are numbered by falling frequency: what is read most is close together. Rows are in the
    order of their lengths, so that the ends of loops over them can be predicted: by that a product
    takes 0.7 of the time.

    place    the position of each column of X; -1 for those that are not here
    ids      the column at each position
    largest  that
    """

    def __init__(self, samples: Sparse, ids: Index, columns: Packed) -> None:
        lengths = columns.start[ids + 1] - columns.start[ids]
        ids = ids[np.argsort(-lengths, kind="stable")]
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


class Turn:
    """What conjugate gradients are given in one round.

    names    the columns of X by the positions of the model
    bend     the curvature of each row, or one for all
    every    how many of them there are between looks at what they cut: if the residual fell by a
             digit, and in any case
    """

    def __init__(self, rows: Support, names: Index, bend: Vector, every: tuple[int, int]) -> None:
        self._rows, self._names, self._bend, self.every = rows, names, bend, every

    def gram(self, S: Index) -> Callable[[Vector], Vector]:
        """What multiplies with A'diag(bend)A, for the columns A of the positions S."""
        rows, at = self._rows, self._rows.place[self._names[S]].astype(np.int64)
        bend, largest = rows.bent(self._bend)
        scale = math.sqrt(largest) * rows.largest
        p, out = np.zeros(rows.size, np.float32), np.empty(rows.size, np.float32)

        def times(way: Vector) -> Vector:
            made = np.empty(S.size)
            rows.rows.product(bend, at, scale, way, made, p, out)
            return made

        return times


class Faces:
    """How conjugate gradients go from round to round: by columns, or by rows.

    ready   whether the last ones were by rows
    settled whether the support has hardly changed since the last ones
    """

    def __init__(self, samples: Sparse, tuning: SetTuning) -> None:
        self._samples, self._tuning = samples, tuning
        self._rows: Support | None = None
        self._size = 0
        self.begin()
        #: by how much, as a logarithm, an iteration brings the residual down, at best
        self._rate = 0.0

    def turn(
        self, names: Index, S: Index, nnz: float, near: Near, bend: Vector, digits: float
    ) -> Turn | None:
        """For a round on the support S; None if it is by columns.

        names, bend   as in `Turn`
        nnz           the entries of the support
        near          adds columns that may be in the support some time, and has them all
        digits        how much is left to do, a logarithm
        """
        ids, tuning = names[S], self._tuning
        self.settled = abs(S.size - self._size) <= tuning.few_cut * S.size
        self._size = S.size
        covered = self._rows is not None and self._rows.covers(ids)
        few = self._cut <= tuning.few_cut * S.size
        expected = digits / self._rate if few and self._rate > 0 else 0.0
        gains = expected * nnz > tuning.by_rows * self._samples.nnz
        self.ready = bool(gains or (few and covered))
        if not self.ready:
            return None
        if self._rows is None or not covered:
            self._rows = Support(self._samples, *near(ids))
        return Turn(self._rows, names, bend, _CUT_EVERY)

    def begin(self) -> None:
        """With another alpha: the support is not known."""
        self._cut, self.ready, self.settled = math.inf, False, False

    def learn(self, done: int, left: float, cut: int) -> None:
        """From a run of conjugate gradients: how many, what they left, and what they cut."""
        self._cut = cut
        if done and left > 0:
            self._rate = max(self._rate, -math.log(left) / done)
