/* Products of a matrix by rows, as it is, with a few outputs: X'R and X_S W.
 *
 * BLAS is slow where one side has three to six columns. Eight columns of X and the sums of up to six
 * outputs are in registers together. */
#ifndef APCG_FEW_OUTPUTS_H
#define APCG_FEW_OUTPUTS_H

#include "vectors.h"

/* The most outputs whose sums are in registers together. */
#define APCG_TOGETHER 6

/* Rows of X that are read before the next eight columns: they stay in the cache. */
#define APCG_STRIP 32

/* out[t][c] += sum_i R[i][t] X[i][c] for `count` outputs and 8 columns of a few rows of X; rows of X
 * have d numbers, and so do those of out. */
APCG_INLINE void apcg_strip_some(const double *X, const double *R, ptrdiff_t rows, ptrdiff_t d,
                                 ptrdiff_t wide, int count, double *out) {
    apcg_v4 sum[APCG_TOGETHER][2];
    APCG_UNROLL8 for (int t = 0; t < count; t++) {
        sum[t][0] = APCG_AT(out, t * d);
        sum[t][1] = APCG_AT(out, t * d + 4);
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        const apcg_v4 low = APCG_AT(X, i * d), high = APCG_AT(X, i * d + 4);
        APCG_UNROLL8 for (int t = 0; t < count; t++) {
            const apcg_v4 r = APCG_ALL(R[i * wide + t]);
            sum[t][0] += low * r;
            sum[t][1] += high * r;
        }
    }
    APCG_UNROLL8 for (int t = 0; t < count; t++) {
        APCG_PUT(out, t * d) = sum[t][0];
        APCG_PUT(out, t * d + 4) = sum[t][1];
    }
}

/* The same for all outputs. */
APCG_INLINE void apcg_strip_all(const double *X, const double *R, ptrdiff_t rows, ptrdiff_t d,
                                ptrdiff_t wide, ptrdiff_t outputs, double *out) {
    const ptrdiff_t parts = (outputs + APCG_TOGETHER - 1) / APCG_TOGETHER;
    for (ptrdiff_t p = 0, k = 0; p < parts; p++) {
        const ptrdiff_t some = (outputs - k + parts - p - 1) / (parts - p);
        switch (some) {
        case 1: apcg_strip_some(X, R + k, rows, d, wide, 1, out + k * d); break;
        case 2: apcg_strip_some(X, R + k, rows, d, wide, 2, out + k * d); break;
        case 3: apcg_strip_some(X, R + k, rows, d, wide, 3, out + k * d); break;
        case 4: apcg_strip_some(X, R + k, rows, d, wide, 4, out + k * d); break;
        case 5: apcg_strip_some(X, R + k, rows, d, wide, 5, out + k * d); break;
        default: apcg_strip_some(X, R + k, rows, d, wide, 6, out + k * d); break;
        }
        k += some;
    }
}

/* out (outputs x d) += R'X, for X by rows as it is; rows of R have `wide` numbers. `rest` has room for
 * 8 numbers of each output, and is zero before: the sums of the last columns. */
APCG_CLONES static void apcg_rows_dot(const double *X, ptrdiff_t rows, ptrdiff_t d, const double *R,
                                      ptrdiff_t outputs, ptrdiff_t wide, double *rest, double *out) {
    const ptrdiff_t whole = d & ~(ptrdiff_t)7;
    double strip[8 * APCG_STRIP] = {0.0};
    for (ptrdiff_t first = 0; first < rows; first += APCG_STRIP) {
        const ptrdiff_t count = first + APCG_STRIP < rows ? APCG_STRIP : rows - first;
        const double *x = X + first * d, *r = R + first * wide;
        for (ptrdiff_t j = 0; j < whole; j += 8)
            apcg_strip_all(x + j, r, count, d, wide, outputs, out + j);
        if (whole == d) continue;
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t j = whole; j < d; j++) strip[8 * i + j - whole] = x[i * d + j];
        apcg_strip_all(strip, r, count, 8, wide, outputs, rest);
    }
    for (ptrdiff_t k = 0; k < outputs; k++)
        for (ptrdiff_t j = whole; j < d; j++) out[k * d + j] += rest[8 * k + j - whole];
}

/* out (4 rows of `wide` numbers, for 4 of the outputs) = the sum over some columns of X_j W_j */
APCG_INLINE void apcg_four_rows(const double *X, ptrdiff_t d, const ptrdiff_t *some, ptrdiff_t count,
                                const double *W, ptrdiff_t wide, double *out) {
    apcg_v4 sum[4];
    for (int t = 0; t < 4; t++) sum[t] = APCG_ALL(0.0);
    for (ptrdiff_t c = 0; c < count; c++) {
        const apcg_v4 w = APCG_AT(W, c * wide);
        const double *x = X + some[c];
        APCG_UNROLL8 for (int t = 0; t < 4; t++) sum[t] += APCG_ALL(x[t * d]) * w;
    }
    for (int t = 0; t < 4; t++) APCG_PUT(out, t * wide) = sum[t];
}

/* The same of eight outputs: what is read of X serves twice. */
APCG_INLINE void apcg_four_rows_twice(const double *X, ptrdiff_t d, const ptrdiff_t *some,
                                      ptrdiff_t count, const double *W, ptrdiff_t wide,
                                      double *out) {
    apcg_v4 sum[4][2];
    for (int t = 0; t < 4; t++) sum[t][0] = sum[t][1] = APCG_ALL(0.0);
    for (ptrdiff_t c = 0; c < count; c++) {
        const apcg_v4 low = APCG_AT(W, c * wide), high = APCG_AT(W, c * wide + 4);
        const double *x = X + some[c];
        APCG_UNROLL8 for (int t = 0; t < 4; t++) {
            const apcg_v4 a = APCG_ALL(x[t * d]);
            sum[t][0] += a * low;
            sum[t][1] += a * high;
        }
    }
    for (int t = 0; t < 4; t++) {
        APCG_PUT(out, t * wide) = sum[t][0];
        APCG_PUT(out, t * wide + 4) = sum[t][1];
    }
}

/* out (rows x wide) = X_S W, for the columns S of X by rows as it is; W has a row for each of S */
APCG_CLONES static void apcg_rows_tdot(const double *X, ptrdiff_t rows, ptrdiff_t d,
                                       const ptrdiff_t *some, ptrdiff_t count, const double *W,
                                       ptrdiff_t wide, double *restrict out) {
    ptrdiff_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        ptrdiff_t k = 0;
        for (; k + 8 <= wide; k += 8)
            apcg_four_rows_twice(X + i * d, d, some, count, W + k, wide, out + i * wide + k);
        if (k < wide) apcg_four_rows(X + i * d, d, some, count, W + k, wide, out + i * wide + k);
    }
    for (; i < rows; i++) {
        for (ptrdiff_t k = 0; k < wide; k++) out[i * wide + k] = 0.0;
        for (ptrdiff_t c = 0; c < count; c++)
            for (ptrdiff_t k = 0; k < wide; k++)
                out[i * wide + k] += X[i * d + some[c]] * W[c * wide + k];
    }
}

#endif
