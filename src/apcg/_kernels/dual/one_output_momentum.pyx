"""The sweep of `one_output` with momentum, and what surrounds it.

APCG (Algorithm 2, gamma_0 = mu) in the change of variables of Proposition 1, on uneven samples:
row i has r_i of the N steps of a sweep. With alpha = sqrt(mu)/N and kappa_i = sqrt(mu)/r_i,

    z = v - s u/2,    x = y = v + s u/2 after s *= rho = (1 - alpha)/(1 + alpha)
    h = argmin_h (kappa_i L_i/2) h^2 - G h + epsilon|z_i + h|  with z_i + h in the domain
    u_i += (kappa_i - 1) h/s,    v_i += (1 + kappa_i) h/2

and p = A u/(sigma n), q = A v/(sigma n) with them. A row settles if z_i has come to a place to rest
and x_i is near: both are put there by the same update of p and q, if the dual does not fall by it.

An uneven sweep is arranged in as many slots as the largest r. The rows of class r have r rounds, each
over slots/r slots; a round is a shuffle of the blocks of the class, and a slot takes its share of
every class.
"""

from libc.math cimport INFINITY, fabs, log, sqrt
from libc.stdint cimport uint32_t, uint64_t

from .one_output cimport (Order, Rows, Tally, fetch_entries, follow, in_order, logistic_part,
                         look_ahead, part_of_gap, rests, sigmoid)
from ..losses.scalar cimport interval_dual_prox
from ..common.types cimport ROUNDING, index_t, value_t

cdef extern from "row_products.h" nogil:
    # Macros, as in `one_output`.
    void sparse_dot2_wide(const void *a, const void *r, Py_ssize_t m, const double *pq,
                          double sp, double sq)
    void sparse_add2(const void *a, const void *r, Py_ssize_t m, double *pq, double dp, double dq)
    void dense_dot2_wide(const void *a, Py_ssize_t m, const double *pq, double sp, double sq)
    void dense_add2(const void *a, Py_ssize_t m, double *pq, double dp, double dq)


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


cdef double logistic_root(double *guess, double K, double R, double single) noexcept nogil:
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
        e += d
        if fabs(d) < single:
            x = follow(x, d)
            break
        if low < e < high:
            x = follow(x, d) if fabs(d) <= 0.5 else sigmoid(e)
        else:
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
        const value_t *data, const index_t *columns, const index_t *indptr,
        Rows rows,
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
    cdef Py_ssize_t block, k, i, size = rows.features
    cdef const value_t *row
    cdef const index_t *own = NULL
    cdef double gamma = theta[2], epsilon = theta[1], lower = theta[3], upper = theta[4]
    cdef double pb = state.pb, qb = state.qb, scale = rows.scale, border = rows.border
    cdef double s = state.s, alpha = state.root / state.N, settle = state.settle
    cdef double rho = (1.0 - alpha) / (1.0 + alpha), single = rows.single
    cdef double est = tally.est, sp = 0.0, sq = 0.0, kappa, m, weight, label, G, step, u, v, y, c, z, h
    cdef double du, dv, t, scaled, half
    cdef long long count = 0
    cdef Order order = in_order(keep, begin, end, blocks, rows.ahead)
    for block in range(blocks):
        kappa = state.root / visits[block]
        final = last[block] != 0
        for k in range(begin[block], end[block]):
            i = keep[k]
            if sparse:
                look_ahead(&order, data, columns, indptr, labels, L, uv, guess, 2)
            if i < 0:
                continue
            if sparse:
                row, own = data + indptr[i], columns + indptr[i]
                size = indptr[i + 1] - indptr[i]
                sparse_dot2_wide(row, own, size, pq, sp, sq)
                if rows.far:
                    fetch_entries(&order, columns, indptr, pq, 2)
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
                z = logistic_root(guess + 2 * i, scaled - 4.0, scaled * c - m - 4.0 * y, single)
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
    tally.work += count


def accelerated_sweep(
        const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Rows rows, Accelerated state, Tally tally, Py_ssize_t[::1] keep,
        const Py_ssize_t[::1] begin, const Py_ssize_t[::1] end, const Py_ssize_t[::1] visits,
        const Py_ssize_t[::1] last):
    """One step on the rows keep[begin[k]:end[k]], for each k in order, which have visits[k] each.

    last[k] says that no more of these follow in the sweep: then the rows are counted in `est`.
    """
    cdef const value_t *values = &data[0] if data.shape[0] else NULL
    cdef const index_t *bounds = &indptr[0] if indptr.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else bounds
    if begin.shape[0] == 0:
        return
    with nogil:
        accelerated_rows(values, columns, bounds, rows, state, tally, &keep[0], &begin[0],
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


def dual_parts(Rows rows, Accelerated state, double[::1] x) -> tuple[float, int]:
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
