"""A free intercept b: what changes in ERM when no penalty is on it.

    primal   P(w, b) = (1/n) sum_i s_i phi_i(a_i' w + b) + lambda g(w)
    dual     D(x) as without b, subject to sum_i y_i x_i = 0   (y_i = 1 for a loss of residuals)

The dual is solved by proximal points on b: a feature that is constant, c, has the weight beta with
the penalty (kappa/2)(beta - beta_k)^2, and b = c beta. beta_k moves to beta when the gap of that
inner problem is below the term, so that the error of beta is smaller than its step. In the dual the
term is one more row of A, all c, with h(t) = (t + kappa n beta_k)^2/(2 kappa n^2): a shift of the
row, which moves without a pass over the data. With c^2 = max(CONSTANT |a|^2, kappa gamma n) the
row adds little to the L_i, and the proximal term is weaker than the curvature of min_w P in b even
if the constant is in the span of the features, as it is for one-hot data.

In the primal form b is one more coordinate, without penalty. With K outputs there are K intercepts,
and the last row of W has them. The best b and points in balance are what a loss knows (`losses`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import validation as check

#: c^2 over the mean of |a_i|^2 (measured on a9a and rcv1: 1 costs more passes, 1/20 more moves).
CONSTANT = 0.25


def constant(mean_square: float, own: float) -> float:
    """c, from the mean of s_i |a_i|^2 and from kappa gamma n."""
    size = max(CONSTANT * mean_square, own)
    return math.sqrt(size) if size > 1e-290 else 1.0  # 1/c^2 must not overflow


def check_b(b: Any, K: int, name: str, **bounds: Any) -> Any:
    """K intercepts that a user gave; one number stands for K of it."""
    if K == 1:
        return check.number(b, name, **bounds)
    given = check.to_array(b, name)
    if given.shape not in ((), (K,)) or not np.isfinite(given).all():
        raise ValueError(f"{name} must be {K} numbers, got {b!r}.")
    for number in given.reshape(-1):
        check.number(number, name, **bounds)
    return np.array(np.broadcast_to(given, K), dtype=np.float64)
