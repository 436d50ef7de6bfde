"""The softmax of all rows: its losses, slopes and probabilities. Arrays are (n, K), by rows."""

import numpy as np

from libc.math cimport log1p

from ..dual.many_outputs cimport complete, softmax
from ..common.types cimport Sum, add


def evaluate(const double[:, ::1] z, const double[:, ::1] way, double t, const int[::1] y,
             const double[::1] weights, double scale, double[:, ::1] at, double[:, ::1] slope,
             double[:, ::1] pi) -> float:
    """At z + t way: the sum of s_i phi_i times scale, s_i scale (pi - e), and pi.

    1 - pi_y is the sum of the others, so that slopes do not cancel, nor losses that are small.
    """
    cdef Py_ssize_t i, k, n = z.shape[0], K = z.shape[1], size = (K + 3) // 4 * 4
    cdef Py_ssize_t mask = -1 if weights.shape[0] > 1 else 0
    cdef double[:, ::1] room = np.empty((2, size))
    cdef double *a = &room[0, 0]
    cdef double *p = &room[1, 0]
    cdef double s, lse, others
    cdef int label
    cdef Sum total = Sum(0.0, 0.0)
    with nogil:
        for i in range(n):
            for k in range(K):
                a[k] = at[i, k] = z[i, k] + t * way[i, k]
            complete(a, K, size)
            lse = softmax(a, p, size)
            s, label, others = weights[i & mask] * scale, y[i], 0.0
            for k in range(K):
                pi[i, k] = p[k]
                slope[i, k] = s * p[k]
                others += p[k] if k != label else 0.0
            slope[i, label] = -s * others
            if s != 0.0:
                add(&total, s * (-log1p(-others) if others < 0.5 else lse - a[label]))
    return total.high + total.low
