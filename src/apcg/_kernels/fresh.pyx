"""Coordinate steps on sparse columns whose rows are records of a slope, a curvature and a move."""

from libc.stdint cimport int64_t

from .penalty cimport apcg_penalty, penalty

cdef extern from "fresh.h" nogil:
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
        const double *far
        const double *squares
        Py_ssize_t rows
        Py_ssize_t count
        double moved_most
    Py_ssize_t apcg_steps_n(const apcg_narrow *a, const apcg_block *block, Py_ssize_t first,
                            double *v, double *met, double *seen, apcg_row *rows,
                            const apcg_penalty *p)
    Py_ssize_t apcg_steps_w(const apcg_wide *a, const apcg_block *block, Py_ssize_t first,
                            double *v, double *met, double *seen, apcg_row *rows,
                            const apcg_penalty *p)


def fill(const double[::1] slope, const double[::1] bend, double[:, ::1] rows):
    """The records of rows that have not moved: minus the slope, the curvature and 0."""
    cdef Py_ssize_t i, n = slope.shape[0], mask = -1 if bend.shape[0] > 1 else 0
    cdef apcg_row *to = <apcg_row *> &rows[0, 0] if n else NULL
    with nogil:
        for i in range(n):
            to[i].slope, to[i].bend, to[i].way = <float> -slope[i], <float> bend[i & mask], 0.0


def steps(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
          const int64_t[::1] ids, const double[::1] far, const double[::1] squares,
          double moved_most, Py_ssize_t first, double[::1] v, double[::1] met,
          double[::1] seen, double[:, ::1] rows,
          const double[::1] a, const double[::1] b, const double[::1] lower,
          const double[::1] upper):
    """Steps from position `first` on: where it ended, and the greatest violation met."""
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    cdef Py_ssize_t end
    cdef apcg_block block
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return ids.shape[0]
    block = apcg_block(&start[0], &ids[0], &far[0], &squares[0], rows.shape[0], ids.shape[0],
                       moved_most)
    with nogil:
        if wide:
            end = apcg_steps_w(<const apcg_wide *> &entries[0], &block, first, &v[0], &met[0],
                               &seen[0], <apcg_row *> &rows[0, 0], &p)
        else:
            end = apcg_steps_n(<const apcg_narrow *> &entries[0], &block, first, &v[0], &met[0],
                               &seen[0], <apcg_row *> &rows[0, 0], &p)
    return end
