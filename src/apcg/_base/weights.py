"""Sample weights s_i: rescaled once, and divided by safely where some are zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import validation as check
from .validation import Vector

#: The least positive weight, relative to the largest: n/s_i and its squares stay finite.
LEAST = 1e-150


def normalised(sample_weight: Any, n_samples: int) -> tuple[Vector, int]:
    """The weights rescaled to sum to n, and n, the number of samples of positive weight.

    Without weights they are the array [1.0], which broadcasts.
    """
    if sample_weight is None:
        return np.ones(1), n_samples
    weights = check.vector(sample_weight, n_samples, "sample_weight", each="row of X")
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight must not be negative, got {weights.min():g} at {int(weights.argmin())}."
        )
    if weights.max() == 0:
        raise ValueError("sample_weight is zero everywhere: at least one must be positive.")
    weights = weights / weights.max()  # only ratios matter; the sum cannot overflow now
    n = int(np.count_nonzero(weights))
    if np.count_nonzero(weights > LEAST) < n:
        small = float(np.min(weights, where=weights > 0, initial=1.0))
        raise ValueError(
            f"sample_weight has a positive entry that is {small:.1e} of the largest; no sum of the "
            f"samples can show it. Give 0 for weights below {LEAST:g} of the largest."
        )
    weights *= n / weights.sum()
    return weights, n


def divisor(weights: Vector) -> Vector:
    """The weights to divide x by: 1 in the place of 0, because x_i is 0 where s_i is."""
    return weights if weights.all() else np.where(weights > 0, weights, 1.0)


def mean(y: Vector, weights: Vector | None = None) -> Any:
    """The mean over the samples, of each column if there are several."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = _mean(y, weights)
    if np.isfinite(found).all():
        return found
    size = np.abs(y).max()  # of numbers whose sum overflows
    return _mean(y / size, None if weights is None else weights / weights.max()) * size


def _mean(y: Vector, weights: Vector | None) -> Any:
    if weights is not None or y.ndim == 1:
        return np.average(y, axis=0, weights=weights)
    return np.ones(len(y), dtype=y.dtype) @ y / len(y)  # NumPy's sum takes ten times as long
