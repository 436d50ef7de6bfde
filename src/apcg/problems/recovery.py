"""Primal recovery, section 5.1 of the paper: the step T(x) of Theorem 4, the bound of Lemma 4."""

from __future__ import annotations

import numpy as np

from .._base.validation import Vector
from .._base.weights import divisor
from ..losses.base import Loss


def full_step(
    loss: Loss, y: Vector, weights: Vector, n: int, x: Vector, z: Vector, c: float
) -> Vector:
    """argmin_T <grad f(x), T> + (1/(2 c))|T - x|^2 + Psi(T), z the predictions of omega(x).

    Psi(T) = (1/n) sum_i s_i phi_i*(-T_i/s_i), and |T - x|^2 is sum_i (T_i - x_i)^2/s_i: in units of
    s_i the step is the same for all.
    """
    gradient = loss.argument(z, y) / n
    s = divisor(weights)
    step = c / n
    shrink = 1 + loss.gamma * step
    v = (x / s - c * gradient) / shrink
    T = s * loss.arrays.dual_prox(v, np.full(x.size, step / shrink))
    return np.asarray(loss.clip(T, weights))  # 0 where the weight is


def gap_bound(loss: Loss, y: Vector, weights: Vector, n: int, x: Vector, z: Vector) -> float:
    """(1/(2 n gamma)) sum_i s_i (A_i' w - a_i)^2, z the predictions of w = omega(x).

    a_i is the point of the subdifferential of phi_i* at -x_i/s_i nearest to A_i' w.
    """
    m = loss.argument(z, y)
    inside = loss.clip(x / divisor(weights), np.ones(1))  # a rounding may be outside
    kept = np.broadcast_to(weights > 0, x.shape)
    far = m[kept] - loss.nearest_conjugate_slope(inside, m)[kept]
    s = np.broadcast_to(weights, x.shape)[kept]
    return float(np.sum(s * far**2) / (2 * n * loss.gamma))
