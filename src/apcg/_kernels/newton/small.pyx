"""Whole runs of Newton's method on dense rows of few features, in one call.

X is (n, d) by rows; with a border the last entry of w is the intercept. Row i has the weight
scale weights_i. What these cannot do they say, and whoever called takes another way. The sizes of
all arrays are trusted.
"""

import numpy as np

from libc.math cimport INFINITY, ceil, fabs, log
from libc.string cimport memset

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
    /* Nanoseconds of a look for d features, a row; and of H (20,000 x 8, 100,000 x 20 and 20,000 x
     * 50, logistic loss: 10, 16, 21 and 11, 47, 166). */
    #define APCG_LOOK_NS(d) (8.0 + 0.3 * (d))
    #define APCG_H_NS(d) (((d) + 1) * (1.2 + 0.05 * (d)))
    """
    const double BALANCED "APCG_BALANCED"
    const double NOTHING "APCG_NOTHING"
    double look_ns "APCG_LOOK_NS" (Py_ssize_t d) nogil
    double H_ns "APCG_H_NS" (Py_ssize_t d) nogil

cdef enum:
    PAIRS = 8  # of L-BFGS


cdef struct Problem:
    const double *X
    Py_ssize_t n, d, size
    bint logistic
    const double *theta
    const double *ridge
    const double *labels
    const double *weights
    apcg_rows rows
    double *room  # for H
    double *H  # of the last look that made it, or its factor
    double *g  # what the last look found: the gradient of P, ...
    double *x  # ... the slope of each row, ...
    double P, gap, off, size_of_off, bend  # ... P - D, and sums of slopes, |slopes| and bends
    double cost  # passes so far


cdef void look(Problem *p, const double *w, bint bends) noexcept nogil:
    """P and its gradient at w, and H if it `bends`, in one pass over X."""
    cdef Py_ssize_t i = 0, j, rows, d = p.d, size = p.size
    cdef double b = w[d] if size > d else 0.0, part
    memset(p.g, 0, size * sizeof(double))
    if bends:
        memset(p.H, 0, size * size * sizeof(double))
    p.P = p.gap = p.off = p.size_of_off = p.bend = 0.0
    while i < p.n:
        rows = min(p.n - i, <Py_ssize_t>BLOCK)
        apcg_times_double(p.X + i * d, rows, d, w, b, <double *>p.rows.z)
        p.rows.label, p.rows.weight = p.labels + i, p.weights + (i & p.rows.mask)
        p.rows.slope = p.x + i
        if p.logistic:
            p.P += apcg_logistic(&p.rows, rows).value
        else:
            p.P += apcg_interval(&p.rows, rows, p.theta).value
        apcg_add_rows_double(p.X + i * d, rows, d, p.rows.slope, p.g)
        if size > d:
            p.off += sum_of(p.rows.slope, rows, False)
            p.size_of_off += sum_of(p.rows.slope, rows, True)
            p.bend += sum_of(p.rows.bend, rows, False)
        if bends:
            apcg_gram_double(p.X + i * d, rows, d, p.rows.bend, size > d, p.room, p.H)
        i += BLOCK
    for j in range(d):
        part = p.ridge[j] * w[j]
        p.P += 0.5 * part * w[j]
        p.g[j] += part
        p.gap += 0.5 * p.g[j] * (p.g[j] / p.ridge[j])
        if bends:
            p.H[j * size + j] += p.ridge[j]
    if size > d:
        p.g[d] = p.off
    p.cost += 1.0 + (H_ns(d) / look_ns(d) if bends else 0.0)


cdef double go(Problem *p, const double *way, double slope, bint bends, const double *w,
               double *new) noexcept nogil:
    """Look at new = w + t way, with a t at which P falls well; 0 if there is none."""
    cdef double t = 1.0, P = p.P, first
    cdef double slack = NOTHING * fabs(P) if -slope <= NOTHING * fabs(P) else 0.0
    cdef Py_ssize_t j
    while t > 1e-8:
        for j in range(p.size):
            new[j] = w[j] + t * way[j]
        look(p, new, bends)
        if p.P <= P + 1e-4 * t * slope + slack:
            return t
        first = product(p.g, way, p.size)  # the slope there; it is about linear in t
        t *= min(max(slope / (slope - first) if first > 0 else 0.5, 0.1), 0.5)
    return 0.0


cdef double product(const double *a, const double *b, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(size):
        total += a[j] * b[j]
    return total


cdef bint worth_H(const Problem *p, double gap, double rate, double tol) noexcept nogil:
    """Whether more passes are left, by the rate of the gap with the factor there is, than H costs."""
    cdef double aim = tol * fabs(p.P), left
    if gap <= aim:
        return False
    if not (rate < 0.5 and aim > 0.0):
        return True
    left = ceil(log(aim / gap) / log(rate))
    return left > 1.0 + H_ns(p.d) / look_ns(p.d)


cdef struct Memory:
    # L-BFGS since the last factor: pairs (move, change of the gradient) of `size` numbers each
    Py_ssize_t size
    int held, last
    double *move
    double *change
    double[PAIRS] inverse  # 1/<move, change>


cdef void remember(Memory *m, const double *move, double t, const double *old,
                   const double *g) noexcept nogil:
    """The pair (t move, g - old), in the place of the oldest one."""
    cdef int k = (m.last + 1) % PAIRS
    cdef double *s = m.move + k * m.size
    cdef double *y = m.change + k * m.size
    cdef double curved
    cdef Py_ssize_t j
    for j in range(m.size):
        s[j] = t * move[j]
        y[j] = g[j] - old[j]
    curved = product(s, y, m.size)
    if curved > 0.0:
        m.inverse[k], m.last, m.held = 1.0 / curved, k, min(m.held + 1, PAIRS)


cdef void way_of(const Memory *m, const double *H, const double *scale, const double *g,
                 double *room, double *way) noexcept nogil:
    """way = -H^-1 g, by the factor and the pairs."""
    cdef double[PAIRS] part
    cdef double other
    cdef int i, k
    cdef Py_ssize_t j, size = m.size
    for j in range(size):
        room[j] = -g[j]
    for i in range(m.held):
        k = (m.last - i + PAIRS) % PAIRS
        part[k] = m.inverse[k] * product(m.move + k * size, room, size)
        for j in range(size):
            room[j] -= part[k] * m.change[k * size + j]
    solve_by(H, size, scale, room, way)
    for i in range(m.held - 1, -1, -1):
        k = (m.last - i + PAIRS) % PAIRS
        other = part[k] - m.inverse[k] * product(m.change + k * size, way, size)
        for j in range(size):
            way[j] += other * m.move[k * size + j]


def newton(str name, const double[::1] theta, const double[:, ::1] X, bint border,
           const double[::1] labels, bint margin, const double[::1] weights, double scale,
           const double[::1] ridge, double tol, double rough, double least, int polish, int most,
           double zero, double[::1] w, double[:, ::1] factor,
           double[::1] x) -> tuple[float, float, float, float]:
    """Newton's method from w to a gap of tol P, with b the best for w.

    ridge   one for each feature, positive
    rough   if above 0, it is enough that a step promises less than this part of P
    least   a pivot of H below this, for a unit diagonal, cannot be trusted
    polish  steps that are added once it is there
    most    looks, at most
    zero    if finite, `factor` is about that of H at w, and a P(w) above this means begin at w = 0

    A step looks at P, its gradient and H at the new point, in one pass over X. H is left out where
    the factor there is does as well, by the rate at which the gap falls: at the end, and on many
    rows. `factor` has a row more than H, for the scale of the others; at the end it is that of H.

    Returns passes, P at the first w, P and P - D at x = -s phi'; x is written, labels premultiplied
    for margins. Passes of 0 say that it cannot: H has no good factor, or P does not fall.
    """
    cdef Problem p
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], size = d + border, i, j
    cdef Py_ssize_t space_of = 4 * BLOCK + (5 + 2 * PAIRS) * size
    cdef double[::1] space = np.zeros(space_of + 2 * max(APCG_GRAM_BLOCK, size + 8))
    cdef double *z = &space[0]
    cdef double *way = z + 4 * BLOCK
    cdef double *new = way + size
    cdef double *old = new + size
    cdef double *room = old + size
    cdef double *diagonal = &factor[size, 0]
    cdef Memory pairs
    cdef double first, slope, before, t, rate = 1.0
    cdef int step = 1
    cdef bint done = False, bends = zero == INFINITY, fresh
    p.X, p.n, p.d, p.size, p.theta, p.ridge = &X[0, 0], n, d, size, &theta[0], &ridge[0]
    p.logistic, p.labels, p.weights = name == "logistic", &labels[0], &weights[0]
    p.rows = apcg_rows(z, z + BLOCK, NULL, NULL, -1 if weights.shape[0] > 1 else 0, 0.0, scale,
                       margin, z + 2 * BLOCK, NULL, z + 3 * BLOCK)
    p.g, p.room, p.H, p.x, p.cost = room + size, z + space_of, &factor[0, 0], &x[0], 0.0
    pairs.size, pairs.held, pairs.last, pairs.move = size, 0, 0, room + 2 * size
    pairs.change = pairs.move + PAIRS * size
    with nogil:
        look(&p, &w[0], bends)
        first = p.P
        if not p.P <= zero:
            for j in range(size):
                w[j] = 0.0
            bends = True
            look(&p, &w[0], bends)
        while step < most:
            step += 1
            if p.gap <= tol * fabs(p.P):
                if not border or fabs(p.off) <= BALANCED * p.size_of_off:
                    if polish <= 0:
                        done = True
                        break
                    polish -= 1
                else:  # b alone
                    if not p.bend > 0.0:
                        break
                    w[d] -= p.off / p.bend
                    look(&p, &w[0], bends)
                    continue
            fresh = bends
            if bends:
                pairs.held = 0
                if not factor_of(p.H, size, least, diagonal):
                    break
            way_of(&pairs, p.H, diagonal, p.g, room, way)
            slope, before = product(p.g, way, size), p.gap
            if -0.5 * slope <= rough * fabs(p.P):
                done = True
                break
            rate = rate * rate if fresh else rate  # near the end, with H of here
            bends = fresh and worth_H(&p, rate * before, rate, tol)
            for j in range(size):
                old[j] = p.g[j]
            t = go(&p, way, slope, bends, &w[0], new)
            if t == 0.0:
                if fresh:
                    break
                bends = True
                look(&p, &w[0], bends)
                continue
            remember(&pairs, way, t, old, p.g)
            for j in range(size):
                w[j] = new[j]
            rate = p.gap / before if before > 0.0 else 1.0
            if not bends and worth_H(&p, p.gap, rate, tol):
                bends = True
                look(&p, &w[0], bends)
        for i in range(n):
            x[i] = -x[i] / scale * (labels[i] if margin else 1.0)
    return p.cost if done else 0.0, first, p.P, p.gap
