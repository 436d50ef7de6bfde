"""Coordinate descent on dense columns in float32: the first rounds of the method of working sets.

Rows are padded with zeros to a multiple of LANES.
"""

from ..losses.penalty cimport apcg_penalty, penalty
from ..common.types cimport value_t

cdef extern from "columns_float32.h" nogil:
    Py_ssize_t APCG_LANES
    ctypedef struct apcg_float32_rows:
        Py_ssize_t n
        const float *label
        const float *s
        float *z
        float *old
        float *u
        float *bend
        float floor
        int squared
        int intercept
        double *h
        double b, old_b
    double apcg_float32_refresh(apcg_float32_rows *rows)
    Py_ssize_t apcg_float32_sweep(apcg_float32_rows *rows, const float *X, const Py_ssize_t *columns,
                                Py_ssize_t count, double *w, const apcg_penalty *p)

#: rows are padded to a multiple of this
LANES = APCG_LANES


def pack(const value_t[:, ::1] X, float[:, ::1] out):
    """The columns of X, as rows of `out`, which has zeros behind them."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, j, row, column
    with nogil:
        for row in range(0, n, 64):
            for column in range(0, d, 16):
                for j in range(column, min(column + 16, d)):
                    for i in range(row, min(row + 64, n)):
                        out[j, i] = <float>X[i, j]
        for j in range(d):
            for i in range(n, out.shape[1]):
                out[j, i] = 0.0


def sweeps(const float[:, ::1] X, const float[::1] labels, const float[::1] weights,
           const Py_ssize_t[::1] columns, const double[::1] a, const double[::1] b,
           const double[::1] lower, const double[::1] upper, double floor, Py_ssize_t count,
           bint squared, bint intercept, double[::1] h, double[::1] w, double[::1] shift,
           float[:, ::1] room) -> int:
    """Sweeps over some columns, for the logistic loss or the squared one; gives how often steps were cut.

    The losses are weighted; no curvature is below `floor` times the most there is. shift[0] is the
    intercept. room[0] has the predictions; for the squared loss room[2] has weights (y - z), room[3]
    the weights, and h the curvatures of the columns, below zero where they are not known.
    """
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    cdef apcg_float32_rows rows
    cdef Py_ssize_t cuts = 0, k
    if columns.shape[0] == 0 or X.shape[1] == 0:
        return 0
    rows = apcg_float32_rows(X.shape[1], &labels[0], &weights[0], &room[0, 0], &room[1, 0], &room[2, 0],
                      &room[3, 0], 0.25 * floor, squared, intercept, &h[0], shift[0], shift[0])
    with nogil:
        if not squared:
            apcg_float32_refresh(&rows)
        for k in range(count):
            cuts += apcg_float32_sweep(&rows, &X[0, 0], &columns[0], columns.shape[0], &w[0], &p)
    shift[0] = rows.b
    return cuts
