"""Losses over K classes for arrays, and what surrounds a sweep over blocks.

Arrays of predictions z and of dual points x are (n, K). With e the unit vector of the label, x/s is
e - pi, pi in the simplex:

    kind      phi(z)                                                       phi*(-x) at pi = e - x
    SOFTMAX   log sum exp(z) - z_y                                         sum pi log pi
    SIMPLEX   max_pi <c, pi> + <z, pi - e> - (gamma/2)|pi - e|^2, c = 1-e  -(1 - pi_y) + (gamma/2)|pi - e|^2
"""

import numpy as np

from libc.math cimport INFINITY, fabs, log1p

from ..dual.many_outputs cimport SOFTMAX, project, softmax_root
from ..common.types cimport Sum, add

cdef extern from "many_outputs.h" nogil:
    double entropy "apcg_entropy"(const double *x, Py_ssize_t size)
    double exps "apcg_exps"(const double *t, double *p, Py_ssize_t size)
    double squares "apcg_squares"(const double *x, Py_ssize_t size)

cdef extern from *:
    """
    /* A step that leaves the simplex by more than this was no rounding. */
    #define APCG_OUTSIDE 1e-12
    """
    const double OUTSIDE "APCG_OUTSIDE"


cdef same(Py_ssize_t n, Py_ssize_t K, const int[::1] y, Py_ssize_t weights):
    """Refuse labels and weights that would be read, or written to, outside of an array."""
    cdef Py_ssize_t i
    cdef bint outside = False
    if y.shape[0] != n or weights not in (1, n):
        raise ValueError(f"{n} rows have {n} labels and weights (or one), got {y.shape[0]} and "
                         f"{weights}.")
    for i in range(n):
        outside |= not 0 <= y[i] < K
    if outside:
        raise ValueError(f"labels must be in 0..{K - 1}, one for each output; got "
                         f"{np.asarray(y).min()} to {np.asarray(y).max()}.")


cdef room_for(const double[:, ::1] x, Py_ssize_t rows, Py_ssize_t columns):
    """Refuse a result of another shape."""
    if x.shape[0] != rows or x.shape[1] != columns:
        raise ValueError(f"the result has shape {(rows, columns)}, got room for "
                         f"{(x.shape[0], x.shape[1])}.")


cdef double row_value(int kind, const double *z, int y, double gamma, Py_ssize_t K, double *pi,
                      double *room) noexcept nogil:
    """phi(z); pi becomes its maximiser, so that phi'(z) = pi - e. Rooms are of whole vectors."""
    cdef Py_ssize_t k, top = 0, size = (K + 3) // 4 * 4
    cdef double total = 0.0, d
    for k in range(1, K):
        if z[k] + (kind != SOFTMAX and k != y) > z[top] + (kind != SOFTMAX and top != y):
            top = k
    if kind == SOFTMAX:
        for k in range(size):
            room[k] = z[k] - z[top] if k < K and k != top else -INFINITY
        total = exps(room, pi, size)
        pi[top] = 1.0
        for k in range(K):
            pi[k] /= 1.0 + total
        return (z[top] - z[y]) + log1p(total)  # not log: it may be tiny
    if gamma == 0.0:
        if z[y] >= z[top] + (top != y):  # of several, the slope nearest to zero
            top = y
        for k in range(K):
            pi[k] = 0.0
        pi[top] = 1.0
        return z[top] + (top != y) - z[y]
    for k in range(K):
        room[k] = z[k] - z[y] + (1.0 if k != y else gamma)
    project(room, gamma, pi, K)
    for k in range(K):
        d = pi[k] - (k == y)
        total += pi[k] * ((k != y) + (z[k] - z[y])) - 0.5 * gamma * d * d
    return total


cdef double row_conjugate(int kind, double *pi, int y, double gamma, Py_ssize_t K
                          ) noexcept nogil:
    """phi*(pi - e), given pi for k != y and 1 - pi_y at y; pi is in the simplex, but for rounding.

    pi is of whole vectors, and is changed.
    """
    cdef Py_ssize_t k
    cdef double total = 0.0, sum = 0.0, d, a
    cdef double slack = 8.9e-16 * (K + 8)  # what rounding makes of sums of K numbers
    cdef bint inside = True
    a = pi[y]
    pi[y] = 1.0 - a
    for k in range(K):
        inside &= -slack <= pi[k] <= 1.0 + slack
        sum += pi[k]
    if not inside:
        return INFINITY
    if kind != SOFTMAX:
        for k in range(K):
            d = pi[k] - (k == y)
            total += 0.5 * gamma * d * d - (pi[k] if k != y else 0.0)
    else:
        pi[y] = 0.0
        for k in range(K, (K + 3) // 4 * 4):
            pi[k] = 0.0
        total = entropy(pi, (K + 3) // 4 * 4) + ((1.0 - a) * log1p(-a) if a < 1.0 else 0.0)
    return total if fabs(sum - 1.0) <= slack else INFINITY


cdef void dual_row(const double *pi, int y, double s, Py_ssize_t K, double *x) noexcept nogil:
    """x = s (e - pi), with 1 - pi_y as the sum of the others: no cancellation.

    If a rounding made them more than 1, they are scaled down: pi_y would be negative.
    """
    cdef Py_ssize_t k
    cdef double others = 0.0, scale
    for k in range(K):
        if k != y:
            others += pi[k]
    scale = s / others if others > 1.0 else s
    others = 0.0
    for k in range(K):
        if k != y:
            x[k] = -scale * pi[k]
            others -= x[k]
    x[y] = others


def total(int kind, const double[:, ::1] z, const int[::1] y, double gamma,
          const double[::1] weights) -> float:
    """sum_i s_i phi_i(z_i)"""
    cdef Py_ssize_t i, K = z.shape[1], mask = -1 if weights.shape[0] > 1 else 0
    cdef Sum sum = Sum(0.0, 0.0)
    cdef double[:, ::1] room = np.empty((2, (K + 3) // 4 * 4))
    same(z.shape[0], K, y, weights.shape[0])
    with nogil:
        for i in range(z.shape[0]):
            if weights[i & mask] != 0.0:
                add(&sum, weights[i & mask] * row_value(kind, &z[i, 0], y[i], gamma, K, &room[0, 0],
                                                        &room[1, 0]))
    return sum.high + sum.low


def values(int kind, const double[:, ::1] z, const int[::1] y, double gamma, double[::1] out):
    """phi_i(z_i)"""
    cdef Py_ssize_t i, K = z.shape[1]
    cdef double[:, ::1] room = np.empty((2, (K + 3) // 4 * 4))
    same(z.shape[0], K, y, 1)
    if out.shape[0] != z.shape[0]:
        raise ValueError(f"{z.shape[0]} rows have {z.shape[0]} values, got {out.shape[0]}.")
    with nogil:
        for i in range(z.shape[0]):
            out[i] = row_value(kind, &z[i, 0], y[i], gamma, K, &room[0, 0], &room[1, 0])


def dual_of(int kind, const double[:, ::1] z, const int[::1] y, double gamma,
            const double[::1] weights, double[:, ::1] out):
    """out = x = s (e - pi), pi the maximiser of phi(z): minus the gradients."""
    cdef Py_ssize_t i, K = z.shape[1], mask = -1 if weights.shape[0] > 1 else 0
    cdef double[:, ::1] room = np.empty((2, (K + 3) // 4 * 4))
    cdef double s
    same(z.shape[0], K, y, weights.shape[0])
    room_for(out, z.shape[0], K)
    with nogil:
        for i in range(z.shape[0]):
            s = weights[i & mask]
            row_value(kind, &z[i, 0], y[i], gamma, K, &room[0, 0], &room[1, 0])
            dual_row(&room[0, 0], y[i], s, K, &out[i, 0])


def total_conjugate(int kind, const double[:, ::1] x, const int[::1] y, double gamma,
                    const double[::1] weights) -> float:
    """sum_i s_i phi_i*(-x_i/s_i); with weight 0, 0 if x_i = 0 and else infinite."""
    cdef Py_ssize_t i, k, K = x.shape[1], mask = -1 if weights.shape[0] > 1 else 0
    cdef Sum sum = Sum(0.0, 0.0)
    cdef double[::1] pi = np.empty((K + 3) // 4 * 4)
    cdef double s
    same(x.shape[0], K, y, weights.shape[0])
    with nogil:
        for i in range(x.shape[0]):
            s = weights[i & mask]
            if s != 0.0:
                for k in range(K):
                    pi[k] = -x[i, k] / s
                pi[y[i]] = x[i, y[i]] / s
                add(&sum, s * row_conjugate(kind, &pi[0], y[i], gamma, K))
            else:
                for k in range(K):
                    if x[i, k] != 0.0:
                        add(&sum, INFINITY)
    return sum.high + sum.low


def prox(int kind, const double[:, ::1] v, const double[::1] step, const int[::1] y, double gamma,
         double[:, ::1] out):
    """out = argmin_u phi_i*(u) + |u - v_i|^2/(2 step_i)"""
    cdef Py_ssize_t i, k, K = v.shape[1]
    cdef double[:, ::1] room = np.empty((3, K))
    cdef double rho, e
    same(v.shape[0], K, y, 1)
    room_for(out, v.shape[0], K)
    if step.shape[0] != v.shape[0]:
        raise ValueError(f"{v.shape[0]} rows have {v.shape[0]} steps, got {step.shape[0]}.")
    with nogil:
        for i in range(v.shape[0]):
            # u = pi - e: |pi - e - v|^2/(2 step) = |pi|^2/(2 step) - <pi, e + v>/step + ..
            rho = 1.0 / step[i]
            for k in range(K):
                e = k == y[i]
                room[0, k] = rho * (v[i, k] + e)
                if kind != SOFTMAX:
                    room[0, k] += gamma * e + (1.0 - e)
            if kind == SOFTMAX:
                softmax_root(&room[1, 0], &room[2, 0], &room[0, 0], rho, 0.0, K, K)
            else:
                project(&room[0, 0], rho + gamma, &room[2, 0], K)
            for k in range(K):
                out[i, k] = room[2, k] - (k == y[i])


def clip(const double[:, ::1] x, const int[::1] y, const double[::1] weights,
         double[:, ::1] out) -> int:
    """The x with pi = e - x/s in the simplex, by max(pi, 0)/sum; 0 where s = 0. Returns how many
    entries were outside by more than rounding."""
    cdef Py_ssize_t i, k, K = x.shape[1], mask = -1 if weights.shape[0] > 1 else 0, changed = 0
    cdef double s, sum, pi, others
    same(x.shape[0], K, y, weights.shape[0])
    room_for(out, x.shape[0], K)
    with nogil:
        for i in range(x.shape[0]):
            s, sum = weights[i & mask], 0.0
            for k in range(K):
                if s == 0.0:
                    out[i, k] = 0.0
                    continue
                pi = (k == y[i]) - x[i, k] / s
                changed += pi < -OUTSIDE
                out[i, k] = pi if pi > 0.0 else 0.0
                sum += out[i, k]
            if s == 0.0:
                continue
            changed += fabs(sum - 1.0) > OUTSIDE
            others = 0.0
            for k in range(K):
                if k != y[i]:
                    out[i, k] = -s * (out[i, k] / sum) if sum > 0.0 else 0.0
                    others -= out[i, k]
            out[i, y[i]] = others
    return changed


def dual(const double[:, ::1] pi, const int[::1] y, const double[::1] weights, double[:, ::1] out):
    """out = x = s (e - pi), with 1 - pi_y as the sum of the others; 0 where s = 0."""
    cdef Py_ssize_t i, K = pi.shape[1], mask = -1 if weights.shape[0] > 1 else 0
    same(pi.shape[0], K, y, weights.shape[0])
    room_for(out, pi.shape[0], K)
    with nogil:
        for i in range(pi.shape[0]):
            dual_row(&pi[i, 0], y[i], weights[i & mask], K, &out[i, 0])


# ---- values of a point of the sweeps ---------------------------------------------------------------

def entropies(const double[:, ::1] pi, const double[::1] weights) -> float:
    """sum_i s_i sum_k pi_ik log pi_ik, with pads of 0"""
    cdef Py_ssize_t i, mask = -1 if weights.shape[0] > 1 else 0
    cdef double sum = 0.0
    with nogil:
        for i in range(pi.shape[0]):
            sum += weights[i & mask] * entropy(&pi[i, 0], pi.shape[1])
    return sum


def square(const double[:, ::1] rows, bint two, double s, double threshold) -> float:
    """sum over all entries t of max(|t| - threshold, 0)^2; threshold < 0 is none.

    t are the entries of rows, or q + s p/2 if `two` says that rows are p then q. The number of
    columns is a multiple of four.
    """
    cdef Py_ssize_t j, k, size = rows.shape[1] // 2 if two else rows.shape[1]
    cdef double half = 0.5 * s, t
    cdef double sum[4]
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0
    cdef Sum total = Sum(0.0, 0.0)
    if not two and not threshold > 0.0:  # by parts: the sum of a million squares loses digits
        with nogil:
            for j in range(0, rows.shape[0], 64):
                add(&total, squares(&rows[j, 0], min(rows.shape[0] - j, 64) * size))
        return total.high + total.low
    with nogil:
        for j in range(rows.shape[0]):
            for k in range(size):
                t = rows[j, size + k] + half * rows[j, k] if two else rows[j, k]
                if threshold > 0.0:
                    t = fabs(t) - threshold
                    t = t if t > 0.0 else 0.0
                sum[k & 3] += t * t
    return (sum[0] + sum[1]) + (sum[2] + sum[3])
