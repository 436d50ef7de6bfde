"""Some columns of sparse data by rows, to multiply with their Gram matrix.

A row's entries are positions in the set and values in float. By columns such a product takes two
passes, over vectors as long as there are rows; by rows one, over vectors as long as the set.
"""

from libc.stdint cimport int32_t, int64_t

from .types cimport index_t, value_t


def gather(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
           const int32_t[::1] place, int64_t[::1] start, int32_t[::1] positions,
           float[::1] values):
    """The entries of a CSR matrix whose column has a position: `place` is not negative for it.

    There is room for one more: each entry is written, and stays if it has a position. (With a
    branch instead, which cannot be predicted, it takes three times as long.)
    """
    cdef Py_ssize_t i, k, n = indptr.shape[0] - 1
    cdef int64_t at = 0
    cdef int32_t position
    with nogil:
        start[0] = 0
        for i in range(n):
            for k in range(indptr[i], indptr[i + 1]):
                position = place[indices[k]]
                positions[at], values[at] = position, <float> data[k]
                at += position >= 0
            start[i + 1] = at


def times(const int64_t[::1] start, const int32_t[::1] positions, const float[::1] values,
          const double[::1] bend, const double[::1] p, double[::1] out):
    """out = sum_i bend_i A_i <A_i, p> over the rows A_i; bend has an entry for each, or one"""
    cdef Py_ssize_t i, k, n = start.shape[0] - 1, mask = -1 if bend.shape[0] > 1 else 0
    cdef int64_t end
    cdef double s0, s1, s2, s3
    out[:] = 0.0
    with nogil:
        for i in range(n):
            s0 = s1 = s2 = s3 = 0.0
            k, end = start[i], start[i + 1]
            while k + 3 < end:
                s0 += values[k] * p[positions[k]]
                s1 += values[k + 1] * p[positions[k + 1]]
                s2 += values[k + 2] * p[positions[k + 2]]
                s3 += values[k + 3] * p[positions[k + 3]]
                k += 4
            while k < end:
                s0 += values[k] * p[positions[k]]
                k += 1
            s0 = bend[i & mask] * ((s0 + s1) + (s2 + s3))
            for k in range(start[i], end):
                out[positions[k]] += s0 * values[k]


def gram(const int64_t[::1] start, const int32_t[::1] positions, const float[::1] values,
         const double[::1] bend, double least, float[:, ::1] out):
    """The upper triangle of sum_i bend_i A_i A_i', added to out.

    Rows with a smaller bend than `least` are left out.
    """
    cdef Py_ssize_t i, k, l, n = start.shape[0] - 1, mask = -1 if bend.shape[0] > 1 else 0
    cdef int32_t at, other
    cdef float x
    with nogil:
        for i in range(n):
            if bend[i & mask] < least:
                continue
            for k in range(start[i], start[i + 1]):
                at, x = positions[k], <float> bend[i & mask] * values[k]
                for l in range(k, start[i + 1]):
                    other = positions[l]
                    if other >= at:  # always so, if the matrix is sorted
                        out[at, other] += x * values[l]
                    else:
                        out[other, at] += x * values[l]
