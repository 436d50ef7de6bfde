/* exp and log of four numbers, the softmax and its prox, over rows of K numbers.
 *
 * K is padded to a multiple of four; pads of dual variables are 0. The AVX2 clone and the plain one
 * give the same bits. */
#ifndef APCG_BLOCKS_H
#define APCG_BLOCKS_H

#include "vectors.h"

/* exp is never below exp(FLOOR), and what is below TINY is 0: subnormal numbers are slow. */
#define APCG_FLOOR (-345.0)
#define APCG_TINY 1e-140

/* ---- exp and log of four numbers ------------------------------------------------------------ */

/* exp(x) for FLOOR <= x <= 700 or so: x = k log 2 + r, a Taylor polynomial in r, times 2^k */
APCG_INLINE apcg_v4 apcg_exp4(apcg_v4 x) {
    const apcg_v4 shift = APCG_ALL(6755399441055744.0); /* 1.5 2^52: rounds to an integer */
    const apcg_v4 t = x * APCG_ALL(1.4426950408889634) + shift;
    const apcg_v4 k = t - shift;
    const apcg_v4 r = (x - k * APCG_ALL(0.693147180369123816490)) -
                      k * APCG_ALL(1.90821492927058770002e-10);
    const apcg_v4 r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const apcg_v4 a = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6));
    const apcg_v4 b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const apcg_v4 c = (1.0 / 40320 + r * (1.0 / 362880)) +
                      r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    const apcg_v4 e = (a + r4 * b) + r8 * (c + r4 * (1.0 / 479001600 + r * (1.0 / 6227020800.0)));
    const apcg_i4 power = ((apcg_i4)t - (apcg_i4)shift + 1023) << 52;
    return e * (apcg_v4)power;
}

/* log(x) for normal x > 0: x = m 2^k, sqrt(1/2) <= m < sqrt(2), by the series of artanh */
APCG_INLINE apcg_v4 apcg_log4(apcg_v4 x) {
    const apcg_i4 bits = (apcg_i4)x;
    const apcg_i4 off = bits - 0x3fe6a09e667f3bcdLL; /* of sqrt(1/2) */
    const apcg_i4 whole = off & (apcg_i4){~0xfffffffffffffLL, ~0xfffffffffffffLL,
                                          ~0xfffffffffffffLL, ~0xfffffffffffffLL};
    const apcg_v4 m = (apcg_v4)(bits - whole);
    /* the exponent as a double: its integer in the low bits of 1.5 2^52 */
    const apcg_v4 shift = APCG_ALL(6755399441055744.0);
    const apcg_i4 biased = (apcg_i4)((uint64_t __attribute__((vector_size(32))))whole >> 52);
    const apcg_i4 sign = (biased & 2048) != 0; /* a negative exponent: 12 bits, two's complement */
    const apcg_v4 k = (apcg_v4)((biased - (sign & 4096)) + (apcg_i4)shift) - shift;
    const apcg_v4 s = (m - 1.0) / (m + 1.0), q = s * s;
    const apcg_v4 odd = q * (2.0 / 3 + q * (2.0 / 5 + q * (2.0 / 7 + q * (2.0 / 9 + q * (2.0 / 11 +
                        q * (2.0 / 13 + q * (2.0 / 15 + q * (2.0 / 17 + q * (2.0 / 19 +
                        q * (2.0 / 21))))))))));
    const apcg_v4 f = m - 1.0; /* 2 s = f - s f, without the rounding of s */
    return k * APCG_ALL(0.693147180369123816490) +
           (f - s * (f - odd) + k * APCG_ALL(1.90821492927058770002e-10));
}

/* ---- softmax -------------------------------------------------------------------------------- */

/* p = softmax(t) over whole vectors (t of pads is far below the others); returns log sum exp */
APCG_CLONES static double apcg_softmax(const double *t, double *p, ptrdiff_t size) {
    double top = t[0], total = 0.0;
    for (ptrdiff_t k = 1; k < size; k++) top = t[k] > top ? t[k] : top;
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        apcg_v4 d = APCG_AT(t, k) - top;
        d = APCG_IF(d > APCG_FLOOR, d, APCG_ALL(APCG_FLOOR));
        apcg_v4 e = apcg_exp4(d);
        e = APCG_IF(e > APCG_TINY, e, APCG_ALL(0.0));
        APCG_PUT(p, k) = e;
        sum += e;
    }
    total = APCG_SUM(sum);
    const double scale = 1.0 / total;
    for (ptrdiff_t k = 0; k < size; k += 4) APCG_PUT(p, k) *= scale;
    return top + log(total);
}

/* KL(pi || softmax(z)) with theta = log pi: phi(z) + phi*(pi - e) + <z, e - pi> of one row.
 * With r = log of softmax(z)/pi it is the sum of pi (exp(r) - 1 - r), which does not cancel. p is
 * softmax(z), lse = log sum exp(z). */
APCG_CLONES static double apcg_divergence(const double *z, const double *p, double lse,
                                          const double *pi, const double *theta, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 a = APCG_AT(pi, k), r = APCG_AT(z, k) - lse - APCG_AT(theta, k);
        const apcg_v4 near = a * (r * r) * (0.5 + r * (1.0 / 6 + r * (1.0 / 24)));
        const apcg_v4 far = APCG_AT(p, k) - a - a * r;
        sum += APCG_IF((r < 1e-2) & (r > -1e-2), near, far);
    }
    return APCG_SUM(sum);
}

/* the same for a pi near softmax(z) without its logarithm: sum (pi - p)^2/(pi + p), which is equal
 * to the third order */
APCG_CLONES static double apcg_distance(const double *p, const double *pi, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        apcg_v4 a = APCG_AT(pi, k);
        a = APCG_IF(a > 0.0, a, APCG_ALL(0.0));
        const apcg_v4 d = a - APCG_AT(p, k);
        sum += d * d / (a + APCG_AT(p, k) + 1e-300);
    }
    return APCG_SUM(sum);
}

/* argmin over the simplex of sum pi log pi + (rho/2)|pi|^2 - <b, pi>, rho >= 0, from a guess.
 *
 * theta = log pi solves theta + rho exp(theta) = b - nu, sum exp(theta) = 1. Newton's method on
 * (theta, nu) jointly, with Halley's correction of theta; S log S in the place of S - 1 makes nu
 * exact for rho = 0. A change below `enough` is the last one, its error about the square. Returns
 * the iterations, or 0 if the guess led nowhere: then theta and pi are to be found otherwise. */
APCG_CLONES static int apcg_softmax_root(double *theta, double *pi, const double *b, double rho,
                                         double enough, ptrdiff_t size) {
    double S = 1.0;
    for (int round = 1; round <= 12; round++) {
        apcg_v4 weight = APCG_ALL(0.0), moment = APCG_ALL(0.0);
        for (ptrdiff_t k = 0; k < size; k += 4) {
            const apcg_v4 x = APCG_AT(pi, k), bent = rho * x;
            const apcg_v4 w = x / (1.0 + bent);
            weight += w;
            moment += w * (APCG_AT(b, k) - APCG_AT(theta, k) - bent);
        }
        const double excess = S - 1.0;
        const double own = fabs(excess) < 1e-4 ? excess * (1.0 + 0.5 * excess) : S * log(S);
        const double nu = (APCG_SUM(moment) + own) / APCG_SUM(weight);
        if (!(nu - nu == 0.0)) return 0;
        apcg_v4 sum = APCG_ALL(0.0), far = APCG_ALL(0.0), large = APCG_ALL(0.0);
        for (ptrdiff_t k = 0; k < size; k += 4) {
            const apcg_v4 x = APCG_AT(pi, k), t = APCG_AT(theta, k), bent = rho * x;
            const apcg_v4 slope = 1.0 / (1.0 + bent);
            apcg_v4 d = (APCG_AT(b, k) - nu - t - bent) * slope;
            apcg_v4 below = 1.0 + 0.5 * d * bent * slope;
            below = APCG_IF(below > 0.5, below, APCG_ALL(0.5));
            d = d / below;
            apcg_v4 moved = t + d;
            moved = APCG_IF(moved < 0.0, moved, APCG_ALL(0.0));
            moved = APCG_IF(moved > APCG_FLOOR, moved, APCG_ALL(APCG_FLOOR));
            d = moved - t;
            APCG_PUT(theta, k) = moved;
            d = APCG_IF(d < 0.0, -d, d);
            large = APCG_IF(d > large, d, large);
            d *= x;
            far = APCG_IF(d > far, d, far);
        }
        const double largest = fmax(fmax(large[0], large[1]), fmax(large[2], large[3]));
        const double change = fmax(fmax(far[0], far[1]), fmax(far[2], far[3]));
        for (ptrdiff_t k = 0; k < size; k += 4) {
            apcg_v4 x = apcg_exp4(APCG_AT(theta, k));
            x = APCG_IF(x > APCG_TINY, x, APCG_ALL(0.0));
            sum += x;
            APCG_PUT(pi, k) = x;
        }
        S = APCG_SUM(sum);
        if (largest < 1.0 && change < enough && S > 0.5 && S < 2.0) {
            const double scale = 1.0 / S, shift = log(S);
            for (ptrdiff_t k = 0; k < size; k += 4) {
                APCG_PUT(pi, k) *= scale;
                const apcg_v4 t = APCG_AT(theta, k) - shift;
                APCG_PUT(theta, k) = APCG_IF(t > APCG_FLOOR, t, APCG_ALL(APCG_FLOOR));
            }
            return round;
        }
    }
    return 0;
}

/* ---- logistic losses, one for each column --------------------------------------------------- */

APCG_INLINE apcg_v4 apcg_sigmoid4(apcg_v4 t) {
    apcg_v4 down = APCG_IF(t > 0.0, -t, t); /* -|t| */
    down = APCG_IF(down > APCG_FLOOR, down, APCG_ALL(APCG_FLOOR));
    const apcg_v4 e = apcg_exp4(down), s = 1.0 / (1.0 + e);
    return APCG_IF(t > 0.0, s, e * s);
}

/* the part of the gap of one row, of margins m and dual numbers a: the sum of the divergences of
 * (a, 1 - a) from (p, 1 - p), p = sigmoid(-m), as in apcg_distance */
APCG_CLONES static double apcg_bernoulli(const double *m, const double *a, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 margin = APCG_AT(m, k), p = apcg_sigmoid4(-margin);
        apcg_v4 x = APCG_AT(a, k);
        x = APCG_IF(x > 0.0, x, APCG_ALL(0.0));
        x = APCG_IF(x < 1.0, x, APCG_ALL(1.0));
        const apcg_v4 d2 = (x - p) * (x - p), part = d2 / (x + p) + d2 / (2.0 - x - p);
        sum += APCG_IF((x != 0.0) | (margin != 0.0), part, APCG_ALL(0.0)); /* not pads */
    }
    return APCG_SUM(sum);
}

/* a = sigmoid(eta) with eta + rho a = b, each column by itself, rho >= 0: Halley's method from the
 * guess eta; a change below `enough` is the last. The root has the sign of b - rho/2, and between it
 * and zero Newton's method cannot cross it: the interval that is kept to ends there, or it would go
 * to and fro. Eight vectors at a time, so that one does not wait for the exp of another. */
#define APCG_LANES 8
APCG_CLONES static void apcg_logistic_root(double *eta, double *a, const double *b, double rho,
                                           double enough, ptrdiff_t size) {
    apcg_v4 low[APCG_LANES], high[APCG_LANES], t[APCG_LANES], s[APCG_LANES];
    for (ptrdiff_t first = 0; first < size; first += 4 * APCG_LANES) {
        const ptrdiff_t left = (size - first) / 4, count = left < APCG_LANES ? left : APCG_LANES;
        for (ptrdiff_t v = 0; v < count; v++) {
            const apcg_v4 guess = APCG_AT(eta, first + 4 * v);
            const apcg_v4 goal = APCG_AT(b, first + 4 * v), zero = APCG_ALL(0.0);
            const apcg_i4 up = goal > 0.5 * rho;
            const apcg_v4 under = goal - rho, middle = goal - 0.5 * rho;
            low[v] = APCG_IF(up, APCG_IF(under > 0.0, under, zero), middle);
            high[v] = APCG_IF(up, middle, APCG_IF(goal < 0.0, goal, zero));
            t[v] = APCG_IF(guess > low[v], guess, low[v]);
            t[v] = APCG_IF(t[v] < high[v], t[v], high[v]);
            s[v] = apcg_sigmoid4(t[v]);
        }
        for (int round = 0; round < 60; round++) {
            apcg_v4 far = APCG_ALL(0.0);
            for (ptrdiff_t v = 0; v < count; v++) {
                const apcg_v4 f = t[v] + rho * s[v] - APCG_AT(b, first + 4 * v);
                const apcg_v4 bend = rho * s[v] * (1.0 - s[v]), slope = 1.0 + bend;
                const apcg_v4 square = slope * slope, least = 0.5 * square, most = 2.0 * square;
                apcg_v4 below = square - 0.5 * f * bend * (1.0 - 2.0 * s[v]);
                below = APCG_IF(below > least, below, least);
                below = APCG_IF(below < most, below, most);
                apcg_v4 to = t[v] - f * slope / below;
                low[v] = APCG_IF(f < 0.0, t[v], low[v]);
                high[v] = APCG_IF(f > 0.0, t[v], high[v]);
                to = APCG_IF((to >= low[v]) & (to <= high[v]), to, 0.5 * (low[v] + high[v]));
                apcg_v4 d = to - t[v];
                d = APCG_IF(d < 0.0, -d, d);
                far = APCG_IF(d > far, d, far);
                t[v] = to;
            }
            for (ptrdiff_t v = 0; v < count; v++) s[v] = apcg_sigmoid4(t[v]);
            if (fmax(fmax(far[0], far[1]), fmax(far[2], far[3])) < enough) break;
        }
        for (ptrdiff_t v = 0; v < count; v++) {
            APCG_PUT(eta, first + 4 * v) = t[v];
            APCG_PUT(a, first + 4 * v) = s[v];
        }
    }
}

/* ---- a step with momentum, before and after its prox ----------------------------------------- */

/* z += q + half p, y = v + half u, c = v - half u */
APCG_CLONES static void apcg_before(const double *p, const double *q, const double *u,
                                    const double *v, double half, double *z, double *y, double *c,
                                    ptrdiff_t size) {
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 a = half * APCG_AT(u, k), b = APCG_AT(v, k);
        APCG_PUT(z, k) += APCG_AT(q, k) + half * APCG_AT(p, k);
        APCG_PUT(y, k) = b + a;
        APCG_PUT(c, k) = b - a;
    }
}

/* z += L c - gamma y */
APCG_CLONES static void apcg_centre(const double *y, const double *c, double L, double gamma,
                                    double *z, ptrdiff_t size) {
    for (ptrdiff_t k = 0; k < size; k += 4)
        APCG_PUT(z, k) += L * APCG_AT(c, k) - gamma * APCG_AT(y, k);
}

/* With h = new - c: u += a h, v += b h; du, dv become what the rows of W get (times weight, labels
 * if not NULL, scale), pb and qb what intercepts get. Returns whether h is not zero. */
APCG_CLONES static int apcg_after(const double *new, const double *c, double a, double b,
                                  double weight, const double *labels, double border, double scale,
                                  double *u, double *v, double *pb, double *qb, double *du,
                                  double *dv, ptrdiff_t size) {
    apcg_i4 any = {0, 0, 0, 0};
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 h = APCG_AT(new, k) - APCG_AT(c, k);
        const apcg_v4 first = a * h, second = b * h;
        any |= h != 0.0;
        APCG_PUT(u, k) += first;
        APCG_PUT(v, k) += second;
        apcg_v4 factor = APCG_ALL(weight);
        if (labels) factor *= APCG_AT(labels, k);
        const apcg_v4 p = first * factor, q = second * factor;
        APCG_PUT(pb, k) += border * p;
        APCG_PUT(qb, k) += border * q;
        APCG_PUT(du, k) = scale * p;
        APCG_PUT(dv, k) = scale * q;
    }
    return (any[0] | any[1] | any[2] | any[3]) != 0;
}

/* z += b, and what features of the row alone add: c (e - x), e the unit vector of the label */
APCG_CLONES static void apcg_alone(const double *b, const double *x, double c, ptrdiff_t label,
                                   double *z, ptrdiff_t size) {
    for (ptrdiff_t k = 0; k < size; k += 4) APCG_PUT(z, k) += APCG_AT(b, k) - c * APCG_AT(x, k);
    z[label] += c;
}

/* A step without momentum: x becomes new; h is what the rows of W get (the change times weight,
 * labels if not NULL, scale), b what intercepts get. Returns |new - x|^2. */
APCG_CLONES static double apcg_move(const double *new, double weight, const double *labels,
                                    double border, double scale, double *x, double *b, double *h,
                                    ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 change = APCG_AT(new, k) - APCG_AT(x, k);
        sum += change * change;
        APCG_PUT(x, k) = APCG_AT(new, k);
        apcg_v4 own = weight * change;
        if (labels) own *= APCG_AT(labels, k);
        APCG_PUT(b, k) += border * own;
        APCG_PUT(h, k) = scale * own;
    }
    return APCG_SUM(sum);
}

/* sum of exp(t) over whole vectors; p becomes exp(t), and what is below TINY is 0.
 * What is not a number stays so. */
APCG_CLONES static double apcg_exps(const double *t, double *p, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 d = APCG_AT(t, k);
        apcg_v4 e = apcg_exp4(APCG_IF(d < APCG_FLOOR, APCG_ALL(APCG_FLOOR), d));
        e = APCG_IF(e < APCG_TINY, APCG_ALL(0.0), e);
        APCG_PUT(p, k) = e;
        sum += e;
    }
    return APCG_SUM(sum);
}

/* sum of x^2 over whole vectors */
APCG_CLONES static double apcg_squares(const double *x, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0), more = APCG_ALL(0.0);
    ptrdiff_t k = 0;
    for (; k + 8 <= size; k += 8) {
        sum += APCG_AT(x, k) * APCG_AT(x, k);
        more += APCG_AT(x, k + 4) * APCG_AT(x, k + 4);
    }
    for (; k < size; k += 4) sum += APCG_AT(x, k) * APCG_AT(x, k);
    return APCG_SUM(sum + more);
}

/* sum x log x over the entries that are positive (pads are 0) */
APCG_CLONES static double apcg_entropy(const double *x, ptrdiff_t size) {
    apcg_v4 sum = APCG_ALL(0.0);
    for (ptrdiff_t k = 0; k < size; k += 4) {
        const apcg_v4 a = APCG_AT(x, k);
        const apcg_v4 safe = APCG_IF(a > 1e-300, a, APCG_ALL(1.0));
        sum += safe * apcg_log4(safe);
    }
    return APCG_SUM(sum);
}

#endif
