"""Rows with an id: X = [E F] where a row has at most one entry in the columns of E.

Rows are sorted by their id e, those without one last. Row i has own_i in column e of E, and entries
(column, value) of F. Under id e there are the columns of F that its rows have: a pattern, with a
place (`slot`) for each entry of F.

    H = [D  G'; G  B],   D diagonal, G_e = sum over the rows of e of h_i own_i f_i
    S = B - sum_e G_e G_e'/D_e        (upper triangle by rows)

The sizes of all arrays are trusted.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from ..common.types cimport index_t, value_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define APCG_LOWEST_BIT(x) __builtin_ctzll(x)
    #define APCG_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define APCG_PREFETCH(address)
    static int APCG_LOWEST_BIT(unsigned long long x) { int k = 0; while (!(x >> k & 1)) k++; return k; }
    #endif
    /* row_column += c v */
    static inline void apcg_scatter(const int32_t *restrict column, const double *restrict v,
                                    ptrdiff_t count, double c, double *restrict row) {
        ptrdiff_t b = 0;
        for (; b + 4 <= count; b += 4) {  /* no column is there twice */
            const double x0 = row[column[b]] + c * v[b], x1 = row[column[b + 1]] + c * v[b + 1];
            const double x2 = row[column[b + 2]] + c * v[b + 2];
            const double x3 = row[column[b + 3]] + c * v[b + 3];
            row[column[b]] = x0;
            row[column[b + 1]] = x1;
            row[column[b + 2]] = x2;
            row[column[b + 3]] = x3;
        }
        for (; b < count; b++) row[column[b]] += c * v[b];
    }
    """
    int APCG_LOWEST_BIT(uint64_t x) nogil
    void prefetch "APCG_PREFETCH"(const void *address) nogil
    void apcg_scatter(const int32_t *column, const double *v, Py_ssize_t count, double c,
                      double *row) nogil


# ---- which columns are E ------------------------------------------------------------------------

def counts(const index_t[::1] indices, const index_t[::1] indptr, int64_t[::1] count,
           int64_t[::1] following) -> bool:
    """How many rows have each column, and the least next column of a row that has it.

    Returns whether every row has its columns in order; `following` is of no use if not.
    """
    cdef Py_ssize_t i, k, begin, end, n = indptr.shape[0] - 1
    cdef int64_t a, b
    cdef bint ordered = True
    with nogil:
        for i in range(n):
            begin, end = indptr[i], indptr[i + 1]
            if begin == end:
                continue
            a = indices[begin]
            count[a] += 1
            for k in range(begin + 1, end):
                b = indices[k]
                count[b] += 1
                if b < a:
                    ordered = False
                elif b < following[a]:
                    following[a] = b
                a = b
    return ordered


def widest(const int64_t[::1] following) -> tuple[int, int]:
    """The widest range of columns of which no row has two: it ends at the least `following`."""
    cdef Py_ssize_t j, begin = 0, low = 0, high = 0, d = following.shape[0]
    cdef int64_t least = d
    with nogil:
        for j in range(d):
            if j == least:
                if j - begin > high - low:
                    low, high = begin, j
                begin, least = j, d
            least = min(least, following[j])
        if d - begin > high - low:
            low, high = begin, d
    return low, high


def independent(const index_t[::1] rows, const index_t[::1] start, const int64_t[::1] order,
                unsigned char[::1] taken, unsigned char[::1] chosen):
    """Choose columns in this order, each if no row of it has a column that is chosen already.

    rows, start  the rows of each column
    """
    cdef Py_ssize_t c, k, j
    cdef bint free
    with nogil:
        for c in range(order.shape[0]):
            j = order[c]
            free = True
            for k in range(start[j], start[j + 1]):
                if taken[rows[k]]:
                    free = False
                    break
            if not free:
                continue
            chosen[j] = 1
            for k in range(start[j], start[j + 1]):
                taken[rows[k]] = 1


# ---- the layout ---------------------------------------------------------------------------------

def id_of_rows(const index_t[::1] indices, const index_t[::1] indptr, const int32_t[::1] place,
               Py_ssize_t ids, int32_t[::1] key):
    """key_i: the id of row i, or `ids` if it has none. place_j < ids says that j is in E."""
    cdef Py_ssize_t i, k, n = indptr.shape[0] - 1
    with nogil:
        for i in range(n):
            key[i] = <int32_t> ids
            for k in range(indptr[i], indptr[i + 1]):
                if place[indices[k]] < ids:
                    key[i] = place[indices[k]]
                    break


def sort_rows(const int32_t[::1] key, const index_t[::1] indptr, Py_ssize_t longest,
              int64_t[::1] room, int64_t[::1] first, int64_t[::1] by_length, int64_t[::1] order):
    """Rows by key, and by length where the key is the same; first_e is where key e begins.

    room  longest + 2 numbers; rows that are longer count as that long
    """
    cdef Py_ssize_t i, r, n = key.shape[0], length, keys = first.shape[0] - 1
    cdef int64_t at
    with nogil:
        for i in range(longest + 2):
            room[i] = 0
        for i in range(keys + 1):
            first[i] = 0
        for i in range(n):
            length = min(<Py_ssize_t> (indptr[i + 1] - indptr[i]), longest)
            room[length + 1] += 1
            first[key[i] + 1] += 1
        for i in range(longest + 1):
            room[i + 1] += room[i]
        for i in range(keys):
            first[i + 1] += first[i]
        for i in range(n):
            length = min(<Py_ssize_t> (indptr[i + 1] - indptr[i]), longest)
            by_length[room[length]] = i
            room[length] += 1
        for r in range(n):
            i = by_length[r]
            order[first[key[i]]] = i
            first[key[i]] += 1
        for i in range(keys, 0, -1):
            first[i] = first[i - 1]
        first[0] = 0


def copy_rows(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
              const int64_t[::1] order, const int32_t[::1] place, Py_ssize_t ids, bint border,
              Py_ssize_t last, double[::1] own, int64_t[::1] start, int32_t[::1] column,
              double[::1] value):
    """The rows in this order; with a border, an entry 1 in column `last` of F too."""
    cdef Py_ssize_t r, i, k, m, n = order.shape[0], total = indices.shape[0]
    cdef int64_t at = 0, low
    cdef int32_t j
    cdef double x
    with nogil:
        for r in range(n):
            if r + 24 < n:
                prefetch(&indptr[order[r + 24]])
            if r + 12 < n:  # rows are far apart: memory is asked for them in time
                k = indptr[order[r + 12]]
                if k < total:
                    prefetch(&indices[k])
                    prefetch(&data[k])
            i = order[r]
            own[r] = 0.0
            start[r] = low = at
            for k in range(indptr[i], indptr[i + 1]):
                j = place[indices[k]]
                x = data[k]
                if j < ids:
                    own[r] = x
                    continue
                j -= <int32_t> ids
                m = at
                while m > low and column[m - 1] > j:  # rows may be out of order
                    column[m] = column[m - 1]
                    value[m] = value[m - 1]
                    m -= 1
                column[m] = j
                value[m] = x
                at += 1
            if border:
                column[at] = <int32_t> last
                value[at] = 1.0
                at += 1
        start[n] = at


def pattern(const int64_t[::1] first, const int64_t[::1] start, const int32_t[::1] column,
            uint64_t[::1] bits, int32_t[::1] rank, int64_t[::1] under, int32_t[::1] columns,
            int32_t[::1] slot):
    """The columns under each id, in order, and the place of each entry among those of its id.

    bits  zeros, one bit for each column of F; rank: room for a number for each
    """
    cdef Py_ssize_t e, k, q, ids = under.shape[0] - 1, low, high
    cdef int64_t at = 0
    cdef int32_t j, own
    cdef uint64_t word
    with nogil:
        for e in range(ids):
            under[e] = at
            low, high = bits.shape[0], -1
            for k in range(start[first[e]], start[first[e + 1]]):
                q = column[k] >> 6
                bits[q] |= <uint64_t> 1 << (column[k] & 63)
                low, high = min(low, q), max(high, q)
            own = 0
            for q in range(low, high + 1):
                word = bits[q]
                bits[q] = 0
                while word:
                    j = <int32_t> (64 * q + APCG_LOWEST_BIT(word))
                    word &= word - 1
                    columns[at] = j
                    rank[j] = own
                    own += 1
                    at += 1
            for k in range(start[first[e]], start[first[e + 1]]):
                slot[k] = rank[column[k]]
        under[ids] = at


# ---- products -----------------------------------------------------------------------------------

def times(const int64_t[::1] first, const double[::1] own, const int64_t[::1] start,
          const int32_t[::1] column, const double[::1] value, const double[::1] w,
          double[::1] out):
    """out = X w, for w in the order E, F"""
    cdef Py_ssize_t e, i, k, ids = first.shape[0] - 2
    cdef const double *f = &w[ids] if w.shape[0] > ids else NULL
    cdef double mine, total
    with nogil:
        for e in range(ids + 1):
            mine = w[e] if e < ids else 0.0
            for i in range(first[e], first[e + 1]):
                total = own[i] * mine
                for k in range(start[i], start[i + 1]):
                    total = total + value[k] * f[column[k]]
                out[i] = total


def adjoint(const int64_t[::1] first, const double[::1] own, const int64_t[::1] start,
            const int32_t[::1] column, const double[::1] value, const double[::1] r,
            double[::1] out):
    """out += X'r"""
    cdef Py_ssize_t e, i, k, ids = first.shape[0] - 2
    cdef double *f = &out[ids] if out.shape[0] > ids else NULL
    cdef double total, x
    with nogil:
        for e in range(ids + 1):
            total = 0.0
            for i in range(first[e], first[e + 1]):
                x = r[i]
                if x == 0.0:
                    continue
                total = total + own[i] * x
                for k in range(start[i], start[i + 1]):
                    f[column[k]] += value[k] * x
            if e < ids:
                out[e] += total


def gram_times(const int64_t[::1] first, const double[::1] own, const int64_t[::1] start,
               const int32_t[::1] column, const double[::1] value, const double[::1] h,
               const double[::1] p, double[::1] q, double[::1] out):
    """q = X p, and out += X'(h q)"""
    cdef Py_ssize_t e, i, k, ids = first.shape[0] - 2
    cdef const double *f = &p[ids] if p.shape[0] > ids else NULL
    cdef double *g = &out[ids] if out.shape[0] > ids else NULL
    cdef double mine, x, total
    with nogil:
        for e in range(ids + 1):
            mine = p[e] if e < ids else 0.0
            total = 0.0
            for i in range(first[e], first[e + 1]):
                x = own[i] * mine
                for k in range(start[i], start[i + 1]):
                    x = x + value[k] * f[column[k]]
                q[i] = x
                x = x * h[i]
                if x == 0.0:
                    continue
                total = total + own[i] * x
                for k in range(start[i], start[i + 1]):
                    g[column[k]] += value[k] * x
            if e < ids:
                out[e] += total


def squares(const int64_t[::1] first, const double[::1] own, const int64_t[::1] start,
            const int32_t[::1] column, const double[::1] value, const double[::1] h,
            double[::1] out):
    """out_j += sum_i h_i X_ij^2"""
    cdef Py_ssize_t e, i, k, ids = first.shape[0] - 2
    cdef double *g = &out[ids] if out.shape[0] > ids else NULL
    with nogil:
        for e in range(ids + 1):
            for i in range(first[e], first[e + 1]):
                if h[i] == 0.0:
                    continue
                if e < ids:
                    out[e] += h[i] * own[i] * own[i]
                for k in range(start[i], start[i + 1]):
                    g[column[k]] += h[i] * value[k] * value[k]


# ---- H ------------------------------------------------------------------------------------------

cdef void rank_one(const int32_t *columns, const double *v, Py_ssize_t count, double scale,
                   Py_ssize_t k, double *S) noexcept nogil:
    """S += scale v v', of the columns that v has: the upper triangle, or if k is 0 the diagonal."""
    cdef Py_ssize_t a
    cdef double c
    if k == 0:
        for a in range(count):
            S[columns[a]] += scale * v[a] * v[a]
        return
    for a in range(count):
        c = scale * v[a]
        apcg_scatter(columns + a, v + a, count - a, c, S + k * columns[a])


def touched(const int64_t[::1] first, const double[::1] new, const double[::1] old,
            const int64_t[::1] under) -> tuple[float, float]:
    """Multiply-adds of the ids of which some h differs, and of all ids."""
    cdef Py_ssize_t e, i, ids = under.shape[0] - 1
    cdef double some = 0.0, total = 0.0, each
    with nogil:
        for e in range(ids):
            each = <double> (under[e + 1] - under[e])
            each = each * each
            total += each
            for i in range(first[e], first[e + 1]):
                if new[i] != old[i]:
                    some += each
                    break
    return some, total


def build(const int64_t[::1] first, const double[::1] own, const int64_t[::1] start,
          const int32_t[::1] column, const double[::1] value, const int64_t[::1] under,
          const int32_t[::1] columns, const int32_t[::1] slot, const double[::1] new,
          double[::1] old, unsigned char[::1] active, double[::1] D, double[::1] G,
          Py_ssize_t k, double[::1] S):
    """D, G and S for the h of `new`, from those for `old`, which becomes `new`.

    Only ids of which some h differs are looked at. If k is 0, S is its diagonal alone. active_e
    says that G_e is not zero.
    """
    cdef Py_ssize_t e, i, a, ids = under.shape[0] - 1, count, begin, end
    cdef double change, c
    cdef double *v
    cdef const int32_t *list
    cdef double *s = &S[0] if S.shape[0] else NULL
    cdef bint differs
    with nogil:
        for e in range(ids + 1):
            differs = False
            for i in range(first[e], first[e + 1]):
                if new[i] != old[i]:
                    differs = True
                    break
            if not differs:
                continue
            count, v, list = 0, NULL, NULL
            if e < ids:
                count = under[e + 1] - under[e]
                if count:
                    v = &G[under[e]]
                    list = &columns[under[e]]
                if active[e]:
                    rank_one(list, v, count, 1.0 / D[e], k, s)
                active[e] = 1
            for i in range(first[e], first[e + 1]):
                change = new[i] - old[i]
                if change == 0.0:
                    continue
                old[i] = new[i]
                begin, end = start[i], start[i + 1]
                if e < ids:
                    c = change * own[i]
                    D[e] += c * own[i]
                    for a in range(begin, end):
                        v[slot[a]] += c * value[a]
                for a in range(begin, end):
                    c = change * value[a]
                    if k == 0:
                        s[column[a]] += c * value[a]
                        continue
                    apcg_scatter(&column[a], &value[a], end - a, c, s + k * column[a])
            if e < ids:
                rank_one(list, v, count, -1.0 / D[e], k, s)


def eliminate(const int64_t[::1] under, const int32_t[::1] columns, const double[::1] D,
              const double[::1] G, const double[::1] r, double[::1] rest):
    """rest = r_F - G D^-1 r_E"""
    cdef Py_ssize_t e, k, ids = under.shape[0] - 1
    cdef double u
    with nogil:
        for k in range(rest.shape[0]):
            rest[k] = r[ids + k]
        for e in range(ids):
            u = r[e] / D[e]
            if u != 0.0:
                for k in range(under[e], under[e + 1]):
                    rest[columns[k]] -= G[k] * u


def restore(const int64_t[::1] under, const int32_t[::1] columns, const double[::1] D,
            const double[::1] G, const double[::1] r, const double[::1] f, double[::1] x):
    """x_E = D^-1 (r_E - G'f), x_F = f"""
    cdef Py_ssize_t e, k, ids = under.shape[0] - 1
    cdef double u
    with nogil:
        for e in range(ids):
            u = r[e]
            for k in range(under[e], under[e + 1]):
                u = u - G[k] * f[columns[k]]
            x[e] = u / D[e]
        for k in range(f.shape[0]):
            x[ids + k] = f[k]
