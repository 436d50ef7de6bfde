"""Products of a matrix stored by coordinate with K columns at once; `matrix` has those with one.

A is given in CSR form (row i is the column A_i), or dense with an empty indptr. K is a multiple of
four: pads are columns of zeros. `many.h` has the inner loops.
"""

from .types cimport index_t, value_t

cdef extern from "many.h" nogil:
    void fetch "APCG_FETCH"(const void *address)
    Products _products_for "apcg_products_for"(size_t value, size_t index, bint dense)


cdef extern from *:
    """
    #define APCG_AHEAD 6 /* nonzeros: how far ahead rows of a sum are fetched */
    """
    const Py_ssize_t AHEAD "APCG_AHEAD"


cdef Products products_for(size_t value, size_t index, bint dense) noexcept nogil:
    """The loops for values and indices of these sizes in bytes."""
    return _products_for(value, index, dense)


def dot(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        const double[:, ::1] x, double[:, ::1] out):
    """out += sum_i A_i x_i', K a multiple of four; rows of x that are zero cost nothing."""
    cdef Py_ssize_t i, k, size = x.shape[1], m = out.shape[0], first
    cdef bint dense = indptr.shape[0] == 0, zero
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    if data.shape[0] == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            zero = True
            for k in range(size):
                zero &= x[i, k] == 0.0
            if zero:
                continue
            if dense:
                use.add1(&data[i * m], NULL, m, &out[0, 0], size, &x[i, 0], &x[i, 0], NULL, 0)
            elif indptr[i + 1] > indptr[i]:
                first = indptr[i]
                use.add1(&data[first], &indices[first], indptr[i + 1] - first, &out[0, 0], size,
                         &x[i, 0], &x[i, 0], &indices[0] + first + AHEAD,
                         indices.shape[0] - first - AHEAD)


def dot_labels(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
               const int[::1] labels, const double[::1] amounts, const double[::1] share,
               double[:, ::1] out):
    """out = sum_i A_i c_i (e_i - share)', e_i the unit vector of label i; out is zero before.

    `amounts` are c, or one number for all. Only one column for each number of A, and then a pass
    over `out`.
    """
    cdef Py_ssize_t i, j, k, t, size = out.shape[1], m = out.shape[0], begin, end
    cdef Py_ssize_t mask = -1 if amounts.shape[0] > 1 else 0
    cdef bint dense = indptr.shape[0] == 0
    cdef double c, total
    if data.shape[0] == 0:
        return
    with nogil:
        for i in range(labels.shape[0]):
            c, k = amounts[i & mask], labels[i]
            if dense:
                for j in range(m):
                    out[j, k] += c * data[i * m + j]
                continue
            begin, end = indptr[i], indptr[i + 1]
            for t in range(begin, end):
                if t + 16 < end:
                    fetch(&out[indices[t + 16], k])
                out[indices[t], k] += c * data[t]
        for j in range(m):
            total = 0.0
            for k in range(size):
                total += out[j, k]
            if total != 0.0:
                for k in range(size):
                    out[j, k] -= total * share[k]


def tdot(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         const double[:, ::1] W, double[:, ::1] out):
    """out_i = W' A_i, K a multiple of four"""
    cdef Py_ssize_t i, size = W.shape[1], m = W.shape[0], first
    cdef bint dense = indptr.shape[0] == 0
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    with nogil:
        for i in range(out.shape[0]):
            if dense:
                use.dot1(&data[i * m], NULL, m, &W[0, 0], size, 0.0, -1.0, 1.0, &out[i, 0])
            elif data.shape[0] == 0:
                use.dot1(NULL, NULL, 0, &W[0, 0], size, 0.0, -1.0, 1.0, &out[i, 0])
            else:
                first = indptr[i] if indptr[i] < indptr[i + 1] else 0
                use.dot1(&data[first], &indices[first], indptr[i + 1] - indptr[i], &W[0, 0], size,
                         0.0, -1.0, 1.0, &out[i, 0])


# ---- features by how many rows have them -------------------------------------------------------------

def count_features(const index_t[::1] indices, int[::1] counts):
    """counts_j += how many numbers there are of feature j"""
    cdef Py_ssize_t k
    with nogil:
        for k in range(indices.shape[0]):
            counts[indices[k]] += 1


def place_features(const int[::1] counts, int least, int[::1] place, Py_ssize_t[::1] order):
    """Features of at least `least` numbers get places, those of many numbers first; others get -1.

    They are sorted by the power of two below their count, which is all that a cache cares for.
    order[place_j] = j; returns how many places there are.
    """
    cdef Py_ssize_t j, at, e, before = 0
    cdef Py_ssize_t first[32]
    with nogil:
        for e in range(32):
            first[e] = 0
        for j in range(counts.shape[0]):
            if counts[j] >= least:
                first[power(counts[j])] += 1
        for e in range(31, -1, -1):
            at = first[e]
            first[e] = before
            before += at
        for j in range(counts.shape[0]):
            place[j] = -1
            if counts[j] >= least:
                e = power(counts[j])
                place[j], order[first[e]] = <int> first[e], j
                first[e] += 1
    return before


cdef inline Py_ssize_t power(int count) noexcept nogil:
    """log2, rounded down; 0 of 0"""
    cdef Py_ssize_t e = 0
    while count > 1:
        count >>= 1
        e += 1
    return e


def split_features(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                   const int[::1] place, value_t[::1] shared, index_t[::1] places,
                   index_t[::1] shared_ptr, value_t[::1] own, index_t[::1] features,
                   index_t[::1] own_ptr, double[::1] squares):
    """The numbers of features with a place and those of the others, in two matrices.

    `squares` are the sums of squares of the others, by row.
    """
    cdef Py_ssize_t i, k, here = 0, there = 0
    cdef int at
    cdef double sum
    with nogil:
        shared_ptr[0] = own_ptr[0] = 0
        for i in range(indptr.shape[0] - 1):
            sum = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                at = place[indices[k]]
                if at >= 0:
                    shared[here], places[here] = data[k], at
                    here += 1
                else:
                    own[there], features[there] = data[k], indices[k]
                    sum += <double> data[k] * <double> data[k]
                    there += 1
            shared_ptr[i + 1], own_ptr[i + 1] = here, there
            squares[i] = sum
