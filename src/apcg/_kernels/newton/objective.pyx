"""The losses of all rows with two derivatives, and a Cholesky factor, for Newton's method."""

from libc.math cimport sqrt

from ..losses.scalar cimport LossFunctions, find

cdef extern from "dense.h" nogil:
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
             double scale, double[::1] at, double[::1] slope,
             double[::1] bend) -> tuple[float, float, float]:
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


# ---- a factor ---------------------------------------------------------------------------------------

def scaled(const double[:, ::1] H, double jitter, double[::1] scale, double[:, ::1] out):
    """The upper triangle of H with rows and columns times scale = 1/sqrt(diagonal), plus jitter."""
    cdef Py_ssize_t i, j, size = H.shape[0]
    with nogil:
        for i in range(size):
            scale[i] = 1.0 / sqrt(H[i, i])
        for i in range(size):
            for j in range(i, size):
                out[i, j] = H[i, j] * scale[i] * scale[j]
            out[i, i] = out[i, i] + jitter


def cholesky(double[:, ::1] A, double least) -> bool:
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
