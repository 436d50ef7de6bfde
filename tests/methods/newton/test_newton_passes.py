"""The compiled passes of Newton's method against NumPy, and its Cholesky factor."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import one_hot
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from test_newton import LOSSES

from apcg import ERM, losses
from apcg._kernels.newton import objective
from apcg.data import by_row
from apcg.methods.linalg.factor import Factor
from apcg.methods.newton.hessian import Hessian
from apcg.problems.objective import Objective


@examples(60)
@given(
    st.sampled_from(LOSSES),
    st.sampled_from([1, 3, 255, 256, 257, 700]),
    st.booleans(),
    st.floats(-3, 3),
    st.integers(0, 1000),
)
def test_losses_of_all_rows(loss, n, weighted, t, seed):
    rng = np.random.default_rng(seed)
    z, way = rng.standard_normal(n) * np.exp(rng.normal(0, 2.5, n)), rng.standard_normal(n)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss.margin else rng.standard_normal(n)
    weights = rng.random(n) * (rng.random(n) < 0.8) if weighted else np.array([0.7])
    at, slope, bend = np.full((3, n), np.nan)
    found = objective.evaluate(
        loss.kernel, np.array(loss.theta), z, way, t, y, loss.margin, weights, 0.5, at, slope, bend
    )
    s, place = 0.5 * np.broadcast_to(weights, n), z + t * way
    np.testing.assert_array_equal(at, place)
    np.testing.assert_allclose(slope, s * loss.derivative(place, y), rtol=1e-12, atol=1e-300)
    second = loss.arrays.curvature(loss.argument(place, y))
    np.testing.assert_allclose(bend, s * second, rtol=1e-12, atol=1e-300)
    size = np.abs(slope) @ np.abs(way)
    np.testing.assert_allclose(found[0], np.sum(s * loss.value(place, y)), rtol=1e-12)
    np.testing.assert_allclose(found[1], slope @ way, rtol=1e-12, atol=1e-14 * size)
    np.testing.assert_allclose(found[2], bend @ (way * way), rtol=1e-12)


def test_the_logistic_loss_in_its_tails():
    """A value of 1e-300 has its digits; nothing overflows."""
    loss, one = losses.Logistic(), np.ones(1)
    for m in np.linspace(-800, 690, 300):
        at, slope, bend = np.empty((3, 1))
        z = np.array([m])
        value = objective.evaluate(
            "logistic", np.zeros(1), z, z, 0.0, one, True, one, 1.0, at, slope, bend
        )[0]
        assert value == pytest.approx(loss.value(m), rel=1e-13)
        assert slope[0] == pytest.approx(loss.derivative(m), rel=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("kind", ["dense", "int32", "int64", "unsorted"])
@pytest.mark.parametrize("d", [1, 7, 12])
def test_products_and_gram(dtype, border, kind, d):
    rng = np.random.default_rng(d)
    X = (rng.standard_normal((41, d)) * (rng.random((41, d)) < 0.6)).astype(dtype)
    stored = X if kind == "dense" else sp.csr_array(X)
    if kind == "int64":
        stored.indices, stored.indptr = stored.indices.astype("i8"), stored.indptr.astype("i8")
    if kind == "unsorted":
        for i in range(41):
            row = slice(stored.indptr[i], stored.indptr[i + 1])
            stored.indices[row] = stored.indices[row][::-1].copy()
            stored.data[row] = stored.data[row][::-1].copy()
    made = by_row(stored, "X")
    made = made.with_ones if border else made
    A = np.hstack([X, np.ones((41, 1))]) if border else X.astype(float)
    A = A.astype(float)
    bend = rng.random(41) * (rng.random(41) < 0.7)
    w, q = rng.standard_normal(d + border), rng.standard_normal(41)
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(made.times(w), A @ w, **close)
    np.testing.assert_allclose(made.adjoint(bend), A.T @ bend, **close)
    np.testing.assert_allclose(made.gram_times(bend, w, q), A.T @ (bend * (A @ w)), **close)
    np.testing.assert_allclose(q, A @ w, **close)
    gram = made.gram(bend)
    np.testing.assert_allclose(np.triu(gram), np.triu(A.T @ (bend[:, None] * A)), **close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("even", [False, True])
def test_the_gram_matrix_of_many_dense_features(dtype, even):
    """There BLAS makes it, in blocks; of rows with one weight from X itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 170)).astype(dtype)
    bend = np.full(900, 0.3) if even else rng.random(900) * (rng.random(900) < 0.5)
    for border in (False, True):
        made = by_row(X, "X").with_ones if border else by_row(X, "X")
        A = np.hstack([X, np.ones((900, int(border)))]).astype(float)
        np.testing.assert_allclose(
            np.triu(made.gram(bend)), np.triu(A.T @ (bend[:, None] * A)), rtol=1e-10, atol=1e-9
        )


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 17, 64, 601])
def test_a_factor_solves(size):
    rng = np.random.default_rng(size)
    B = rng.standard_normal((size + 5, size)) * np.exp(rng.normal(0, 5, size))
    H, r = B.T @ B, rng.standard_normal(size)
    made = Factor(np.triu(H) + np.tril(np.full((size, size), 7.0), -1))  # what is below is not read
    assert made.jitter == 0
    scale = np.sqrt(H.diagonal())
    x = made.solve(r)
    np.testing.assert_allclose((H @ x - r) / scale, 0, atol=1e-9 * np.abs(scale * x).max())


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("size", [6, 610])
def test_a_singular_matrix_has_a_factor_too(size):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((size // 2, size))
    H = B.T @ B
    made = Factor(H.copy())
    assert 0 < made.jitter < 1e-8
    r = H @ rng.standard_normal(size)
    np.testing.assert_allclose(H @ made.solve(r), r, rtol=1e-4, atol=1e-4 * np.abs(r).max())


def test_leverage():
    X, y = one_hot(3000, rare=4)
    p = ERM(X, y, "logistic", alpha=1e-12)
    found = Objective.of(p).leverage()
    A = X.toarray()
    np.testing.assert_allclose(found, (A**2 / (A**2).sum(0)).sum(1), rtol=1e-4)
    weights = np.arange(len(y)) % 3.0
    p = ERM(X, y, "logistic", alpha=1e-3, sample_weight=weights)
    s = p.weights
    ridge = p.loss.gamma * p.n * 1e-3
    expected = s * (A**2 / ((s[:, None] * A**2).sum(0) + ridge)).sum(1)
    np.testing.assert_allclose(Objective.of(p).leverage(), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(4000, 1000), (8000, 2000)])
def test_the_squared_loss_on_dense_rows_takes_one_factor(shape):
    """Conjugate gradients with a sample's factor take longer; of sparse rows they may not."""
    X, y = np.zeros(shape), np.zeros(shape[0])
    assert Hessian(Objective.of(ERM(X, y, "squared", alpha=1.0))).is_cheap
    signs = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    assert not Hessian(Objective.of(ERM(X, signs, "logistic", alpha=1.0))).is_cheap
    columns = np.tile(np.arange(0, shape[1], 2), shape[0])
    rows = np.arange(shape[0] + 1) * (shape[1] // 2)
    half = sp.csr_array((np.ones(columns.size), columns, rows), shape=shape)
    assert not Hessian(Objective.of(ERM(half, y, "squared", alpha=1.0))).is_cheap
