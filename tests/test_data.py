"""Matrices in every storage, against NumPy: products, slices, borders, and what is not copied.

The entries are small multiples of 1/4, so that sums are exact in whatever order: results are equal,
not close.
"""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, functions, solve
from apcg._kernels.data import matrix
from apcg.data import Bordered, Dense, Sparse, by_coordinate, by_row
from apcg.data.matrix import index_type

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
quarters = st.integers(-8, 8).map(lambda k: k / 4)


def compressed(M, index, rng, *, by_columns=False, repeated=False, zeros=False, shuffled=False):
    """A CSR or CSC matrix equal to M, with repeated, zero and unsorted entries as asked for."""
    data, indices, indptr = [], [], [0]
    for line in M.T if by_columns else M:
        columns = np.flatnonzero((line != 0) | (zeros & (rng.random(line.size) < 0.3)))
        values = line[columns]
        if repeated and columns.size:
            part = rng.integers(-8, 9, columns.size).astype(M.dtype) / 4
            columns, values = np.r_[columns, columns], np.r_[values - part, part]
        order = rng.permutation(columns.size) if shuffled else np.argsort(columns, kind="stable")
        data.append(values[order])
        indices.append(columns[order])
        indptr.append(indptr[-1] + columns.size)
    made = (sp.csc_array if by_columns else sp.csr_array)(M.shape, dtype=M.dtype)
    made.data = np.concatenate(data).astype(M.dtype)
    made.indices, made.indptr = np.concatenate(indices).astype(index), np.array(indptr, dtype=index)
    return made


@st.composite
def matrices(draw):
    """(a matrix as a user may give it, the same as a dense float64 array)"""
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.4, 1.0]))
    M = rng.integers(-8, 9, (n, d)) / 4 * (rng.random((n, d)) < density)
    M[rng.random(n) < 0.2] = 0.0
    M[:, rng.random(d) < 0.2] = 0.0
    given = M.astype(draw(st.sampled_from([np.float32, np.float64])))
    kind = draw(st.sampled_from(["dense", "compressed", *FORMATS]))
    if kind == "dense":
        return draw(st.sampled_from([np.array, np.asfortranarray, np.ndarray.tolist]))(given), M
    if kind != "compressed":
        return sp.coo_array(given).asformat(kind), M
    options = {k: draw(st.booleans()) for k in ("by_columns", "repeated", "zeros", "shuffled")}
    return compressed(given, draw(st.sampled_from([np.int32, np.int64])), rng, **options), M


@st.composite
def maps(draw):
    """(a map, the matrix A that it should be, with a column for each coordinate)"""
    given, M = draw(matrices())
    A, made = (M, by_coordinate(given, "A")) if draw(st.booleans()) else (M.T, by_row(given, "X"))
    if draw(st.booleans()):
        c = draw(st.sampled_from([1.0, -0.25, 3.0]))
        return made.bordered(c), np.vstack([A, np.full(A.shape[1], c)])
    return made, A


def vector(data, size):
    return np.array(data.draw(st.lists(quarters, min_size=size, max_size=size)), dtype=float)


@given(maps(), st.data())
@examples(300)
def test_a_map_is_its_matrix(pair, data):
    made, A = pair
    rows, n = A.shape
    border = made.constant != 0
    assert (made.shape, made.n_rows, made.n_coordinates) == (A.shape, rows, n)
    x, r = vector(data, n), vector(data, rows)
    np.testing.assert_array_equal(made.adjoint(x), A @ x)
    np.testing.assert_array_equal(made.times(r), A.T @ r)
    np.testing.assert_array_equal(made.squared_norms(), np.sum(A**2, axis=0))
    np.testing.assert_array_equal(made.squared_norms(r), r @ A**2)
    gram, count = made.gram(x)
    np.testing.assert_array_equal(gram, A * x @ A.T)
    kept, each = x != 0, np.diff(made.arrays[2]) if made.arrays[2].size else rows - border
    assert count == np.sum(kept * (each * (each + 1) / 2)) + border * made.nnz
    some = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=5)), dtype=np.intp)
    taken = made.take(some)
    assert taken.dtype == np.float64
    np.testing.assert_array_equal(dense(taken), A.T[some])


@given(maps(), st.data())
@examples(200)
def test_a_transposed_map_and_the_slices_of_a_map(pair, data):
    made, A = pair
    turned = made.transposed
    assert turned is made.transposed  # made once
    assert turned.shape == A.T.shape
    assert turned.constant == 0
    np.testing.assert_array_equal(dense(turned.take(np.arange(A.shape[0]))), A)
    np.testing.assert_array_equal(turned.squared_norms(), np.sum(A**2, axis=1))
    size = data.draw(st.integers(1, A.shape[1] + 1))
    if data.draw(st.booleans()):
        made.squared_norms()  # from then on known to the slices too
    first = 0
    for part in made.chunks(size):
        B = A[:, first : first + size]
        assert part.shape == B.shape
        assert part.constant == made.constant
        x, r = vector(data, B.shape[1]), vector(data, B.shape[0])
        np.testing.assert_array_equal(part.adjoint(x), B @ x)
        np.testing.assert_array_equal(part.times(r), B.T @ r)
        np.testing.assert_array_equal(part.squared_norms(), np.sum(B**2, axis=0))
        np.testing.assert_array_equal(part.lengths, made.lengths[first : first + size])
        np.testing.assert_array_equal(dense(part.take(np.arange(B.shape[1]))), B.T)
        first += size
    assert first - size < A.shape[1] <= first
    assert sum(part.nnz for part in made.chunks(size)) == made.nnz


@given(maps())
@examples(200)
def test_the_arrays_are_those_of_the_matrix(pair):
    """What the kernels read: no place twice, all inside, in a type that they know."""
    made, A = pair
    values, indices, indptr = made.arrays
    plain = A[:-1] if made.constant else A
    if made.constant:
        np.testing.assert_array_equal(A[-1], made.constant)
    assert values.dtype in (np.float32, np.float64)
    assert values.flags.c_contiguous
    assert made.nnz == values.size
    if indptr.size == 0:
        np.testing.assert_array_equal(values.reshape(plain.shape[::-1]), plain.T)
        np.testing.assert_array_equal(made.lengths, np.full(A.shape[1], plain.shape[0]))
        return
    assert indices.dtype == indptr.dtype
    assert indices.dtype in (np.int32, np.int64)
    assert indptr[-1] == indices.size == values.size
    np.testing.assert_array_equal(made.lengths, np.maximum(np.diff(indptr), 1))
    again = np.zeros_like(plain.T)
    for i, line in enumerate(again):
        own = indices[indptr[i] : indptr[i + 1]]
        assert np.unique(own).size == own.size
        line[own] = values[indptr[i] : indptr[i + 1]]
    np.testing.assert_array_equal(again, plain.T)


@given(matrices(), st.booleans())
@examples(100)
def test_nothing_that_was_given_is_changed(pair, by_columns):
    given, _ = pair
    before = pickle.dumps(given)
    made = (by_coordinate if by_columns else by_row)(given, "X")
    made.transposed, made.with_ones.transposed, made.squared_norms()
    assert pickle.dumps(given) == before


@given(maps())
@examples(50)
def test_pickled_maps(pair):
    made, A = pair
    made.transposed  # noqa: B018
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(dense(again.take(np.arange(A.shape[1]))), A.T)
    assert again.squared_norms().tobytes() == made.squared_norms().tobytes()


def test_a_dense_map_is_pickled_once():
    X = np.ones((100, 100))
    assert len(pickle.dumps(by_row(X, "X"))) < 1.1 * X.nbytes


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


# ---- entries that are not finite -----------------------------------------------------------------


@given(matrices(), st.sampled_from([np.nan, np.inf, -np.inf]), st.booleans(), st.data())
@examples(200)
def test_the_place_of_an_entry_that_is_not_finite(pair, value, by_columns, data):
    given, M = pair
    i, j = data.draw(st.integers(0, M.shape[0] - 1)), data.draw(st.integers(0, M.shape[1] - 1))
    if not sp.issparse(given):
        given = np.array(given)
        given[i, j] = value
    elif given.format == "csr":  # one of the stored entries, of which there may be two
        if not given.nnz:
            return
        k = data.draw(st.integers(0, given.nnz - 1))
        i, j = int(np.searchsorted(given.indptr, k, side="right")) - 1, int(given.indices[k])
        given.data[k] = value
    else:
        M = M.copy()
        M[i, j] = value
        given = sp.coo_array(M).asformat(given.format, copy=True)
    text = f"X contains 1 NaN or infinite entry (the first is {value} at row {i}, column {j})"
    with pytest.raises(ValueError, match=re.escape(text)):
        (by_coordinate if by_columns else by_row)(given, "X")


def test_the_first_of_many_and_their_number():
    M = np.ones((3, 4))
    M[1, 2] = M[2, 0] = M[2, 3] = np.nan
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(ValueError, match=r"3 NaN or infinite entries .* row 1, column 2"):
            by_row(form(M), "X")
        with pytest.raises(ValueError, match=r"3 NaN or infinite entries .* row 2, column 0"):
            by_coordinate(form(M), "X")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_square_that_overflows_is_no_fault_of_the_entry(form):
    M = np.array([[1.0, 2.0], [1e200, 3.0]])
    made = by_row(form(M), "X")
    np.testing.assert_array_equal(made.squared_norms(), [5.0, np.inf])
    twice = sp.csr_array((np.full(2, 1e308), [0, 0], [0, 2, 2]), shape=(2, 2))
    with pytest.raises(ValueError, match=r"1 NaN or infinite entry .* inf at row 0, column 0"):
        by_row(twice, "X")


def test_the_code_and_place_of_a_fault():
    """What the compiled check says of a CSR matrix with rows of 2, 0, 3 and 1 entries."""
    indptr, good = np.array([0, 2, 2, 5, 6]), np.array([0, 3, 1, 2, 4, 0])
    room, ones = np.full(5, -1), np.ones(6)

    def inspect(indices=good, indptr=indptr, data=ones, seen=room):
        return matrix.inspect_csr(data, indices, indptr, 5, seen.copy(), np.empty(4))

    assert inspect() == (matrix.SOUND, 0)
    assert inspect(seen=room[:0]) == (matrix.SOUND, 0)
    assert inspect(np.array([0, 3, 1, 5, 4, 0])) == (matrix.BROKEN, 2)
    assert inspect(indptr=np.array([0, 2, 1, 5, 6])) == (matrix.BROKEN, 1)
    assert inspect(indptr=np.array([0, 2, 2, 5, 7])) == (matrix.BROKEN, 3)
    assert inspect(good[:5]) == inspect(data=np.ones(5)) == (matrix.BROKEN, 3)
    assert inspect(np.array([0, 3, 2, 1, 4, 0]), seen=room[:0]) == (matrix.UNSORTED, 2)
    assert inspect(np.array([0, 3, 2, 1, 4, 0])) == (matrix.SOUND, 0)
    assert inspect(np.array([3, 3, 2, 1, 4, 0])) == (matrix.REPEATED, 0)
    assert inspect(data=np.array([1, 1, 1, np.inf, np.nan, 1])) == (matrix.NOT_FINITE, 3)
    # what is broken comes first, then what is there twice
    wrong = np.array([np.nan, 1, 1, 1, 1, 1])
    assert inspect(np.array([3, 3, 2, 1, 4, 0]), data=wrong) == (matrix.REPEATED, 0)
    assert inspect(np.array([3, 3, 2, 1, 4, -1]), data=wrong) == (matrix.BROKEN, 3)
    assert matrix.inspect_dense(wrong, np.empty(2)) == 0
    assert matrix.inspect_dense(wrong[::-1].copy(), np.empty(2)) == 5
    assert matrix.inspect_dense(np.ones(6), np.empty(2)) == -1


# ---- what is not copied --------------------------------------------------------------------------


def mapped(folder, name, array):
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_usable_sparse_arrays_are_not_copied(tmp_path, value, index, by_columns, on_disk):
    rng = np.random.default_rng(0)
    M = (rng.integers(-8, 9, (20, 9)) / 4 * (rng.random((20, 9)) < 0.5)).astype(value)
    X = compressed(M, index, rng, by_columns=by_columns, shuffled=True)
    if on_disk:
        for name in ("data", "indices", "indptr"):
            setattr(X, name, mapped(tmp_path, name, getattr(X, name)))
    made = by_coordinate(X, "A") if by_columns else by_row(X, "X")
    assert isinstance(made, Sparse)
    whole = (made.data, made.indices, made.indptr, made.stored.data, made.stored.indices)
    given = (X.data, X.indices, X.indptr, X.data, X.indices)
    for a, b in zip(whole, given, strict=True):
        assert np.shares_memory(a, b)
        assert a.dtype == b.dtype
    border = made.bordered(2.0)
    assert all(a is b for a, b in zip(border.arrays, made.arrays, strict=True))
    for part in (*made.chunks(4), *(b.inner for b in border.chunks(3))):
        assert np.shares_memory(part.data, X.data)
        assert np.shares_memory(part.indices, X.indices)
        assert np.shares_memory(part.stored.data, X.data)


@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_usable_dense_array_is_not_copied(tmp_path, value, by_columns, on_disk):
    X = np.arange(60, dtype=value).reshape(12, 5)
    X = np.asfortranarray(X) if by_columns else X
    X = mapped(tmp_path, "X", X) if on_disk else X
    made = by_coordinate(X, "A") if by_columns else by_row(X, "X")
    assert isinstance(made, Dense)
    assert np.shares_memory(made.data, X)
    assert np.shares_memory(made.stored, X)
    for part in made.chunks(5):
        assert np.shares_memory(part.data, X)
        assert np.shares_memory(part.stored, X)


def test_a_problem_on_disk(tmp_path):
    """ERM reads mapped arrays as they are, and finds what it finds in memory."""
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 30), density=0.2, format="csr", rng=rng)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    expected = solve(ERM(X, y, "logistic"), "apcg", max_epochs=5, random_state=0)
    disk = X.copy()
    for name in ("data", "indices", "indptr"):
        setattr(disk, name, mapped(tmp_path, name, getattr(X, name)))
    problem = ERM(disk, y, "logistic")
    theirs = (disk.data, disk.indices, disk.indptr)
    assert all(map(np.shares_memory, problem.samples.arrays, theirs))
    r = solve(problem, "apcg", max_epochs=5, random_state=0)
    np.testing.assert_array_equal(r.w, expected.w)


# ---- norms, borders, slices ----------------------------------------------------------------------


def test_norms_are_computed_once_and_cannot_be_changed():
    X = np.random.default_rng(0).standard_normal((30, 17))
    for form in (np.asarray, sp.csr_array):
        made = by_row(form(X), "X")
        norms = made.squared_norms()
        assert norms is made.squared_norms()
        np.testing.assert_allclose(norms, np.sum(X**2, axis=1), rtol=1e-14)
        with pytest.raises(ValueError, match="read-only"):
            norms[0] = 0
        # the check and the product by themselves: the same sums in the same order
        anew = Sparse(*made.arrays, 17) if sp.issparse(made.stored) else Dense(made.stored)
        assert anew.squared_norms().tobytes() == norms.tobytes()
        problem = ERM(form(X), np.arange(30.0), "squared")
        assert np.sqrt(norms.max()) == problem.R
        assert np.shares_memory(problem.samples.squared_norms(), problem.squared_norms)


def test_a_border_is_one_number_that_is_not_zero():
    made = by_row(np.ones((3, 2)), "X")
    for wrong in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="constant must be finite and not 0"):
            made.bordered(wrong)
    with pytest.raises(ValueError, match="has a border already"):
        made.bordered(1.0).bordered(2.0)
    assert isinstance(made.with_ones, Bordered)
    assert made.with_ones is made.with_ones
    assert made.with_ones.constant == 1
    assert made.constant == 0


def test_a_slice_has_a_coordinate():
    for made in (by_row(np.ones((3, 2)), "X"), by_row(sp.eye_array(3, format="csr"), "X")):
        with pytest.raises(ValueError, match="at least one coordinate, got 0"):
            list(made.chunks(0))


def test_a_copy_with_a_border_keeps_the_type_of_indices_or_widens_it():
    for index in (np.int32, np.int64):
        X = compressed(np.eye(4), index, np.random.default_rng(0))
        turned = by_row(X, "X").bordered(3.0).transposed
        assert turned.indptr.dtype == turned.indices.dtype
        np.testing.assert_array_equal(turned.stored.toarray(), [*np.eye(4), np.full(4, 3.0)])
    narrow = np.dtype(np.int32)
    assert index_type(narrow, 2**31 - 1) == np.int32
    assert index_type(narrow, 2**31) == np.int64


def test_functions_take_a_map_of_any_storage():
    """f of `minimize` by columns, with its constants from the norms of the check."""
    rng = np.random.default_rng(0)
    A = rng.integers(-8, 9, (9, 5)) / 4 * (rng.random((9, 5)) < 0.6)
    b = np.arange(9.0)
    for form in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, sp.coo_array):
        f = functions.LeastSquares(form(A), b)
        np.testing.assert_array_equal(f.lipschitz(), np.sum(A**2, axis=0))
        np.testing.assert_array_equal(f.gradient(np.ones(5)), A.T @ (A @ np.ones(5) - b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "int32", "int64"])
def test_products_of_neighbours(dtype, kind):
    dense = sp.random_array((30, 12), density=0.4, rng=0).toarray().astype(dtype)
    dense[7] = 0
    X = sp.csr_array(dense)
    stored = (X.data, X.indices.astype(kind), X.indptr.astype(kind)) if kind != "dense" else None
    none = np.empty(0, dtype=np.int32)
    rows, out = np.array([0, 5, 6, 7, 28]), np.empty(5)
    matrix.neighbours(*(stored or (dense.reshape(-1), none, none)), 12, rows, out)
    expected = np.sum(dense[rows].astype(float) * dense[rows + 1], axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)
