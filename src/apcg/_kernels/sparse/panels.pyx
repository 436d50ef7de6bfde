"""Least squares with a penalty on groups, by panels of eight columns: `panels.h` says how.

    minimize |Y - X W|^2 scale/2 + sum_q a_q |W_q|

R = Y - X W is kept, with zeros beyond the outputs up to a multiple of four (or one). W has a row of
outputs for each column of a panel, whether it is one of X or zeros.
"""

from ..common.types cimport value_t

cdef extern from "panels.h" nogil:
    ctypedef struct apcg_panels:
        const double *X
        const double *G
        const double *a
        const double *bend
        const Py_ssize_t *panel
        const Py_ssize_t *group
        const Py_ssize_t *gram
        const Py_ssize_t *start
        Py_ssize_t rows
        Py_ssize_t outputs
        Py_ssize_t wide
        Py_ssize_t sets
        double scale
    void apcg_pack_double(const double *X, Py_ssize_t rows, Py_ssize_t d, const Py_ssize_t *column,
                          Py_ssize_t count, const double *mean, const double *root, double *out)
    void apcg_pack_float(const float *X, Py_ssize_t rows, Py_ssize_t d, const Py_ssize_t *column,
                         Py_ssize_t count, const double *mean, const double *root, double *out)
    void apcg_panel_gram(const double *A, const double *B, Py_ssize_t rows, double scale,
                         Py_ssize_t size, double *out)
    Py_ssize_t apcg_panel_sweeps(const apcg_panels *p, double *R, double *W, double *room,
                                 unsigned char *alive, bint whole, Py_ssize_t most,
                                 Py_ssize_t inner, double part, double target, double enough,
                                 double fine, double least, double *far)
    void apcg_panel_move(const double *X, Py_ssize_t rows, Py_ssize_t panels, Py_ssize_t outputs,
                         Py_ssize_t wide, const double *D, double *change, double *R)
    void apcg_panel_products(const double *X, const double *R, Py_ssize_t rows, Py_ssize_t panels,
                             Py_ssize_t outputs, Py_ssize_t wide, double scale, double *room,
                             double *out)
    double apcg_largest(const double *B, Py_ssize_t size, Py_ssize_t step, double *room)


def pack(const value_t[:, ::1] X, const Py_ssize_t[::1] column, const double[::1] mean,
         const double[::1] root, double[:, :, ::1] out):
    """The columns with these numbers, eight a panel, less their means and times `root` by rows.

    A column of -1 is zeros. `mean` and `root` may be empty. `out` is (panels, rows, 8).
    """
    cdef const double *means = &mean[0] if mean.shape[0] else NULL
    cdef const double *roots = &root[0] if root.shape[0] else NULL
    if column.shape[0] == 0 or X.shape[0] == 0:
        return
    with nogil:
        if value_t is double:
            apcg_pack_double(&X[0, 0], X.shape[0], X.shape[1], &column[0], column.shape[0], means,
                             roots, &out[0, 0, 0])
        else:
            apcg_pack_float(&X[0, 0], X.shape[0], X.shape[1], &column[0], column.shape[0], means,
                            roots, &out[0, 0, 0])


def gram(const double[:, :, ::1] X, const Py_ssize_t[::1] some, double scale, double[:, ::1] out):
    """out = scale X'X of the columns of some panels, one after the other."""
    cdef Py_ssize_t i, j, a, b, count = some.shape[0], size = 8 * count, rows = X.shape[1]
    with nogil:
        for i in range(count):
            for j in range(i + 1):
                apcg_panel_gram(&X[some[i], 0, 0], &X[some[j], 0, 0], rows, scale, size,
                                &out[8 * i, 8 * j])
        for i in range(count):
            for j in range(i):
                for a in range(8 * i, 8 * i + 8):
                    for b in range(8 * j, 8 * j + 8):
                        out[b, a] = out[a, b]


def grams(const double[:, :, ::1] X, const Py_ssize_t[::1] panel, const Py_ssize_t[::1] at,
          double scale, double[::1] out):
    """The Gram matrices of sets: set s is the panels from panel[s] on, its matrix begins at at[s]."""
    cdef Py_ssize_t s, i, j, size, rows = X.shape[1]
    with nogil:
        for s in range(at.shape[0]):
            size = 8 * (panel[s + 1] - panel[s])
            for i in range(panel[s], panel[s + 1]):
                for j in range(panel[s], panel[s + 1]):
                    apcg_panel_gram(&X[i, 0, 0], &X[j, 0, 0], rows, scale, size,
                                    &out[at[s] + 8 * (i - panel[s]) * size + 8 * (j - panel[s])])


def largest(const double[::1] G, const Py_ssize_t[::1] panel, const Py_ssize_t[::1] group,
            const Py_ssize_t[::1] at, const Py_ssize_t[::1] start, double[::1] room, double[::1] out):
    """out_q = a bound of the largest eigenvalue of group q's part of G, the matrices of `grams`."""
    cdef Py_ssize_t s, q, size, first
    with nogil:
        for s in range(at.shape[0]):
            size = 8 * (panel[s + 1] - panel[s])
            for q in range(group[s], group[s + 1]):
                first = start[q] - 8 * panel[s]
                out[q] = apcg_largest(&G[at[s] + first * size + first], start[q + 1] - start[q],
                                      size, &room[0])


def largest_of(const double[:, ::1] G, const Py_ssize_t[::1] start, double[::1] room,
               double[::1] out):
    """out_q = a bound of the largest eigenvalue of G[i:j, i:j], i and j being start[q] and the next.

    `room` has two matrices of the largest size.
    """
    cdef Py_ssize_t q
    with nogil:
        for q in range(out.shape[0]):
            out[q] = apcg_largest(&G[start[q], start[q]], start[q + 1] - start[q], G.shape[1],
                                  &room[0])


def sweeps(const double[:, :, ::1] X, const double[::1] G, const Py_ssize_t[::1] panel,
           const Py_ssize_t[::1] group, const Py_ssize_t[::1] at, const Py_ssize_t[::1] start,
           const double[::1] bend, const double[::1] a, double scale, double[:, ::1] R,
           double[:, ::1] W, double[::1] room, unsigned char[::1] alive, bint whole,
           Py_ssize_t inner, double part, double target, double enough, double fine, double least,
           double[::1] far) -> int:
    """Sweeps over sets of panels, at most far.size of them: how many there were.

    The first is over all sets if `whole`, the others over those that are not zero. far[k] is how
    far sweep k went at most, relative to a. They end as `lasso.group_sweeps` does.
    """
    cdef apcg_panels p
    cdef Py_ssize_t done
    p.X, p.G, p.a, p.bend = &X[0, 0, 0], &G[0], &a[0], &bend[0]
    p.panel, p.group, p.gram, p.start = &panel[0], &group[0], &at[0], &start[0]
    p.rows, p.outputs, p.wide, p.sets = X.shape[1], W.shape[1], R.shape[1], at.shape[0]
    p.scale = scale
    with nogil:
        done = apcg_panel_sweeps(&p, &R[0, 0], &W[0, 0], &room[0], &alive[0], whole, far.shape[0],
                                 inner, part, target, enough, fine, least, &far[0])
    return done


def move(const double[:, :, ::1] X, const double[:, ::1] D, double[::1] room, double[:, ::1] R):
    """R -= X D"""
    with nogil:
        apcg_panel_move(&X[0, 0, 0], X.shape[1], X.shape[0], D.shape[1], R.shape[1], &D[0, 0],
                        &room[0], &R[0, 0])


def products(const double[:, :, ::1] X, const double[:, ::1] R, double scale, double[::1] room,
             double[:, ::1] out):
    """out = scale X'R"""
    with nogil:
        apcg_panel_products(&X[0, 0, 0], &R[0, 0], X.shape[1], X.shape[0], out.shape[1],
                            R.shape[1], scale, &room[0], &out[0, 0])
