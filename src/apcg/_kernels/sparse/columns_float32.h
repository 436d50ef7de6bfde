/* Coordinate descent on dense columns in float32, for the logistic loss and the squared one.
 *
 *     minimize sum_i s_i phi_i(z_i) + sum_j a_j |w_j| + (b_j/2) w_j^2,   z = X w + b
 *
 * u = -s phi' and bend = s phi'' are kept at z. A step on a column takes its slope and its curvature
 * from them, and moves z, and u as if bend stayed. After a few steps u and bend are computed anew from
 * z, and steps that went too far are halved. The bits are the same with vectors of any width. */
#ifndef APCG_STRIPS_H
#define APCG_STRIPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lasso.h"

#define APCG_LANES 16
/* Rows of which a sum is float32; such sums are added as doubles. A multiple of the lanes. */
#define APCG_STRIP 512
/* Columns that may move before u and bend are computed anew. */
#define APCG_MOVES 8

/* Rows are padded to a multiple of the lanes; those that are padding have s = 0. */
typedef struct {
    ptrdiff_t n;                      /* with the padding */
    const float *label, *s;
    float *z, *old, *u, *bend;
    float floor;                      /* the least curvature, as part of s */
    int squared;                      /* the loss is (z - y)^2/2: bend stays, and z is not kept */
    int intercept;
    double *h;                        /* squared: curvatures of columns, below 0 if not known */
    double b, old_b;
} apcg_float32_rows;

/* exp(x) for x <= 0, within some 1e-7 */
static inline float apcg_expf(float x) {
    const float magic = 12582912.0f; /* 1.5 2^23: adding it rounds to an integer */
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * 1.44269504f + magic, k = shifted - magic;
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits, power;
    memcpy(&bits, &shifted, 4);
    memcpy(&power, &p, 4);
    power += bits << 23;
    memcpy(&p, &power, 4);
    return p;
}

static inline double apcg_lanes(const float *lane) {
    double total = 0.0;
    for (int l = 0; l < APCG_LANES; l++) total += lane[l];
    return total;
}

/* u and bend at z; gives the slope of the losses along z - old there. */
APCG_CLONES static double apcg_float32_refresh(apcg_float32_rows *rows) {
    double along = 0.0;
    for (ptrdiff_t start = 0; start < rows->n; start += APCG_STRIP) {
        const ptrdiff_t size = rows->n - start < APCG_STRIP ? rows->n - start : APCG_STRIP;
        const float *restrict z = rows->z + start, *restrict old = rows->old + start;
        const float *restrict y = rows->label + start, *restrict s = rows->s + start;
        float *restrict u = rows->u + start, *restrict bend = rows->bend + start;
        const float floor = rows->floor;
        float sum[APCG_LANES] = {0.0f};
        for (ptrdiff_t i = 0; i < size; i++) {
            const float m = y[i] * z[i], e = apcg_expf(m > 0.0f ? -m : m);
            const float q = 1.0f / (1.0f + e), p = m > 0.0f ? e * q : q, c = e * q * q;
            u[i] = s[i] * y[i] * p;
            bend[i] = s[i] * (c > floor ? c : floor);
        }
        for (ptrdiff_t i = 0; i < size; i += APCG_LANES)
            for (int l = 0; l < APCG_LANES; l++) sum[l] -= u[i + l] * (z[i + l] - old[i + l]);
        along += apcg_lanes(sum);
    }
    return along;
}

/* The slope and the curvature along a column. */
APCG_CLONES static void apcg_float32_look(const apcg_float32_rows *rows, const float *column, double *slope,
                                        double *h) {
    *slope = *h = 0.0;
    for (ptrdiff_t start = 0; start < rows->n; start += APCG_STRIP) {
        const ptrdiff_t size = rows->n - start < APCG_STRIP ? rows->n - start : APCG_STRIP;
        const float *restrict x = column + start, *restrict u = rows->u + start;
        const float *restrict bend = rows->bend + start;
        float first[APCG_LANES] = {0.0f}, second[APCG_LANES] = {0.0f};
        for (ptrdiff_t i = 0; i < size; i += APCG_LANES)
            for (int l = 0; l < APCG_LANES; l++) {
                first[l] += x[i + l] * u[i + l];
                second[l] += x[i + l] * x[i + l] * bend[i + l];
            }
        *slope += apcg_lanes(first);
        *h += apcg_lanes(second);
    }
}

/* The slope alone. */
APCG_CLONES static double apcg_float32_dot(const apcg_float32_rows *rows, const float *column) {
    double total = 0.0;
    for (ptrdiff_t start = 0; start < rows->n; start += APCG_STRIP) {
        const ptrdiff_t size = rows->n - start < APCG_STRIP ? rows->n - start : APCG_STRIP;
        const float *restrict x = column + start, *restrict u = rows->u + start;
        float lane[APCG_LANES] = {0.0f};
        for (ptrdiff_t i = 0; i < size; i += APCG_LANES)
            for (int l = 0; l < APCG_LANES; l++) lane[l] += x[i + l] * u[i + l];
        total += apcg_lanes(lane);
    }
    return total;
}

APCG_CLONES static void apcg_float32_slide(apcg_float32_rows *rows, const float *column, double by) {
    const float step = (float)by, *restrict x = column, *restrict bend = rows->bend;
    float *restrict u = rows->u;
    for (ptrdiff_t i = 0; i < rows->n; i++) u[i] -= step * x[i] * bend[i];
}

APCG_CLONES static void apcg_float32_move(apcg_float32_rows *rows, const float *column, double by) {
    const float step = (float)by, *restrict x = column, *restrict bend = rows->bend;
    float *restrict z = rows->z, *restrict u = rows->u;
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        const float d = step * x[i];
        z[i] += d;
        u[i] -= d * bend[i];
    }
}

/* To the best intercept of the model; gives what that brings in it, twice. */
APCG_CLONES static double apcg_float32_balance(apcg_float32_rows *rows) {
    double slope = 0.0, h = 0.0;
    for (ptrdiff_t start = 0; start < rows->n; start += APCG_STRIP) {
        const ptrdiff_t size = rows->n - start < APCG_STRIP ? rows->n - start : APCG_STRIP;
        float first[APCG_LANES] = {0.0f}, second[APCG_LANES] = {0.0f};
        for (ptrdiff_t i = start; i < start + size; i += APCG_LANES)
            for (int l = 0; l < APCG_LANES; l++) {
                first[l] += rows->u[i + l];
                second[l] += rows->bend[i + l];
            }
        slope += apcg_lanes(first);
        h += apcg_lanes(second);
    }
    if (!(h > 0.0)) return 0.0;
    const float step = (float)(slope / h);
    rows->b += step;
    for (ptrdiff_t i = 0; i < rows->n; i++) rows->u[i] -= step * rows->bend[i];
    if (!rows->squared)
        for (ptrdiff_t i = 0; i < rows->n; i++) rows->z[i] += step;
    return slope * slope / h;
}

APCG_CLONES static void apcg_float32_back(apcg_float32_rows *rows, float keep) {
    for (ptrdiff_t i = 0; i < rows->n; i++)
        rows->z[i] = rows->old[i] + keep * (rows->z[i] - rows->old[i]);
}

/* Columns that have moved since u and bend were computed, from where, and what that brings at least,
 * twice, in the model. */
typedef struct {
    ptrdiff_t column[APCG_MOVES];
    double from[APCG_MOVES], gain;
    int count;
} apcg_moves;

/* The slope of the penalty along the moves, where they have led. */
static double apcg_moves_slope(const apcg_moves *moves, const double *w, const apcg_penalty *p) {
    double total = 0.0;
    for (int k = 0; k < moves->count; k++) {
        const ptrdiff_t j = moves->column[k];
        const double x = w[j], way = x - moves->from[k], side = x != 0.0 ? x : moves->from[k];
        const double a = p->a[j & p->mask[0]], b = p->b[j & p->mask[1]];
        total += way * ((side > 0.0 ? a : -a) + b * x);
    }
    return total;
}

/* u and bend anew. Where the objective rises by more than the model promised it would fall, the moves
 * are halved, and at last taken back. Gives how often. */
static ptrdiff_t apcg_float32_settle(apcg_float32_rows *rows, apcg_moves *moves, double *w,
                                   const apcg_penalty *p) {
    ptrdiff_t cuts = 0;
    while (!rows->squared) {
        const double rise = apcg_float32_refresh(rows) + apcg_moves_slope(moves, w, p);
        if (rise <= moves->gain || cuts == 8) break;
        const float keep = ++cuts < 8 ? 0.5f : 0.0f;
        apcg_float32_back(rows, keep);
        for (int k = 0; k < moves->count; k++)
            w[moves->column[k]] = moves->from[k] + keep * (w[moves->column[k]] - moves->from[k]);
        rows->b = rows->old_b + keep * (rows->b - rows->old_b);
        moves->gain *= keep;
    }
    return cuts;
}

/* From here on moves may be halved. */
static void apcg_float32_begin(apcg_float32_rows *rows, apcg_moves *moves) {
    if (!rows->squared) memcpy(rows->old, rows->z, (size_t)rows->n * sizeof(float));
    rows->old_b = rows->b;
    moves->count = 0;
    moves->gain = rows->intercept ? apcg_float32_balance(rows) : 0.0;
}

/* One sweep over `count` columns of X (by columns, rows->n numbers each). Gives how often steps were
 * cut. */
static ptrdiff_t apcg_float32_sweep(apcg_float32_rows *rows, const float *X, const ptrdiff_t *columns,
                                  ptrdiff_t count, double *w, const apcg_penalty *p) {
    apcg_moves moves;
    ptrdiff_t cuts = 0;
    apcg_float32_begin(rows, &moves);
    for (ptrdiff_t k = 0; k < count; k++) {
        const ptrdiff_t j = columns[k];
        const float *column = X + j * rows->n;
        double slope, h;
        if (rows->squared && rows->h[j] >= 0.0) {
            slope = apcg_float32_dot(rows, column);
            h = rows->h[j];
        } else {
            apcg_float32_look(rows, column, &slope, &h);
            if (rows->squared) rows->h[j] = h;
        }
        const double new = apcg_best(w[j], slope, h, j, p), move = new - w[j];
        if (move == 0.0) continue;
        moves.column[moves.count] = j;
        moves.from[moves.count++] = w[j];
        moves.gain += move * move * (h + p->b[j & p->mask[1]]);
        w[j] = new;
        if (rows->squared)
            apcg_float32_slide(rows, column, move);
        else
            apcg_float32_move(rows, column, move);
        if (moves.count == APCG_MOVES) {
            cuts += apcg_float32_settle(rows, &moves, w, p);
            apcg_float32_begin(rows, &moves);
        }
    }
    return cuts + apcg_float32_settle(rows, &moves, w, p);
}

#endif
