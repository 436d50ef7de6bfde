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

    def step(self, const float[::1] bend, const int64_t[::1] at, double scale,
             const double[::1] b, const double[::1] mean, const double[::1] z, double size,
             double turn, double[:, ::1] state, float[::1] p, float[::1] out) -> float:
        """An iteration of conjugate gradients: the greatest |left_k| then; negative if it failed.

        The matrix is C'diag(bend)C - mean mean' + diag(b), where column k of C is scale times the
        one at the position at_k of the set; z is the residual, preconditioned, size its product with
        that, and turn this size over the last one. `state` is the way, the step and what is left,
        and has room for a product. p and out have room for the set; p is 0 where no at_k is.
        """
        cdef Py_ssize_t k, count = at.shape[0], mask = -1 if bend.shape[0] > 1 else 0
        cdef Py_ssize_t n = self._start.shape[0] - 1
        cdef double most = 0.0, worst = -1.0, shift = 0.0, steep = 0.0, x
        cdef double *way = &state[0, 0]
        cdef double *step = &state[1, 0]
        cdef double *left = &state[2, 0]
        cdef double *turned = &state[3, 0]
        with nogil:
            for k in range(count):
                way[k] = z[k] + turn * way[k]
                x = fabs(scale * way[k])
                most = x if x > most else most
            for k in range(mean.shape[0]):
                shift += mean[k] * way[k]
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
                turned[k] = most * scale * out[at[k]] + b[k] * way[k]
                if mean.shape[0]:
                    turned[k] -= shift * mean[k]
                steep += turned[k] * way[k]
            if steep > 0.0:
                worst, steep = 0.0, size / steep
                for k in range(count):
                    step[k] += steep * way[k]
                    left[k] -= steep * turned[k]
                    worst = fabs(left[k]) if fabs(left[k]) > worst else worst
        return worst
