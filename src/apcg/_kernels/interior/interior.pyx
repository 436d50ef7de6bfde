"""Passes of the interior point method over the rows of X (`methods/interior/interior.py` has the equations).

A row has one piece of its loss, or two; piece p of row i is entry p n + i of `a`, `room` (s - a),
`sigma`, `xi`, `g` and `h`, and z_i is the prediction of row i. X is as in `_kernels/data/matrix.pyx`.

With c = gamma/s, theta = sigma/a + xi/room + c and e = h - g z - c a, a step dw of w moves a piece by

    da = (e + low/a - high/room - g dz)/theta,    dz = <A_i, dw>
    dsigma = (low - sigma da)/a - sigma,          dxi = (high + xi da)/room - xi

where low and high are what a sigma and room xi shall become: 0 in the predictor; `centre`, less what
the predictor's step misses to second order, in the corrector. Where a has no upper bound, xi is 0 and
1/room is taken as 0.
"""

import numpy as np

from libc.math cimport fabs

from ..common.types cimport index_t, int32_t, value_t
from ..dual.one_output cimport row_add, row_dot
from ..newton.small cimport (
    APCG_GRAM_BLOCK, apcg_add_rows_double, apcg_gram_double, factor_of, solve_by, sum_of,
)

cdef extern from "row_products.h" nogil:
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add2(const void *a, const void *r, Py_ssize_t m, double *pq, double dp, double dq)
    void dense_add2(const void *a, Py_ssize_t m, double *pq, double dp, double dq)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)


cdef class Pieces:
    """The state: arrays that the passes read and write, made by the method."""

    cdef readonly Py_ssize_t n, pieces
    cdef readonly bint bounded
    cdef readonly double gamma
    cdef double[::1] a, room, sigma, xi, low, high, da, dsigma, dxi, z, dz
    cdef const double[::1] g, h, s

    def __init__(self, a, room, sigma, xi, z, g, h, s, spare, bint bounded=True,
                 double gamma=0.0):
        self.bounded, self.gamma = bounded, gamma
        self.a, self.room, self.sigma, self.xi, self.z = a, room, sigma, xi, z
        self.g, self.h, self.s = g, h, s
        self.n, self.pieces = len(z), len(a) // max(len(z), 1)
        self.low, self.high, self.da, self.dsigma, self.dxi = spare[:5]
        self.dz = spare[5][:len(z)]


cdef inline double larger(double x, double y) noexcept nogil:
    return x if x > y else y


cdef inline double loss_of(double e, double gamma, bint bounded) noexcept nogil:
    """The loss of a piece, e = h - g z."""
    if e <= 0.0:
        return 0.0
    if bounded and e >= gamma:
        return e - 0.5 * gamma
    return 0.5 * e * e / gamma


cdef struct Weighed:
    double products, loss, most
    Py_ssize_t count


cdef Weighed weigh_rows(Pieces at, double skip, double *weight, double *pull) noexcept nogil:
    cdef Py_ssize_t i, p, k, count = 0
    cdef double mu = 0.0, value = 0.0, most = 0.0, bend, e, w, r, c, least
    cdef double has = 1.0 if at.bounded else 0.0
    for i in range(at.n):
        w = r = 0.0
        c = at.gamma / at.s[i]
        for p in range(at.pieces):
            k = p * at.n + i
            bend = 1.0 / (at.sigma[k] / at.a[k] + at.xi[k] / at.room[k] + c)
            e = at.h[k] - at.g[k] * at.z[i]
            value += at.s[i] * loss_of(e, at.gamma, at.bounded)
            e -= c * at.a[k]
            w += bend
            r += at.g[k] * e * bend
            mu += at.a[k] * at.sigma[k] + has * at.room[k] * at.xi[k]
        weight[i], pull[i] = w, r
        most = most if w <= most else w  # a NaN stays
        if not (w > 0.0 and w - w == 0.0):
            most = w - w
    least = skip * most
    for i in range(at.n):
        if weight[i] < least:
            weight[i] = 0.0
        else:
            count += 1
    return Weighed(mu, value, most, count)


def weigh(Pieces at, double skip, double[::1] weight,
          double[::1] pull) -> tuple[float, float, float, int]:
    """weight_i = sum of 1/theta, pull_i = sum of g e/theta over the pieces of row i.

    Weights below `skip` times the largest become 0. Gives the sum of a sigma + room xi, that of the
    losses, the largest weight (NaN if one is not finite, or not positive), and how many are not 0.
    """
    cdef Weighed found
    with nogil:
        found = weigh_rows(at, skip, &weight[0], &pull[0])
    return found.products, found.loss, found.most, found.count


cdef struct Predicted:
    double fastest, linear, square


cdef Predicted predict_rows(const value_t[::1] data, const index_t[::1] indices,
                            const index_t[::1] indptr, Py_ssize_t d, double constant,
                            const double *step, Pieces at, Py_ssize_t begin, Py_ssize_t end,
                            double *pq) noexcept nogil:
    cdef Py_ssize_t i, j, p, k, first = 0, size = d
    cdef double fastest = 0.0, linear = 0.0, square = 0.0
    cdef double edge = constant * step[d] if constant != 0.0 else 0.0, dz = 0.0, bend, e, da, ds, dx, c
    cdef double u, v, up, down, one, two, has = 1.0 if at.bounded else 0.0
    cdef double edges[2]
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    edges[0] = edges[1] = 0.0
    for i in range(begin, end):
        j = i - begin  # the row of X
        if sparse:
            first = indptr[j]
            size = indptr[j + 1] - first
            sparse_dot1_wide(a + first, columns + first, size, step, dz)
        else:
            dz = row_dot(a + j * d, step, d)
        dz += edge
        one = two = 0.0
        c = at.gamma / at.s[i]
        for p in range(at.pieces):
            k = p * at.n + i
            u, v = 1.0 / at.a[k], has / at.room[k]
            bend = 1.0 / (at.sigma[k] * u + at.xi[k] * v + c)
            e = at.h[k] - at.g[k] * at.z[i] - c * at.a[k]
            da = (e - at.g[k] * dz) * bend
            up, down = da * u, da * v
            ds, dx = -at.sigma[k] * (1.0 + up), -at.xi[k] * (1.0 - down)
            fastest = larger(fastest, larger(larger(-up, down), larger(1.0 + up, 1.0 - down)))
            linear += da * at.sigma[k] + at.a[k] * ds - da * at.xi[k] + at.room[k] * dx
            square += da * ds - da * dx
            at.low[k], at.high[k] = -da * ds, da * dx
            one += at.g[k] * (e - up * ds - down * dx) * bend
            two += at.g[k] * (u - v) * bend
        edges[0] += one
        edges[1] += two
        if sparse:
            sparse_add2(a + first, columns + first, size, pq, one, two)
        else:
            dense_add2(a + j * d, d, pq, one, two)
    if constant != 0.0:
        pq[2 * d] += constant * edges[0]
        pq[2 * d + 1] += constant * edges[1]
    return Predicted(fastest, linear, square)


def predict(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, double constant, const double[::1] dw, Pieces at, Py_ssize_t begin,
            Py_ssize_t end, double[::1] pair) -> tuple[float, float, float]:
    """The predictor's step, and what the corrector needs of it, of the rows from `begin` to `end`.

    X is of these rows.

    `low` and `high` get what the step misses to second order. pair += X' of two vectors,
    interleaved (size of dw each): what the rows pull with centre = 0, and for each unit of centre.
    Gives 1 over the longest step, and the sums of (a + t da)(sigma + t dsigma) + (room - t da)
    (xi + t dxi) that go with t and t^2.
    """
    cdef Predicted found
    with nogil:
        found = predict_rows(data, indices, indptr, d, constant, &dw[0], at, begin, end, &pair[0])
    return found.fastest, found.linear, found.square


cdef double correct_rows(const value_t[::1] data, const index_t[::1] indices,
                         const index_t[::1] indptr, Py_ssize_t d, double constant,
                         const double *step, double centre, Pieces at, Py_ssize_t begin,
                         Py_ssize_t end, double *out) noexcept nogil:
    cdef Py_ssize_t i, j, p, k, first = 0, size = d
    cdef double total, edges = 0.0
    cdef double fastest = 0.0, edge = constant * step[d] if constant != 0.0 else 0.0, dz = 0.0
    cdef double bend, low, high, da, u, v, c, has = 1.0 if at.bounded else 0.0
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    for i in range(begin, end):
        j = i - begin  # the row of X
        if sparse:
            first = indptr[j]
            size = indptr[j + 1] - first
            sparse_dot1_wide(a + first, columns + first, size, step, dz)
        else:
            dz = row_dot(a + j * d, step, d)
        dz += edge
        at.dz[i] = dz
        total = 0.0
        c = at.gamma / at.s[i]
        for p in range(at.pieces):
            k = p * at.n + i
            low, high = at.low[k] + centre, at.high[k] + centre
            u, v = 1.0 / at.a[k], has / at.room[k]
            bend = 1.0 / (at.sigma[k] * u + at.xi[k] * v + c)
            da = (at.h[k] - at.g[k] * (at.z[i] + dz) - c * at.a[k] + low * u - high * v) * bend
            at.da[k] = da
            total += at.g[k] * da
            at.dsigma[k] = (low - at.sigma[k] * da) * u - at.sigma[k]
            at.dxi[k] = (high + at.xi[k] * da) * v - at.xi[k]
            fastest = larger(fastest, larger(-da * u, da * v))
            fastest = larger(fastest, -at.dsigma[k] / at.sigma[k])
            if at.bounded:
                fastest = larger(fastest, -at.dxi[k] / at.xi[k])
        edges += total
        if sparse:
            sparse_add1(a + first, columns + first, size, out, total)
        else:
            row_add(a + j * d, d, out, total)
    if constant != 0.0:
        out[d] += constant * edges
    return fastest


def correct(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, double constant, const double[::1] dw, double centre, Pieces at,
            Py_ssize_t begin, Py_ssize_t end, double[::1] pull) -> float:
    """The corrector's step, kept in `at`; gives 1 over the longest that keeps all positive.

    pull += X' g da. X is of the rows from `begin` to `end`.
    """
    cdef double fastest
    with nogil:
        fastest = correct_rows(
            data, indices, indptr, d, constant, &dw[0], centre, at, begin, end, &pull[0])
    return fastest


cdef void move_rows(Pieces at, double t) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(at.n):
        at.z[i] += t * at.dz[i]
    for k in range(at.n * at.pieces):
        at.a[k] += t * at.da[k]
        if at.bounded:
            at.room[k] -= t * at.da[k]
        at.sigma[k] += t * at.dsigma[k]
        at.xi[k] += t * at.dxi[k]


def move(Pieces at, double t):
    """A step of length t along what `correct` found."""
    with nogil:
        move_rows(at, t)


cdef struct Small:
    # lambda n diag(ridge) w - X' g a - fixed, on dense rows; w is the last of it for a border
    const double *X
    const double *ridge
    const double *fixed
    Py_ssize_t d, size


cdef void pulled(const Small *p, Pieces at, const double *rows, double *out) noexcept nogil:
    """out += X' rows"""
    apcg_add_rows_double(p.X, at.n, p.d, rows, out)
    if p.size > p.d:
        out[p.d] += sum_of(rows, at.n, False)


cdef void short_of(const Small *p, Pieces at, const double *w, double *rows,
                   double *short) noexcept nogil:
    """What is left of the condition on w; `rows` is room."""
    cdef Py_ssize_t i, j, part
    for i in range(at.n):
        rows[i] = 0.0
        for part in range(at.pieces):
            rows[i] -= at.g[part * at.n + i] * at.a[part * at.n + i]
    for j in range(p.size):
        short[j] = p.ridge[j] * w[j] - p.fixed[j]
    pulled(p, at, rows, short)


cdef bint passes(const Small *p, const double *w, const double *short, double products,
                 double value, double aim, double balance) noexcept nogil:
    """Whether the gap, as mu and what is left of the conditions tell it, is at most aim P."""
    cdef double gap = products
    cdef Py_ssize_t j
    for j in range(p.size):
        value += w[j] * (0.5 * p.ridge[j] * w[j] - p.fixed[j])
        if j < p.d:
            gap += 0.5 * short[j] * (short[j] / p.ridge[j])
    if p.size > p.d and not fabs(short[p.d]) <= balance * value:
        return False
    return gap <= aim * value


def run(const double[::1] data, bint border, const double[::1] ridge, const double[::1] least,
        const double[::1] fixed, double line, double aim, double balance, double skip, double part,
        double least_step, double weakest, int most, Pieces at, double[::1] w) -> int:
    """Mehrotra's steps on dense rows of few features, from w = 0 to a gap of aim P; how many.

    The conditions and the step are those of `InteriorRun`, of which `ridge`, `least`, `fixed` and
    `line` are the vectors and the number. 0: they do not arrive, or a factor has a pivot below
    `weakest`.
    """
    cdef Py_ssize_t n = at.n, size = w.shape[0], d = size - border, j
    cdef const int32_t[::1] none = np.empty(0, np.int32)
    cdef double[::1] space = np.empty(2 * n + 6 * size + size * size
                                      + 2 * max(APCG_GRAM_BLOCK, size + 8))
    cdef double *weight = &space[0]
    cdef double *pull = weight + n
    cdef double *short = pull + n
    cdef double *dw = short + size
    cdef double *pair = dw + size
    cdef double *scale = pair + 2 * size
    cdef double *g = scale + size
    cdef double *H = g + size
    cdef double *room = H + size * size
    cdef Small p = Small(&data[0], &ridge[0], &fixed[0], d, size)
    cdef Weighed now
    cdef Predicted found
    cdef double t, mu, centre, constant = 1.0 if border else 0.0
    cdef int step = 0
    cdef bint done = False
    with nogil:
        short_of(&p, at, &w[0], pull, short)
        now = weigh_rows(at, skip, weight, pull)
        while step < most and now.most - now.most == 0.0:
            if passes(&p, &w[0], short, now.products, now.loss + line, aim, balance):
                short_of(&p, at, &w[0], pull, short)  # what is kept of it has rounding errors
                done = passes(&p, &w[0], short, now.products, now.loss + line, aim, balance)
                if done:
                    break
                weigh_rows(at, skip, weight, pull)
            step += 1
            for j in range(size * size):
                H[j] = 0.0
            apcg_gram_double(p.X, n, d, weight, border, room, H)
            for j in range(size):
                H[j * size + j] += least[j]
                g[j] = -short[j]
            if not factor_of(H, size, weakest, scale):
                break
            pulled(&p, at, pull, g)
            solve_by(H, size, scale, g, dw)
            for j in range(2 * size):
                pair[j] = 0.0
            found = predict_rows(data, none, none, d, constant, dw, at, 0, n, pair)
            t = 1.0 if found.fastest <= 1.0 else 1.0 / found.fastest
            mu = now.products / (2 * n * at.pieces)
            if not mu > 0.0:
                break
            centre = (now.products + t * (found.linear + t * found.square)) / (2 * n * at.pieces)
            centre = mu * (max(centre, 0.0) / mu) ** 3
            for j in range(size):
                g[j] = pair[2 * j] + centre * pair[2 * j + 1] - short[j]
            solve_by(H, size, scale, g, dw)
            for j in range(size):
                g[j] = 0.0
            t = correct_rows(data, none, none, d, constant, dw, centre, at, 0, n, g)
            t = 1.0 if t <= part else part / t
            if not t > least_step:
                break
            move_rows(at, t)
            for j in range(size):
                w[j] += t * dw[j]
                short[j] += t * (ridge[j] * dw[j] - g[j])
            now = weigh_rows(at, skip, weight, pull)
    return step if done else 0
