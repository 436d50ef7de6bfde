"""Sweeps over the rows of a dual with K outputs and g = L2 or elastic net, one call a sweep.

Row i has a block of K dual numbers. For a loss over classes they are pi_i in the simplex, and the
paper's x_i is s_i (e - pi_i), e the unit vector of the label; for a loss that is a sum over outputs
(`COLUMNS`) they are a_i = x_i/s_i. With W = M/(sigma n), M = sum_i a_i x_i', and z = W'a_i, n times
the dual is, along row i and in units of s_i,

    phi*(pi - e) + (q_i/2)|pi - pi_i|^2 - <z, pi> + ..,     q_i = s_i |a_i|^2/(sigma n)

so that the exact step minimises, over the simplex,

    softmax          sum pi log pi + (rho/2)|pi|^2 - <b, pi>,  rho = q_i,          b = q_i pi_i + z
    Crammer-Singer   (rho/2)|pi|^2 - <b, pi>,                  rho = q_i + gamma,  b = q_i pi_i + A

with A = z + 1 - e + gamma e. K is padded to a multiple of four. `blocks.h` and `many.h` have the
inner loops, `blocks_momentum` the sweep with momentum.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt

from ..losses.scalar cimport interval_dual_prox
from ..data.products_k cimport Products, products_for
from ..common.types cimport index_t, value_t


cdef class Blocks:
    """The problem without the numbers of A.

    kind     0 softmax, 1 Crammer-Singer and its smoothed form, 2 a sum over outputs of a loss of the
             interval family, 3 of the logistic loss
    K        outputs;  labels  0..K-1, or empty;  targets  (n, padded K) of a sum over outputs
    weights  s, or one number for all;  q  q_i
    theta    of the interval family, for a sum over outputs
    scale    1/(sigma n);  border  c^2/(sigma n) with intercepts, else 0
    threshold, factor   W is soft(V, threshold) factor, V what is kept; threshold < 0: W = V
    enough   the change of log pi that ends Newton's method on a row
    alone    s_i scale times the squares of the features that row i has alone, which have no row of W
             (`data/compact.py`); empty if there are none
    far      how many numbers of each row, its last ones, have rows of W that are fetched during the
             step before; empty if none
    """

    def __init__(self, int kind, Py_ssize_t features, Py_ssize_t K, const int[::1] labels,
                 const double[:, ::1] targets, const double[::1] weights, const double[::1] q,
                 const double[::1] theta, *, bint margin, double gamma, double scale,
                 double border=0.0, double threshold=-1.0, double factor=1.0, double enough=1e-3,
                 const double[::1] alone, const int[::1] far):
        self.kind, self.features, self.K, self.size = kind, features, K, (K + 3) // 4 * 4
        self.labels, self.targets, self.weights, self.q = labels, targets, weights, q
        self.theta, self.margin, self.gamma, self.scale = theta, margin, gamma, scale
        self.border, self.threshold, self.factor, self.enough = border, threshold, factor, enough
        self.alone, self.far = alone, far


cdef class Count:
    """What a sweep goes by and what it finds; `begin` before each sweep.

    est    the sum over steps of the part of the gap of their row, before the step; without momentum
           over the visits of the row
    work   nonzeros stepped on, one for each row
    high   a row at a vertex by more than this times sqrt(q_i) is dropped
    solved, rescued   steps of the softmax by Newton's method from the last answer, and without it
    """

    def __init__(self):
        self.work = self.solved = self.rescued = 0
        self.begin()
        self.open()

    def begin(self):
        """Before a sweep."""
        self.est = 0.0

    def open(self):
        """Nothing is to be dropped in the next sweep."""
        self.high = INFINITY


cdef class PlainState:
    """Without momentum: x (n, size), log x (softmax) or logit x (logistic), W (features, size), b, room (4, size).

    moved  the sum of |change of x_i|^2 over the steps on row i;  part  its part of the gap, when seen
    """

    cdef public double[:, ::1] x, theta, W, room
    cdef public double[::1] b, moved, part

    def __init__(self, double[:, ::1] x, double[:, ::1] theta, double[:, ::1] W, double[::1] b,
                 double[::1] moved, double[::1] part, double[:, ::1] room):
        self.x, self.theta, self.W, self.b, self.room = x, theta, W, b, room
        self.moved, self.part = moved, part


# ---- proxes ---------------------------------------------------------------------------------------

cdef double wright(double c, double rho) noexcept nogil:
    """theta with theta + rho exp(theta) = c: Newton's method, convex and increasing."""
    cdef double theta = c, e, d
    cdef int k
    if rho <= 0.0:
        return c
    if c > 0.0 and log(c / rho) < c:
        theta = log(c / rho)
    for k in range(100):
        e = rho * exp(theta)
        d = (theta + e - c) / (1.0 + e)
        theta -= d
        if fabs(d) <= 1e-15 * (1.0 + fabs(theta)):
            break
    return theta


cdef void softmax_root(double *theta, double *pi, const double *b, double rho, double enough,
                       Py_ssize_t K, Py_ssize_t size) noexcept nogil:
    """argmin over the simplex of sum pi log pi + (rho/2)|pi|^2 - <b, pi>, from nothing.

    Newton's method on nu: sum pi(nu) - 1 is convex and decreasing, and at nu = max b - rho it is not
    negative, so that nu rises to the root.
    """
    cdef Py_ssize_t k
    cdef double nu = b[0], S, below, step, scale
    cdef int round
    for k in range(1, K):
        nu = b[k] if b[k] > nu else nu
    nu -= rho
    for round in range(200):
        S = below = 0.0
        for k in range(K):
            theta[k] = wright(b[k] - nu, rho)
            pi[k] = exp(theta[k])
            S += pi[k]
            below += pi[k] / (1.0 + rho * pi[k])
        step = (S - 1.0) / below
        if not step > 1e-16 * (fabs(nu) + 1.0):
            break
        nu += step
    scale = 1.0 / S
    for k in range(K):
        theta[k] -= log(S)
        pi[k] *= scale
        if theta[k] < -345.0:
            theta[k] = -345.0
        if pi[k] < 1e-140:
            pi[k] = 0.0
    for k in range(K, size):
        theta[k] = -345.0
        pi[k] = 0.0


cdef void project(const double *b, double rho, double *pi, Py_ssize_t K) noexcept nogil:
    """argmin over the simplex of (rho/2)|pi|^2 - <b, pi>: pi = max(b - nu, 0)/rho.

    Newton's method on nu from max b - rho, where the sum is at least 1; it rises to the root.
    """
    cdef Py_ssize_t k, top = 0
    cdef int round, count
    cdef double nu, next, total
    for k in range(1, K):
        if b[k] > b[top]:
            top = k
    nu = b[top] - rho
    if not rho > 1e-14 * fabs(b[top]):  # a vertex: nothing but ties could be otherwise
        for k in range(K):
            pi[k] = 0.0
        pi[top] = 1.0
        return
    for round in range(100):
        total, count = 0.0, 0
        for k in range(K):
            if b[k] > nu:
                total += b[k] - b[top]
                count += 1
        next = b[top] + (total - rho) / count
        if not next > nu:
            break
        nu = next
    total = 0.0
    for k in range(K):
        pi[k] = b[k] - nu if b[k] > nu else 0.0
        total += pi[k]
    for k in range(K):
        pi[k] /= total


# ---- the sweep without momentum -----------------------------------------------------------------------

cdef void plain_rows(Products use, const void *data, const void *columns, const Py_ssize_t *bounds,
                     Py_ssize_t value_size, Py_ssize_t index_size, Blocks blocks, PlainState state,
                     Count count, Py_ssize_t *keep, const Py_ssize_t *visits, Py_ssize_t number
                     ) noexcept nogil:
    """bounds are the ends of the rows in data (of a sparse matrix), or NULL."""
    cdef Py_ssize_t size = blocks.size, K = blocks.K, at, i, k, m = blocks.features, first
    cdef Py_ssize_t mask = -1 if blocks.weights.shape[0] > 1 else 0
    cdef int kind = blocks.kind, label = 0, changed
    cdef int which[16]
    cdef const char *row
    cdef const char *own = NULL
    cdef double *W = &state.W[0, 0]
    cdef double *intercept = &state.b[0]
    cdef double *z = &state.room[0, 0]
    cdef double *p = &state.room[1, 0]
    cdef double *h = &state.room[2, 0]
    cdef double *new = &state.room[3, 0]
    cdef double *x
    cdef double *theta = NULL
    cdef double gamma = blocks.gamma, weight, q, lse, lead, change, largest
    cdef double sign = 1.0 if kind >= COLUMNS else -1.0
    cdef double some[16]
    cdef bint signed = kind >= COLUMNS and blocks.margin
    for at in range(number):
        i = keep[at]
        if i < 0:
            continue
        if at + 1 < number and keep[at + 1] >= 0:  # rows are in random order
            fetch_row(&state.x[keep[at + 1], 0], size)
            if kind == SOFTMAX or kind == LOGISTIC:
                fetch_row(&state.theta[keep[at + 1], 0], size)
        if bounds != NULL and at + 1 < number:
            first, m = bounds[2 * (at + 1)], bounds[2 * (at + 1) + 1]
            fetch(<const char *> columns + first * index_size)
            fetch(<const char *> columns + (first + m) * index_size - 1)
            fetch(<const char *> data + first * value_size)
        if bounds != NULL:
            first, m = bounds[2 * at], bounds[2 * at + 1]
            row = <const char *> data + first * value_size
            own = <const char *> columns + first * index_size
        else:
            row = <const char *> data + i * m * value_size
        use.dot1(row, own, m, W, size, 0.0, blocks.threshold, blocks.factor, z)
        if bounds != NULL and at + 1 < number:
            fetch_far(blocks, use, keep[at + 1], columns, bounds + 2 * (at + 1), index_size, W, size)
        count.work += m + 1
        weight, q = blocks.weights[i & mask], blocks.q[i]
        x = &state.x[i, 0]
        add_alone(blocks, i, intercept, x, z)
        if kind == SOFTMAX:
            theta = &state.theta[i, 0]
            complete(z, K, size)
            lse = softmax(z, p, size)
            state.part[i] = divergence(z, p, lse, x, theta, size)
            if q < 1.0:  # softmax(z) is nearer to the answer than pi_i
                for k in range(size):
                    theta[k] = z[k] - lse if z[k] - lse > -345.0 else -345.0
                    new[k] = p[k]
                    z[k] += q * x[k]
            else:
                for k in range(size):
                    new[k] = x[k]
                    z[k] += q * x[k]
            if softmax_root_near(theta, new, z, q, blocks.enough, size):
                count.solved += 1
            else:
                softmax_root(theta, new, z, q, blocks.enough, K, size)
                count.rescued += 1
        elif kind == SIMPLEX:
            label = blocks.labels[i]
            for k in range(K):
                z[k] += 1.0
            z[label] += gamma - 1.0
            lead = lead_at_vertex(z, x, gamma, K)
            if lead >= 0.0:
                state.part[i] = 0.0
                if lead > count.high * sqrt(q):
                    keep[at] = ~i
                continue
            state.part[i] = simplex_part(z, x, gamma, p, K)
            for k in range(K):
                z[k] += q * x[k]
            project(z, q + gamma, new, K)
        elif kind == LOGISTIC:
            theta = &state.theta[i, 0]
            for k in range(size):
                z[k] *= blocks.targets[i, k]
            state.part[i] = bernoulli(z, x, size)
            for k in range(K):
                z[k] = q * x[k] - z[k]
            for k in range(K, size):
                z[k] = 0.5 * q
            logistic_root(theta, new, z, q, blocks.enough, size)
        else:
            change = 1.0 / (q + gamma) if q + gamma > 1e-100 else 1e100
            state.part[i] = 0.0
            for k in range(K):
                lead = z[k] * blocks.targets[i, k] if blocks.margin else z[k] - blocks.targets[i, k]
                state.part[i] += column_part(lead, x[k], &blocks.theta[0])
                new[k] = interval_dual_prox(x[k] - change * (lead + gamma * x[k]), change,
                                            &blocks.theta[0])
        lead = weight * state.part[i] / visits[at]
        count.est += lead
        for k in range(K, size):
            new[k] = 0.0
        largest = move(new, sign * weight, &blocks.targets[i, 0] if signed else NULL, blocks.border,
                       blocks.scale, x, intercept, h, size)
        if largest == 0.0:
            continue
        state.moved[i] += largest
        changed = few_changed(h, K, size, which) if kind == SIMPLEX or kind == COLUMNS else -1
        if changed >= 0:
            for k in range(changed):
                some[k] = h[which[k]]
            use.few(row, own, m, W, size, which, changed, some)
        else:
            use.add1(row, own, m, W, size, h, h)


def plain_sweep(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                Blocks blocks, PlainState state, Count count, Py_ssize_t[::1] keep,
                const Py_ssize_t[::1] visits, Py_ssize_t[:, ::1] bounds):
    """One step on each of the rows `keep`, in that order. Those dropped, i, become ~i.

    Row k of the list has visits[k] of them in a sweep. `bounds` is room for two numbers a row.
    """
    cdef Py_ssize_t k
    cdef bint dense = indptr.shape[0] == 0
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    cdef const void *values = &data[0] if data.shape[0] else NULL
    cdef const void *columns = &indices[0] if indices.shape[0] else NULL
    if keep.shape[0] == 0:
        return
    with nogil:
        if not dense:
            for k in range(keep.shape[0]):
                bounds[k, 0] = indptr[keep[k]]
                bounds[k, 1] = indptr[keep[k] + 1] - indptr[keep[k]]
        plain_rows(use, values, columns, NULL if dense else &bounds[0, 0], sizeof(value_t),
                   sizeof(index_t), blocks, state, count, &keep[0], &visits[0],
                   keep.shape[0])
