"""The squared loss on dense rows: what `descent` takes from `squares`."""

cdef struct Squares:
    # (1/2) sum_i s_i |W a_i + b - y_i|^2, s_i = weights_i unit; W has a row for each of K outputs
    const double *X
    Py_ssize_t n, d, size, K
    const double *y
    const double *weights
    Py_ssize_t mask
    double unit


cdef Squares squares_of(const double[:, ::1] X, bint border, const double[:, ::1] y,
                        const double[::1] weights, double unit) noexcept
cdef double residuals(const Squares *p, const double *w, double *x, double *room, double *pull,
                      bint all_of_it) noexcept nogil
cdef double rounding_of(Py_ssize_t n) noexcept nogil
