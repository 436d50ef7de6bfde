# Products with K columns, for the sweeps over blocks.

cdef extern from "products_k.h" nogil:
    ctypedef struct Products "apcg_products":
        void (*dot1)(const void *a, const void *r, Py_ssize_t m, const double *W, Py_ssize_t size,
                     double half, double threshold, double factor, double *z) noexcept nogil
        void (*dot2)(const void *a, const void *r, Py_ssize_t m, const double *W, Py_ssize_t size,
                     double half, double threshold, double factor, double *z) noexcept nogil
        void (*add1)(const void *a, const void *r, Py_ssize_t m, double *W, Py_ssize_t size,
                     const double *du, const double *dv) noexcept nogil
        void (*add2)(const void *a, const void *r, Py_ssize_t m, double *W, Py_ssize_t size,
                     const double *du, const double *dv) noexcept nogil
        void (*few)(const void *a, const void *r, Py_ssize_t m, double *W, Py_ssize_t stride,
                    const int *which, int count, const double *change) noexcept nogil
        void (*fetch)(const void *r, Py_ssize_t count, const double *W, Py_ssize_t stride
                      ) noexcept nogil


cdef Products products_for(size_t value, size_t index, bint dense) noexcept nogil
