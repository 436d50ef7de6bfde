/* The losses of all rows at once: their sum, first and second derivatives, in vectors.
 *
 * Sums are in four lanes whatever the width of a vector is, so that the AVX2 clone and the plain one
 * give the same bits. The scalar functions of losses.pyx are the definition; these are the same
 * formulas without branches, three to five times as fast. */
#ifndef APCG_EVALUATE_H
#define APCG_EVALUATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dense.h"

/* Rows read z, way, label and weight (of row i & mask), and write at = z + t way, slope = s phi'(at)
 * and bend = s phi''(at), with s = scale weight. */
typedef struct {
    const double *z, *way, *label, *weight;
    ptrdiff_t mask;
    double t, scale;
    int margin;
    double *at, *slope, *bend;
} apcg_rows;

typedef struct {
    double value, first, second;
} apcg_along;

#define APCG_BLOCK 256

/* exp(x) for x <= 0: 2^k times the series of exp(r), |r| <= log(2)/2; 0 is 3e-308 */
static inline double apcg_exp(double x) {
    const double magic = 6755399441055744.0; /* 1.5 2^52: adding it rounds to an integer */
    x = x < -708.0 ? -708.0 : x;
    const double shifted = x * 1.4426950408889634 + magic;
    const double k = shifted - magic;
    const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, power;
    memcpy(&bits, &shifted, 8);
    memcpy(&power, &p, 8);
    power += bits << 52;
    memcpy(&p, &power, 8);
    return p;
}

static inline double apcg_sum4(const double *lane) {
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* One block: sums of slope way and bend way^2 */
static inline void apcg_along_block(const double *slope, const double *bend, const double *way,
                                    ptrdiff_t size, apcg_along *total) {
    double first[4] = {0.0}, second[4] = {0.0};
    ptrdiff_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (int l = 0; l < 4; l++) {
            first[l] += slope[i + l] * way[i + l];
            second[l] += bend[i + l] * way[i + l] * way[i + l];
        }
    for (; i < size; i++) {
        first[i & 3] += slope[i] * way[i];
        second[i & 3] += bend[i] * way[i] * way[i];
    }
    total->first += apcg_sum4(first);
    total->second += apcg_sum4(second);
}

/* Of a block of rows, with s = 1: the log of `factor` plus `rest` is the loss. (A function of its own:
 * the compiler believes `restrict` of parameters only, and wants it for vectors.) */
static inline void apcg_logistic_block(const double *restrict z, const double *restrict way,
                                       const double *restrict label, double t, ptrdiff_t size,
                                       double *restrict at, double *restrict slope,
                                       double *restrict bend, double *restrict factor,
                                       double *restrict rest) {
    for (ptrdiff_t i = 0; i < size; i++) {
        const double place = z[i] + t * way[i], m = label[i] * place;
        const double e = apcg_exp(-fabs(m)), inverse = 1.0 / (1.0 + e), small = e * inverse;
        const double series = e * (1.0 - e * (0.5 - e * (1.0 / 3.0 - 0.25 * e)));
        const double below = m > 0.0 ? 0.0 : -m, either = m > 0.0 ? small : inverse;
        at[i] = place;
        slope[i] = -label[i] * either;
        bend[i] = small * inverse;
        factor[i] = m > 7.0 ? 1.0 : 1.0 + e;
        rest[i] = m > 7.0 ? series : below;
    }
}

/* log(1 + exp(-m)). The log of a product is the sum of the logs, for a block of factors that are at
 * most 2; factors near 1 would lose the digits of their distance from it, and have a series. */
APCG_CLONES static apcg_along apcg_logistic(const apcg_rows *rows, ptrdiff_t n) {
    apcg_along total = {0.0, 0.0, 0.0};
    double factor[APCG_BLOCK], rest[APCG_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += APCG_BLOCK) {
        const ptrdiff_t size = n - start < APCG_BLOCK ? n - start : APCG_BLOCK;
        const double scale = rows->scale;
        double *slope = rows->slope + start, *bend = rows->bend + start;
        apcg_logistic_block(rows->z + start, rows->way + start, rows->label + start, rows->t, size,
                            rows->at + start, slope, bend, factor, rest);
        if (rows->mask == 0) {
            const double s = scale * rows->weight[0];
            double product[4] = {1.0, 1.0, 1.0, 1.0}, sum[4] = {0.0};
            for (ptrdiff_t i = 0; i < size; i++) {
                slope[i] *= s;
                bend[i] *= s;
            }
            ptrdiff_t i = 0;
            for (; i + 4 <= size; i += 4)
                for (int l = 0; l < 4; l++) {
                    product[l] *= factor[i + l];
                    sum[l] += rest[i + l];
                }
            for (; i < size; i++) {
                product[i & 3] *= factor[i];
                sum[i & 3] += rest[i];
            }
            total.value += s * (apcg_sum4(sum) + log((product[0] * product[2]) *
                                                     (product[1] * product[3])));
        } else {
            double sum = 0.0;
            for (ptrdiff_t i = 0; i < size; i++) {
                const double s = scale * rows->weight[start + i];
                slope[i] *= s;
                bend[i] *= s;
                sum += s * (log(factor[i]) + rest[i]);
            }
            total.value += sum;
        }
        apcg_along_block(slope, bend, rows->way + start, size, &total);
    }
    return total;
}

static inline void apcg_interval_block(const double *restrict z, const double *restrict way,
                                       const double *restrict label, double t, ptrdiff_t size,
                                       double *restrict at, double *restrict slope,
                                       double *restrict bend, double *restrict value,
                                       int margin, const double *theta) {
    const double k = theta[0], epsilon = theta[1], gamma = theta[2];
    const double lower = theta[3], upper = theta[4];
    /* finite, so that the flat part is beyond it */
    const double most = upper * gamma < 1e308 ? upper * gamma : 1e308;
    const double least = lower * gamma, full = 1.0 / gamma;
    for (ptrdiff_t i = 0; i < size; i++) {
        const double place = z[i] + t * way[i], b = label[i];
        const double sign = margin ? b : 1.0, c = k - (margin ? b * place : place - b);
        /* the distance from the flat part |c| < epsilon; infinite on it, for the curvature */
        const double far = c <= -epsilon ? c + epsilon : INFINITY;
        const double out = c >= epsilon ? c - epsilon : far;
        double x = out == INFINITY && c != INFINITY ? 0.0 : out / gamma;
        x = x < lower ? lower : x;
        x = x > upper ? upper : x;
        at[i] = place;
        value[i] = x * (c - 0.5 * gamma * x) - epsilon * fabs(x);
        slope[i] = -sign * x;
        bend[i] = (out >= least ? full : 0.0) * (out <= most ? 1.0 : 0.0);
    }
}

/* max over x in [lower, upper] of (k - m) x - epsilon |x| - (gamma/2) x^2, with gamma > 0 */
APCG_CLONES static apcg_along apcg_interval(const apcg_rows *rows, ptrdiff_t n,
                                            const double *theta) {
    apcg_along total = {0.0, 0.0, 0.0};
    double value[APCG_BLOCK];
    for (ptrdiff_t start = 0; start < n; start += APCG_BLOCK) {
        const ptrdiff_t size = n - start < APCG_BLOCK ? n - start : APCG_BLOCK;
        const double *weight = rows->weight + (start & rows->mask);
        double *slope = rows->slope + start, *bend = rows->bend + start, sum[4] = {0.0};
        apcg_interval_block(rows->z + start, rows->way + start, rows->label + start, rows->t, size,
                            rows->at + start, slope, bend, value, rows->margin, theta);
        for (ptrdiff_t i = 0; i < size; i++) {
            const double s = rows->scale * weight[i & rows->mask];
            slope[i] *= s;
            bend[i] *= s;
            value[i] *= s;
        }
        ptrdiff_t i = 0;
        for (; i + 4 <= size; i += 4)
            for (int l = 0; l < 4; l++) sum[l] += value[i + l];
        for (; i < size; i++) sum[i & 3] += value[i];
        total.value += apcg_sum4(sum);
        apcg_along_block(slope, bend, rows->way + start, size, &total);
    }
    return total;
}

#endif
