"""Products of a matrix stored by coordinate with K columns at once; `matrix` has those with one.

A is given in CSR form (row i is the column A_i), or dense with an empty indptr. K is a multiple of
four: pads are columns of zeros. `many.h` has the inner loops.
"""

from ..common.types cimport index_t, value_t

cdef extern from "products_k.h" nogil:
    void fetch "APCG_FETCH"(const void *address)
    Products _products_for "apcg_products_for"(size_t value, size_t index, bint dense)
    Py_ssize_t power "apcg_power"(int count)


cdef Products products_for(size_t value, size_t index, bint dense) noexcept nogil:
    """The loops for values and indices of these sizes in bytes."""
    return _products_for(value, index, dense)


def adjoint(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
        const double[:, ::1] x, double[:, ::1] out, const int[::1] far=None):
    """out += sum_i A_i x_i', K a multiple of four; rows of x that are zero cost nothing.

    `far` is how many numbers of each row, its last ones, are of features that are not in the cache in
    any case; without it all are taken to be so.
    """
    cdef Py_ssize_t i, k, size = x.shape[1], m = out.shape[0], first, fetched
    cdef bint dense = indptr.shape[0] == 0, zero
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    cdef const int *some = NULL
    if far is not None:
        some = &far[0]
    if data.shape[0] == 0:
        return
    with nogil:
        for i in range(x.shape[0]):
            if not dense and i + 1 < x.shape[0]:
                fetched = some[i + 1] if some != NULL else indptr[i + 2] - indptr[i + 1]
                use.fetch(&indices[0] + indptr[i + 2] - fetched, fetched, &out[0, 0], size)
            zero = True
            for k in range(size):
                zero &= x[i, k] == 0.0
            if zero:
                continue
            if dense:
                use.add1(&data[i * m], NULL, m, &out[0, 0], size, &x[i, 0], &x[i, 0])
            elif indptr[i + 1] > indptr[i]:
                first = indptr[i]
                use.add1(&data[first], &indices[first], indptr[i + 1] - first, &out[0, 0], size,
                         &x[i, 0], &x[i, 0])


def adjoint_labels(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
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


def times(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         const double[:, ::1] W, double[:, ::1] out, const int[::1] far=None):
    """out_i = W' A_i, K a multiple of four; `far` as in `dot`"""
    cdef Py_ssize_t i, size = W.shape[1], m = W.shape[0], first, fetched
    cdef bint dense = indptr.shape[0] == 0
    cdef Products use = products_for(sizeof(value_t), sizeof(index_t), dense)
    cdef const int *some = NULL
    if far is not None:
        some = &far[0]
    with nogil:
        for i in range(out.shape[0]):
            if dense:
                use.dot1(&data[i * m], NULL, m, &W[0, 0], size, 0.0, -1.0, 1.0, &out[i, 0])
            elif data.shape[0] == 0:
                use.dot1(NULL, NULL, 0, &W[0, 0], size, 0.0, -1.0, 1.0, &out[i, 0])
            else:
                if i + 1 < out.shape[0]:
                    fetched = some[i + 1] if some != NULL else indptr[i + 2] - indptr[i + 1]
                    use.fetch(&indices[0] + indptr[i + 2] - fetched, fetched, &W[0, 0], size)
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


def place_features(const int[::1] counts, int least, int[::1] place, Py_ssize_t[::1] order) -> int:
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


def split_features(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                   const int[::1] place, int near, value_t[::1] shared, index_t[::1] places,
                   index_t[::1] shared_ptr, int[::1] far, value_t[::1] own, index_t[::1] features,
                   index_t[::1] own_ptr, double[::1] squares, value_t[::1] room,
                   index_t[::1] room_places):
    """The numbers of features with a place and those of the others, in two matrices.

    A row of the first has its places from `near` on after the others: `far` counts them. `squares`
    are the sums of squares of the others, by row. The room is for the longest row.
    """
    cdef Py_ssize_t i, k, here = 0, there = 0, later
    cdef int at
    cdef double sum
    with nogil:
        shared_ptr[0] = own_ptr[0] = 0
        for i in range(indptr.shape[0] - 1):
            sum, later = 0.0, 0
            for k in range(indptr[i], indptr[i + 1]):
                at = place[indices[k]]
                if at >= 0:  # both are written, one is kept: a branch would be guessed wrong often
                    shared[here], places[here] = data[k], at
                    room[later], room_places[later] = data[k], at
                    here += at < near
                    later += at >= near
                else:
                    own[there], features[there] = data[k], indices[k]
                    sum += <double> data[k] * <double> data[k]
                    there += 1
            far[i] = <int> later
            for k in range(later):
                shared[here + k], places[here + k] = room[k], room_places[k]
            here += later
            shared_ptr[i + 1], own_ptr[i + 1] = here, there
            squares[i] = sum


def spread_features(const double[:, ::1] rows, const Py_ssize_t[::1] order,
                    const value_t[::1] own, const index_t[::1] features,
                    const index_t[::1] own_ptr, const double[:, ::1] x, double[:, ::1] out):
    """The rows of the features with a place, and a_ij x_i for those that row i has alone.

    `rows` may have pads; out is zero before.
    """
    cdef Py_ssize_t i, j, k, K = out.shape[1]
    with nogil:
        for j in range(order.shape[0]):
            for k in range(K):
                out[order[j], k] = rows[j, k]
        for i in range(x.shape[0]):
            for j in range(own_ptr[i], own_ptr[i + 1]):
                for k in range(K):
                    out[features[j], k] = own[j] * x[i, k]


# ---- dense X, few outputs ---------------------------------------------------------------------------

cdef extern from "few_outputs.h" nogil:
    void apcg_rows_dot(const double *X, Py_ssize_t rows, Py_ssize_t d, const double *R,
                       Py_ssize_t outputs, Py_ssize_t wide, double *rest, double *out)
    void apcg_rows_tdot(const double *X, Py_ssize_t rows, Py_ssize_t d, const Py_ssize_t *some,
                        Py_ssize_t count, const double *W, Py_ssize_t wide, double *out)


def dense_adjoint(const double[:, ::1] X, const double[:, :] R, double[:, ::1] rest,
                  double[:, ::1] out):
    """out += R'X; numbers of a row of R are side by side. `rest`, 8 for each output, is zero."""
    if out.shape[0] == 0 or out.shape[1] == 0 or X.shape[0] == 0:
        return
    with nogil:
        apcg_rows_dot(&X[0, 0], X.shape[0], X.shape[1], &R[0, 0], out.shape[0],
                      R.strides[0] // <Py_ssize_t>sizeof(double), &rest[0, 0], &out[0, 0])


def dense_times(const double[:, ::1] X, const Py_ssize_t[::1] some, const double[:, ::1] W,
                double[:, ::1] out):
    """out = X_S W, for some columns S; W has a row for each, of a multiple of four numbers."""
    if X.shape[0] == 0 or some.shape[0] == 0:
        out[:, :] = 0.0
        return
    with nogil:
        apcg_rows_tdot(&X[0, 0], X.shape[0], X.shape[1], &some[0], some.shape[0], &W[0, 0],
                       W.shape[1], &out[0, 0])
