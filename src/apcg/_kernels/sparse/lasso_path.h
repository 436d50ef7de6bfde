/* Least squares with an L1 part for one alpha after the other:
 *
 *     minimize (1/2n) |t - A'w|^2 + alpha sum_j a_j |w_j| + (b_j/2) w_j^2
 *
 * on the Gram matrix of the rows A_j, or, where there are more of them than samples, on the rows
 * themselves: the Gram matrix then has more numbers than A. */
#ifndef APCG_LASSO_PATH_H
#define APCG_LASSO_PATH_H

#include "lasso.h"
#include "vectors.h"

/* Where it is. `kept` is linear in w: each w_j takes w_j M_j from it. */
typedef struct {
    const double *M;  /* G = A A'/n, or A: a row for each w_j */
    ptrdiff_t length; /* of a row of M, and of `kept` */
    double *kept;     /* q - G w, or t - A'w */
    const double *q;  /* A t/n; only with G */
    double *panels;   /* A_P A_P'/n for each eight rows, 8 x 8; only with A, else NULL */
    double *w;
    ptrdiff_t size;
    double total, scale; /* t't/n, 1/n */
} apcg_fit;

/* out_c = x_c'r of eight rows */
APCG_INLINE void apcg_eight_dots(const double *const *x, const double *r, ptrdiff_t n,
                                 double *out) {
    apcg_v4 sum[8];
    ptrdiff_t i = 0;
    APCG_UNROLL8 for (int c = 0; c < 8; c++) sum[c] = APCG_ALL(0.0);
    for (; i + 4 <= n; i += 4) {
        const apcg_v4 at = APCG_AT(r, i);
        APCG_UNROLL8 for (int c = 0; c < 8; c++) sum[c] += APCG_AT(x[c], i) * at;
    }
    APCG_UNROLL8 for (int c = 0; c < 8; c++) out[c] = APCG_SUM(sum[c]);
    for (; i < n; i++)
        for (int c = 0; c < 8; c++) out[c] += x[c][i] * r[i];
}

/* r -= sum_c d_c x_c of eight rows */
APCG_INLINE void apcg_eight_take(const double *const *x, const double *d, ptrdiff_t n,
                                 double *restrict r) {
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        apcg_v4 sum[2] = {APCG_ALL(0.0), APCG_ALL(0.0)};
        APCG_UNROLL8 for (int c = 0; c < 8; c++) sum[c & 1] += APCG_AT(x[c], i) * APCG_ALL(d[c]);
        APCG_PUT(r, i) = APCG_AT(r, i) - (sum[0] + sum[1]);
    }
    for (; i < n; i++)
        for (int c = 0; c < 8; c++) r[i] -= d[c] * x[c][i];
}

/* The eight rows from `first` on, or as many as there are, which it gives: the last one again in the
 * place of those that are missing. */
APCG_INLINE int apcg_eight(const apcg_fit *f, ptrdiff_t first, const double **x) {
    const int count = f->size - first < 8 ? (int)(f->size - first) : 8;
    for (int c = 0; c < 8; c++) x[c] = f->M + (first + (c < count ? c : count - 1)) * f->length;
    return count;
}

/* The Gram matrices of all panels. */
APCG_CLONES static void apcg_panel_grams(const apcg_fit *f) {
    for (ptrdiff_t first = 0; first < f->size; first += 8) {
        const double *x[8];
        double *G = f->panels + 8 * first;
        apcg_eight(f, first, x);
        for (int c = 0; c < 8; c++) {
            apcg_eight_dots(x, x[c], f->length, G + 8 * c);
            for (int k = 0; k < 8; k++) G[8 * c + k] *= f->scale;
        }
    }
}

/* A sweep over rows, eight at a time: r is read once for their slopes, and changed once after steps
 * by their Gram matrix. Gives what apcg_gram_sweep does. */
APCG_CLONES static double apcg_row_sweep(const apcg_fit *f, const apcg_penalty *p, double *size1,
                                         double *squares) {
    double worst = 0.0;
    *size1 = *squares = 0.0;
    for (ptrdiff_t first = 0; first < f->size; first += 8) {
        const double *x[8], *G = f->panels + 8 * first;
        const int count = apcg_eight(f, first, x);
        double g[8], moved[8] = {0.0};
        int any = 0;
        apcg_eight_dots(x, f->kept, f->length, g);
        for (int c = 0; c < 8; c++) g[c] *= f->scale;
        for (int c = 0; c < count; c++) {
            const double move = apcg_coordinate(f->w, g[c], G[9 * c], first + c, p, &worst, size1,
                                                squares);
            if (move == 0.0) continue;
            moved[c] = move;
            any = 1;
            for (int k = 0; k < 8; k++) g[k] -= move * G[8 * c + k];
        }
        if (any) apcg_eight_take(x, moved, f->length, f->kept);
    }
    return worst;
}

/* To where the last two answers point, with `by` times the way between them; what would leave its
 * interval stops there. */
APCG_CLONES static void apcg_ahead(const apcg_fit *f, double by, const double *w_before,
                                   const double *kept_before, const apcg_penalty *p) {
    double *restrict kept = f->kept, *restrict w = f->w;
    for (ptrdiff_t i = 0; i < f->length; i++) kept[i] += by * (kept[i] - kept_before[i]);
    for (ptrdiff_t j = 0; j < f->size; j++) {
        const double *restrict row = f->M + j * f->length, to = w[j] + by * (w[j] - w_before[j]);
        double low, high;
        if (to == w[j]) continue;
        apcg_room(w[j], j, p, &low, &high);
        w[j] = to < low ? low : (to > high ? high : to);
        const double back = to - w[j];
        if (back == 0.0) continue;
        for (ptrdiff_t i = 0; i < f->length; i++) kept[i] += back * row[i];
    }
}

/* The objective. */
static inline double apcg_value(const apcg_fit *f, const apcg_penalty *p) {
    double loss = 0.0;
    if (f->panels) {
        for (ptrdiff_t i = 0; i < f->length; i++) loss += f->kept[i] * f->kept[i];
        loss *= f->scale;
    } else {
        loss = f->total;
        for (ptrdiff_t j = 0; j < f->size; j++) loss -= (f->q[j] + f->kept[j]) * f->w[j];
    }
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
        const double a = p->a[j & p->mask[0]], b = p->b[j & p->mask[1]], g = f->kept[j];
        const double w = f->w[j], over = fabs(g) > a ? fabs(g) - a : 0.0;
        gap += a * fabs(w) - g * w + 0.5 * (b * w * w + over * over / b);
    }
    return gap;
}

/* The least number of sweeps before they are given up: on a Gram matrix, on rows. */
#define APCG_TRIES_GRAM 5
#define APCG_TRIES_ROWS 3
/* A rate below this is not relied on: it may be that of another alpha, with other columns. */
#define APCG_FASTEST 0.1

/* Sweeps until what is left is at most `goal`, and, if not all b_j > 0, the violation at most `fine`:
 * gives whether it got there. It gives up once that is predicted to take more than `most` more.
 *
 * On rows what is left is not known, but what a sweep met and by which `rate` that falls, in this
 * call or in the last one: the squares that are to come are rate/(1 - rate) of those it met. (To take
 * what it met for what is left ends too soon where sweeps are slow, and too late where they are
 * fast.) */
static int apcg_sweeps(const apcg_fit *f, const apcg_penalty *p, int ridged, ptrdiff_t most,
                       double goal, double fine, double *rate) {
    const ptrdiff_t tries = f->panels ? APCG_TRIES_ROWS : APCG_TRIES_GRAM;
    double before = 0.0;
    for (ptrdiff_t sweep = 1;; sweep++) {
        double size1, squares, worst, over;
        worst = f->panels ? apcg_row_sweep(f, p, &size1, &squares)
                          : apcg_gram_sweep(f->M, f->size, f->kept, f->w, p, &size1, &squares);
        if (worst == 0.0) return 1;
        if (!ridged)
            over = fmax(worst * size1 / goal, worst / fine);
        else
            over = (f->panels ? 0.5 * squares : apcg_ridged_gap(f, p)) / goal;
        if (sweep > 1) *rate = over / before;
        before = over;
        if (f->panels && ridged) {
            const double slow = fmax(*rate, APCG_FASTEST);
            over *= slow < 1.0 ? slow / (1.0 - slow) : INFINITY;
        }
        if (over <= 1.0) return 1;
        const double left = -log(over) / log(*rate);
        if (sweep >= tries && (!(left > 0.0 && left <= (double)most) || sweep >= 4 * most)) return 0;
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
 * for an alpha, columns are alike: the later ones begin with a Newton step. On rows there is none.
 * Row k of `out` becomes the answer for alpha k. Gives how many there are: the next one did not end.
 *
 * a and b have room for the scaled parameters, `points` for two of `kept`; U, S and work are as for
 * apcg_gram_newton. */
static ptrdiff_t apcg_path(const apcg_fit *f, const apcg_penalty *unit, const double *alphas,
                           ptrdiff_t count, double fine, double share, ptrdiff_t most, int newtons,
                           int turns, double *a, double *b, double *points, double *U, ptrdiff_t *S,
                           double *work, double *out) {
    const ptrdiff_t size = f->size;
    const size_t bytes = (size_t)f->length * sizeof(double);
    double *now = points, *before = points + f->length, rate = 1.0; /* not known yet */
    apcg_penalty p = *unit;
    int alike = 0;
    p.a = a;
    p.b = b;
    if (f->panels) apcg_panel_grams(f);
    for (ptrdiff_t k = 0; k < count; k++) {
        int ended = 0;
        for (ptrdiff_t j = 0; j < (p.mask[0] ? size : 1); j++) a[j] = alphas[k] * unit->a[j];
        for (ptrdiff_t j = 0; j < (p.mask[1] ? size : 1); j++) b[j] = alphas[k] * unit->b[j];
        const int ridged = apcg_ridged(&p, size);
        memcpy(now, f->kept, bytes);
        const double *last = alphas + k;
        const double by = k < 2 ? 0.0 : log(last[-1] / last[0]) / log(last[-2] / last[-1]);
        if (!alike && by > 0.0 && by <= APCG_FARTHEST)
            apcg_ahead(f, by, out + (k - 2) * size, before, &p);
        memcpy(before, now, bytes);
        const double goal = share * fabs(apcg_value(f, &p));
        for (int turn = 0; turn < turns && !ended; turn++) {
            ptrdiff_t failed = size + 1, support = 0, dear = 0;
            if (turn == 0 && alike)
                apcg_gram_newton(f->M, size, f->kept, f->w, &p, U, S, work, &failed);
            for (ptrdiff_t j = 0; j < size; j++) support += f->w[j] != 0.0;
            if (!f->panels) dear = support * support / (6 * size); /* they cost what a factor does */
            ended = apcg_sweeps(f, &p, ridged, dear < most ? most : dear, goal, alphas[k] * fine,
                                &rate);
            alike |= !ended;
            for (int step = 0; step < newtons && !ended; step++)
                if (apcg_gram_newton(f->M, size, f->kept, f->w, &p, U, S, work, &failed) < 2) break;
        }
        if (!ended) return k;
        memcpy(out + k * size, f->w, (size_t)size * sizeof(double));
    }
    return count;
}

#endif
