/* Vectors of four doubles: two registers or one, with the same bits. */
#ifndef APCG_VECTORS_H
#define APCG_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define APCG_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define APCG_CLONES
#endif
#if defined(__GNUC__) || defined(__clang__) /* clang-cl has only the latter */
#define APCG_INLINE static inline __attribute__((always_inline))
#define APCG_FETCH(address) __builtin_prefetch(address)
#define APCG_FETCH_NEAR(address) __builtin_prefetch(address, 0, 2) /* to the second cache */
#define APCG_UNROLL8 _Pragma("GCC unroll 8")
#else
#error "the block kernels need the vector types of GCC or Clang"
#endif

/* log2, rounded down; 0 of 0 */
APCG_INLINE ptrdiff_t apcg_power(int count) {
    return 31 - __builtin_clz((unsigned)(count > 0 ? count : 1));
}

typedef double apcg_v4 __attribute__((vector_size(32)));
typedef int64_t apcg_i4 __attribute__((vector_size(32)));
typedef double apcg_u4 __attribute__((vector_size(32), aligned(8), may_alias)); /* anywhere */

#define APCG_AT(x, k) (*(const apcg_u4 *)((x) + (k)))
#define APCG_PUT(x, k) (*(apcg_u4 *)((x) + (k)))
#define APCG_ALL(c) ((apcg_v4){(c), (c), (c), (c)})
#define APCG_IF(mask, a, b) ((apcg_v4)(((apcg_i4)(a) & (mask)) | ((apcg_i4)(b) & ~(mask))))
#define APCG_SUM(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))

#endif
