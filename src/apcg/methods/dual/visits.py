"""The order of a sweep in which row i has r_i visits, r_i a power of two."""

from __future__ import annotations

import numpy as np

from ..._base.validation import Index
from ..._kernels.dual.one_output_momentum import arrange

#: r_i is one of so many powers of two.
CLASSES = 5


def arranged(
    keep: Index, exponents: Index, counts: Index, lengths: Index, rng: np.random.Generator
) -> tuple[Index, tuple[Index, ...]]:
    """The rows by class, and the blocks of the sweep: begin, end, visits, last round or not.

    Row keep[k] has 2^exponents[k] visits. Class e has counts[e] rows, in blocks of lengths[e].
    """
    blocks = -(-counts // lengths)
    total = int(blocks @ (1 << np.arange(CLASSES)))
    listed, columns = np.empty(keep.size, dtype=np.intp), np.empty((4, total), dtype=np.intp)
    random = rng.integers(0, 1 << 32, size=total, dtype=np.uint32)
    room = np.empty(int(blocks.sum()), dtype=np.intp)
    arrange(keep, exponents, counts, lengths, random, listed, room, *columns)
    return listed, tuple(columns)
