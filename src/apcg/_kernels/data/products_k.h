/* Products of a row with a matrix of K columns, and the sums of such: the inner loops.
 *
 * K is padded to a multiple of four. All loops run over vectors of four columns, and the sum for
 * one column is in one fixed order: the AVX2 clone and the plain one give the same bits. The loops
 * have the number of vectors at compile time, so that sums stay in registers; more than WIDE
 * vectors are done in pieces. */
#ifndef APCG_MANY_H
#define APCG_MANY_H

#include "vectors.h"

#define WIDE 8         /* vectors in registers */
#define FETCHED 262144 /* bytes fetched at a time: a part of the second cache */

/* soft(t, r) c, which is the gradient of g* of an elastic net; nothing if r < 0 */
APCG_INLINE apcg_v4 apcg_soft4(apcg_v4 t, double r, double c) {
    const apcg_v4 up = t - r, down = t + r, zero = APCG_ALL(0.0);
    return c * (APCG_IF(up > 0.0, up, zero) + APCG_IF(down < 0.0, down, zero));
}

/* z = sum_k a_k (q_j + half p_j), j = r_k; rows of W are p then q if `two`, else only q */
#define APCG_DOT_NV(NV, UN)                                                                        \
    do {                                                                                           \
        apcg_v4 sum[UN][NV];                                                                       \
        memset(sum, 0, sizeof sum);                                                                \
        ptrdiff_t k = 0;                                                                           \
        for (; k + UN <= m; k += UN) {                                                             \
            APCG_UNROLL8 for (int u = 0; u < UN; u++) {                                            \
                const double *w = W + (dense ? k + u : (ptrdiff_t)r[k + u]) * stride;              \
                const apcg_v4 value = APCG_ALL((double)a[k + u]);                                  \
                APCG_UNROLL8 for (int v = 0; v < NV; v++) {                                        \
                    apcg_v4 t = APCG_AT(w, 4 * v);                                                 \
                    if (two) t = APCG_AT(w + size, 4 * v) + half * t;                              \
                    if (soft) t = apcg_soft4(t, threshold, factor);                                \
                    sum[u][v] += value * t;                                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; k < m; k++) {                                                                       \
            const double *w = W + (dense ? k : (ptrdiff_t)r[k]) * stride;                          \
            const apcg_v4 value = APCG_ALL((double)a[k]);                                          \
            APCG_UNROLL8 for (int v = 0; v < NV; v++) {                                            \
                apcg_v4 t = APCG_AT(w, 4 * v);                                                     \
                if (two) t = APCG_AT(w + size, 4 * v) + half * t;                                  \
                if (soft) t = apcg_soft4(t, threshold, factor);                                    \
                sum[0][v] += value * t;                                                            \
            }                                                                                      \
        }                                                                                          \
        APCG_UNROLL8 for (int v = 0; v < NV; v++) {                                                \
            apcg_v4 all = sum[0][v];                                                               \
            for (int u = 1; u < UN; u++) all += sum[u][v];                                         \
            APCG_PUT(z, 4 * v) = all;                                                              \
        }                                                                                          \
    } while (0)

/* the rows of W: p_j += a_k du, q_j += a_k dv, or only the latter */
#define APCG_ADD_NV(NV)                                                                            \
    do {                                                                                           \
        for (ptrdiff_t k = 0; k < m; k++) {                                                        \
            double *w = W + (dense ? k : (ptrdiff_t)r[k]) * stride;                                \
            const apcg_v4 value = APCG_ALL((double)a[k]);                                          \
            APCG_UNROLL8 for (int v = 0; v < NV; v++) {                                            \
                if (two) APCG_PUT(w, 4 * v) += value * APCG_AT(du, 4 * v);                         \
                APCG_PUT(w + (two ? size : 0), 4 * v) += value * APCG_AT(dv, 4 * v);               \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#define APCG_ROWS(suffix, value_type, index_type, DENSE)                                           \
    APCG_INLINE void apcg_dot_##suffix##_of(                                                       \
        const value_type *a, const index_type *r, ptrdiff_t m, const double *W, ptrdiff_t size,    \
        int two, double half, int soft, double threshold, double factor, double *z) {              \
        const int dense = DENSE;                                                                   \
        const ptrdiff_t stride = two ? 2 * size : size;                                            \
        for (ptrdiff_t left = size / 4; left > 0; left -= WIDE, W += 4 * WIDE, z += 4 * WIDE) {    \
            switch (left) {                                                                        \
            case 1: APCG_DOT_NV(1, 4); break;                                                      \
            case 2: APCG_DOT_NV(2, 2); break;                                                      \
            case 3: APCG_DOT_NV(3, 2); break;                                                      \
            case 4: APCG_DOT_NV(4, 1); break;                                                      \
            case 5: APCG_DOT_NV(5, 1); break;                                                      \
            case 6: APCG_DOT_NV(6, 1); break;                                                      \
            case 7: APCG_DOT_NV(7, 1); break;                                                      \
            default: APCG_DOT_NV(8, 1); break;                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    APCG_CLONES static void apcg_dot1_##suffix(                                                    \
        const void *a, const void *r, ptrdiff_t m, const double *W, ptrdiff_t size, double half,   \
        double threshold, double factor, double *z) {                                              \
        if (threshold < 0.0)                                                                       \
            apcg_dot_##suffix##_of(a, r, m, W, size, 0, 0.0, 0, 0.0, 1.0, z);                      \
        else                                                                                       \
            apcg_dot_##suffix##_of(a, r, m, W, size, 0, 0.0, 1, threshold, factor, z);             \
    }                                                                                              \
    APCG_CLONES static void apcg_dot2_##suffix(                                                    \
        const void *a, const void *r, ptrdiff_t m, const double *W, ptrdiff_t size, double half,   \
        double threshold, double factor, double *z) {                                              \
        if (threshold < 0.0)                                                                       \
            apcg_dot_##suffix##_of(a, r, m, W, size, 1, half, 0, 0.0, 1.0, z);                     \
        else                                                                                       \
            apcg_dot_##suffix##_of(a, r, m, W, size, 1, half, 1, threshold, factor, z);            \
    }                                                                                              \
    APCG_INLINE void apcg_add_##suffix##_of(                                                       \
        const value_type *a, const index_type *r, ptrdiff_t m, double *W, ptrdiff_t size, int two, \
        const double *du, const double *dv) {                                                      \
        const int dense = DENSE;                                                                   \
        const ptrdiff_t stride = two ? 2 * size : size;                                            \
        for (ptrdiff_t left = size / 4; left > 0;                                                  \
             left -= WIDE, W += 4 * WIDE, du += 4 * WIDE, dv += 4 * WIDE) {                        \
            switch (left) {                                                                        \
            case 1: APCG_ADD_NV(1); break;                                                         \
            case 2: APCG_ADD_NV(2); break;                                                         \
            case 3: APCG_ADD_NV(3); break;                                                         \
            case 4: APCG_ADD_NV(4); break;                                                         \
            case 5: APCG_ADD_NV(5); break;                                                         \
            case 6: APCG_ADD_NV(6); break;                                                         \
            case 7: APCG_ADD_NV(7); break;                                                         \
            default: APCG_ADD_NV(8); break;                                                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    APCG_CLONES static void apcg_add1_##suffix(                                                    \
        const void *a, const void *r, ptrdiff_t m, double *W, ptrdiff_t size, const double *du,    \
        const double *dv) {                                                                        \
        apcg_add_##suffix##_of(a, r, m, W, size, 0, dv, dv);                                       \
    }                                                                                              \
    APCG_CLONES static void apcg_add2_##suffix(                                                    \
        const void *a, const void *r, ptrdiff_t m, double *W, ptrdiff_t size, const double *du,    \
        const double *dv) {                                                                        \
        apcg_add_##suffix##_of(a, r, m, W, size, 1, du, dv);                                       \
    }                                                                                              \
    /* the same for a few classes */                                                               \
    static void apcg_few_##suffix(const void *av, const void *rv, ptrdiff_t m, double *W,          \
                                  ptrdiff_t stride, const int *which, int count,                   \
                                  const double *change) {                                          \
        const value_type *a = av;                                                                  \
        const index_type *r = rv;                                                                  \
        for (ptrdiff_t k = 0; k < m; k++) {                                                        \
            double *w = W + (DENSE ? k : (ptrdiff_t)r[k]) * stride;                                \
            for (int c = 0; c < count; c++) w[which[c]] += (double)a[k] * change[c];               \
        }                                                                                          \
    }                                                                                              \
    /* bring the rows r_k, k < count, of W to the second cache: the first would not hold them */   \
    static void apcg_fetch_##suffix(const void *rv, ptrdiff_t count, const double *W,              \
                                    ptrdiff_t stride) {                                            \
        const index_type *r = rv;                                                                  \
        const ptrdiff_t bytes = 8 * stride, most = FETCHED / bytes;                                \
        for (ptrdiff_t k = 0; k < (count < most ? count : most); k++) {                            \
            const char *row = (const char *)(W + (ptrdiff_t)r[k] * stride);                        \
            for (ptrdiff_t at = 0; at < bytes; at += 64) APCG_FETCH_NEAR(row + at);                \
        }                                                                                          \
    }

APCG_ROWS(float_int, float, int32_t, 0)
APCG_ROWS(float_long, float, int64_t, 0)
APCG_ROWS(double_int, double, int32_t, 0)
APCG_ROWS(double_long, double, int64_t, 0)
APCG_ROWS(float_dense, float, int32_t, 1)
APCG_ROWS(double_dense, double, int32_t, 1)

typedef struct {
    void (*dot1)(const void *, const void *, ptrdiff_t, const double *, ptrdiff_t, double, double,
                 double, double *);
    void (*dot2)(const void *, const void *, ptrdiff_t, const double *, ptrdiff_t, double, double,
                 double, double *);
    void (*add1)(const void *, const void *, ptrdiff_t, double *, ptrdiff_t, const double *,
                 const double *);
    void (*add2)(const void *, const void *, ptrdiff_t, double *, ptrdiff_t, const double *,
                 const double *);
    void (*few)(const void *, const void *, ptrdiff_t, double *, ptrdiff_t, const int *, int,
                const double *);
    void (*fetch)(const void *, ptrdiff_t, const double *, ptrdiff_t);
} apcg_products;

#define APCG_TABLE(s)                                                                              \
    {apcg_dot1_##s, apcg_dot2_##s, apcg_add1_##s, apcg_add2_##s, apcg_few_##s,                   \
     apcg_fetch_##s}

static inline apcg_products apcg_products_for(size_t value, size_t index, int dense) {
    const apcg_products fi = APCG_TABLE(float_int), fl = APCG_TABLE(float_long);
    const apcg_products di = APCG_TABLE(double_int), dl = APCG_TABLE(double_long);
    const apcg_products fd = APCG_TABLE(float_dense), dd = APCG_TABLE(double_dense);
    if (dense) return value == 4 ? fd : dd;
    if (value == 4) return index == 4 ? fi : fl;
    return index == 4 ? di : dl;
}

#endif
