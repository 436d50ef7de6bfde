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

In the primal form b is one more coordinate, without penalty.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from ._validation import Vector
from .loss import Loss

#: c^2 over the mean of |a_i|^2 (measured on a9a and rcv1: 1 costs more passes, 1/20 more moves).
CONSTANT = 0.25


def constant(mean_square: float, own: float) -> float:
    """c, from the mean of s_i |a_i|^2 and from kappa gamma n."""
    size = max(CONSTANT * mean_square, own)
    return math.sqrt(size) if size > 1e-290 else 1.0  # 1/c^2 must not overflow


def imbalance(signed: Vector) -> float:
    """|sum_i y_i x_i| over what rounding can make of it; at most 1 if the sum is zero."""
    room = 64 * np.finfo(float).eps * float(np.sum(np.abs(signed)))
    return abs(float(np.sum(signed))) / room if room > 0 else 0.0


def balance(loss: Loss, y: Vector, weights: Vector, x: Vector) -> Vector:
    """A dual feasible point near x with sum_i y_i x_i = 0.

    x_i moves in proportion to its distance from the bounds (and kinks) of phi*: there D has a slope
    of its own, elsewhere near the optimum that of the constraint, and D then changes little. Where
    that is not room enough, the greater of the positive and the negative y_i x_i are scaled down.
    """
    sign = y if loss.margin else np.ones(1)
    for _ in range(3):  # once, and again for what rounding left
        excess = float(np.sum(sign * x))
        room = loss.room(x, weights)
        total = float(np.sum(room))
        if total == 0:
            break
        with np.errstate(over="ignore", invalid="ignore"):  # a total of next to nothing
            new = x - (excess / total) * sign * room
        # a share below 1 keeps x within bounds; a larger one may, where there are none
        if abs(excess) >= total and np.any(loss.clip(new, weights) != new):
            break
        x = new
    x = loss.clip(x, weights)  # a rounding may be outside
    signed = sign * x
    if imbalance(signed) > 1:
        positive, negative = float(np.sum(signed[signed > 0])), -float(np.sum(signed[signed < 0]))
        most, least = max(positive, negative), min(positive, negative)
        larger = (signed > 0) == (positive > negative)
        x = np.where(larger, x * (least / most), x)
    return x


def best(loss: Loss, y: Vector, weights: Vector, z: Vector, guess: float) -> float:
    """argmin_b sum_i s_i phi_i(z_i + b); the middle if it is an interval.

    `guess` is a b that is near. There must be samples of both classes, for a loss of margins.
    """
    sign = y if loss.margin else np.ones(1)
    total = float(np.sum(np.broadcast_to(weights, z.shape)))

    def slope(b: float) -> float:
        value = -float(np.sum(sign * loss.dual_of(z + b, y, weights)))
        return value if abs(value) > 1e-15 * total else 0.0

    at = slope(guess)
    if at != 0:
        step = math.copysign(1e-3 * (1 + abs(guess)), -at)
        low, high = guess, guess + step
        while (other := slope(high)) * at > 0 and math.isfinite(high):
            low, high, step = high, high + 2 * step, 2 * step
        # an xtol for a step of the slope at b = 0, where no relative accuracy is ever reached
        xtol = 1e-30 * max(abs(low), abs(high))
        if other == 0:
            guess = high
        else:
            guess = float(brentq(slope, low, high, xtol=xtol, rtol=1e-15, maxiter=1000))
    points = loss.prediction(loss.kinks[:, None], y) - z  # the b where a phi_i has a kink
    points = points[:, np.broadcast_to(weights > 0, z.shape)]
    below, above = points[points <= guess], points[points >= guess]
    if below.size and above.size:
        middle = 0.5 * (float(below.max()) + float(above.min()))
        if slope(middle) == 0:
            return middle
    return guess
