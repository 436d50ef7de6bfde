"""Stochastic gradient steps with a memory: SAG, SAGA and prox-SVRG in one loop, with lazy updates.

    minimize (1/n) sum_i f_i(w) + (mu/2)|w|^2 + sum_j a_j|w_j|,   f_i(w) = s_i phi_i(<A_i, w> + c b)

A table has one number for each row, t_i: the derivative of s_i phi_i at an earlier prediction, and
G = sum_i t_i A_i. A step of size alpha on row i, with t the derivative at w, is

    w <- prox(w - (alpha/m)(gain (t - t_i) A_i + G)),   then t_i <- t and G <- G + (t - t_i) A_i

    SAG    gain = 1, m the rows seen so far, and 1 - alpha mu times w in the place of the prox
    SAGA   gain = m = n
    SVRG   gain = m = n, and t_i and G stay as they are

Lazy updates: w = scale u. The square of the penalty, or SAG's factor, changes the scale alone, and

    u_j <- soft(u_j - h (gain (t - t_i) A_ij + G_j), h m a_j),   h = alpha/(m scale)

(SAG: the new scale). For a feature that is not in the row, G_j is constant. Then u_j moves along a
line with slope -(G_j + m a_j) while it is positive, -(G_j - m a_j) while it is negative, and stays
at 0 if |G_j| <= m a_j. So it is brought up to date when it is next read, from the sum of the h alone:
a step costs as much as its row has nonzeros. Only where u_j changes its sign is the step looked up
at which it did, in a list of those sums.

The intercept b has no penalty and is in every row: it is never late.
"""

import numpy as np

from libc.math cimport fabs, pow

from ..losses.scalar cimport LossFunctions, find
from ..common.types cimport index_t, value_t

cdef extern from *:
    """
    /* Below this scale everything is brought up to date, and the scale is 1 again. */
    #define APCG_SMALL_SCALE 1e-50
    /* The line search is left out where it asks for less than this part of f_i. */
    #define APCG_WORTH_A_SEARCH 1e-8
    """
    const double SMALL_SCALE "APCG_SMALL_SCALE"
    const double WORTH_A_SEARCH "APCG_WORTH_A_SEARCH"


cdef struct Cell:
    # What is known of a feature: side by side, because they are read and written together.
    double u, since, G, threshold


cdef class Rule:
    """What does not change in a run: the losses, the penalty, and which of the methods it is.

    norms are |A_i|^2 + c^2; `most` is the largest s_i norms_i/gamma, where the line search ends;
    the step is share/L, or share/(L + mu) for SAG.
    """

    cdef LossFunctions loss
    cdef const double[::1] theta, labels, weights, norms
    cdef bint margin, biased, learns, search
    cdef double mu, border, share, most, ease
    cdef Py_ssize_t n

    def __init__(self, str loss, theta, const double[::1] labels, const double[::1] weights,
                 const double[::1] norms, *, bint margin, Py_ssize_t n, double mu, double most,
                 double border=0.0, double share=1.0, bint biased=False, bint learns=True,
                 bint search=False):
        self.loss, self.theta = find(loss), np.array(theta, dtype=np.float64, ndmin=1)
        self.labels, self.weights, self.norms, self.margin = labels, weights, norms, margin
        self.n, self.mu, self.most, self.border, self.share = n, mu, most, border, share
        self.biased, self.learns, self.search = biased, learns, search
        self.ease = pow(2.0, -1.0 / n)


cdef class Memory:
    """The state of a run.

    cells    (d, 4): u, the sum of the h when it was last up to date, G, and m a (of the penalty)
    table    t_i, NaN for a row that was not seen yet
    history  room for the sums of the h after each step, if there are thresholds
    losses   the sum of s_i phi_i over the steps since it was set to 0, each at its own w
    """

    cdef double[:, ::1] cells
    cdef double[::1] table, history
    cdef public double scale, h, L, least, b, b_slope, losses
    cdef public Py_ssize_t seen, used, folds

    def __init__(self, double[:, ::1] cells, double[::1] table, double[::1] history, *, double L,
                 double least, double b=0.0, double b_slope=0.0, Py_ssize_t seen=0):
        self.cells, self.table, self.history = cells, table, history
        self.scale, self.h, self.L, self.least = 1.0, 0.0, L, least
        self.b, self.b_slope, self.seen = b, b_slope, seen
        self.losses, self.used, self.folds = 0.0, 0, 0
        if history.shape[0]:
            history[0] = 0.0

    def fold(self):
        """Bring all features up to date: u is w then, and the scale 1."""
        with nogil:
            fold(self)


cdef double crossed(double u, double G, double a, double since, double h, const double *history,
                    Py_ssize_t used) noexcept nogil:
    """A u > 0 that changes its sign on the way, with G > a: see `up_to_date`."""
    cdef double r = G + a, time = u / r
    cdef Py_ssize_t low = 0, high = used, middle
    while high - low > 1:  # history[low] - since <= time < history[high] - since
        middle = (low + high) // 2
        if history[middle] - since > time:
            high = middle
        else:
            low = middle
    # that step takes it from above to 0, or below
    u -= (history[low] - since) * r + (history[high] - history[low]) * (G - a)
    return (u if u < 0.0 else 0.0) - (h - history[high]) * (G - a)


cdef inline double up_to_date(const Cell *cell, double h, const double *history, Py_ssize_t used
                              ) noexcept nogil:
    """u now, for a feature that was in no row since."""
    cdef double u = cell.u, G = cell.G, a = cell.threshold, late = h - cell.since, new
    if late == 0.0:
        return u
    if a == 0.0:
        return u - late * G
    if u == 0.0:
        return 0.0 if fabs(G) <= a else -late * (G - a if G > 0.0 else G + a)
    if u < 0.0:
        u, G = -u, -G
    new = u - late * (G + a)
    if new < 0.0:
        new = 0.0 if G <= a else crossed(u, G, a, cell.since, h, history, used)
    return new if cell.u > 0.0 else -new


cdef void fold(Memory memory) noexcept nogil:
    cdef Cell *cells = <Cell *> &memory.cells[0, 0]
    cdef const double *history = &memory.history[0] if memory.history.shape[0] else NULL
    cdef Py_ssize_t j
    for j in range(memory.cells.shape[0]):
        cells[j].u = memory.scale * up_to_date(&cells[j], memory.h, history, memory.used)
        cells[j].since = 0.0
    memory.scale, memory.h, memory.used = 1.0, 0.0, 0
    memory.folds += 1


cdef inline double searched(Rule rule, Memory memory, double m, double value, double slope, double s,
                            double norm) noexcept nogil:
    """L for this step: doubled until f_i(w - f_i'(w)/L) <= f_i(w) - |f_i'(w)|^2/(2 L).

    After a step that tested it, L falls by the n-th root of 2.
    """
    cdef double L = memory.L, square = s * slope * slope * norm  # |f_i'|^2/s_i; value is f_i/s_i
    cdef const double *theta = &rule.theta[0]
    if not square > 2.0 * L * WORTH_A_SEARCH * value:
        return L
    while L < rule.most and not (rule.loss.value(m - s * slope * norm / L, theta)
                                 <= value - 0.5 * square / L):
        L = min(2.0 * L, rule.most)
    memory.L = max(L * rule.ease, memory.least)
    return L


cdef void stochastic_steps(const value_t *data, const index_t *columns, const index_t *indptr,
                           Py_ssize_t features, Rule rule, Memory memory,
                           const Py_ssize_t[::1] order) noexcept nogil:
    cdef Cell *cells = <Cell *> &memory.cells[0, 0]
    cdef Cell *cell
    cdef double *table = &memory.table[0]
    cdef double *history = &memory.history[0] if memory.history.shape[0] else NULL
    cdef const double *theta = &rule.theta[0]
    cdef Py_ssize_t mask = -1 if rule.weights.shape[0] > 1 else 0  # i & mask is i, or 0 if shared
    cdef Py_ssize_t step, i, k, size = features, start
    cdef double z, m, s, y, slope, t, change, alpha, h, u, cut, gain, value, L, w
    for step in range(order.shape[0]):
        i = order[step]
        start = i * features
        if columns != NULL:
            start, size = indptr[i], indptr[i + 1] - indptr[i]
        z = 0.0
        for k in range(size):
            cell = &cells[k if columns == NULL else columns[start + k]]
            cell.u = up_to_date(cell, memory.h, history, memory.used)
            cell.since = memory.h
            z += data[start + k] * cell.u
        z = memory.scale * z + rule.border * memory.b
        y, s = rule.labels[i], rule.weights[i & mask]
        m = y * z if rule.margin else z - y
        slope, value = rule.loss.derivative(m, theta), rule.loss.value(m, theta)
        memory.losses += s * value
        L = memory.L
        if rule.search:
            L = searched(rule, memory, m, value, slope, s, rule.norms[i])
        alpha = rule.share / (L + rule.mu if rule.biased else L)
        t = s * slope * (y if rule.margin else 1.0)
        if table[i] != table[i]:
            table[i] = 0.0
            memory.seen += 1
        change = t - table[i]
        if rule.biased:
            gain, w = 1.0, alpha / memory.seen
            memory.scale *= 1.0 - alpha * rule.mu
            h = w / memory.scale
        else:
            gain, w = rule.n, alpha / rule.n
            h = w / memory.scale
            memory.scale /= 1.0 + alpha * rule.mu
        memory.h += h
        if change != 0.0:
            for k in range(size):
                cell = &cells[k if columns == NULL else columns[start + k]]
                u = cell.u - h * (gain * change * data[start + k] + cell.G)
                if cell.threshold > 0.0:
                    cut = h * cell.threshold
                    u = u - cut if u > cut else (u + cut if u < -cut else 0.0)
                cell.u, cell.since = u, memory.h
                if rule.learns:
                    cell.G += change * data[start + k]
        memory.b -= w * (gain * change * rule.border + memory.b_slope)
        if rule.learns:
            memory.b_slope += change * rule.border
            table[i] = t
        memory.used += 1
        if history != NULL:
            history[memory.used] = memory.h
        if memory.scale < SMALL_SCALE or memory.used + 1 == memory.history.shape[0]:
            fold(memory)


def run_stochastic(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                   Rule rule, Memory memory, const Py_ssize_t[::1] order):
    """One step on each row of `order`."""
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *starts = &indptr[0] if indptr.shape[0] else NULL
    # if all rows are empty, anything but NULL, which means dense
    cdef const index_t *columns = &indices[0] if indices.shape[0] else starts
    with nogil:
        stochastic_steps(a, columns, starts, memory.cells.shape[0], rule, memory, order)
