"""Sweeps over the rows of a dual with g = L2, a whole sweep in one call, made for seconds.

x_i = s_i a_i, where s_i is the weight of row i: in units of a_i every row has the same loss. With
w = A x/(sigma n), sigma = lambda times the strong convexity of g, n times the dual is, along row i,

    -n D/s_i = phi*(-a) + m a + (q_i/2)(a - a_i)^2 + ..,     q_i = s_i |A_i|^2/(sigma n)

m the margin or residual of the row at w. Every loss of the interval family is

    phi*(-a) = -k a + epsilon|a| + (gamma/2) a^2   on [lower, upper]

so with G = k - m - gamma a_i and L_i = q_i + gamma the exact step is clip(soft(a_i + G/L_i)). The row
of the gap, s_i (phi(m) + phi*(-a_i) + m a_i), is what `est` sums: it costs no pass.

Logistic: with eta = logit(a) the step solves eta + m + q_i (sigmoid(eta) - a_i) = 0. eta_i is kept,
so that most steps are one of Halley's, with a quotient of polynomials and no exp.

A row that rests (at a bound, or at 0 where epsilon holds it, and G points outward) takes no step.
Beyond the thresholds `low` and `high`, which are the greatest violations of the last sweep, it is
dropped from the list of rows: LIBLINEAR's shrinking. A dropped row i is ~i in the list.

A free intercept b is one more feature, constant: it is a number of its own, stored in no row.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint32_t, uint64_t

from ..losses.scalar cimport interval_dual_prox
from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    # Macros: they take the values and row numbers by any pointer type and assign to s.
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)


cdef class Rows:
    """The problem without the numbers of A.

    theta    (k, epsilon, gamma, lower, upper); for the logistic loss of no meaning
    labels   y: m = y (a'w + b) for a loss of margins, a'w + b - y otherwise
    weights  s, or one number for all
    L        q_i + gamma
    scale    1/(sigma n);  border  c^2/(sigma n) with an intercept, else 0
    single, enough, easy   logistic: a first step below `single` is the only one; Newton ends at a
                           step of `enough`; a row with q_i < easy takes one step
    ahead    so many steps before its own a row is fetched: 4 if rows are short, or 2
    far      w is larger than a core's cache: its entries of a row are asked for before its step
    """

    def __init__(self, const double[::1] theta, const double[::1] labels,
                 const double[::1] weights, const double[::1] L, Py_ssize_t features, *,
                 bint logistic, bint margin, double scale, double border=0.0,
                 double single=5e-2, double enough=1e-2, double easy=0.5, Py_ssize_t ahead=4,
                 bint far=False):
        self.theta, self.labels, self.weights, self.L = theta, labels, weights, L
        self.features, self.logistic, self.margin = features, logistic, margin
        self.scale, self.border = scale, border
        self.single, self.enough, self.easy = single, enough, easy
        self.ahead, self.far = ahead, far


cdef class Tally:
    """What a sweep goes by and what it finds; `begin` before each sweep.

    low, high            the thresholds: a resting row is dropped beyond them
    least, greatest      the projected G of this sweep
    est                  the sum over rows of their parts of the gap
    work                 nonzeros stepped on, and one for each row
    """

    def __init__(self):
        self.low, self.high, self.work = -INFINITY, INFINITY, 0
        self.begin()

    def begin(self):
        """Before a sweep."""
        self.least, self.greatest, self.est = INFINITY, -INFINITY, 0.0

    def end(self):
        """After a sweep: what it found are the thresholds of the next."""
        self.low = self.least if self.least < 0.0 else -INFINITY
        self.high = self.greatest if self.greatest > 0.0 else INFINITY

    def open(self):
        """Nothing is to be dropped in the next sweep."""
        self.low, self.high = -INFINITY, INFINITY


cdef class Plain:
    """The state of a sweep without momentum: a, eta = logit(a) (logistic only), w and b."""

    cdef public double[::1] a, eta, w
    cdef public double b

    def __init__(self, double[::1] a, double[::1] eta, double[::1] w, double b):
        self.a, self.eta, self.w, self.b = a, eta, w, b


# ---- logistic -----------------------------------------------------------------------------------

cdef double logistic_step(double *eta, double a, double m, double q, double single,
                          double enough, double easy) noexcept nogil:
    """The new a, and eta with it: the root of f(eta) = eta + m + q (sigmoid(eta) - a).

    It is between eta and -m. Newton's step from eta stays there; later ones, and Halley's, may not.
    """
    cdef double r = eta[0] + m, w = a * (1.0 - a)
    cdef double f1 = 1.0 + q * w, f2 = q * w * (1.0 - 2.0 * a)
    cdef double below = f1 * f1 - 0.5 * r * f2
    cdef double d = -r * f1 / below if below > 0.5 * f1 * f1 else -r / f1
    cdef double low, high, e, x, f
    cdef int k
    e = eta[0] + d
    if fabs(d) < single:
        eta[0] = e
        return follow(a, d)
    low, high = (-m, eta[0]) if r > 0.0 else (eta[0], -m)
    if not low <= e <= high:
        d = -r / f1
        e = eta[0] + d
    x = follow(a, d) if fabs(d) <= 0.5 else sigmoid(e)
    if q >= easy:
        for k in range(60):
            f = e + m + q * (x - a)
            if f > 0.0:
                high = e
            else:
                low = e
            d = -f / (1.0 + q * x * (1.0 - x))
            e += d
            if fabs(d) < enough:
                x = follow(x, d)
                break
            if low < e < high:
                x = follow(x, d) if fabs(d) <= 0.5 else sigmoid(e)
            else:
                e = 0.5 * (low + high)
                x = sigmoid(e)
    eta[0] = e
    return x


cdef inline double clip(double x, double low, double high) noexcept nogil:
    x = x if x > low else low
    return x if x < high else high


# ---- the sweep without momentum -------------------------------------------------------------------

cdef void plain_rows(
        const value_t *data, const index_t *columns, const index_t *indptr,
        Rows rows,
        Plain state, Tally tally, Py_ssize_t *keep, const Py_ssize_t *begin,
        const Py_ssize_t *end, Py_ssize_t blocks) noexcept nogil:
    cdef const double *theta = &rows.theta[0]
    cdef const double *labels = &rows.labels[0]
    cdef const double *weights = &rows.weights[0]
    cdef const double *L = &rows.L[0]
    cdef double *a = &state.a[0]
    cdef double *eta = &state.eta[0] if rows.logistic else NULL
    cdef double *w = &state.w[0]
    cdef bint logistic = rows.logistic, margin = rows.margin, sparse = indptr != NULL, drop
    cdef Py_ssize_t weight_mask = -1 if rows.weights.shape[0] > 1 else 0  # i & mask: i, or 0
    cdef Py_ssize_t block, k, i, size = rows.features
    cdef const value_t *row
    cdef const index_t *own = NULL
    cdef double gamma = theta[2], b = state.b, scale = rows.scale, border = rows.border
    cdef double single = rows.single, enough = rows.enough, easy = rows.easy
    cdef double est = tally.est, m = 0.0, s, label, G, step, old, new, h
    cdef double k0 = theta[0], epsilon = theta[1], low = theta[3], high = theta[4], p
    cdef double inverse = 1.0 / gamma if gamma > 0.0 else INFINITY
    cdef double below = tally.low, above = tally.high, least = tally.least
    cdef double greatest = tally.greatest
    cdef long long count = 0
    cdef Order order = in_order(keep, begin, end, blocks, rows.ahead)
    for block in range(blocks):
        for k in range(begin[block], end[block]):
            i = keep[k]
            if sparse:
                look_ahead(&order, data, columns, indptr, labels, L, a, eta, 1)
            if i < 0:
                continue
            if sparse:
                row, own = data + indptr[i], columns + indptr[i]
                size = indptr[i + 1] - indptr[i]
                sparse_dot1_wide(row, own, size, w, m)
                if rows.far:
                    fetch_entries(&order, columns, indptr, w, 1)
            else:
                row = data + i * size
                if k + 1 < end[block] and keep[k + 1] >= 0:
                    fetch_dense(data + keep[k + 1] * size, size)
                m = row_dot(row, w, size)
            count += size + 1
            label, s, old = labels[i], weights[i & weight_mask], a[i]
            m = label * (m + b) if margin else m + b - label
            if logistic:
                est += s * logistic_part(m, old, eta[i])
                new = logistic_step(&eta[i], old, m, L[i] - 4.0, single, enough, easy)
            elif epsilon == 0.0:  # as below, with fewer branches: they are hard to predict
                G = k0 - m - gamma * old
                if (G <= 0.0 or old >= high) and (G >= 0.0 or old <= low):
                    if (old >= high or G < below) and (old <= low or G > above):
                        keep[k] = ~i
                    continue
                greatest = G if G > greatest else greatest
                least = G if G < least else least
                p = clip((k0 - m) * inverse, low, high) if gamma > 0.0 else (
                    high if m < k0 else low)
                est += s * ((p - old) * (k0 - m - 0.5 * gamma * (p + old)))
                new = clip(old + G / L[i], low, high)
            else:
                G = k0 - m - gamma * old
                if rests(old, G, theta, tally, &drop):
                    if drop:
                        keep[k] = ~i
                    continue
                est += s * part_of_gap(m, old, theta)
                step = 1.0 / L[i]
                new = interval_dual_prox(old - step * (m + gamma * old), step, theta)
            h = new - old
            if h == 0.0:
                continue
            a[i] = new  # not a_i + h, which may be outside the domain by a rounding
            h *= s * label if margin else s
            if sparse:
                sparse_add1(row, own, size, w, scale * h)
            else:
                row_add(row, size, w, scale * h)
            b += border * h
    state.b = b
    tally.est = est
    if epsilon == 0.0:
        tally.least, tally.greatest = least, greatest
    tally.work += count


def plain_sweep(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Rows rows, Plain state, Tally tally, Py_ssize_t[::1] keep,
                const Py_ssize_t[::1] begin, const Py_ssize_t[::1] end):
    """One step on the rows keep[begin[k]:end[k]], for each k in order.

    A dense X has no indices and no indptr. Rows that are dropped are marked in `keep`.
    """
    cdef const value_t *values = &data[0] if data.shape[0] else NULL
    cdef const index_t *bounds = &indptr[0] if indptr.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else bounds
    if begin.shape[0] == 0:
        return
    with nogil:
        plain_rows(values, columns, bounds, rows, state, tally, &keep[0], &begin[0], &end[0],
                   begin.shape[0])


def plain_sweeps(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Rows rows, Plain state, Tally tally,
                 Py_ssize_t[::1] keep, const uint32_t[:, ::1] random, bint shrink,
                 double[::1] estimates) -> int:
    """Some sweeps in a row over the rows `keep`, each in an order of its own; how many are left.

    The order of sweep s is a shuffle by the numbers random[s]. Rows that it drops are out of the
    next sweep, if `shrink`; those left are first in `keep`. estimates[s] becomes its `est`.
    """
    cdef const value_t *values = &data[0] if data.shape[0] else NULL
    cdef const index_t *bounds = &indptr[0] if indptr.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else bounds
    cdef Py_ssize_t s, k, j, left, zero = 0, count = keep.shape[0]
    if count == 0:
        return 0
    for s in range(random.shape[0]):
        tally.begin()
        with nogil:
            for k in range(count - 1, 0, -1):  # Fisher and Yates
                j = <Py_ssize_t> ((<uint64_t> random[s, k] * <uint64_t> (k + 1)) >> 32)
                keep[k], keep[j] = keep[j], keep[k]
            plain_rows(values, columns, bounds, rows, state, tally, &keep[0], &zero, &count, 1)
            left = 0
            for k in range(count):
                if keep[k] >= 0:
                    keep[left] = keep[k]
                    left += 1
            count = left
        estimates[s] = tally.est
        if shrink:
            tally.end()
        else:
            tally.open()
    return count
