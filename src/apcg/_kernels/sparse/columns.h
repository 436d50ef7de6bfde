/* Sparse columns for coordinate descent and products: entries of a row number and a value,
 * side by side, the value in float or double. All sums are double.
 *
 * A position is a place in the arrays of a model; ids[position] is the column that it stands for.
 * With an intercept the columns stand for those less e mean_j, where e is a unit vector: r is then kept
 * up to a multiple of e, whose size is sigma = e'r. */
#ifndef APCG_COLUMNS_H
#define APCG_COLUMNS_H

#include <stdint.h>
#include <string.h>

#include "lasso.h"

typedef struct {
    int32_t row;
    float x;
} apcg_narrow;

typedef struct {
    int32_t row;
    double x;
} apcg_wide;

#if defined(__GNUC__) || defined(__clang__)
#define APCG_FETCH_FOR_WRITE(address) __builtin_prefetch((address), 1)
#else
#define APCG_FETCH_FOR_WRITE(address) ((void)(address))
#endif

typedef struct {
    const int64_t *start;
    const int64_t *ids;
    const double *squares; /* |A_j|^2 (of what is centred), by position */
    const double *mean;    /* by position; NULL without an intercept */
} apcg_set;

#define APCG_COLUMNS(E, dot, add, products, times, sweep, scaled)                                  \
    static inline double dot(const E *a, ptrdiff_t size, const double *u) {                        \
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;                                             \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 3 < size; k += 4) {                                                             \
            s0 += (double)a[k].x * u[a[k].row];                                                    \
            s1 += (double)a[k + 1].x * u[a[k + 1].row];                                            \
            s2 += (double)a[k + 2].x * u[a[k + 2].row];                                            \
            s3 += (double)a[k + 3].x * u[a[k + 3].row];                                            \
        }                                                                                          \
        for (; k < size; k++) s0 += (double)a[k].x * u[a[k].row];                                  \
        return (s0 + s1) + (s2 + s3);                                                              \
    }                                                                                              \
    static inline void add(const E *a, ptrdiff_t size, double *u, double t) {                      \
        for (ptrdiff_t k = 0; k < size; k++) u[a[k].row] += t * (double)a[k].x;                    \
    }                                                                                              \
    /* out_j = A_j'u for the columns listed */                                                     \
    static void products(const E *a, const int64_t *start, const int64_t *list, ptrdiff_t count,   \
                         const double *u, double *out) {                                           \
        for (ptrdiff_t k = 0; k < count; k++) {                                                    \
            const int64_t j = list ? list[k] : k;                                                  \
            out[j] = dot(a + start[j], start[j + 1] - start[j], u);                                \
        }                                                                                          \
    }                                                                                              \
    /* u += sum of v_k A_(ids k) */                                                                \
    static void times(const E *a, const int64_t *start, const int64_t *ids, const double *v,       \
                      ptrdiff_t count, double *u) {                                                \
        for (ptrdiff_t k = 0; k < count; k++) {                                                    \
            const int64_t j = ids[k];                                                              \
            if (v[k] != 0.0) add(a + start[j], start[j + 1] - start[j], u, v[k]);                  \
        }                                                                                          \
    }                                                                                              \
    /* A sweep over the positions listed; those that are not zero, or moved, are kept in `list`. */ \
    static ptrdiff_t sweep(const E *a, const apcg_set *set, int64_t *list, ptrdiff_t count,        \
                           double *v, double *r, double *sigma, const apcg_penalty *p,             \
                           double *worst) {                                                        \
        ptrdiff_t kept = 0;                                                                        \
        *worst = 0.0;                                                                              \
        for (ptrdiff_t k = 0; k < count; k++) {                                                    \
            const int64_t i = list[k], j = set->ids[i];                                            \
            const E *column = a + set->start[j];                                                   \
            const ptrdiff_t size = set->start[j + 1] - set->start[j];                              \
            const double old = v[i], mean = set->mean ? set->mean[i] : 0.0;                        \
            const double slope = dot(column, size, r) - mean * *sigma;                             \
            const double new = apcg_best(old, slope, set->squares[i], i, p), move = new - old;     \
            if (move == 0.0) {                                                                     \
                if (old != 0.0) list[kept++] = i;                                                  \
                continue;                                                                          \
            }                                                                                      \
            const double far = fabs(move) * (set->squares[i] + p->b[i & p->mask[1]]);              \
            *worst = far > *worst ? far : *worst;                                                  \
            v[i] = new;                                                                            \
            list[kept++] = i;                                                                      \
            *sigma -= move * mean;                                                                 \
            add(column, size, r, -move);                                                           \
        }                                                                                          \
        return kept;                                                                               \
    }                                                                                              \
    /* Columns `ids` times root, one after the other; their squares and products with root. */     \
    static void scaled(const E *a, const int64_t *start, const int64_t *ids, ptrdiff_t count,      \
                       const double *root, E *out, int64_t *starts, double *squares,               \
                       double *product) {                                                          \
        int64_t at = 0;                                                                            \
        starts[0] = 0;                                                                             \
        for (ptrdiff_t k = 0; k < count; k++) {                                                    \
            const E *column = a + start[ids[k]];                                                   \
            const ptrdiff_t size = start[ids[k] + 1] - start[ids[k]];                              \
            double square = 0.0, with = 0.0;                                                       \
            for (ptrdiff_t i = 0; i < size; i++) {                                                 \
                const double x = (double)column[i].x * root[column[i].row];                        \
                out[at + i].row = column[i].row;                                                   \
                out[at + i].x = x;                                                                 \
                square += x * x;                                                                   \
                with += x * root[column[i].row];                                                   \
            }                                                                                      \
            squares[k] = square;                                                                   \
            product[k] = with;                                                                     \
            at += size;                                                                            \
            starts[k + 1] = at;                                                                    \
        }                                                                                          \
    }

APCG_COLUMNS(apcg_narrow, apcg_dot_n, apcg_add_n, apcg_products_n, apcg_times_n, apcg_sweep_n,
             apcg_scaled_n)
APCG_COLUMNS(apcg_wide, apcg_dot_w, apcg_add_w, apcg_products_w, apcg_times_w, apcg_sweep_w,
             apcg_scaled_w)

#endif
