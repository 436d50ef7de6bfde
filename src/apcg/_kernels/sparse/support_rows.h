/* Products with A'diag(bend)A, where A is sparse and stored by rows: positions and values in float.
 *
 * A processor reads two floats a cycle, and so it pays to read four values at once. The positions of
 * a row differ, so that four sums can be read before any of them is written. */
#ifndef APCG_SUPPORT_H
#define APCG_SUPPORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float apcg_f4 __attribute__((vector_size(16)));

static inline apcg_f4 apcg_four(const float *x) {
    apcg_f4 made;
    memcpy(&made, x, sizeof made);
    return made;
}

/* out += sum_i bend_i A_i <A_i, p>; bend has an entry for each row, or one and mask is 0 */
#define APCG_BY_ROWS(name, position_t)                                                             \
    static void name(const int64_t *start, const position_t *at, const float *values, ptrdiff_t n, \
                     const float *bend, ptrdiff_t mask, const float *p, float *out) {              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            apcg_f4 s = {0.0f, 0.0f, 0.0f, 0.0f}, t = s;                                           \
            const ptrdiff_t end = start[i + 1];                                                    \
            ptrdiff_t k = start[i];                                                                \
            for (; k + 7 < end; k += 8) {                                                          \
                const apcg_f4 x = {p[at[k]], p[at[k + 1]], p[at[k + 2]], p[at[k + 3]]};            \
                const apcg_f4 y = {p[at[k + 4]], p[at[k + 5]], p[at[k + 6]], p[at[k + 7]]};        \
                s += apcg_four(values + k) * x;                                                    \
                t += apcg_four(values + k + 4) * y;                                                \
            }                                                                                      \
            s += t;                                                                                \
            float sum = (s[0] + s[1]) + (s[2] + s[3]);                                             \
            for (; k < end; k++) sum += values[k] * p[at[k]];                                      \
            sum *= bend[i & mask];                                                                 \
            s = (apcg_f4){sum, sum, sum, sum};                                                     \
            for (k = start[i]; k + 3 < end; k += 4) {                                              \
                apcg_f4 x = {out[at[k]], out[at[k + 1]], out[at[k + 2]], out[at[k + 3]]};          \
                x += s * apcg_four(values + k);                                                    \
                out[at[k]] = x[0];                                                                 \
                out[at[k + 1]] = x[1];                                                             \
                out[at[k + 2]] = x[2];                                                             \
                out[at[k + 3]] = x[3];                                                             \
            }                                                                                      \
            for (; k < end; k++) out[at[k]] += sum * values[k];                                    \
        }                                                                                          \
    }

APCG_BY_ROWS(apcg_by_rows_near, uint16_t)
APCG_BY_ROWS(apcg_by_rows_far, int32_t)

#endif
