/* Least squares with an L1 part for one alpha after the other, on a Gram matrix:
 *
 *     minimize (1/2) w'G w - q'w + alpha sum_j a_j |w_j| + (b_j/2) w_j^2 */
#ifndef APCG_LASSO_PATH_H
#define APCG_LASSO_PATH_H

#include <string.h>

#include "lasso.h"

/* Where it is; g = q - G w. */
typedef struct {
    const double *G, *q;
    double *g, *w;
    ptrdiff_t size;
    double total; /* twice the objective at w = 0 */
} apcg_fit;

/* To where the last two answers point, with `by` times the way between them; what would leave its
 * interval stops there. */
APCG_CLONES static void apcg_ahead(const apcg_fit *f, double by, const double *w_before,
                                   const double *g_before, const apcg_penalty *p) {
    double *restrict g = f->g, *restrict w = f->w;
    for (ptrdiff_t i = 0; i < f->size; i++) g[i] += by * (g[i] - g_before[i]);
    for (ptrdiff_t j = 0; j < f->size; j++) {
        const double *restrict row = f->G + j * f->size, to = w[j] + by * (w[j] - w_before[j]);
        double low, high;
        if (to == w[j]) continue;
        apcg_room(w[j], j, p, &low, &high);
        w[j] = to < low ? low : (to > high ? high : to);
        const double back = to - w[j];
        if (back == 0.0) continue;
        for (ptrdiff_t i = 0; i < f->size; i++) g[i] += back * row[i];
    }
}

/* The objective. */
static inline double apcg_value(const apcg_fit *f, const apcg_penalty *p) {
    double loss = f->total;
    for (ptrdiff_t j = 0; j < f->size; j++) loss -= (f->q[j] + f->g[j]) * f->w[j];
    return 0.5 * loss + apcg_penalty_value(f->w, f->size, p);
}

/* Whether all b_j > 0, and there are no bounds. */
static inline int apcg_ridged(const apcg_penalty *p, ptrdiff_t size) {
    for (ptrdiff_t j = 0; j < size; j++)
        if (!(p->b[j & p->mask[1]] > 0.0) || p->lower[j & p->mask[2]] > -INFINITY ||
            p->upper[j & p->mask[3]] < INFINITY)
            return 0;
    return 1;
}

/* P - D on the columns of a Gram matrix, if it is ridged:
 *
 *     sum_j a_j |w_j| + (b_j/2) w_j^2 + (|g_j| - a_j)_+^2/(2 b_j) - g_j w_j */
static inline double apcg_ridged_gap(const apcg_fit *f, const apcg_penalty *p) {
    double gap = 0.0;
    for (ptrdiff_t j = 0; j < f->size; j++) {
        const double a = p->a[j & p->mask[0]], b = p->b[j & p->mask[1]], g = f->g[j];
        const double w = f->w[j], over = fabs(g) > a ? fabs(g) - a : 0.0;
        gap += a * fabs(w) - g * w + 0.5 * (b * w * w + over * over / b);
    }
    return gap;
}

/* The least number of sweeps before they are given up. */
#define APCG_TRIES 5

/* Sweeps until what is left is at most `goal`, and, if not all b_j > 0, the violation at most `fine`:
 * gives whether it got there. It gives up once that is predicted to take more than `most` more. */
static int apcg_sweeps(const apcg_fit *f, const apcg_penalty *p, int ridged, ptrdiff_t most,
                       double goal, double fine) {
    double before = INFINITY;
    for (ptrdiff_t sweep = 1;; sweep++) {
        double size1, over;
        const double worst = apcg_gram_sweep(f->G, f->size, f->g, f->w, p, &size1);
        if (worst == 0.0) return 1;
        over = ridged ? apcg_ridged_gap(f, p) / goal : fmax(worst * size1 / goal, worst / fine);
        if (over <= 1.0) return 1;
        const double left = -log(over) / log(over / before);
        before = over;
        if (sweep >= APCG_TRIES && (!(left > 0.0 && left <= (double)most) || sweep >= 4 * most))
            return 0;
    }
}

/* It goes no further ahead than so many times the way between the last two: digits would be lost. */
#define APCG_FARTHEST 3.0

/* The answers for one alpha after the other: each begins where the last two point to, unless columns
 * are alike.
 *
 * Sweeps and Newton steps (`newtons`) take turns (`turns`), until the violation is at most alpha
 * `fine` and the gain to come at most `share` of the value; if all b_j > 0, until the gap is. Sweeps
 * go on while they are predicted to end within `most`, or within what a factor costs. If they do not
 * for an alpha, columns are alike: the later ones begin with a Newton step.
 * Row k of `out` becomes the answer for alpha k. Gives how many there are: the next one did not end.
 *
 * a and b have room for the scaled parameters, `points` for two of g; U, S and work are as for
 * apcg_gram_newton. */
static ptrdiff_t apcg_path(const apcg_fit *f, const apcg_penalty *unit, const double *alphas,
                           ptrdiff_t count, double fine, double share, ptrdiff_t most, int newtons,
                           int turns, double *a, double *b, double *points, double *U, ptrdiff_t *S,
                           double *work, double *out) {
    const ptrdiff_t size = f->size;
    const size_t bytes = (size_t)size * sizeof(double);
    double *now = points, *before = points + size;
    apcg_penalty p = *unit;
    int alike = 0;
    p.a = a;
    p.b = b;
    for (ptrdiff_t k = 0; k < count; k++) {
        int ended = 0;
        for (ptrdiff_t j = 0; j < (p.mask[0] ? size : 1); j++) a[j] = alphas[k] * unit->a[j];
        for (ptrdiff_t j = 0; j < (p.mask[1] ? size : 1); j++) b[j] = alphas[k] * unit->b[j];
        const int ridged = apcg_ridged(&p, size);
        memcpy(now, f->g, bytes);
        const double *last = alphas + k;
        const double by = k < 2 ? 0.0 : log(last[-1] / last[0]) / log(last[-2] / last[-1]);
        if (!alike && by > 0.0 && by <= APCG_FARTHEST)
            apcg_ahead(f, by, out + (k - 2) * size, before, &p);
        memcpy(before, now, bytes);
        const double goal = share * fabs(apcg_value(f, &p));
        for (int turn = 0; turn < turns && !ended; turn++) {
            ptrdiff_t failed = size + 1, support = 0;
            if (turn == 0 && alike)
                apcg_gram_newton(f->G, size, f->g, f->w, &p, U, S, work, &failed);
            for (ptrdiff_t j = 0; j < size; j++) support += f->w[j] != 0.0;
            const ptrdiff_t dear = support * support / (6 * size); /* they cost what a factor does */
            ended = apcg_sweeps(f, &p, ridged, dear < most ? most : dear, goal, alphas[k] * fine);
            alike |= !ended;
            for (int step = 0; step < newtons && !ended; step++)
                if (apcg_gram_newton(f->G, size, f->g, f->w, &p, U, S, work, &failed) < 2) break;
        }
        if (!ended) return k;
        memcpy(out + k * size, f->w, bytes);
    }
    return count;
}

#endif
