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
from ..columns.support_cg import Product, SupportModel
from ..losses_at import Evaluated
from ..penalty import ScaledPenalty


class EntryModel(SupportModel):
    """M at v and the intercepts b, which begin at w and 0; W is ordered by class."""

    def __init__(
        self, packed: Packed, W: Index, w: Vector, slopes: Vector, penalty: ScaledPenalty,
        seen: Evaluated, losses: Any, floor: float, free: bool,
    ) -> None:  # fmt: skip
        ids, self.classes = np.divmod(W, losses.K)
        super().__init__(packed, ids, w, slopes, penalty)
        each, pi = losses.each, losses.rows(seen.bend)
        self._state = np.zeros((*pi.T.shape, 2))
        np.multiply(each, pi.T, out=self._state[:, :, 0])
        inverse = np.where(each > 0, 1 / np.where(each > 0, each, 1.0), 0.0)
        self._rows = np.column_stack([np.zeros_like(each), inverse, floor * each])
        self._model = kernels.Model(packed.columns, ids, self.classes, self._state, self._rows)
        self.b = np.zeros(losses.K)
        self._h, self._room = np.empty(W.size), np.empty(each.size)
        self._model.bends(self._h)
        self._bend = losses.bend_of_intercepts(pi, floor) if free else None
        self._balance = -losses.rows(seen.slope).sum(axis=0)
        self.spent = float(self.cost.sum())

    def sweep(self) -> float:
        """A step on each position; those that then are zero are left out of the next sweep."""
        self.spent += 2 * float(self.cost[self.positions].sum())
        worst, kept = self._model.sweep(
            self.positions, self.v, self._slopes, self._h, *self._penalty.parts
        )
        self.positions = self.positions[:kept].copy()
        if self._bend is not None:
            step = np.linalg.solve(self._bend, self._balance + self._left().sum(axis=1))
            self.go(self.positions[:0], step)
        return worst

    @property
    def curvatures(self) -> Vector:
        return self._h

    def diagonal(self, S: Index) -> Vector:
        return self._with(self._h[S], None if self._bend is None else np.diagonal(self._bend))

    def _with(self, on: Vector, free: Vector | None) -> Vector:
        """What is on the support, and of intercepts that are free."""
        return on if self._bend is None or free is None else np.concatenate([on, free])

    def _left(self) -> Matrix:
        """-H T: what the slopes by the predictions have changed by, by classes."""
        made = np.empty(self._state.shape[:2])
        self._model.left(made)
        return made

    def pull(self, S: Index) -> Vector:
        return self._with(self._slopes[S], self._balance) + self._dots(S, self._left())

    def _dots(self, S: Index, u: Matrix) -> Vector:
        made = self._packed.dots_with(u, self._ids[S], self.classes[S])
        return self._with(made, u.sum(axis=1))

    def bent(self, S: Index, turn: Any) -> Product:
        def times(way: Vector) -> Vector:
            T = self._times(S, way)
            self._model.bend(T, self._room)
            return self._dots(S, T)

        return times

    def go(self, S: Index, step: Vector) -> None:
        self.b = self.b + (step[S.size :] if self._bend is not None else 0.0)
        if step.any():
            self._model.along(self._times(S, step), 1.0, self._room)

    def _times(self, S: Index, step: Vector) -> Matrix:
        """What a step on S, and of intercepts that are free, adds to the predictions."""
        out = np.zeros(self._state.shape[:2])
        if self._bend is not None:
            out += step[S.size :, None]
        self._packed.add_to(self._ids[S], self.classes[S], step[: S.size], out)
        return out

    def way(self) -> Matrix:
        """What the predictions change by, by classes."""
        S = np.flatnonzero(self.v != self._w)
        return self._times(S, self._with(self.v[S] - self._w[S], self.b))

    def smooth(self) -> float:
        first = float(self._slopes @ (self.v - self._w) + self._balance @ self.b)
        return -first - 0.5 * float(np.vdot(self._left(), self.way()))

    def kept(self) -> Any:
        return self._state[:, :, 1].copy(), self._rows[:, 0].copy(), self.b

    def back(self, kept: Any) -> None:
        self._state[:, :, 1], self._rows[:, 0], self.b = kept
