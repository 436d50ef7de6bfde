"""The coordinate step without momentum: (rpcg-prox) and (rpcg-update), SDCA on the dual of ERM."""

from .coordinate cimport Model
from ..losses.scalar cimport interval_dual_prox
from ..losses.terms cimport DUAL_INTERVAL, GRAM, QUADRATIC, Outer, Prox, derivative_at, prox_near, prox_of
from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    # Macros: they take the values and row numbers by any pointer type and assign to s.
    void sparse_dot1(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)
    void dense_dot1(const void *a, Py_ssize_t m, const double *x, double s)
    void dense_add1(const void *a, Py_ssize_t m, double *x, double dx)


cdef inline double plain_partial(const value_t *a, const index_t *rows, Py_ssize_t size, Outer h,
                                 const double *r) noexcept nogil:
    """<A_i, h'(r)> for an h by pointer, with `rows` NULL for a dense column."""
    cdef Py_ssize_t k, j
    cdef double total = 0.0
    for k in range(size):
        j = k if rows == NULL else rows[k]
        total += a[k] * derivative_at(h, j, r[j])
    return total


cdef void plain_steps(
        const value_t *a, const index_t *rows, const index_t *indptr, Model model,
        double *x, double *r, const Py_ssize_t[::1] order) noexcept nogil:
    cdef Prox prox = prox_of(model.psi)
    cdef const Py_ssize_t *next = &order[0]
    cdef const Py_ssize_t *end = next + order.shape[0]
    cdef Py_ssize_t i, size = model.rows
    cdef const value_t *column
    cdef const index_t *own = NULL
    cdef const double *sign = &model.sign[0] if model.sign.shape[0] > 1 else NULL
    cdef const double *c = &model.c[0]
    cdef const double *sigma = &model.sigma[0]
    cdef const double *L = &model.L[0]
    cdef Py_ssize_t c_mask = -1 if model.c.shape[0] > 1 else 0  # i & mask is i, or 0 if shared
    cdef Py_ssize_t sigma_mask = -1 if model.sigma.shape[0] > 1 else 0
    cdef bint quadratic = model.outer.kind == QUADRATIC, interval = prox.kind == DUAL_INTERVAL
    cdef bint gram = model.outer.kind == GRAM
    cdef double weight = model.outer.weight[0], constant = model.constant
    # the last row, where all columns have the same entry; a pointer is the quickest thing to test
    cdef double *border = &r[model.rows] if constant != 0.0 else NULL
    cdef double g = 0.0, e = 1.0, step, h, old, new
    while next != end:
        i = next[0]
        next += 1
        if rows == NULL:
            column = a + i * size
            if quadratic:
                dense_dot1(column, size, r, g)
                g *= weight
        else:
            column, own = a + indptr[i], rows + indptr[i]
            size = indptr[i + 1] - indptr[i]
            if quadratic:
                sparse_dot1(column, own, size, r, g)
                g *= weight
        if not quadratic:
            g = r[i] if gram else plain_partial(column, own, size, model.outer, r)
        if border != NULL:
            g += constant * derivative_at(model.outer, model.rows, border[0])
        if sign != NULL:
            e = sign[i]
            g *= e
        old = x[i]
        g += c[i & c_mask] + sigma[i & sigma_mask] * old
        step = 1.0 / L[i]
        new = old - step * g
        if interval:
            new = interval_dual_prox(new, step * prox.weight, prox.theta)
        else:
            new = prox_near(&prox, model.psi, i, new, step, old)
        h = new - old
        if h == 0.0:
            continue
        x[i] = new  # not x_i + h, which may be outside the domain by a rounding
        h *= e
        if rows == NULL:
            dense_add1(column, size, r, h)
        else:
            sparse_add1(column, own, size, r, h)
        if border != NULL:
            border[0] += constant * h


def run_plain(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
              Model model, double[::1] x, double[::1] r, const Py_ssize_t[::1] order):
    """One step on each coordinate of `order`; r is A x less the shift of h. Scalar blocks only."""
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *starts = &indptr[0] if indptr.shape[0] else NULL
    # if all columns are empty, anything but NULL, which means dense
    cdef const index_t *rows = &indices[0] if indices.shape[0] else starts
    if order.shape[0] == 0:
        return
    with nogil:
        plain_steps(a, rows, starts, model, &x[0], &r[0], order)
