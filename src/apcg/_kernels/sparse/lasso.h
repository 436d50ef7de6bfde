/* Coordinate descent on least squares with an L1 part, on a Gram matrix.
 *
 *     minimize (1/2) w'G w - q'w + sum_j a_j |w_j| + (b_j/2) w_j^2,   lower_j <= w_j <= upper_j
 *
 * g = q - G w is kept. Parameters have one entry for each column, or one for all (mask 0). */
#ifndef APCG_LASSO_H
#define APCG_LASSO_H

#include <math.h>
#include <stddef.h>

#include "dense.h"

typedef struct {
    const double *a, *b, *lower, *upper;
    ptrdiff_t mask[4]; /* -1 if there is one for each column, 0 if one for all */
} apcg_penalty;

/* The w_j that is best when all others stay: slope is that of the smooth part, h its curvature. */
static inline double apcg_best(double w, double slope, double h, ptrdiff_t j,
                               const apcg_penalty *p) {
    const double a = p->a[j & p->mask[0]], b = p->b[j & p->mask[1]];
    const double lower = p->lower[j & p->mask[2]], upper = p->upper[j & p->mask[3]];
    const double way = slope - b * w, bend = h + b;
    double best = 0.0;
    if (w == 0.0 && fabs(way) <= a) {
        best = 0.0;
    } else if (bend > 0.0) {
        const double u = bend * w + way;
        best = u > a ? (u - a) / bend : (u < -a ? (u + a) / bend : 0.0);
    }
    return best < lower ? lower : (best > upper ? upper : best);
}

/* One sweep: each w_j becomes the best there is when all others stay. Gives the greatest move, times
 * the curvature; size1 becomes |w|_1. */
APCG_CLONES static double apcg_gram_sweep(const double *G, ptrdiff_t size, double *restrict g,
                                          double *restrict w, const apcg_penalty *p,
                                          double *size1) {
    double worst = 0.0;
    *size1 = 0.0;
    for (ptrdiff_t j = 0; j < size; j++) {
        const double *restrict row = G + j * size;
        const double new = apcg_best(w[j], g[j], row[j], j, p), move = new - w[j];
        *size1 += fabs(new);
        if (move == 0.0) continue;
        const double far = fabs(move) * (row[j] + p->b[j & p->mask[1]]);
        worst = far > worst ? far : worst;
        w[j] = new;
        for (ptrdiff_t i = 0; i < size; i++) g[i] -= move * row[i];
    }
    return worst;
}

/* Up to `most` sweeps; gives how many there were. `worst` is the greatest move of the last one, times
 * the curvature. Times the sum of all |w_j| it bounds what is left to gain. It ends when the
 * violation is at most `target` and that bound at most `enough`, or at most `fine` and `least`. */
static ptrdiff_t apcg_gram_sweeps(const double *G, ptrdiff_t size, double *g, double *w,
                                  const apcg_penalty *p, ptrdiff_t most, double target,
                                  double enough, double fine, double least, double *worst) {
    ptrdiff_t sweep = 0;
    while (sweep < most) {
        double size1;
        *worst = apcg_gram_sweep(G, size, g, w, p, &size1);
        sweep++;
        const double left = *worst * size1;
        if ((*worst <= target && left <= enough) || (*worst <= fine && left <= least)) break;
    }
    return sweep;
}

/* How far w_j may go with the penalty smooth between: to 0, if a_j > 0, and to its bounds. */
static inline void apcg_room(double w, ptrdiff_t j, const apcg_penalty *p, double *low,
                             double *high) {
    *low = p->lower[j & p->mask[2]];
    *high = p->upper[j & p->mask[3]];
    if (p->a[j & p->mask[0]] > 0.0) {
        if (w > 0.0 && *low < 0.0) *low = 0.0;
        if (w < 0.0 && *high > 0.0) *high = 0.0;
    }
}

/* The least share of a Newton step that is tried. */
#define APCG_LEAST 0.03

/* The change of the objective by t of the step, with what would leave its interval stopped there. */
static inline double apcg_change(const double *G, ptrdiff_t size, const apcg_penalty *p,
                                 const ptrdiff_t *S, ptrdiff_t count, const double *pull,
                                 const double *step, const double *room, double t, double *move) {
    double gain = 0.0, bend = 0.0;
    for (ptrdiff_t i = 0; i < count; i++) {
        move[i] = fabs(t * step[i]) >= fabs(room[i]) ? room[i] : t * step[i];
        gain += pull[i] * move[i];
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const double *row = G + S[i] * size;
        double even = 0.0, odd = 0.0;
        if (move[i] == 0.0) continue;
        for (ptrdiff_t k = 0; k + 1 < i; k += 2) {
            even += row[S[k]] * move[k];
            odd += row[S[k + 1]] * move[k + 1];
        }
        if (i & 1) even += row[S[i - 1]] * move[i - 1];
        bend += move[i] * (2.0 * (even + odd) + (row[S[i]] + p->b[S[i] & p->mask[1]]) * move[i]);
    }
    return 0.5 * bend - gain;
}

/* One Newton step on the support: the columns where the penalty is smooth. What would leave its
 * interval stops there. If no share of the step brings the objective down, all stop where the first
 * one does.
 * Gives 0 if nothing moved, 1 after a whole step, 2 after one that was cut.
 *
 * U has room for a matrix, S and work for 1 and 4 vectors. A factor that fails is tried again with
 * more on its diagonal: columns may be alike. `failed` is the least number of columns of which one
 * did; for as many it is not tried without. */
APCG_CLONES static int apcg_gram_newton(const double *G, ptrdiff_t size, double *restrict g,
                                        double *restrict w, const apcg_penalty *p, double *U,
                                        ptrdiff_t *S, double *work, ptrdiff_t *failed) {
    double *restrict pull = work, *restrict step = work + size, *restrict scale = work + 2 * size;
    double *restrict move = work + 3 * size;
    ptrdiff_t count = 0;
    for (ptrdiff_t j = 0; j < size; j++) {
        const double a = p->a[j & p->mask[0]], b = p->b[j & p->mask[1]], x = w[j];
        const double h = G[j * size + j] + b;
        if ((x == 0.0 && a > 0.0) || !(h > 0.0)) continue;
        if (!(x > p->lower[j & p->mask[2]] && x < p->upper[j & p->mask[3]])) continue;
        pull[count] = g[j] - b * x - (x > 0.0 ? a : (x < 0.0 ? -a : 0.0));
        scale[count] = 1.0 / sqrt(h);
        S[count++] = j;
    }
    if (count == 0) return 0;
    double jitter = count < *failed ? 0.0 : 1e-3;
    for (;;) {
        for (ptrdiff_t i = 0; i < count; i++) {
            const double *row = G + S[i] * size;
            double *out = U + i * count;
            for (ptrdiff_t k = i + 1; k < count; k++) out[k] = row[S[k]] * scale[i] * scale[k];
            out[i] = 1.0 + jitter;
        }
        if (apcg_cholesky(U, count, 2.3e-16 * (double)count)) break;
        if (jitter == 0.0) *failed = count;
        jitter = jitter > 0.0 ? 1e3 * jitter : 1e-3;
        if (!(jitter < 1e3)) return 0;
    }
    for (ptrdiff_t i = 0; i < count; i++) step[i] = pull[i] * scale[i];
    apcg_cholesky_solve(U, count, step);
    double first = 1.0, found = 0.0, best = 0.0;
    ptrdiff_t edge = -1;
    int cut = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double x = w[S[i]];
        double low, high;
        step[i] *= scale[i];
        apcg_room(x, S[i], p, &low, &high);
        scale[i] = step[i] < 0.0 ? low - x : high - x; /* how far it may go */
        if (fabs(step[i]) >= fabs(scale[i])) {
            const double t = scale[i] / step[i];
            cut = 1;
            if (t < first) {
                first = t;
                edge = i;
            }
        }
    }
    for (double t = 1.0; t >= APCG_LEAST; t *= 0.5) { /* the best of a few shares of it */
        const double value = apcg_change(G, size, p, S, count, pull, step, scale, t, move);
        if (!(value < best)) {
            if (best < 0.0 || value != value) break;
            continue;
        }
        best = value;
        found = t;
        if (!cut) break;
    }
    if (found > 0.0)
        edge = -1;
    else
        found = first;
    for (ptrdiff_t i = 0; i < count; i++) {
        const ptrdiff_t j = S[i];
        const double *restrict row = G + j * size;
        const int far = i == edge || fabs(found * step[i]) >= fabs(scale[i]);
        double low, high;
        apcg_room(w[j], j, p, &low, &high);
        const double to = far ? (step[i] < 0.0 ? low : high) : w[j] + found * step[i];
        const double moved = to - w[j];
        if (moved == 0.0) continue;
        w[j] = to;
        for (ptrdiff_t k = 0; k < size; k++) g[k] -= moved * row[k];
    }
    return cut ? 2 : 1;
}

/* The sum of a_j |w_j| + (b_j/2) w_j^2. */
static inline double apcg_penalty_value(const double *w, ptrdiff_t size, const apcg_penalty *p) {
    double total = 0.0;
    for (ptrdiff_t j = 0; j < size; j++) {
        const double x = w[j];
        if (x != 0.0) total += p->a[j & p->mask[0]] * fabs(x) + 0.5 * p->b[j & p->mask[1]] * x * x;
    }
    return total;
}

/* g_k -= by_k row, for K rows g_k of `size` numbers: four at a time, so that `row` is read once for
 * these. */
static inline __attribute__((always_inline)) void apcg_take_off(const double *restrict row, ptrdiff_t size, const double *by,
                               ptrdiff_t apart, ptrdiff_t outputs, double *restrict g) {
    ptrdiff_t k = 0;
    for (; k + 4 <= outputs; k += 4) {
        const double b0 = by[k * apart], b1 = by[(k + 1) * apart];
        const double b2 = by[(k + 2) * apart], b3 = by[(k + 3) * apart];
        double *restrict g0 = g + k * size, *restrict g1 = g0 + size;
        double *restrict g2 = g1 + size, *restrict g3 = g2 + size;
        for (ptrdiff_t i = 0; i < size; i++) {
            g0[i] -= b0 * row[i];
            g1[i] -= b1 * row[i];
            g2[i] -= b2 * row[i];
            g3[i] -= b3 * row[i];
        }
    }
    for (; k < outputs; k++) {
        const double b = by[k * apart];
        double *restrict to = g + k * size;
        for (ptrdiff_t i = 0; i < size; i++) to[i] -= b * row[i];
    }
}

/* Sweeps over blocks of columns of w (outputs x size), with a_q times the norm of block q as penalty:
 *
 *     minimize (1/2) <w, w G> - <q, w> + sum_q a_q |w_q|
 *
 * Block q is the columns from start[q] to start[q + 1]. A step on it is a prox step with the largest
 * eigenvalue `bend` of its part of G, which is exact for a block of one column. It ends as
 * apcg_gram_sweeps does. `step` has room for the largest block. */
APCG_CLONES static ptrdiff_t apcg_group_sweeps(const double *G, ptrdiff_t size, ptrdiff_t outputs,
                                               const ptrdiff_t *start, ptrdiff_t blocks,
                                               const double *bend, const double *a,
                                               double *restrict g, double *restrict w,
                                               double *restrict step, ptrdiff_t most,
                                               double target, double enough, double fine,
                                               double least, double *worst) {
    ptrdiff_t sweep = 0;
    while (sweep < most) {
        double total = 0.0;
        *worst = 0.0;
        sweep++;
        for (ptrdiff_t q = 0; q < blocks; q++) {
            const ptrdiff_t first = start[q], count = start[q + 1] - first;
            double square = 0.0, moved = 0.0, after = 0.0;
            if (!(bend[q] > 0.0)) continue;
            const double inverse = 1.0 / bend[q], share = a[q] * inverse;
            for (ptrdiff_t k = 0; k < outputs; k++)
                for (ptrdiff_t i = 0; i < count; i++) {
                    const ptrdiff_t at = k * size + first + i;
                    const double to = w[at] + g[at] * inverse;
                    step[k * count + i] = to;
                    square += to * to;
                }
            const double keep = square > share * share ? 1.0 - share / sqrt(square) : 0.0;
            for (ptrdiff_t k = 0; k < outputs; k++)
                for (ptrdiff_t i = 0; i < count; i++) {
                    const ptrdiff_t at = k * size + first + i;
                    const double new = keep * step[k * count + i], by = new - w[at];
                    step[k * count + i] = by;
                    w[at] = new;
                    moved += by * by;
                    after += new * new;
                }
            total += a[q] * sqrt(after);
            if (moved == 0.0) continue;
            const double far = sqrt(moved) * bend[q] / (a[q] > 0.0 ? a[q] : 1.0);
            *worst = far > *worst ? far : *worst;
            for (ptrdiff_t i = 0; i < count; i++)
                apcg_take_off(G + (first + i) * size, size, step + i, count, outputs, g);
        }
        const double left = *worst * total;
        if ((*worst <= target && left <= enough) || (*worst <= fine && left <= least)) break;
    }
    return sweep;
}

#endif
