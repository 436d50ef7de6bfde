/* Sparse columns for coordinate descent and products: entries of a row number and a value side by
 * side. Values are float, as parts of one unit; all sums are double.
 *
 *     M(v) = (1/2) (v - w)'X'D X (v - w) - c'(v - w) + sum_j a_j |v_j| + (b_j/2) v_j^2
 *
 * c are minus the slopes at w. So what float does to X changes the curvature of M, and not its slopes.
 * u = D X (v - w) is kept: a number for each row, and beside it its D, unless all D are the same.
 *
 * A position is a place in the arrays of a model; ids[position] is the column that it stands for.
 * With an intercept columns stand for those less their means, weighted by D: with sigma, the means
 * times v - w, their slopes are those of the columns and total mean_j sigma. */
#ifndef APCG_COLUMNS_H
#define APCG_COLUMNS_H

#include <stdint.h>

#include "lasso.h"

typedef struct {
    int32_t row;
    float x;
} apcg_entry;

typedef struct {
    const apcg_entry *entries;
    const int64_t *start; /* where each column begins, and the end of the last */
    double unit;          /* what the values are parts of */
} apcg_columns;

#if defined(__GNUC__) || defined(__clang__)
#define APCG_FETCH_FOR_WRITE(address) __builtin_prefetch((address), 1)
#else
#define APCG_FETCH_FOR_WRITE(address) ((void)(address))
#endif

/* A_j'u, where the numbers of u are `step` apart */
static inline double apcg_dot_at(const apcg_columns *A, int64_t j, const double *u,
                                 const ptrdiff_t step) {
    const apcg_entry *a = A->entries + A->start[j];
    const ptrdiff_t size = A->start[j + 1] - A->start[j];
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    ptrdiff_t k = 0;
    for (; k + 3 < size; k += 4) {
        s0 += (double)a[k].x * u[step * a[k].row];
        s1 += (double)a[k + 1].x * u[step * a[k + 1].row];
        s2 += (double)a[k + 2].x * u[step * a[k + 2].row];
        s3 += (double)a[k + 3].x * u[step * a[k + 3].row];
    }
    for (; k < size; k++) s0 += (double)a[k].x * u[step * a[k].row];
    return A->unit * ((s0 + s1) + (s2 + s3));
}

static inline double apcg_dot(const apcg_columns *A, int64_t j, const double *u) {
    return apcg_dot_at(A, j, u, 1);
}

/* u += t A_j */
static inline void apcg_add(const apcg_columns *A, int64_t j, double t, double *u) {
    const apcg_entry *a = A->entries + A->start[j];
    const ptrdiff_t size = A->start[j + 1] - A->start[j];
    const double by = A->unit * t;
    for (ptrdiff_t k = 0; k < size; k++) u[a[k].row] += by * (double)a[k].x;
}

/* What a sweep goes over, by position. */
typedef struct {
    const int64_t *ids;
    const double *squares; /* the curvatures */
    const double *slopes;  /* c */
    const double *mean;    /* NULL without an intercept */
    double total;          /* of D */
    double bend;           /* D, if all are the same; else it is beside each number of u */
} apcg_set;

static inline __attribute__((always_inline)) ptrdiff_t apcg_sweep_by(
    const apcg_columns *A, const apcg_set *set, int64_t *list, ptrdiff_t count, double *v,
    double *u, double *sigma, const apcg_penalty *p, double *worst, const ptrdiff_t step) {
    ptrdiff_t kept = 0;
    *worst = 0.0;
    for (ptrdiff_t k = 0; k < count; k++) {
        const int64_t i = list[k], j = set->ids[i];
        const double old = v[i], mean = set->mean ? set->mean[i] : 0.0;
        const double slope =
            set->slopes[i] - apcg_dot_at(A, j, u, step) + set->total * mean * *sigma;
        const double new = apcg_best(old, slope, set->squares[i], i, p), move = new - old;
        if (move == 0.0) {
            if (old != 0.0) list[kept++] = i;
            continue;
        }
        const double far = fabs(move) * (set->squares[i] + p->b[i & p->mask[1]]);
        *worst = far > *worst ? far : *worst;
        v[i] = new;
        list[kept++] = i;
        *sigma += move * mean;
        if (step == 1) {
            apcg_add(A, j, set->bend * move, u);
            continue;
        }
        const apcg_entry *a = A->entries + A->start[j];
        const ptrdiff_t size = A->start[j + 1] - A->start[j];
        const double by = A->unit * move;
        for (ptrdiff_t t = 0; t < size; t++) {
            double *at = u + 2 * (ptrdiff_t)a[t].row;
            at[0] += by * (double)a[t].x * at[1];
        }
    }
    return kept;
}

/* A sweep over the positions listed; those that are not zero, or moved, are kept in `list`. */
static ptrdiff_t apcg_column_sweep(const apcg_columns *A, const apcg_set *set, int64_t *list,
                                   ptrdiff_t count, double *v, double *u, int beside,
                                   double *sigma, const apcg_penalty *p, double *worst) {
    return beside ? apcg_sweep_by(A, set, list, count, v, u, sigma, p, worst, 2)
                  : apcg_sweep_by(A, set, list, count, v, u, sigma, p, worst, 1);
}

#endif
