"""h and psi as data for the kernels: scalar functions, their parameters, and array loops over them.

The array methods that Python calls and the steps that the kernels take go through the same scalar
functions, so the objective that is reported and the step that is taken cannot disagree.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport uintptr_t

from .scalar cimport LossFunctions, find
from ..common.types cimport Sum, add


# ---- h: functions of the rows of A x --------------------------------------------------------

cdef double square(double t, const double *theta) noexcept nogil:
    return 0.5 * t * t


cdef double square_derivative(double t, const double *theta) noexcept nogil:
    return t


cdef double support(double v, const double *theta) noexcept nogil:
    """g*(v) for g(w) = a|w| + (b/2)w^2 on [lower, upper]; theta = (a, b, lower, upper).

    With b = 0 it is infinite if w is, the maximiser; as a product it cannot be infinity less
    infinity.
    """
    cdef double w = support_derivative(v, theta)
    if w == 0.0:
        return 0.0
    cdef double value = w * (v - theta[0] if w > 0.0 else v + theta[0])
    return value - 0.5 * theta[1] * w * w if theta[1] != 0.0 else value


cdef double support_derivative(double v, const double *theta) noexcept nogil:
    """The maximiser of v w - g(w), which is grad g*(v) if b > 0; of more than one, 0 or nearest."""
    cdef double w = v - theta[0] if v > theta[0] else (v + theta[0] if v < -theta[0] else 0.0 * v)
    if theta[1] != 0.0:
        w /= theta[1]
    elif w > 0.0:
        w = INFINITY
    elif w < 0.0:
        w = -INFINITY
    return theta[2] if w < theta[2] else (theta[3] if w > theta[3] else w)


cdef class Outer:
    """h_j(t) = weight_j h(sign_j t; theta_j), for j = 1..rows; any of the three may be shared."""

    def __init__(self, str name, weight=(1.0,), sign=(1.0,), theta=((0.0,),), *,
                 addresses=None, owner=None):
        cdef LossFunctions loss
        self.kind = POINTER
        if name == "square":
            self.kind = QUADRATIC
            self.value_, self.derivative_ = square, square_derivative
        elif name == "gram":
            self.kind = GRAM
        elif name == "support":
            self.value_, self.derivative_ = support, support_derivative
        elif name == "custom":
            self.value_ = <scalar_fn> <uintptr_t> addresses[0]
            self.derivative_ = <scalar_fn> <uintptr_t> addresses[1]
        else:
            loss = find(name)
            self.value_, self.derivative_ = loss.value, loss.derivative
        self.owner = owner  # keeps the machine code behind the addresses alive
        self.weight = np.atleast_1d(np.ascontiguousarray(weight, dtype=np.float64))
        self.sign = np.atleast_1d(np.ascontiguousarray(sign, dtype=np.float64))
        self.theta = np.array(theta, dtype=np.float64, ndmin=2)
        if self.kind != POINTER and self.weight.shape[0] > 1:
            raise ValueError("a quadratic h has one weight for all rows")
        self.weight_stride = 1 if self.weight.shape[0] > 1 else 0
        self.sign_stride = 1 if self.sign.shape[0] > 1 else 0
        self.theta_stride = self.theta.shape[1] if self.theta.shape[0] > 1 else 0

    def value(self, const double[::1] t) -> float:
        """sum_j h_j(t_j)."""
        cdef Py_ssize_t j
        cdef Sum total = Sum(0.0, 0.0)
        with nogil:
            for j in range(t.shape[0]):
                add(&total, self.weight[j * self.weight_stride]
                    * self.value_(self.sign[j * self.sign_stride] * t[j],
                                  &self.theta[0, 0] + j * self.theta_stride))
        return total.high + total.low

    def derivative(self, const double[::1] t) -> np.ndarray:
        """The array of h_j'(t_j)."""
        result = np.empty(t.shape[0])
        cdef double[::1] out = result
        cdef Py_ssize_t j
        with nogil:
            for j in range(t.shape[0]):
                out[j] = derivative_at(self, j, t[j])
        return result


# ---- psi: functions of a coordinate, or of a block -------------------------------------------

cdef double interval(double x, const double *theta) noexcept nogil:
    """a|x| + (b/2) x^2 on [lower, upper], infinite outside; theta = (a, b, lower, upper)."""
    if not theta[2] <= x <= theta[3]:
        return INFINITY
    return theta[0] * fabs(x) + 0.5 * theta[1] * x * x


cdef double norm(const double *x, Py_ssize_t size) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t e
    for e in range(size):
        total += x[e] * x[e]
    return sqrt(total)


# A point projected on the ball has a norm of radius (1 + a few roundings).
cdef double BALL_SLACK = 1e-12


cdef double ball(const double *x, Py_ssize_t size, const double *theta) noexcept nogil:
    """a|x|_2 on the ball |x|_2 <= radius, infinite outside; theta = (a, radius)."""
    cdef double r = norm(x, size)
    if not r <= theta[1] * (1.0 + BALL_SLACK):
        return INFINITY
    return theta[0] * r if theta[0] != 0.0 else 0.0


cdef void ball_prox(double *v, Py_ssize_t size, double step, const double *theta) noexcept nogil:
    """The prox keeps the direction of v: its length is shrunk by step * a, then cut at radius."""
    cdef double r = norm(v, size)
    cdef double target = r - step * theta[0]
    cdef double scale
    cdef Py_ssize_t e
    target = min(max(target, 0.0), theta[1])
    if target == r:
        return
    scale = target / r if r > 0.0 else 0.0
    for e in range(size):
        v[e] *= scale


KINDS = {"interval": PENALTY_INTERVAL, "dual:interval": DUAL_INTERVAL,
         "dual:logistic": DUAL_LOGISTIC}


cdef class Psi:
    """psi_i(x) = weight scale_i psi(x/scale_i; theta_i) - (moved/2)|x|^2; any may be shared.

    "interval" and "ball" are penalties; "dual:..." is phi*(-x) - (gamma/2)x^2 of a loss. `scale` is
    for losses with sample weights. `moved` is strong convexity that has been moved to f
    (section 2.2), for a psi of which nothing but its value and prox is known.
    """

    def __init__(self, str name, theta=((0.0,),), *, double weight=1.0, scale=(1.0,),
                 double gamma=0.0, double moved=0.0, addresses=None, owner=None):
        cdef LossFunctions loss
        self.is_block = False
        self.weight, self.gamma, self.moved = weight, gamma, moved
        if name == "interval":
            self.value_, self.prox_ = interval, interval_prox
        elif name == "ball":
            self.is_block = True
            self.block_value_, self.block_prox_ = ball, ball_prox
        elif name == "custom":
            self.value_ = <scalar_fn> <uintptr_t> addresses[0]
            self.prox_ = <prox_fn> <uintptr_t> addresses[1]
        elif name.startswith("dual:"):
            loss = find(name[5:])
            self.value_, self.prox_ = loss.conjugate, loss.dual_prox
        else:
            raise ValueError(f"no compiled psi is called {name!r}")
        self.kind = KINDS.get(name, ANY) if moved == 0.0 and np.size(scale) == 1 else ANY
        if self.kind == DUAL_INTERVAL and len(theta) > 1:
            self.kind = ANY
        self.owner = owner
        self.theta = np.array(theta, dtype=np.float64, ndmin=2)
        self.stride = self.theta.shape[1] if self.theta.shape[0] > 1 else 0
        self.scale = np.atleast_1d(np.ascontiguousarray(scale, dtype=np.float64))
        self.scale_stride = 1 if self.scale.shape[0] > 1 else 0

    def value(self, const double[::1] x, const Py_ssize_t[::1] index=None) -> float:
        """sum_e psi_{index_e}(x_e), or psi_{index_0}(x) if psi is of blocks; index_e = e if None."""
        cdef Py_ssize_t e
        cdef bint given = index is not None
        cdef Sum total = Sum(0.0, 0.0)
        if self.is_block:
            return self.block_value_(&x[0], x.shape[0], theta_at(self, index[0]))
        with nogil:
            for e in range(x.shape[0]):
                add(&total, value_at(self, index[e] if given else e, x[e]))
        return total.high + total.low

    def contains(self, const double[::1] x) -> bool:
        """Whether every psi_i(x_i) is finite; quicker than the values, which may take logarithms."""
        cdef Py_ssize_t i
        cdef double low, high
        cdef const double *theta
        if self.kind == ANY or self.is_block:
            return bool(np.isfinite(self.value(x)))
        with nogil:
            for i in range(x.shape[0]):
                theta = theta_at(self, i)
                low = (theta[2] if self.kind == PENALTY_INTERVAL
                       else theta[3] if self.kind == DUAL_INTERVAL else 0.0)
                high = (theta[3] if self.kind == PENALTY_INTERVAL
                        else theta[4] if self.kind == DUAL_INTERVAL else 1.0)
                if not (low <= x[i] <= high and x[i] - x[i] == 0.0):
                    with gil:
                        return False
        return True

    def prox(self, const double[::1] v, const double[::1] step,
             const Py_ssize_t[::1] index=None) -> np.ndarray:
        """The prox of psi_{index_e} at v_e for each e, or of psi_{index_0} at the block v.

        One step serves for all coordinates if only one is given; index_e = e if None.
        """
        cdef bint given = index is not None
        result = np.array(v)
        cdef double[::1] out = result
        cdef Py_ssize_t e
        cdef Py_ssize_t stride = 1 if step.shape[0] > 1 else 0
        if self.is_block:
            self.block_prox_(&out[0], out.shape[0], step[0], theta_at(self, index[0]))
            return result
        with nogil:
            for e in range(out.shape[0]):
                out[e] = prox_at(self, index[e] if given else e, out[e], step[e * stride])
        return result

    def value_of_blocks(self, const double[::1] x, const Py_ssize_t[::1] starts) -> float:
        """sum_i psi_i of the block x[starts_i:starts_{i+1}]."""
        cdef Py_ssize_t i
        cdef double total = 0.0
        with nogil:
            for i in range(starts.shape[0] - 1):
                total += self.block_value_(&x[starts[i]], starts[i + 1] - starts[i],
                                           theta_at(self, i))
        return total

    def prox_of_blocks(self, double[::1] v, const double[::1] step, const Py_ssize_t[::1] starts):
        """The prox of each block of v with its step, in place."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(starts.shape[0] - 1):
                self.block_prox_(&v[starts[i]], starts[i + 1] - starts[i], step[i],
                                 theta_at(self, i))
