"""One step of the scalar recursion of Algorithm 1, for the kernels and for Python alike."""


def coefficients(double n, double mu, double gamma) -> tuple[float, float, float, float]:
    """(alpha_k, beta_k, b_k, gamma_{k+1}) from n, mu and gamma_k."""
    cdef Coefficients k = advance(n, mu, gamma)
    return k.alpha, k.beta, k.b, k.gamma
