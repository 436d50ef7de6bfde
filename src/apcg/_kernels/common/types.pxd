# Shared types; there is no module behind this file.

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    /* A change of a coordinate by less than this, relative to it, is rounding. */
    #define APCG_ROUNDING 2.3e-16
    """
    const double ROUNDING "APCG_ROUNDING"

ctypedef fused value_t:
    float
    double

ctypedef fused index_t:
    int32_t
    int64_t

ctypedef double (*scalar_fn)(double t, const double *theta) noexcept nogil
ctypedef double (*prox_fn)(double v, double step, const double *theta) noexcept nogil
ctypedef double (*block_fn)(const double *x, Py_ssize_t size, const double *theta) noexcept nogil
ctypedef void (*block_prox_fn)(
    double *v, Py_ssize_t size, double step, const double *theta) noexcept nogil


cdef inline double scaled_conjugate(
        scalar_fn function, double x, double s, const double *theta) noexcept nogil:
    """function(x/s), where x was made as s times a bound of the domain, and x/s may be outside it by
    a rounding; 0 is in every domain."""
    cdef double value = function(x / s, theta)
    if value - value != 0.0 and s != 1.0:
        value = function(x / s * (1.0 - 4.5e-16), theta)
    return value


cdef struct Sum:
    double high, low


cdef inline void add(Sum *total, double x) noexcept nogil:
    """Neumaier's compensated sum: a gap at rounding level is a difference of two such sums."""
    cdef double s = total.high + x
    if s - s == 0.0:  # an infinite sum has no correction
        total.low += (total.high - s) + x if fabs(total.high) >= fabs(x) else (x - s) + total.high
    total.high = s
