from .types cimport block_fn, block_prox_fn, prox_fn, scalar_fn

# The two kinds of term a kernel meets, reached through function pointers.

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
    cdef double moved, weight, gamma
    cdef const double[::1] scale
    cdef Py_ssize_t scale_stride
    cdef object owner

    cdef const double *theta_at(self, Py_ssize_t i) noexcept nogil
    cdef double prox_at(self, Py_ssize_t i, double v, double step) noexcept nogil
    cdef double value_at(self, Py_ssize_t i, double x) noexcept nogil
