"""Sweeps over the rows of a dual with g = L2, a whole sweep in one call, made for seconds.

x_i = s_i a_i, where s_i is the weight of row i: in units of a_i every row has the same loss. With
w = A x/(sigma n), sigma = lambda times the strong convexity of g, n times the dual is, along row i,

    -n D/s_i = phi*(-a) + m a + (q_i/2)(a - a_i)^2 + ..,     q_i = s_i |A_i|^2/(sigma n)

m the margin or residual of the row at w. Every loss of the interval family is

    phi*(-a) = -k a + epsilon|a| + (gamma/2) a^2   on [lower, upper]

so with G = k - m - gamma a_i and L_i = q_i + gamma the exact step is clip(soft(a_i + G/L_i)). The row
of the gap, s_i (phi(m) + phi*(-a_i) + m a_i), is what `est` sums: it costs no pass.

Logistic: with eta = logit(a) the step solves eta + m + q_i (sigmoid(eta) - a_i) = 0. eta_i is kept,
so that most steps are one of Halley's, with the third-order series of sigmoid and no exp.

A row that rests (at a bound, or at 0 where epsilon holds it, and G points outward) takes no step.
Beyond the thresholds `low` and `high`, which are the greatest violations of the last sweep, it is
dropped from the list of rows: LIBLINEAR's shrinking. A dropped row i is ~i in the list.

A free intercept b is one more feature, constant: it is a number of its own, stored in no row.
"""

from libc.math cimport INFINITY, exp, fabs, log, log1p, sqrt
from libc.stdint cimport uint32_t, uint64_t

from .losses cimport interval_dual_prox, slope
from .types cimport ROUNDING, index_t, value_t

cdef extern from "rows.h" nogil:
    # Macros: they take the values and row numbers by any pointer type and assign to s.
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)
    void dense_dot1_wide(const void *a, Py_ssize_t m, const double *x, double s)
    void dense_add1(const void *a, Py_ssize_t m, double *x, double dx)
    void sparse_dot2_wide(const void *a, const void *r, Py_ssize_t m, const double *pq,
                          double sp, double sq)
    void sparse_add2(const void *a, const void *r, Py_ssize_t m, double *pq, double dp, double dq)
    void dense_dot2_wide(const void *a, Py_ssize_t m, const double *pq, double sp, double sq)
    void dense_add2(const void *a, Py_ssize_t m, double *pq, double dp, double dq)
    void prefetch "APCG_PREFETCH"(const void *address)


cdef class Rows:
    """The problem without the numbers of A.

    theta    (k, epsilon, gamma, lower, upper); for the logistic loss of no meaning
    labels   y: m = y (a'w + b) for a loss of margins, a'w + b - y otherwise
    weights  s, or one number for all
    L        q_i + gamma
    scale    1/(sigma n);  border  c^2/(sigma n) with an intercept, else 0
    series, enough, easy   logistic: steps below `series` need no exp; Newton ends at a step of
                           `enough`; a row with q_i < easy takes one step
    """

    cdef const double[::1] theta, labels, weights, L
    cdef bint logistic, margin
    cdef Py_ssize_t features
    cdef double scale, border, series, enough, easy

    def __init__(self, const double[::1] theta, const double[::1] labels,
                 const double[::1] weights, const double[::1] L, Py_ssize_t features, *,
                 bint logistic, bint margin, double scale, double border=0.0,
                 double series=2e-3, double enough=1e-2, double easy=0.5):
        self.theta, self.labels, self.weights, self.L = theta, labels, weights, L
        self.features, self.logistic, self.margin = features, logistic, margin
        self.scale, self.border = scale, border
        self.series, self.enough, self.easy = series, enough, easy


cdef class Tally:
    """What a sweep goes by and what it finds; `begin` before each sweep.

    low, high            the thresholds: a resting row is dropped beyond them
    least, greatest      the projected G of this sweep
    est                  the sum over rows of their parts of the gap
    count                nonzeros stepped on, and one for each row
    """

    cdef public double low, high, least, greatest, est
    cdef public long long count

    def __init__(self):
        self.low, self.high, self.count = -INFINITY, INFINITY, 0
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


# ---- the interval family ----------------------------------------------------------------------

cdef inline double part_of_gap(double m, double a, const double *theta) noexcept nogil:
    """phi(m) + phi*(-a) + m a, in a form that does not cancel."""
    cdef double p = slope(m, theta)
    if p == a:
        return 0.0
    return (p - a) * (theta[0] - m - 0.5 * theta[2] * (p + a)) - theta[1] * (fabs(p) - fabs(a))


cdef inline bint rests(double a, double G, const double *theta, Tally tally, bint *drop
                       ) noexcept nogil:
    """Whether no step from a raises the dual; if so, whether to drop the row.

    The slopes of the dual to the right and to the left are G - epsilon and G + epsilon at 0, and
    the same on both sides elsewhere. The one that points to a better a is noted.
    """
    cdef double right = G, left = G
    if theta[1] > 0.0:
        right = G - theta[1] if a >= 0.0 else G + theta[1]
        left = G - theta[1] if a > 0.0 else G + theta[1]
    if a < theta[4] and right > 0.0:
        if right > tally.greatest:
            tally.greatest = right
        return False
    if a > theta[3] and left < 0.0:
        if left < tally.least:
            tally.least = left
        return False
    drop[0] = (a >= theta[4] or right < tally.low) and (a <= theta[3] or left > tally.high)
    return True


# ---- logistic -----------------------------------------------------------------------------------

cdef inline double sigmoid(double eta) noexcept nogil:
    cdef double e
    if eta > 0.0:
        return 1.0 / (1.0 + exp(-eta))
    e = exp(eta)
    return e / (1.0 + e)


cdef inline double softplus(double t) noexcept nogil:
    return t + log1p(exp(-t)) if t > 0.0 else log1p(exp(t))


cdef inline double follow(double a, double d) noexcept nogil:
    """sigmoid(eta + d) for a = sigmoid(eta) and a small d, to the third order."""
    cdef double w = a * (1.0 - a)
    return a + w * d * (1.0 + d * ((0.5 - a) + d * (1.0 - 6.0 * w) / 6.0))


cdef inline double logistic_part(double m, double a, double eta) noexcept nogil:
    """phi(m) + phi*(-a) + m a, by its second order unless m is far from -eta."""
    cdef double r = eta + m
    if -1.0 < r < 1.0:
        return 0.5 * a * (1.0 - a) * r * r
    return softplus(-m) - softplus(eta) + a * r


cdef double logistic_step(double *eta, double a, double m, double q, double series,
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
    if fabs(d) < series:
        eta[0] += d
        return follow(a, d)
    low, high = (-m, eta[0]) if r > 0.0 else (eta[0], -m)
    e = eta[0] + d
    if not low <= e <= high:
        e = eta[0] - r / f1
    x = sigmoid(e)
    if q >= easy:
        for k in range(60):
            f = e + m + q * (x - a)
            if f > 0.0:
                high = e
            else:
                low = e
            d = -f / (1.0 + q * x * (1.0 - x))
            if fabs(d) < enough:
                e += d
                x = follow(x, d)
                break
            e += d
            if not low < e < high:
                e = 0.5 * (low + high)
            x = sigmoid(e)
    eta[0] = e
    return x


cdef inline void fetch_row(const value_t *data, const index_t *columns, const index_t *indptr,
                           Py_ssize_t i) noexcept nogil:
    """Ask for a whole row, by cache lines: of its place no hardware can know where rows were left
    out or a block ends."""
    cdef const char *at = <const char *> (data + indptr[i])
    cdef const char *end = <const char *> (data + indptr[i + 1])
    while at < end:
        prefetch(at)
        at += 64
    at = <const char *> (columns + indptr[i])
    end = <const char *> (columns + indptr[i + 1])
    while at < end:
        prefetch(at)
        at += 64


# ---- the sweep without momentum -------------------------------------------------------------------

cdef void plain_rows(
        const value_t *data, const index_t *columns, const index_t *indptr, Rows rows,
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
    cdef Py_ssize_t block, k, i, j, size = rows.features
    cdef const value_t *row
    cdef const index_t *own = NULL
    cdef double gamma = theta[2], b = state.b, scale = rows.scale, border = rows.border
    cdef double series = rows.series, enough = rows.enough, easy = rows.easy
    cdef double est = tally.est, m = 0.0, s, label, G, step, old, new, h
    cdef long long count = 0
    for block in range(blocks):
        for k in range(begin[block], end[block]):
            i = keep[k]
            if i < 0:
                continue
            if sparse:
                row, own = data + indptr[i], columns + indptr[i]
                size = indptr[i + 1] - indptr[i]
                j = keep[k + 1] if k + 1 < end[block] else (
                    keep[begin[block + 1]] if block + 1 < blocks else i)
                if j >= 0 and j != i + 1:
                    fetch_row(data, columns, indptr, j)
                sparse_dot1_wide(row, own, size, w, m)
            else:
                row = data + i * size
                dense_dot1_wide(row, size, w, m)
            count += size + 1
            label, s, old = labels[i], weights[i & weight_mask], a[i]
            m = label * (m + b) if margin else m + b - label
            if logistic:
                est += s * logistic_part(m, old, eta[i])
                new = logistic_step(&eta[i], old, m, L[i] - 4.0, series, enough, easy)
            else:
                G = theta[0] - m - gamma * old
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
                dense_add1(row, size, w, scale * h)
            b += border * h
    state.b = b
    tally.est = est
    tally.count += count


def plain_sweep(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                Rows rows, Plain state, Tally tally, Py_ssize_t[::1] keep,
                const Py_ssize_t[::1] begin, const Py_ssize_t[::1] end):
    """One step on the rows keep[begin[k]:end[k]], for each k in order.

    Rows that are dropped are marked in `keep`.
    """
    cdef const value_t *values = &data[0] if data.shape[0] else NULL
    cdef const index_t *starts = &indptr[0] if indptr.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else starts
    if begin.shape[0] == 0:
        return
    with nogil:
        plain_rows(values, columns, starts, rows, state, tally, &keep[0], &begin[0], &end[0],
                   begin.shape[0])


# ---- the sweep with momentum ----------------------------------------------------------------------
#
# APCG (Algorithm 2, gamma_0 = mu) in the change of variables of Proposition 1, on uneven samples:
# row i has r_i of the N steps of a sweep. With alpha = sqrt(mu)/N and kappa_i = sqrt(mu)/r_i,
#
#     z = v - s u/2,    x = y = v + s u/2 after s *= rho = (1 - alpha)/(1 + alpha)
#     h = argmin_h (kappa_i L_i/2) h^2 - G h + epsilon|z_i + h|  with z_i + h in the domain
#     u_i += (kappa_i - 1) h/s,    v_i += (1 + kappa_i) h/2
#
# and p = A u/(sigma n), q = A v/(sigma n) with them. A row settles if z_i has come to a place to rest
# and x_i is near: both are put there by the same update of p and q, if the dual does not fall by it.

cdef class Accelerated:
    """The state with momentum.

    uv     u and v, interleaved;  pq  p and q, interleaved and aligned to 16 bytes
    guess  logistic: eta and sigmoid(eta) of the last z_i
    pb, qb the entries of p and q for the intercept
    root   sqrt(mu);  N  the steps of a sweep
    """

    cdef public double[:, ::1] uv, pq, guess
    cdef public double pb, qb, s, root, N, settle

    def __init__(self, double[:, ::1] uv, double[:, ::1] pq, double[:, ::1] guess, *,
                 double qb, double settle):
        if <size_t> &pq[0, 0] % 16:
            raise ValueError("pq must be aligned to 16 bytes")
        self.uv, self.pq, self.guess = uv, pq, guess
        self.pb, self.qb, self.s, self.settle = 0.0, qb, 1.0, settle
        self.root, self.N = 1.0, 1.0


cdef double logistic_root(double *guess, double K, double R, double series) noexcept nogil:
    """x = sigmoid(eta) with eta + K x = R, K > -4, from a guess, which becomes the root."""
    cdef double low = R - K if K > 0.0 else R, high = R if K > 0.0 else R - K
    cdef double e = guess[0], x = guess[1], f, f1, w, below, d
    cdef int k
    if not low <= e <= high:
        e = low if e < low else high
        x = sigmoid(e)
    for k in range(60):
        w = x * (1.0 - x)
        f = e + K * x - R
        f1 = 1.0 + K * w
        if f > 0.0:
            high = e
        else:
            low = e
        below = f1 * f1 - 0.5 * f * K * w * (1.0 - 2.0 * x)
        d = -f * f1 / below if below > 0.5 * f1 * f1 else -f / f1
        if fabs(d) < series:
            e += d
            x = follow(x, d)
            break
        e += d
        if not low < e < high:
            e = 0.5 * (low + high)
        x = sigmoid(e)
    guess[0], guess[1] = e, x
    return x


cdef inline double logistic_part_near(double m, double a, const double *guess) noexcept nogil:
    """`logistic_part` with logit(a) from a guess, where that is near."""
    cdef double w = guess[1] * (1.0 - guess[1]), d = a - guess[1]
    if fabs(d) < 0.1 * w:
        return logistic_part(m, a, guess[0] + d / w)
    a = 1e-12 if a < 1e-12 else (1.0 - 1e-12 if a > 1.0 - 1e-12 else a)
    return logistic_part(m, a, log(a / (1.0 - a)))


cdef void accelerated_rows(
        const value_t *data, const index_t *columns, const index_t *indptr, Rows rows,
        Accelerated state, Tally tally, Py_ssize_t *keep, const Py_ssize_t *begin,
        const Py_ssize_t *end, const Py_ssize_t *visits, const Py_ssize_t *last,
        Py_ssize_t blocks) noexcept nogil:
    cdef const double *theta = &rows.theta[0]
    cdef const double *labels = &rows.labels[0]
    cdef const double *weights = &rows.weights[0]
    cdef const double *L = &rows.L[0]
    cdef double *uv = &state.uv[0, 0]
    cdef double *pq = &state.pq[0, 0]
    cdef double *guess = &state.guess[0, 0] if rows.logistic else NULL
    cdef bint logistic = rows.logistic, margin = rows.margin, sparse = indptr != NULL
    cdef bint drop, resting, at_place, final
    cdef Py_ssize_t weight_mask = -1 if rows.weights.shape[0] > 1 else 0  # i & mask: i, or 0
    cdef Py_ssize_t block, k, i, j, size = rows.features
    cdef const value_t *row
    cdef const index_t *own = NULL
    cdef double gamma = theta[2], epsilon = theta[1], lower = theta[3], upper = theta[4]
    cdef double pb = state.pb, qb = state.qb, scale = rows.scale, border = rows.border
    cdef double s = state.s, alpha = state.root / state.N, settle = state.settle
    cdef double rho = (1.0 - alpha) / (1.0 + alpha), series = rows.series
    cdef double est = tally.est, sp = 0.0, sq = 0.0, kappa, m, weight, label, G, step, u, v, y, c, z, h
    cdef double du, dv, t, scaled, half
    cdef long long count = 0
    for block in range(blocks):
        kappa = state.root / visits[block]
        final = last[block] != 0
        for k in range(begin[block], end[block]):
            i = keep[k]
            if i < 0:
                continue
            if sparse:
                row, own = data + indptr[i], columns + indptr[i]
                size = indptr[i + 1] - indptr[i]
                j = keep[k + 1] if k + 1 < end[block] else (
                    keep[begin[block + 1]] if block + 1 < blocks else i)
                if j >= 0 and j != i + 1:
                    fetch_row(data, columns, indptr, j)
                sparse_dot2_wide(row, own, size, pq, sp, sq)
            else:
                row = data + i * size
                dense_dot2_wide(row, size, pq, sp, sq)
            count += size + 1
            label, weight, u, v = labels[i], weights[i & weight_mask], uv[2 * i], uv[2 * i + 1]
            s *= rho
            half = 0.5 * s
            m = sq + qb + half * (sp + pb)
            m = label * m if margin else m - label
            y, c = v + half * u, v - half * u
            scaled = kappa * L[i]
            if logistic:
                if final:
                    est += weight * logistic_part_near(m, y, guess + 2 * i)
                z = logistic_root(guess + 2 * i, scaled - 4.0, scaled * c - m - 4.0 * y, series)
                h = z - c
                at_place = False
            else:
                G = theta[0] - m - gamma * y
                resting = rests(y, G, theta, tally, &drop)
                # exactly there: an x that is outside by a rounding has to come back first
                if resting and u == 0.0 and (v == lower or v == upper
                                             or (epsilon > 0.0 and v == 0.0)):
                    if drop:
                        keep[k] = ~i
                    continue
                if final:
                    est += weight * part_of_gap(
                        m, lower if y < lower else (upper if y > upper else y), theta)
                step = 1.0 / scaled
                z = interval_dual_prox(c - step * (m + gamma * y), step, theta)
                h = z - c
                at_place = False
                if z == lower or z == upper or (epsilon > 0.0 and z == 0.0):
                    t = z - y
                    at_place = (fabs(t) <= settle and
                                t * (0.5 * L[i] * t - G) + epsilon * (fabs(z) - fabs(y)) <= 0.0)
            if at_place:
                du, dv = -u, z - v
                uv[2 * i] = 0.0
                uv[2 * i + 1] = z
            elif fabs(h) <= ROUNDING * fabs(c):
                continue
            else:
                du, dv = (kappa - 1.0) / s * h, 0.5 * (1.0 + kappa) * h
                uv[2 * i] = u + du
                uv[2 * i + 1] = v + dv
            weight *= label if margin else 1.0
            du *= weight
            dv *= weight
            if sparse:
                sparse_add2(row, own, size, pq, scale * du, scale * dv)
            else:
                dense_add2(row, size, pq, scale * du, scale * dv)
            pb += border * du
            qb += border * dv
    state.pb, state.qb, state.s = pb, qb, s
    tally.est = est
    tally.count += count


def accelerated_sweep(
        const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        Rows rows, Accelerated state, Tally tally, Py_ssize_t[::1] keep,
        const Py_ssize_t[::1] begin, const Py_ssize_t[::1] end, const Py_ssize_t[::1] visits,
        const Py_ssize_t[::1] last):
    """One step on the rows keep[begin[k]:end[k]], for each k in order, which have visits[k] each.

    last[k] says that no more of these follow in the sweep: then the rows are counted in `est`.
    """
    cdef const value_t *values = &data[0] if data.shape[0] else NULL
    cdef const index_t *starts = &indptr[0] if indptr.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else starts
    if begin.shape[0] == 0:
        return
    with nogil:
        accelerated_rows(values, columns, starts, rows, state, tally, &keep[0], &begin[0],
                         &end[0], &visits[0], &last[0], begin.shape[0])


# ---- what surrounds a sweep with momentum: visits, the order of the blocks, the dual -----------------

def choose_visits(Rows rows, Accelerated state, const Py_ssize_t[::1] keep,
                  const double[::1] lengths, double[::1] last, double[::1] moved,
                  Py_ssize_t[::1] exponents, double most, Py_ssize_t[::1] counts):
    """exponents[k] = log2 of the visits of row keep[k], from 0 to log2(most); counts of each.

    Visits are how far x has moved since `last`, in the norm of L, over the mean of that, which is
    weighted by lengths. `last` becomes x. `moved` is room for as many numbers as there are rows.
    """
    cdef Py_ssize_t k, i, e, mask = -1 if rows.weights.shape[0] > 1 else 0
    cdef double half = 0.5 * state.s, x, total = 0.0, weight = 0.0, mean, ratio
    with nogil:
        for k in range(keep.shape[0]):
            i = keep[k]
            x = state.uv[i, 1] + half * state.uv[i, 0]
            moved[k] = fabs(x - last[i]) * sqrt(rows.weights[i & mask] * rows.L[i])
            last[i] = x
            total += lengths[i] * moved[k]
            weight += lengths[i]
        mean = total / weight if weight > 0.0 else 0.0
        for k in range(counts.shape[0]):
            counts[k] = 0
        for k in range(keep.shape[0]):
            e = 0
            if 0.0 < mean < INFINITY:
                ratio = moved[k] / mean
                if ratio > most:
                    ratio = most
                while ratio >= 2.0 and e + 1 < counts.shape[0]:
                    ratio *= 0.5
                    e += 1
            exponents[k] = e
            counts[e] += 1


def arrange(const Py_ssize_t[::1] keep, const Py_ssize_t[::1] exponents,
            const Py_ssize_t[::1] counts, const Py_ssize_t[::1] lengths,
            const uint32_t[::1] random, Py_ssize_t[::1] listed, Py_ssize_t[::1] order,
            Py_ssize_t[::1] begin, Py_ssize_t[::1] end, Py_ssize_t[::1] visits,
            Py_ssize_t[::1] last):
    """The rows by class (`listed`) and the blocks of a sweep, one slot after the other.

    Class e has counts[e] rows in blocks of lengths[e], and 2^e rounds; each is a shuffle of its
    blocks, by as many of the random numbers. `order` is room for the blocks of all classes.
    """
    cdef Py_ssize_t highest = 0, e, k, slot, share, within, n, first, at, spot, j, out = 0, drawn = 0
    cdef Py_ssize_t rows_from[64]
    cdef Py_ssize_t blocks_from[64]
    cdef Py_ssize_t next_row[64]
    cdef Py_ssize_t blocks[64]
    with nogil:
        at = spot = 0
        for e in range(counts.shape[0]):
            rows_from[e] = next_row[e] = at
            blocks_from[e] = spot
            blocks[e] = (counts[e] + lengths[e] - 1) // lengths[e]
            at += counts[e]
            spot += blocks[e]
            if counts[e]:
                highest = e
        for k in range(keep.shape[0]):
            e = exponents[k]
            listed[next_row[e]] = keep[k]
            next_row[e] += 1
        for slot in range(<Py_ssize_t> 1 << highest):
            for e in range(highest + 1):
                n = blocks[e]
                if n == 0:
                    continue
                share = <Py_ssize_t> 1 << (highest - e)
                within = slot & (share - 1)
                first = blocks_from[e]
                if within == 0:         # a new round
                    for k in range(n):  # Fisher and Yates, from the inside out
                        j = <Py_ssize_t> ((<uint64_t> random[drawn] * <uint64_t> (k + 1)) >> 32)
                        drawn += 1
                        order[first + k] = order[first + j]
                        order[first + j] = k
                for k in range(within * n // share, (within + 1) * n // share):
                    at = order[first + k] * lengths[e]
                    begin[out] = rows_from[e] + at
                    end[out] = rows_from[e] + min(at + lengths[e], counts[e])
                    visits[out] = <Py_ssize_t> 1 << e
                    last[out] = (slot >> (highest - e)) == (<Py_ssize_t> 1 << e) - 1
                    out += 1


def dual_parts(Rows rows, Accelerated state, double[::1] x):
    """x = s_i a_i in its domain, |w|^2 and how many rows were outside; w is that of x as it was."""
    cdef Py_ssize_t i, mask = -1 if rows.weights.shape[0] > 1 else 0
    cdef double half = 0.5 * state.s, a, total = 0.0, t, lower = rows.theta[3], upper = rows.theta[4]
    cdef Py_ssize_t outside = 0
    with nogil:
        for i in range(x.shape[0]):
            a = state.uv[i, 1] + half * state.uv[i, 0]
            if not lower <= a <= upper:
                outside += 1
                a = lower if a < lower else upper
            x[i] = rows.weights[i & mask] * a
        for i in range(state.pq.shape[0]):
            t = state.pq[i, 1] + half * state.pq[i, 0]
            total += t * t
    return total, outside
