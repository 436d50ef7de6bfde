"""The second order model of the softmax on sparse columns, over entries (feature, class) of W.

    M(v) = - c'(v - w) + (1/2) sum_i T_i'H_i T_i + sum_e a_e |v_e| + (b_e/2) v_e^2
    T = X (v - w),   H_i = diag(P_i + f_i) - P_i P_i'/s_i,   P_i = s_i pi_i

c are minus the slopes at w. A step on one entry costs its column. Two sums are kept for that:

    q_ik = - (P_ik + f_i) T_ik,   mean_i = <P_i, T_i>/s_i,   so that - H T = q + P mean

`state` has P and q side by side, one class after the other, so that the entries of a class find theirs
in a near cache; `rows` has mean, 1/s and f of a row side by side. Columns are packed as in `columns`.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t

from ..losses.penalty cimport apcg_penalty, penalty
from .columns cimport Columns, apcg_columns, apcg_entry

cdef extern from "lasso.h" nogil:
    double apcg_best(double w, double slope, double h, Py_ssize_t j, const apcg_penalty *p)


def slopes(Columns columns, const int64_t[::1] ids, const double[:, ::1] u, double[:, ::1] out,
           double[::1] top):
    """Rows `ids` of out = X'u, and the largest size in each."""
    cdef const apcg_columns *A = &columns.at
    cdef Py_ssize_t c, k, t, K = u.shape[1]
    cdef int64_t j
    cdef double x, most
    cdef double *to
    cdef const double *row
    with nogil:
        for c in range(ids.shape[0]):
            j = ids[c]
            to = &out[j, 0]
            for k in range(K):
                to[k] = 0.0
            for t in range(A.start[j], A.start[j + 1]):
                x, row = A.unit * A.entries[t].x, &u[0, 0] + A.entries[t].row * K
                for k in range(K):
                    to[k] += x * row[k]
            most = 0.0
            for k in range(K):
                most = fabs(to[k]) if fabs(to[k]) > most else most
            top[j] = most


cdef struct Entries:
    const apcg_columns *A
    const int64_t *ids
    const int64_t *classes
    double *state
    double *rows
    Py_ssize_t n, K


cdef double slope_at(const Entries *m, int64_t e) noexcept nogil:
    """<x_j, q_k + P_k mean>"""
    cdef const double *state = m.state + 2 * m.n * m.classes[e]
    cdef const double *pair
    cdef Py_ssize_t t
    cdef int64_t j = m.ids[e]
    cdef double total = 0.0
    cdef const apcg_entry *a = m.A.entries
    for t in range(m.A.start[j], m.A.start[j + 1]):
        pair = state + 2 * a[t].row
        total += a[t].x * (pair[1] + pair[0] * m.rows[3 * a[t].row])
    return m.A.unit * total


cdef void move_by(const Entries *m, int64_t e, double by) noexcept nogil:
    """v_e += by: what that makes of q and the means."""
    cdef double *state = m.state + 2 * m.n * m.classes[e]
    cdef double *pair
    cdef double *row
    cdef Py_ssize_t t
    cdef int64_t j = m.ids[e]
    cdef double far
    cdef const apcg_entry *a = m.A.entries
    for t in range(m.A.start[j], m.A.start[j + 1]):
        pair, row = state + 2 * a[t].row, m.rows + 3 * a[t].row
        far = m.A.unit * a[t].x * by
        pair[1] -= (pair[0] + row[2]) * far
        row[0] += pair[0] * row[1] * far


cdef void bends_of(const Entries *m, Py_ssize_t count, double *h) noexcept nogil:
    cdef const double *state
    cdef Py_ssize_t e, t
    cdef int64_t j
    cdef double P, total, x
    cdef const apcg_entry *a = m.A.entries
    for e in range(count):
        j, state, total = m.ids[e], m.state + 2 * m.n * m.classes[e], 0.0
        for t in range(m.A.start[j], m.A.start[j + 1]):
            x, P = a[t].x, state[2 * a[t].row]
            total += x * x * (P * (1.0 - P * m.rows[3 * a[t].row + 1]) + m.rows[3 * a[t].row + 2])
        h[e] = m.A.unit * m.A.unit * total


cdef Py_ssize_t sweep_over(const Entries *m, int64_t *list, Py_ssize_t count, double *v,
                           const double *c, const double *h, const apcg_penalty *p,
                           double *worst) noexcept nogil:
    cdef Py_ssize_t t, kept = 0
    cdef int64_t e
    cdef double new, move, far
    for t in range(count):
        e = list[t]
        new = apcg_best(v[e], c[e] + slope_at(m, e), h[e], e, p)
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
        move_by(m, e, move)
    return kept


cdef void along(const Entries *m, const double *T, double t, double *room) noexcept nogil:
    """q and the means after a step t T of the predictions, T by classes."""
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


cdef void bend_of(const Entries *m, double *T, double *room) noexcept nogil:
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


cdef void left_of(const Entries *m, double *T) noexcept nogil:
    """T = q + P mean"""
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

    cdef const int64_t[::1] _ids, _classes
    cdef double[:, :, ::1] _state
    cdef double[:, ::1] _rows
    cdef Columns _columns
    cdef Entries _m

    def __init__(self, Columns columns, const int64_t[::1] ids, const int64_t[::1] classes,
                 double[:, :, ::1] state, double[:, ::1] rows):
        self._columns, self._ids, self._classes = columns, ids, classes
        self._state, self._rows = state, rows
        self._m = Entries(&columns.at, &ids[0], &classes[0], &state[0, 0, 0], &rows[0, 0],
                          state.shape[1], state.shape[0])

    def bends(self, double[::1] h):
        """The second derivative by each entry."""
        with nogil:
            bends_of(&self._m, h.shape[0], &h[0])

    def sweep(self, int64_t[::1] positions, double[::1] v, const double[::1] c,
              const double[::1] h, const double[::1] a, const double[::1] b,
              const double[::1] lower, const double[::1] upper) -> tuple[float, int]:
        """A step on each position: the greatest violation, and how many are kept.

        Those that are not zero, or moved, are then the first ones of `positions`.
        """
        cdef apcg_penalty p = penalty(a, b, lower, upper)
        cdef double worst = 0.0
        cdef Py_ssize_t kept
        if positions.shape[0] == 0:
            return 0.0, 0
        with nogil:
            kept = sweep_over(&self._m, &positions[0], positions.shape[0], &v[0], &c[0], &h[0],
                              &p, &worst)
        return worst, kept

    def left(self, double[:, ::1] T):
        """T = - H T of the model, by classes."""
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
