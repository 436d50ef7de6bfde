"""K free intercepts: what changes in ERM with K outputs when no penalty is on them.

In the dual, sum_i x_i = 0, one equation for each output. For a loss over classes that says that the
probabilities pi sum to the weights of the classes: sum_i s_i pi_i = sum_i s_i e_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.validation import Matrix, Vector
from .._base.weights import divisor
from ..losses.outputs import SIMPLEX, SOFTMAX, Columns
from . import intercept as free

_EPS = float(np.finfo(float).eps)
#: Steps of Newton's method for the best intercepts.
STEPS = 50
#: A step that promises less than this part of the loss is the last.
NEAR = 1e-10


def imbalance(x: Matrix) -> float:
    """The largest |sum_i x_ik| over what rounding can make of it; at most 1 if all are zero."""
    ones = np.ones(len(x))  # a product by BLAS takes a third of the time of a sum over rows
    room = 64 * _EPS * float((ones @ np.abs(x)).max(initial=0.0))
    return float(np.abs(ones @ x).max()) / room if room > 0 else 0.0


def best(loss: Any, y: Any, weights: Vector, z: Matrix, guess: Vector) -> Vector:
    """argmin_b sum_i s_i phi_i(z_i + b), with sum_k b_k = 0 for a loss over classes.

    For a loss that is not smooth, what Newton's method would need is not there: the guess, unless
    z = 0 (`_best_alone`).
    """
    if isinstance(loss, Columns):
        parts = range(z.shape[1])
        return np.array([
            free.best(loss.loss, np.ascontiguousarray(y[:, k]), weights,
                      np.ascontiguousarray(z[:, k]), float(guess[k]))
            for k in parts
        ])  # fmt: skip
    b = guess - guess.mean()
    if loss.gamma == 0 and loss.kind == SIMPLEX and not z.any():
        return _best_alone(y, weights, z)
    if loss.gamma == 0 or loss.kind is None:
        return np.asarray(b)
    value = loss.total(z + b, y, weights)
    for _ in range(STEPS):
        x = loss.dual_of(z + b, y, weights)
        gradient = -x.sum(axis=0)
        size = float(np.abs(x).sum())
        if float(np.abs(gradient).max()) <= 1e-15 * size:
            break
        way = -np.linalg.solve(_bend(loss, y, weights, x), gradient)
        slope, step = float(gradient @ way), 1.0
        if -slope <= NEAR * abs(value):  # then the error after a whole step is its square
            b = b + way
            break
        while True:
            new = loss.total(z + (b + step * way), y, weights)
            if new <= value + 1e-4 * step * slope or step < 1e-6:
                break
            step /= 2
        if not new < value:
            break
        b, value = b + step * way, new
    return np.asarray(b - b.mean())


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


def _bend(loss: Any, y: Any, weights: Vector, x: Matrix) -> Matrix:
    """The Hessian in b at x = s (e - pi), with something on the ones, which it is flat along."""
    n, K = x.shape
    pi = -x / divisor(weights)[:, None]
    pi[np.arange(n), y] += 1.0
    s = np.broadcast_to(weights, n)
    if loss.kind == SOFTMAX:
        H = np.diag(s @ pi) - (pi * s[:, None]).T @ pi
    else:
        active = (pi > 0).astype(float)
        share = s / (loss.gamma * active.sum(axis=1))
        H = np.diag((s / loss.gamma) @ active) - (active * share[:, None]).T @ active
    scale = float(np.trace(H)) / K or 1.0
    return H + scale * (np.full((K, K), 1.0 / K) + 1e-10 * np.eye(K))


def balance(loss: Any, y: Any, weights: Vector, x: Matrix) -> Matrix:
    """A dual feasible point near x with sum_i x_i = 0."""
    if isinstance(loss, Columns):
        parts = range(x.shape[1])
        columns = [
            free.balance(loss.loss, np.ascontiguousarray(y[:, k]), weights,
                         np.ascontiguousarray(x[:, k]))
            for k in parts
        ]  # fmt: skip
        return np.ascontiguousarray(np.column_stack(columns))
    if loss.kind not in (SOFTMAX, SIMPLEX):
        raise ValueError(f"intercepts are not for loss {loss.name!r}: its domain is not known.")
    n, K = x.shape
    s = np.broadcast_to(weights, n)
    for _ in range(4):
        if imbalance(x) <= 1:
            return x
        # pi_ik *= 1 + delta_k - <pi_i, delta> keeps zeros and sums
        pi = -x / divisor(weights)[:, None]
        pi[np.arange(n), y] += 1.0
        H = np.diag(s @ pi) - (pi * s[:, None]).T @ pi
        H += (float(np.trace(H)) / K or 1.0) / K
        try:
            delta = np.linalg.solve(H, x.sum(axis=0))
        except np.linalg.LinAlgError:
            break
        delta -= delta.mean()
        if not np.abs(delta).max() < 0.5:
            break
        pi *= 1 + delta - (pi @ delta)[:, None]
        x = loss.clip(_dual(pi, y, s), y, weights)
    return x if imbalance(x) <= 1 else _paired(loss, y, weights, x)


def _dual(pi: Matrix, y: Any, s: Vector) -> Matrix:
    """x = s (e - pi)"""
    x = -s[:, None] * pi
    at = np.arange(pi.shape[0])
    x[at, y] = 0.0
    x[at, y] = -x.sum(axis=1)
    return x


def _paired(loss: Any, y: Any, weights: Vector, x: Matrix) -> Matrix:
    """What class k gives to l and what l gives to k, scaled down to the less of the two."""
    n, K = x.shape
    flows = np.zeros((K, K))
    np.add.at(flows, y, np.maximum(-x, 0.0))
    np.fill_diagonal(flows, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(flows > 0, np.minimum(flows, flows.T) / flows, 0.0)
    pi = share[y] * np.maximum(-x, 0.0)
    return _dual(pi, y, np.ones(n))
