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

import numpy as np

from libc.math cimport fabs

from ..losses.scalar cimport interval_dual_prox
from ..common.sequence cimport Coefficients, advance
from ..losses.terms cimport (DUAL_INTERVAL, GRAM, QUADRATIC, Outer, Prox, Psi, derivative_at, prox_at,
                     prox_near, prox_of, theta_at)
from ..common.types cimport ROUNDING, index_t, value_t

cdef extern from "row_products.h" nogil:
    # Macros: they take the values and row numbers by any pointer type and assign to sp, sq, s.
    void sparse_dot2(const void *a, const void *r, Py_ssize_t m, const double *pq,
                     double sp, double sq)
    void sparse_add2(const void *a, const void *r, Py_ssize_t m, double *pq, double dp, double dq)
    void dense_dot2(const void *a, Py_ssize_t m, const double *pq, double sp, double sq)
    void dense_add2(const void *a, Py_ssize_t m, double *pq, double dp, double dq)
    void prefetch "APCG_PREFETCH"(const void *address)


cdef class Model:
    """All of the problem but the numbers of A, as the kernels read it.

    L is per block. c, sigma and sign are per coordinate, or of length one and shared; the column of
    coordinate i is sign_i times the stored one (the labels of a dual problem). `members` and
    `starts` list the coordinates of each block; both are empty if every coordinate is a block.
    Stored columns have `rows` entries; if `constant` is not zero it is one more entry of each of
    them, which is stored nowhere (the feature of an intercept).
    """

    def __init__(self, Outer outer, Psi psi, const double[::1] c, const double[::1] sigma,
                 const double[::1] sign, const double[::1] L, Py_ssize_t rows,
                 const Py_ssize_t[::1] members, const Py_ssize_t[::1] starts,
                 double constant=0.0):
        self.outer, self.psi, self.constant = outer, psi, constant
        self.c, self.sigma, self.sign, self.L, self.rows = c, sigma, sign, L, rows
        self.members, self.starts = members, starts


cdef class State:
    """The implicit iterate: z = v + t u, x = v + (t + s) u, and gamma_k.

    pq[:, 0] is p = A u and pq[:, 1] is q = A v less the shift. 1/n is the probability of the blocks
    that are stepped on next. `work` is room for two copies of the largest block. pq is aligned to
    16 bytes.
    """

    cdef public double[::1] u, v, work
    cdef public double[:, ::1] pq
    cdef public double s, t, gamma, mu, n, fold_at
    cdef public long folds

    def __init__(self, double[::1] u, double[::1] v, double[:, ::1] pq, double[::1] work, *,
                 double n, double mu, double gamma, double fold_at):
        if <size_t> &pq[0, 0] % 16:
            raise ValueError("pq must be aligned to 16 bytes")
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

    def at(self, double tau) -> np.ndarray:
        """v + tau u."""
        result = np.empty(self.u.shape[0])
        cdef double[::1] out = result
        cdef Py_ssize_t k
        with nogil:
            for k in range(out.shape[0]):
                out[k] = self.v[k] + tau * self.u[k]
        return result

    def rows(self, double scale) -> np.ndarray:
        """scale (A x - shift), from p and q."""
        result = np.empty(self.pq.shape[0])
        cdef double[::1] out = result
        cdef double tau = self.t + self.s
        cdef Py_ssize_t k
        with nogil:
            for k in range(out.shape[0]):
                out[k] = scale * (self.pq[k, 1] + tau * self.pq[k, 0])
        return result

    def fold(self):
        """Rewrite the same iterate with s = 1: v += (t + kappa s) u, u *= s, t = -kappa."""
        with nogil:
            self.fold_()


    def restart(self):
        """Forget the momentum: z = x, that is v += (t + s) u and u = 0."""
        cdef Py_ssize_t k
        cdef double tau = self.t + self.s
        with nogil:
            for k in range(self.u.shape[0]):
                self.v[k] += tau * self.u[k]
                self.u[k] = 0.0
            for k in range(self.pq.shape[0]):
                self.pq[k, 1] += tau * self.pq[k, 0]
                self.pq[k, 0] = 0.0
        self.s = 1.0
        self.t = -self.kappa()


cdef struct View:
    # The arrays of a Model and a State as pointers, and strides of 0 for what is shared.
    double *u
    double *v
    double *pq
    const double *L
    const double *c
    const double *sigma
    const double *sign          # NULL if all are 1
    Py_ssize_t c_stride, sigma_stride, rows
    double constant


cdef View view(Model model, State state) noexcept nogil:
    cdef View w
    w.u, w.v, w.pq = &state.u[0], &state.v[0], &state.pq[0, 0]
    w.L, w.c, w.sigma = &model.L[0], &model.c[0], &model.sigma[0]
    w.sign = &model.sign[0] if model.sign.shape[0] > 1 else NULL
    w.c_stride = 1 if model.c.shape[0] > 1 else 0
    w.sigma_stride = 1 if model.sigma.shape[0] > 1 else 0
    w.rows, w.constant = model.rows, model.constant
    return w


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
            dense_dot2(a, size, pq, sp, sq)
        else:
            sparse_dot2(a, rows, size, pq, sp, sq)
        return h.weight[0] * (sq + tau * sp)
    for k in range(size):
        j = k if rows == NULL else rows[k]
        sq += a[k] * derivative_at(h, j, pq[2 * j + 1] + tau * pq[2 * j])
    return sq


cdef inline void add_column(const value_t *a, const index_t *rows, Py_ssize_t size, double *pq,
                            double dp, double dq) noexcept nogil:
    """p += dp A_i, q += dq A_i."""
    if rows == NULL:
        dense_add2(a, size, pq, dp, dq)
    else:
        sparse_add2(a, rows, size, pq, dp, dq)


cdef inline double coordinate_gradient(
        const value_t *a, const index_t *rows, const index_t *indptr, Outer h, View *w,
        Py_ssize_t i, double tau) noexcept nogil:
    """grad_i f(v + tau u)."""
    cdef double g
    if h.kind == GRAM:
        g = w.pq[2 * i + 1] + tau * w.pq[2 * i]
    elif rows == NULL:
        g = partial(a + i * w.rows, rows, w.rows, h, w.pq, tau)
    else:
        g = partial(a + indptr[i], rows + indptr[i], indptr[i + 1] - indptr[i], h, w.pq, tau)
    if w.constant != 0.0:
        g += w.constant * derivative_at(
            h, w.rows, w.pq[2 * w.rows + 1] + tau * w.pq[2 * w.rows])
    if w.sign != NULL:
        g *= w.sign[i]
    return g + w.c[i * w.c_stride] + w.sigma[i * w.sigma_stride] * (w.v[i] + tau * w.u[i])


cdef inline void move_coordinate(
        const value_t *a, const index_t *rows, const index_t *indptr, View *w, Py_ssize_t i,
        Move move, double centre, double h) noexcept nogil:
    """u_i += du h, v_i += dv h, and p and q with them."""
    cdef double du = move.du * h, dv = move.dv * h
    if fabs(h) <= ROUNDING * fabs(centre):
        return  # at a bound, say: z_i stays where it is, up to the rounding of v_i + t u_i
    w.u[i] += du
    w.v[i] += dv
    if w.sign != NULL:
        du *= w.sign[i]
        dv *= w.sign[i]
    if rows == NULL:
        add_column(a + i * w.rows, rows, w.rows, w.pq, du, dv)
    else:
        add_column(a + indptr[i], rows + indptr[i], indptr[i + 1] - indptr[i], w.pq, du, dv)
    if w.constant != 0.0:
        w.pq[2 * w.rows] += w.constant * du
        w.pq[2 * w.rows + 1] += w.constant * dv


cdef void scalar_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        const Py_ssize_t[::1] order) noexcept nogil:
    cdef View w = view(model, state)
    cdef Py_ssize_t k, i
    cdef Move move
    cdef double g, centre, step, h
    for k in range(order.shape[0]):
        i = order[k]
        move = next_move(state)
        g = coordinate_gradient(a, rows, indptr, model.outer, &w, i, state.t + state.s)
        centre = w.v[i] + state.t * w.u[i]
        step = 1.0 / (move.step * w.L[i])
        h = prox_at(model.psi, i, centre - step * g, step) - centre
        move_coordinate(a, rows, indptr, &w, i, move, centre, h)
        if state.s < state.fold_at:
            state.fold_()


cdef void quadratic_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        const Py_ssize_t[::1] order) noexcept nogil:
    """`scalar_steps` for a quadratic h and n > 1, with all that does not change read once."""
    cdef View w = view(model, state)
    cdef Prox prox = prox_of(model.psi)
    cdef const Py_ssize_t *next = &order[0]
    cdef const Py_ssize_t *end = next + order.shape[0]
    cdef const value_t *column
    cdef const index_t *own = rows
    cdef Py_ssize_t i, size = w.rows
    cdef double weight = model.outer.weight[0], fold_at = state.fold_at
    cdef double s = state.s, t = state.t, n_alpha = 0.0, excess = 0.0, rho = 0.0
    cdef double sp = 0.0, sq = 0.0, sign = 1.0, g, centre, step, h, du, dv
    cdef Move move
    # the last row, where all columns have the same entry; a pointer is the quickest thing to test
    cdef double *border = &w.pq[2 * w.rows] if w.constant != 0.0 else NULL
    # With gamma = mu all coefficients are constant, and t = -s/2 is set, not accumulated.
    cdef bint constant = state.gamma == state.mu and t == -0.5 * s
    if constant:
        state.s = 1.0
        state.t = -0.5
        n_alpha = next_move(state).step
        excess = n_alpha - 1.0
        rho = state.s
    while next != end:
        i = next[0]
        next += 1
        if rows == NULL:
            column = a + i * size
            dense_dot2(column, size, w.pq, sp, sq)
        else:
            column, own = a + indptr[i], rows + indptr[i]
            size = indptr[i + 1] - indptr[i]
            if next != end:  # the row of the next step, of which no hardware can know
                prefetch(a + indptr[next[0]])
                prefetch(rows + indptr[next[0]])
            sparse_dot2(column, own, size, w.pq, sp, sq)
        if border != NULL:
            sp += w.constant * border[0]
            sq += w.constant * border[1]
        if constant:
            s *= rho
            t = -0.5 * s
        else:
            state.s, state.t = s, t
            move = next_move(state)
            s, t, n_alpha = state.s, state.t, move.step
            excess = n_alpha - 1.0
        g = weight * (sq + (t + s) * sp)
        if w.sign != NULL:
            sign = w.sign[i]
            g *= sign
        g += w.c[i * w.c_stride] + w.sigma[i * w.sigma_stride] * (w.v[i] + (t + s) * w.u[i])
        centre = w.v[i] + t * w.u[i]
        step = 1.0 / (n_alpha * w.L[i])
        h = centre - step * g
        if prox.kind == DUAL_INTERVAL:
            h = interval_dual_prox(h, step * prox.weight, prox.theta) - centre
        else:
            h = prox_near(&prox, model.psi, i, h, step, centre) - centre
        if fabs(h) > ROUNDING * fabs(centre):
            du = excess / s * h
            dv = h - t * du
            w.u[i] += du
            w.v[i] += dv
            if w.sign != NULL:
                du *= sign
                dv *= sign
            if rows == NULL:
                dense_add2(column, size, w.pq, du, dv)
            else:
                sparse_add2(column, own, size, w.pq, du, dv)
            if border != NULL:
                border[0] += w.constant * du
                border[1] += w.constant * dv
        if s < fold_at:
            state.s, state.t = s, t
            state.fold_()
            s, t = state.s, state.t
    state.s, state.t = s, t


cdef void block_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model, State state,
        const Py_ssize_t[::1] order) noexcept nogil:
    cdef View w = view(model, state)
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
        step = 1.0 / (move.step * w.L[block])
        for e in range(size):
            i = members[e]
            centre[e] = w.v[i] + state.t * w.u[i]
            x[e] = centre[e] - step * coordinate_gradient(
                a, rows, indptr, model.outer, &w, i, state.t + state.s)
        if model.psi.is_block:
            model.psi.block_prox_(x, size, step, theta_at(model.psi, block))
        else:
            for e in range(size):
                x[e] = prox_at(model.psi, members[e], x[e], step)
        for e in range(size):
            move_coordinate(a, rows, indptr, &w, members[e], move, centre[e], x[e] - centre[e])
        if state.s < state.fold_at:
            state.fold_()


def run(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        Model model, State state, const Py_ssize_t[::1] order):
    """One step on each block of `order`, in that order.

    A is given by coordinate, in CSR form, or dense with an empty indptr.
    """
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *starts = &indptr[0] if indptr.shape[0] else NULL
    # if all columns are empty, anything but NULL, which means dense
    cdef const index_t *rows = &indices[0] if indices.shape[0] else starts
    if order.shape[0] == 0:
        return
    with nogil:
        if model.starts.shape[0]:
            block_steps(a, rows, starts, model, state, order)
        elif model.outer.kind == QUADRATIC and state.n > 1:  # then s > 0
            quadratic_steps(a, rows, starts, model, state, order)
        else:
            scalar_steps(a, rows, starts, model, state, order)
