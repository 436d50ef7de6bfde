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

from .._base.validation import Vector
from .._kernels.newton import objective
from ..losses.base import Loss

#: c^2 over the mean of |a_i|^2 (measured on a9a and rcv1: 1 costs more passes, 1/20 more moves).
CONSTANT = 0.25
#: Slopes, and falls of P, below this part of what they are sums of are rounding.
_ROUNDING = 1e-15
#: Newton's method for the best b takes fewer steps than this, where phi'' tells anything.
_STEPS = 60


def constant(mean_square: float, own: float) -> float:
    """c, from the mean of s_i |a_i|^2 and from kappa gamma n."""
    size = max(CONSTANT * mean_square, own)
    return math.sqrt(size) if size > 1e-290 else 1.0  # 1/c^2 must not overflow


def check_both_classes(y: Vector, weights: Vector) -> None:
    """Refuse labels of one class: a loss of margins then has no best intercept."""
    kept = weights > 0
    if not (np.any(kept & (y > 0)) and np.any(kept & (y < 0))):
        raise ValueError(
            "only one class has samples of positive weight, and then no intercept is best: "
            "the larger, the better. Give samples of both classes, or intercept=False."
        )


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
        signed = sign * x
        excess = float(np.sum(signed))
        if abs(excess) <= 0.05 * np.finfo(float).eps * float(np.sum(np.abs(signed))):
            break
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
    b, bend = guess, 0.0
    if loss.gamma > 0:
        b, bend = _newton(loss, y, weights, np.ascontiguousarray(z), guess)
        if bend > 0:
            return b
    if not weights.all():
        kept = weights > 0
        y, weights, z = y[kept], weights[kept], z[kept]
    return _middle(loss, y, z, b) if loss.gamma > 0 else _best_of_lines(loss, y, weights, z)


def _newton(loss: Loss, y: Vector, weights: Vector, z: Vector, b: float) -> tuple[float, float]:
    """Newton's method on b, with a bracket, until P does not fall any more; and P'' there."""
    theta, ones, spare = np.array(loss.theta), np.ones(z.size), np.empty((3, z.size))
    flat = _ROUNDING * z.size * float(np.mean(weights))
    low, high, reach = -math.inf, math.inf, 1e3 * (1 + abs(b))
    steps = 0
    while True:
        value, slope, bend = objective.evaluate(
            loss.kernel, theta, z, ones, b, y, loss.margin, weights, 1.0, *spare
        )
        if not abs(slope) > flat:
            return b, bend
        low, high = (b, high) if slope < 0 else (low, b)
        steps += 1  # where they creep, it goes on by halves of the bracket
        newton = bend > 0 and steps < _STEPS
        step = -slope / bend if newton else -math.copysign(math.inf, slope)
        new = b + min(max(step, -reach), reach)
        if abs(slope * step) <= _ROUNDING * abs(value):
            return new, bend
        reach *= 4  # a guess may be far, and the slope there all but constant
        if not low < new < high:
            new = 0.5 * (low + high)
        if new in (b, low, high):
            return b, bend
        b = new


def _middle(loss: Loss, y: Vector, z: Vector, b: float) -> float:
    """The middle of the b with the same slope, which lie between two kinks."""
    points = loss.prediction(loss.kinks[:, None], y) - z
    below, above = points[points <= b], points[points >= b]
    if below.size and above.size:
        return 0.5 * (float(below.max()) + float(above.min()))
    return b


def _best_of_lines(loss: Loss, y: Vector, weights: Vector, z: Vector) -> float:
    """`best` where phi is made of lines: the slope in b jumps at the kinks, and b is at one.

    It is the kink where the jumps up to there add up to what the slope is short of far below.
    """
    k, epsilon, _, lower, upper = loss.theta
    kinks = {k - epsilon: upper, k + epsilon: -lower} if epsilon > 0 else {k: upper - lower}
    points = np.concatenate([loss.prediction(m, y) - z for m in kinks])
    jumps = np.concatenate([np.broadcast_to(weights * jump, z.shape) for jump in kinks.values()])
    short = float(np.sum(weights * (np.where(y > 0, upper, -lower) if loss.margin else upper)))
    short *= 1 if loss.margin or weights.size > 1 else z.size
    even = jumps.min() == jumps.max()  # then the order of all others does not matter
    order = None if even else np.argsort(points)
    sums = np.cumsum(jumps if order is None else jumps[order])
    slack = _ROUNDING * float(sums[-1])
    first = min(int(np.searchsorted(sums, short - slack)), points.size - 1)
    last = min(first + (abs(sums[first] - short) <= slack), points.size - 1)
    ordered = np.partition(points, (first, last)) if order is None else points[order]
    return 0.5 * float(ordered[first] + ordered[last])
