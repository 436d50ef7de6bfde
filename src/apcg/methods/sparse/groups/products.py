"""Products of dense data with few outputs: X'x and X W.

BLAS is slow where one side has three to six columns. Nor does it see that most rows of W are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._kernels.sparse import panels
from ....data import Dense

#: With so many outputs products are by kernels of ours. Of the time of BLAS, 2,000 x 200 with 5:
#: 0.7; 500 x 2,000 with 3: 0.45; with 2 it is 1.5, with 8 to 20 1.0 to 1.3.
FEW_OUTPUTS = range(3, 7)
#: The same of X W if at most one row of W in so many is not zero, as in `Dense.times`.
FEW_ROWS = 16
#: X of at most so many numbers goes to BLAS at once: calls cost more than products there.
FEW_NUMBERS = 20_000


def columns_times(samples: Dense, x: Any) -> Any:
    """X'x, where x has a column for each output or is a vector."""
    few = x.ndim == 2 and x.shape[1] in FEW_OUTPUTS and samples.data.size > FEW_NUMBERS
    if not few or samples.data.dtype != np.float64:
        return samples.adjoint(x)
    K = x.shape[1]
    if x.strides[1] != x.itemsize or x.strides[0] < x.itemsize * K:
        x = np.ascontiguousarray(x)
    out, rest = np.zeros((K, samples.stored.shape[1])), np.zeros((K, 8))
    panels.dot(samples.stored, x, rest, out)
    return np.ascontiguousarray(out.T)


def rows_times(samples: Dense, W: Any) -> Any:
    """X W, by the rows of W that are not zero."""
    if W.ndim == 1 or samples.data.dtype != np.float64 or samples.data.size <= FEW_NUMBERS:
        return samples.times(W)
    some, K = np.flatnonzero(W.any(axis=1)), W.shape[1]
    if K not in FEW_OUTPUTS and FEW_ROWS * some.size > W.shape[0]:
        return samples.times(W)
    wide = -(-K // 4) * 4  # zeros up to a multiple of four, for the kernel
    chosen, out = np.zeros((some.size, wide)), np.empty((samples.stored.shape[0], wide))
    chosen[:, :K] = W[some]
    panels.tdot(samples.stored, some, chosen, out)
    return np.ascontiguousarray(out[:, :K])
