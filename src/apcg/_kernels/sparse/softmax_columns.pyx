"""The second order model of the softmax on sparse columns, over entries (feature, class) of W.

    M(v) = - <slope, v - w> + (1/2) sum_i T_i'H_i T_i + sum_e a_e |v_e| + (b_e/2) v_e^2
    T = X (v - w),   H_i = diag(P_i + f_i) - P_i P_i'/s_i,   P_i = s_i pi_i

A step on one entry costs its column. Two sums are kept for that, with r minus the slopes of the rows:

    q_ik = r_ik - (P_ik + f_i) T_ik,   c_i = <P_i, T_i>/s_i,   so that r - H T = q + P c

`state` has P and q side by side, one class after the other, so that the entries of a class find theirs
in a near cache; `rows` has c, 1/s and f of a row side by side. Columns are packed as in `columns`.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t

from ..losses.penalty cimport apcg_penalty, penalty

cdef extern from "lasso.h" nogil:
    double apcg_best(double w, double slope, double h, Py_ssize_t j, const apcg_penalty *p)

cdef extern from "columns.h" nogil:
    ctypedef struct apcg_narrow:
        int row
        float x
    ctypedef struct apcg_wide:
        int row
        double x
    double apcg_dot_n(const apcg_narrow *a, Py_ssize_t size, const double *u)
    double apcg_dot_w(const apcg_wide *a, Py_ssize_t size, const double *u)

ctypedef fused entry_t:
    apcg_narrow
    apcg_wide


# ---- products with K outputs at once ----------------------------------------------------------------

cdef void slopes_of(const entry_t *a, const int64_t *start, const int64_t *ids, Py_ssize_t count,
                    const double *u, Py_ssize_t K, double *out, double *top) noexcept nogil:
    cdef Py_ssize_t c, k, t
    cdef int64_t j
    cdef double x, most
    cdef double *to
    cdef const double *row
    for c in range(count):
        j = ids[c]
        to = out + j * K
        for k in range(K):
            to[k] = 0.0
        for t in range(start[j], start[j + 1]):
            x, row = a[t].x, u + a[t].row * K
            for k in range(K):
                to[k] += x * row[k]
        most = 0.0
        for k in range(K):
            most = fabs(to[k]) if fabs(to[k]) > most else most
        top[j] = most


def slopes(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
           const int64_t[::1] ids, const double[:, ::1] u, double[:, ::1] out, double[::1] top):
    """Rows `ids` of out = X'u, and the largest size in each."""
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return
    with nogil:
        if wide:
            slopes_of(<const apcg_wide *> &entries[0], &start[0], &ids[0], ids.shape[0], &u[0, 0],
                      u.shape[1], &out[0, 0], &top[0])
        else:
            slopes_of(<const apcg_narrow *> &entries[0], &start[0], &ids[0], ids.shape[0],
                      &u[0, 0], u.shape[1], &out[0, 0], &top[0])


cdef void add_to(const entry_t *a, const int64_t *start, const int64_t *ids,
                 const int64_t *classes, Py_ssize_t count, const double *v, Py_ssize_t n,
                 double *out) noexcept nogil:
    cdef Py_ssize_t e, t
    cdef double by
    cdef double *to
    for e in range(count):
        by, to = v[e], out + classes[e] * n
        if by != 0.0:
            for t in range(start[ids[e]], start[ids[e] + 1]):
                to[a[t].row] += by * a[t].x


def add(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
        const int64_t[::1] ids, const int64_t[::1] classes, const double[::1] v,
        double[:, ::1] out):
    """out += (X V)', where V has v at (ids, classes) and nothing else"""
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return
    with nogil:
        if wide:
            add_to(<const apcg_wide *> &entries[0], &start[0], &ids[0], &classes[0], ids.shape[0],
                   &v[0], out.shape[1], &out[0, 0])
        else:
            add_to(<const apcg_narrow *> &entries[0], &start[0], &ids[0], &classes[0],
                   ids.shape[0], &v[0], out.shape[1], &out[0, 0])


cdef void dots_of(const entry_t *a, const int64_t *start, const int64_t *ids,
                  const int64_t *classes, Py_ssize_t count, const double *u, Py_ssize_t n,
                  double *out) noexcept nogil:
    cdef Py_ssize_t e, size
    cdef int64_t j
    for e in range(count):
        j = ids[e]
        size = start[j + 1] - start[j]
        if entry_t is apcg_wide:
            out[e] = apcg_dot_w(a + start[j], size, u + classes[e] * n)
        else:
            out[e] = apcg_dot_n(a + start[j], size, u + classes[e] * n)


def dots(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
         const int64_t[::1] ids, const int64_t[::1] classes, const double[:, ::1] u,
         double[::1] out):
    """out_e = <column ids_e, row classes_e of u>"""
    cdef const unsigned char *at = &entries[0] if entries.shape[0] else NULL
    if ids.shape[0] == 0:
        return
    with nogil:
        if wide:
            dots_of(<const apcg_wide *> at, &start[0], &ids[0], &classes[0], ids.shape[0],
                    &u[0, 0], u.shape[1], &out[0])
        else:
            dots_of(<const apcg_narrow *> at, &start[0], &ids[0], &classes[0], ids.shape[0],
                    &u[0, 0], u.shape[1], &out[0])


# ---- the model --------------------------------------------------------------------------------------

cdef struct Columns:
    const int64_t *start
    const int64_t *ids
    const int64_t *classes
    double *state
    double *rows
    Py_ssize_t n, K


cdef double slope_at(const entry_t *a, const Columns *m, int64_t e) noexcept nogil:
    """<x_j, q_k + P_k c>"""
    cdef const double *state = m.state + 2 * m.n * m.classes[e]
    cdef const double *pair
    cdef Py_ssize_t t
    cdef int64_t j = m.ids[e]
    cdef double total = 0.0
    for t in range(m.start[j], m.start[j + 1]):
        pair = state + 2 * a[t].row
        total += a[t].x * (pair[1] + pair[0] * m.rows[3 * a[t].row])
    return total


cdef void move_by(const entry_t *a, const Columns *m, int64_t e, double by) noexcept nogil:
    """v_e += by: what that makes of q and c."""
    cdef double *state = m.state + 2 * m.n * m.classes[e]
    cdef double *pair
    cdef double *row
    cdef Py_ssize_t t
    cdef int64_t j = m.ids[e]
    cdef double far
    for t in range(m.start[j], m.start[j + 1]):
        pair, row = state + 2 * a[t].row, m.rows + 3 * a[t].row
        far = a[t].x * by
        pair[1] -= (pair[0] + row[2]) * far
        row[0] += pair[0] * row[1] * far


cdef void bends_of(const entry_t *a, const Columns *m, Py_ssize_t count, double *h) noexcept nogil:
    cdef const double *state
    cdef Py_ssize_t e, t
    cdef int64_t j
    cdef double P, total, x
    for e in range(count):
        j, state, total = m.ids[e], m.state + 2 * m.n * m.classes[e], 0.0
        for t in range(m.start[j], m.start[j + 1]):
            x, P = a[t].x, state[2 * a[t].row]
            total += x * x * (P * (1.0 - P * m.rows[3 * a[t].row + 1]) + m.rows[3 * a[t].row + 2])
        h[e] = total


cdef Py_ssize_t sweep_over(const entry_t *a, const Columns *m, int64_t *list, Py_ssize_t count,
                           double *v, const double *h, const apcg_penalty *p, double *worst
                           ) noexcept nogil:
    cdef Py_ssize_t t, kept = 0
    cdef int64_t e
    cdef double new, move, far
    for t in range(count):
        e = list[t]
        new = apcg_best(v[e], slope_at(a, m, e), h[e], e, p)
        move = new - v[e]
        if move == 0.0:
            if v[e] != 0.0:
                list[kept] = e
                kept += 1
            continue
        far = fabs(move) * (h[e] + p.b[e & p.mask[1]])
        worst[0] = far if far > worst[0] else worst[0]
        v[e] = new
        list[kept] = e
        kept += 1
        move_by(a, m, e, move)
    return kept


cdef void along(const Columns *m, const double *T, double t, double *room) noexcept nogil:
    """q and c after a step t T of the predictions, T by classes."""
    cdef Py_ssize_t i, k
    cdef double *pair
    cdef const double *at
    for i in range(m.n):
        room[i] = 0.0
    for k in range(m.K):
        pair, at = m.state + 2 * k * m.n, T + k * m.n
        for i in range(m.n):
            pair[2 * i + 1] -= t * (pair[2 * i] + m.rows[3 * i + 2]) * at[i]
            room[i] += pair[2 * i] * at[i]
    for i in range(m.n):
        m.rows[3 * i] += t * room[i] * m.rows[3 * i + 1]


cdef void bend_of(const Columns *m, double *T, double *room) noexcept nogil:
    """T becomes H T."""
    cdef Py_ssize_t i, k
    cdef const double *pair
    cdef double *at
    for i in range(m.n):
        room[i] = 0.0
    for k in range(m.K):
        pair, at = m.state + 2 * k * m.n, T + k * m.n
        for i in range(m.n):
            room[i] += pair[2 * i] * at[i]
    for i in range(m.n):
        room[i] *= m.rows[3 * i + 1]
    for k in range(m.K):
        pair, at = m.state + 2 * k * m.n, T + k * m.n
        for i in range(m.n):
            at[i] = (pair[2 * i] + m.rows[3 * i + 2]) * at[i] - pair[2 * i] * room[i]


cdef void left_of(const Columns *m, double *T) noexcept nogil:
    """T = q + P c"""
    cdef Py_ssize_t i, k
    cdef const double *pair
    for k in range(m.K):
        pair = m.state + 2 * k * m.n
        for i in range(m.n):
            T[k * m.n + i] = pair[2 * i + 1] + pair[2 * i] * m.rows[3 * i]


cdef class Model:
    """M on entries: position e stands for feature ids_e and class classes_e.

    state (K, n, 2), rows (n, 3)   see above; both are changed
    """

    cdef const unsigned char[::1] _entries
    cdef const int64_t[::1] _start, _ids, _classes
    cdef double[:, :, ::1] _state
    cdef double[:, ::1] _rows
    cdef bint _wide
    cdef Columns _m

    def __init__(self, const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
                 const int64_t[::1] ids, const int64_t[::1] classes, double[:, :, ::1] state,
                 double[:, ::1] rows):
        self._entries, self._wide, self._start, self._ids = entries, wide, start, ids
        self._classes, self._state, self._rows = classes, state, rows
        self._m = Columns(&start[0], &ids[0], &classes[0], &state[0, 0, 0], &rows[0, 0],
                          state.shape[1], state.shape[0])

    def bends(self, double[::1] h):
        """The second derivative by each entry."""
        with nogil:
            if self._wide:
                bends_of(<const apcg_wide *> &self._entries[0], &self._m, h.shape[0], &h[0])
            else:
                bends_of(<const apcg_narrow *> &self._entries[0], &self._m, h.shape[0], &h[0])

    def sweep(self, int64_t[::1] positions, double[::1] v, const double[::1] h,
              const double[::1] a, const double[::1] b, const double[::1] lower,
              const double[::1] upper) -> tuple[float, int]:
        """A step on each position: the greatest violation, and how many are kept.

        Those that are not zero, or moved, are then the first ones of `positions`.
        """
        cdef apcg_penalty p = penalty(a, b, lower, upper)
        cdef double worst = 0.0
        cdef Py_ssize_t kept
        if positions.shape[0] == 0:
            return 0.0, 0
        with nogil:
            if self._wide:
                kept = sweep_over(<const apcg_wide *> &self._entries[0], &self._m, &positions[0],
                                  positions.shape[0], &v[0], &h[0], &p, &worst)
            else:
                kept = sweep_over(<const apcg_narrow *> &self._entries[0], &self._m,
                                  &positions[0], positions.shape[0], &v[0], &h[0], &p, &worst)
        return worst, kept

    def left(self, double[:, ::1] T):
        """T = r - H T of the model, by classes."""
        with nogil:
            left_of(&self._m, &T[0, 0])

    def along(self, const double[:, ::1] T, double t, double[::1] room):
        """The predictions change by t T, by classes; `room` has an entry for each row."""
        with nogil:
            along(&self._m, &T[0, 0], t, &room[0])

    def bend(self, double[:, ::1] T, double[::1] room):
        """T becomes H T, by classes; `room` as for `along`."""
        with nogil:
            bend_of(&self._m, &T[0, 0], &room[0])
