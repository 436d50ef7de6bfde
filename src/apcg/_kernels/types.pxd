# Shared types; there is no module behind this file.

from libc.stdint cimport int32_t, int64_t

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
