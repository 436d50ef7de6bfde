"""Whole runs for the squared loss on dense rows of few features: a Gram matrix, then one more pass.

X is (n, d) by rows; with a border the last entry of w is the intercept. Row i has the weight
scale weights_i. What these cannot do they say, and whoever called takes another way. The sizes of
all arrays are trusted.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt

from .small cimport (
    APCG_GRAM_BLOCK, BLOCK, apcg_add_rows_double, apcg_gram_double, apcg_times_double, factor_of,
    solve_by, sum_of,
)

cdef double EPS = 2.0**-52

cdef Squares squares_of(const double[:, ::1] X, bint border, const double[:, ::1] y,
                        const double[::1] weights, double unit) noexcept:
    return Squares(&X[0, 0], X.shape[0], X.shape[1], X.shape[1] + border, y.shape[1], &y[0, 0],
                   &weights[0], -1 if weights.shape[0] > 1 else 0, unit)


cdef void moments_of(const Squares *p, double *room, double *H, double *c) noexcept nogil:
    cdef double[BLOCK] s
    cdef double[BLOCK] sy
    cdef Py_ssize_t i, j, k, rows
    for j in range(p.size * p.size):
        H[j] = 0.0
    for j in range(p.K * p.size):
        c[j] = 0.0
    i = 0
    while i < p.n:
        rows = min(p.n - i, <Py_ssize_t>BLOCK)
        for j in range(rows):
            s[j] = p.weights[(i + j) & p.mask] * p.unit
        apcg_gram_double(p.X + i * p.d, rows, p.d, s, p.size > p.d, room, H)
        for k in range(p.K):
            for j in range(rows):
                sy[j] = s[j] * p.y[(i + j) * p.K + k]
            apcg_add_rows_double(p.X + i * p.d, rows, p.d, sy, c + k * p.size)
            if p.size > p.d:
                c[k * p.size + p.d] += sum_of(sy, rows, False)
        i += BLOCK


def moments(const double[:, ::1] X, bint border, const double[:, ::1] y,
            const double[::1] weights, double unit, double[:, ::1] H, double[:, ::1] c):
    """H = the upper triangle of X' diag(s) X and c = y' diag(s) X, s = unit weights, in one pass."""
    cdef Squares p = squares_of(X, border, y, weights, unit)
    cdef double[::1] room = np.empty(2 * max(APCG_GRAM_BLOCK, p.size + 8))
    with nogil:
        moments_of(&p, &room[0], &H[0, 0], &c[0, 0])


cdef double residuals(const Squares *p, const double *w, double *x, double *room, double *pull,
                      bint all_of_it) noexcept nogil:
    """The loss at W, x = y - W a - b and pull = x' diag(s) X, in one pass over X.

    A block has a sum of its own, in `room` for d numbers: rounding grows with the numbers of a sum.
    Unless `all_of_it`, only the border's entries of `pull` are written.
    """
    cdef double[BLOCK] sx
    cdef double[BLOCK] z
    cdef Py_ssize_t i, j, k, at, rows
    cdef double total = 0.0, part
    cdef const double *own
    cdef double *out
    for k in range(p.K):
        for j in range(0 if all_of_it else p.d, p.size):
            pull[k * p.size + j] = 0.0
    i = 0
    while i < p.n:
        rows = min(p.n - i, <Py_ssize_t>BLOCK)
        for k in range(p.K):
            own, out, part = w + k * p.size, pull + k * p.size, 0.0
            apcg_times_double(p.X + i * p.d, rows, p.d, own, own[p.d] if p.size > p.d else 0.0, z)
            for j in range(rows):
                at = (i + j) * p.K + k
                x[at] = p.y[at] - z[j]
                sx[j] = p.weights[(i + j) & p.mask] * p.unit * x[at]
                part += sx[j] * x[at]
            if all_of_it:
                for j in range(p.d):
                    room[j] = 0.0
                apcg_add_rows_double(p.X + i * p.d, rows, p.d, sx, room)
                for j in range(p.d):
                    out[j] += room[j]
            if p.size > p.d:
                out[p.d] += sum_of(sx, rows, False)
            total += part
        i += BLOCK
    return 0.5 * total


cdef double rounding_of(Py_ssize_t n) noexcept nogil:
    """What rounding can make of such a sum over n rows, for sizes of 1, and some more."""
    return EPS * (BLOCK / 4 + n / BLOCK + 16)


cdef double slopes(const double *H, const double *c, const double *w, Py_ssize_t size,
                   double square, double relative, double *g, double *off) noexcept nogil:
    """g = c - H w by the upper triangle of H, and what rounding can make of it, `off`.

    By Cauchy and Schwarz entry j of X' diag(s)(y - X w), however it is summed, is off by at most a
    part `relative` of sqrt(H_jj) (sqrt(sum_i s_i y_i^2) + sum_k sqrt(H_kk)|w_k|). `square` is that
    first sum. Returns <c, w>.
    """
    cdef Py_ssize_t j, k
    cdef double size_of = sqrt(square), part, total = 0.0
    for j in range(size):
        g[j] = c[j]
    for j in range(size):
        size_of += sqrt(H[j * size + j]) * fabs(w[j])
        total += c[j] * w[j]
        part = H[j * size + j] * w[j]
        for k in range(j + 1, size):
            part += H[j * size + k] * w[k]
            g[k] -= H[j * size + k] * w[j]
        g[j] -= part
    for j in range(size):
        off[j] = relative * sqrt(H[j * size + j]) * size_of
    return total


def ridge(const double[:, ::1] X, bint border, const double[:, ::1] y, const double[::1] weights,
          double scale, double gamma, const double[::1] ridges, double tol, double least,
          int polish, int most, const double[:, ::1] gram, const double[:, ::1] moment,
          double[::1] w, double[::1] x) -> tuple[int, float, float]:
    """One factor for the squared loss, and steps with it to a gap of tol P; b is the best for w.

        (scale/(2 gamma)) sum_i s_i (a_i'w + b - y_i)^2 + (1/2) sum_j ridges_j w_j^2

    `gram` and `moment` are those of `moments`, for a unit of scale/gamma. A step is a pass over X, which
    also gives the gap at w. Where these bound the gap, rounding and all, the pass is half
    a one. `polish` steps are added at the end; no more than `most` are made in all, and none that
    brings nothing. Returns steps, P and P - D at x = s (y - X w - b)/gamma, which is written. Steps
    of 0 say that it cannot: the factor has too few digits.
    """
    cdef Squares p = squares_of(X, border, y, weights, scale / gamma)
    cdef Py_ssize_t d = p.d, size = p.size, i, j
    cdef double[::1] space = np.empty(5 * size + size * size)
    cdef double *g = &space[0]
    cdef double *way = g + size
    cdef double *diagonal = way + size
    cdef double *off = diagonal + size
    cdef double *room = off + size
    cdef double *H = room + size
    cdef const double *edge = &gram[0, d] if border else NULL
    cdef const double *c = &moment[0, 0]
    cdef double P = 0.0, gap = 0.0, shift = 0.0, square = 0.0, before, slope
    cdef double relative = EPS * (p.n + 2 * size + 16)  # twice what it may be
    cdef int step = 0
    cdef bint done = False, known
    with nogil:
        for i in range(p.n):
            square += p.unit * weights[i & p.mask] * p.y[i] * p.y[i]
        for j in range(size * size):
            H[j] = (&gram[0, 0])[j]
        for j in range(size):
            w[j] = 0.0
            g[j] = c[j]
            H[j * size + j] += ridges[j] if j < d else 0.0
        if factor_of(H, size, least, diagonal):
            gap = INFINITY
            for step in range(1, most + 1):
                solve_by(H, size, diagonal, g, way)
                for j in range(size):
                    w[j] += way[j]
                before, gap = gap, 0.0
                P = 0.5 * (square - slopes(&gram[0, 0], c, &w[0], size, square, relative, g, off))
                for j in range(d):
                    slope = fabs(g[j] - ridges[j] * w[j]) + off[j]
                    gap += 0.5 * slope * (slope / ridges[j])
                known = polish == 0 and gap <= 0.1 * tol * P
                P = residuals(&p, &w[0], &x[0], room, g, not known)
                if border:  # by a rounding: b is the best there is
                    shift = g[d] / edge[d * size]
                    w[d] += shift
                    P -= 0.5 * shift * g[d]
                gap = 0.0
                for j in range(d):
                    g[j] -= ridges[j] * w[j] + (shift * edge[j * size] if border else 0.0)
                    slope = fabs(g[j]) + (off[j] if known else 0.0)
                    gap += 0.5 * slope * (slope / ridges[j])
                    P += 0.5 * ridges[j] * w[j] * w[j]
                if border:
                    g[d] = 0.0
                done = gap <= tol * fabs(P)
                if done and polish > 0:
                    polish -= 1
                elif done or not gap < 0.25 * before:
                    break
        for i in range(p.n):
            x[i] = weights[i & p.mask] / gamma * (x[i] - shift)
    return step if done else 0, P, gap
