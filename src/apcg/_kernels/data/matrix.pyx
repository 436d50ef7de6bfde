"""Products with a matrix X, in double precision whatever the data is, and the check of its arrays.

SciPy and NumPy would copy a float32 matrix to float64 first; these read it as it is. X is given in
CSR form, or dense with an empty indptr; A_i is its row i. If `constant` is not 0, X has one more
column, of which every entry is that and none is stored: vectors and matrices then have an entry for
it at their end. Symmetric matrices are by rows, with their upper triangle.

None of these look at the sizes or contents of what they are given, except `inspect_csr` and
`within`, which are there for that: they trust the sizes of the arrays, and nothing in them.
"""

import numpy as np

from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void sparse_add1(const void *a, const void *r, Py_ssize_t m, double *x, double dx)
    void dense_add1(const void *a, Py_ssize_t m, double *x, double dx)

cdef extern from "dense.h" nogil:
    Py_ssize_t APCG_GRAM_BLOCK
    Py_ssize_t apcg_gram_double(const double *data, Py_ssize_t n, Py_ssize_t d,
                                const double *weight, int border, double *room, double *out)
    Py_ssize_t apcg_gram_float(const float *data, Py_ssize_t n, Py_ssize_t d,
                               const double *weight, int border, double *room, double *out)
    void apcg_add_rows_double(const double *data, Py_ssize_t n, Py_ssize_t d,
                              const double *weight, double *out)
    void apcg_add_rows_float(const float *data, Py_ssize_t n, Py_ssize_t d,
                             const double *weight, double *out)
    double apcg_dot_double(const double *a, const double *x, Py_ssize_t size)
    double apcg_dot_float(const float *a, const double *x, Py_ssize_t size)

SOUND, BROKEN, UNSORTED, REPEATED, NOT_FINITE = range(5)


cdef inline double square(const value_t *a, Py_ssize_t size) noexcept nogil:
    """|a|^2 by four sums, for an addition waits for the one before it."""
    cdef Py_ssize_t k = 0
    cdef double p = 0.0, q = 0.0, r = 0.0, s = 0.0
    while k + 4 <= size:
        p += <double> a[k] * a[k]
        q += <double> a[k + 1] * a[k + 1]
        r += <double> a[k + 2] * a[k + 2]
        s += <double> a[k + 3] * a[k + 3]
        k += 4
    while k < size:
        p += <double> a[k] * a[k]
        k += 1
    return (p + q) + (r + s)


cdef inline Py_ssize_t not_finite(const value_t *a, Py_ssize_t size) noexcept nogil:
    """The first entry that is NaN or infinite; `size` if there is none."""
    cdef Py_ssize_t k = 0
    while k < size and a[k] - a[k] == 0.0:
        k += 1
    return k


cdef inline bint rising(const index_t *a, Py_ssize_t size) noexcept nogil:
    """Whether every index is larger than the one before it."""
    cdef Py_ssize_t k
    cdef bint falls = False
    for k in range(1, size):
        falls |= a[k] <= a[k - 1]
    return not falls


def inspect_csr(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                Py_ssize_t columns, Py_ssize_t[::1] seen, double[::1] norms) -> tuple[int, int]:
    """(code, where) of the first fault of a CSR matrix; norms_i = |row i|^2 if it is sound.

    The caller sees to it that indptr begins with 0 and has one entry more than norms. `seen` is
    room for all columns, filled with -1, or empty.

    SOUND       no fault
    BROKEN      row `where` has an end before its begin or outside data, or a column outside
    UNSORTED    row `where` has columns out of order, and `seen` is empty: call again with room
    REPEATED    row `where` has a column twice (no row is broken)
    NOT_FINITE  data[where] is NaN or infinite (no row is broken, and no column is there twice)
    """
    cdef Py_ssize_t i, j, k, size, begin = 0, end
    cdef Py_ssize_t stored = min(data.shape[0], indices.shape[0])
    cdef Py_ssize_t repeated = -1, infinite = -1, broken = -1, unsorted = -1
    cdef const index_t *row
    with nogil:
        for i in range(norms.shape[0]):
            end = indptr[i + 1]
            if end < begin or end > stored:
                broken = i
                break
            size = end - begin
            norms[i] = 0.0
            if size == 0:
                continue
            row = &indices[begin]
            if rising(row, size):  # then only the ends can be outside
                if row[0] < 0 or row[size - 1] >= columns:
                    broken = i
                    break
            elif seen.shape[0] == 0:
                unsorted = i
                break
            else:
                for k in range(size):
                    j = row[k]
                    if j < 0 or j >= columns:
                        broken = i
                        break
                    if seen[j] == i and repeated < 0:
                        repeated = i
                    seen[j] = i
                if broken >= 0:
                    break
            norms[i] = square(&data[begin], size)
            if infinite < 0 and norms[i] - norms[i] != 0.0:  # or a square that overflows
                k = not_finite(&data[begin], size)
                if k < size:
                    infinite = begin + k
            begin = end
    if broken >= 0:
        return BROKEN, broken
    if unsorted >= 0:
        return UNSORTED, unsorted
    if repeated >= 0:
        return REPEATED, repeated
    if infinite >= 0:
        return NOT_FINITE, infinite
    return SOUND, 0


def inspect_dense(const value_t[::1] data, double[::1] norms) -> int:
    """The first entry that is NaN or infinite, or -1; norms_i = |row i|^2."""
    cdef Py_ssize_t i, k, found = -1
    cdef Py_ssize_t size = data.shape[0] // norms.shape[0] if norms.shape[0] else 0
    with nogil:
        for i in range(norms.shape[0] if size else 0):
            norms[i] = square(&data[i * size], size)
            if norms[i] - norms[i] != 0.0:  # or a square that overflows
                k = not_finite(&data[i * size], size)
                if k < size:
                    found = i * size + k
                    break
    return found


def within(const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t columns) -> bool:
    """Whether a CSR structure names only its own columns, and its rows are parts of `indices`.

    indptr must not be empty and must begin with 0.
    """
    cdef Py_ssize_t i, k, begin = 0, end, stored = indices.shape[0]
    cdef bint outside = False
    with nogil:
        for i in range(1, indptr.shape[0]):
            end = indptr[i]
            if end < begin or end > stored:
                outside = True
                break
            for k in range(begin, end):
                outside |= indices[k] < 0 or indices[k] >= columns
            if outside:
                break
            begin = end
    return not outside


cdef inline double row_dot(const value_t *a, const index_t *columns, Py_ssize_t size,
                           const double *x) noexcept nogil:
    """<A_i, x> of a sparse row."""
    cdef double total = 0.0
    sparse_dot1_wide(a, columns, size, x, total)
    return total


cdef inline double dense_dot(const value_t *a, Py_ssize_t size, const double *x) noexcept nogil:
    if value_t is double:
        return apcg_dot_double(a, x, size)
    else:
        return apcg_dot_float(a, x, size)


def times(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
          Py_ssize_t d, double constant, const double[::1] w, double[::1] out):
    """out_i = <A_i, w>"""
    cdef Py_ssize_t i, first
    cdef double edge = constant * w[d] if constant != 0.0 else 0.0
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    cdef const double *x = &w[0] if w.shape[0] else NULL
    with nogil:
        for i in range(out.shape[0]):
            if sparse:
                first = indptr[i]
                out[i] = edge + row_dot(a + first, columns + first, indptr[i + 1] - first, x)
            else:
                out[i] = edge + dense_dot(a + i * d, d, x)


def adjoint(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            Py_ssize_t d, double constant, const double[::1] r, double[::1] out):
    """out += sum_i r_i A_i"""
    cdef Py_ssize_t i, first, n = r.shape[0]
    cdef double edge = 0.0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    with nogil:
        if constant != 0.0:
            for i in range(n):
                edge += r[i]
            out[d] += constant * edge
        if n == 0 or data.shape[0] == 0:
            pass
        elif indptr.shape[0] == 0:
            if value_t is double:
                apcg_add_rows_double(a, n, d, &r[0], &out[0])
            else:
                apcg_add_rows_float(a, n, d, &r[0], &out[0])
        else:
            for i in range(n):
                if r[i] != 0.0:
                    first = indptr[i]
                    sparse_add1(a + first, columns + first, indptr[i + 1] - first, &out[0], r[i])


def gram_times(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
               Py_ssize_t d, double constant, const double[::1] s, const double[::1] p,
               double[::1] q, double[::1] out):
    """q_i = <A_i, p> and out += sum_i s_i q_i A_i, each row while it is in the cache."""
    cdef Py_ssize_t i, first = 0, size = d
    cdef double edge = constant * p[d] if constant != 0.0 else 0.0, total = 0.0, x
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    with nogil:
        for i in range(s.shape[0]):
            if sparse:
                first = indptr[i]
                size = indptr[i + 1] - first
                x = edge + row_dot(a + first, columns + first, size, &p[0])
            else:
                x = edge + dense_dot(a + i * d, d, &p[0])
            q[i] = x
            x *= s[i]
            if x == 0.0:
                continue
            total += x
            if sparse:
                sparse_add1(a + first, columns + first, size, &out[0], x)
            else:
                dense_add1(a + i * d, d, &out[0], x)
    if constant != 0.0:
        out[d] += constant * total


def column_squares(const value_t[::1] data, const index_t[::1] indices,
                   const index_t[::1] indptr, Py_ssize_t d, const double[::1] s, double[::1] out):
    """out_j += sum_i s_i A_ij^2"""
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(s.shape[0]):
            if indptr.shape[0]:
                for k in range(indptr[i], indptr[i + 1]):
                    out[indices[k]] += s[i] * data[k] * data[k]
            else:
                for k in range(d):
                    out[k] += s[i] * data[i * d + k] * data[i * d + k]


def gram(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         Py_ssize_t d, double constant, const double[::1] s, double[:, ::1] out):
    """The upper triangle of sum_i s_i A_i A_i', in `out`, which has zeros before.

    What is below the diagonal is undefined afterwards.
    """
    cdef Py_ssize_t i, j, k, first, end, size = out.shape[0]
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef bint border = constant != 0.0
    cdef double x
    cdef double *row
    if s.shape[0] == 0 or size == 0:
        return
    cdef double[::1] room
    if indptr.shape[0] == 0:
        room = np.empty(2 * max(APCG_GRAM_BLOCK, size + 8))
        with nogil:
            if value_t is double:
                apcg_gram_double(a, s.shape[0], d, &s[0], border, &room[0], &out[0, 0])
            else:
                apcg_gram_float(a, s.shape[0], d, &s[0], border, &room[0], &out[0, 0])
            times_constant(out, constant)
        return
    with nogil:
        for i in range(s.shape[0]):
            if s[i] == 0.0:
                continue
            first, end = indptr[i], indptr[i + 1]
            for j in range(first, end):
                x = s[i] * a[j]
                row = &out[indices[j], 0]
                for k in range(j, end):
                    row[indices[k]] += x * a[k]
                if border:
                    row[d] += x
            if border:
                out[d, d] += s[i]
        for i in range(size):  # a row whose columns are not in order wrote below the diagonal
            for j in range(i):
                out[j, i] += out[i, j]
        times_constant(out, constant)


cdef inline void times_constant(double[:, ::1] G, double constant) noexcept nogil:
    """The last column of a Gram matrix, made for a column of ones, times the constant."""
    cdef Py_ssize_t i, last = G.shape[0] - 1
    if constant == 0.0 or constant == 1.0:
        return
    for i in range(last):
        G[i, last] *= constant
    G[last, last] *= constant * constant


def squared_norms(const value_t[::1] data, const index_t[::1] indices,
                  const index_t[::1] indptr, const double[::1] weight, double[::1] out):
    """out_i = sum_j weight_j A_ij^2; an empty weight is all ones."""
    cdef Py_ssize_t i, k, first, size
    cdef double total
    with nogil:
        for i in range(out.shape[0]):
            if indptr.shape[0]:
                first, size = indptr[i], indptr[i + 1] - indptr[i]
            else:
                size = data.shape[0] // out.shape[0]
                first = i * size
            total = 0.0
            if weight.shape[0] == 0:
                total = square(&data[first], size)
            elif indptr.shape[0]:
                for k in range(first, first + size):
                    total += weight[indices[k]] * (<double> data[k] * data[k])
            else:
                for k in range(size):
                    total += weight[k] * (<double> data[first + k] * data[first + k])
            out[i] = total


def neighbours(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
               Py_ssize_t d, const Py_ssize_t[::1] rows, double[::1] out) -> bool:
    """out_k = <row i, row i + 1> with i = rows_k; False if columns of a row are out of order."""
    cdef Py_ssize_t i, k, p, q, last, end
    cdef bint sorted = True
    cdef double s
    with nogil:
        for k in range(rows.shape[0]):
            i, s = rows[k], 0.0
            if indptr.shape[0] == 0:
                for p in range(i * d, (i + 1) * d):
                    s += <double> data[p] * data[p + d]
                out[k] = s
                continue
            p, last, end = indptr[i], indptr[i + 1], indptr[i + 2]
            q = last
            if p < last < end:
                sorted = rising(&indices[p], last - p) and rising(&indices[last], end - last)
            if not sorted:
                break
            while p < last and q < end:
                if indices[p] == indices[q]:
                    s += <double> data[p] * data[q]
                if indices[p] <= indices[q]:
                    p += 1
                else:
                    q += 1
            out[k] = s
    return sorted


def inner(const double[::1] v, const double[::1] w) -> float:
    """<v, w>, always summed in the same order. (BLAS may use threads, and costs more than the sum.)"""
    cdef Py_ssize_t k, whole = v.shape[0] - v.shape[0] % 4
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    with nogil:
        for k in range(0, whole, 4):
            a += v[k] * w[k]
            b += v[k + 1] * w[k + 1]
            c += v[k + 2] * w[k + 2]
            d += v[k + 3] * w[k + 3]
        for k in range(whole, v.shape[0]):
            a += v[k] * w[k]
    return (a + b) + (c + d)


def add(double[::1] y, double a, const double[::1] x):
    """y += a x"""
    cdef Py_ssize_t k
    with nogil:
        for k in range(y.shape[0]):
            y[k] += a * x[k]
