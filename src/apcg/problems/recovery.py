"""Primal recovery, section 5.1 of the paper: the step T(x) of Theorem 4, the bound of Lemma 4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.validation import Vector
from .._base.weights import divisor


def full_step(problem: Any, x: Vector) -> Vector:
    """argmin_T <grad f(x), T> + (1/(2 c))|T - x|^2 + Psi(T), c = lambda n^2/|A|^2.

    Psi(T) = (1/n) sum_i s_i phi_i*(-T_i/s_i), and |T - x|^2 is sum_i (T_i - x_i)^2/s_i: in units of
    s_i the step is the same for all.
    """
    _check_plain(problem, "refine")
    loss, n, s = problem.loss, problem.n, divisor(problem.weights)
    c = problem.strong_convexity * n**2 / max(problem.spectral_norm**2, 1e-300)
    z = problem.samples.times(problem.omega(x))
    gradient = loss.argument(z, problem.y) / n
    step = c / n
    shrink = 1 + loss.gamma * step
    v = (x / s - c * gradient) / shrink
    T = s * loss.arrays.dual_prox(v, np.full(x.size, step / shrink))
    return np.asarray(loss.clip(T, problem.y, problem.weights))  # 0 where the weight is


def gap_bound(problem: Any, x: Vector) -> float:
    """(1/(2 n gamma)) sum_i s_i (A_i' w - a_i)^2, w = omega(x).

    a_i is the point of the subdifferential of phi_i* at -x_i/s_i nearest to A_i' w.
    """
    _check_plain(problem, "pdgbound")
    loss, weights = problem.loss, problem.weights
    if loss.gamma == 0 or not math.isfinite(problem.dual(x)):
        return math.inf
    m = loss.argument(problem.samples.times(problem.omega(x)), problem.y)
    inside = loss.clip(x / divisor(weights), problem.y, np.ones(1))  # a rounding may be outside
    kept = np.broadcast_to(weights > 0, x.shape)
    far = m[kept] - loss.nearest_conjugate_slope(inside, m)[kept]
    s = np.broadcast_to(weights, x.shape)[kept]
    return float(np.sum(s * far**2) / (2 * problem.n * loss.gamma))


def _check_plain(problem: Any, name: str) -> None:
    if problem.K > 1 or not problem.loss.compiled:
        raise ValueError(f"{name} is for problems with one output and a loss of apcg's.")
    if problem.intercept:
        raise ValueError(f"{name} is for problems without an intercept (Theorem 4, Lemma 4).")
