"""X in every storage, against NumPy: products, norms, rows, columns, chunks, views."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from matrices import dense, kept, parts_of, some_of, vector
from quick import examples

from apcg.data import Chunked, Dense, by_row, views
from apcg.data import dense as storage


@given(kept(), st.data())
@examples(300)
def test_products_with_x(pair, data):
    made, M = pair
    n, d = M.shape
    assert made.shape == M.shape
    r, w, s = vector(data, n), vector(data, d), np.abs(vector(data, n))
    np.testing.assert_array_equal(made.times(w), M @ w)
    np.testing.assert_array_equal(made.adjoint(r), M.T @ r)
    W, R = np.stack([w, -w, 2 * w], axis=1), np.stack([r, 3 * r], axis=1)
    np.testing.assert_array_equal(made.times(W), M @ W)
    np.testing.assert_array_equal(made.adjoint(R), M.T @ R)
    np.testing.assert_array_equal(np.triu(made.gram(s)), np.triu(M.T * s @ M))
    q = np.empty(n)
    np.testing.assert_array_equal(made.gram_times(s, w, q), M.T @ (s * (M @ w)))
    np.testing.assert_array_equal(q, M @ w)
    if made.constant == 0:
        some = np.unique(some_of(data, d))
        part = M[:, some]
        np.testing.assert_array_equal(np.triu(made.gram(s, some)), np.triu(part.T * s @ part))
        if made.in_memory:
            np.testing.assert_array_equal(made.row_gram(), M @ M.T)
            squares = np.sign(np.abs(w)) * 4.0  # whose roots are exact
            np.testing.assert_array_equal(made.row_gram(squares), M * squares @ M.T)


@given(kept(), st.data())
@examples(200)
def test_norms_and_sizes_of_x(pair, data):
    made, M = pair
    n, d = M.shape
    w, s = vector(data, d), vector(data, n)
    np.testing.assert_array_equal(made.squared_norms(), np.sum(M**2, axis=1))
    np.testing.assert_array_equal(made.squared_norms(w), M**2 @ w)
    np.testing.assert_array_equal(made.column_squares(s), s @ M**2)
    own = M[:, :-1] if made.constant else M
    assert made.largest() == np.abs(own).max(initial=0)
    each = made.lengths
    assert made.nnz <= each.sum() <= made.nnz + n
    assert made.gram_madds <= 0.5 * np.sum(each * (each + 1))
    assert made.sparse or made.gram_madds == 0.5 * n * own.shape[1] * (own.shape[1] + 1)


@given(kept(), st.data())
@examples(200)
def test_rows_and_columns_of_x(pair, data):
    made, M = pair
    rows = some_of(data, len(M))
    taken = made.rows(rows)
    assert taken.shape == (rows.size, M.shape[1])
    np.testing.assert_array_equal(taken.view(views.table), M[rows])
    plain = M[:, :-1] if made.constant else M
    some = some_of(data, plain.shape[1])
    np.testing.assert_array_equal(made.pick(some).view(views.table), plain[:, some])


@given(kept(), st.data())
@examples(200)
def test_chunks_are_all_rows_in_order(pair, data):
    made, M = pair
    if data.draw(st.booleans()):
        made.squared_norms()  # from then on known to the slices too
    size, end, stored = data.draw(st.none() | st.integers(1, len(M) + 1)), 0, 0
    for at, part in made.chunks(size):
        assert at.start == end
        assert size is None or at.stop - at.start <= size
        end, stored = at.stop, stored + part.nnz
        np.testing.assert_array_equal(part.view(views.table), M[at])
        np.testing.assert_array_equal(part.squared_norms(), np.sum(M[at] ** 2, axis=1))
        np.testing.assert_array_equal(part.lengths, made.lengths[at])
        assert part.constant == made.constant
    assert (end, stored) == (len(M), made.nnz)
    assert len(list(made.chunks(len(M)))) == 1 or not made.in_memory


@given(kept(parts=False))
@examples(100)
def test_a_view_is_made_once(pair):
    made, M = pair
    turned = made.view(views.transposed)
    assert turned is made.view(views.transposed)
    assert turned.shape == M.T.shape
    assert turned.constant == 0
    np.testing.assert_array_equal(turned.view(views.table), M.T)
    np.testing.assert_array_equal(turned.squared_norms(), np.sum(M**2, axis=0))
    if made.constant:
        with pytest.raises(TypeError, match="border of X is stored nowhere"):
            made.view(views.whole)
    else:
        np.testing.assert_array_equal(dense(made.view(views.whole)), M)


def test_what_needs_all_of_x_says_so():
    X = np.arange(12.0).reshape(6, 2)
    parts = parts_of(by_row(X, "X"), 4)
    assert repr(parts) == "Chunked(6 x 2, 12 stored, in 2 parts)"
    for kind in (views.arrays, views.whole, views.transposed):
        with pytest.raises(
            TypeError, match=f"{kind.__name__}.* needs all of X in memory, .* 2 parts"
        ):
            parts.view(kind)
    with pytest.raises(TypeError, match="row_gram needs all of X in memory"):
        parts.row_gram()
    dense_rows = by_row(X, "X")
    for kind, more in ((views.columns, ()), (views.compact, (True,))):
        with pytest.raises(TypeError, match="of sparse data"):
            dense_rows.view(kind, *more)


def test_parts_are_of_one_kind():
    X = by_row(np.ones((3, 2)), "X")
    with pytest.raises(ValueError, match="at least one"):
        Chunked([])
    for other in (by_row(np.ones((3, 4)), "X"), by_row(sp.csr_array(np.ones((3, 2))), "X")):
        with pytest.raises(ValueError, match="all parts must be of one kind and have 2 columns"):
            Chunked([lambda: X, lambda other=other: other])


def test_parts_are_loaded_when_they_are_used():
    made, loaded = by_row(np.arange(20.0).reshape(10, 2), "X"), []

    def load(part):
        loaded.append(part.shape[0])
        return part

    parts = [lambda part=part: load(part) for _, part in made.chunks(4)]
    X = Chunked(parts, [(4, 8), (4, 8), (2, 4)])
    assert X.shape == (10, 2)
    loaded.clear()
    np.testing.assert_array_equal(X.times(np.ones(2)), made.times(np.ones(2)))
    assert loaded == [4, 4, 2]
    X.squared_norms(), X.squared_norms()
    assert loaded == [4, 4, 2] * 2  # once for all


@given(kept(parts=False))
@examples(200)
def test_the_arrays_are_those_of_the_matrix(pair):
    """What the kernels read: no place twice, all inside, in a type that they know."""
    made, M = pair
    values, indices, indptr = made.view(views.arrays)
    plain = M[:, :-1] if made.constant else M
    if made.constant:
        np.testing.assert_array_equal(M[:, -1], made.constant)
    assert values.dtype in (np.float32, np.float64)
    assert values.flags.c_contiguous
    assert made.nnz == values.size
    if indptr.size == 0:
        np.testing.assert_array_equal(values.reshape(plain.shape), plain)
        np.testing.assert_array_equal(made.lengths, np.full(len(M), plain.shape[1]))
        return
    assert indices.dtype == indptr.dtype
    assert indices.dtype in (np.int32, np.int64)
    assert indptr[-1] == indices.size == values.size
    np.testing.assert_array_equal(made.lengths, np.maximum(np.diff(indptr), 1))
    again = np.zeros_like(plain)
    for i, line in enumerate(again):
        own = indices[indptr[i] : indptr[i + 1]]
        assert np.unique(own).size == own.size
        line[own] = values[indptr[i] : indptr[i + 1]]
    np.testing.assert_array_equal(again, plain)


@given(kept(parts=False))
@examples(50)
def test_pickled_matrices(pair):
    made, M = pair
    made.view(views.transposed)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.view(views.table), M)
    assert again.squared_norms().tobytes() == made.squared_norms().tobytes()


def test_a_dense_matrix_is_pickled_once():
    X = np.ones((100, 100))
    assert len(pickle.dumps(by_row(X, "X"))) < 1.1 * X.nbytes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [1, 2, 4, 8])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("way", ["by BLAS", "by loops"])
def test_dense_products_choose_a_way_and_give_the_same(dtype, K, zeros, way, monkeypatch):
    for name in ("_FEW_NUMBERS", "_SMALL"):
        monkeypatch.setattr(storage, name, 10**6 if way == "by BLAS" else 0)
    rng = np.random.default_rng(K)
    X = rng.standard_normal((33, 50)).astype(dtype)
    made, x = Dense(X), rng.standard_normal((33, K))
    W = rng.standard_normal((50, K)) * (rng.random((50, 1)) >= zeros)
    close = {"rtol": 1e-11, "atol": 1e-12}
    for own in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2], x[:, 0]):
        np.testing.assert_allclose(made.adjoint(own), X.T.astype(float) @ own, **close)
    for own in (W, np.asfortranarray(W), W[:, 0]):
        np.testing.assert_allclose(made.times(own), X.astype(float) @ own, **close)


def test_a_gram_matrix_of_many_rows_of_one_weight_is_that_of_the_rows():
    """By BLAS, with no copy of X; rows of other weights by our own loops."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9000, 8))
    X = Dense(A, constant=2.0)
    B = np.hstack([A, np.full((9000, 1), 2.0)])
    for s in (np.full(9000, 0.3), rng.random(9000)):
        upper = np.triu(X.gram(s))
        np.testing.assert_allclose(upper, np.triu(B.T @ (s[:, None] * B)), rtol=1e-12, atol=1e-9)
