"""Conjugate gradients for H x = r, with a preconditioner: the steps, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..._base.validation import Matrix

#: a step's length, its way, and r'M^-1 r before and after it
Step = tuple[float, Matrix, float, float]


def steps(
    times: Callable[[Matrix], Matrix], solve: Callable[[Matrix], Matrix], r: Matrix
) -> Iterator[Step]:
    """x is the sum of length times way; r becomes the residual. It ends where H is not positive.

    times  H v
    solve  M^-1 v, M about H
    """
    way = s = solve(r)
    size = float(np.vdot(r, s))
    while True:
        product = times(way)
        curvature = float(np.vdot(way, product))
        if not curvature > 0 or not math.isfinite(curvature):
            return
        length = size / curvature
        r -= length * product
        s = solve(r)
        before, size = size, float(np.vdot(r, s))
        yield length, way, before, size
        way = s + (size / before) * way
