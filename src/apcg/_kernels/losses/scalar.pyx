"""The losses: scalar functions, written once, for the kernels and for NumPy arrays alike.

With x the dual variable of the paper, every loss here but the logistic one has

    phi*(-x) = -k x + epsilon |x| + (gamma/2) x^2   on [lower, upper],   theta = (k, epsilon,
                                                                             gamma, lower, upper)

so that one conjugate and one prox serve them all, as data. Their phi is, with the slope -x that
attains it, phi(m) = max over x in [lower, upper] of (k - m) x - epsilon |x| - (gamma/2) x^2:

    hinge (1, 0, 0, 0, 1)               smoothed hinge (1, 0, gamma, 0, 1)
    squared hinge (1, 0, 1/2, 0, inf)   squared (0, 0, 1, -inf, inf)
    Huber (0, 0, 1, -delta, delta)      epsilon-insensitive (0, epsilon, 0, -1, 1)
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, log, log1p

from ..common.types cimport Sum, add, scaled_conjugate

cdef extern from "loss_sums.h" nogil:
    enum: APCG_ROWS
    double apcg_block(const double *z, const double *label, const double *weight, Py_ssize_t mask,
                      int margin, Py_ssize_t size, const double *theta, double *x)
    double apcg_conjugate_block(const double *x, const double *weight, Py_ssize_t mask,
                                Py_ssize_t size, const double *theta)


# ---- the interval family ----------------------------------------------------------------------

cdef double interval_value(double m, const double *theta) noexcept nogil:
    cdef double x = slope(m, theta)
    # as a product, so that a huge m gives infinity and not the difference of two
    return x * ((theta[0] - m) - 0.5 * theta[2] * x) - theta[1] * fabs(x)


cdef double interval_derivative(double m, const double *theta) noexcept nogil:
    return -slope(m, theta)


cdef double interval_curvature(double m, const double *theta) noexcept nogil:
    """1/gamma where the slope is between its bounds and not held at 0 by epsilon, else 0."""
    cdef double c = theta[0] - m
    if -theta[1] < c < theta[1]:
        return 0.0
    c = c - theta[1] if c >= theta[1] else c + theta[1]
    return 1.0 / theta[2] if theta[3] * theta[2] <= c <= theta[4] * theta[2] else 0.0


cdef double interval_conjugate(double x, const double *theta) noexcept nogil:
    if not theta[3] <= x <= theta[4]:
        return INFINITY
    return -theta[0] * x + theta[1] * fabs(x) + 0.5 * theta[2] * x * x


# ---- logistic: phi(m) = log(1 + exp(-m)), gamma = 4 ----------------------------------------------

cdef double logistic_value(double m, const double *theta) noexcept nogil:
    return log1p(exp(-m)) if m > 0.0 else log1p(exp(m)) - m


cdef double logistic_derivative(double m, const double *theta) noexcept nogil:
    cdef double e
    if m > 0.0:
        e = exp(-m)
        return -e / (1.0 + e)
    return -1.0 / (1.0 + exp(m))


cdef double logistic_curvature(double m, const double *theta) noexcept nogil:
    cdef double e = exp(-fabs(m))
    return e / ((1.0 + e) * (1.0 + e))


cdef double logistic_conjugate(double x, const double *theta) noexcept nogil:
    """x log x + (1 - x) log(1 - x), with 0 log 0 = 0."""
    if not 0.0 <= x <= 1.0:
        return INFINITY
    return (x * log(x) if x > 0.0 else 0.0) + ((1.0 - x) * log1p(-x) if x < 1.0 else 0.0)


cdef inline double sigmoid_negative(double eta) noexcept nogil:
    """1/(1 + exp(-eta)) for eta <= 0."""
    cdef double e = exp(eta)
    return e / (1.0 + e)


cdef double logistic_dual_prox(double v, double step, const double *theta) noexcept nogil:
    """Solve eta + c sigmoid(eta) = v/step for x = sigmoid(eta), with c = 1/step - 4.

    The left side increases, because c >= -4. If the root is positive, x -> 1 - x makes it negative;
    there the left side is convex (c >= 0) or concave (c < 0), so Newton's method from the right
    side of the root converges monotonically.
    """
    cdef double c = 1.0 / step - 4.0
    cdef double d = v / step
    cdef bint mirrored = d > 0.5 * c
    cdef double eta, x, q, change
    cdef int k
    if mirrored:
        d = c - d
    if c <= 0.0:
        eta = d                     # at or left of the root
    else:                           # right of the root, by the least of three bounds
        eta = d if d < 0.0 else 0.0
        # sigmoid(eta) >= e^eta/2, and y + log y = q has y <= q if q >= 1
        q = d + log(0.5 * c)
        if q > 1.0:
            eta = min(eta, log(2.0 * q / c))
        # c x = d - eta >= d, so eta >= logit(d/c), so c x <= d - logit(d/c)
        q = d / c
        if q > 0.0:
            q = (d - log(q / (1.0 - q))) / c
            if q < 0.5:
                eta = min(eta, log(q / (1.0 - q)))
    x = sigmoid_negative(eta)
    for k in range(60):
        change = (eta + c * x - d) / (1.0 + c * x * (1.0 - x))
        eta -= change
        if eta > 0.0:
            eta = 0.0
        x = sigmoid_negative(eta)
        if fabs(change) <= 1e-9 * (1.0 + fabs(eta)):
            break                   # the error is now about change^2
    return 1.0 - x if mirrored else x


cdef double logistic_dual_prox_near(double v, double step, double near) noexcept nogil:
    """The prox of the logistic loss if it is not far from `near`; -1 if that leads nowhere.

    Solves F(eta) = eta + c x - d = 0 for x = sigmoid(eta), with c = 1/step - 4 and d = v/step. From
    eta of `near`, steps of Halley's method, which is of third order; the last one is put into x by
    its series, so that a step of the kernel needs one log and mostly one exp, or none.
    """
    cdef double inverse = 1.0 / step
    cdef double c = inverse - 4.0
    cdef double d = v * inverse
    cdef bint mirrored = near > 0.5
    cdef double x, eta, w, r, slope, bend, change
    cdef int k
    if mirrored:
        near = 1.0 - near
        d = c - d
    if not near > 1e-290:
        return -1.0
    x = near
    eta = log(x / (1.0 - x))
    for k in range(5):
        w = x * (1.0 - x)
        r = eta + c * x - d
        slope = 1.0 + c * w
        bend = 0.5 * r * c * w * (1.0 - 2.0 * x)
        slope *= slope
        if bend > 0.5 * slope:      # far to the right of the root: half of Halley's denominator
            bend = 0.5 * slope
        change = r * (1.0 + c * w) / (slope - bend)
        if fabs(change) < 1e-5:     # the error of either series is about change^3
            x -= w * change * (1.0 - (0.5 - x) * change)
            return 1.0 - x if mirrored else x
        eta -= change
        if eta > 2.0:               # past the middle: mirrored it would be more exact
            return -1.0
        x = exp(eta)
        x /= 1.0 + x
    return -1.0


# ---- phi(m) + m^2/(2 eta), the strongly convex term after Corollary 1 -----------------------------
# theta = (eta, gamma-tilde, gamma, is it the logistic loss, then theta of phi).

cdef LossFunctions INTERVAL = LossFunctions(
    interval_value, interval_derivative, interval_curvature, interval_conjugate,
    interval_dual_prox)
cdef LossFunctions LOGISTIC = LossFunctions(
    logistic_value, logistic_derivative, logistic_curvature, logistic_conjugate,
    logistic_dual_prox)


cdef inline const LossFunctions *inner(const double *theta) noexcept nogil:
    return &LOGISTIC if theta[3] != 0.0 else &INTERVAL


cdef double perturbed_value(double m, const double *theta) noexcept nogil:
    return inner(theta).value(m, theta + 4) + 0.5 * m * m / theta[0]


cdef double perturbed_derivative(double m, const double *theta) noexcept nogil:
    return inner(theta).derivative(m, theta + 4) + m / theta[0]


cdef double perturbed_curvature(double m, const double *theta) noexcept nogil:
    return inner(theta).curvature(m, theta + 4) + 1.0 / theta[0]


cdef double perturbed_conjugate(double x, const double *theta) noexcept nogil:
    """min over x1 of phi*(-x1) + (eta/2)(x - x1)^2."""
    cdef double k = theta[0] + theta[2]
    cdef double x1 = inner(theta).dual_prox(theta[0] * x / k, 1.0 / k, theta + 4)
    return inner(theta).conjugate(x1, theta + 4) + 0.5 * theta[0] * (x - x1) * (x - x1)


cdef double perturbed_dual_prox(double v, double step, const double *theta) noexcept nogil:
    """Minimise over x first: x = (eta x1 + v/step)/K, K = eta - gamma-tilde + 1/step; what is left
    is a prox of psi at x1."""
    cdef double eta = theta[0]
    cdef double e = 1.0 / step - theta[1]
    cdef double K = eta + e
    cdef double weight = eta * e / K + theta[2]
    cdef double x1 = inner(theta).dual_prox(eta * v / (step * K) / weight, 1.0 / weight, theta + 4)
    return (eta * x1 + v / step) / K


cdef LossFunctions PERTURBED = LossFunctions(
    perturbed_value, perturbed_derivative, perturbed_curvature, perturbed_conjugate,
    perturbed_dual_prox)


cdef LossFunctions find(str name) except *:
    if name == "interval":
        return INTERVAL
    if name == "logistic":
        return LOGISTIC
    if name == "perturbed":
        return PERTURBED
    raise ValueError(f"no compiled loss is called {name!r}")


cdef int same(Py_ssize_t size, Py_ssize_t wanted) except -1:
    """Arrays that are read together have one length."""
    if size != wanted:
        raise ValueError(f"arrays must have one length, got {size} and {wanted}.")
    return 0


cdef int weighted(Py_ssize_t size, Py_ssize_t wanted) except -1:
    return same(size, wanted) if size != 1 else 0


cdef class Loss:
    """A loss for arrays: its functions and its own parameters."""

    cdef LossFunctions functions
    cdef const double[::1] theta

    def __init__(self, str name, theta):
        self.functions = find(name)
        self.theta = np.array(theta, dtype=np.float64, ndmin=1)
        cdef Py_ssize_t count = self.theta.shape[0], wanted = 1 if name == "logistic" else 5
        if name == "perturbed" and count > 3 and self.theta[3] == 0.0:
            wanted = 9
        if count != wanted:
            raise ValueError(f"theta of a {name!r} loss must have {wanted} numbers, got {theta}.")

    cdef object apply(self, scalar_fn function, const double[::1] t):
        cdef Py_ssize_t i
        result = np.empty(t.shape[0])
        cdef double[::1] out = result
        with nogil:
            for i in range(t.shape[0]):
                out[i] = function(t[i], &self.theta[0])
        return result

    def value(self, const double[::1] t) -> np.ndarray:
        """phi(t)"""
        return self.apply(self.functions.value, t)

    def derivative(self, const double[::1] t) -> np.ndarray:
        """phi'(t); at a kink, the end of the subdifferential that is nearest to zero."""
        return self.apply(self.functions.derivative, t)

    def curvature(self, const double[::1] t) -> np.ndarray:
        """phi''(t); at a kink of phi', the larger of the two."""
        return self.apply(self.functions.curvature, t)

    def conjugate(self, const double[::1] x) -> np.ndarray:
        """phi*(-x)"""
        return self.apply(self.functions.conjugate, x)

    cdef bint by_blocks(self):
        """Whether sums.h knows the loss."""
        return self.functions.value == interval_value or self.functions.value == logistic_value

    def total(self, const double[::1] t, const double[::1] labels, bint margin,
              const double[::1] weights) -> float:
        """sum_i weight_i phi(label_i t_i), or of phi(t_i - label_i) for a loss of residuals."""
        return self.rows(t, labels, margin, weights, None)

    def duals(self, const double[::1] t, const double[::1] labels, bint margin,
              const double[::1] weights) -> np.ndarray:
        """x_i = -weight_i phi'(label_i t_i), or -weight_i phi'(t_i - label_i)."""
        x = np.empty(t.shape[0])
        self.rows(t, labels, margin, weights, x)
        return x

    cdef double rows(self, const double[::1] t, const double[::1] labels, bint margin,
                     const double[::1] weights, double[::1] x) except? -1.0:
        """The sum of `total`, and the x of `duals`, if there is room for it."""
        same(labels.shape[0], t.shape[0])
        weighted(weights.shape[0], t.shape[0])
        cdef Py_ssize_t block, i, k, size, n = t.shape[0], mask = -1 if weights.shape[0] > 1 else 0
        cdef bint blocks = self.by_blocks(), wanted = x is not None
        cdef const double *theta = &self.theta[0]
        cdef double m, s
        cdef double[APCG_ROWS] room
        cdef Sum total = Sum(0.0, 0.0)
        if self.functions.value == logistic_value:
            theta = NULL
        with nogil:
            for block in range((n + APCG_ROWS - 1) // APCG_ROWS):
                i = block * APCG_ROWS
                size = min(n - i, APCG_ROWS)
                if blocks:
                    add(&total, apcg_block(&t[i], &labels[i], &weights[i & mask], mask, margin,
                                           size, theta, room))
                    if wanted:
                        for k in range(size):
                            x[i + k] = room[k]
                    continue
                for k in range(i, i + size):
                    s = weights[k & mask]
                    if wanted:
                        x[k] = 0.0
                    if s == 0.0:
                        continue
                    m = labels[k] * t[k] if margin else t[k] - labels[k]
                    add(&total, s * self.functions.value(m, theta))
                    if wanted:
                        x[k] = -s * self.functions.derivative(m, theta)
        return total.high + total.low

    def total_conjugate(self, const double[::1] x, const double[::1] weights) -> float:
        """sum_i weight_i phi*(-x_i/weight_i); with weight 0, 0 if x_i = 0 and else infinite."""
        weighted(weights.shape[0], x.shape[0])
        cdef Py_ssize_t block, i, n = x.shape[0], mask = -1 if weights.shape[0] > 1 else 0
        cdef double s
        cdef const double *theta = &self.theta[0]
        cdef Sum total = Sum(0.0, 0.0)
        if self.by_blocks():
            if self.functions.value == logistic_value:
                theta = NULL
            with nogil:
                for block in range((n + APCG_ROWS - 1) // APCG_ROWS):
                    i = block * APCG_ROWS
                    add(&total, apcg_conjugate_block(&x[i], &weights[i & mask], mask,
                                                     min(n - i, APCG_ROWS), theta))
            return total.high + total.low
        with nogil:
            for i in range(n):
                s = weights[i & mask]
                if s != 0.0:
                    add(&total, s * scaled_conjugate(
                        self.functions.conjugate, x[i], s, &self.theta[0]))
                elif x[i] != 0.0:
                    add(&total, INFINITY)
        return total.high + total.low

    def gap_share(self, const double[::1] m, const double[::1] x,
                  const double[::1] weights) -> np.ndarray:
        """weight_i (phi(m_i) + phi*(-x_i/weight_i)) + m_i x_i, which is not negative."""
        same(m.shape[0], x.shape[0])
        weighted(weights.shape[0], x.shape[0])
        cdef Py_ssize_t i
        cdef double s, share
        result = np.empty(x.shape[0])
        cdef double[::1] out = result
        with nogil:
            for i in range(x.shape[0]):
                s = weights[i if weights.shape[0] > 1 else 0]
                if s != 0.0:
                    share = m[i] * x[i] + s * (
                        self.functions.value(m[i], &self.theta[0])
                        + scaled_conjugate(self.functions.conjugate, x[i], s, &self.theta[0]))
                else:
                    share = 0.0 if x[i] == 0.0 else INFINITY
                out[i] = 0.0 if share < 0.0 else share  # below 0 is rounding
        return result

    def dual_prox(self, const double[::1] v, const double[::1] step,
                  const double[::1] near=None) -> np.ndarray:
        """argmin_x phi*(-x) - (gamma/2) x^2 + (x - v)^2/(2 step)

        With `near`, the logistic prox as the kernels take it, from a guess; nan where that fails.
        """
        cdef Py_ssize_t i
        cdef bint guess = near is not None and self.functions.dual_prox == logistic_dual_prox
        same(step.shape[0], v.shape[0])
        if near is not None:
            same(near.shape[0], v.shape[0])
        result = np.empty(v.shape[0])
        cdef double[::1] out = result
        with nogil:
            for i in range(v.shape[0]):
                if guess:
                    out[i] = logistic_dual_prox_near(v[i], step[i], near[i])
                else:
                    out[i] = self.functions.dual_prox(v[i], step[i], &self.theta[0])
        if guess:
            result[result < 0.0] = np.nan
        return result
