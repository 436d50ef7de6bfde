"""Primal recovery, section 5.1 of the paper: a last full step, and a bound of the gap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._validation import Vector
from .weights import divisor


def refined(problem: Any, x: Vector) -> Vector:
    """T(x) of `ERM.refine`."""
    p = problem
    z = p.samples.tdot(p.omega(x))
    gradient = p.loss.argument(z, p.y) / p.n
    # In units of s_i the step is the same for all: |T - x|^2 is sum_i (T_i - x_i)^2/s_i.
    s = divisor(p.weights)
    c = p.strong_convexity * p.n**2 / max(p.spectral_norm**2, 1e-300)
    step = c / p.n
    shrink = 1 + p.loss.gamma * step
    v = (x / s - c * gradient) / shrink
    T = s * p.loss.arrays.dual_prox(v, np.full(x.size, step / shrink))
    return np.asarray(p.loss.clip(T, p.weights))  # 0 where the weight is


def pdgbound(problem: Any, x: Vector) -> float:
    """The right side of Lemma 4, of `ERM.pdgbound`."""
    p = problem
    if p.loss.gamma == 0 or not math.isfinite(p.dual(x)):
        return math.inf
    z = p.samples.tdot(p.omega(x))
    m = p.loss.argument(z, p.y)
    inside = p.loss.clip(x / divisor(p.weights), np.ones(1))  # a rounding may be outside
    kept = np.broadcast_to(p.weights > 0, x.shape)
    far = m[kept] - p.loss.nearest_conjugate_slope(inside, m)[kept]
    s = np.broadcast_to(p.weights, x.shape)[kept]
    return float(np.sum(s * far**2) / (2 * p.n * p.loss.gamma))
