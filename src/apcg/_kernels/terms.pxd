# The two kinds of term a kernel meets, reached through function pointers.

ctypedef double (*scalar_fn)(double t, const double *theta) noexcept nogil
ctypedef double (*prox_fn)(double v, double step, const double *theta) noexcept nogil
ctypedef double (*block_fn)(const double *x, Py_ssize_t size, const double *theta) noexcept nogil
ctypedef void (*block_prox_fn)(
    double *v, Py_ssize_t size, double step, const double *theta) noexcept nogil

cdef enum Kind:
    QUADRATIC   # h_j(t) = weight t^2 / 2: the derivative is inlined
    POINTER     # h_j(t) = weight_j h(sign_j t; theta_j)
    GRAM        # f is given by Q itself: A = Q, and the gradient is read at i


cdef class Outer:
    cdef Kind kind
    cdef scalar_fn value_, derivative_
    cdef const double[::1] weight, sign
    cdef const double[:, ::1] theta
    cdef Py_ssize_t weight_stride, sign_stride, theta_stride
    cdef object owner

    cdef double derivative_at(self, Py_ssize_t j, double t) noexcept nogil


cdef class Psi:
    cdef readonly bint is_block
    cdef scalar_fn value_
    cdef prox_fn prox_
    cdef block_fn block_value_
    cdef block_prox_fn block_prox_
    cdef const double[:, ::1] theta
    cdef Py_ssize_t stride
    cdef double moved
    cdef object owner

    cdef const double *theta_at(self, Py_ssize_t i) noexcept nogil
    cdef double prox_at(self, Py_ssize_t i, double v, double step) noexcept nogil
