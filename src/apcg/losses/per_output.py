"""A loss of one prediction for each of K outputs: the sum over them, labels (n, K)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Matrix, Vector
from .base import COLUMNS, LOGISTIC, BaseLoss, ScalarLoss


class Columns(BaseLoss):
    """sum_k phi(z_k, y_k): a loss of one prediction for each of K outputs, labels (n, K).

    Examples
    --------
    >>> from apcg.losses import Columns, Squared
    >>> loss = Columns(Squared())
    >>> loss.value([[1.0, 2.0]], [[0.0, 0.0]])
    array([2.5])
    """

    by_output = True

    def __init__(self, loss: ScalarLoss) -> None:
        if not isinstance(loss, ScalarLoss):
            raise TypeError(f"Columns takes a loss of one prediction, an object, got {loss!r}.")
        self.loss: Any = loss
        self.name, self.margin, self.gamma, self.eta = loss.name, loss.margin, loss.gamma, loss.eta
        self.domain = f"{loss.domain}, each output"
        self.kind = {"interval": COLUMNS, "logistic": LOGISTIC}.get(getattr(loss, "kernel", ""))
        self.compiled = self.kind is not None

    def __repr__(self) -> str:
        return repr(self.loss)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.loss == other.loss

    def __hash__(self) -> int:
        return hash(("columns", self.loss))

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        labels = np.array(check.to_array(y, "y"), dtype=np.float64)
        if labels.ndim != 2 or labels.shape[0] != n or (K is not None and labels.shape[1] != K):
            wanted = f"({n}, {'K' if K is None else K})"
            raise ValueError(f"y must have the shape {wanted}, got {labels.shape}.")
        check.check_finite(labels.reshape(-1), "y")
        if self.margin and not np.all(np.abs(labels) == 1.0):
            raise ValueError(f"loss {self.name!r} takes the labels -1 and 1 only in an (n, K) y.")
        return np.ascontiguousarray(labels), labels.shape[1]

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        if self.loss.compiled and not (intercept and self.margin):
            return  # nothing to look at
        for k, y_k in enumerate(_columns(y)):
            try:
                self.loss.check_use(y_k, s, 1, intercept)
            except ValueError as error:
                raise ValueError(f"column {k} of y: {error}") from error

    def value(self, z: Any, y: Any) -> Vector:
        return np.asarray(self.loss.value(z, y).sum(axis=-1))

    def derivative(self, z: Any, y: Any) -> Matrix:
        return np.asarray(self.loss.derivative(z, y))

    def conjugate(self, u: Any, y: Any) -> Vector:
        return np.asarray(self.loss.conjugate(u, y).sum(axis=-1))

    def prox_conjugate(self, v: Any, step: Any, y: Any) -> Matrix:
        """argmin_u phi*(u) + |u - v_i|^2/(2 step_i) for each row"""
        step = np.broadcast_to(np.asarray(step, float), np.shape(v)[:1])[:, None]
        return np.asarray(self.loss.prox_conjugate(v, step, y))

    def total(self, z: Matrix, y: Any, s: Vector) -> float:
        return float(self.loss.total(z.reshape(-1), y.reshape(-1), _entries(s, z)))

    def duals(self, z: Matrix, y: Any, s: Vector) -> Matrix:
        made = self.loss.duals(z.reshape(-1), y.reshape(-1), _entries(s, z))
        return np.asarray(made.reshape(z.shape))

    def conjugate_total(self, x: Matrix, y: Any, s: Vector) -> float:
        flat, each = x.reshape(-1), _entries(s, x)
        if not self.loss.compiled:
            return float(self.loss.conjugate_total(flat, y.reshape(-1), each))
        total = float(self.loss.arrays.total_conjugate(flat, each))
        return total if self.margin else total - float(np.vdot(y, x))

    def clip(self, x: Matrix, y: Any, s: Vector) -> Matrix:
        return np.asarray(self.loss.clip(x, y, s[:, None]))

    def best_shift(self, z: Matrix, y: Any, s: Vector, guess: Any) -> Vector:
        each = zip(_columns(z), _columns(y), np.broadcast_to(guess, z.shape[1]), strict=True)
        return np.array([self.loss.best_shift(z_k, y_k, s, float(b)) for z_k, y_k, b in each])

    def balance(self, x: Matrix, y: Any, s: Vector, z: Matrix | None = None) -> Matrix:
        at = [None] * x.shape[1] if z is None else _columns(z)
        each = zip(_columns(x), _columns(y), at, strict=True)
        made = [self.loss.balance(x_k, y_k, s, z_k) for x_k, y_k, z_k in each]
        return np.ascontiguousarray(np.column_stack(made))


def _columns(z: Matrix) -> list[Vector]:
    return list(np.ascontiguousarray(z.T))


def _entries(s: Vector, z: Matrix) -> Vector:
    """The weight of each entry of z."""
    return s if s.size == 1 else np.repeat(s, z.shape[1])


def with_labels(loss: BaseLoss, y: Any, n: int) -> tuple[BaseLoss, Any, int]:
    """(loss, labels, K): a loss of one prediction with labels in columns is the sum over them."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple):
        shape = (len(y), len(y[0]))
    columns = shape[1] if shape is not None and len(shape) == 2 else 0
    if isinstance(loss, ScalarLoss) and columns > 1:
        loss = Columns(loss)
    elif isinstance(loss, Columns) and columns == 1:
        loss, y = loss.loss, np.reshape(y, -1)
    return loss, *loss.read_labels(y, n)
