# What the sweeps over blocks share; `blocks.pyx` has the mathematics.

cdef extern from "blocks.h" nogil:
    double softmax "apcg_softmax"(const double *t, double *p, Py_ssize_t size)
    double divergence "apcg_divergence"(const double *z, const double *p, double lse,
                                        const double *pi, const double *theta, Py_ssize_t size)
    double distance "apcg_distance"(const double *p, const double *pi, Py_ssize_t size)
    int softmax_root_near "apcg_softmax_root"(double *theta, double *pi, const double *b, double rho,
                                              double enough, Py_ssize_t size)

cdef enum Kind:
    SOFTMAX = 0   # pi in the simplex, sum pi log pi
    SIMPLEX = 1   # pi in the simplex, -(1 - pi_y) + (gamma/2)|pi - e|^2
    COLUMNS = 2   # each output by itself, a loss of the interval family


cdef class Blocks:
    cdef readonly int kind
    cdef readonly Py_ssize_t features, K, size
    cdef const int[::1] labels
    cdef const double[:, ::1] targets
    cdef const double[::1] weights, q, theta
    cdef readonly double gamma, scale, border, threshold, factor, enough
    cdef bint margin


cdef void softmax_root(double *theta, double *pi, const double *b, double rho, double enough,
                       Py_ssize_t K, Py_ssize_t size) noexcept nogil
cdef void project(const double *b, double rho, double *pi, Py_ssize_t K) noexcept nogil
