"""Sparse columns, packed: entries of a row number and a value side by side.

Values are float, as parts of one unit, so that float has room for columns of any size; sums are
double.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

from ..common.types cimport index_t, value_t
from ..losses.penalty cimport apcg_penalty, penalty

cdef extern from "columns.h" nogil:
    ctypedef struct apcg_set:
        const int64_t *ids
        const double *squares
        const double *slopes
        const double *mean
        double total
        double bend
    void APCG_FETCH_FOR_WRITE(const void *address)
    double apcg_dot(const apcg_columns *A, int64_t j, const double *u)
    void apcg_add(const apcg_columns *A, int64_t j, double t, double *u)
    Py_ssize_t apcg_column_sweep(const apcg_columns *A, const apcg_set *set, int64_t *list,
                                 Py_ssize_t count, double *v, double *u, bint beside,
                                 double *sigma, const apcg_penalty *p, double *worst)

#: the bytes of an entry
ENTRY = sizeof(apcg_entry)

#: Entries ahead, whose place is fetched.
cdef enum:
    AHEAD = 24


def pack(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
         double unit, unsigned char[::1] out, int64_t[::1] start, int64_t[::1] place,
         double[::1] most):
    """CSR rows to packed columns, with the greatest |x| of each.

    `start` has an entry more than there are columns, and `place` as many.
    """
    cdef apcg_entry *entries = <apcg_entry *> &out[0] if out.shape[0] else NULL
    cdef Py_ssize_t i, k, size = data.shape[0], d = most.shape[0]
    cdef int64_t at, total = 0
    cdef double largest, share = 1.0 / unit
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
                    APCG_FETCH_FOR_WRITE(entries + place[indices[k + AHEAD]])
                at = place[indices[k]]
                place[indices[k]] = at + 1
                entries[at].row, entries[at].x = i, share * data[k]
        for k in range(d):
            largest = 0.0
            for i in range(start[k], start[k + 1]):
                largest = max(largest, fabs(entries[i].x))
            most[k] = largest * unit


cdef class Columns:
    """Packed columns: where each of them begins in the entries, and the end of the last."""

    def __init__(self, const unsigned char[::1] entries, const int64_t[::1] start, double unit):
        self.entries, self.start = entries.base, start.base
        cdef const apcg_entry *first = NULL
        if entries.shape[0]:
            first = <const apcg_entry *> &entries[0]
        self.at = apcg_columns(first, &start[0], unit)

    def dots(self, const double[:, ::1] u, const int64_t[::1] ids, const int64_t[::1] rows,
             double[::1] out):
        """out_k = <A_(ids k), row rows_k of u>; without rows it is the first, without ids k = j."""
        cdef Py_ssize_t k, n = u.shape[1]
        cdef bint some = ids.shape[0] > 0, many = rows.shape[0] > 0
        with nogil:
            for k in range(out.shape[0]):
                out[k] = apcg_dot(&self.at, ids[k] if some else k,
                                  &u[0, 0] + (rows[k] * n if many else 0))

    def add(self, const int64_t[::1] ids, const int64_t[::1] rows, const double[::1] v,
            double[:, ::1] out):
        """Row rows_k of out, or the first, += v_k A_(ids k)"""
        cdef Py_ssize_t k, n = out.shape[1]
        cdef bint many = rows.shape[0] > 0
        with nogil:
            for k in range(ids.shape[0]):
                if v[k] != 0.0:
                    apcg_add(&self.at, ids[k], v[k], &out[0, 0] + (rows[k] * n if many else 0))

    def bends(self, const int64_t[::1] ids, const double[::1] bend, double[::1] squares,
              double[::1] products):
        """For the columns `ids` sum_i bend_i A_ij^2, and sum_i bend_i A_ij."""
        cdef apcg_columns A = self.at
        cdef Py_ssize_t k
        cdef int64_t i
        cdef double x, by, square, product
        with nogil:
            for k in range(ids.shape[0]):
                square = product = 0.0
                for i in range(A.start[ids[k]], A.start[ids[k] + 1]):
                    x = A.entries[i].x
                    by = x * bend[A.entries[i].row]
                    square += x * by
                    product += by
                squares[k], products[k] = square * A.unit * A.unit, product * A.unit

    def sweep(self, const int64_t[::1] ids, const double[::1] squares, const double[::1] slopes,
              const double[::1] mean, double total, double bend, double sigma,
              int64_t[::1] positions, double[::1] v, double[::1] u, const double[::1] a,
              const double[::1] b, const double[::1] lower,
              const double[::1] upper) -> tuple[float, int, float]:
        """A step on each position of a model: the greatest violation, how many are kept, and sigma.

        Position k stands for the column ids_k, with curvature squares_k and the mean mean_k, which
        is empty without an intercept. Those that are not zero, or moved, are then the first ones of
        `positions`. u += D A move; if bend is 0, each number of u has its D beside it.
        """
        cdef apcg_penalty p = penalty(a, b, lower, upper)
        cdef double worst = 0.0
        cdef Py_ssize_t kept, count = positions.shape[0]
        cdef apcg_set s
        if count == 0:
            return 0.0, 0, sigma
        s = apcg_set(&ids[0], &squares[0], &slopes[0], NULL, total, bend)
        if mean.shape[0]:
            s.mean = &mean[0]
        with nogil:
            kept = apcg_column_sweep(&self.at, &s, &positions[0], count, &v[0], &u[0], bend == 0.0,
                                     &sigma, &p, &worst)
        return worst, kept, sigma


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
