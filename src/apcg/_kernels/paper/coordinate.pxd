from ..losses.terms cimport Outer, Psi


cdef class Model:
    cdef readonly Outer outer
    cdef readonly Psi psi
    cdef const double[::1] c, sigma, sign, L
    cdef const Py_ssize_t[::1] members, starts
    cdef Py_ssize_t rows
    cdef double constant
