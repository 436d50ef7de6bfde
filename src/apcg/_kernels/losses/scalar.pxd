from libc.math cimport INFINITY

from ..common.types cimport prox_fn, scalar_fn

# phi of a margin m = b a'w or of a residual r = a'w - y; theta holds the loss's own parameters.
cdef struct LossFunctions:
    scalar_fn value, derivative
    scalar_fn curvature     # phi''; at a kink of phi', the larger one
    scalar_fn conjugate     # phi*(-x), as a function of x
    prox_fn dual_prox       # the prox of psi(x) = phi*(-x) - (gamma/2) x^2


cdef LossFunctions find(str name) except *


# What the kernels know of the losses, inlined.

cdef inline double slope(double m, const double *theta) noexcept nogil:
    """-phi'(m): the maximiser of (k - m) x - epsilon|x| - (gamma/2) x^2 over [lower, upper].

    With gamma = 0 it is a bound, or 0 where 0 is a maximiser too.
    """
    cdef double c = theta[0] - m
    cdef double x
    if c > theta[1]:
        x = (c - theta[1]) / theta[2] if theta[2] > 0.0 else INFINITY
    elif c < -theta[1]:
        x = (c + theta[1]) / theta[2] if theta[2] > 0.0 else -INFINITY
    else:
        x = 0.0 * c
    return theta[3] if x < theta[3] else (theta[4] if x > theta[4] else x)


cdef inline double interval_dual_prox(double v, double step, const double *theta) noexcept nogil:
    """psi(x) = -k x + epsilon |x| on [lower, upper]."""
    cdef double x = v + step * theta[0]
    cdef double e
    if theta[1] > 0.0:
        e = step * theta[1]
        x = x - e if x > e else (x + e if x < -e else 0.0 * x)
    return theta[3] if x < theta[3] else (theta[4] if x > theta[4] else x)


# Not inlined: it would keep the kernels from inlining the others.
cdef double logistic_dual_prox_near(double v, double step, double near) noexcept nogil
