"""What runs on small dense problems share: sums, and a factor that may be refused."""

from libc.math cimport fabs, sqrt

cdef extern from "dense.h" nogil:
    const Py_ssize_t APCG_GRAM_BLOCK
    Py_ssize_t apcg_gram_double(const double *data, Py_ssize_t n, Py_ssize_t d,
                                const double *weight, int border, double *room, double *out)
    void apcg_add_rows_double(const double *data, Py_ssize_t n, Py_ssize_t d, const double *weight,
                              double *out)
    int apcg_cholesky(double *A, Py_ssize_t size, double least)
    void apcg_cholesky_solve(const double *U, Py_ssize_t size, double *x)
    double apcg_dot_double(const double *a, const double *x, Py_ssize_t size)
    void apcg_times_double(const double *data, Py_ssize_t n, Py_ssize_t d, const double *w,
                           double b, double *z)

cdef enum:
    BLOCK = 256  # rows that are read, and read again while they are in the cache


cdef inline double sum_of(const double *x, Py_ssize_t n, bint sizes) noexcept nogil:
    """The sum of x, or of |x|; in four parts, none of which waits for another."""
    cdef double[4] part = [0.0, 0.0, 0.0, 0.0]
    cdef Py_ssize_t i
    cdef int k
    for i in range(0, n - 3, 4):
        for k in range(4):
            part[k] += fabs(x[i + k]) if sizes else x[i + k]
    for i in range(n & ~<Py_ssize_t>3, n):
        part[0] += fabs(x[i]) if sizes else x[i]
    return (part[0] + part[2]) + (part[1] + part[3])


cdef inline bint factor_of(double *H, Py_ssize_t size, double least, double *scale) noexcept nogil:
    """A factor of the unit diagonal form of H in its place; whether it can be trusted."""
    cdef Py_ssize_t j, k
    for j in range(size):
        if not H[j * size + j] > 0.0:
            return False
        scale[j] = 1.0 / sqrt(H[j * size + j])
    for j in range(size):
        for k in range(j, size):
            H[j * size + k] *= scale[j] * scale[k]
    return apcg_cholesky(H, size, least)


cdef inline void solve_by(const double *H, Py_ssize_t size, const double *scale, const double *g,
                   double *way) noexcept nogil:
    """way = H^-1 g, by the factor."""
    cdef Py_ssize_t j
    for j in range(size):
        way[j] = scale[j] * g[j]
    apcg_cholesky_solve(H, size, way)
    for j in range(size):
        way[j] *= scale[j]
