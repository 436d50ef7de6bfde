/* The softmax on rows of few features: losses, gradient, Hessian, leverages.
 *
 * Rows are read where they are, a strip at a time, and turned: feature j of a strip is APCG_ROWS
 * numbers side by side, so that all loops are over rows. Sums are in four lanes: the AVX2 clone and
 * the plain one give the same bits. */
#ifndef APCG_SOFTMAX_ROWS_H
#define APCG_SOFTMAX_ROWS_H

#include "many_outputs.h"

/* Rows of a strip: 20 features of it are 20 kB. */
#define APCG_ROWS 128
/* Sums of so many outputs, or pairs of them, are in registers together. */
#define APCG_SUMS 5

/* Some rows of X: all, or those of `index`. Row i has weight scale weight[i & mask]. */
typedef struct {
    const void *X;
    size_t size; /* bytes of a number */
    const int64_t *index;
    ptrdiff_t count, stored, D; /* features as stored, and with a border of ones */
    const int *label;
    const double *weight;
    ptrdiff_t mask;
} apcg_some_rows;

#define APCG_TURN(NAME, TYPE)                                                                      \
    APCG_INLINE void NAME(const TYPE *X, const int64_t *index, ptrdiff_t first, ptrdiff_t size,    \
                          ptrdiff_t d, double *T) {                                                \
        ptrdiff_t r = 0;                                                                           \
        for (; r + 4 <= size; r += 4) {                                                            \
            const TYPE *x[4];                                                                      \
            for (int t = 0; t < 4; t++) x[t] = X + d * (index ? index[first + r + t] : first + r + t); \
            for (ptrdiff_t j = 0; j < d; j++)                                                      \
                APCG_PUT(T, j * APCG_ROWS + r) = (apcg_v4){x[0][j], x[1][j], x[2][j], x[3][j]};    \
        }                                                                                          \
        for (; r < size; r++) {                                                                    \
            const TYPE *x = X + d * (index ? index[first + r] : first + r);                        \
            for (ptrdiff_t j = 0; j < d; j++) T[j * APCG_ROWS + r] = x[j];                         \
        }                                                                                          \
    }
APCG_TURN(apcg_turn_floats, float)

/* Four features of four rows at a time. */
APCG_INLINE void apcg_turn_doubles(const double *X, const int64_t *index, ptrdiff_t first,
                                   ptrdiff_t size, ptrdiff_t d, double *T) {
    ptrdiff_t r = 0;
    for (; r + 4 <= size; r += 4) {
        const double *x[4];
        for (int t = 0; t < 4; t++) x[t] = X + d * (index ? index[first + r + t] : first + r + t);
        ptrdiff_t j = 0;
        for (; j + 4 <= d; j += 4) {
            const apcg_v4 a = APCG_AT(x[0], j), b = APCG_AT(x[1], j);
            const apcg_v4 c = APCG_AT(x[2], j), e = APCG_AT(x[3], j);
            double *to = T + j * APCG_ROWS + r;
            APCG_PUT(to, 0) = (apcg_v4){a[0], b[0], c[0], e[0]};
            APCG_PUT(to, APCG_ROWS) = (apcg_v4){a[1], b[1], c[1], e[1]};
            APCG_PUT(to, 2 * APCG_ROWS) = (apcg_v4){a[2], b[2], c[2], e[2]};
            APCG_PUT(to, 3 * APCG_ROWS) = (apcg_v4){a[3], b[3], c[3], e[3]};
        }
        for (; j < d; j++)
            APCG_PUT(T, j * APCG_ROWS + r) = (apcg_v4){x[0][j], x[1][j], x[2][j], x[3][j]};
    }
    for (; r < size; r++) {
        const double *x = X + d * (index ? index[first + r] : first + r);
        for (ptrdiff_t j = 0; j < d; j++) T[j * APCG_ROWS + r] = x[j];
    }
}

/* T: the features of a strip, with the border; rows up to a multiple of four are zeros. Returns how
 * many rows it has, with these. */
APCG_INLINE ptrdiff_t apcg_strip(const apcg_some_rows *rows, ptrdiff_t first, ptrdiff_t size,
                                 double *T) {
    const ptrdiff_t d = rows->stored, padded = (size + 3) & ~(ptrdiff_t)3;
    if (padded != size)
        for (ptrdiff_t j = 0; j < d; j++)
            for (ptrdiff_t r = size; r < padded; r++) T[j * APCG_ROWS + r] = 0.0;
    if (rows->size == sizeof(double))
        apcg_turn_doubles((const double *)rows->X, rows->index, first, size, d, T);
    else
        apcg_turn_floats((const float *)rows->X, rows->index, first, size, d, T);
    if (rows->D > d)
        for (ptrdiff_t r = 0; r < padded; r++) T[d * APCG_ROWS + r] = 1.0;
    return padded;
}

APCG_INLINE ptrdiff_t apcg_row(const apcg_some_rows *rows, ptrdiff_t i) {
    return rows->index ? (ptrdiff_t)rows->index[i] : i;
}

/* ---- z, pi and losses of a strip ------------------------------------------------------------ */

/* Z_k = sum_j W_jk T_j for `count` outputs, 8 rows at a time */
APCG_INLINE void apcg_predict_some(const double *T, ptrdiff_t padded, ptrdiff_t D, const double *W,
                                   ptrdiff_t K, int count, double *Z) {
    for (ptrdiff_t r = 0; r < padded; r += 4) {
        apcg_v4 sum[APCG_SUMS];
        APCG_UNROLL8 for (int k = 0; k < count; k++) sum[k] = APCG_ALL(0.0);
        for (ptrdiff_t j = 0; j < D; j++) {
            const apcg_v4 x = APCG_AT(T, j * APCG_ROWS + r);
            APCG_UNROLL8 for (int k = 0; k < count; k++) sum[k] += x * APCG_ALL(W[j * K + k]);
        }
        APCG_UNROLL8 for (int k = 0; k < count; k++) APCG_PUT(Z, k * APCG_ROWS + r) = sum[k];
    }
}

APCG_INLINE void apcg_predict(const double *T, ptrdiff_t padded, ptrdiff_t D, const double *W,
                              ptrdiff_t K, double *Z) {
    for (ptrdiff_t k = 0; k < K; k += APCG_SUMS) {
        const double *w = W + k;
        double *z = Z + k * APCG_ROWS;
        switch (K - k) {
        case 1: apcg_predict_some(T, padded, D, w, K, 1, z); break;
        case 2: apcg_predict_some(T, padded, D, w, K, 2, z); break;
        case 3: apcg_predict_some(T, padded, D, w, K, 3, z); break;
        case 4: apcg_predict_some(T, padded, D, w, K, 4, z); break;
        default: apcg_predict_some(T, padded, D, w, K, 5, z); break;
        }
    }
}

/* Z becomes s (pi - e), for weights s and labels of a strip; returns the sum of s phi.
 *
 * 1 - pi_y is the sum of the others, so that slopes do not cancel, nor losses that are small. */
APCG_INLINE double apcg_slopes(double *Z, ptrdiff_t padded, ptrdiff_t K, const double *label,
                               const double *s) {
    apcg_v4 total = APCG_ALL(0.0);
    for (ptrdiff_t r = 0; r < padded; r += 4) {
        const apcg_v4 y = APCG_AT(label, r), weight = APCG_AT(s, r), one = APCG_ALL(1.0);
        apcg_v4 top = APCG_AT(Z, r), own = top, sum = APCG_ALL(0.0), others = sum;
        for (ptrdiff_t k = 1; k < K; k++) {
            const apcg_v4 z = APCG_AT(Z, k * APCG_ROWS + r);
            const apcg_i4 mine = y == APCG_ALL((double)k), above = z > top;
            top = APCG_IF(above, z, top);
            own = APCG_IF(mine, z, own);
        }
        for (ptrdiff_t k = 0; k < K; k++) {
            apcg_v4 a = APCG_AT(Z, k * APCG_ROWS + r) - top;
            const apcg_i4 low = a < APCG_ALL(APCG_FLOOR), mine = y == APCG_ALL((double)k);
            a = apcg_exp4(APCG_IF(low, APCG_ALL(APCG_FLOOR), a));
            const apcg_i4 tiny = a < APCG_ALL(APCG_TINY);
            a = APCG_IF(tiny, APCG_ALL(0.0), a);
            sum += a;
            others += APCG_IF(mine, APCG_ALL(0.0), a);
            APCG_PUT(Z, k * APCG_ROWS + r) = a;
        }
        const apcg_v4 inverse = one / sum, o = others * inverse, part = weight * inverse;
        for (ptrdiff_t k = 0; k < K; k++) {
            const apcg_i4 mine = y == APCG_ALL((double)k);
            const apcg_v4 a = APCG_AT(Z, k * APCG_ROWS + r) * part;
            APCG_PUT(Z, k * APCG_ROWS + r) = APCG_IF(mine, -(weight * o), a);
        }
        /* -log(1 - o): a series, a log, or the log of the sum where o is not small */
        const apcg_i4 small = o < APCG_ALL(1.0 / 1024), large = o > APCG_ALL(0.5);
        const apcg_v4 log_of = apcg_log4(APCG_IF(large, sum, one - o));
        const apcg_v4 series =
            o * (1.0 + o * (0.5 + o * (1.0 / 3 + o * (0.25 + o * (0.2 + o * (1.0 / 6))))));
        apcg_v4 loss = APCG_IF(large, log_of + (top - own), -log_of);
        loss = APCG_IF(small, series, loss);
        const apcg_i4 used = weight != APCG_ALL(0.0);
        total += APCG_IF(used, weight * loss, APCG_ALL(0.0));
    }
    return APCG_SUM(total);
}

/* ---- products with a strip ------------------------------------------------------------------ */

/* out[k] += <T_j, Z_k>, for `count` of the outputs and the features j, j + 1 (one of two if last) */
APCG_INLINE void apcg_dots(const double *T, ptrdiff_t padded, const double *Z, int two, int count,
                           double *out, ptrdiff_t K) {
    apcg_v4 sum[2][APCG_SUMS];
    APCG_UNROLL8 for (int k = 0; k < count; k++) sum[0][k] = sum[1][k] = APCG_ALL(0.0);
    for (ptrdiff_t r = 0; r < padded; r += 4) {
        const apcg_v4 a = APCG_AT(T, r), b = APCG_AT(T, two * APCG_ROWS + r);
        APCG_UNROLL8 for (int k = 0; k < count; k++) {
            const apcg_v4 z = APCG_AT(Z, k * APCG_ROWS + r);
            sum[0][k] += a * z;
            if (two) sum[1][k] += b * z;
        }
    }
    APCG_UNROLL8 for (int k = 0; k < count; k++) {
        out[k] += APCG_SUM(sum[0][k]);
        if (two) out[K + k] += APCG_SUM(sum[1][k]);
    }
}

/* G (D x K) += T Z' */
APCG_INLINE void apcg_add_gradient(const double *T, ptrdiff_t padded, ptrdiff_t D, const double *Z,
                                   ptrdiff_t K, double *G) {
    for (ptrdiff_t k = 0; k < K; k += APCG_SUMS) {
        const double *z = Z + k * APCG_ROWS;
        for (ptrdiff_t j = 0; j < D; j += 2) {
            const double *t = T + j * APCG_ROWS;
            const int two = j + 1 < D;
            double *out = G + j * K + k;
            switch (K - k) {
            case 1: apcg_dots(t, padded, z, two, 1, out, K); break;
            case 2: apcg_dots(t, padded, z, two, 2, out, K); break;
            case 3: apcg_dots(t, padded, z, two, 3, out, K); break;
            case 4: apcg_dots(t, padded, z, two, 4, out, K); break;
            default: apcg_dots(t, padded, z, two, 5, out, K); break;
            }
        }
    }
}

/* out[p] += <a b, V_p> and next[p] += <a c, V_p>, for `count` pairs p */
APCG_INLINE void apcg_triples(const double *a, const double *b, const double *c, ptrdiff_t padded,
                              const double *V, int count, double *out, double *next,
                              ptrdiff_t step) {
    apcg_v4 sum[2][APCG_SUMS];
    APCG_UNROLL8 for (int p = 0; p < count; p++) sum[0][p] = sum[1][p] = APCG_ALL(0.0);
    for (ptrdiff_t r = 0; r < padded; r += 4) {
        const apcg_v4 x = APCG_AT(a, r), u = x * APCG_AT(b, r), w = x * APCG_AT(c, r);
        APCG_UNROLL8 for (int p = 0; p < count; p++) {
            const apcg_v4 v = APCG_AT(V, p * APCG_ROWS + r);
            sum[0][p] += u * v;
            sum[1][p] += w * v;
        }
    }
    APCG_UNROLL8 for (int p = 0; p < count; p++) {
        out[p * step] += APCG_SUM(sum[0][p]);
        if (next != out) next[p * step] += APCG_SUM(sum[1][p]);
    }
}

/* C (pairs x D x D, upper triangles) += sum over a strip of V_p x x' */
APCG_INLINE void apcg_add_blocks(const double *T, ptrdiff_t padded, ptrdiff_t D, const double *V,
                                 ptrdiff_t pairs, double *C) {
    for (ptrdiff_t p = 0; p < pairs; p += APCG_SUMS) {
        const double *v = V + p * APCG_ROWS;
        double *to = C + p * D * D;
        for (ptrdiff_t j = 0; j < D; j++)
            for (ptrdiff_t l = j; l < D; l += 2) {
                const ptrdiff_t m = l + 1 < D ? l + 1 : l;
                const double *a = T + j * APCG_ROWS, *b = T + l * APCG_ROWS, *c = T + m * APCG_ROWS;
                double *out = to + j * D + l, *next = to + j * D + m;
                switch (pairs - p) {
                case 1: apcg_triples(a, b, c, padded, v, 1, out, next, D * D); break;
                case 2: apcg_triples(a, b, c, padded, v, 2, out, next, D * D); break;
                case 3: apcg_triples(a, b, c, padded, v, 3, out, next, D * D); break;
                case 4: apcg_triples(a, b, c, padded, v, 4, out, next, D * D); break;
                default: apcg_triples(a, b, c, padded, v, 5, out, next, D * D); break;
                }
            }
    }
}

/* ---- over all rows -------------------------------------------------------------------------- */

/* The sum of s phi at W; G (zeros before) its gradient, x = s (e - pi). T has room for D strips of
 * features, Z for K + 2. */
APCG_CLONES static double apcg_softmax_evaluate(const apcg_some_rows *rows, const double *W,
                                                ptrdiff_t K, double *T, double *Z, double *G,
                                                double *x) {
    double *label = Z + K * APCG_ROWS, *s = label + APCG_ROWS, total = 0.0;
    for (ptrdiff_t first = 0; first < rows->count; first += APCG_ROWS) {
        const ptrdiff_t left = rows->count - first, size = left < APCG_ROWS ? left : APCG_ROWS;
        const ptrdiff_t padded = apcg_strip(rows, first, size, T);
        for (ptrdiff_t r = 0; r < padded; r++) {
            const ptrdiff_t i = r < size ? apcg_row(rows, first + r) : 0;
            label[r] = (double)rows->label[i];
            s[r] = r < size ? rows->weight[(first + r) & rows->mask] : 0.0;
        }
        apcg_predict(T, padded, rows->D, W, K, Z);
        total += apcg_slopes(Z, padded, K, label, s);
        apcg_add_gradient(T, padded, rows->D, Z, K, G);
        for (ptrdiff_t r = 0; r < size; r++)
            for (ptrdiff_t k = 0; k < K; k++)
                x[(first + r) * K + k] = 0.0 - Z[k * APCG_ROWS + r];
    }
    return total;
}

/* C (zeros before): for the pairs k < m of outputs the upper triangle of sum_i s_i pi_k pi_m a a',
 * with pi of x = s (e - pi). V has room for K (K - 1)/2 + K strips. */
APCG_CLONES static void apcg_softmax_blocks(const apcg_some_rows *rows, const double *x,
                                            ptrdiff_t K, double *T, double *V, double *C) {
    const ptrdiff_t pairs = K * (K - 1) / 2;
    double *pi = V + pairs * APCG_ROWS;
    for (ptrdiff_t first = 0; first < rows->count; first += APCG_ROWS) {
        const ptrdiff_t left = rows->count - first, size = left < APCG_ROWS ? left : APCG_ROWS;
        const ptrdiff_t padded = apcg_strip(rows, first, size, T);
        for (ptrdiff_t r = 0; r < padded; r++) { /* sqrt(s) pi */
            const double s = r < size ? rows->weight[(first + r) & rows->mask] : 0.0;
            const double root = sqrt(s), inverse = s > 0.0 ? root / s : 0.0;
            for (ptrdiff_t k = 0; k < K; k++)
                pi[k * APCG_ROWS + r] = r < size ? -x[(first + r) * K + k] * inverse : 0.0;
            if (r < size) pi[rows->label[apcg_row(rows, first + r)] * APCG_ROWS + r] += root;
        }
        double *v = V;
        for (ptrdiff_t k = 0; k < K; k++)
            for (ptrdiff_t m = k + 1; m < K; m++, v += APCG_ROWS)
                for (ptrdiff_t r = 0; r < padded; r += 4)
                    APCG_PUT(v, r) = APCG_AT(pi, k * APCG_ROWS + r) * APCG_AT(pi, m * APCG_ROWS + r);
        apcg_add_blocks(T, padded, rows->D, V, pairs, C);
    }
}

/* out_i = |U'^-1 a_i|^2, U the upper triangle of a factor (D x D) */
APCG_CLONES static void apcg_leverages(const apcg_some_rows *rows, const double *U, double *T,
                                       double *out) {
    const ptrdiff_t D = rows->D;
    double squares[APCG_ROWS];
    for (ptrdiff_t first = 0; first < rows->count; first += APCG_ROWS) {
        const ptrdiff_t left = rows->count - first, size = left < APCG_ROWS ? left : APCG_ROWS;
        const ptrdiff_t padded = apcg_strip(rows, first, size, T);
        for (ptrdiff_t r = 0; r < padded; r += 4) {
            apcg_v4 sum = APCG_ALL(0.0);
            for (ptrdiff_t j = 0; j < D; j++) {
                apcg_v4 t = APCG_AT(T, j * APCG_ROWS + r);
                for (ptrdiff_t l = 0; l < j; l++)
                    t -= APCG_ALL(U[l * D + j]) * APCG_AT(T, l * APCG_ROWS + r);
                t /= APCG_ALL(U[j * D + j]);
                APCG_PUT(T, j * APCG_ROWS + r) = t;
                sum += t * t;
            }
            APCG_PUT(squares, r) = sum;
        }
        for (ptrdiff_t r = 0; r < size; r++) out[first + r] = squares[r];
    }
}

#endif
