"""Models of P on sparse columns: sweeps, and conjugate gradients on the support, cut at zero.

    M(v) = (1/2)(v - w)'H (v - w) - c'(v - w) + sum_j a_j |v_j| + (b_j/2) v_j^2

c are minus the slopes at w, where it begins. They come from outside, so that rounding of H to
float32 changes how good a step is, and not what is at rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._base.validation import Index, Vector
from ....data.columns import Packed
from ...linalg import conjugate_gradients
from ..penalty import ScaledPenalty
from .support_rows import Turn

_NONE = np.empty(0)
#: shares of a step of conjugate gradients that are tried
SHARES = (1.0, 0.3, 0.09)
#: the residual has fallen by a digit
_DIGIT = 0.1
#: the least and the greatest step
Room = tuple[Vector, Vector]
#: with a matrix
Product = Callable[[Vector], Vector]


def solve(
    times: Product, diagonal: Vector, left: Vector, room: Room,
    most: int, share: float, least: float, every: tuple[int, int] | None = None,
) -> tuple[Vector, int, float]:  # fmt: skip
    """The step with H step = left by conjugate gradients; how many, and the part that is left.

    They end after `most`, when `share` of the residual is left, or when none of it is above
    `least`. With `every` they also end when the step leaves its room: the support is then not the
    right one, and what is left to do on it would be wasted. That is looked at after so many of them
    if the residual fell by a digit, and after so many in any case. `left` becomes the residual.
    """
    step, done, seen = np.zeros(left.size), 0, 0
    first = last = size = float(left @ (left / diagonal))
    if size > 0 and np.abs(left).max() > least:
        for length, way, _, size in conjugate_gradients.steps(times, lambda r: r / diagonal, left):
            step += length * way
            done += 1
            if done == most or size <= share * share * first or np.abs(left).max() <= least:
                break
            if every is None or done - seen < every[0]:
                continue
            if size <= _DIGIT**2 * last or done - seen >= every[1]:
                if ((step < room[0]) | (step > room[1])).any():
                    break
                seen, last = done, size
    return step, done, math.sqrt(max(size, 0.0) / first) if first > 0 else 0.0


def _first_edge(step: Vector, least: Vector, most: Vector) -> float:
    """The share of a step at which the first one comes to the end of its room."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(step < 0, least, most) / step
    return float(np.min(share, where=step != 0, initial=1.0))


class SupportModel:
    """What models on sparse columns share: a model M at v, with the sums that its slopes need.

    positions  those that a sweep visits
    cost       the entries of the column of each
    """

    def __init__(
        self, packed: Packed, ids: Index, w: Vector, slopes: Vector, penalty: ScaledPenalty
    ) -> None:
        """On the columns `ids`, from w, where minus the slopes of the smooth part are `slopes`."""
        self._packed, self._ids, self._penalty = packed, ids, penalty
        self._w, self.v, self._slopes = w, w.copy(), slopes
        self.positions = np.arange(ids.size)
        self.cost = (packed.start[ids + 1] - packed.start[ids]).astype(np.float64)
        #: entries read so far
        self.spent = 0.0
        #: iterations of the last conjugate gradients, and the part of the residual that they left
        self.done, self.left = 0, 1.0

    @property
    def curvatures(self) -> Vector:
        """The second derivative of the smooth part, for each position."""
        raise NotImplementedError

    def diagonal(self, S: Index) -> Vector:
        """Those on S, and those of intercepts that are free."""
        return self.curvatures[S]

    def pull(self, S: Index) -> Vector:
        """Minus the gradient of the smooth part there."""
        raise NotImplementedError

    def bent(self, S: Index, turn: Turn | None) -> Product:
        """What multiplies with its second derivatives there; by rows if there is a `turn`."""
        raise NotImplementedError

    def go(self, S: Index, step: Vector) -> None:
        """v_S, and intercepts, change by so much."""
        raise NotImplementedError

    def smooth(self) -> float:
        """The smooth part of M at v."""
        raise NotImplementedError

    def kept(self) -> Any:
        """Copies of the sums at v."""
        raise NotImplementedError

    def back(self, kept: Any) -> None:
        """To where these were made; v is there already."""
        raise NotImplementedError

    @property
    def support(self) -> Index:
        """The positions where M is smooth."""
        S = self.positions[self._penalty.on(self.positions).free(self.v[self.positions])]
        return S[self.curvatures[S] > 0]

    def face(
        self, most: int, share: float, least: float = 0.0, turn: Turn | None = None
    ) -> tuple[int, int]:
        """Conjugate gradients on the support: how many it has, and how many of it were cut.

        They end as in `solve`. Of columns that are nearly alike one may go far and be cut, and M is
        then higher: a step that is no good by any share ends where the first one is cut.
        """
        S = self.support
        size = S.size
        if not size:
            return 0, 0
        on, v, kept = self._penalty.on(S), self.v[S], self.kept()
        before, (low, high) = self.smooth() + on.value(v), on.room(v)
        left, diagonal = self.pull(S), self.diagonal(S)
        left[:size] -= on.a * np.sign(v) + on.b * v
        diagonal[:size] += on.b
        product = self.bent(S, turn)

        def times(way: Vector) -> Vector:
            made = product(way)
            made[:size] += on.b * way[:size]
            return made

        every = turn.every if turn else None
        step, self.done, self.left = solve(
            times, diagonal, left, (low - v, high - v), most, share, least, every
        )
        self.spent += 2 * (self.done + 1) * float(self.cost[S].sum())
        for t in (*SHARES, None):
            t = _first_edge(step[:size], low - v, high - v) if t is None else t
            far, new = t * step, np.clip(v + t * step[:size], low, high)
            far[:size] = new - v
            self.go(S, far)
            self.v[S] = new
            if self.smooth() + on.value(new) < before:
                return size, int(np.count_nonzero((new == low) | (new == high)))
            self.v[S] = v
            self.back(kept)
        return size, size


class ColumnModel(SupportModel):
    """M with H = X'D X; u = D X (v - w) is kept. With an intercept X is less its means.

    bend     D: for each row, or one number
    squares  the diagonal of H by position
    mean     the means of the columns, weighted by D; empty without an intercept
    """

    def __init__(
        self, packed: Packed, ids: Index, w: Vector, slopes: Vector, penalty: ScaledPenalty,
        bend: Vector, rows: int, bends: tuple[Vector, Vector], *, centred: bool,
    ) -> None:  # fmt: skip
        """`bends` are sum_i D_i x_ij^2 and sum_i D_i x_ij of these columns."""
        super().__init__(packed, ids, w, slopes, penalty)
        self._squares, sums = bends
        self._bend, self._mean, self._sigma = bend, _NONE, 0.0
        self._total = float(bend.sum()) if bend.size > 1 else rows * float(bend[0])
        if centred:
            self._mean = sums / self._total
            left = self._squares - self._mean * sums
            # 0 for a column that is constant up to rounding
            self._squares = np.where(left > 1e-7 * self._squares, left, 0.0)
        self._state = np.zeros((rows, 1 if bend.size == 1 else 2))
        if bend.size > 1:
            self._state[:, 1] = bend

    @property
    def u(self) -> Vector:
        """D X (v - w)"""
        return np.ascontiguousarray(self._state[:, 0])

    def sweep(self) -> float:
        """A step on each position; those that then are zero are left out of the next sweep."""
        self.spent += float(self.cost[self.positions].sum())
        bend = float(self._bend[0]) if self._bend.size == 1 else 0.0
        worst, kept, self._sigma = self._packed.columns.sweep(
            self._ids, self._squares, self._slopes, self._mean, self._total, bend, self._sigma,
            self.positions, self.v, self._state.reshape(-1), *self._penalty.parts,
        )  # fmt: skip
        self.positions = self.positions[:kept].copy()
        return worst

    @property
    def curvatures(self) -> Vector:
        return self._squares

    def pull(self, S: Index) -> Vector:
        left = self._slopes[S] - self._packed.dots(self.u, self._ids[S])
        return left + self._total * self._sigma * self._mean[S] if self._mean.size else left

    def bent(self, S: Index, turn: Turn | None) -> Product:
        ids = self._ids[S]

        def by_columns(way: Vector) -> Vector:
            q = np.zeros(len(self._state))
            self._packed.add(ids, way, q)
            q *= self._bend
            return self._packed.dots(q, ids)

        product = by_columns if turn is None else turn.gram(S)
        if not self._mean.size:
            return product
        mean = self._mean[S]
        return lambda way: product(way) - (self._total * (mean @ way)) * mean

    def go(self, S: Index, step: Vector) -> None:
        far = np.zeros(len(self._state))
        self._packed.add(self._ids[S], step, far)
        self._state[:, 0] += self._bend * far
        if self._mean.size:
            self._sigma += float(self._mean[S] @ step)

    def way(self) -> tuple[Vector, float]:
        """What the predictions change by, and the intercept's part of that."""
        step = self.v - self._w
        if self._bend.size == 1:
            way = self._state[:, 0] / self._bend[0]
        else:
            way = np.zeros(len(self._state))
            self._packed.add(self._ids, step, way)
        if not self._mean.size:
            return way, 0.0
        shift = -float(self._mean @ step)
        return way + shift, shift

    def smooth(self) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.square(self._state[:, 0]) / self._bend
        square = float(np.sum(squares, where=self._bend > 0)) - self._total * self._sigma**2
        return 0.5 * square - float(self._slopes @ (self.v - self._w))

    def kept(self) -> tuple[Vector, float]:
        return self._state[:, 0].copy(), self._sigma

    def back(self, kept: tuple[Vector, float]) -> None:
        self._state[:, 0], self._sigma = kept
