/* Dense loops for Newton's method: Gram matrices, a Cholesky factor, dot products.
 *
 * Symmetric matrices are by rows with their upper triangle; what is below it is left undefined. All
 * loops run along rows, and the sum for one entry is in one fixed order, so the bits are the same
 * with vectors of any width: the AVX2 clone and the plain one give the same result. BLAS is not
 * used below a few hundred features because its threads cost more than the work. */
#ifndef APCG_DENSE_H
#define APCG_DENSE_H

#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define APCG_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define APCG_CLONES
#endif

/* out_k += a[0] x[0]_k + ... + a[3] x[3]_k for first <= k < size */
#define APCG_RANK4(out, first, size, a, x)                                                         \
    do {                                                                                           \
        double *restrict o_ = (out);                                                               \
        const double a0_ = (a)[0], a1_ = (a)[1], a2_ = (a)[2], a3_ = (a)[3];                       \
        for (ptrdiff_t k_ = (first); k_ < (size); k_++)                                            \
            o_[k_] += (a0_ * (x)[0][k_] + a1_ * (x)[1][k_]) + (a2_ * (x)[2][k_] + a3_ * (x)[3][k_]); \
    } while (0)

/* the first multiple of four that is not above k: whole vectors, for an entry or two below the
 * diagonal, which nobody reads */
#define APCG_FLOOR4(k) ((k) & ~(ptrdiff_t)3)

/* Rows of a Gram matrix are read in blocks of about this many numbers, which stay in the cache. */
#define APCG_GRAM_BLOCK 8192

/* out_jk += sum_r w_rj x_rk of the rows r of a block, for the upper triangle of d columns; rows have
 * `width` numbers, a multiple of eight, and zeros from d on; those of `out` have `size`. A tile of
 * four by eight sums is in registers while the rows go by. */
static inline void apcg_gram_tiles(const double *restrict w, const double *restrict x,
                                   ptrdiff_t rows, ptrdiff_t width, ptrdiff_t d,
                                   ptrdiff_t size, double *restrict out) {
    for (ptrdiff_t j = 0; j < d; j += 4)
        for (ptrdiff_t k = j & ~(ptrdiff_t)7; k < d; k += 8) {
            double sum[4][8] = {{0.0}};
            for (ptrdiff_t r = 0; r < rows; r++) {
                const double *wr = w + r * width + j, *xr = x + r * width + k;
                for (int a = 0; a < 4; a++)
                    for (int l = 0; l < 8; l++) sum[a][l] += wr[a] * xr[l];
            }
            const int deep = d - j < 4 ? (int)(d - j) : 4;
            const int wide = d - k < 8 ? (int)(d - k) : 8;
            for (int a = 0; a < deep; a++)
                for (int l = 0; l < wide; l++) out[(j + a) * size + k + l] += sum[a][l];
        }
}

/* out_jd += sum_r w_rj of the rows of a block: the column of an intercept. Destroys `sum`. */
static inline void apcg_gram_border(const double *restrict w, ptrdiff_t rows, ptrdiff_t width,
                                    ptrdiff_t d, double *restrict sum, double *restrict out) {
    for (ptrdiff_t k = 0; k < d; k++) sum[k] = w[k];
    for (ptrdiff_t r = 1; r < rows; r++)
        for (ptrdiff_t k = 0; k < d; k++) sum[k] += w[r * width + k];
    for (ptrdiff_t k = 0; k < d; k++) out[k * (d + 1) + d] += sum[k];
}

/* out += sum_i weight_i A_i A_i', with one more entry, 1, at the end of every A_i if `border`;
 * returns how many weights are not zero. `room` has 2 max(APCG_GRAM_BLOCK, d + 8) numbers. */
#define APCG_GRAM(name, value)                                                                     \
    APCG_CLONES static ptrdiff_t name(const value *data, ptrdiff_t n, ptrdiff_t d,                 \
                                      const double *weight, int border, double *room,              \
                                      double *out) {                                               \
        const ptrdiff_t size = d + (border != 0), width = (d + 7) & ~(ptrdiff_t)7;                 \
        const ptrdiff_t most = width < APCG_GRAM_BLOCK ? APCG_GRAM_BLOCK / width : 1;              \
        double *x = room, *w = room + most * width;                                                \
        ptrdiff_t count = 0, held = 0;                                                             \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            if (weight[i] != 0.0) {                                                                \
                const value *from = data + i * d;                                                  \
                double *restrict xi = x + held * width, *restrict wi = w + held * width;           \
                const double c = weight[i];                                                        \
                for (ptrdiff_t k = 0; k < d; k++) {                                                \
                    const double a = from[k];                                                      \
                    xi[k] = a;                                                                     \
                    wi[k] = c * a;                                                                 \
                }                                                                                  \
                for (ptrdiff_t k = d; k < width; k++) xi[k] = wi[k] = 0.0;                         \
                if (border) out[d * size + d] += c;                                                \
                held++;                                                                            \
                count++;                                                                           \
            }                                                                                      \
            if (held == most || (i + 1 == n && held > 0)) {                                        \
                apcg_gram_tiles(w, x, held, width, d, size, out);                                  \
                if (border) apcg_gram_border(w, held, width, d, x, out);                           \
                held = 0;                                                                          \
            }                                                                                      \
        }                                                                                          \
        return count;                                                                              \
    }
APCG_GRAM(apcg_gram_double, double)
APCG_GRAM(apcg_gram_float, float)

/* out += sum_i weight_i A_i, four rows at a time; rows of weight 0 are not read. */
#define APCG_ADD_ROWS(name, value)                                                                 \
    APCG_CLONES static void name(const value *data, ptrdiff_t n, ptrdiff_t d,                      \
                                 const double *weight, double *restrict out) {                     \
        const value *x[4];                                                                         \
        double a[4];                                                                               \
        int held = 0;                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            if (weight[i] == 0.0) continue;                                                        \
            a[held] = weight[i];                                                                   \
            x[held++] = data + i * d;                                                              \
            if (held == 4) {                                                                       \
                APCG_RANK4(out, 0, d, a, x);                                                       \
                held = 0;                                                                          \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < held; r++)                                                             \
            for (ptrdiff_t k = 0; k < d; k++) out[k] += a[r] * x[r][k];                            \
    }
APCG_ADD_ROWS(apcg_add_rows_double, double)
APCG_ADD_ROWS(apcg_add_rows_float, float)

/* A = U'U in place, A with a diagonal of about 1; 0 if a pivot is not above `least`. */
APCG_CLONES static int apcg_cholesky(double *A, ptrdiff_t size, double least) {
    const double *x[4];
    double a[4];
    for (ptrdiff_t first = 0; first < size; first += 4) {
        const ptrdiff_t end = first + 4 < size ? first + 4 : size;
        for (ptrdiff_t k = first; k < end; k++) {
            double *row = A + k * size;
            for (ptrdiff_t p = first; p < k; p++) {
                const double *above = A + p * size, factor = above[k];
                for (ptrdiff_t j = k; j < size; j++) row[j] -= factor * above[j];
            }
            if (!(row[k] > least)) return 0;
            const double pivot = sqrt(row[k]);
            row[k] = pivot;
            for (ptrdiff_t j = k + 1; j < size; j++) row[j] /= pivot;
        }
        if (end - first < 4) break;
        for (int r = 0; r < 4; r++) x[r] = A + (first + r) * size;
        for (ptrdiff_t i = end; i < size; i++) {
            for (int r = 0; r < 4; r++) a[r] = -x[r][i];
            APCG_RANK4(A + i * size, APCG_FLOOR4(i), size, a, x);
        }
    }
    return 1;
}

/* the sum of a_k x_k, in four parts */
#define APCG_DOT(name, value)                                                                      \
    static inline double name(const value *a, const double *x, ptrdiff_t size) {                   \
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;                                             \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 4 <= size; k += 4) {                                                            \
            s0 += a[k] * x[k];                                                                     \
            s1 += a[k + 1] * x[k + 1];                                                             \
            s2 += a[k + 2] * x[k + 2];                                                             \
            s3 += a[k + 3] * x[k + 3];                                                             \
        }                                                                                          \
        for (; k < size; k++) s0 += a[k] * x[k];                                                   \
        return (s0 + s2) + (s1 + s3);                                                              \
    }
APCG_DOT(apcg_dot_double, double)
APCG_DOT(apcg_dot_float, float)

/* z_i = A_i' w + b; each sum is that of apcg_dot_double. Four rows go by at a time, as vectors: GCC
 * would make vectors of other entries, and permute them for longer than it adds. */
APCG_CLONES static void apcg_times_double(const double *restrict data, ptrdiff_t n, ptrdiff_t d,
                                          const double *restrict w, double b,
                                          double *restrict z) {
    ptrdiff_t i = 0;
#if defined(__GNUC__) || defined(__clang__)
    typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
    for (; i + 4 <= n; i += 4) {
        const double *x0 = data + i * d, *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
        four s[4] = {{0.0}};
        ptrdiff_t k = 0;
        for (; k + 4 <= d; k += 4) {
            const four v = *(const four *)(w + k);
            s[0] += *(const four *)(x0 + k) * v;
            s[1] += *(const four *)(x1 + k) * v;
            s[2] += *(const four *)(x2 + k) * v;
            s[3] += *(const four *)(x3 + k) * v;
        }
        for (; k < d; k++) {
            s[0][0] += x0[k] * w[k];
            s[1][0] += x1[k] * w[k];
            s[2][0] += x2[k] * w[k];
            s[3][0] += x3[k] * w[k];
        }
        for (int r = 0; r < 4; r++) z[i + r] = ((s[r][0] + s[r][2]) + (s[r][1] + s[r][3])) + b;
    }
#endif
    for (; i < n; i++) z[i] = apcg_dot_double(data + i * d, w, d) + b;
}

/* A step on a dense row: the sum of a_k x_k in eight parts, and x += dx a. */
#define APCG_ROW(dot, add, value)                                                                  \
    APCG_CLONES static double dot(const value *restrict a, const double *restrict x,               \
                                  ptrdiff_t size) {                                                \
        double s[8] = {0.0};                                                                       \
        ptrdiff_t k = 0;                                                                           \
        for (; k + 8 <= size; k += 8)                                                              \
            for (int l = 0; l < 8; l++) s[l] += (double)a[k + l] * x[k + l];                       \
        for (; k < size; k++) s[0] += (double)a[k] * x[k];                                         \
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));                  \
    }                                                                                              \
    APCG_CLONES static void add(const value *restrict a, ptrdiff_t size, double *restrict x,       \
                                double dx) {                                                       \
        for (ptrdiff_t k = 0; k < size; k++) x[k] += dx * (double)a[k];                            \
    }
APCG_ROW(apcg_row_dot_double, apcg_row_add_double, double)
APCG_ROW(apcg_row_dot_float, apcg_row_add_float, float)

/* x = U^-1 U'^-1 x */
static void apcg_cholesky_solve(const double *U, ptrdiff_t size, double *restrict x) {
    for (ptrdiff_t k = 0; k < size; k++) {
        const double *row = U + k * size, step = x[k] / row[k];
        x[k] = step;
        for (ptrdiff_t j = k + 1; j < size; j++) x[j] -= step * row[j];
    }
    for (ptrdiff_t k = size - 1; k >= 0; k--) {
        const double *row = U + k * size;
        x[k] = (x[k] - apcg_dot_double(row + k + 1, x + k + 1, size - k - 1)) / row[k];
    }
}

#endif
