# What the sweeps over blocks share; `blocks.pyx` has the mathematics.

from libc.math cimport INFINITY, fabs

from ..losses.scalar cimport slope
from ..data.products_k cimport Products

cdef extern from "many_outputs.h" nogil:
    double softmax "apcg_softmax"(const double *t, double *p, Py_ssize_t size)
    double divergence "apcg_divergence"(const double *z, const double *p, double lse,
                                        const double *pi, const double *theta, Py_ssize_t size)
    double distance "apcg_distance"(const double *p, const double *pi, Py_ssize_t size)
    double bernoulli "apcg_bernoulli"(const double *m, const double *a, Py_ssize_t size)
    void logistic_root "apcg_logistic_root"(double *eta, double *a, const double *b, double rho,
                                            double enough, Py_ssize_t size)
    void before "apcg_before"(const double *p, const double *q, const double *u, const double *v,
                              double half, double *z, double *y, double *c, Py_ssize_t size)
    void centre "apcg_centre"(const double *y, const double *c, double L, double gamma, double *z,
                              Py_ssize_t size)
    bint after "apcg_after"(const double *new, const double *c, double a, double b, double weight,
                            const double *labels, double border, double scale, double *u, double *v,
                            double *pb, double *qb, double *du, double *dv, Py_ssize_t size)
    void alone "apcg_alone"(const double *b, const double *x, double c, Py_ssize_t label, double *z,
                            Py_ssize_t size)
    double move "apcg_move"(const double *new, double weight, const double *labels, double border,
                            double scale, double *x, double *b, double *h, Py_ssize_t size)
    int softmax_root_near "apcg_softmax_root"(double *theta, double *pi, const double *b, double rho,
                                              double enough, Py_ssize_t size)

cdef enum Kind:
    SOFTMAX = 0   # pi in the simplex, sum pi log pi
    SIMPLEX = 1   # pi in the simplex, -(1 - pi_y) + (gamma/2)|pi - e|^2
    COLUMNS = 2   # each output by itself, a loss of the interval family
    LOGISTIC = 3  # each output by itself, the logistic loss


cdef class Blocks:
    cdef readonly int kind
    cdef readonly Py_ssize_t features, K, size
    cdef const int[::1] labels, far
    cdef const double[:, ::1] targets
    cdef const double[::1] weights, q, theta, alone
    cdef readonly double gamma, scale, border, threshold, factor, enough
    cdef bint margin


cdef class Count:
    cdef public double est, high
    cdef public long long work, solved, rescued


cdef void softmax_root(double *theta, double *pi, const double *b, double rho, double enough,
                       Py_ssize_t K, Py_ssize_t size) noexcept nogil
cdef void project(const double *b, double rho, double *pi, Py_ssize_t K) noexcept nogil


cdef extern from "vectors.h" nogil:
    void fetch "APCG_FETCH"(const void *address)


cdef inline void fetch_row(const double *row, Py_ssize_t size) noexcept nogil:
    """Bring a row of a state to the cache."""
    cdef Py_ssize_t k
    for k in range(0, size, 8):
        fetch(row + k)


cdef inline void fetch_far(Blocks blocks, Products use, Py_ssize_t i, const void *columns,
                           const Py_ssize_t *bounds, Py_ssize_t index_size, const double *W,
                           Py_ssize_t stride) noexcept nogil:
    """Bring the rows of W that row i needs to the cache, as far as they are not there anyway."""
    cdef Py_ssize_t count
    if i >= 0 and blocks.far.shape[0]:
        count = min(bounds[1], <Py_ssize_t> blocks.far[i])  # 0 in a copy without this row
        use.fetch(<const char *> columns + (bounds[0] + bounds[1] - count) * index_size, count, W,
                  stride)


cdef inline void complete(double *z, Py_ssize_t K, Py_ssize_t size) noexcept nogil:
    """Pads far below all others."""
    cdef Py_ssize_t k
    cdef double least = z[0]
    for k in range(1, K):
        least = z[k] if z[k] < least else least
    for k in range(K, size):
        z[k] = least - 2000.0


cdef inline void add_alone(Blocks blocks, Py_ssize_t i, const double *b, const double *x, double *z
                           ) noexcept nogil:
    """z += b, and what features that row i has alone add, with x for its block."""
    cdef Py_ssize_t k
    cdef double c = blocks.alone[i] if blocks.alone.shape[0] else 0.0
    if blocks.kind < COLUMNS:
        alone(b, x, c, blocks.labels[i], z, blocks.size)
        return
    for k in range(blocks.K):
        z[k] += b[k] + c * x[k] * (blocks.targets[i, k] if blocks.margin else 1.0)


# ---- parts of the gap -------------------------------------------------------------------------------

cdef inline double simplex_part(const double *A, const double *pi, double gamma, double *p,
                                Py_ssize_t K) noexcept nogil:
    """phi(z) + phi*(pi - e) + <z, e - pi>, with A = z + 1 - e + gamma e; p is room."""
    cdef Py_ssize_t k
    cdef double total = 0.0, top = -INFINITY, d
    if gamma == 0.0:
        for k in range(K):
            top = A[k] if A[k] > top else top
        for k in range(K):
            total += (top - A[k]) * pi[k]
        return total
    project(A, gamma, p, K)
    for k in range(K):
        d = p[k] - pi[k]
        total += d * (A[k] - gamma * p[k] + 0.5 * gamma * d)
    return total if total > 0.0 else 0.0


cdef inline double column_part(double m, double a, const double *theta) noexcept nogil:
    """phi(m) + phi*(-a) + m a of the interval family, in a form that does not cancel."""
    cdef double p = slope(m, theta)
    return (p - a) * (theta[0] - m - 0.5 * theta[2] * (p + a)) - theta[1] * (fabs(p) - fabs(a))


cdef inline double lead_at_vertex(const double *A, const double *pi, double gamma, Py_ssize_t K
                                  ) noexcept nogil:
    """At a vertex, by how much its slope A - gamma is above the others, at rest if it is; else -1."""
    cdef Py_ssize_t k, at = -1
    cdef double other = -INFINITY
    for k in range(K):
        if pi[k] == 1.0:
            at = k
        elif A[k] > other:
            other = A[k]
        if pi[k] != 0.0 and pi[k] != 1.0:
            return -1.0
    if at < 0:
        return -1.0
    return A[at] - gamma - other


cdef inline int few_changed(const double *h, Py_ssize_t K, Py_ssize_t size, int *which
                            ) noexcept nogil:
    """How many classes have changed, and which, if they are few; else -1."""
    cdef Py_ssize_t k
    cdef int count = 0
    for k in range(K):
        if h[k] != 0.0:
            if 3 * (count + 1) > size or count == 16:
                return -1
            which[count] = <int> k
            count += 1
    return count
