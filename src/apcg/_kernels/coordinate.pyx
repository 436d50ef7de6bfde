"""The accelerated coordinate step: Algorithms 1 to 5 in one loop, by a two-scalar implicit iterate.

The problem is  F(x) = sum_j h_j((A x)_j) + <c, x> + sum_i (sigma_i/2) x_i^2 + sum_i psi_i(x_i).

The iterates of Algorithm 1 are kept as  z = v + t u,  x = v + (t + s) u,  and the rows of A x as
p = A u and q = A v - (the shift of h), interleaved, because they are read and written together.
With  b_k = gamma_{k+1}/(alpha_k gamma_k + gamma_{k+1})  a step on block i is

    t' = t + beta_k b_k s,    s' = (1 - beta_k) b_k s          so that  y = v + (t' + s') u
    h  = argmin_h (n alpha_k L_i/2)|h|^2 + <grad_i f(y), h> + psi_i(v_i + t' u_i + h)
    u_i += ((n alpha_k - 1)/s') h,    v_i += (1 - t' (n alpha_k - 1)/s') h

which costs O(nonzeros of A_i). For gamma_0 = mu it is Algorithm 4: t = -s/2 and s = rho^k.
s only falls; before it is too small the state is folded (see `fold`), and that is the only
operation on whole vectors.
"""

from .sequence cimport Coefficients, advance
from .terms cimport GRAM, QUADRATIC, Outer, Psi
from .types cimport index_t, value_t


cdef class Model:
    """All of the problem but the numbers of A, as the kernels read it.

    L is per block. c, sigma and sign are per coordinate, or of length one and shared; the column of
    coordinate i is sign_i times the stored one (the labels of a dual problem). `members` and
    `starts` list the coordinates of each block; both are empty if every coordinate is a block.
    """

    cdef readonly Outer outer
    cdef readonly Psi psi
    cdef const double[::1] c, sigma, sign, L
    cdef const Py_ssize_t[::1] members, starts
    cdef Py_ssize_t rows

    def __init__(self, Outer outer, Psi psi, const double[::1] c, const double[::1] sigma,
                 const double[::1] sign, const double[::1] L, Py_ssize_t rows,
                 const Py_ssize_t[::1] members, const Py_ssize_t[::1] starts):
        self.outer, self.psi = outer, psi
        self.c, self.sigma, self.sign, self.L, self.rows = c, sigma, sign, L, rows
        self.members, self.starts = members, starts


cdef class State:
    """The implicit iterate: z = v + t u, x = v + (t + s) u, and gamma_k.

    pq[:, 0] is p = A u and pq[:, 1] is q = A v less the shift. n is the number of blocks that are
    sampled. `work` is room for two copies of the largest block.
    """

    cdef public double[::1] u, v, work
    cdef public double[:, ::1] pq
    cdef public double s, t, gamma, mu, n, fold_at
    cdef public long folds

    def __init__(self, double[::1] u, double[::1] v, double[:, ::1] pq, double[::1] work, *,
                 double n, double mu, double gamma, double fold_at):
        self.u, self.v, self.pq, self.work = u, v, pq, work
        self.n, self.mu, self.gamma, self.fold_at = n, mu, gamma, fold_at
        self.s, self.t, self.folds = 1.0, -self.kappa(), 0

    cdef double kappa(self) noexcept nogil:
        """Where t starts, as a multiple of -s, so that t and s tend to zero together.

        From t = 0 and mu > 0 the same iterates follow on paper, but t would not tend to zero, and
        v + t u would cancel with an error that grows like eps/s.
        """
        return self.mu / (self.mu + self.gamma)

    cdef void fold_(self) noexcept nogil:
        cdef double kappa = self.kappa()
        cdef double shift = self.t + kappa * self.s
        cdef Py_ssize_t k
        for k in range(self.u.shape[0]):
            self.v[k] += shift * self.u[k]
            self.u[k] *= self.s
        for k in range(self.pq.shape[0]):
            self.pq[k, 1] += shift * self.pq[k, 0]
            self.pq[k, 0] *= self.s
        self.s = 1.0
        self.t = -kappa
        self.folds += 1

    def fold(self):
        """Rewrite the same iterate with s = 1: v += (t + kappa s) u, u *= s, t = -kappa."""
        with nogil:
            self.fold_()


cdef struct Move:
    double step     # n alpha_k
    double du, dv   # u_i += du h, v_i += dv h


cdef inline Move next_move(State state) noexcept nogil:
    """Advance the scalars from k to k + 1 and give the multipliers of the step."""
    cdef Coefficients k = advance(state.n, state.mu, state.gamma)
    cdef Move move
    cdef double bs = k.b * state.s
    # With constant coefficients t = -s/2 stays exact: it is set, not accumulated.
    cdef bint halves = state.gamma == state.mu and state.t == -0.5 * state.s
    state.s = (1.0 - k.beta) * bs
    state.t = -0.5 * state.s if halves else state.t + k.beta * bs
    state.gamma = k.gamma
    move.step = state.n * k.alpha
    # s' = 0 (one block, mu = 1) comes with n alpha = 1: the momentum is gone, u does not matter.
    move.du = (move.step - 1.0) / state.s if state.s > 0.0 else 0.0
    move.dv = 1.0 - state.t * move.du
    return move


cdef inline double partial(const value_t *a, const index_t *rows, Py_ssize_t size, Outer h,
                           const double *pq, double tau) noexcept nogil:
    """<A_i, h'(q + tau p)>, with `rows` NULL for a dense column."""
    cdef Py_ssize_t k, j
    cdef double sp = 0.0, sq = 0.0
    if h.kind == QUADRATIC:
        if rows == NULL:
            for k in range(size):
                sp += a[k] * pq[2 * k]
                sq += a[k] * pq[2 * k + 1]
        else:
            for k in range(size):
                j = rows[k]
                sp += a[k] * pq[2 * j]
                sq += a[k] * pq[2 * j + 1]
        return h.weight[0] * (sq + tau * sp)
    for k in range(size):
        j = k if rows == NULL else rows[k]
        sq += a[k] * h.derivative_at(j, pq[2 * j + 1] + tau * pq[2 * j])
    return sq


cdef inline void add_column(const value_t *a, const index_t *rows, Py_ssize_t size, double *pq,
                            double dp, double dq) noexcept nogil:
    """p += dp A_i, q += dq A_i."""
    cdef Py_ssize_t k, j
    if rows == NULL:
        for k in range(size):
            pq[2 * k] += dp * a[k]
            pq[2 * k + 1] += dq * a[k]
    else:
        for k in range(size):
            j = rows[k]
            pq[2 * j] += dp * a[k]
            pq[2 * j + 1] += dq * a[k]


cdef inline double coordinate_gradient(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        Py_ssize_t i, double tau) noexcept nogil:
    """grad_i f(v + tau u)."""
    cdef const double *pq = &state.pq[0, 0]
    cdef double g
    if model.outer.kind == GRAM:
        g = pq[2 * i + 1] + tau * pq[2 * i]
    elif rows == NULL:
        g = partial(a + i * model.rows, rows, model.rows, model.outer, pq, tau)
    else:
        g = partial(a + indptr[i], rows + indptr[i], indptr[i + 1] - indptr[i], model.outer, pq, tau)
    if model.sign.shape[0] > 1:
        g *= model.sign[i]
    return (g + model.c[i if model.c.shape[0] > 1 else 0]
            + model.sigma[i if model.sigma.shape[0] > 1 else 0] * (state.v[i] + tau * state.u[i]))


cdef inline void move_coordinate(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        Py_ssize_t i, Move move, double h) noexcept nogil:
    """u_i += du h, v_i += dv h, and p and q with them."""
    cdef double du = move.du * h, dv = move.dv * h
    cdef double *pq = &state.pq[0, 0]
    if h == 0.0:
        return
    state.u[i] += du
    state.v[i] += dv
    if model.sign.shape[0] > 1:
        du *= model.sign[i]
        dv *= model.sign[i]
    if rows == NULL:
        add_column(a + i * model.rows, rows, model.rows, pq, du, dv)
    else:
        add_column(a + indptr[i], rows + indptr[i], indptr[i + 1] - indptr[i], pq, du, dv)


cdef void scalar_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        const Py_ssize_t[::1] order) noexcept nogil:
    cdef Py_ssize_t k, i
    cdef Move move
    cdef double g, centre, step, h
    for k in range(order.shape[0]):
        i = order[k]
        move = next_move(state)
        g = coordinate_gradient(a, rows, indptr, model, state, i, state.t + state.s)
        centre = state.v[i] + state.t * state.u[i]
        step = 1.0 / (move.step * model.L[i])
        h = model.psi.prox_at(i, centre - step * g, step) - centre
        move_coordinate(a, rows, indptr, model, state, i, move, h)
        if state.s < state.fold_at:
            state.fold_()


cdef void block_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        const Py_ssize_t[::1] order) noexcept nogil:
    cdef Py_ssize_t k, block, e, i, size
    cdef const Py_ssize_t *members
    cdef Move move
    cdef double step
    cdef double *x = &state.work[0]         # the block after the step
    cdef double *centre = x + state.work.shape[0] // 2
    for k in range(order.shape[0]):
        block = order[k]
        members = &model.members[model.starts[block]]
        size = model.starts[block + 1] - model.starts[block]
        move = next_move(state)
        step = 1.0 / (move.step * model.L[block])
        for e in range(size):
            i = members[e]
            centre[e] = state.v[i] + state.t * state.u[i]
            x[e] = centre[e] - step * coordinate_gradient(
                a, rows, indptr, model, state, i, state.t + state.s)
        if model.psi.is_block:
            model.psi.block_prox_(x, size, step, model.psi.theta_at(block))
        else:
            for e in range(size):
                x[e] = model.psi.prox_at(members[e], x[e], step)
        for e in range(size):
            move_coordinate(a, rows, indptr, model, state, members[e], move, x[e] - centre[e])
        if state.s < state.fold_at:
            state.fold_()


def run(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        Model model, State state, const Py_ssize_t[::1] order):
    """One step on each block of `order`, in that order.

    A is given by coordinate, in CSR form, or dense with an empty indptr.
    """
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *rows = NULL
    cdef const index_t *starts = NULL
    cdef index_t none = 0
    if order.shape[0] == 0:
        return
    if indptr.shape[0]:
        starts = &indptr[0]
        rows = &indices[0] if indices.shape[0] else &none  # all columns are empty: not dense
    with nogil:
        if model.starts.shape[0]:
            block_steps(a, rows, starts, model, state, order)
        else:
            scalar_steps(a, rows, starts, model, state, order)


# ---- without momentum: (rpcg-prox) and (rpcg-update), which is SDCA on the dual of ERM -----------

cdef inline double plain_partial(const value_t *a, const index_t *rows, Py_ssize_t size, Outer h,
                                 const double *r) noexcept nogil:
    """<A_i, h'(r)>, with `rows` NULL for a dense column."""
    cdef Py_ssize_t k, j
    cdef double total = 0.0
    if h.kind == QUADRATIC:
        if rows == NULL:
            for k in range(size):
                total += a[k] * r[k]
        else:
            for k in range(size):
                total += a[k] * r[rows[k]]
        return h.weight[0] * total
    for k in range(size):
        j = k if rows == NULL else rows[k]
        total += a[k] * h.derivative_at(j, r[j])
    return total


cdef void plain_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model,
        double *x, double *r, const Py_ssize_t[::1] order) noexcept nogil:
    cdef Py_ssize_t k, i, e, first, size
    cdef const index_t *own = NULL
    cdef double g, step, h
    for k in range(order.shape[0]):
        i = order[k]
        first = i * model.rows if rows == NULL else indptr[i]
        size = model.rows if rows == NULL else indptr[i + 1] - first
        if rows != NULL:
            own = rows + first
        if model.outer.kind == GRAM:
            g = r[i]
        else:
            g = plain_partial(a + first, own, size, model.outer, r)
        if model.sign.shape[0] > 1:
            g *= model.sign[i]
        g += (model.c[i if model.c.shape[0] > 1 else 0]
              + model.sigma[i if model.sigma.shape[0] > 1 else 0] * x[i])
        step = 1.0 / model.L[i]
        h = model.psi.prox_at(i, x[i] - step * g, step) - x[i]
        if h == 0.0:
            continue
        x[i] += h
        if model.sign.shape[0] > 1:
            h *= model.sign[i]
        if rows == NULL:
            for e in range(size):
                r[e] += h * a[first + e]
        else:
            for e in range(size):
                r[own[e]] += h * a[first + e]


def run_plain(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
              Model model, double[::1] x, double[::1] r, const Py_ssize_t[::1] order):
    """One step on each coordinate of `order`; r is A x less the shift of h. Scalar blocks only."""
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *rows = NULL
    cdef const index_t *starts = NULL
    cdef index_t none = 0
    if order.shape[0] == 0:
        return
    if indptr.shape[0]:
        starts = &indptr[0]
        rows = &indices[0] if indices.shape[0] else &none
    with nogil:
        plain_steps(a, rows, starts, model, &x[0], &r[0], order)
