"""Some columns of sparse data by rows, to multiply with their Gram matrix.

A row's entries are positions in the set and values in float. By columns such a product takes two
passes, over vectors as long as there are rows; by rows one, over vectors as long as the set.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memset

from ..common.types cimport index_t, value_t

cdef extern from "support_rows.h" nogil:
    void apcg_by_rows_near(const int64_t *start, const uint16_t *at, const float *values,
                           Py_ssize_t n, const float *bend, Py_ssize_t mask, const float *p,
                           float *out)
    void apcg_by_rows_far(const int64_t *start, const int32_t *at, const float *values,
                          Py_ssize_t n, const float *bend, Py_ssize_t mask, const float *p,
                          float *out)

ctypedef fused position_t:
    uint16_t
    int32_t


def lengths(const index_t[::1] indices, const index_t[::1] indptr, const int32_t[::1] place,
            int64_t[::1] out):
    """How many entries of each row have a position: `place` is not negative for their columns."""
    cdef Py_ssize_t i, k
    cdef int64_t count
    with nogil:
        for i in range(out.shape[0]):
            count = 0
            for k in range(indptr[i], indptr[i + 1]):
                count += place[indices[k]] >= 0
            out[i] = count


def gather(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
           const int32_t[::1] place, double scale, const int64_t[::1] order, int64_t[::1] start,
           position_t[::1] positions, float[::1] values):
    """The entries that have a position, times scale, with the rows in this order.

    There is room for one entry more: each is written, and stays if it has a position. (With a branch
    instead, which cannot be predicted, it takes three times as long.)
    """
    cdef Py_ssize_t i, k, n = order.shape[0]
    cdef int64_t at = 0
    cdef int32_t position
    with nogil:
        start[0] = 0
        for i in range(n):
            for k in range(indptr[order[i]], indptr[order[i] + 1]):
                position = place[indices[k]]
                positions[at], values[at] = <position_t> position, <float> (scale * data[k])
                at += position >= 0
            start[i + 1] = at


cdef class Rows:
    """The rows A_i of a set of columns; their positions are numbers of 16 bits, or of 32."""

    cdef const int64_t[::1] _start
    cdef const uint16_t[::1] _near
    cdef const int32_t[::1] _far
    cdef const float[::1] _values
    cdef bint _short

    def __init__(self, const int64_t[::1] start, positions, const float[::1] values):
        self._start, self._values, self._short = start, values, positions.itemsize == 2
        if self._short:
            self._near = positions
        else:
            self._far = positions

    def product(self, const float[::1] bend, const int64_t[::1] at, double scale,
                const double[::1] way, double[::1] made, float[::1] p, float[::1] out):
        """made = C'diag(bend)C way; column k of C is scale times the one at the position at_k.

        p and out have room for the set; p is 0 where no at_k is.
        """
        cdef Py_ssize_t k, count = at.shape[0], mask = -1 if bend.shape[0] > 1 else 0
        cdef Py_ssize_t n = self._start.shape[0] - 1
        cdef double most = 0.0
        with nogil:
            for k in range(count):
                most = max(most, fabs(scale * way[k]))
            most = most if most > 0.0 else 1.0
            for k in range(count):  # as parts of the largest: float has no small numbers
                p[at[k]] = <float> (scale * way[k] / most)
            memset(&out[0], 0, out.shape[0] * sizeof(float))
            if self._short:
                apcg_by_rows_near(&self._start[0], &self._near[0], &self._values[0], n, &bend[0],
                                  mask, &p[0], &out[0])
            else:
                apcg_by_rows_far(&self._start[0], &self._far[0], &self._values[0], n, &bend[0],
                                 mask, &p[0], &out[0])
            for k in range(count):
                made[k] = most * scale * out[at[k]]
