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

from ..dual.one_output cimport row_add, row_dot
from ..common.types cimport index_t, value_t

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


def weigh(Pieces at, double skip, double[::1] weight,
          double[::1] pull) -> tuple[float, float, float, int]:
    """weight_i = sum of 1/theta, pull_i = sum of g e/theta over the pieces of row i.

    Weights below `skip` times the largest become 0. Gives the sum of a sigma + room xi, that of the
    losses, the largest weight (NaN if one is not finite, or not positive), and how many are not 0.
    """
    cdef Py_ssize_t i, p, k, count = 0
    cdef double mu = 0.0, value = 0.0, most = 0.0, bend, e, w, r, c, least
    cdef double has = 1.0 if at.bounded else 0.0
    with nogil:
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
    return mu, value, most, count


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
    cdef Py_ssize_t i, j, p, k, first = 0, size = d
    cdef double fastest = 0.0, linear = 0.0, square = 0.0
    cdef double edge = constant * dw[d] if constant != 0.0 else 0.0, dz = 0.0, bend, e, da, ds, dx, c
    cdef double u, v, up, down, one, two, has = 1.0 if at.bounded else 0.0
    cdef double edges[2]
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    cdef const double *step = &dw[0]
    cdef double *pq = &pair[0]
    edges[0] = edges[1] = 0.0
    with nogil:
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
        pair[2 * d] += constant * edges[0]
        pair[2 * d + 1] += constant * edges[1]
    return fastest, linear, square


def correct(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, double constant, const double[::1] dw, double centre, Pieces at,
            Py_ssize_t begin, Py_ssize_t end, double[::1] pull) -> float:
    """The corrector's step, kept in `at`; gives 1 over the longest that keeps all positive.

    pull += X' g da. X is of the rows from `begin` to `end`.
    """
    cdef Py_ssize_t i, j, p, k, first = 0, size = d
    cdef double total, edges = 0.0
    cdef double *out = &pull[0]
    cdef double fastest = 0.0, edge = constant * dw[d] if constant != 0.0 else 0.0, dz = 0.0
    cdef double bend, low, high, da, u, v, c, has = 1.0 if at.bounded else 0.0
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    cdef const double *step = &dw[0]
    with nogil:
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
        pull[d] += constant * edges
    return fastest


def move(Pieces at, double t):
    """A step of length t along what `correct` found."""
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(at.n):
            at.z[i] += t * at.dz[i]
        for k in range(at.n * at.pieces):
            at.a[k] += t * at.da[k]
            if at.bounded:
                at.room[k] -= t * at.da[k]
            at.sigma[k] += t * at.dsigma[k]
            at.xi[k] += t * at.dxi[k]
