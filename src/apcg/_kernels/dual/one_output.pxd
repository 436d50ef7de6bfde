# What the plain and the accelerated sweep share; `one_output.pyx` has the mathematics.

from libc.math cimport exp, fabs, log

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
    cdef double scale, border, single, enough, easy


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


cdef inline double follow(double a, double d) noexcept nogil:
    """sigmoid(eta + d) for a = sigmoid(eta) and |d| <= 1/2: exp(d) as a quotient of polynomials,
    by Pade, is exact to 1e-10."""
    cdef double square = d * d, even = 1680.0 + square * (180.0 + square)
    cdef double odd = d * (840.0 + 20.0 * square)
    return a * (even + odd) / (even - odd + 2.0 * a * odd)


cdef inline double logistic_part(double m, double a, double eta) noexcept nogil:
    """phi(m) + phi*(-a) + m a, a = sigmoid(eta): by its second order unless m is far from -eta."""
    cdef double r = eta + m
    if -1.0 < r < 1.0:
        return 0.5 * a * (1.0 - a) * r * r
    # log(1 + exp(-m)) - log(1 + exp(eta)) + a r, where 1/(1 + exp(eta)) = 1 - a
    return log((1.0 + exp(-fabs(m))) * (a if eta > 0.0 else 1.0 - a)) + a * r - (
        max(eta, 0.0) + min(m, 0.0))


# ---- memory -------------------------------------------------------------------------------------

cdef inline void fetch_row(const value_t *data, const index_t *columns, Py_ssize_t start,
                           Py_ssize_t end) noexcept nogil:
    """Ask for a whole row, by cache lines."""
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


# What a step needs is asked for while earlier ones are made: the numbers of a row that comes some
# steps later, and half as many steps later its entries of w, if w is larger than a core's own cache.
cdef enum:
    KNOWN = 8  # steps; a power of two


cdef struct Order:
    # the rows of a sweep, KNOWN steps ahead of it; -1 for none
    const Py_ssize_t *keep
    const Py_ssize_t *begin
    const Py_ssize_t *end
    Py_ssize_t blocks, block, k, step, ahead, near, asked
    Py_ssize_t[KNOWN] coming


cdef inline Py_ssize_t next_row(Order *order) noexcept nogil:
    """The next row of the order, or less than 0: there is none, or it was dropped."""
    while order.k == order.end[order.block]:
        if order.block + 1 == order.blocks:
            return -1
        order.block += 1
        order.k = order.begin[order.block]
    order.k += 1
    return order.keep[order.k - 1]


cdef inline Order in_order(const Py_ssize_t *keep, const Py_ssize_t *begin,
                           const Py_ssize_t *end, Py_ssize_t blocks, Py_ssize_t ahead) noexcept nogil:
    """Before the first step."""
    cdef Order order
    cdef Py_ssize_t k
    order.keep, order.begin, order.end, order.blocks = keep, begin, end, blocks
    order.block, order.step, order.k = 0, 0, begin[0]
    order.ahead, order.near = ahead, (ahead + 1) // 2
    for k in range(KNOWN):
        order.coming[k] = next_row(&order)
    return order


cdef inline void look_ahead(Order *order, const value_t *data, const index_t *columns,
                            const index_t *indptr, const double *labels, const double *L,
                            const double *a, const double *eta, Py_ssize_t pair) noexcept nogil:
    """Before each step: ask for the rows that come. Row j has a[pair j] and eta[pair j].

    A row that follows its neighbour in X is asked for if rows are short, `every`. In long ones the
    processor sees by itself what comes.
    """
    cdef bint every = order.ahead == 4
    cdef Py_ssize_t last = order.coming[(order.step - 1) & (KNOWN - 1)], j = next_row(order)
    order.coming[order.step & (KNOWN - 1)] = j
    order.step += 1
    if j >= 0 and (every or j != last + 1):
        prefetch(indptr + j)
        prefetch(labels + j)
        prefetch(L + j)
        prefetch(a + pair * j)
        if eta != NULL:
            prefetch(eta + pair * j)
    last = order.coming[(order.step + order.ahead - 2) & (KNOWN - 1)]
    j = order.coming[(order.step + order.ahead - 1) & (KNOWN - 1)]
    if j >= 0 and (every or j != last + 1):
        fetch_row(data, columns, indptr[j], indptr[j + 1])


cdef inline void fetch_entries(Order *order, const index_t *columns, const index_t *indptr,
                               const double *w, Py_ssize_t pair) noexcept nogil:
    """In a step, when its own entries are here: ask for those of w that a row to come has."""
    cdef Py_ssize_t j = order.coming[(order.step + order.near - 1) & (KNOWN - 1)], k
    order.asked = j  # GCC leaves out a call that only asks
    if j >= 0:
        for k in range(indptr[j], indptr[j + 1]):
            prefetch(w + pair * columns[k])


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
