# What the plain and the accelerated sweep share; `one_output.pyx` has the mathematics.

from libc.math cimport exp, fabs, log1p

from ..losses.scalar cimport slope
from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    void prefetch "APCG_PREFETCH"(const void *address)


cdef extern from "dense.h" nogil:
    double apcg_row_dot_double(const double *a, const double *x, Py_ssize_t size)
    double apcg_row_dot_float(const float *a, const double *x, Py_ssize_t size)
    void apcg_row_add_double(const double *a, Py_ssize_t size, double *x, double dx)
    void apcg_row_add_float(const float *a, Py_ssize_t size, double *x, double dx)


cdef class Rows:
    cdef const double[::1] theta, labels, weights, L
    cdef bint logistic, margin
    cdef Py_ssize_t features, ahead
    cdef bint far
    cdef double scale, border, series, enough, easy


cdef class Tally:
    cdef public double low, high, least, greatest, est
    cdef public long long work


# ---- the interval family ----------------------------------------------------------------------

cdef inline double part_of_gap(double m, double a, const double *theta) noexcept nogil:
    """phi(m) + phi*(-a) + m a, in a form that does not cancel."""
    cdef double p = slope(m, theta)
    if p == a:
        return 0.0
    return (p - a) * (theta[0] - m - 0.5 * theta[2] * (p + a)) - theta[1] * (fabs(p) - fabs(a))


cdef inline bint rests(double a, double G, const double *theta, Tally tally, bint *drop
                       ) noexcept nogil:
    """Whether no step from a raises the dual; if so, whether to drop the row.

    The slopes of the dual to the right and to the left are G - epsilon and G + epsilon at 0, and
    the same on both sides elsewhere. The one that points to a better a is noted.
    """
    cdef double right = G, left = G
    if theta[1] > 0.0:
        right = G - theta[1] if a >= 0.0 else G + theta[1]
        left = G - theta[1] if a > 0.0 else G + theta[1]
    if a < theta[4] and right > 0.0:
        if right > tally.greatest:
            tally.greatest = right
        return False
    if a > theta[3] and left < 0.0:
        if left < tally.least:
            tally.least = left
        return False
    drop[0] = (a >= theta[4] or right < tally.low) and (a <= theta[3] or left > tally.high)
    return True


# ---- logistic -----------------------------------------------------------------------------------

cdef inline double sigmoid(double eta) noexcept nogil:
    cdef double e
    if eta > 0.0:
        return 1.0 / (1.0 + exp(-eta))
    e = exp(eta)
    return e / (1.0 + e)


cdef inline double softplus(double t) noexcept nogil:
    return t + log1p(exp(-t)) if t > 0.0 else log1p(exp(t))


cdef inline double follow(double a, double d) noexcept nogil:
    """sigmoid(eta + d) for a = sigmoid(eta) and a small d, to the third order."""
    cdef double w = a * (1.0 - a)
    return a + w * d * (1.0 + d * ((0.5 - a) + d * (1.0 - 6.0 * w) / 6.0))


cdef inline double logistic_part(double m, double a, double eta) noexcept nogil:
    """phi(m) + phi*(-a) + m a, by its second order unless m is far from -eta."""
    cdef double r = eta + m
    if -1.0 < r < 1.0:
        return 0.5 * a * (1.0 - a) * r * r
    return softplus(-m) - softplus(eta) + a * r


# ---- memory -------------------------------------------------------------------------------------

cdef inline void fetch_row(const value_t *data, const index_t *columns, Py_ssize_t start,
                           Py_ssize_t end) noexcept nogil:
    """Ask for a whole row, by cache lines: of its place no hardware can know where rows were left
    out or a block ends."""
    cdef const char *at = <const char *> (data + start)
    cdef const char *past = <const char *> (data + end)
    while at < past:
        prefetch(at)
        at += 64
    at = <const char *> (columns + start)
    past = <const char *> (columns + end)
    while at < past:
        prefetch(at)
        at += 64


cdef inline void fetch_entries(const index_t *columns, Py_ssize_t start, Py_ssize_t end,
                               const double *w) noexcept nogil:
    """Ask for the entries of w that a row has."""
    cdef Py_ssize_t k
    for k in range(start, end):
        prefetch(w + columns[k])


cdef inline void fetch_dense(const value_t *row, Py_ssize_t size) noexcept nogil:
    """The same of a dense row; of a long one the hardware sees what comes after its first part."""
    cdef const char *at = <const char *> row
    cdef const char *past = <const char *> (row + size)
    past = past if past - at < 1024 else at + 1024
    while at < past:
        prefetch(at)
        at += 64


# ---- dense rows ---------------------------------------------------------------------------------

cdef inline double row_dot(const value_t *a, const double *x, Py_ssize_t size) noexcept nogil:
    """<a, x>"""
    if value_t is double:
        return apcg_row_dot_double(a, x, size)
    else:
        return apcg_row_dot_float(a, x, size)


cdef inline void row_add(const value_t *a, Py_ssize_t size, double *x, double dx) noexcept nogil:
    """x += dx a"""
    if value_t is double:
        apcg_row_add_double(a, size, x, dx)
    else:
        apcg_row_add_float(a, size, x, dx)
