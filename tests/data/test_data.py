"""What is made of a user's matrix: what is refused, what is not copied, what is known of it."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from matrices import compressed, matrices
from quick import examples

from apcg import ERM, functions, solve
from apcg._kernels.data import matrix
from apcg.data import Dense, Sparse, by_coordinate, by_row, views
from apcg.data.sparse import index_type


@given(matrices(), st.booleans())
@examples(100)
def test_nothing_that_was_given_is_changed(pair, by_columns):
    given, _ = pair
    before = pickle.dumps(given)
    made = (by_coordinate if by_columns else by_row)(given, "X")
    made.view(views.transposed), made.with_ones.view(views.transposed), made.squared_norms()
    assert pickle.dumps(given) == before


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
    whole = (*made.view(views.arrays), made.stored.data, made.stored.indices)
    given = (X.data, X.indices, X.indptr, X.data, X.indices)
    for a, b in zip(whole, given, strict=True):
        assert np.shares_memory(a, b)
        assert a.dtype == b.dtype
    border = made.bordered(2.0)
    same = zip(border.view(views.arrays), made.view(views.arrays), strict=True)
    assert all(a is b for a, b in same)
    for _, part in (*made.chunks(4), *border.chunks(3)):
        assert np.shares_memory(part.stored.data, X.data)
        assert np.shares_memory(part.stored.indices, X.indices)


@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_usable_dense_array_is_not_copied(tmp_path, value, by_columns, on_disk):
    X = np.arange(60, dtype=value).reshape(12, 5)
    X = np.asfortranarray(X) if by_columns else X
    X = mapped(tmp_path, "X", X) if on_disk else X
    made = by_coordinate(X, "A") if by_columns else by_row(X, "X")
    assert isinstance(made, Dense)
    assert np.shares_memory(made.view(views.arrays)[0], X)
    assert np.shares_memory(made.stored, X)
    for _, part in made.chunks(5):
        assert np.shares_memory(part.view(views.arrays)[0], X)
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
    assert all(map(np.shares_memory, problem.samples.view(views.arrays), theirs))
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
        anew = Sparse(*made.view(views.arrays), 17) if made.sparse else Dense(made.stored)
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
    assert made.with_ones is made.with_ones
    assert made.with_ones.constant == 1
    assert made.constant == 0


def test_a_chunk_has_a_row():
    for made in (by_row(np.ones((3, 2)), "X"), by_row(sp.eye_array(3, format="csr"), "X")):
        with pytest.raises(ValueError, match="at least one row, got 0"):
            list(made.chunks(0))


def test_a_copy_with_a_border_keeps_the_type_of_indices_or_widens_it():
    for index in (np.int32, np.int64):
        X = compressed(np.eye(4), index, np.random.default_rng(0))
        turned = by_row(X, "X").bordered(3.0).view(views.transposed)
        assert turned.stored.indptr.dtype == turned.stored.indices.dtype
        np.testing.assert_array_equal(turned.stored.toarray(), [*np.eye(4), np.full(4, 3.0)])
    narrow = np.dtype(np.int32)
    assert index_type(narrow, 2**31 - 1) == np.int32
    assert index_type(narrow, 2**31) == np.int64


def test_functions_take_a_matrix_of_any_storage():
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
