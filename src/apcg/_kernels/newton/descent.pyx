"""Coordinate descent for the squared loss with L1, or a norm of rows of W, on a Gram matrix.

X is (n, d) by rows; with a border the last column of W is the intercept. The sizes of all arrays
are trusted.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt

from .small cimport apcg_dot_double
from .squares cimport Squares, residuals, rounding_of, squares_of

cdef double EPS = 2.0**-52
#: Below this tolerance all digits of w are wanted.
cdef double TIGHT = 1e-10


cdef struct Descent:
    # (1/2) total - <c, W> + (1/2) <W, H W> + alpha sum_j soft_j |W_j| + (ridge_j/2) |W_j|^2, W_j the
    # K entries of feature j; the rows of W and c, an output each, are `size` apart
    Py_ssize_t d, size, K
    double *H
    double *c
    double *w
    double *q  # H W
    double *pull  # c - H W, or what a pass over X gives
    double *norm  # sqrt(H_jj)
    double *r  # room for K numbers
    const double *soft
    const double *ridge
    double alpha, total


cdef double length_of(const Descent *m, const double *rows, Py_ssize_t j) noexcept nogil:
    """|row_j|, of K numbers."""
    cdef Py_ssize_t k
    cdef double total = 0.0
    if m.K == 1:
        return fabs(rows[j])
    for k in range(m.K):
        total += rows[k * m.size + j] * rows[k * m.size + j]
    return sqrt(total)


cdef double sweep_of(Descent *m) noexcept nogil:
    """Each feature to its best value; returns how far a feature went, relative to itself.

    A step that moves X w by a rounding of y is none.
    """
    cdef double moved = 0.0, curvature, length, keep, change, far, most, new
    cdef double rounding = EPS * sqrt(m.total)
    cdef Py_ssize_t i, j, k
    cdef double *q
    cdef const double *H
    for j in range(m.d):
        H, length = m.H + j * m.size, 0.0
        curvature = H[j]
        for k in range(m.K):
            i = k * m.size + j
            m.r[k] = m.c[i] - m.q[i] + curvature * m.w[i]
            length += m.r[k] * m.r[k]
        length = fabs(m.r[0]) if m.K == 1 else sqrt(length)
        keep, far, most = length - m.alpha * m.soft[j], 0.0, 0.0
        if keep > 0.0:
            keep /= length * (curvature + m.alpha * m.ridge[j])
        else:
            keep = 0.0
        for k in range(m.K):
            i, q, new = k * m.size + j, m.q + k * m.size, keep * m.r[k]
            change = new - m.w[i]
            most = max(most, fabs(new))
            if change != 0.0:
                m.w[i], far = new, max(far, fabs(change))
                for i in range(m.d):
                    q[i] += change * H[i]
        if far * m.norm[j] > rounding:
            moved = max(moved, far / most if most > 0.0 else 1.0)
    return moved


cdef double value_of(const Descent *m) noexcept nogil:
    """The penalty."""
    cdef double total = 0.0, length
    cdef Py_ssize_t j
    for j in range(m.d):
        length = length_of(m, m.w, j)
        total += m.soft[j] * length + 0.5 * m.ridge[j] * length * length
    return m.alpha * total


cdef double dual_of(const Descent *m, double yr, double rr, double off, double *t) noexcept nogil:
    """D at t r, for the best t at which it is feasible: off |X_j| is the rounding of pull_j.

    A feature with ridge_j > 0 has a conjugate that is finite, and no bound on t above 1.
    """
    cdef double most = 0.0, over, total = 0.0
    cdef bint free = True
    cdef Py_ssize_t j
    for j in range(m.d):
        if m.ridge[j] > 0.0:
            free = False
        else:
            over = (length_of(m, m.pull, j) + off * m.norm[j]) / (m.alpha * m.soft[j])
            most = max(most, over)
    t[0] = (yr / rr if rr > 0.0 else 1.0) if free else 1.0
    if most > 0.0:
        t[0] = max(min(t[0], 1.0 / most), -1.0 / most)
    for j in range(m.d):
        if m.ridge[j] > 0.0:
            over = t[0] * length_of(m, m.pull, j) + off * m.norm[j] - m.alpha * m.soft[j]
            over = max(over, 0.0)
            total += 0.5 * over * (over / (m.alpha * m.ridge[j]))
    return t[0] * yr - 0.5 * t[0] * t[0] * rr - total


cdef double looked_at(Descent *m, double off, double *P, double *t) noexcept nogil:
    """D by the Gram matrix alone, and P. The rounding of |X_j'r| is at most off |X_j|."""
    cdef double rr = m.total, yr = m.total
    cdef Py_ssize_t i, j, k
    for k in range(m.K):
        for j in range(m.d):
            i = k * m.size + j
            m.pull[i] = m.c[i] - m.q[i]
            rr -= m.w[i] * (m.c[i] + m.pull[i])
            yr -= m.w[i] * m.c[i]
    P[0] = 0.5 * rr + value_of(m)
    return dual_of(m, yr, max(rr, 0.0), off, t)


cdef Descent descent_of(double[:, ::1] gram, double[:, ::1] moment, double[:, ::1] w,
                        const double[::1] soft, const double[::1] ridge, double[::1] space,
                        Py_ssize_t d) noexcept:
    cdef Py_ssize_t size = gram.shape[0], K = w.shape[0]
    cdef double *room = &space[0]
    return Descent(d, size, K, &gram[0, 0], &moment[0, 0], &w[0, 0], room, room + K * size,
                   room + 2 * K * size, room + 2 * K * size + size, &soft[0], &ridge[0], 1.0, 0.0)


cdef bint measured(Descent *m) noexcept nogil:
    """The lower triangle of H, and `norm`; whether all features have curvature and a penalty."""
    cdef bint able = True
    cdef Py_ssize_t j, k
    for j in range(m.d):
        m.norm[j] = sqrt(m.H[j * m.size + j])
        able = able and m.norm[j] > 0.0 and m.soft[j] + m.ridge[j] > 0.0
        for k in range(j):
            m.H[j * m.size + k] = m.H[k * m.size + j]
    return able


cdef bint centred(Descent *m, double *mean, double *edge) noexcept nogil:
    """H and c with the best b taken out; whether all features still have curvature."""
    cdef Py_ssize_t d = m.d, size = m.size, j, k
    cdef double last = m.H[d * size + d], r
    cdef bint able = True
    for k in range(m.K):
        mean[k] = m.c[k * size + d] / last
    for j in range(d):
        edge[j] = m.H[j * size + d]
        r = edge[j] / last
        for k in range(m.K):
            m.c[k * size + j] -= m.c[k * size + d] * r
        for k in range(j, d):
            m.H[j * size + k] -= m.H[k * size + d] * r
            m.H[k * size + j] = m.H[j * size + k]
        able = able and m.H[j * size + j] > 0.0
    return able


def lasso(const double[:, ::1] X, bint border, const double[:, ::1] y, const double[::1] weights,
          double scale, double gamma, const double[::1] soft, const double[::1] ridge, double tol,
          int most, double[:, ::1] gram, double[:, ::1] moment, double[:, ::1] w,
          double[:, ::1] x) -> tuple[int, float, float]:
    """Coordinate descent on the Gram matrix of a squared loss with L1, to a gap of tol P.

        P = (scale/(2 gamma)) sum_i s_i |W a_i + b - y_i|^2 + sum_j soft_j |W_j| + (ridge_j/2) |W_j|^2

    W has a row for each output, and W_j are the K numbers of feature j. H = X'SX and c = y'SX,
    `gram` and `moment`, are overwritten. With them the gap of any W takes d^2 K numbers:

        |r|^2 = y'Sy - 2 c'w + w'Hw,  <y, r> = y'Sy - c'w,  X'Sr = c - H w

    Sweeps go on until that is small. Then one more pass computes r, P and X'Sr from w alone, which
    is what the certificate is made of, with x = t s r/gamma. If it does not do, sweeps go on with
    that X'Sr. t makes x feasible where there is no ridge_j, with a bound on the rounding of X'Sr to
    spare. Below a tol of TIGHT sweeps go on until no digit of w moves: a pass costs more. b, the
    last column of W, is the best for the others. Returns sweeps, P and D; 0 sweeps if `most`
    are too few or a feature has no curvature; D of -infinity if rounding leaves too little for tol.
    """
    cdef Squares p = squares_of(X, border, y, weights, scale / gamma)
    cdef Py_ssize_t d = p.d, size = p.size, K = p.K, i, j, k
    cdef double[::1] space = np.zeros((2 * K + 3) * size + 3 * K)
    cdef Descent m = descent_of(gram, moment, w, soft, ridge, space, d)
    cdef double *edge = m.norm + size + K
    cdef double *mean = edge + size
    cdef double *shift = mean + K
    cdef double *room = shift + K
    cdef double moved, part, yr, share = 0.3
    cdef double P = 0.0, D = -INFINITY, t = 0.0, least = 1e-15
    cdef int sweep = 0
    cdef bint able
    with nogil:
        able = measured(&m)
        if border:
            able = centred(&m, mean, edge) and able
        for i in range(p.n):
            for k in range(K):
                part = p.y[i * K + k] - mean[k]
                m.total += weights[i & p.mask] * p.unit * part * part
        while able and sweep < most:
            moved = sweep_of(&m)
            sweep += 1
            D = looked_at(&m, 0.0, &P, &t)
            if moved > least and (tol < TIGHT or not P - D <= share * tol * fabs(P)):
                continue
            for k in range(K if border else 0):
                m.w[k * size + d] = mean[k]
                for j in range(d):
                    m.w[k * size + d] -= edge[j] / m.H[d * size + d] * m.w[k * size + j]
            P = residuals(&p, m.w, &x[0, 0], room, m.pull, True)
            yr = 0.0
            for k in range(K):
                if border:  # by a rounding: b is the best there is
                    shift[k] = m.pull[k * size + d] / m.H[d * size + d]
                    m.w[k * size + d] += shift[k]
                    P -= 0.5 * shift[k] * m.pull[k * size + d]
                for i in range(p.n):
                    yr += weights[i & p.mask] * p.unit * p.y[i * K + k] * (x[i, k] - shift[k])
                for j in range(d):
                    m.pull[k * size + j] -= shift[k] * edge[j] if border else 0.0
                    m.c[k * size + j] = m.pull[k * size + j] + m.q[k * size + j]
            D = dual_of(&m, yr, 2.0 * P, rounding_of(p.n) * sqrt(2.0 * P), &t)
            P += value_of(&m)
            if P - D <= tol * fabs(P):
                break
            if share < 1e-3 or moved <= least:
                D = -INFINITY
                break
            share *= 0.1
        else:
            sweep = 0
        for i in range(p.n):
            for k in range(K):
                x[i, k] = t * weights[i & p.mask] / gamma * (x[i, k] - shift[k])
    return sweep, P, D


def path(double[:, ::1] gram, double[:, ::1] moment, double total, double relative,
         const double[::1] soft, const double[::1] ridge, const double[::1] alphas, double tol,
         double enough, int most, double[:, :, ::1] W, double[:, ::1] looks) -> int:
    """The same for many alphas, times which the penalty is, each from the answer before, without X.

    `total` is y'Sy. `relative` bounds what rounding has made of the moments, as in `slopes`, and is
    in the gaps: a row of `looks` has P, the gap and the number of sweeps. Sweeps go on to a gap of
    tol P, below a tol of TIGHT until no digit moves. Returns how many were solved, to a gap of
    `enough` P, from the first one on.
    """
    cdef Py_ssize_t K = moment.shape[0], d = gram.shape[0], i, j, k, a
    cdef double[:, ::1] w = np.zeros((K, d))
    cdef double[::1] space = np.zeros((2 * K + 1) * d + K)
    cdef Descent m = descent_of(gram, moment, w, soft, ridge, space, d)
    cdef double moved, off, P = 0.0, D = 0.0, t = 0.0
    cdef int sweep, done = 0
    cdef bint able
    m.total = total
    with nogil:
        able = measured(&m)
        for a in range(alphas.shape[0] if able else 0):
            m.alpha = alphas[a]
            for k in range(K):
                for j in range(d):
                    m.q[k * d + j] = apcg_dot_double(m.H + j * d, m.w + k * d, d)
            for sweep in range(1, most + 1):
                moved = sweep_of(&m)
                D = looked_at(&m, 0.0, &P, &t)
                if moved <= 1e-15 or (tol >= TIGHT and P - D <= 0.3 * tol * fabs(P)):
                    break
            off = sqrt(total)
            for j in range(d):
                off += m.norm[j] * length_of(&m, m.w, j)
            D = looked_at(&m, relative * off, &P, &t) - 3.0 * relative * off * off
            if not P - D <= enough * fabs(P):
                break
            looks[a, 0], looks[a, 1], looks[a, 2] = P, P - D, sweep
            for i in range(K * d):
                (&W[a, 0, 0])[i] = m.w[i]
            done = a + 1
    return done
