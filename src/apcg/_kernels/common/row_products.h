/* The inner loops over a column A_i, as macros: one text for float and double values, for 32 and
 * 64 bit indices. `a` are the values, `r` the row numbers, m their count.
 *
 * p and q are interleaved, pq[2j] = p_j and pq[2j+1] = q_j, and handled as pairs: with a vector of
 * two doubles an accelerated step takes as many instructions as a plain one. pq is 16-byte aligned
 * (see State). Each loop is unrolled by four: the columns are long enough, and the overhead of the
 * loop is a third of it otherwise. The sums are in index order, so results do not depend on that. */
#ifndef APCG_ROWS_H
#define APCG_ROWS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define APCG_UNROLL _Pragma("GCC unroll 4")
#define APCG_PREFETCH(address) __builtin_prefetch(address)
typedef double apcg_pair __attribute__((vector_size(16), may_alias));
#define APCG_PAIR(pq, j) (((apcg_pair *)(pq))[j])
#define APCG_BOTH(x) ((apcg_pair){(double)(x), (double)(x)})
#define APCG_DOT2(a, m, pq, J, sp, sq)                                                             \
    do {                                                                                           \
        apcg_pair sum_ = {0.0, 0.0};                                                               \
        APCG_UNROLL for (ptrdiff_t k_ = 0; k_ < (m); k_++)                                         \
            sum_ += APCG_BOTH((a)[k_]) * APCG_PAIR(pq, J);                                         \
        (sp) = sum_[0];                                                                            \
        (sq) = sum_[1];                                                                            \
    } while (0)
#define APCG_ADD2(a, m, pq, J, dp, dq)                                                             \
    do {                                                                                           \
        const apcg_pair step_ = {(dp), (dq)};                                                      \
        APCG_UNROLL for (ptrdiff_t k_ = 0; k_ < (m); k_++)                                         \
            APCG_PAIR(pq, J) += step_ * APCG_BOTH((a)[k_]);                                        \
    } while (0)
/* The same sums in four parts: with one, each addition waits for the last one. */
#define sparse_dot2_wide(a, r, m, pq, sp, sq)                                                      \
    do {                                                                                           \
        apcg_pair p0_ = {0.0, 0.0}, p1_ = p0_, p2_ = p0_, p3_ = p0_;                               \
        ptrdiff_t k_ = 0;                                                                          \
        for (; k_ + 3 < (m); k_ += 4) {                                                            \
            p0_ += APCG_BOTH((a)[k_]) * APCG_PAIR(pq, (r)[k_]);                                    \
            p1_ += APCG_BOTH((a)[k_ + 1]) * APCG_PAIR(pq, (r)[k_ + 1]);                            \
            p2_ += APCG_BOTH((a)[k_ + 2]) * APCG_PAIR(pq, (r)[k_ + 2]);                            \
            p3_ += APCG_BOTH((a)[k_ + 3]) * APCG_PAIR(pq, (r)[k_ + 3]);                            \
        }                                                                                          \
        for (; k_ < (m); k_++) p0_ += APCG_BOTH((a)[k_]) * APCG_PAIR(pq, (r)[k_]);                 \
        p0_ = (p0_ + p1_) + (p2_ + p3_);                                                           \
        (sp) = p0_[0];                                                                             \
        (sq) = p0_[1];                                                                             \
    } while (0)
#define dense_dot2_wide(a, m, pq, sp, sq)                                                          \
    do {                                                                                           \
        apcg_pair p0_ = {0.0, 0.0}, p1_ = p0_, p2_ = p0_, p3_ = p0_;                               \
        ptrdiff_t k_ = 0;                                                                          \
        for (; k_ + 3 < (m); k_ += 4) {                                                            \
            p0_ += APCG_BOTH((a)[k_]) * APCG_PAIR(pq, k_);                                         \
            p1_ += APCG_BOTH((a)[k_ + 1]) * APCG_PAIR(pq, k_ + 1);                                 \
            p2_ += APCG_BOTH((a)[k_ + 2]) * APCG_PAIR(pq, k_ + 2);                                 \
            p3_ += APCG_BOTH((a)[k_ + 3]) * APCG_PAIR(pq, k_ + 3);                                 \
        }                                                                                          \
        for (; k_ < (m); k_++) p0_ += APCG_BOTH((a)[k_]) * APCG_PAIR(pq, k_);                      \
        p0_ = (p0_ + p1_) + (p2_ + p3_);                                                           \
        (sp) = p0_[0];                                                                             \
        (sq) = p0_[1];                                                                             \
    } while (0)
#else
#define sparse_dot2_wide(a, r, m, pq, sp, sq) APCG_DOT2(a, m, pq, (r)[k_], sp, sq)
#define dense_dot2_wide(a, m, pq, sp, sq) APCG_DOT2(a, m, pq, k_, sp, sq)
#define APCG_UNROLL
#define APCG_PREFETCH(address) ((void)(address))
#define APCG_DOT2(a, m, pq, J, sp, sq)                                                             \
    do {                                                                                           \
        double sp_ = 0.0, sq_ = 0.0;                                                               \
        for (ptrdiff_t k_ = 0; k_ < (m); k_++) {                                                   \
            sp_ += (a)[k_] * (pq)[2 * (ptrdiff_t)(J)];                                             \
            sq_ += (a)[k_] * (pq)[2 * (ptrdiff_t)(J) + 1];                                         \
        }                                                                                          \
        (sp) = sp_;                                                                                \
        (sq) = sq_;                                                                                \
    } while (0)
#define APCG_ADD2(a, m, pq, J, dp, dq)                                                             \
    do {                                                                                           \
        for (ptrdiff_t k_ = 0; k_ < (m); k_++) {                                                   \
            (pq)[2 * (ptrdiff_t)(J)] += (dp) * (a)[k_];                                            \
            (pq)[2 * (ptrdiff_t)(J) + 1] += (dq) * (a)[k_];                                        \
        }                                                                                          \
    } while (0)
#endif

#define APCG_DOT1(a, m, x, J, s)                                                                   \
    do {                                                                                           \
        double s_ = 0.0;                                                                           \
        APCG_UNROLL for (ptrdiff_t k_ = 0; k_ < (m); k_++) s_ += (double)(a)[k_] * (x)[J];         \
        (s) = s_;                                                                                  \
    } while (0)
#define APCG_ADD1(a, m, x, J, dx)                                                                  \
    do {                                                                                           \
        const double dx_ = (dx);                                                                   \
        APCG_UNROLL for (ptrdiff_t k_ = 0; k_ < (m); k_++) (x)[J] += dx_ * (double)(a)[k_];        \
    } while (0)

/* The sums of a sparse row in four parts: with one, each addition waits for the last one. */
#define sparse_dot1_wide(a, r, m, x, s)                                                            \
    do {                                                                                           \
        double s0_ = 0.0, s1_ = 0.0, s2_ = 0.0, s3_ = 0.0;                                         \
        ptrdiff_t k_ = 0;                                                                          \
        for (; k_ + 3 < (m); k_ += 4) {                                                            \
            s0_ += (double)(a)[k_] * (x)[(r)[k_]];                                                 \
            s1_ += (double)(a)[k_ + 1] * (x)[(r)[k_ + 1]];                                         \
            s2_ += (double)(a)[k_ + 2] * (x)[(r)[k_ + 2]];                                         \
            s3_ += (double)(a)[k_ + 3] * (x)[(r)[k_ + 3]];                                         \
        }                                                                                          \
        for (; k_ < (m); k_++) s0_ += (double)(a)[k_] * (x)[(r)[k_]];                              \
        (s) = (s0_ + s1_) + (s2_ + s3_);                                                           \
    } while (0)
#define dense_dot1_wide(a, m, x, s)                                                                \
    do {                                                                                           \
        double s0_ = 0.0, s1_ = 0.0, s2_ = 0.0, s3_ = 0.0;                                         \
        ptrdiff_t k_ = 0;                                                                          \
        for (; k_ + 3 < (m); k_ += 4) {                                                            \
            s0_ += (double)(a)[k_] * (x)[k_];                                                      \
            s1_ += (double)(a)[k_ + 1] * (x)[k_ + 1];                                              \
            s2_ += (double)(a)[k_ + 2] * (x)[k_ + 2];                                              \
            s3_ += (double)(a)[k_ + 3] * (x)[k_ + 3];                                              \
        }                                                                                          \
        for (; k_ < (m); k_++) s0_ += (double)(a)[k_] * (x)[k_];                                   \
        (s) = (s0_ + s1_) + (s2_ + s3_);                                                           \
    } while (0)

/* sparse columns */
#define sparse_dot2(a, r, m, pq, sp, sq) APCG_DOT2(a, m, pq, (r)[k_], sp, sq)
#define sparse_add2(a, r, m, pq, dp, dq) APCG_ADD2(a, m, pq, (r)[k_], dp, dq)
#define sparse_dot1(a, r, m, x, s) APCG_DOT1(a, m, x, (r)[k_], s)
#define sparse_add1(a, r, m, x, dx) APCG_ADD1(a, m, x, (r)[k_], dx)
/* dense columns */
#define dense_dot2(a, m, pq, sp, sq) APCG_DOT2(a, m, pq, k_, sp, sq)
#define dense_add2(a, m, pq, dp, dq) APCG_ADD2(a, m, pq, k_, dp, dq)
#define dense_dot1(a, m, x, s) APCG_DOT1(a, m, x, k_, s)
#define dense_add1(a, m, x, dx) APCG_ADD1(a, m, x, k_, dx)

#endif
