from .scalar cimport logistic_dual_prox_near
from ..common.types cimport block_fn, block_prox_fn, prox_fn, scalar_fn, scaled_conjugate

# The two kinds of term a kernel meets, reached through function pointers.

cdef enum Kind:
    QUADRATIC   # h_j(t) = weight t^2 / 2: the derivative is inlined
    POINTER     # h_j(t) = weight_j h(sign_j t; theta_j)
    GRAM        # f is given by Q itself: A = Q, and the gradient is read at i


cdef enum PsiKind:
    ANY                 # by function pointer
    DUAL_INTERVAL       # of a loss, without sample weights, one theta for all: inlined
    DUAL_LOGISTIC
    PENALTY_INTERVAL


cdef class Outer:
    cdef Kind kind
    cdef scalar_fn value_, derivative_
    cdef const double[::1] weight, sign
    cdef const double[:, ::1] theta
    cdef Py_ssize_t weight_stride, sign_stride, theta_stride
    cdef object owner


cdef class Psi:
    cdef readonly bint is_block
    cdef PsiKind kind
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


cdef inline double derivative_at(Outer h, Py_ssize_t j, double t) noexcept nogil:
    """h_j'(t)"""
    cdef double e = h.sign[j * h.sign_stride]
    return (h.weight[j * h.weight_stride] * e
            * h.derivative_(e * t, &h.theta[0, 0] + j * h.theta_stride))


cdef inline const double *theta_at(Psi psi, Py_ssize_t i) noexcept nogil:
    return &psi.theta[0, 0] + i * psi.stride


cdef inline double prox_at(Psi psi, Py_ssize_t i, double v, double step) noexcept nogil:
    """The prox of psi_i.

    psi - (moved/2)x^2 + (x - v)^2/(2 step) is psi + (x - v/r)^2/(2 step/r), up to a constant, with
    r = 1 - moved step; the caller sees to it that r > 0.
    """
    cdef double r, e
    if psi.moved != 0.0:
        r = 1.0 - psi.moved * step
        return psi.prox_(v / r, step / r, theta_at(psi, i))
    if psi.scale_stride:
        e = psi.scale[i]
        return e * psi.prox_(v / e, step * psi.weight / e, theta_at(psi, i))
    return psi.prox_(v, step * psi.weight, theta_at(psi, i))


cdef inline double value_at(Psi psi, Py_ssize_t i, double x) noexcept nogil:
    """psi_i(x)"""
    cdef double e = psi.scale[i * psi.scale_stride]
    cdef double y = x / e
    cdef double value = scaled_conjugate(psi.value_, x, e, theta_at(psi, i))
    return psi.weight * e * (value - 0.5 * psi.gamma * y * y) - 0.5 * psi.moved * x * x


cdef inline double interval_prox(double v, double step, const double *theta) noexcept nogil:
    """a|x| + (b/2) x^2 on [lower, upper]: on the line, the prox of a function restricted to an
    interval is its prox, clipped."""
    cdef double a = step * theta[0]
    cdef double x = v - a if v > a else (v + a if v < -a else 0.0 * v)
    if theta[1] != 0.0:
        x /= 1.0 + step * theta[1]
    return theta[2] if x < theta[2] else (theta[3] if x > theta[3] else x)


cdef struct Prox:
    # What is read of a Psi in each step.
    PsiKind kind
    double weight
    const double *theta
    Py_ssize_t stride


cdef inline Prox prox_of(Psi psi) noexcept nogil:
    cdef Prox prox
    prox.kind, prox.weight, prox.stride = psi.kind, psi.weight, psi.stride
    prox.theta = &psi.theta[0, 0]
    return prox


cdef inline double prox_near(const Prox *prox, Psi psi, Py_ssize_t i, double v, double step,
                             double near) noexcept nogil:
    """`prox_at` of all kinds but DUAL_INTERVAL, quicker; `near` is a guess of the answer."""
    cdef double x
    if prox.kind == PENALTY_INTERVAL:
        return interval_prox(v, step * prox.weight, prox.theta + i * prox.stride)
    if prox.kind == DUAL_LOGISTIC:
        x = logistic_dual_prox_near(v, step * prox.weight, near)
        if x >= 0.0:
            return x
    return prox_at(psi, i, v, step)
