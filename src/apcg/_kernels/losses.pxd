from .types cimport prox_fn, scalar_fn

# phi of a margin m = b a'w or of a residual r = a'w - y; theta holds the loss's own parameters.
cdef struct LossFunctions:
    scalar_fn value, derivative
    scalar_fn curvature     # phi''; at a kink of phi', the larger one
    scalar_fn conjugate     # phi*(-x), as a function of x
    prox_fn dual_prox       # the prox of psi(x) = phi*(-x) - (gamma/2) x^2


cdef LossFunctions find(str name) except *
