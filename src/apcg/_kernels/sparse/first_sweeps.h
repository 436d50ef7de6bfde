/* Coordinate steps on sparse columns with slopes that follow: a row is a record of its slope, its
 * curvature and how far its prediction has moved, side by side, so that a step meets each row once. */
#ifndef APCG_FRESH_H
#define APCG_FRESH_H

#include "columns.h"

typedef struct {
    float slope; /* minus the slope of the loss */
    float bend;
    double way;
} apcg_row;

typedef struct {
    const int64_t *start;
    const int64_t *ids;    /* the column of each position */
    const double *squares; /* |A_j|^2, by column */
    const double *far;     /* no step is longer, by position */
    ptrdiff_t count;
    double most;
    double total; /* the sum of all curvatures with an intercept, which is eliminated; else 0 */
} apcg_block;

/* `dot` is the slope of a column, `both` its curvature too, `mean` its product with the curvatures. A
 * product is float if the entries are, and sums are double. */
#define APCG_FRESH(E, dot, both, mean, steps)                                                      \
    static inline double dot(const E *a, ptrdiff_t size, const apcg_row *rows) {                   \
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;                                             \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 3 < size; k += 4) {                                                             \
            s0 += a[k].x * rows[a[k].row].slope;                                                   \
            s1 += a[k + 1].x * rows[a[k + 1].row].slope;                                           \
            s2 += a[k + 2].x * rows[a[k + 2].row].slope;                                           \
            s3 += a[k + 3].x * rows[a[k + 3].row].slope;                                           \
        }                                                                                          \
        for (; k < size; k++) s0 += a[k].x * rows[a[k].row].slope;                                 \
        return (s0 + s1) + (s2 + s3);                                                              \
    }                                                                                              \
    static inline double both(const E *a, ptrdiff_t size, const apcg_row *rows, double *bend) {    \
        double s0 = 0.0, s1 = 0.0, h0 = 0.0, h1 = 0.0;                                             \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 1 < size; k += 2) {                                                             \
            s0 += a[k].x * rows[a[k].row].slope;                                                   \
            s1 += a[k + 1].x * rows[a[k + 1].row].slope;                                           \
            h0 += a[k].x * a[k].x * rows[a[k].row].bend;                                           \
            h1 += a[k + 1].x * a[k + 1].x * rows[a[k + 1].row].bend;                               \
        }                                                                                          \
        if (k < size) {                                                                            \
            s0 += a[k].x * rows[a[k].row].slope;                                                   \
            h0 += a[k].x * a[k].x * rows[a[k].row].bend;                                           \
        }                                                                                          \
        *bend = h0 + h1;                                                                           \
        return s0 + s1;                                                                            \
    }                                                                                              \
    static inline double mean(const E *a, ptrdiff_t size, const apcg_row *rows) {                  \
        double s0 = 0.0, s1 = 0.0;                                                                 \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 1 < size; k += 2) {                                                             \
            s0 += a[k].x * rows[a[k].row].bend;                                                    \
            s1 += a[k + 1].x * rows[a[k + 1].row].bend;                                            \
        }                                                                                          \
        if (k < size) s0 += a[k].x * rows[a[k].row].bend;                                          \
        return s0 + s1;                                                                            \
    }                                                                                              \
    /* A step on each position from `first` on, until the squares of moves, times those of columns,  \
     * add up to `most`: where it ended. With an intercept b is to be sigma larger than   \
     * the rows say: the slopes of rows add up to `total` times that, and not to 0. */                        \
    static ptrdiff_t steps(const E *a, const apcg_block *block, const apcg_penalty *p,             \
                           ptrdiff_t first, double *v, double *met, double *slopes,                \
                           apcg_row *rows, double *sigma) {                                        \
        const double total = block->total;                                                         \
        double moved = 0.0;                                                                        \
        ptrdiff_t i = first;                                                                       \
        for (; i < block->count && moved <= block->most; i++) {                                    \
            const int64_t j = block->ids[i];                                                       \
            const E *column = a + block->start[j];                                                 \
            const ptrdiff_t size = block->start[j + 1] - block->start[j];                          \
            const double old = v[i], far = block->far[i];                                          \
            double slope, bend, with = 0.0;                                                        \
            met[i] = 0.0;                                                                          \
            if (total > 0.0) with = mean(column, size, rows);                                      \
            if (old == 0.0) {                                                                      \
                slope = dot(column, size, rows) - with * *sigma;                                   \
                slopes[j] = slope;                                                                 \
                if (fabs(slope) <= p->a[i & p->mask[0]]) continue;                                 \
            }                                                                                      \
            slope = slopes[j] = both(column, size, rows, &bend) - with * *sigma;                   \
            if (total > 0.0) bend = bend - with * with / total > 1e-7 * bend                       \
                                        ? bend - with * with / total : 0.0;                        \
            double new = apcg_best(old, slope, bend, i, p);                                        \
            new = new > old + far ? old + far : (new < old - far ? old - far : new);               \
            const double move = new - old;                                                         \
            if (!(fabs(move) > 0.0 && fabs(move) < 1e300)) continue; /* nan: float overflowed */      \
            met[i] = fabs(move) * (bend + p->b[i & p->mask[1]]);                                   \
            v[i] = new;                                                                            \
            if (total > 0.0) *sigma -= move * with / total;                                        \
            moved += move * move * block->squares[j];                                              \
            for (ptrdiff_t k = 0; k < size; k++) {                                                 \
                apcg_row *row = rows + column[k].row;                                              \
                const double by = move * (double)column[k].x;                                      \
                row->slope -= (float)by * row->bend;                                               \
                row->way += by;                                                                    \
            }                                                                                      \
        }                                                                                          \
        return i;                                                                                  \
    }

APCG_FRESH(apcg_narrow, apcg_fresh_dot_n, apcg_fresh_both_n, apcg_fresh_mean_n, apcg_steps_n)
APCG_FRESH(apcg_wide, apcg_fresh_dot_w, apcg_fresh_both_w, apcg_fresh_mean_w, apcg_steps_w)

#endif
