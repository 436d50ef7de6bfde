"""Coordinate steps on sparse columns whose rows are records of a slope, a curvature and a move."""

from libc.stdint cimport int64_t

from ..losses.penalty cimport apcg_penalty, penalty

cdef extern from "first_sweeps.h" nogil:
    ctypedef struct apcg_narrow:
        pass
    ctypedef struct apcg_wide:
        pass
    ctypedef struct apcg_row:
        float slope
        float bend
        double way
    ctypedef struct apcg_block:
        const int64_t *start
        const int64_t *ids
        const double *squares
        const double *far
        Py_ssize_t count
        double most
        double total
    Py_ssize_t apcg_steps_n(const apcg_narrow *a, const apcg_block *block, const apcg_penalty *p,
                            Py_ssize_t first, double *v, double *met, double *slopes,
                            apcg_row *rows, double *sigma)
    Py_ssize_t apcg_steps_w(const apcg_wide *a, const apcg_block *block, const apcg_penalty *p,
                            Py_ssize_t first, double *v, double *met, double *slopes,
                            apcg_row *rows, double *sigma)


def fill(const double[::1] slope, const double[::1] bend, double[:, ::1] rows):
    """The records of rows that have not moved: minus the slope, the curvature and 0."""
    cdef Py_ssize_t i, n = slope.shape[0], mask = -1 if bend.shape[0] > 1 else 0
    cdef apcg_row *to = <apcg_row *> &rows[0, 0] if n else NULL
    with nogil:
        for i in range(n):
            to[i].slope, to[i].bend, to[i].way = <float> -slope[i], <float> bend[i & mask], 0.0


def steps(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
          const int64_t[::1] ids, const double[::1] squares, const double[::1] far,
          const double[::1] a, const double[::1] b, const double[::1] lower,
          const double[::1] upper, double total, double sigma, double most, Py_ssize_t first,
          double[::1] v, double[::1] met, double[::1] slopes, double[:, ::1] rows):
    """A step on each column from position `first` on: where it ended, and sigma.

    That is the end, or where the squares of moves, times those of columns, add up to `most`. By
    position: v_j, how far it may go, and in `met` what it violated by, if it moved. By column: the
    squares, and the slopes that were met. With an intercept `total` is the sum of curvatures, and
    the intercept is to be larger by sigma.
    """
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    cdef apcg_block block
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return ids.shape[0], sigma
    block = apcg_block(&start[0], &ids[0], &squares[0], &far[0], ids.shape[0], most, total)
    with nogil:
        if wide:
            first = apcg_steps_w(<const apcg_wide *> &entries[0], &block, &p, first, &v[0], &met[0],
                                 &slopes[0], <apcg_row *> &rows[0, 0], &sigma)
        else:
            first = apcg_steps_n(<const apcg_narrow *> &entries[0], &block, &p, first, &v[0],
                                 &met[0], &slopes[0], <apcg_row *> &rows[0, 0], &sigma)
    return first, sigma
