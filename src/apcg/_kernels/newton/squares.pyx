"""Whole runs for the squared loss on dense rows of few features: a Gram matrix, then one more pass.

X is (n, d) by rows; with a border the last entry of w is the intercept. Row i has the weight
scale weights_i. What these cannot do they say, and whoever called takes another way. The sizes of
all arrays are trusted.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt

from .small cimport (
    APCG_GRAM_BLOCK, apcg_add_rows_double, apcg_dot_double, apcg_gram_double, factor_of, solve_by,
    sum_of,
)

cdef double EPS = 2.0**-52

#: Rows that are read, and read again while they are in the cache.
cdef enum:
    BLOCK = 256
#: Below this tolerance all digits of w are wanted.
cdef double TIGHT = 1e-10



cdef struct Squares:
    # (1/2) sum_i s_i (a_i'w + b - y_i)^2, s_i = weights_i unit
    const double *X
    Py_ssize_t n, d, size
    const double *y
    const double *weights
    Py_ssize_t mask
    double unit


cdef Squares squares_of(const double[:, ::1] X, bint border, const double[::1] y,
                        const double[::1] weights, double unit) noexcept:
    return Squares(&X[0, 0], X.shape[0], X.shape[1], X.shape[1] + border, &y[0], &weights[0],
                   -1 if weights.shape[0] > 1 else 0, unit)


cdef void moments_of(const Squares *p, double *room, double *H, double *c) noexcept nogil:
    cdef double[BLOCK] s
    cdef double[BLOCK] sy
    cdef Py_ssize_t i, j, rows
    for j in range(p.size * p.size):
        H[j] = 0.0
    for j in range(p.size):
        c[j] = 0.0
    i = 0
    while i < p.n:
        rows = min(p.n - i, <Py_ssize_t>BLOCK)
        for j in range(rows):
            s[j] = p.weights[(i + j) & p.mask] * p.unit
            sy[j] = s[j] * p.y[i + j]
        apcg_gram_double(p.X + i * p.d, rows, p.d, s, p.size > p.d, room, H)
        apcg_add_rows_double(p.X + i * p.d, rows, p.d, sy, c)
        if p.size > p.d:
            c[p.d] += sum_of(sy, rows, False)
        i += BLOCK


def moments(const double[:, ::1] X, bint border, const double[::1] y, const double[::1] weights,
            double unit, double[:, ::1] H, double[::1] c):
    """H = the upper triangle of X' diag(s) X and c = X' diag(s) y, s = unit weights, in one pass."""
    cdef Squares p = squares_of(X, border, y, weights, unit)
    cdef double[::1] room = np.empty(2 * max(APCG_GRAM_BLOCK, p.size + 8))
    with nogil:
        moments_of(&p, &room[0], &H[0, 0], &c[0])


cdef double residuals(const Squares *p, const double *w, double *x, double *pull,
                      bint all_of_it) noexcept nogil:
    """The loss at w, x = y - X w - b and pull = X' diag(s) x, in one pass over X.

    Unless `all_of_it`, only the border's entry of `pull` is written.
    """
    cdef double[BLOCK] sx
    cdef Py_ssize_t i, j, rows
    cdef double total = 0.0, part, b = w[p.d] if p.size > p.d else 0.0
    for j in range(0 if all_of_it else p.d, p.size):
        pull[j] = 0.0
    i = 0
    while i < p.n:
        rows = min(p.n - i, <Py_ssize_t>BLOCK)
        part = 0.0
        for j in range(rows):
            x[i + j] = p.y[i + j] - b - apcg_dot_double(p.X + (i + j) * p.d, w, p.d)
            sx[j] = p.weights[(i + j) & p.mask] * p.unit * x[i + j]
            part += sx[j] * x[i + j]
        if all_of_it:
            apcg_add_rows_double(p.X + i * p.d, rows, p.d, sx, pull)
        if p.size > p.d:
            pull[p.d] += sum_of(sx, rows, False)
        total += part
        i += BLOCK
    return 0.5 * total


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


def ridge(const double[:, ::1] X, bint border, const double[::1] y, const double[::1] weights,
          double scale, double gamma, const double[::1] ridges, double tol, double least,
          int polish, int most, const double[:, ::1] gram, const double[::1] c, double[::1] w,
          double[::1] x) -> tuple[int, float, float]:
    """One factor for the squared loss, and steps with it to a gap of tol P; b is the best for w.

        (scale/(2 gamma)) sum_i s_i (a_i'w + b - y_i)^2 + (1/2) sum_j ridges_j w_j^2

    `gram` and `c` are those of `moments`, for a unit of scale/gamma. A step is a pass over X, which
    also gives the gap at w. Where `gram` and `c` bound the gap, rounding and all, the pass is half
    a one. `polish` steps are added at the end; no more than `most` are made in all, and none that
    brings nothing. Returns steps, P and P - D at x = s (y - X w - b)/gamma, which is written. Steps
    of 0 say that it cannot: the factor has too few digits.
    """
    cdef Squares p = squares_of(X, border, y, weights, scale / gamma)
    cdef Py_ssize_t d = p.d, size = p.size, i, j
    cdef double[::1] space = np.empty(4 * size + size * size)
    cdef double *g = &space[0]
    cdef double *way = g + size
    cdef double *diagonal = way + size
    cdef double *off = diagonal + size
    cdef double *H = off + size
    cdef const double *edge = &gram[0, d] if border else NULL
    cdef double P = 0.0, gap = 0.0, shift = 0.0, square = 0.0, before, slope
    cdef double relative = EPS * (p.n + 2 * size + 16)  # twice what it may be
    cdef int step = 0
    cdef bint done = False, known
    with nogil:
        for i in range(p.n):
            square += p.unit * weights[i & p.mask] * y[i] * y[i]
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
                P = 0.5 * (square - slopes(&gram[0, 0], &c[0], &w[0], size, square, relative, g, off))
                for j in range(d):
                    slope = fabs(g[j] - ridges[j] * w[j]) + off[j]
                    gap += 0.5 * slope * (slope / ridges[j])
                known = polish == 0 and gap <= 0.1 * tol * P
                P = residuals(&p, &w[0], &x[0], g, not known)
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


def lasso(const double[:, ::1] X, bint border, const double[::1] y, const double[::1] weights,
          double scale, double gamma, const double[::1] soft, const double[::1] ridge, double tol,
          int most, double[:, ::1] gram, double[::1] moment, double[::1] w,
          double[::1] x) -> tuple[int, float, float]:
    """Coordinate descent on the Gram matrix of a squared loss with L1, to a gap of tol P.

        P = (scale/(2 gamma)) sum_i s_i (a_i'w + b - y_i)^2 + sum_j soft_j |w_j| + (ridge_j/2) w_j^2

    H = X'SX and c = X'Sy, `gram` and `moment`, are overwritten. With them the gap of any w takes
    d^2 numbers:

        |r|^2 = y'Sy - 2 c'w + w'Hw,  <y, r> = y'Sy - c'w,  X'Sr = c - H w

    Sweeps go on until that is small. Then one more pass computes r, P and X'Sr from w alone, which
    is what the certificate is made of, with x = t s r/gamma. If it does not do, sweeps go on with
    that X'Sr. t makes x feasible where there is no ridge_j, with a bound on the rounding of X'Sr to
    spare. Below a tol of TIGHT sweeps go on until no digit of w moves: a pass costs more. b, the
    last of w, is the best for the others. Returns sweeps, P and D; 0 sweeps if `most`
    are too few or a feature has no curvature; D of -infinity if rounding leaves too little for tol.
    """
    cdef Squares p = squares_of(X, border, y, weights, scale / gamma)
    cdef Py_ssize_t d = p.d, size = p.size, i, j, k
    cdef double[::1] space = np.zeros(4 * size)
    cdef double *c = &moment[0]
    cdef double *q = &space[0]
    cdef double *edge = q + size
    cdef double *pull = edge + size
    cdef double *norm = pull + size
    cdef double *H = &gram[0, 0]
    cdef double moved, old, new, r, mean = 0.0, curvature, yy = 0.0, yr, rr, share = 0.3
    cdef double P = 0.0, D = -INFINITY, t = 0.0, shift = 0.0, least = 1e-15
    cdef int sweep = 0
    cdef bint able = True
    with nogil:
        for j in range(d):
            norm[j] = sqrt(H[j * size + j])
            able = able and norm[j] > 0.0 and soft[j] + ridge[j] > 0.0
        if border:
            mean = c[d] / H[d * size + d]
            for j in range(d):
                edge[j] = H[j * size + d]
                r = edge[j] / H[d * size + d]
                c[j] -= c[d] * r
                for k in range(j, d):
                    H[j * size + k] -= H[k * size + d] * r
                able = able and H[j * size + j] > 0.0
        for i in range(p.n):
            yy += weights[i & p.mask] * p.unit * (y[i] - mean) * (y[i] - mean)
        for j in range(d):
            for k in range(j):
                H[j * size + k] = H[k * size + j]
        while able and sweep < most:
            moved = 0.0
            for j in range(d):
                curvature = H[j * size + j]
                old = w[j]
                r = c[j] - q[j] + curvature * old
                new = (r - soft[j] if r > soft[j] else r + soft[j] if r < -soft[j] else 0.0) \
                    / (curvature + ridge[j])
                if new != old:
                    w[j] = new
                    for k in range(d):
                        q[k] += (new - old) * H[j * size + k]
                    moved = max(moved, fabs(new - old) / fabs(new) if new != 0.0 else 1.0)
            sweep += 1
            rr = yr = yy
            for j in range(d):
                pull[j] = c[j] - q[j]
                rr -= w[j] * (c[j] + pull[j])
                yr -= w[j] * c[j]
            D = dual_of(d, pull, norm, &soft[0], &ridge[0], yr, max(rr, 0.0), 0.0, &t)
            P = 0.5 * rr + value_of(d, &w[0], &soft[0], &ridge[0])
            if moved > least and (tol < TIGHT or not P - D <= share * tol * fabs(P)):
                continue
            if border:
                w[d] = mean
                for j in range(d):
                    w[d] -= edge[j] / H[d * size + d] * w[j]
            P = residuals(&p, &w[0], &x[0], pull, True)
            if border:  # by a rounding: b is the best there is
                shift = pull[d] / H[d * size + d]
                w[d] += shift
                P -= 0.5 * shift * pull[d]
            yr = 0.0
            for i in range(p.n):
                yr += weights[i & p.mask] * p.unit * y[i] * (x[i] - shift)
            for j in range(d):
                pull[j] -= shift * edge[j]
                c[j] = pull[j] + q[j]
            D = dual_of(d, pull, norm, &soft[0], &ridge[0], yr, 2.0 * P, (p.n + 8) * EPS, &t)
            P += value_of(d, &w[0], &soft[0], &ridge[0])
            if P - D <= tol * fabs(P):
                break
            if share < 1e-3 or moved <= least:
                D = -INFINITY
                break
            share *= 0.1
        else:
            sweep = 0
        for i in range(p.n):
            x[i] = t * weights[i & p.mask] / gamma * (x[i] - shift)
    return sweep, P, D


cdef double value_of(Py_ssize_t d, const double *w, const double *soft, const double *ridge) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(d):
        total += soft[j] * fabs(w[j]) + 0.5 * ridge[j] * w[j] * w[j]
    return total


cdef double dual_of(Py_ssize_t d, const double *pull, const double *norm, const double *soft,
                    const double *ridge, double yr, double rr, double unit, double *t) noexcept nogil:
    """D at t r, for the best t at which it is feasible: unit |X_j| |r| is the rounding of pull_j.

    A feature with ridge_j > 0 has a conjugate that is finite, and no bound on t above 1.
    """
    cdef double most = 0.0, over, total = 0.0, length = unit * sqrt(rr)
    cdef bint free = True
    cdef Py_ssize_t j
    for j in range(d):
        if ridge[j] > 0.0:
            free = False
        else:
            most = max(most, (fabs(pull[j]) + length * norm[j]) / soft[j])
    t[0] = (yr / rr if rr > 0.0 else 1.0) if free else 1.0
    if most > 0.0:
        t[0] = max(min(t[0], 1.0 / most), -1.0 / most)
    for j in range(d):
        if ridge[j] > 0.0:
            over = max(t[0] * fabs(pull[j]) + length * norm[j] - soft[j], 0.0)
            total += 0.5 * over * (over / ridge[j])
    return t[0] * yr - 0.5 * t[0] * t[0] * rr - total
