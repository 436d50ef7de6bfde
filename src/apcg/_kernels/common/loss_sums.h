/* Sums over all rows of losses and conjugates, and the dual point of given predictions, in vectors.
 *
 * The scalar functions of losses.pyx are the definition; these are the same formulas without
 * branches. A block of 64 rows is summed in eight lanes, whatever the width of a vector is, so the
 * bits are the same on every processor. The sums of the blocks are added by the caller with
 * compensation: a gap at rounding level is a difference of two such sums. */
#ifndef APCG_SUMS_H
#define APCG_SUMS_H

#include <math.h>
#include <stddef.h>

#include "loss_derivatives.h"

#define APCG_ROWS 64 /* rows in a block */

/* log(1 + e) for 0 <= e <= 1: 2 atanh(t) with t = e/(2 + e) <= 1/3, by its series */
static inline double apcg_log1p(double e) {
    const double t = e / (2.0 + e), q = t * t;
    double s = 1.0 / 35.0;
    s = s * q + 1.0 / 33.0;
    s = s * q + 1.0 / 31.0;
    s = s * q + 1.0 / 29.0;
    s = s * q + 1.0 / 27.0;
    s = s * q + 1.0 / 25.0;
    s = s * q + 1.0 / 23.0;
    s = s * q + 1.0 / 21.0;
    s = s * q + 1.0 / 19.0;
    s = s * q + 1.0 / 17.0;
    s = s * q + 1.0 / 15.0;
    s = s * q + 1.0 / 13.0;
    s = s * q + 1.0 / 11.0;
    s = s * q + 1.0 / 9.0;
    s = s * q + 1.0 / 7.0;
    s = s * q + 1.0 / 5.0;
    s = s * q + 1.0 / 3.0;
    return 2.0 * (t + t * (q * s));
}

/* log(x) for normal x > 0: x = 2^k f with f between sqrt(1/2) and sqrt(2), log f = 2 atanh(t) */
static inline double apcg_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    const uint64_t shifted = bits - 0x3fe6a09e667f3bcdull; /* the bits of sqrt(1/2) */
    /* k + 2^52 as the bits of a double: the shift is logical, so k is moved to be positive first */
    const uint64_t whole = ((shifted + 0x3ff0000000000000ull) >> 52) | 0x4330000000000000ull;
    const uint64_t rest = bits - ((shifted >> 52) << 52);
    double k, f;
    memcpy(&k, &whole, 8);
    memcpy(&f, &rest, 8);
    k -= 4503599627370496.0 + 1023.0;
    const double t = (f - 1.0) / (f + 1.0), q = t * t;
    double s = 1.0 / 21.0;
    s = s * q + 1.0 / 19.0;
    s = s * q + 1.0 / 17.0;
    s = s * q + 1.0 / 15.0;
    s = s * q + 1.0 / 13.0;
    s = s * q + 1.0 / 11.0;
    s = s * q + 1.0 / 9.0;
    s = s * q + 1.0 / 7.0;
    s = s * q + 1.0 / 5.0;
    s = s * q + 1.0 / 3.0;
    return k * 6.93147180369123816490e-01 +
           (k * 1.90821492927058770002e-10 + 2.0 * (t + t * (q * s)));
}

/* The sum of a block, in eight lanes */
static inline double apcg_block_sum(const double *restrict value) {
    double lane[8] = {0.0};
    for (int i = 0; i < APCG_ROWS; i += 8)
        for (int l = 0; l < 8; l++) lane[l] += value[i + l];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

/* ---- slopes x = -phi'(m) and values of a block ----------------------------------------------- */

static inline void apcg_logistic_rows(const double *restrict m, double *restrict x,
                                      double *restrict value) {
    for (int i = 0; i < APCG_ROWS; i++) {
        const double e = apcg_exp(-fabs(m[i])), inverse = 1.0 / (1.0 + e);
        x[i] = m[i] > 0.0 ? e * inverse : inverse;
        value[i] = apcg_log1p(e) + (m[i] > 0.0 ? 0.0 : -m[i]);
    }
}

/* theta = (k, epsilon, gamma, lower, upper); gamma = 0 has a slope for each side of the flat part */
static inline void apcg_interval_rows(const double *restrict m, const double *theta,
                                      double *restrict x, double *restrict value) {
    const double k = theta[0], epsilon = theta[1], gamma = theta[2];
    const double lower = theta[3], upper = theta[4];
    if (gamma > 0.0)
        for (int i = 0; i < APCG_ROWS; i++) {
            const double c = k - m[i];
            const double below = c < -epsilon ? c + epsilon : 0.0;
            const double out = (c > epsilon ? c - epsilon : below) / gamma;
            const double high = out > upper ? upper : out;
            x[i] = high < lower ? lower : high;
            value[i] = x[i] * (c - 0.5 * gamma * x[i]) - epsilon * fabs(x[i]);
        }
    else
        for (int i = 0; i < APCG_ROWS; i++) {
            const double c = k - m[i];
            const double below = c < -epsilon ? lower : 0.0;
            x[i] = c > epsilon ? upper : below;
            value[i] = x[i] * c - epsilon * fabs(x[i]);
        }
}

/* What a block of rows has: margins or residuals, and weights. Rows beyond `size` have weight 0. */
static inline void apcg_read_rows(const double *restrict z, const double *restrict label,
                                  const double *restrict weight, ptrdiff_t mask, int margin,
                                  ptrdiff_t size, double *restrict m, double *restrict s) {
    if (margin)
        for (ptrdiff_t i = 0; i < size; i++) m[i] = label[i] * z[i];
    else
        for (ptrdiff_t i = 0; i < size; i++) m[i] = z[i] - label[i];
    for (ptrdiff_t i = 0; i < size; i++) s[i] = weight[i & mask];
    for (ptrdiff_t i = size; i < APCG_ROWS; i++) m[i] = s[i] = 0.0;
}

/* One block: the sum of s phi(m), with x = s times the slope written to `x`. Rows of weight 0 count
 * nothing, whatever their loss is. theta is NULL for the logistic loss. */
APCG_CLONES static double apcg_block(const double *z, const double *label, const double *weight,
                                     ptrdiff_t mask, int margin, ptrdiff_t size,
                                     const double *theta, double *x) {
    double m[APCG_ROWS], s[APCG_ROWS], value[APCG_ROWS];
    apcg_read_rows(z, label, weight, mask, margin, size, m, s);
    if (theta)
        apcg_interval_rows(m, theta, x, value);
    else
        apcg_logistic_rows(m, x, value);
    for (int i = 0; i < APCG_ROWS; i++) {
        value[i] = s[i] != 0.0 ? s[i] * value[i] : 0.0;
        x[i] = s[i] != 0.0 ? s[i] * x[i] : 0.0;
    }
    return apcg_block_sum(value);
}

/* ---- conjugates -------------------------------------------------------------------------------- */

/* phi*(-a) for a in [0, 1]: a log a + (1 - a) log(1 - a), with 0 log 0 = 0 */
static inline double apcg_entropy(double a) {
    const double least = 2.3e-308, other = 1.0 - a; /* off by a rounding, which the log gets back */
    const double safe = a > least ? a : 1.0, rest = other > 0.0 ? other : 1.0;
    return safe * apcg_log(safe) + (other > 0.0 ? other * apcg_log(rest) - ((other - 1.0) + a) : 0.0);
}

/* One block: the sum of s phi*(-x/s); infinite if some x/s is outside the domain (by more than a
 * rounding, if s is not 1), or x != 0 where s = 0. theta is NULL for the logistic loss. */
APCG_CLONES static double apcg_conjugate_block(const double *x, const double *weight, ptrdiff_t mask,
                                               ptrdiff_t size, const double *theta) {
    static const double logistic[5] = {0.0, 0.0, 0.0, 0.0, 1.0};
    const double *p = theta ? theta : logistic;
    const double k = p[0], epsilon = p[1], half = 0.5 * p[2], lower = p[3], upper = p[4];
    double a[APCG_ROWS] = {0.0}, s[APCG_ROWS] = {0.0}, value[APCG_ROWS], bad[APCG_ROWS] = {0.0};
    const int plain = mask == 0 && weight[0] == 1.0; /* no weights: nothing to divide by */
    for (ptrdiff_t i = 0; i < (plain ? size : 0); i++) {
        a[i] = x[i];
        s[i] = 1.0;
        bad[i] = ((x[i] >= lower) & (x[i] <= upper)) ? 0.0 : 1.0;
    }
    for (ptrdiff_t i = 0; i < (plain ? 0 : size); i++) s[i] = weight[i & mask];
    for (ptrdiff_t i = 0; i < (plain ? 0 : size); i++) {
        const double whole = x[i] / (s[i] != 0.0 ? s[i] : 1.0);
        const double inside = whole * (1.0 - 4.5e-16);
        const double within = ((whole >= lower) & (whole <= upper)) ? whole : inside;
        a[i] = s[i] == 1.0 ? whole : within;
        bad[i] = ((a[i] >= lower) & (a[i] <= upper) & ((s[i] != 0.0) | (x[i] == 0.0))) ? 0.0 : 1.0;
    }
    if (apcg_block_sum(bad) != 0.0) return INFINITY;
    if (theta)
        for (int i = 0; i < APCG_ROWS; i++)
            value[i] = s[i] * (epsilon * fabs(a[i]) - k * a[i] + half * a[i] * a[i]);
    else
        for (int i = 0; i < APCG_ROWS; i++) value[i] = s[i] * apcg_entropy(a[i]);
    return apcg_block_sum(value);
}

#endif
