"""Coordinate descent on least squares with an L1 part: the inner loops of the method of working sets.

    minimize (1/2)|A w - t|^2 + sum_j a_j |w_j| + (b_j/2) w_j^2,   lower_j <= w_j <= upper_j

Of a, b, lower and upper there is one entry for each column, or one for all.
"""

from ..losses.penalty cimport apcg_penalty, penalty

cdef extern from "lasso.h" nogil:
    Py_ssize_t apcg_gram_sweeps(const double *G, Py_ssize_t size, double *g, double *w,
                                const apcg_penalty *p, Py_ssize_t most, double target,
                                double enough, double fine, double least,
                                double *worst)
    Py_ssize_t apcg_group_sweeps(const double *G, Py_ssize_t size, Py_ssize_t outputs,
                                 const Py_ssize_t *start, Py_ssize_t blocks, const double *bend,
                                 const double *a, double *g, double *w, double *step,
                                 Py_ssize_t most, double target, double enough, double fine,
                                 double least, double *worst)
    int apcg_gram_newton(const double *G, Py_ssize_t size, double *g, double *w,
                         const apcg_penalty *p, double *U, Py_ssize_t *S, double *work,
                         Py_ssize_t *failed)

cdef extern from "lasso_path.h" nogil:
    ctypedef struct apcg_fit:
        const double *G
        const double *q
        double *g
        double *w
        Py_ssize_t size
        double total
    Py_ssize_t apcg_path(const apcg_fit *f, const apcg_penalty *unit, const double *alphas,
                         Py_ssize_t count, double fine, double share, Py_ssize_t most, int newtons,
                         int turns, double *a, double *b, double *points, double *U, Py_ssize_t *S,
                         double *work, double *out)


def gram_sweeps(const double[:, ::1] G, double[::1] g, double[::1] w, const double[::1] a,
                const double[::1] b, const double[::1] lower, const double[::1] upper,
                Py_ssize_t most, double target, double enough, double fine,
                double least) -> tuple[int, float]:
    """Up to `most` sweeps on G = A'A with g = A'(t - A w): how many there were, and the greatest violation that the last one met.

    Times |w|_1 that bounds what is left to gain. They end when the violation is at most `target`
    and that bound at most `enough`, or at most `fine` and `least`.
    """
    cdef double worst = 0.0
    cdef Py_ssize_t done
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    if w.shape[0] == 0:
        return 0, 0.0
    with nogil:
        done = apcg_gram_sweeps(&G[0, 0], w.shape[0], &g[0], &w[0], &p, most, target,
                                enough, fine, least, &worst)
    return done, worst


def gram_newton(const double[:, ::1] G, double[::1] g, double[::1] w, const double[::1] a,
                const double[::1] b, const double[::1] lower, const double[::1] upper,
                double[:, ::1] matrix, Py_ssize_t[::1] support, double[:, ::1] vectors,
                Py_ssize_t[::1] failed) -> int:
    """One Newton step on the support: 0 if nothing moved, 1 after a whole step, 2 if it was cut.

    `matrix`, `support` and `vectors` (4 of them) are room to work in. `failed` has one number: the
    least number of columns for which a factor has failed.
    """
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    cdef int how
    if w.shape[0] == 0:
        return 0
    with nogil:
        how = apcg_gram_newton(&G[0, 0], w.shape[0], &g[0], &w[0], &p, &matrix[0, 0], &support[0],
                               &vectors[0, 0], &failed[0])
    return how


def gram_path(const double[:, ::1] G, const double[::1] q, double total, double[::1] g,
              double[::1] w, const double[::1] a, const double[::1] b, const double[::1] lower,
              const double[::1] upper, const double[::1] alphas, double fine, double share,
              Py_ssize_t most, int newtons, int turns, double[:, ::1] matrix,
              Py_ssize_t[::1] support, double[:, ::1] vectors, double[:, ::1] out) -> int:
    """Answers for one alpha after the other, with alpha a and alpha b in the place of a and b.

    Row k of `out` becomes the answer for alphas[k]. The first begins at w, each of the others where
    the ones before point to. g = q - G w goes along; w and g become those of the last. `total` is
    twice the value at w = 0. Sweeps, while they are predicted to end within `most` or within what a
    factor costs, and up to `newtons` Newton steps take turns, until no violation is above alpha
    `fine` and the gain to come is at most `share` of the value. Gives how many answers there are:
    the next one did not end in so many `turns`. `matrix`, `support` and `vectors` (8 of them) are
    room to work in.
    """
    cdef apcg_penalty unit = penalty(a, b, lower, upper)
    cdef apcg_fit f
    cdef Py_ssize_t done, size = w.shape[0]
    if size == 0 or alphas.shape[0] == 0:
        return alphas.shape[0]
    f = apcg_fit(&G[0, 0], &q[0], &g[0], &w[0], size, total)
    with nogil:
        done = apcg_path(&f, &unit, &alphas[0], alphas.shape[0], fine, share, most, newtons, turns,
                         &vectors[4, 0], &vectors[5, 0], &vectors[6, 0], &matrix[0, 0],
                         &support[0], &vectors[0, 0], &out[0, 0])
    return done


def group_sweeps(const double[:, ::1] G, double[:, ::1] g, double[:, ::1] w,
                 const Py_ssize_t[::1] start, const double[::1] bend, const double[::1] a,
                 double[::1] room, Py_ssize_t most, double target, double enough, double fine,
                 double least) -> tuple[int, float]:
    """Up to `most` sweeps over blocks of columns of w: how many there were, and the worst violation.

    w and g have a row for each output. The violation of a block is relative to its a. `bend` is the largest eigenvalue of its part of
    G, and `room` is as long as the largest block. They end as those of `gram_sweeps`.
    """
    cdef double worst = 0.0
    cdef Py_ssize_t done
    if w.shape[1] == 0:
        return 0, 0.0
    with nogil:
        done = apcg_group_sweeps(&G[0, 0], w.shape[1], w.shape[0], &start[0], bend.shape[0],
                                 &bend[0], &a[0], &g[0, 0], &w[0, 0], &room[0], most, target,
                                 enough, fine, least, &worst)
    return done, worst
