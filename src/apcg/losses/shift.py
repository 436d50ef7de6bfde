"""What a loss does for a free intercept b: the best b, and dual points in balance with it.

With an intercept the dual has the constraint sum_i y_i x_i = 0 (y_i = 1 without margins), one
equation for each output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.validation import Vector
from .._kernels.newton import objective
from .base import BaseLoss

_EPS = float(np.finfo(float).eps)
#: Slopes, and falls of P, below this part of what they are sums of are rounding.
_ROUNDING = 1e-15
#: Newton's method for the best b takes fewer steps than this, where phi'' tells anything.
_STEPS = 60
#: Of K intercepts: steps at most, and a step that promises less than this part of the loss is the
#: last.
_STEPS_OF_K, _NEAR = 50, 1e-10


def imbalance(signed: Vector) -> float:
    """|sum_i y_i x_i| over what rounding can make of it; at most 1 if the sum is zero.

    Of K outputs, the largest.
    """
    if signed.ndim == 1:
        size, off = float(np.abs(signed).sum()), abs(float(signed.sum()))
    else:
        ones = np.ones(len(signed))  # a product by BLAS takes a third of the time of a sum
        size, off = float((ones @ np.abs(signed)).max()), float(np.abs(ones @ signed).max())
    room = 64 * _EPS * size
    return off / room if room > 0 else 0.0


def balance(loss: Any, x: Vector, y: Vector, weights: Vector) -> Vector:
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
        if abs(excess) >= total and np.any(loss.clip(new, y, weights) != new):
            break
        x = new
    x = loss.clip(x, y, weights)  # a rounding may be outside
    signed = sign * x
    return sign * scaled(signed) if imbalance(signed) > 1 else x


def scaled(signed: Vector) -> Vector:
    """The greater of the positive and the negative entries scaled down, for each output."""
    if signed.ndim > 1:
        return np.column_stack([scaled(column) for column in signed.T])
    positive, negative = float(np.sum(signed[signed > 0])), -float(np.sum(signed[signed < 0]))
    most, least = max(positive, negative), min(positive, negative)
    larger = (signed > 0) == (positive > negative)
    return np.where(larger, signed * (least / most), signed)


def best(loss: Any, z: Vector, y: Vector, weights: Vector, guess: float) -> float:
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


def _newton(loss: Any, y: Vector, weights: Vector, z: Vector, b: float) -> tuple[float, float]:
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


def _middle(loss: Any, y: Vector, z: Vector, b: float) -> float:
    """The middle of the b with the same slope, which lie between two kinks."""
    points = loss.prediction(loss.kinks[:, None], y) - z
    below, above = points[points <= b], points[points >= b]
    if below.size and above.size:
        return 0.5 * (float(below.max()) + float(above.min()))
    return b


def _best_of_lines(loss: Any, y: Vector, weights: Vector, z: Vector) -> float:
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


def newton(
    loss: BaseLoss, z: Vector, y: Any, s: Vector, b: Vector, way_of: Callable[..., Vector]
) -> Vector:
    """argmin_b sum_i s_i phi_i(z_i + b) for K intercepts; `way_of(b, x, gradient)` is a step."""
    value = loss.total(z + b, y, s)
    for _ in range(_STEPS_OF_K):
        x = loss.duals(z + b, y, s)
        gradient = -loss.sums(x, y)
        if float(np.abs(gradient).max()) <= _ROUNDING * float(np.abs(x).sum()):
            break
        way = way_of(b, x, gradient)
        slope, step = float(gradient @ way), 1.0
        if -slope <= _NEAR * abs(value):  # then the error after a whole step is its square
            return b + way
        while True:
            new = loss.total(z + (b + step * way), y, s)
            if new <= value + 1e-4 * step * slope or step < 1e-6:
                break
            step /= 2
        if not new < value:
            break
        b, value = b + step * way, new
    return b
