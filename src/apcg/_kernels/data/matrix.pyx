"""Products with a matrix stored by coordinate, in double precision whatever the data is.

SciPy and NumPy would copy a float32 matrix to float64 first; these read it as it is. A is given in
CSR form (row i is the column A_i), or dense with an empty indptr.

None of these look at the sizes or contents of what they are given, except `inspect_csr` and
`within`, which are there for that: they trust the sizes of the arrays, and nothing in them.
"""

from ..common.types cimport index_t, value_t

cdef extern from "row_products.h" nogil:
    void sparse_dot1_wide(const void *a, const void *r, Py_ssize_t m, const double *x, double s)
    void dense_dot1_wide(const void *a, Py_ssize_t m, const double *x, double s)

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
                Py_ssize_t columns, Py_ssize_t[::1] seen, double[::1] norms):
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


def inspect_dense(const value_t[::1] data, double[::1] norms):
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


def within(const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t columns):
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


def tdot(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         const double[::1] r, double[::1] out):
    """out_i = <A_i, r>."""
    cdef Py_ssize_t i, first, rows = r.shape[0]
    cdef double total = 0.0
    cdef bint sparse = indptr.shape[0] > 0
    cdef const value_t *a = &data[0] if data.shape[0] else NULL
    cdef const index_t *columns = &indices[0] if indices.shape[0] else NULL
    cdef const double *x = &r[0] if rows else NULL
    with nogil:
        for i in range(out.shape[0]):
            if sparse:
                first = indptr[i]
                sparse_dot1_wide(a + first, columns + first, indptr[i + 1] - first, x, total)
            else:
                dense_dot1_wide(a + i * rows, rows, x, total)
            out[i] = total


def dot(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        const double[::1] x, double[::1] out):
    """out += sum_i x_i A_i."""
    cdef Py_ssize_t i, k, rows = out.shape[0]
    with nogil:
        for i in range(x.shape[0]):
            if x[i] == 0.0:
                continue
            if indptr.shape[0]:
                for k in range(indptr[i], indptr[i + 1]):
                    out[indices[k]] += x[i] * data[k]
            else:
                for k in range(rows):
                    out[k] += x[i] * data[i * rows + k]


def squared_norms(const value_t[::1] data, const index_t[::1] indices,
                  const index_t[::1] indptr, const double[::1] weight, double[::1] out):
    """out_i = sum_j weight_j A_ji^2; an empty weight is all ones."""
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


def gram(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         const double[::1] weight, double[:, ::1] out):
    """out + its transpose - its diagonal is sum_i weight_i A_i A_i'; gives the multiply-adds."""
    cdef Py_ssize_t i, a, b, first, row, count = 0
    cdef double x
    with nogil:
        for i in range(weight.shape[0]):
            if weight[i] == 0.0:
                continue
            first = indptr[i]
            count += (indptr[i + 1] - first) * (indptr[i + 1] - first + 1) // 2
            for a in range(first, indptr[i + 1]):
                x, row = weight[i] * data[a], indices[a]
                for b in range(first, a + 1):
                    out[row, indices[b]] += x * data[b]
    return count


def neighbours(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
               Py_ssize_t d, const Py_ssize_t[::1] rows, double[::1] out):
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


def inner(const double[::1] v, const double[::1] w):
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
