"""The softmax on dense rows of few features: losses, gradient, Hessian, leverages.

X is (n, d) by rows and is read where it is. `index` says which of its rows; if it is empty, all.
`weights` has a number for each of them, or one for all. W and gradients are (D, K), with D = d, or
d + 1 if X has a border of ones: the intercepts. The sizes of all arrays are trusted.
"""

import numpy as np

from libc.stdint cimport int64_t

from ..common.types cimport value_t

cdef extern from "softmax_rows.h" nogil:
    const Py_ssize_t ROWS "APCG_ROWS"
    ctypedef struct apcg_some_rows:
        const void *X
        size_t size
        const int64_t *index
        Py_ssize_t count, stored, D
        const int *label
        const double *weight
        Py_ssize_t mask
    double apcg_softmax_evaluate(const apcg_some_rows *rows, const double *W, Py_ssize_t K,
                                 double *T, double *Z, double *G, double *x)
    void apcg_softmax_blocks(const apcg_some_rows *rows, const double *x, Py_ssize_t K, double *T,
                             double *V, double *C)
    void apcg_leverages(const apcg_some_rows *rows, const double *U, double *T, double *out)


cdef apcg_some_rows some_rows(const value_t[:, ::1] X, bint border, const int64_t[::1] index,
                              const int[::1] y, const double[::1] weights) noexcept:
    cdef Py_ssize_t count = index.shape[0] or X.shape[0], d = X.shape[1]
    cdef const int64_t *some = &index[0] if index.shape[0] else NULL
    cdef Py_ssize_t mask = -1 if weights.shape[0] > 1 else 0
    return apcg_some_rows(&X[0, 0], sizeof(value_t), some, count, d, d + border, &y[0],
                          &weights[0], mask)


def evaluate(const value_t[:, ::1] X, bint border, const int64_t[::1] index, const int[::1] y,
             const double[::1] weights, const double[:, ::1] W, double[:, ::1] gradient,
             double[:, ::1] x) -> float:
    """The sum of s phi at W; its gradient, and x = s (e - pi) of each row."""
    cdef apcg_some_rows rows = some_rows(X, border, index, y, weights)
    cdef Py_ssize_t K = W.shape[1]
    cdef double[:, ::1] room = np.empty((rows.D + K + 2, ROWS))
    cdef double total
    gradient[:, :] = 0.0
    with nogil:
        total = apcg_softmax_evaluate(&rows, &W[0, 0], K, &room[0, 0], &room[rows.D, 0],
                                      &gradient[0, 0], &x[0, 0])
    return total


def hessian(const value_t[:, ::1] X, bint border, const int64_t[::1] index, const int[::1] y,
            const double[::1] weights, const double[:, ::1] x, double[:, ::1] H):
    """The upper triangle of the Hessian at x = s (e - pi), entry (j, k) of W at k D + j.

    Along W with equal columns it is flat. There it gets its own mean curvature: gradients have no
    part there, and so no step does.
    """
    cdef apcg_some_rows rows = some_rows(X, border, index, y, weights)
    cdef Py_ssize_t K = x.shape[1], D = rows.D, pairs = K * (K - 1) // 2, k, m, j, l, p = 0
    cdef double[:, ::1] room = np.empty((D + pairs + K, ROWS))
    cdef double[:, :, ::1] C = np.zeros((pairs, D, D))
    cdef double c
    with nogil:
        apcg_softmax_blocks(&rows, &x[0, 0], K, &room[0, 0], &room[D, 0], &C[0, 0, 0])
        for k in range(K * D):
            for j in range(k, K * D):
                H[k, j] = 0.0
        for k in range(K):
            for m in range(k + 1, K):
                for j in range(D):
                    for l in range(D):
                        c = C[p, min(j, l), max(j, l)]
                        H[k * D + j, m * D + l] = -c
                        if l >= j:
                            H[k * D + j, k * D + l] += c
                            H[m * D + j, m * D + l] += c
                p += 1
        for j in range(D):
            c = 0.0
            for k in range(K):
                c += H[k * D + j, k * D + j]
            c /= K * K
            for k in range(K):
                for m in range(k, K):
                    H[k * D + j, m * D + j] += c


def leverages(const value_t[:, ::1] X, bint border, const int[::1] y, const double[:, ::1] U,
              double[::1] out):
    """out_i = a_i' (U'U)^-1 a_i, U an upper triangle"""
    cdef const double[::1] one = np.ones(1)
    cdef const int64_t[::1] every = np.empty(0, dtype=np.int64)
    cdef apcg_some_rows rows = some_rows(X, border, every, y, one)
    cdef double[:, ::1] room = np.empty((rows.D, ROWS))
    with nogil:
        apcg_leverages(&rows, &U[0, 0], &room[0, 0], &out[0])
