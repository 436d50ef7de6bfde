/* Coordinate descent on least squares with an L1 part, without a Gram matrix.
 *
 *     minimize (scale/2) |t - A'w|^2 + sum_j a_j |w_j| + (b_j/2) w_j^2
 *
 * The rows A_j have n numbers each, and r = t - A'w is kept. That is for sets of more columns than
 * samples, where a Gram matrix has more numbers than A. Eight rows at a time are a panel: it reads r
 * once for all their slopes, steps by its own small Gram matrix, and changes r once. */
#ifndef APCG_LASSO_ROWS_H
#define APCG_LASSO_ROWS_H

#include "lasso.h"
#include "vectors.h"

typedef struct {
    const double *A; /* size x n */
    double *r;       /* t - A'w */
    double *w;
    double *G;       /* scale A_P A_P' of each panel, 8 x 8 */
    ptrdiff_t size, n;
    double scale;
} apcg_rows;

/* out_c = sum_i x[c]_i r_i of eight rows */
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

/* r += sum_c d_c x[c] of eight rows */
APCG_INLINE void apcg_eight_add(const double *const *x, const double *d, ptrdiff_t n,
                                double *restrict r) {
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const apcg_v4 one = (APCG_AT(x[0], i) * APCG_ALL(d[0]) + APCG_AT(x[1], i) * APCG_ALL(d[1])) +
                            (APCG_AT(x[2], i) * APCG_ALL(d[2]) + APCG_AT(x[3], i) * APCG_ALL(d[3]));
        const apcg_v4 two = (APCG_AT(x[4], i) * APCG_ALL(d[4]) + APCG_AT(x[5], i) * APCG_ALL(d[5])) +
                            (APCG_AT(x[6], i) * APCG_ALL(d[6]) + APCG_AT(x[7], i) * APCG_ALL(d[7]));
        APCG_PUT(r, i) = APCG_AT(r, i) + (one + two);
    }
    for (; i < n; i++)
        for (int c = 0; c < 8; c++) r[i] += d[c] * x[c][i];
}

/* The rows of a panel; the last one has its last row again in the place of those that are missing. */
APCG_INLINE int apcg_panel_rows(const apcg_rows *m, ptrdiff_t first, const double **x) {
    const int count = m->size - first < 8 ? (int)(m->size - first) : 8;
    for (int c = 0; c < 8; c++) x[c] = m->A + (first + (c < count ? c : count - 1)) * m->n;
    return count;
}

/* The Gram matrices of all panels. */
APCG_CLONES static void apcg_rows_gram(const apcg_rows *m) {
    for (ptrdiff_t first = 0; first < m->size; first += 8) {
        const double *x[8];
        double *G = m->G + 8 * first;
        apcg_panel_rows(m, first, x);
        for (int c = 0; c < 8; c++) {
            apcg_eight_dots(x, x[c], m->n, G + 8 * c);
            for (int k = 0; k < 8; k++) G[8 * c + k] *= m->scale;
        }
    }
}

/* One sweep. Gives the greatest move times the curvature; `size1` becomes the sum of all |w_j|, and
 * `squares` the sum of these moves^2/(2 b_j), which is about the gap that it met, if all b_j > 0. */
APCG_CLONES static double apcg_rows_sweep(const apcg_rows *m, const apcg_penalty *p, double *size1,
                                          double *squares) {
    double worst = 0.0;
    *size1 = *squares = 0.0;
    for (ptrdiff_t first = 0; first < m->size; first += 8) {
        const double *x[8], *G = m->G + 8 * first;
        const int count = apcg_panel_rows(m, first, x);
        double g[8], d[8] = {0.0}, any = 0.0;
        apcg_eight_dots(x, m->r, m->n, g);
        for (int c = 0; c < 8; c++) g[c] *= m->scale;
        for (int c = 0; c < count; c++) {
            const ptrdiff_t j = first + c;
            const double h = G[9 * c], b = p->b[j & p->mask[1]];
            const double new = apcg_best(m->w[j], g[c], h, j, p), move = new - m->w[j];
            *size1 += fabs(new);
            if (move == 0.0) continue;
            const double far = fabs(move) * (h + b);
            m->w[j] = new;
            d[c] = -move;
            any = 1.0;
            worst = far > worst ? far : worst;
            *squares += far * far / b;
            for (int k = 0; k < 8; k++) g[k] -= move * G[8 * c + k];
        }
        if (any > 0.0) apcg_eight_add(x, d, m->n, m->r);
    }
    *squares *= 0.5;
    return worst;
}

/* out = sum_i d_i A_{S_i} */
APCG_INLINE void apcg_rows_sum(const apcg_rows *m, const ptrdiff_t *S, ptrdiff_t count,
                               const double *d, double *out) {
    for (ptrdiff_t i = 0; i < m->n; i++) out[i] = 0.0;
    for (ptrdiff_t first = 0; first < count; first += 8) {
        const double *x[8];
        double by[8];
        for (ptrdiff_t c = 0; c < 8; c++) {
            const ptrdiff_t k = first + c;
            x[c] = m->A + S[k < count ? k : first] * m->n;
            by[c] = k < count ? d[k] : 0.0;
        }
        apcg_eight_add(x, by, m->n, out);
    }
}

/* Conjugate gradients on the support S, for the step with (scale A_S A_S' + b) step = pull. `sum`
 * becomes A_S'step. `rest` and `way` have room for S, `along` for n. */
APCG_INLINE ptrdiff_t apcg_rows_gradients(const apcg_rows *m, const apcg_penalty *p, const ptrdiff_t *S,
                                     ptrdiff_t count, const double *pull, ptrdiff_t most,
                                     double part, double *step, double *rest, double *way,
                                     double *sum, double *along) {
    double rho = 0.0, goal = 0.0;
    ptrdiff_t round = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double b = p->b[S[i] & p->mask[1]], h = m->G[8 * S[i] + (S[i] & 7)] + b;
        rest[i] = pull[i];
        way[i] = pull[i] / h;
        step[i] = 0.0;
        rho += rest[i] * way[i];
    }
    for (ptrdiff_t i = 0; i < m->n; i++) sum[i] = 0.0;
    goal = part * part * rho;
    for (; round < most && rho > goal; round++) {
        double bend = 0.0, before = rho, norm = 0.0;
        apcg_rows_sum(m, S, count, way, along);
        for (ptrdiff_t i = 0; i < m->n; i++) norm += along[i] * along[i];
        bend = m->scale * norm;
        for (ptrdiff_t i = 0; i < count; i++) bend += p->b[S[i] & p->mask[1]] * way[i] * way[i];
        if (!(bend > 0.0)) break;
        const double t = rho / bend;
        for (ptrdiff_t i = 0; i < m->n; i++) sum[i] += t * along[i];
        rho = 0.0;
        for (ptrdiff_t first = 0; first < count; first += 8) {
            const double *x[8];
            double dot[8];
            const ptrdiff_t last = first + 8 < count ? first + 8 : count;
            for (ptrdiff_t c = 0; c < 8; c++)
                x[c] = m->A + S[first + c < last ? first + c : first] * m->n;
            apcg_eight_dots(x, along, m->n, dot);
            for (ptrdiff_t i = first; i < last; i++) {
                const double b = p->b[S[i] & p->mask[1]];
                step[i] += t * way[i];
                rest[i] -= t * (m->scale * dot[i - first] + b * way[i]);
                rho += rest[i] * rest[i] / (m->G[8 * S[i] + (S[i] & 7)] + b);
            }
        }
        for (ptrdiff_t i = 0; i < count; i++)
            way[i] = rest[i] / (m->G[8 * S[i] + (S[i] & 7)] + p->b[S[i] & p->mask[1]]) +
                     rho / before * way[i];
    }
    return round;
}

/* A Newton step on the support, by conjugate gradients. What would leave its interval stops there,
 * if a share of the step then brings the objective down; else all stop where the first one does.
 * work has 5 vectors of `size` and 2 of n; S one of `size`. */
APCG_CLONES static ptrdiff_t apcg_rows_newton(const apcg_rows *m, const apcg_penalty *p, ptrdiff_t most,
                                         double part, ptrdiff_t *S, double *work) {
    double *pull = work, *step = pull + m->size, *rest = step + m->size, *way = rest + m->size;
    double *sum = way + m->size, *along = sum + m->n, first = 1.0, t = 1.0;
    ptrdiff_t count = 0;
    int cut = 0;
    for (ptrdiff_t j = 0; j < m->size; j++)
        if (m->w[j] != 0.0) S[count++] = j;
    if (count == 0) return 0;
    for (ptrdiff_t from = 0; from < count; from += 8) {
        const double *x[8];
        double dot[8];
        const ptrdiff_t last = from + 8 < count ? from + 8 : count;
        for (ptrdiff_t c = 0; c < 8; c++)
            x[c] = m->A + S[from + c < last ? from + c : from] * m->n;
        apcg_eight_dots(x, m->r, m->n, dot);
        for (ptrdiff_t i = from; i < last; i++) {
            const double w = m->w[S[i]], a = p->a[S[i] & p->mask[0]];
            pull[i] = m->scale * dot[i - from] - p->b[S[i] & p->mask[1]] * w - (w > 0.0 ? a : -a);
        }
    }
    const ptrdiff_t done = apcg_rows_gradients(m, p, S, count, pull, most, part, step, rest, way, sum, along);
    for (ptrdiff_t i = 0; i < count; i++) {
        const double w = m->w[S[i]];
        if (w * step[i] < 0.0 && fabs(step[i]) >= fabs(w)) {
            cut = 1;
            first = -w / step[i] < first ? -w / step[i] : first;
        }
    }
    for (;; t *= 0.5) {
        double change = 0.0, norm = 0.0;
        const int edge = !(t >= APCG_LEAST);
        if (edge) t = first;
        for (ptrdiff_t i = 0; i < count; i++) {
            const double w = m->w[S[i]], far = t * step[i];
            way[i] = w * far < 0.0 && fabs(far) >= fabs(w) ? -w : far;
            change += way[i] * (0.5 * p->b[S[i] & p->mask[1]] * way[i] - pull[i]);
        }
        if (cut)
            apcg_rows_sum(m, S, count, way, along);
        else
            for (ptrdiff_t i = 0; i < m->n; i++) along[i] = sum[i];
        for (ptrdiff_t i = 0; i < m->n; i++) norm += along[i] * along[i];
        if (edge || change + 0.5 * m->scale * norm < 0.0) break;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const double w = m->w[S[i]];
        m->w[S[i]] = way[i] == -w ? 0.0 : w + way[i];
    }
    for (ptrdiff_t i = 0; i < m->n; i++) m->r[i] -= along[i];
    return done;
}

#include <stdio.h>
#include <stdlib.h>
APCG_CLONES static ptrdiff_t apcg_rows_path(const apcg_rows *m, const apcg_penalty *unit,
                                            const double *alphas, ptrdiff_t count, double fine,
                                            double share, ptrdiff_t most, ptrdiff_t gradients, double part, int turns,
                                            double *a, double *b, ptrdiff_t *S, double *work,
                                            double *out) {
    const int talk = getenv("TALK") != 0, noex = getenv("NOEX") != 0;
    apcg_penalty p = *unit;
    double *old = work + 5 * m->size + 2 * m->n; /* n */
    double *now = old + m->n; /* n */
    p.a = a;
    p.b = b;
    apcg_rows_gram(m);
    for (ptrdiff_t k = 0; k < count; k++) {
        const ptrdiff_t na = p.mask[0] ? m->size : 1, nb = p.mask[1] ? m->size : 1;
        double value = 0.0, before = INFINITY, norm = 0.0;
        ptrdiff_t sweeps = 0, steps = 0, all = 0;
        int ended = 0, ridged = 1;
        for (ptrdiff_t j = 0; j < na; j++) a[j] = alphas[k] * unit->a[j];
        for (ptrdiff_t j = 0; j < nb; j++) b[j] = alphas[k] * unit->b[j], ridged &= b[j] > 0.0;
        for (ptrdiff_t i = 0; i < m->n; i++) now[i] = m->r[i];
        if (k >= 2 && !noex) { /* where the last two point to */
            const double by = log(alphas[k - 1] / alphas[k]) / log(alphas[k - 2] / alphas[k - 1]);
            for (ptrdiff_t i = 0; i < m->n; i++) m->r[i] += by * (m->r[i] - old[i]);
            for (ptrdiff_t j = 0; j < m->size; j++) {
                const double x = m->w[j], far = by * (x - out[(k - 2) * m->size + j]);
                double to = x + far;
                if (far == 0.0) continue;
                if (to * x <= 0.0) {
                    const double back = to;
                    const double *row = m->A + j * m->n;
                    to = 0.0;
                    for (ptrdiff_t i = 0; i < m->n; i++) m->r[i] += back * row[i];
                }
                m->w[j] = to;
            }
        }
        for (ptrdiff_t i = 0; i < m->n; i++) old[i] = now[i];
        for (ptrdiff_t i = 0; i < m->n; i++) norm += m->r[i] * m->r[i];
        value = 0.5 * m->scale * norm + apcg_penalty_value(m->w, m->size, &p);
        const double goal = share * fabs(value);
        for (int turn = 0; turn < turns && !ended; turn++) {
            if (turn) {steps += apcg_rows_newton(m, &p, gradients, part, S, work);}
            before = INFINITY;
            for (sweeps = 1;; sweeps++) {
                double size1, squares;
                all++;
                const double worst = apcg_rows_sweep(m, &p, &size1, &squares);
                const double left = ridged ? squares : worst * size1;
                ended = worst == 0.0 || (left <= goal && (ridged || worst <= alphas[k] * fine));
                if (ended) break;
                const double rate = left / before;
                before = left;
                if (sweeps < 3) continue;
                if (sweeps >= 100 || !(rate < 1.0) || log(goal / left) / log(rate) > (double)most) break;
            }
        }
        if (talk) {
            ptrdiff_t s = 0;
            for (ptrdiff_t j = 0; j < m->size; j++) s += m->w[j] != 0.0;
            printf("alpha %g size %ld support %ld sweeps %ld cg %ld\n", alphas[k], (long)m->size, (long)s, (long)all, (long)steps);
        }
        if (!ended) return k;
        for (ptrdiff_t j = 0; j < m->size; j++) out[k * m->size + j] = m->w[j];
    }
    return count;
}

#endif
