"""Products with a matrix stored by coordinate, in double precision whatever the data is.

SciPy and NumPy would copy a float32 matrix to float64 first; these read it as it is. A is given in
CSR form (row i is the column A_i), or dense with an empty indptr.
"""

from .types cimport index_t, value_t


def transpose_dot(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                  const double[::1] r, double[::1] out):
    """out_i = <A_i, r>."""
    cdef Py_ssize_t i, k, rows = r.shape[0]
    cdef double total
    with nogil:
        for i in range(out.shape[0]):
            total = 0.0
            if indptr.shape[0]:
                for k in range(indptr[i], indptr[i + 1]):
                    total += data[k] * r[indices[k]]
            else:
                for k in range(rows):
                    total += data[i * rows + k] * r[k]
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
    """out_i = sum_j weight_j A_ji^2."""
    cdef Py_ssize_t i, k, rows = weight.shape[0]
    cdef double total
    with nogil:
        for i in range(out.shape[0]):
            total = 0.0
            if indptr.shape[0]:
                for k in range(indptr[i], indptr[i + 1]):
                    total += weight[indices[k]] * (<double> data[k] * data[k])
            else:
                for k in range(rows):
                    total += weight[k] * (<double> data[i * rows + k] * data[i * rows + k])
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


def has_duplicates(const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t[::1] seen):
    """Whether a row of the CSR structure names a column twice; `seen` is room for all columns, -1."""
    cdef Py_ssize_t i, k
    cdef bint found = False
    with nogil:
        for i in range(indptr.shape[0] - 1):
            for k in range(indptr[i], indptr[i + 1]):
                if seen[indices[k]] == i:
                    found = True
                    break
                seen[indices[k]] = i
            if found:
                break
    return found


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
