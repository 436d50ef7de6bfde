"""The model of P on sparse columns: sweeps over entries, and conjugate gradients on the support.

`_kernels/sparse/softmax_columns.pyx` has the mathematics. Intercepts follow each sweep, by a
Newton step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ...._kernels.sparse import softmax_columns as kernels
from ....data.columns import Packed
from ..columns.support_cg import SHARES
from ..losses_at import Seen
from ..penalty import ScaledPenalty


class EntryModel:
    """M at v and the intercepts b, which begin at w and 0; W is ordered by class."""

    def __init__(
        self, packed: Packed, W: Index, w: Vector, seen: Seen, losses: Any, floor: float,
        penalty: ScaledPenalty, free: bool,
    ) -> None:  # fmt: skip
        self._packed, self._penalty, self._w = packed, penalty, w
        self.ids, self.classes = np.divmod(W, losses.K)
        each, pi = losses.each, losses.rows(seen.bend)
        self._state = np.empty((*pi.T.shape, 2))
        np.multiply(each, pi.T, out=self._state[:, :, 0])
        self._r: Matrix = np.ascontiguousarray(-losses.rows(seen.slope).T)
        self._state[:, :, 1] = self._r
        inverse = np.where(each > 0, 1 / np.where(each > 0, each, 1.0), 0.0)
        self._rows = np.column_stack([np.zeros_like(each), inverse, floor * each])
        self._model = kernels.Model(
            packed.entries, packed.double, packed.start, self.ids, self.classes, self._state,
            self._rows,
        )  # fmt: skip
        self.v, self.b = w.copy(), np.zeros(losses.K)
        self._h, self._room = np.empty(W.size), np.empty(each.size)
        self._model.bends(self._h)
        self._bend = losses.bend_of_intercepts(pi, floor) if free else None
        self.positions = np.arange(W.size)
        self.cost = (packed.start[self.ids + 1] - packed.start[self.ids]).astype(np.float64)
        self.spent = float(self.cost.sum())

    def sweep(self) -> float:
        """A step on each position; those that then are zero are left out of the next sweep."""
        self.spent += 2 * float(self.cost[self.positions].sum())
        worst, kept = self._model.sweep(self.positions, self.v, self._h, *self._penalty.parts)
        self.positions = self.positions[:kept].copy()
        if self._bend is not None:
            left = np.empty_like(self._r)
            self._model.left(left)
            self._go(self.positions[:0], np.empty(0), np.linalg.solve(self._bend, left.sum(axis=1)))
        return worst

    def face(self, most: int, share: float) -> tuple[int, int]:
        """Conjugate gradients on the support: how many it has, and how many of it were cut."""
        on = self._penalty.on(self.positions)
        S = self.positions[on.free(self.v[self.positions]) & (self._h[self.positions] > 0)]
        if not S.size:
            return 0, 0
        on, v, b = self._penalty.on(S), self.v[S], self.b
        before, kept = self._value(), (self._state[:, :, 1].copy(), self._rows[:, 0].copy())
        ones = np.empty(0) if self._bend is None else np.diagonal(self._bend).copy()
        step, T = np.zeros(S.size + b.size), np.empty_like(self._r)
        done = self._model.gradients(
            S, self.v, self._h, ones, *self._penalty.parts, T, step, np.empty((3, step.size)),
            self._room, most, share,
        )  # fmt: skip
        self.spent += 2 * (done + 1) * float(self.cost[S].sum())
        low, high = on.room(v)
        for t in SHARES:
            far = t * step
            new = np.clip(v + far[: S.size], low, high)
            if t == 1:  # it is there, but for what is cut
                self.b = b + far[S.size :]
                self._go(S, new - v - far[: S.size], np.zeros(b.size))
            else:
                self._state[:, :, 1], self._rows[:, 0] = kept
                self.b = b
                self._go(S, new - v, far[S.size :])
            self.v[S] = new
            if self._value() < before:
                return S.size, int(np.count_nonzero((new == low) | (new == high)))
        self._state[:, :, 1], self._rows[:, 0] = kept
        self.v[S], self.b = v, b
        return S.size, S.size

    def _go(self, S: Index, by: Vector, b: Vector) -> None:
        """What a step by so much on S, and by b, makes of the state."""
        self.b = self.b + b
        if by.any() or b.any():
            self._model.along(self._times(S, by, b), 1.0, self._room)

    def _times(self, S: Index, by: Vector, b: Vector) -> Matrix:
        packed, out = self._packed, np.empty(self._r.shape)
        out[:] = b[:, None]
        ids, classes = self.ids[S], self.classes[S]
        kernels.add(packed.entries, packed.double, packed.start, ids, classes, by, out)
        return out

    def way(self) -> Matrix:
        """What the predictions change by, by classes."""
        S = np.flatnonzero(self.v != self._w)
        return self._times(S, self.v[S] - self._w[S], self.b)

    def _value(self) -> float:
        """M: the smooth part is minus the mean of the first and the last slopes, times the way."""
        slopes = np.empty_like(self._r)
        self._model.left(slopes)
        slopes += self._r
        return -0.5 * float(np.vdot(slopes, self.way())) + self._penalty.value(self.v)
