"""The model of P on sparse columns: sweeps, and conjugate gradients on the support, cut at zero.

    M(v) = (1/2)|r|^2 + sum_j a_j |v_j| + (b_j/2) v_j^2,   r = t - A v

The residual r is kept. With an intercept A stands for its columns less their means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...._base.validation import Vector
from ...._kernels.data.matrix import inner
from ...._kernels.sparse import columns
from ....data.columns import Packed
from ..penalty import ScaledPenalty
from .support_rows import Turn

_NONE = np.empty(0)
#: shares of a step of conjugate gradients that are tried
SHARES = (1.0, 0.3, 0.09)


class ColumnModel:
    """M at v with its r; both are changed in place.

    packed    the columns
    ids       which of them
    squares   |A_j|^2 by position, mean and e with an intercept (see `columns.Set`)
    """

    def __init__(
        self,
        packed: Packed,
        ids: NDArray[np.int64],
        squares: Vector,
        v: Vector,
        r: Vector,
        penalty: ScaledPenalty,
        mean: Vector = _NONE,
        e: Vector = _NONE,
    ) -> None:
        self._set = columns.Set(
            packed.entries, packed.double, packed.start, ids, squares, mean, e, r.size
        )
        self.v, self.r, self._e = v, r, e
        self._penalty, self._squares = penalty, squares
        self._q = np.empty(r.size)
        self.positions = np.arange(ids.size)
        self.cost = (packed.start[ids + 1] - packed.start[ids]).astype(np.float64)
        self.spent = 0.0
        self._packed, self._ids, self.mean = packed, ids, mean
        #: iterations of the last conjugate gradients, and the part of the residual that they left
        self.done, self.left = 0, 1.0

    def sweep(self) -> float:
        """A step on each position; those that then are zero are left out of the next sweep."""
        parts, sigma = self._penalty.parts, 0.0
        self.spent += float(self.cost[self.positions].sum())
        worst, kept, sigma = self._set.sweep(self.positions, self.v, self.r, sigma, *parts)
        self.positions = self.positions[:kept].copy()
        if self._e.size:
            self.r -= sigma * self._e
        return worst

    @property
    def support(self) -> NDArray[np.int64]:
        """The positions where M is smooth."""
        S = self.positions[self._penalty.on(self.positions).free(self.v[self.positions])]
        return S[self._squares[S] > 0]

    def face(
        self, most: int, share: float, least: float = 0.0, turn: Turn | None = None
    ) -> tuple[int, int]:
        """Conjugate gradients on the support: how many it has, and how many of it were cut.

        They end after `most`, at `share` of the residual, or when none of it is above `least`.
        """
        S = self.support
        if not S.size:
            return 0, 0
        on, v = self._penalty.on(S), self.v[S]
        before, r = self._value(on, v), self.r.copy()
        low, high = on.room(v)
        if turn is None:
            step, work = np.empty(S.size), np.empty((3, S.size))
            self.done, self.left = self._set.gradients(
                S, self.v, self.r, self._q, step, work, *self._penalty.parts, most, share, least
            )
            there = v + step  # r is there already
        else:
            mean = self.mean[S] if self.mean.size else _NONE
            b, there, room = np.broadcast_to(on.b, v.shape).copy(), v, (low - v, high - v)
            step, self.done, self.left = turn.solve(
                S, self._pull(S, on, v), self._squares[S], b, mean, room, most, share, least
            )
        self.spent += 2 * self.done * float(self.cost[S].sum())
        for t in SHARES:
            new = np.clip(v + t * step, low, high)
            self._arrive(S, new, *((there, None) if t == 1 else (v, r)))
            if self._value(on, new) < before:
                self.v[S] = new
                return S.size, int(np.count_nonzero((new == low) | (new == high)))
        self._arrive(S, v, v, r)
        return S.size, S.size

    def _pull(self, S: NDArray[np.int64], on: ScaledPenalty, v: Vector) -> Vector:
        """Minus the gradient of M on the support."""
        out, ids = np.empty(self._packed.start.size - 1), self._ids[S]
        self._packed.products(self.r, out, ids)
        return np.asarray(out[ids] - on.a * np.sign(v) - on.b * v)

    def _arrive(self, S: NDArray[np.int64], new: Vector, at: Vector, r: Vector | None) -> None:
        """r of `new`: from r of `at`, which is as it is now unless it is given."""
        if r is not None:
            self.r[:] = r
        back = np.zeros(self.v.size)
        back[S] = at - new
        if back.any():
            self._set.times(back, self.r)
            if self._e.size:
                self.r -= inner(self._e, self.r) * self._e

    def _value(self, on: ScaledPenalty, v: Vector) -> float:
        return 0.5 * inner(self.r, self.r) + on.value(v)
