"""A whole run of Newton's method on a small dense problem, in one call.

X is (n, d) by rows; with a border the last entry of w is the intercept. Row i has the weight
scale weights_i. What these cannot do they say, and whoever called takes another way. The sizes of
all arrays are trusted.
"""

import numpy as np

from libc.math cimport fabs

cdef extern from "loss_derivatives.h" nogil:
    ctypedef struct apcg_along:
        double value, first, second
    ctypedef struct apcg_rows:
        const double *z
        const double *way
        const double *label
        const double *weight
        Py_ssize_t mask
        double t, scale
        int margin
        double *at
        double *slope
        double *bend
    apcg_along apcg_logistic(const apcg_rows *rows, Py_ssize_t n)
    apcg_along apcg_interval(const apcg_rows *rows, Py_ssize_t n, const double *theta)

cdef extern from *:
    """
    /* A sum of slopes that is this part of their sizes is zero. */
    #define APCG_BALANCED (8 * 2.220446049250313e-16)
    /* A slope that can change P by less than this part of it is rounding. */
    #define APCG_NOTHING 1e-13
    """
    const double BALANCED "APCG_BALANCED"
    const double NOTHING "APCG_NOTHING"


cdef struct Problem:
    const double *X
    Py_ssize_t n, d, size
    bint logistic
    const double *theta
    const double *ridge
    apcg_rows rows


cdef double ridge_of(const Problem *p, const double *w, const double *v) noexcept nogil:
    """sum_j ridge_j w_j v_j"""
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(p.d):
        total += p.ridge[j] * w[j] * v[j]
    return total


cdef void times(const Problem *p, const double *w, double *z) noexcept nogil:
    """z = X w + b"""
    cdef Py_ssize_t i
    cdef double b = w[p.d] if p.size > p.d else 0.0
    for i in range(p.n):
        z[i] = apcg_dot_double(p.X + i * p.d, w, p.d) + b


cdef apcg_along evaluate(Problem *p, const double *z, const double *way, double t) noexcept nogil:
    """The losses at z + t way; slope and bend of each row."""
    p.rows.z, p.rows.way, p.rows.t = z, way, t
    if p.logistic:
        return apcg_logistic(&p.rows, p.n)
    return apcg_interval(&p.rows, p.n, p.theta)


cdef bint way_of(Problem *p, const double *g, double least, double *room, double *H,
                 double *scale, double *way) noexcept nogil:
    """way = -H^-1 g; whether H has a factor that can be trusted."""
    cdef Py_ssize_t j, size = p.size
    for j in range(size * size):
        H[j] = 0.0
    apcg_gram_double(p.X, p.n, p.d, p.rows.bend, size > p.d, room, H)
    for j in range(p.d):
        H[j * size + j] += p.ridge[j]
    if not factor_of(H, size, least, scale):
        return False
    solve_by(H, size, scale, g, way)
    for j in range(size):
        way[j] = -way[j]
    return True


cdef double step_of(Problem *p, const double *z, const double *dz, const double *w,
                    const double *way, double P, double slope) noexcept nogil:
    """How far along the way P falls well; 0 if nowhere."""
    cdef double t = 1.0, new, first, part
    cdef double slack = NOTHING * fabs(P) if -slope <= NOTHING * fabs(P) else 0.0
    cdef double pull = ridge_of(p, w, way), own = ridge_of(p, way, way), old = ridge_of(p, w, w)
    cdef apcg_along found
    while t > 1e-8:
        found = evaluate(p, z, dz, t)
        new = found.value + 0.5 * (old + 2 * t * pull + t * t * own)
        if new <= P + 1e-4 * t * slope + slack:
            return t
        first = found.first + pull + t * own  # the slope there; it is about linear in t
        part = slope / (slope - first) if first > 0 else 0.5
        t *= min(max(part, 0.1), 0.5)
    return 0.0


def newton(str name, const double[::1] theta, const double[:, ::1] X, bint border,
           const double[::1] labels, bint margin, const double[::1] weights, double scale,
           const double[::1] ridge, double tol, double least, int polish, int most,
           double[::1] w, double[::1] x) -> tuple[int, float, float]:
    """Newton's method from w = 0 (given) to a gap of tol P, with b the best for w.

    ridge   one for each feature, positive
    least   a pivot of H below this, for a unit diagonal, cannot be trusted
    polish  steps that are added once it is there
    most    steps, at most

    Returns steps, P and P - D at x = -s phi'; x is written, labels premultiplied for margins. Steps
    of 0 say that it cannot: H has no good factor, or P does not fall.
    """
    cdef Problem p
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], size = d + border, i, j
    cdef double[::1] space = np.empty(5 * n + 3 * size + size * size
                                      + 2 * max(APCG_GRAM_BLOCK, size + 8))
    cdef double *z = &space[0]
    cdef double *dz = z + n
    cdef double *g = z + 5 * n
    cdef double *way = g + size
    cdef double *diagonal = way + size
    cdef double *H = diagonal + size
    cdef double *room = H + size * size
    cdef double P = 0.0, gap = 0.0, off, bend, t
    cdef int step
    cdef bint done = False
    p.X, p.n, p.d, p.size, p.theta, p.ridge = &X[0, 0], n, d, size, &theta[0], &ridge[0]
    p.logistic = name == "logistic"
    p.rows = apcg_rows(z, dz, &labels[0], &weights[0], -1 if weights.shape[0] > 1 else 0, 0.0,
                       scale, margin, z + 2 * n, z + 3 * n, z + 4 * n)
    with nogil:
        for i in range(n):
            dz[i] = 0.0
        for step in range(1, most + 1):
            times(&p, &w[0], z)
            P = evaluate(&p, z, dz, 0.0).value + 0.5 * ridge_of(&p, &w[0], &w[0])
            for j in range(size):
                g[j] = ridge[j] * w[j] if j < d else 0.0
            apcg_add_rows_double(p.X, n, d, p.rows.slope, g)
            off = sum_of(p.rows.slope, n, False) if border else 0.0
            if border:
                g[d] = off
            gap = 0.0
            for j in range(d):
                gap += 0.5 * g[j] * (g[j] / ridge[j])
            if gap <= tol * fabs(P):
                if fabs(off) <= BALANCED * sum_of(p.rows.slope, n, True):
                    if polish <= 0:
                        done = True
                        break
                    polish -= 1
                else:  # b alone
                    bend = sum_of(p.rows.bend, n, False)
                    if not bend > 0.0:
                        break
                    w[d] -= off / bend
                    continue
            if not way_of(&p, g, least, room, H, diagonal, way):
                break
            times(&p, way, dz)
            t = 0.0
            for j in range(size):
                t += g[j] * way[j]
            t = step_of(&p, z, dz, &w[0], way, P, t)
            for i in range(n):
                dz[i] = 0.0
            if t == 0.0:
                break
            for j in range(size):
                w[j] += t * way[j]
        for i in range(n):
            x[i] = -p.rows.slope[i] / scale * (labels[i] if margin else 1.0)
    return step if done else 0, P, gap
