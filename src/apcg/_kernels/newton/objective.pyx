"""Passes of Newton's method over the rows of X: losses, products with the Hessian, Gram matrices.

X is given in CSR form or dense with an empty indptr, float32 or float64; all sums are double. With
an intercept vectors and matrices have one more entry at the end, for a column of ones that is
stored nowhere: `border`. Symmetric matrices are by rows, with their upper triangle.
"""

import numpy as np

from libc.math cimport sqrt

from ..losses.scalar cimport LossFunctions, find
from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)
    void dense_add1(const void *a, Py_ssize_t m, double *x, double dx)

cdef extern from "dense.h" nogil:
    Py_ssize_t APCG_GRAM_BLOCK
    Py_ssize_t apcg_gram_double(const double *data, Py_ssize_t n, Py_ssize_t d,
                                const double *weight, int border, double *room, double *out)
    Py_ssize_t apcg_gram_float(const float *data, Py_ssize_t n, Py_ssize_t d,
                               const double *weight, int border, double *room, double *out)
    void apcg_add_rows_double(const double *data, Py_ssize_t n, Py_ssize_t d,
                              const double *weight, double *out)
    void apcg_add_rows_float(const float *data, Py_ssize_t n, Py_ssize_t d,
                             const double *weight, double *out)
    double apcg_dot_double(const double *a, const double *x, Py_ssize_t size)
    double apcg_dot_float(const float *a, const double *x, Py_ssize_t size)
    int apcg_cholesky(double *A, Py_ssize_t size, double least)
    void apcg_cholesky_solve(const double *U, Py_ssize_t size, double *x)


# ---- the losses of all rows -----------------------------------------------------------------------

cdef extern from "loss_derivatives.h" nogil:
    ctypedef struct apcg_along:
        double value, first, second
    ctypedef struct apcg_rows:
        const double *z
        const double *way
        const double *label
        const double *weight
        Py_ssize_t mask
        double t, scale
        int margin
        double *at
        double *slope
        double *bend
    apcg_along apcg_logistic(const apcg_rows *rows, Py_ssize_t n)
    apcg_along apcg_interval(const apcg_rows *rows, Py_ssize_t n, const double *theta)


cdef apcg_along by_pointer(const apcg_rows *rows, Py_ssize_t n, const LossFunctions *loss,
                           const double *theta) noexcept nogil:
    """Any other loss."""
    cdef apcg_along total = apcg_along(0.0, 0.0, 0.0)
    cdef double s, sign = 1.0, m, value = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        s = rows.scale * rows.weight[i & rows.mask]
        rows.at[i] = rows.z[i] + rows.t * rows.way[i]
        if rows.margin:
            sign = rows.label[i]
            m = sign * rows.at[i]
        else:
            m = rows.at[i] - rows.label[i]
        value += s * loss.value(m, theta)
        rows.slope[i] = s * sign * loss.derivative(m, theta)
        rows.bend[i] = s * loss.curvature(m, theta)
        total.first += rows.slope[i] * rows.way[i]
        total.second += rows.bend[i] * rows.way[i] * rows.way[i]
        if i & 255 == 255:  # short sums lose fewer digits
            total.value += value
            value = 0.0
    total.value += value
    return total


def evaluate(str name, const double[::1] theta, const double[::1] z, const double[::1] way,
             double t, const double[::1] labels, bint margin, const double[::1] weights,
             double scale, double[::1] at, double[::1] slope, double[::1] bend):
    """The losses at z + t way: their sum, and its first and second derivative in t.

    Row i has the weight scale weights_i, and writes to its entry of `at` (z + t way), `slope` and
    `bend` (the first and second derivative in z).
    """
    cdef LossFunctions loss = find(name)
    cdef Py_ssize_t n = z.shape[0]
    cdef apcg_rows rows
    cdef apcg_along total
    if n == 0:
        return 0.0, 0.0, 0.0
    rows = apcg_rows(&z[0], &way[0], &labels[0], &weights[0], -1 if weights.shape[0] > 1 else 0, t,
                     scale, margin, &at[0], &slope[0], &bend[0])
    cdef bint logistic = name == "logistic" and margin, interval = name == "interval"
    with nogil:
        if logistic:
            total = apcg_logistic(&rows, n)
        elif interval:
            total = apcg_interval(&rows, n, &theta[0])
        else:
            total = by_pointer(&rows, n, &loss, &theta[0])
    return total.value, total.first, total.second


# ---- products with X ------------------------------------------------------------------------------

cdef inline double row_dot(const value_t *a, const index_t *columns, Py_ssize_t size,
                           const double *x) noexcept nogil:
    """<A_i, x> of a sparse row."""
    cdef double total = 0.0
    sparse_dot1_wide(a, columns, size, x, total)
    return total


cdef inline double dense_dot(const value_t *a, Py_ssize_t size, const double *x) noexcept nogil:
    if value_t is double:
        return apcg_dot_double(a, x, size)
    else:
        return apcg_dot_float(a, x, size)


def margins(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, bint border, const double[::1] w, double[::1] out):
    """out_i = <A_i, w>"""
    cdef Py_ssize_t i, first
    cdef double edge = w[d] if border else 0.0
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    with nogil:
        for i in range(out.shape[0]):
            if sparse:
                first = indptr[i]
                out[i] = edge + row_dot(a + first, columns + first, indptr[i + 1] - first, &w[0])
            else:
                out[i] = edge + dense_dot(a + i * d, d, &w[0])


def gradient(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
             Py_ssize_t d, bint border, const double[::1] slope, double[::1] out):
    """out += sum_i slope_i A_i"""
    cdef Py_ssize_t i, first, n = slope.shape[0]
    cdef double edge = 0.0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    with nogil:
        if border:
            for i in range(n):
                edge += slope[i]
            out[d] += edge
        if n == 0:
            pass
        elif indptr.shape[0] == 0:
            if value_t is double:
                apcg_add_rows_double(a, n, d, &slope[0], &out[0])
            else:
                apcg_add_rows_float(a, n, d, &slope[0], &out[0])
        else:
            for i in range(n):
                if slope[i] != 0.0:
                    first = indptr[i]
                    sparse_add1(a + first, columns + first, indptr[i + 1] - first, &out[0],
                                slope[i])


def product(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, bint border, const double[::1] bend, const double[::1] p,
            double[::1] q, double[::1] out, double last, double[::1] total_q):
    """q_i = <A_i, p> and out += sum_i bend_i q_i A_i, each row while it is in the cache.

    Before that total_q += last q, with the q of the last call.
    """
    cdef Py_ssize_t i, first = 0, size = d
    cdef double edge = p[d] if border else 0.0, total = 0.0, s
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    with nogil:
        for i in range(bend.shape[0]):
            total_q[i] += last * q[i]
            if sparse:
                first = indptr[i]
                size = indptr[i + 1] - first
                s = edge + row_dot(a + first, columns + first, size, &p[0])
            else:
                s = edge + dense_dot(a + i * d, d, &p[0])
            q[i] = s
            s *= bend[i]
            if s == 0.0:
                continue
            total += s
            if sparse:
                sparse_add1(a + first, columns + first, size, &out[0], s)
            else:
                dense_add1(a + i * d, d, &out[0], s)
    if border:
        out[d] += total


def column_squares(const value_t[::1] data, const index_t[::1] indices,
                   const index_t[::1] indptr, Py_ssize_t d, const double[::1] weights,
                   double[::1] out):
    """out_j += sum_i weight_i A_ij^2, with one weight for each row, or one for all"""
    cdef Py_ssize_t i, k, n = indptr.shape[0] - 1 if indptr.shape[0] else data.shape[0] // d
    cdef Py_ssize_t mask = -1 if weights.shape[0] > 1 else 0
    cdef double s
    with nogil:
        for i in range(n):
            s = weights[i & mask]
            if indptr.shape[0]:
                for k in range(indptr[i], indptr[i + 1]):
                    out[indices[k]] += s * data[k] * data[k]
            else:
                for k in range(d):
                    out[k] += s * data[i * d + k] * data[i * d + k]


def gram(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         Py_ssize_t d, bint border, const double[::1] weight, double[:, ::1] out):
    """out += the upper triangle of sum_i weight_i A_i A_i'; gives the multiply-adds that it took.

    What is below the diagonal of `out` is undefined afterwards.
    """
    cdef Py_ssize_t i, j, k, first, end, count = 0, size = out.shape[0]
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef double x
    cdef double *row
    if weight.shape[0] == 0:
        return 0
    cdef double[::1] room
    if indptr.shape[0] == 0:
        room = np.empty(2 * max(APCG_GRAM_BLOCK, size + 8))
        with nogil:
            if value_t is double:
                count = apcg_gram_double(
                    a, weight.shape[0], d, &weight[0], border, &room[0], &out[0, 0])
            else:
                count = apcg_gram_float(
                    a, weight.shape[0], d, &weight[0], border, &room[0], &out[0, 0])
        return count * size * (size + 1) // 2
    with nogil:
        for i in range(weight.shape[0]):
            if weight[i] == 0.0:
                continue
            first, end = indptr[i], indptr[i + 1]
            count += (end - first) * (end - first + 1) // 2
            for j in range(first, end):
                x = weight[i] * a[j]
                row = &out[indices[j], 0]
                for k in range(j, end):
                    row[indices[k]] += x * a[k]
                if border:
                    row[d] += x
            if border:
                out[d, d] += weight[i]
        for i in range(size):  # a row whose columns are not in order wrote below the diagonal
            for j in range(i):
                out[j, i] += out[i, j]
    return count


# ---- a factor ---------------------------------------------------------------------------------------

def scaled(double[:, ::1] H, double[::1] scale):
    """scale = 1/sqrt(diagonal of H), and the upper triangle of H times that, by rows and columns."""
    cdef Py_ssize_t i, j, size = H.shape[0]
    with nogil:
        for i in range(size):
            scale[i] = 1.0 / sqrt(H[i, i])
        for i in range(size):
            for j in range(i, size):
                H[i, j] = H[i, j] * scale[i] * scale[j]


def cholesky(double[:, ::1] A, double least):
    """A = U'U in place, for a diagonal of about 1; whether every pivot is above `least`."""
    cdef bint done
    with nogil:
        done = apcg_cholesky(&A[0, 0], A.shape[0], least)
    return done


def cholesky_solve(const double[:, ::1] U, const double[::1] scale, const double[::1] r,
                   double[::1] x):
    """x = S (U'U)^-1 S r, S diagonal"""
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            x[i] = scale[i] * r[i]
        apcg_cholesky_solve(&U[0, 0], U.shape[0], &x[0])
        for i in range(x.shape[0]):
            x[i] *= scale[i]
