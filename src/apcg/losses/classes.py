"""Losses phi of K predictions over classes, labels 0..K-1.

    Multinomial       log sum_k exp(z_k) - z_y                        the softmax
    MulticlassHinge   max_k (z_k + [k != y]) - z_y                    Crammer and Singer
                      and its smoothed form, see the class

phi*(pi - e) is sum_k pi_k log pi_k for the softmax, and (gamma/2)|pi - e|^2 - (1 - pi_y) for the
hinge, infinite elsewhere; `total_conjugate` of `_kernels/losses/outputs.pyx` sums it.

z has one row for each sample, and so has x: x_i/s_i = e - pi, e the unit vector of the label and pi
in the simplex. phi is 1/gamma-smooth on directions that sum to zero, which are all that steps take.
With an intercept sum_i x_i = 0: the probabilities pi sum to the weights of the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Matrix, Vector
from .._base.weights import divisor
from .._kernels.losses import outputs as kernels
from . import shift
from .base import SIMPLEX, SOFTMAX, check_classes
from .own import OutputsLoss


class ClassLoss(OutputsLoss):
    """A loss over classes that the kernels know.

    n_classes  how many there are; None is one more than the largest label
    """

    kind: int
    compiled = True
    domain = "e - pi, e the unit vector of the label and pi in the simplex"

    def __init__(self, n_classes: int | None = None) -> None:
        if n_classes is not None:
            n_classes = check.integer(n_classes, "n_classes", low=2)
        self.n_classes = n_classes

    def check_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        return check_classes(y, n, self.n_classes if K is None else K, self.name)

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        return self.check_labels(y, n, K)

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        if not intercept:
            return
        each = np.bincount(y, np.broadcast_to(s, len(y)), minlength=K)
        if np.any(each == 0):
            raise ValueError(
                f"no sample of class {int(np.flatnonzero(each == 0)[0])} has a positive weight, "
                "and then no intercept is best: the smaller, the better. Leave the class out, or "
                "take intercept=False."
            )

    def value(self, z: Any, y: Any) -> Vector:
        z, y = _rows(z, y)
        out = np.empty(z.shape[0])
        kernels.values(self.kind, z, y, self.gamma, out)
        return out

    def derivative(self, z: Any, y: Any) -> Matrix:
        """pi - e; of several subgradients of a loss that is not smooth, one."""
        return -self.duals(*_rows(z, y), np.ones(1))

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

    def duals(self, z: Matrix, y: Any, s: Vector) -> Matrix:
        out = np.empty_like(z)
        kernels.dual_of(self.kind, z, y, self.gamma, s, out)
        return out

    def conjugate_total(self, x: Matrix, y: Any, s: Vector) -> float:
        return float(kernels.total_conjugate(self.kind, x, y, self.gamma, s))

    def clip(self, x: Matrix, y: Any, s: Vector) -> Matrix:
        """pi = max(e - x/s, 0) over its sum; x = 0 where s = 0."""
        out = np.empty_like(x)
        kernels.clip(x, y, s, out)
        return out

    def best_shift(self, z: Matrix, y: Any, s: Vector, guess: Any) -> Vector:
        """The best b with sum_k b_k = 0. For a loss that is not smooth the guess, unless z = 0."""
        b = np.broadcast_to(guess, z.shape[1])
        b = np.asarray(b - b.mean())
        if self.gamma == 0:
            return b if z.any() or self.kind != SIMPLEX else _best_alone(y, s, z)

        def way(b: Vector, x: Matrix, gradient: Vector) -> Vector:
            return np.asarray(-np.linalg.solve(_bend(self, y, s, x), gradient))

        found = shift.newton(self, z, y, s, b, way)
        return np.asarray(found - found.mean())

    def balance(self, x: Matrix, y: Any, s: Vector, z: Matrix | None = None) -> Matrix:
        """By pi_ik *= 1 + delta_k - <pi_i, delta>, which keeps zeros and sums; or by pairs."""
        K, each = x.shape[1], np.broadcast_to(s, len(x))
        for _ in range(4):
            if shift.imbalance(x) <= 1:
                return x
            pi = _probabilities(x, y, s)
            H = np.diag(each @ pi) - (pi * each[:, None]).T @ pi
            H += (float(np.trace(H)) / K or 1.0) / K
            try:
                delta = np.linalg.solve(H, x.sum(axis=0))
            except np.linalg.LinAlgError:
                break
            delta -= delta.mean()
            if not np.abs(delta).max() < 0.5:
                break
            pi *= 1 + delta - (pi @ delta)[:, None]
            x = self.clip(_dual(pi, y, each), y, s)
        return x if shift.imbalance(x) <= 1 else _paired(y, x)


class Multinomial(ClassLoss):
    """log sum_k exp(z_k) - z_y: the softmax, labels 0..K-1

    Examples
    --------
    >>> from apcg.losses import Multinomial
    >>> Multinomial().value([[2.0, 0.0, 1.5]], [0]).round(3)
    array([0.555])
    """

    name = "multinomial"
    gamma = 2.0
    kind = SOFTMAX

    def separates(self, z: Matrix, y: Any, s: Vector) -> bool:
        others = z.copy()
        at = np.arange(len(z))
        others[at, y] = -np.inf
        return bool(np.all((z[at, y] > others.max(axis=1)) | (s == 0)))


class MulticlassHinge(ClassLoss):
    """max_k (z_k + [k != y]) - z_y (Crammer and Singer), labels 0..K-1.

    With gamma > 0 its smoothed form: max over pi in the simplex of
    `sum_{k != y} pi_k + <z, pi - e> - (gamma/2)|pi - e|^2`.

    Examples
    --------
    >>> from apcg.losses import MulticlassHinge
    >>> MulticlassHinge().value([[2.0, 0.0, 1.5]], [0])
    array([0.5])
    """

    name = "multiclass_hinge"
    kind = SIMPLEX

    def __init__(self, gamma: float = 0.0, n_classes: int | None = None) -> None:
        super().__init__(n_classes)
        self.gamma = check.number(gamma, "gamma", low=0.0)


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


def _probabilities(x: Matrix, y: Any, s: Vector) -> Matrix:
    """pi = e - x/s"""
    pi = -x / divisor(s)[:, None]
    pi[np.arange(len(x)), y] += 1.0
    return np.asarray(pi)


def _dual(pi: Matrix, y: Any, s: Vector) -> Matrix:
    """x = s (e - pi)"""
    x = -s[:, None] * pi
    at = np.arange(pi.shape[0])
    x[at, y] = 0.0
    x[at, y] = -x.sum(axis=1)
    return x


def _best_alone(y: Any, weights: Vector, z: Matrix) -> Vector:
    """The best b of the multiclass hinge at z = 0.

    Only a class whose b is above all others has a loss below 1. A lead of t <= 1 takes t off its
    losses and adds t to all others, which pays if it has more than half of the weight.
    """
    n, K = z.shape
    share = np.bincount(y, np.broadcast_to(weights, n), minlength=K)
    b = np.zeros(K)
    b[share.argmax()] = float(2 * share.max() > share.sum())
    return np.asarray(b - b.mean())


def _bend(loss: ClassLoss, y: Any, weights: Vector, x: Matrix) -> Matrix:
    """The Hessian in b at x = s (e - pi), with something on the ones, which it is flat along."""
    n, K = x.shape
    pi = _probabilities(x, y, weights)
    s = np.broadcast_to(weights, n)
    if loss.kind == SOFTMAX:
        H = np.diag(s @ pi) - (pi * s[:, None]).T @ pi
    else:
        active = (pi > 0).astype(float)
        share = s / (loss.gamma * active.sum(axis=1))
        H = np.diag((s / loss.gamma) @ active) - (active * share[:, None]).T @ active
    scale = float(np.trace(H)) / K or 1.0
    return H + scale * (np.full((K, K), 1.0 / K) + 1e-10 * np.eye(K))


def _paired(y: Any, x: Matrix) -> Matrix:
    """What class k gives to l and what l gives to k, scaled down to the less of the two."""
    n, K = x.shape
    flows = np.zeros((K, K))
    np.add.at(flows, y, np.maximum(-x, 0.0))
    np.fill_diagonal(flows, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(flows > 0, np.minimum(flows, flows.T) / flows, 0.0)
    pi = share[y] * np.maximum(-x, 0.0)
    return _dual(pi, y, np.ones(n))
