"""Losses phi of K predictions at once: over classes, or a sum over outputs.

    Multinomial       log sum_k exp(z_k) - z_y                        the softmax
    MulticlassHinge   max_k (z_k + [k != y]) - z_y                    Crammer and Singer
                      and its smoothed form, see the class
    Columns(phi)      sum_k phi(z_k, y_k)                             for labels of shape (n, K)

z and y have one row for each sample. The dual variable x_i of a sample is a row too, and x_i/s_i is
in the domain: for a loss over classes e - pi, e the unit vector of the label and pi in the simplex.
phi is 1/gamma-smooth on directions that sum to zero, which are all that steps take.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Matrix, Vector
from .._base.weights import divisor
from .._kernels.losses import outputs as kernels
from .base import Loss

SOFTMAX, SIMPLEX, COLUMNS, LOGISTIC = 0, 1, 2, 3


class OutputsLoss:
    """What ERM with K outputs asks of a loss.

    A loss of your own derives from this one. It has `name`, `gamma` > 0, `value(z, y)`,
    `derivative(z, y)` and `conjugate(u, y)` for (n, K) arrays z and u, and is solved in the primal,
    by method "afg". `losses.check` compares its parts.
    """

    name: str
    #: neither of margins nor of residuals
    margin: bool | None = None
    gamma = 0.0
    eta = math.inf
    #: what the compiled sweeps call it; None if they do not know it
    kind: int | None = None
    #: where x_i/s_i is, in words
    domain = "e - pi, e the unit vector of the label and pi in the simplex"

    def value(self, z: Any, y: Any) -> Vector:
        """phi(z_i, y_i) for each row"""
        raise NotImplementedError

    def derivative(self, z: Any, y: Any) -> Matrix:
        """The gradient in z of each row."""
        raise NotImplementedError

    def conjugate(self, u: Any, y: Any) -> Vector:
        """`phi*(u_i) = max_z <u_i, z> - phi(z, y_i)` for each row"""
        raise NotImplementedError

    def check_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        """(labels, K): integers 0..K-1, or an error that says what they should be."""
        return check_classes(y, n, K, self.name)

    def total(self, z: Matrix, y: Any, s: Vector) -> float:
        """sum_i s_i phi_i(z_i)"""
        return float(np.sum(s * self.value(z, y)))

    def dual_of(self, z: Matrix, y: Any, s: Vector) -> Matrix:
        """x = -s phi'(z), the dual point that belongs to the predictions z."""
        return np.asarray(-s[:, None] * self.derivative(z, y))

    def total_conjugate(self, x: Matrix, y: Any, s: Vector) -> float:
        """sum_i s_i phi_i*(-x_i/s_i)"""
        with np.errstate(all="ignore"):
            values = s * self.conjugate(-x / divisor(s)[:, None], y)
        outside = np.broadcast_to(s == 0, values.shape) & np.any(x != 0, axis=1)
        return float(np.sum(np.where(outside, np.inf, np.where(s == 0, 0.0, values))))

    def clip(self, x: Matrix, y: Any, s: Vector) -> Matrix:
        """A dual feasible point near x; for a loss of your own, x."""
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items(), key=str))))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({parameters})"


class ClassLoss(OutputsLoss):
    """A loss over classes that the kernels know.

    n_classes  how many there are; None is one more than the largest label
    """

    kind: int

    def __init__(self, n_classes: int | None = None) -> None:
        if n_classes is not None:
            n_classes = check.integer(n_classes, "n_classes", low=2)
        self.n_classes = n_classes

    def check_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        return check_classes(y, n, self.n_classes if K is None else K, self.name)

    def value(self, z: Any, y: Any) -> Vector:
        z, y = _rows(z, y)
        out = np.empty(z.shape[0])
        kernels.values(self.kind, z, y, self.gamma, out)
        return out

    def derivative(self, z: Any, y: Any) -> Matrix:
        """pi - e; of several subgradients of a loss that is not smooth, one."""
        return -self.dual_of(*_rows(z, y), np.ones(1))

    def conjugate(self, u: Any, y: Any) -> Vector:
        u, y = _rows(u, y)
        one = np.ones(1)
        rows = range(u.shape[0])
        return np.array([kernels.total_conjugate(self.kind, -u[i : i + 1], y[i : i + 1],
                                                 self.gamma, one) for i in rows])  # fmt: skip

    def prox_conjugate(self, v: Any, step: Any, y: Any) -> Matrix:
        """argmin_u phi*(u) + |u - v_i|^2/(2 step_i) for each row"""
        v, y = _rows(v, y)
        step = np.broadcast_to(np.asarray(step, float), v.shape[:1]).copy()
        out: Matrix = np.empty_like(v)
        kernels.prox(self.kind, v, step, y, self.gamma, out)
        return out

    def total(self, z: Matrix, y: Any, s: Vector) -> float:
        return float(kernels.total(self.kind, z, y, self.gamma, s))

    def dual_of(self, z: Matrix, y: Any, s: Vector) -> Matrix:
        out = np.empty_like(z)
        kernels.dual_of(self.kind, z, y, self.gamma, s, out)
        return out

    def total_conjugate(self, x: Matrix, y: Any, s: Vector) -> float:
        return float(kernels.total_conjugate(self.kind, x, y, self.gamma, s))

    def clip(self, x: Matrix, y: Any, s: Vector) -> Matrix:
        """pi = max(e - x/s, 0) over its sum; x = 0 where s = 0."""
        out = np.empty_like(x)
        kernels.clip(x, y, s, out)
        return out


class Multinomial(ClassLoss):
    """log sum_k exp(z_k) - z_y: the softmax, labels 0..K-1"""

    name = "multinomial"
    gamma = 2.0
    kind = SOFTMAX


class MulticlassHinge(ClassLoss):
    """max_k (z_k + [k != y]) - z_y (Crammer and Singer), labels 0..K-1.

    With gamma > 0 its smoothed form: max over pi in the simplex of
    `sum_{k != y} pi_k + <z, pi - e> - (gamma/2)|pi - e|^2`.
    """

    name = "multiclass_hinge"
    kind = SIMPLEX

    def __init__(self, gamma: float = 0.0, n_classes: int | None = None) -> None:
        super().__init__(n_classes)
        self.gamma = check.number(gamma, "gamma", low=0.0)


class Columns(OutputsLoss):
    """sum_k phi(z_k, y_k): a loss of one prediction for each of K outputs, labels (n, K)."""

    def __init__(self, loss: Loss) -> None:
        if not isinstance(loss, Loss):
            raise TypeError(f"Columns takes a loss of one prediction, an object, got {loss!r}.")
        self.loss = loss
        self.name, self.gamma, self.eta = loss.name, loss.gamma, loss.eta
        self.domain = f"{loss.domain}, each output"
        self.kind = {"interval": COLUMNS, "logistic": LOGISTIC}.get(loss.kernel)

    def __repr__(self) -> str:
        return repr(self.loss)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.loss == other.loss

    def __hash__(self) -> int:
        return hash(("columns", self.loss))

    def check_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        labels = np.array(check.to_array(y, "y"), dtype=np.float64)
        if labels.ndim != 2 or labels.shape[0] != n or (K is not None and labels.shape[1] != K):
            wanted = f"({n}, {'K' if K is None else K})"
            raise ValueError(f"y must have the shape {wanted}, got {labels.shape}.")
        check.check_finite(labels.reshape(-1), "y")
        if self.loss.margin and not np.all(np.abs(labels) == 1.0):
            raise ValueError(f"loss {self.name!r} takes the labels -1 and 1 only in an (n, K) y.")
        return np.ascontiguousarray(labels), labels.shape[1]

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
        margin = bool(self.loss.margin)
        return float(self.loss.arrays.total(z.reshape(-1), y.reshape(-1), margin, _each(s, z)))

    def dual_of(self, z: Matrix, y: Any, s: Vector) -> Matrix:
        """x, with the labels premultiplied for a loss of margins."""
        return self.loss.dual_of(z.reshape(-1), y.reshape(-1), _each(s, z)).reshape(z.shape)

    def total_conjugate(self, x: Matrix, y: Any, s: Vector) -> float:
        total = float(self.loss.arrays.total_conjugate(x.reshape(-1), _each(s, x)))
        return total if self.loss.margin else total - float(np.vdot(y, x))

    def clip(self, x: Matrix, y: Any, s: Vector) -> Matrix:
        return self.loss.clip(x, s[:, None])


def _each(s: Vector, z: Matrix) -> Vector:
    """The weight of each entry of z."""
    return s if s.size == 1 else np.repeat(s, z.shape[1])


def _rows(z: Any, y: Any) -> tuple[Matrix, Any]:
    """z by rows, and a label for each."""
    z = np.ascontiguousarray(np.atleast_2d(np.asarray(z, dtype=np.float64)))
    given = np.asarray(y)
    labels = given.astype(np.int32) if given.dtype.kind in "fiub" else None
    sound = labels is not None and z.ndim == 2 and labels.shape in ((), z.shape[:1])
    if labels is None or not sound or np.any(labels != given):
        raise ValueError(
            "z must be of shape (n, K) and y the labels 0..K-1, one for each row; got "
            f"{z.shape} and {y!r}."
        )
    return z, np.ascontiguousarray(np.broadcast_to(labels, z.shape[:1]))


def check_classes(y: Any, n: int, K: int | None, name: str) -> tuple[Any, int]:
    """Labels 0..K-1 as int32, and K."""
    cure = "map your classes to 0..K-1, for example np.unique(y, return_inverse=True)[1]"
    given = np.asarray(y)
    if given.dtype.kind in "OUST":
        raise TypeError(f"y must hold the labels 0..K-1, got dtype {given.dtype}; {cure}.")
    labels = check.vector(y, n, "y", each="row of X")
    whole = np.rint(labels)
    if np.any(labels != whole) or labels.min() < 0:
        wrong = labels[(labels != whole) | (labels < 0)][0]
        raise ValueError(f"loss {name!r} takes the labels 0..K-1, got {wrong:g}; {cure}.")
    most = int(labels.max()) + 1
    if K is None:
        K = most
        if max(n, 2) < K:  # a forgotten mapping would ask for much memory
            raise ValueError(
                f"y has the label {K - 1} and only {n} samples: {K} classes would be more than "
                f"samples; {cure}."
            )
    if most > K:
        raise ValueError(f"y has the label {most - 1}, and there are {K} classes: 0..{K - 1}.")
    if K < 2 or labels.min() == labels.max():
        raise ValueError(
            f"y has only one class ({labels[0]:g}): there is nothing to separate. Give samples of "
            "at least two classes."
        )
    return labels.astype(np.int32), K
