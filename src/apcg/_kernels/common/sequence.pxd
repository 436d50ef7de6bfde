from libc.math cimport sqrt


cdef struct Coefficients:
    double alpha    # alpha_k, the root in (0, 1/n] of n^2 a^2 = (1 - a) gamma_k + a mu    (alphak)
    double beta     # beta_k = alpha_k mu / gamma_{k+1}                                    (gammak)
    double b        # gamma_{k+1}/(alpha_k gamma_k + gamma_{k+1}): y = z + b (x - z)       (yk)
    double gamma    # gamma_{k+1}


cdef inline Coefficients advance(double n, double mu, double gamma) noexcept nogil:
    """Equations (alphak), (gammak) and the weights of (yk), from gamma_k to gamma_{k+1}."""
    cdef Coefficients k
    cdef double d = gamma - mu
    if d == 0.0:  # Algorithm 2: everything is constant, and must stay so to the last bit
        k.alpha = sqrt(mu) / n
        k.beta = k.alpha
        k.gamma = gamma
    else:
        # n^2 a^2 + d a - gamma = 0, by the form of the root that does not cancel
        k.alpha = 2.0 * gamma / (d + sqrt(d * d + 4.0 * n * n * gamma))
        k.gamma = (1.0 - k.alpha) * gamma + k.alpha * mu
        k.beta = k.alpha * mu / k.gamma
    k.b = k.gamma / (k.alpha * gamma + k.gamma)
    return k
