/* What kernel.py compares with: Algorithm 5 and SDCA for one loss, as plain C loops.
 *
 * The dual of ERM with g = L2: x_i in [0, 1] for the smoothed hinge and logistic losses with labels
 * y_i = -1, 1 premultiplied, any x_i for the squared loss. p and q are interleaved, and handled as
 * pairs. Nothing here is general: no folding (kernel.py takes few enough steps), no check of
 * anything, one type of data. */
#include <math.h>
#include <stddef.h>

struct problem {
    const double *a;            /* values, row by row */
    const int *column, *start;  /* of a CSR matrix; start is NULL if the rows are dense */
    const double *y, *L;
    ptrdiff_t d;
    double n, lambda, gamma;
};

typedef double pair __attribute__((vector_size(16))); /* p_j, q_j */

/* x minimises phi*(-x) - (gamma/2) x^2 + (x - centre)^2/(2 step); `near` is close to it. */
static inline double prox_smoothed_hinge(double centre, double step, double near)
{
    double x = centre + step;
    return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
}

static inline double prox_squared(double centre, double step, double near) { return centre; }

/* eta + c sigmoid(eta) = d by Newton's method, which converges from the inflection at 0, and mostly
 * from `near`. */
static inline double prox_logistic(double centre, double step, double near)
{
    double c = 1.0 / step - 4.0, d = centre / step, x = 0.5;
    double eta = near > 1e-300 && near < 1.0 ? log(near / (1.0 - near)) : 0.0;
    for (int k = 0; k < 60; k++) {
        if (k == 8) eta = 0.0;
        x = 1.0 / (1.0 + exp(-eta));
        double change = (eta + c * x - d) / (1.0 + c * x * (1.0 - x));
        eta -= change;
        if (fabs(change) < 1e-8) return x - change * x * (1.0 - x);
    }
    return x;
}

#define SPARSE(i) const ptrdiff_t first = P->start[i], size = P->start[i + 1] - first;             \
    const int *restrict column = P->column + first;
#define DENSE(i) const ptrdiff_t first = i * P->d, size = P->d;

#define LOOPS(loss, storage, ROW, J, MARGIN)                                                        \
    double apcg_##loss##_##storage(const struct problem *P, double mu, double s,                   \
                                   double *restrict u, double *restrict v, pair *restrict pq,      \
                                   const ptrdiff_t *order, ptrdiff_t steps)                        \
    {                                                                                              \
        const double n = P->n, alpha = sqrt(mu) / n, rho = (1.0 - alpha) / (1.0 + alpha);          \
        const double sigma = P->gamma / n, weight = 1.0 / (P->lambda * n * n);                     \
        for (ptrdiff_t k = 0; k < steps; k++) {                                                    \
            const ptrdiff_t i = order[k];                                                          \
            ROW(i)                                                                                 \
            const double *restrict a = P->a + first;                                               \
            pair sum = {0.0, 0.0};                                                                 \
            for (ptrdiff_t j = 0; j < size; j++) sum += a[j] * pq[J];                              \
            s *= rho;                                                                              \
            double g = weight * (sum[1] + 0.5 * s * sum[0]);                                       \
            g = MARGIN ? P->y[i] * g : g - P->y[i] / n;                                            \
            g += sigma * (v[i] + 0.5 * s * u[i]);                                                  \
            const double centre = v[i] - 0.5 * s * u[i], step = 1.0 / (n * alpha * P->L[i]);       \
            const double h = prox_##loss(centre - step * g, step / n, centre) - centre;            \
            if (h == 0.0) continue;                                                                \
            const double du = (n * alpha - 1.0) / s;                                               \
            double hu = du * h, hv = (1.0 + 0.5 * s * du) * h;                                     \
            u[i] += hu;                                                                            \
            v[i] += hv;                                                                            \
            if (MARGIN) hu *= P->y[i], hv *= P->y[i];                                              \
            const pair change = {hu, hv};                                                          \
            for (ptrdiff_t j = 0; j < size; j++) pq[J] += change * a[j];                           \
        }                                                                                          \
        return s;                                                                                  \
    }                                                                                              \
    void sdca_##loss##_##storage(const struct problem *P, double *restrict x, double *restrict r,  \
                                 const ptrdiff_t *order, ptrdiff_t steps)                          \
    {                                                                                              \
        const double n = P->n, sigma = P->gamma / n, weight = 1.0 / (P->lambda * n * n);           \
        for (ptrdiff_t k = 0; k < steps; k++) {                                                    \
            const ptrdiff_t i = order[k];                                                          \
            ROW(i)                                                                                 \
            const double *restrict a = P->a + first;                                               \
            double g = 0.0;                                                                        \
            for (ptrdiff_t j = 0; j < size; j++) g += a[j] * r[J];                                 \
            g *= weight;                                                                           \
            g = (MARGIN ? P->y[i] * g : g - P->y[i] / n) + sigma * x[i];                           \
            const double step = 1.0 / P->L[i];                                                     \
            const double new = prox_##loss(x[i] - step * g, step / n, x[i]);                       \
            double h = new - x[i];                                                                 \
            if (h == 0.0) continue;                                                                \
            x[i] = new;                                                                            \
            if (MARGIN) h *= P->y[i];                                                              \
            for (ptrdiff_t j = 0; j < size; j++) r[J] += h * a[j];                                 \
        }                                                                                          \
    }

LOOPS(smoothed_hinge, sparse, SPARSE, column[j], 1)
LOOPS(smoothed_hinge, dense, DENSE, j, 1)
LOOPS(squared, sparse, SPARSE, column[j], 0)
LOOPS(squared, dense, DENSE, j, 0)
LOOPS(logistic, sparse, SPARSE, column[j], 1)
LOOPS(logistic, dense, DENSE, j, 1)

/* Count from `begin` to `end`, under callgrind. */
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(void) { CALLGRIND_DUMP_STATS; }
#endif
