"""Sparse columns, packed: entries of a row number and a value side by side, in float or double.

`wide` says that the values are double. A packed matrix is an array of bytes with the place where
each column starts. Sums are double.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

from ..losses.penalty cimport apcg_penalty, penalty
from ..common.types cimport index_t, value_t

cdef extern from "columns.h" nogil:
    ctypedef struct apcg_narrow:
        int32_t row
        float x
    ctypedef struct apcg_wide:
        int32_t row
        double x
    ctypedef struct apcg_set:
        const int64_t *start
        const int64_t *ids
        const double *squares
        const double *mean
    void APCG_FETCH_FOR_WRITE(const void *address)
    void apcg_products_n(const apcg_narrow *a, const int64_t *start, const int64_t *list,
                         Py_ssize_t count, const double *u, double *out)
    void apcg_products_w(const apcg_wide *a, const int64_t *start, const int64_t *list,
                         Py_ssize_t count, const double *u, double *out)
    void apcg_times_n(const apcg_narrow *a, const int64_t *start, const int64_t *ids,
                      const double *v, Py_ssize_t count, double *u)
    void apcg_times_w(const apcg_wide *a, const int64_t *start, const int64_t *ids,
                      const double *v, Py_ssize_t count, double *u)
    Py_ssize_t apcg_sweep_n(const apcg_narrow *a, const apcg_set *s, int64_t *list,
                            Py_ssize_t count, double *v, double *r, double *sigma,
                            const apcg_penalty *p, double *worst)
    Py_ssize_t apcg_sweep_w(const apcg_wide *a, const apcg_set *s, int64_t *list,
                            Py_ssize_t count, double *v, double *r, double *sigma,
                            const apcg_penalty *p, double *worst)
    void apcg_scaled_n(const apcg_narrow *a, const int64_t *start, const int64_t *ids,
                       Py_ssize_t count, const double *root, apcg_narrow *out, int64_t *starts,
                       double *squares, double *product)
    void apcg_scaled_w(const apcg_wide *a, const int64_t *start, const int64_t *ids,
                       Py_ssize_t count, const double *root, apcg_wide *out, int64_t *starts,
                       double *squares, double *product)


ctypedef fused entry_t:
    apcg_narrow
    apcg_wide

#: Entries ahead, whose place is fetched.
cdef enum:
    AHEAD = 24


def entry_size(bint wide) -> int:
    """The bytes of an entry."""
    return sizeof(apcg_wide) if wide else sizeof(apcg_narrow)


def pack(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         bint wide, unsigned char[::1] out, int64_t[::1] start, int64_t[::1] place,
         double[::1] squares, double[::1] most):
    """CSR rows to packed columns, with the square of each and its greatest |x|.

    `start` has an entry more than there are columns, and `place` as many.
    """
    cdef unsigned char *at = &out[0] if out.shape[0] else NULL
    if wide:
        _pack(data, indices, indptr, <apcg_wide *> at, start, place, squares, most)
    else:
        _pack(data, indices, indptr, <apcg_narrow *> at, start, place, squares, most)


cdef void _pack(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                entry_t *out, int64_t[::1] start, int64_t[::1] place, double[::1] squares,
                double[::1] most) noexcept:
    cdef Py_ssize_t i, k, size = data.shape[0], d = squares.shape[0]
    cdef int64_t at, total = 0
    cdef double square, largest, x
    with nogil:
        for k in range(d):
            place[k] = 0
        for k in range(size):
            place[indices[k]] += 1
        for k in range(d):
            start[k] = total
            total += place[k]
            place[k] = start[k]
        start[d] = total
        for i in range(indptr.shape[0] - 1):
            for k in range(indptr[i], indptr[i + 1]):
                if k + AHEAD < size:
                    APCG_FETCH_FOR_WRITE(out + place[indices[k + AHEAD]])
                at = place[indices[k]]
                place[indices[k]] = at + 1
                out[at].row, out[at].x = i, data[k]
        for k in range(d):
            square = largest = 0.0
            for i in range(start[k], start[k + 1]):
                x = out[i].x
                square += x * x
                largest = max(largest, fabs(x))
            squares[k], most[k] = square, largest


def products(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
             const int64_t[::1] columns, const double[::1] u, double[::1] out):
    """out_j = <A_j, u> for the columns listed, or for all if the list is empty"""
    cdef const int64_t *some = &columns[0] if columns.shape[0] else NULL
    cdef Py_ssize_t count = columns.shape[0] if columns.shape[0] else start.shape[0] - 1
    if entries.shape[0] == 0:
        return
    with nogil:
        if wide:
            apcg_products_w(<const apcg_wide *> &entries[0], &start[0], some, count, &u[0], &out[0])
        else:
            apcg_products_n(<const apcg_narrow *> &entries[0], &start[0], some, count, &u[0],
                            &out[0])


def add(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
        const int64_t[::1] ids, const double[::1] v, double[::1] out):
    """out += sum_k v_k A_(ids k)"""
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return
    with nogil:
        if wide:
            apcg_times_w(<const apcg_wide *> &entries[0], &start[0], &ids[0], &v[0], ids.shape[0],
                         &out[0])
        else:
            apcg_times_n(<const apcg_narrow *> &entries[0], &start[0], &ids[0], &v[0],
                         ids.shape[0], &out[0])


def scaled(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
           const int64_t[::1] ids, const double[::1] root, unsigned char[::1] out,
           int64_t[::1] starts, double[::1] squares, double[::1] product):
    """The columns `ids` times root, row by row; their squares, and their products with root"""
    if entries.shape[0] == 0 or ids.shape[0] == 0:
        return
    with nogil:
        if wide:
            apcg_scaled_w(<const apcg_wide *> &entries[0], &start[0], &ids[0], ids.shape[0],
                          &root[0], <apcg_wide *> &out[0], &starts[0], &squares[0], &product[0])
        else:
            apcg_scaled_n(<const apcg_narrow *> &entries[0], &start[0], &ids[0], ids.shape[0],
                          &root[0], <apcg_narrow *> &out[0], &starts[0], &squares[0], &product[0])


def gram_rows(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
              const int64_t[::1] place, Py_ssize_t first, const double[::1] bend,
              int64_t[::1] positions, double[::1] values, double[:, ::1] out):
    """out_kl = sum_i bend_i A_ik A_il over the rows of a CSR matrix, for some columns k and l.

    A column is at the position `place` says, if that is not negative; k are those from `first` on.
    bend has an entry for each row; `positions` and `values` have room for each column.
    """
    cdef Py_ssize_t i, t, s, count, fresh, size = out.shape[1], n = indptr.shape[0] - 1
    cdef int64_t l
    cdef double x
    cdef double *to
    out[:, :] = 0.0
    if out.shape[0] == 0 or size == 0:
        return
    with nogil:
        for i in range(n):
            count, fresh = 0, size  # new ones are kept at the other end
            for t in range(indptr[i], indptr[i + 1]):
                l = place[indices[t]]
                if l < 0:
                    continue
                if l < first:
                    positions[count], values[count] = l, data[t]
                    count += 1
                else:
                    fresh -= 1
                    positions[fresh], values[fresh] = l, data[t]
            for s in range(fresh, size):
                x = bend[i] * values[s]
                to = &out[positions[s] - first, 0]
                for t in range(count):
                    to[positions[t]] += x * values[t]
                for t in range(fresh, size):
                    to[positions[t]] += x * values[t]


def sweep(const unsigned char[::1] entries, bint wide, const int64_t[::1] start,
          const int64_t[::1] ids, const double[::1] squares, const double[::1] mean,
          int64_t[::1] positions, double[::1] v, double[::1] r, const double[::1] a,
          const double[::1] b, const double[::1] lower,
          const double[::1] upper) -> tuple[float, int, float]:
    """A step on each position of a model: the greatest violation, how many are kept, and sigma.

    Position k stands for the column ids_k, whose square is squares_k; it is that of the centred
    column with an intercept, and mean_k is then <e, A_j> for a unit vector e, else `mean` is empty.
    Those that are not zero, or moved, are then the first ones of `positions`. r -= A move, up to
    sigma e.
    """
    cdef apcg_penalty p = penalty(a, b, lower, upper)
    cdef double worst = 0.0, sigma = 0.0
    cdef Py_ssize_t kept, count = positions.shape[0]
    cdef apcg_set s
    cdef const unsigned char *at = &entries[0] if entries.shape[0] else NULL
    if count == 0:
        return 0.0, 0, sigma
    s = apcg_set(&start[0], &ids[0], &squares[0], NULL)
    if mean.shape[0]:
        s.mean = &mean[0]
    with nogil:
        if wide:
            kept = apcg_sweep_w(<const apcg_wide *> at, &s, &positions[0], count, &v[0], &r[0],
                                &sigma, &p, &worst)
        else:
            kept = apcg_sweep_n(<const apcg_narrow *> at, &s, &positions[0], count, &v[0], &r[0],
                                &sigma, &p, &worst)
    return worst, kept, sigma
