"""The sweep over blocks with momentum; `blocks` has the problem and the sweep without.

APCG in the variables of Proposition 1, as in `one_output_momentum`. Row i has r_i of the N steps of a
sweep; with alpha = sqrt(mu)/N and kappa_i = sqrt(mu)/r_i

    z = v - s u/2,    x = y = v + s u/2 after s *= (1 - alpha)/(1 + alpha)
    L = kappa_i (q_i + gamma),  rho = L - gamma (softmax) or L,  b = L z_i + (slope at y) - gamma y_i
    u_i += (kappa_i - 1) h/s,    v_i += (1 + kappa_i) h/2,    h the change of z_i

and the rows p, q of W with them. If rho < 0, L = gamma and rho = 0: a larger L_i is as good for the
theorem. A row settles if z_i has come to a vertex and x_i is near: both are put there, if the dual
does not fall by it.
"""

from libc.math cimport fabs, sqrt
from libc.string cimport memcpy

from .many_outputs cimport (COLUMNS, LOGISTIC, SIMPLEX, SOFTMAX, Blocks, Count, add_alone, after, before,
                      bernoulli, centre, column_part, complete, distance, fetch, fetch_far, fetch_row, few_changed,
                      lead_at_vertex, logistic_root, project, simplex_part, softmax, softmax_root,
                      softmax_root_near)
from ..losses.scalar cimport interval_dual_prox
from ..data.products_k cimport Products, products_for
from ..common.types cimport index_t, value_t


cdef extern from *:
    """
    /* x may be outside its domain by so much: what rounding makes of sums of K numbers. */
    #define APCG_OUTSIDE 1e-12
    """
    const double OUTSIDE "APCG_OUTSIDE"


cdef class MomentumState:
    """With momentum: u, v (n, size), the last z (softmax) and its logarithm (or logit, logistic), the rows
    (features, 2 size) of p and q, pb, qb of the intercepts, room (7, size), the last of zeros.

    s, root = sqrt(mu), N steps a sweep; settle: how near x must be to a vertex that z is at.
    """

    cdef public double[:, ::1] u, v, near, theta, pq, room
    cdef public double[::1] pb, qb
    cdef public double s, root, N, settle

    def __init__(self, double[:, ::1] u, double[:, ::1] v, double[:, ::1] near,
                 double[:, ::1] theta, double[:, ::1] pq, double[::1] pb, double[::1] qb,
                 double[:, ::1] room, *, double settle):
        self.u, self.v, self.near, self.theta, self.pq = u, v, near, theta, pq
        self.pb, self.qb, self.room, self.settle = pb, qb, room, settle
        self.s = self.root = self.N = 1.0


cdef bint settles(const double *A, const double *y, const double *new, double L, double gamma,
                  double near, Py_ssize_t K) noexcept nogil:
    """Whether z is at a vertex, x near it, and F does not rise if x is put there too."""
    cdef Py_ssize_t k
    cdef bint vertex = False
    cdef double t, rise = 0.0
    for k in range(K):
        vertex |= new[k] == 1.0
        t = new[k] - y[k]
        if fabs(t) > near:
            return False
        rise += t * (0.5 * L * t - (A[k] - gamma * y[k]))
    return vertex and rise <= 0.0


cdef void momentum_rows(Products use, const void *data, const void *columns,
                        const Py_ssize_t *bounds, Py_ssize_t value_size, Py_ssize_t index_size,
                        Blocks blocks, MomentumState state, Count count, Py_ssize_t *keep,
                        const Py_ssize_t *visits, const Py_ssize_t *last, Py_ssize_t number
                        ) noexcept nogil:
    cdef Py_ssize_t size = blocks.size, K = blocks.K, at, i, k, m = blocks.features, first
    cdef Py_ssize_t mask = -1 if blocks.weights.shape[0] > 1 else 0
    cdef int kind = blocks.kind, label = 0
    cdef const char *row
    cdef const char *own = NULL
    cdef double *pq = &state.pq[0, 0]
    cdef double *pb = &state.pb[0]
    cdef double *qb = &state.qb[0]
    cdef double *z = &state.room[0, 0]
    cdef double *y = &state.room[1, 0]
    cdef double *c = &state.room[2, 0]
    cdef double *new = &state.room[3, 0]
    cdef double *du = &state.room[4, 0]
    cdef double *dv = &state.room[5, 0]
    cdef const double *none = &state.room[6, 0]
    cdef double *u
    cdef double *v
    cdef double gamma = blocks.gamma, weight, q, kappa, L, rho, lead, worst, half, largest, t
    cdef double sign = 1.0 if kind >= COLUMNS else -1.0, s = state.s, alpha = state.root / state.N
    cdef double fall = (1.0 - alpha) / (1.0 + alpha)
    cdef bint at_vertex, signed = kind >= COLUMNS and blocks.margin
    cdef int changed
    cdef int which[32]
    cdef double some[32]
    for at in range(number):
        i = keep[at]
        if i < 0:
            continue
        if bounds != NULL:
            first, m = bounds[2 * at], bounds[2 * at + 1]
            row = <const char *> data + first * value_size
            own = <const char *> columns + first * index_size
        else:
            row = <const char *> data + i * m * value_size
        if at + 1 < number and keep[at + 1] >= 0:
            fetch_row(&state.u[keep[at + 1], 0], size)
            fetch_row(&state.v[keep[at + 1], 0], size)
            if bounds != NULL:
                fetch(<const char *> columns + bounds[2 * (at + 1)] * index_size)
        s *= fall
        half = 0.5 * s
        use.dot2(row, own, m, pq, size, half, blocks.threshold, blocks.factor, z)
        if bounds != NULL and at + 1 < number:
            fetch_far(blocks, use, keep[at + 1], columns, bounds + 2 * (at + 1), index_size, pq,
                      2 * size)
        count.work += m + 1
        weight, q = blocks.weights[i & mask], blocks.q[i]
        u, v = &state.u[i, 0], &state.v[i, 0]
        kappa = state.root / visits[at]
        L = kappa * (q + gamma)
        at_vertex = False
        before(pb, qb, u, v, half, z, y, c, size)
        if blocks.alone.shape[0]:
            add_alone(blocks, i, none, y, z)
        if kind == SOFTMAX:
            complete(z, K, size)
            if last[at]:
                softmax(z, du, size)
                count.est += weight * distance(du, y, size)
            rho = L - gamma
            if rho < 0.0:
                rho, L = 0.0, gamma
            centre(y, c, L, gamma, z, size)
            if rho == 0.0:
                softmax(z, new, size)
            else:
                memcpy(new, &state.near[i, 0], size * sizeof(double))
                if softmax_root_near(&state.theta[i, 0], new, z, rho, blocks.enough, size):
                    count.solved += 1
                else:
                    softmax_root(&state.theta[i, 0], new, z, rho, blocks.enough, K, size)
                    count.rescued += 1
                memcpy(&state.near[i, 0], new, size * sizeof(double))
        elif kind == SIMPLEX:
            label = blocks.labels[i]
            for k in range(K):
                z[k] += 1.0
            z[label] += gamma - 1.0
            largest = 0.0
            for k in range(K):
                largest = fabs(u[k]) if fabs(u[k]) > largest else largest
            if largest == 0.0:
                lead = lead_at_vertex(z, y, gamma, K)
                if lead >= 0.0:
                    if lead > count.high * sqrt(q):
                        keep[at] = ~i
                    continue
            if last[at]:
                for k in range(K):
                    dv[k] = y[k] if y[k] > 0.0 else 0.0
                count.est += weight * simplex_part(z, dv, gamma, du, K)
            for k in range(K):
                du[k] = z[k] + L * c[k] - gamma * y[k]
            project(du, L, new, K)
            at_vertex = settles(z, y, new, q + gamma, gamma, state.settle, K)
        elif kind == LOGISTIC:
            for k in range(size):
                z[k] *= blocks.targets[i, k]
            if last[at]:
                count.est += weight * bernoulli(z, y, size)
            rho = L - gamma
            if rho < 0.0:
                rho, L = 0.0, gamma
            for k in range(K):
                z[k] = L * c[k] - gamma * y[k] - z[k]
            for k in range(K, size):
                z[k] = 0.5 * rho
            logistic_root(&state.theta[i, 0], new, z, rho, blocks.enough, size)
            for k in range(K, size):
                new[k] = 0.0
        else:
            t = 1.0 / L if L > 1e-100 else 1e100
            for k in range(K):
                lead = z[k] * blocks.targets[i, k] if blocks.margin else z[k] - blocks.targets[i, k]
                if last[at]:
                    worst = min(max(y[k], blocks.theta[3]), blocks.theta[4])
                    count.est += weight * column_part(lead, worst, &blocks.theta[0])
                new[k] = interval_dual_prox(c[k] - t * (lead + gamma * y[k]), t, &blocks.theta[0])
        if at_vertex:
            for k in range(K):
                t = -weight
                du[k], dv[k] = -t * u[k], t * (new[k] - v[k])
                u[k], v[k] = 0.0, new[k]
                pb[k] += blocks.border * du[k]
                qb[k] += blocks.border * dv[k]
                du[k] *= blocks.scale
                dv[k] *= blocks.scale
        elif not after(new, c, (kappa - 1.0) / s, 0.5 * (1.0 + kappa), sign * weight,
                       &blocks.targets[i, 0] if signed else NULL, blocks.border, blocks.scale,
                       u, v, pb, qb, du, dv, size):
            continue
        changed = few_changed(dv, K, size, which) if kind == SIMPLEX and not at_vertex else -1
        if changed >= 0:
            for k in range(changed):
                some[k], some[changed + k] = du[which[k]], dv[which[k]]
                which[changed + k] = which[k] + <int> size
            use.few(row, own, m, pq, 2 * size, which, 2 * changed, some)
        else:
            use.add2(row, own, m, pq, size, du, dv)
    state.s = s


def momentum_sweep(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                   Blocks blocks, MomentumState state, Count count, Py_ssize_t[::1] keep,
                   const Py_ssize_t[::1] visits, const Py_ssize_t[::1] last,
                   Py_ssize_t[:, ::1] bounds):
    """A step on each of the rows `keep`, in that order; row k of the list has visits[k] in a sweep.

    last[k] says that no more of these follow in the sweep: then the row is counted in `est`.
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
        momentum_rows(use, values, columns, NULL if dense else &bounds[0, 0], sizeof(value_t),
                      sizeof(index_t), blocks, state, count, &keep[0], &visits[0], &last[0],
                      keep.shape[0])


cdef bint bring_inside(const double *x, double *out, int kind, double low, double high,
                       Py_ssize_t K) noexcept nogil:
    """out = x, or the point of the domain next to it: max(x, 0)/sum or clipped; whether it is x."""
    cdef Py_ssize_t k
    cdef double sum = 0.0
    cdef bint inside = True
    for k in range(K):
        out[k] = x[k]
        if x[k] < low or x[k] > high:
            inside &= low - OUTSIDE <= x[k] <= high + OUTSIDE
            out[k] = low if x[k] < low else high
        sum += out[k]
    if kind >= COLUMNS:
        return inside
    for k in range(K):
        out[k] /= sum
    return inside and fabs(sum - 1.0) <= OUTSIDE


def take_inside(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                Blocks blocks, MomentumState state, const double[:, ::1] last, double[:, ::1] out,
                double[::1] moved):
    """out = x, brought into its domain, and v with it; moved_i = |out_i - last_i|.

    Momentum takes x out of its domain by a little. The rows of W are changed for the x that were
    outside by more than rounding.
    """
    cdef Py_ssize_t i, k, first, m = blocks.features, size = blocks.size, K = blocks.K
    cdef Py_ssize_t mask = -1 if blocks.weights.shape[0] > 1 else 0
    cdef bint dense = indptr.shape[0] == 0
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    cdef double *x = &state.room[0, 0]
    cdef double *none = &state.room[4, 0]
    cdef double *change = &state.room[5, 0]
    cdef double half = 0.5 * state.s, far, t, low = 0.0, high = 1.0
    if blocks.kind == COLUMNS:
        low, high = blocks.theta[3], blocks.theta[4]
    with nogil:
        for k in range(size):
            none[k] = change[k] = 0.0
        for i in range(state.v.shape[0]):
            far = 0.0
            for k in range(K):
                x[k] = state.v[i, k] + half * state.u[i, k]
            if not bring_inside(x, &out[i, 0], blocks.kind, low, high, K):
                for k in range(K):
                    t = out[i, k] - x[k]
                    state.v[i, k] += t
                    t *= blocks.weights[i & mask] * (1.0 if blocks.kind >= COLUMNS else -1.0)
                    if blocks.kind >= COLUMNS and blocks.margin:
                        t *= blocks.targets[i, k]
                    state.qb[k] += blocks.border * t
                    change[k] = blocks.scale * t
                if dense:
                    use.add2(&data[i * m], NULL, m, &state.pq[0, 0], size, none, change)
                elif indptr[i + 1] > indptr[i]:
                    first = indptr[i]
                    use.add2(&data[first], &indices[first], indptr[i + 1] - first, &state.pq[0, 0],
                             size, none, change)
            for k in range(K):
                t = out[i, k] - last[i, k]
                far += t * t
            moved[i] = sqrt(far)
