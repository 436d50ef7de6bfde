/* Least squares by panels: eight columns of a matrix side by side, row after row.
 *
 *     minimize |Y - X W|^2/(2 n) + sum_q a_q |W_q|
 *
 * A panel has `rows` times 8 numbers. What is left, R = Y - X W, is by rows too, of `wide` numbers:
 * the outputs and zeros, up to a multiple of four, or one. A panel takes one pass for its slopes and
 * one to change R, for all its columns and outputs; steps on its groups in turn are by its own Gram
 * matrix. That is what a sweep over single columns does, with an eighth of the traffic of R. */
#ifndef APCG_PANELS_H
#define APCG_PANELS_H

#include "few_outputs.h"

/* out[t][c] += sum_i R[i][t] P[i][c] for `count` outputs */
APCG_INLINE void apcg_panel_some(const double *P, const double *R, ptrdiff_t rows, ptrdiff_t wide,
                                 int count, double *out) {
    apcg_v4 sum[APCG_TOGETHER][2];
    for (int t = 0; t < count; t++) sum[t][0] = sum[t][1] = APCG_ALL(0.0);
    for (ptrdiff_t i = 0; i < rows; i++) {
        const apcg_v4 low = APCG_AT(P, 8 * i), high = APCG_AT(P, 8 * i + 4);
        APCG_UNROLL8 for (int t = 0; t < count; t++) {
            const apcg_v4 r = APCG_ALL(R[i * wide + t]);
            sum[t][0] += low * r;
            sum[t][1] += high * r;
        }
    }
    for (int t = 0; t < count; t++) {
        APCG_PUT(out, 8 * t) = sum[t][0];
        APCG_PUT(out, 8 * t + 4) = sum[t][1];
    }
}

/* The same of one output: four rows at a time, for one sum alone would wait for itself. */
APCG_INLINE void apcg_panel_one(const double *P, const double *R, ptrdiff_t rows, ptrdiff_t wide,
                                double *out) {
    apcg_v4 sum[4][2];
    ptrdiff_t i = 0;
    for (int t = 0; t < 4; t++) sum[t][0] = sum[t][1] = APCG_ALL(0.0);
    for (; i + 4 <= rows; i += 4)
        APCG_UNROLL8 for (int t = 0; t < 4; t++) {
            const apcg_v4 r = APCG_ALL(R[(i + t) * wide]);
            sum[t][0] += APCG_AT(P, 8 * (i + t)) * r;
            sum[t][1] += APCG_AT(P, 8 * (i + t) + 4) * r;
        }
    for (; i < rows; i++) {
        const apcg_v4 r = APCG_ALL(R[i * wide]);
        sum[0][0] += APCG_AT(P, 8 * i) * r;
        sum[0][1] += APCG_AT(P, 8 * i + 4) * r;
    }
    APCG_PUT(out, 0) = (sum[0][0] + sum[1][0]) + (sum[2][0] + sum[3][0]);
    APCG_PUT(out, 4) = (sum[0][1] + sum[1][1]) + (sum[2][1] + sum[3][1]);
}

/* out (outputs x 8) = R'P */
APCG_INLINE void apcg_panel_slopes(const double *P, const double *R, ptrdiff_t rows,
                                   ptrdiff_t outputs, ptrdiff_t wide, double *out) {
    const ptrdiff_t parts = (outputs + APCG_TOGETHER - 1) / APCG_TOGETHER;
    for (ptrdiff_t p = 0, k = 0; p < parts; p++) {
        const ptrdiff_t count = (outputs - k + parts - p - 1) / (parts - p);
        const double *r = R + k;
        double *to = out + 8 * k;
        switch (count) {
        case 1: apcg_panel_one(P, r, rows, wide, to); break;
        case 2: apcg_panel_some(P, r, rows, wide, 2, to); break;
        case 3: apcg_panel_some(P, r, rows, wide, 3, to); break;
        case 4: apcg_panel_some(P, r, rows, wide, 4, to); break;
        case 5: apcg_panel_some(P, r, rows, wide, 5, to); break;
        default: apcg_panel_some(P, r, rows, wide, 6, to); break;
        }
        k += count;
    }
}

/* R -= P D, where D has 8 rows of `wide` numbers. A last output that is alone in its four goes by
 * itself: that takes half of the time. */
APCG_INLINE void apcg_panel_change(const double *P, const double *D, ptrdiff_t rows,
                                   ptrdiff_t outputs, ptrdiff_t wide, double *R) {
    const ptrdiff_t last = outputs - 1;
    if (outputs % 4 == 1) {
        const apcg_v4 low = {D[last], D[wide + last], D[2 * wide + last], D[3 * wide + last]};
        const double *E = D + 4 * wide;
        const apcg_v4 high = {E[last], E[wide + last], E[2 * wide + last], E[3 * wide + last]};
        for (ptrdiff_t i = 0; i < rows; i++) {
            const apcg_v4 both = APCG_AT(P, 8 * i) * low + APCG_AT(P, 8 * i + 4) * high;
            R[i * wide + last] -= APCG_SUM(both);
        }
        outputs--;
    }
    for (ptrdiff_t k = 0; k < outputs; k += 4) {
        apcg_v4 d[8];
        for (int c = 0; c < 8; c++) d[c] = APCG_AT(D, c * wide + k);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const double *x = P + 8 * i;
            const apcg_v4 one = (APCG_ALL(x[0]) * d[0] + APCG_ALL(x[1]) * d[1]) +
                                (APCG_ALL(x[2]) * d[2] + APCG_ALL(x[3]) * d[3]);
            const apcg_v4 two = (APCG_ALL(x[4]) * d[4] + APCG_ALL(x[5]) * d[5]) +
                                (APCG_ALL(x[6]) * d[6] + APCG_ALL(x[7]) * d[7]);
            APCG_PUT(R, i * wide + k) = APCG_AT(R, i * wide + k) - (one + two);
        }
    }
}

/* out (8 x 8, rows of `size` numbers) = scale A'B of two panels */
APCG_CLONES static void apcg_panel_gram(const double *A, const double *B, ptrdiff_t rows,
                                        double scale, ptrdiff_t size, double *out) {
    for (int half = 0; half < 8; half += 4) {
        apcg_v4 sum[4][2];
        for (int t = 0; t < 4; t++) sum[t][0] = sum[t][1] = APCG_ALL(0.0);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const apcg_v4 low = APCG_AT(B, 8 * i), high = APCG_AT(B, 8 * i + 4);
            APCG_UNROLL8 for (int t = 0; t < 4; t++) {
                const apcg_v4 a = APCG_ALL(A[8 * i + half + t]);
                sum[t][0] += low * a;
                sum[t][1] += high * a;
            }
        }
        for (int t = 0; t < 4; t++) {
            APCG_PUT(out, (half + t) * size) = sum[t][0] * APCG_ALL(scale);
            APCG_PUT(out, (half + t) * size + 4) = sum[t][1] * APCG_ALL(scale);
        }
    }
}

/* out[p][i][c] = root_i (X[i][column] - mean[column]) for `count` columns, 8 a panel; a column of -1
 * is zeros. Without root all are 1, without mean all are 0. */
#define APCG_PACK(name, value)                                                                     \
    APCG_CLONES static void name(const value *X, ptrdiff_t rows, ptrdiff_t d,                      \
                                 const ptrdiff_t *column, ptrdiff_t count, const double *mean,     \
                                 const double *root, double *restrict out) {                       \
        for (ptrdiff_t first = 0; first < rows; first += APCG_STRIP) {                             \
            const ptrdiff_t last = first + APCG_STRIP < rows ? first + APCG_STRIP : rows;          \
            for (ptrdiff_t p = 0; p < count; p += 8) {                                             \
                double *restrict to = out + p * rows, less[8], keep[8];                            \
                ptrdiff_t at[8];                                                                   \
                int beside = 1;                                                                    \
                for (int c = 0; c < 8; c++) {                                                      \
                    keep[c] = column[p + c] < 0 ? 0.0 : 1.0;                                       \
                    at[c] = column[p + c] < 0 ? 0 : column[p + c];                                 \
                    less[c] = mean ? mean[at[c]] : 0.0;                                            \
                    beside &= column[p + c] == column[p] + c && column[p] >= 0;                    \
                }                                                                                  \
                for (ptrdiff_t i = first; i < last; i++) {                                         \
                    const value *restrict x = X + i * d;                                           \
                    const double r = root ? root[i] : 1.0;                                         \
                    if (beside) {                                                                  \
                        x += at[0];                                                                \
                        for (int c = 0; c < 8; c++) to[8 * i + c] = r * (x[c] - less[c]);          \
                        continue;                                                                  \
                    }                                                                              \
                    const double take[8] = {x[at[0]], x[at[1]], x[at[2]], x[at[3]],                \
                                            x[at[4]], x[at[5]], x[at[6]], x[at[7]]};               \
                    for (int c = 0; c < 8; c++)                                                    \
                        to[8 * i + c] = r * keep[c] * (take[c] - less[c]);                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
APCG_PACK(apcg_pack_double, double)
APCG_PACK(apcg_pack_float, float)

/* What sweeps go over. Set s is the panels from panel[s] to panel[s + 1], with the groups from
 * group[s] to group[s + 1] and a Gram matrix that begins at gram[s]. Group q is the columns from
 * start[q] to start[q + 1]; those at the end of a panel that are zeros are the last group's. */
typedef struct {
    const double *X, *G, *a, *bend;
    const ptrdiff_t *panel, *group, *gram, *start;
    ptrdiff_t rows, outputs, wide, sets;
    double scale; /* 1/n */
} apcg_panels;

/* A step on one group, by the slopes g of its set: a prox step with `bend`, the largest eigenvalue
 * of its part of G. g is brought up to date. Gives how far it went, relative to a. */
APCG_INLINE double apcg_group_step(const apcg_panels *p, const double *G, ptrdiff_t size,
                                   ptrdiff_t base, ptrdiff_t q, double *restrict w,
                                   double *restrict g, double *restrict step) {
    const ptrdiff_t K = p->outputs, first = p->start[q] - base, last = p->start[q + 1] - base;
    const double bend = p->bend[q], a = p->a[q];
    double square = 0.0, moved = 0.0;
    if (!(bend > 0.0)) return 0.0;
    const double inverse = 1.0 / bend;
    for (ptrdiff_t i = first * K; i < last * K; i++) {
        step[i] = w[i] + g[i] * inverse;
        square += step[i] * step[i];
    }
    const double share = a * inverse;
    const double keep = square > share * share ? 1.0 - share / sqrt(square) : 0.0;
    for (ptrdiff_t i = first * K; i < last * K; i++) {
        const double new = keep * step[i];
        step[i] = new - w[i];
        w[i] = new;
        moved += step[i] * step[i];
    }
    if (moved == 0.0) return 0.0;
    for (ptrdiff_t j = first; j < last; j++) {
        const double *restrict row = G + j * size, *restrict by = step + j * K;
        if (K == 1) {
            for (ptrdiff_t i = 0; i < size; i++) g[i] -= by[0] * row[i];
            continue;
        }
        for (ptrdiff_t i = 0; i < size; i++)
            for (ptrdiff_t k = 0; k < K; k++) g[i * K + k] -= by[k] * row[i];
    }
    return sqrt(moved) * bend / a;
}

/* Steps on the groups of a set in turn, until one turn goes less than `part` as far as the first, or
 * `inner` turns were made. Gives how far the first turn went at most. `room` has 3 sets of the
 * largest size. `alive` is whether a group is not zero. */
APCG_INLINE double apcg_set_step(const apcg_panels *p, ptrdiff_t s, double *restrict R,
                                 double *restrict W, double *room, ptrdiff_t inner, double part,
                                 unsigned char *alive) {
    const ptrdiff_t K = p->outputs, base = 8 * p->panel[s], size = 8 * p->panel[s + 1] - base;
    const double *G = p->G + p->gram[s];
    double *w = W + base * K, *g = room, *step = g + size * K, *old = step + size * K;
    double *change = old + size * K, worst = 0.0;
    for (ptrdiff_t h = p->panel[s]; h < p->panel[s + 1]; h++) {
        apcg_panel_slopes(p->X + 8 * h * p->rows, R, p->rows, K, p->wide, step);
        double *to = g + (8 * h - base) * K;
        for (ptrdiff_t c = 0; c < 8; c++)
            for (ptrdiff_t k = 0; k < K; k++) to[c * K + k] = p->scale * step[8 * k + c];
    }
    for (ptrdiff_t i = 0; i < size * K; i++) old[i] = w[i];
    for (ptrdiff_t turn = 0; turn < inner; turn++) {
        double far = 0.0;
        for (ptrdiff_t q = p->group[s]; q < p->group[s + 1]; q++) {
            const double went = apcg_group_step(p, G, size, base, q, w, g, step);
            far = went > far ? went : far;
        }
        if (turn == 0) worst = far;
        if (!(far > part * worst)) break;
    }
    *alive = 0;
    for (ptrdiff_t i = 0; i < size * K; i++) *alive |= w[i] != 0.0;
    if (worst == 0.0) return 0.0;
    for (ptrdiff_t h = p->panel[s]; h < p->panel[s + 1]; h++) {
        const ptrdiff_t from = (8 * h - base) * K;
        double any = 0.0;
        for (ptrdiff_t c = 0; c < 8; c++)
            for (ptrdiff_t k = 0; k < p->wide; k++) {
                const ptrdiff_t i = from + c * K + k;
                const double d = k < K ? w[i] - old[i] : 0.0;
                change[c * p->wide + k] = d;
                any += fabs(d);
            }
        if (any > 0.0)
            apcg_panel_change(p->X + 8 * h * p->rows, change, p->rows, K, p->wide, R);
    }
    return worst;
}

/* sum_q a_q |W_q| */
APCG_INLINE double apcg_panel_norms(const apcg_panels *p, const double *W) {
    double total = 0.0;
    for (ptrdiff_t q = 0; q < p->group[p->sets]; q++) {
        double square = 0.0;
        for (ptrdiff_t i = p->start[q] * p->outputs; i < p->start[q + 1] * p->outputs; i++)
            square += W[i] * W[i];
        total += p->a[q] * sqrt(square);
    }
    return total;
}

/* Up to `most` sweeps: the first over all sets if `whole`, the others over those that are not zero.
 * Gives how many there were; far[k] is how far sweep k went at most. They end as
 * apcg_group_sweeps does. */
APCG_CLONES static ptrdiff_t apcg_panel_sweeps(const apcg_panels *p, double *R, double *W,
                                               double *room, unsigned char *alive, int whole,
                                               ptrdiff_t most, ptrdiff_t inner, double part,
                                               double target, double enough, double fine,
                                               double least, double *far) {
    ptrdiff_t sweep = 0;
    while (sweep < most) {
        double worst = 0.0;
        for (ptrdiff_t s = 0; s < p->sets; s++) {
            if (!alive[s] && !(whole && sweep == 0)) continue;
            const double went = apcg_set_step(p, s, R, W, room, inner, part, alive + s);
            worst = went > worst ? went : worst;
        }
        far[sweep++] = worst;
        if (worst == 0.0) break;
        const double left = worst * apcg_panel_norms(p, W);
        if ((worst <= target && left <= enough) || (worst <= fine && left <= least)) break;
    }
    return sweep;
}

/* R -= X D, for a change D of W (a row of outputs for each column) */
APCG_CLONES static void apcg_panel_move(const double *X, ptrdiff_t rows, ptrdiff_t panels,
                                        ptrdiff_t outputs, ptrdiff_t wide, const double *D,
                                        double *change, double *R) {
    for (ptrdiff_t h = 0; h < panels; h++) {
        double any = 0.0;
        for (ptrdiff_t c = 0; c < 8; c++)
            for (ptrdiff_t k = 0; k < wide; k++) {
                const double d = k < outputs ? D[(8 * h + c) * outputs + k] : 0.0;
                change[c * wide + k] = d;
                any += fabs(d);
            }
        if (any > 0.0) apcg_panel_change(X + 8 * h * rows, change, rows, outputs, wide, R);
    }
}

/* out (a row of outputs for each column) = scale X'R */
APCG_CLONES static void apcg_panel_products(const double *X, const double *R, ptrdiff_t rows,
                                            ptrdiff_t panels, ptrdiff_t outputs, ptrdiff_t wide,
                                            double scale, double *room, double *out) {
    for (ptrdiff_t h = 0; h < panels; h++) {
        apcg_panel_slopes(X + 8 * h * rows, R, rows, outputs, wide, room);
        for (ptrdiff_t c = 0; c < 8; c++)
            for (ptrdiff_t k = 0; k < outputs; k++)
                out[(8 * h + c) * outputs + k] = scale * room[8 * k + c];
    }
}

/* A bound of the largest eigenvalue of a symmetric B (size x size, rows of `step` numbers) without
 * negative ones: the 16th root of the sum of their 16th powers, which is |B^8|_F^(1/8). For one
 * number that is the number. `room` has two matrices. */
APCG_CLONES static double apcg_largest(const double *B, ptrdiff_t size, ptrdiff_t step,
                                       double *room) {
    double *restrict from = room, *restrict to = room + size * size;
    double trace = 0.0, sum = 0.0;
    for (ptrdiff_t i = 0; i < size; i++) trace += B[i * step + i];
    if (size == 1 || !(trace > 0.0)) return trace;
    for (ptrdiff_t i = 0; i < size; i++)
        for (ptrdiff_t j = 0; j < size; j++) from[i * size + j] = B[i * step + j] / trace;
    for (int times = 0; times < 3; times++) {
        for (ptrdiff_t i = 0; i < size; i++) {
            double *restrict row = to + i * size;
            for (ptrdiff_t j = 0; j < size; j++) row[j] = 0.0;
            for (ptrdiff_t k = 0; k < size; k++) {
                const double b = from[i * size + k], *restrict other = from + k * size;
                for (ptrdiff_t j = 0; j < size; j++) row[j] += b * other[j];
            }
        }
        double *swap = from;
        from = to;
        to = swap;
    }
    for (ptrdiff_t i = 0; i < size * size; i++) sum += from[i] * from[i];
    return trace * sqrt(sqrt(sqrt(sqrt(sum))));
}

#endif
