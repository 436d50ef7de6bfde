/* Sparse columns for coordinate descent and products: entries of a row number and a value side by
 * side. Values are float, as parts of one unit; all sums are double.
 *
 *     M(v) = (1/2)|u|^2 - c'(v - w) + sum_j a_j |v_j| + (b_j/2) v_j^2,   u = A (v - w)
 *
 * c are minus the slopes at w. So what float does to A changes the curvature of M, and not its slopes.
 *
 * A position is a place in the arrays of a model; ids[position] is the column that it stands for.
 * With an intercept the columns stand for those less e mean_j, where e is a unit vector: u is then
 * kept up to a multiple of e, whose size is sigma = e'u. */
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

/* A_j'u */
static inline double apcg_dot(const apcg_columns *A, int64_t j, const double *u) {
    const apcg_entry *a = A->entries + A->start[j];
    const ptrdiff_t size = A->start[j + 1] - A->start[j];
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    ptrdiff_t k = 0;
    for (; k + 3 < size; k += 4) {
        s0 += (double)a[k].x * u[a[k].row];
        s1 += (double)a[k + 1].x * u[a[k + 1].row];
        s2 += (double)a[k + 2].x * u[a[k + 2].row];
        s3 += (double)a[k + 3].x * u[a[k + 3].row];
    }
    for (; k < size; k++) s0 += (double)a[k].x * u[a[k].row];
    return A->unit * ((s0 + s1) + (s2 + s3));
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
    const double *squares; /* |A_j|^2 (of what is centred) */
    const double *slopes;  /* c */
    const double *mean;    /* NULL without an intercept */
} apcg_set;

/* A sweep over the positions listed; those that are not zero, or moved, are kept in `list`. */
static ptrdiff_t apcg_column_sweep(const apcg_columns *A, const apcg_set *set, int64_t *list,
                                   ptrdiff_t count, double *v, double *u, double *sigma,
                                   const apcg_penalty *p, double *worst) {
    ptrdiff_t kept = 0;
    *worst = 0.0;
    for (ptrdiff_t k = 0; k < count; k++) {
        const int64_t i = list[k], j = set->ids[i];
        const double old = v[i], mean = set->mean ? set->mean[i] : 0.0;
        const double slope = set->slopes[i] - apcg_dot(A, j, u) + mean * *sigma;
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
        apcg_add(A, j, move, u);
    }
    return kept;
}

#endif
