"""Matrices as users give them and as they are kept, for tests against NumPy.

The entries are small multiples of 1/4, so that sums are exact in whatever order: results are equal,
not close.
"""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from apcg.data import Chunked, by_coordinate, by_row

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
quarters = st.integers(-8, 8).map(lambda k: k / 4)


def compressed(M, index, rng, *, by_columns=False, repeated=False, zeros=False, shuffled=False):
    """A CSR or CSC matrix equal to M, with repeated, zero and unsorted entries as asked for."""
    data, indices, indptr = [], [], [0]
    for line in M.T if by_columns else M:
        columns = np.flatnonzero((line != 0) | (zeros & (rng.random(line.size) < 0.3)))
        values = line[columns]
        if repeated and columns.size:
            part = rng.integers(-8, 9, columns.size).astype(M.dtype) / 4
            columns, values = np.r_[columns, columns], np.r_[values - part, part]
        order = rng.permutation(columns.size) if shuffled else np.argsort(columns, kind="stable")
        data.append(values[order])
        indices.append(columns[order])
        indptr.append(indptr[-1] + columns.size)
    made = (sp.csc_array if by_columns else sp.csr_array)(M.shape, dtype=M.dtype)
    made.data = np.concatenate(data).astype(M.dtype)
    made.indices, made.indptr = np.concatenate(indices).astype(index), np.array(indptr, dtype=index)
    return made


@st.composite
def matrices(draw):
    """(a matrix as a user may give it, the same as a dense float64 array)"""
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.4, 1.0]))
    M = rng.integers(-8, 9, (n, d)) / 4 * (rng.random((n, d)) < density)
    M[rng.random(n) < 0.2] = 0.0
    M[:, rng.random(d) < 0.2] = 0.0
    given = M.astype(draw(st.sampled_from([np.float32, np.float64])))
    kind = draw(st.sampled_from(["dense", "compressed", *FORMATS]))
    if kind == "dense":
        return draw(st.sampled_from([np.array, np.asfortranarray, np.ndarray.tolist]))(given), M
    if kind != "compressed":
        return sp.coo_array(given).asformat(kind), M
    options = {k: draw(st.booleans()) for k in ("by_columns", "repeated", "zeros", "shuffled")}
    return compressed(given, draw(st.sampled_from([np.int32, np.int64])), rng, **options), M


def parts_of(made, size):
    """The same matrix, which comes in parts of so many rows."""
    return Chunked([lambda part=part: part for _, part in made.chunks(size)])


@st.composite
def kept(draw, parts=True):
    """(X as it is kept, the same as an array)"""
    given, M = draw(matrices())
    M, made = (M.T, by_coordinate(given, "A")) if draw(st.booleans()) else (M, by_row(given, "X"))
    if parts and draw(st.booleans()):
        made = parts_of(made, draw(st.integers(1, len(M) + 1)))
    if draw(st.booleans()):
        c = draw(st.sampled_from([1.0, -0.25, 3.0]))
        return made.bordered(c), np.hstack([M, np.full((len(M), 1), c)])
    return made, M


def vector(data, size):
    return np.array(data.draw(st.lists(quarters, min_size=size, max_size=size)), dtype=float)


def some_of(data, size):
    return np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=5)), dtype=np.intp)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


# ---- entries that are not finite -----------------------------------------------------------------
