"""Newton's method on the primal: its parts, its steps, what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import SMOOTH, data, one_hot, problem
from hypothesis import given
from hypothesis import strategies as st

from apcg import ERM, losses, penalties, solve

#: A relative gap that is as good as rounding allows.
TIGHT = 1e-12


# ---- the parts ----------------------------------------------------------------------------------


@given(
    st.sampled_from(
        [losses.by_name(name) for name in SMOOTH] + [losses.StronglyConvex("huber", 2)]
    ),
    st.floats(-6, 6),
)
def test_curvature_is_the_slope_of_the_derivative(loss, t):
    h = 1e-6
    low, high = loss.arrays.derivative(np.array([t - h, t + h]))
    slopes = loss.arrays.curvature(np.array([t - h, t, t + h]))
    assert slopes.min() - 1e-6 <= (high - low) / (2 * h) <= slopes.max() + 1e-6
    assert 0 <= slopes.min() <= slopes.max() <= (1 / loss.gamma) * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, "int64", "unsorted"])
def test_gram(dtype, make):
    X = data("logistic")[0]
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=dtype)
    weight = np.random.default_rng(0).random(X.shape[0]) * (np.arange(X.shape[0]) % 3 > 0)
    given_X = sp.csr_array(X) if isinstance(make, str) else make(X)
    if make == "int64":
        given_X.indices, given_X.indptr = given_X.indices.astype("i8"), given_X.indptr.astype("i8")
    if make == "unsorted":
        for i in range(X.shape[0]):
            row = slice(given_X.indptr[i], given_X.indptr[i + 1])
            given_X.indices[row] = given_X.indices[row][::-1].copy()
            given_X.data[row] = given_X.data[row][::-1].copy()
        given_X.has_sorted_indices = False
    y = np.where(np.arange(X.shape[0]) % 2, 1, -1)
    found = np.triu(ERM(given_X, y).samples.gram(weight))
    wide = X.astype(float)
    expected = np.triu(wide.T @ (weight[:, None] * wide))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


# ---- the method ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_newton_reaches_the_optimum(loss, weighted, sparse):
    p = problem(loss, alpha=1e-4, weighted=weighted, sparse=sparse)
    r = solve(p, "newton", tol=TIGHT)
    other = solve(p, "apcg", tol=1e-7, max_epochs=100_000, random_state=0)
    assert r.converged
    assert r.side == "primal"
    assert other.dual - TIGHT <= r.primal <= other.primal * (1 + TIGHT)
    w = r.w
    h = 1e-6 * max(1.0, np.abs(w).max())
    steps = h * np.random.default_rng(0).standard_normal((10, p.d))
    assert all(p.primal(w + s) >= p.primal(w) * (1 - 1e-14) for s in steps)


def test_newton_with_a_penalty_for_each_feature():
    b = np.linspace(0.2, 3, 12)
    X, y = data("logistic")
    r = solve(ERM(X, y, "logistic", penalties.L2(b), 1e-3), "newton", tol=TIGHT)
    assert r.converged


def test_collinear_and_empty_features():
    X, y = one_hot(200)
    X = sp.hstack([X, X[:, :5], sp.csr_array((200, 3))], format="csr")
    r = solve(ERM(X, y, "squared_hinge", alpha=1e-12), "newton", tol=1e-10)
    assert r.converged
    np.testing.assert_array_equal(r.w[-3:], 0)


def test_newton_refuses_what_it_cannot():
    for loss, penalty, words in (
        ("hinge", "l2", "needs a smooth loss"),
        ("logistic", "l1", 'needs penalty "l2"'),
        ("logistic", "elasticnet", 'needs penalty "l2"'),
    ):
        with pytest.raises(ValueError, match=words):
            solve(problem(loss, penalty), "newton")


def test_a_warm_start_ends_at_once():
    p = problem("logistic", alpha=1e-5)
    first = solve(p, "newton", tol=1e-10)
    again = solve(p, "newton", tol=1e-9, x0=first)
    assert again.epochs == 0


# ---- what an attack on it found ---------------------------------------------------------------


def noisy(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 + rng.standard_normal(n) > 0, 1.0, -1.0), rng


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "squared_hinge"])
def test_rows_of_weight_zero_and_rounding(loss):
    for seed in range(15):
        X, y, rng = noisy(60, 3, seed)
        p = ERM(X, y, loss, alpha=1e-4, sample_weight=rng.integers(0, 4, 60))
        r = solve(p, random_state=seed, max_epochs=100)
        assert r.status.code != "non_finite"


def test_an_answer_of_another_shape_is_no_start():
    X, y, _ = noisy(40, 5, 0)
    other = solve(ERM(X[:, :1], y, alpha=1e-3), random_state=0)
    with pytest.raises(ValueError, match="w of x0"):
        solve(ERM(sp.csr_array(X), y, alpha=1e-3), x0=other)
    other = solve(ERM(X[:20], y[:20], alpha=1e-3), random_state=0)
    with pytest.raises(ValueError, match="x of x0"):
        solve(ERM(X, y, alpha=1e-3), x0=other)


def test_an_intercept_does_not_come_along():
    X, y, _ = noisy(40, 3, 0)
    r = solve(ERM(X, y, "squared_hinge", alpha=1e-3, intercept=True), "newton", tol=1e-12)
    q = solve(ERM(X, y, "squared_hinge", alpha=1e-3), x0=r, tol=1e-1, random_state=0)
    assert r.intercept != 0
    assert q.intercept == 0


@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e4])
def test_the_scale_of_the_features_does_not_matter(scale):
    X, y, _ = noisy(40, 5, 0)
    p = ERM(X * scale, y, "logistic", alpha=1e-2 * scale**2, intercept=True)
    assert solve(p, "newton", tol=1e-9, max_epochs=300).converged


def test_no_curvature_along_a_line():
    y = np.array([0.0, 1.0, 2.0, 5.0])
    far = solve(ERM(np.zeros((4, 1)), y + 1000, "huber", alpha=1e-3, intercept=True), "newton")
    r = solve(ERM(np.zeros((4, 1)), y, "huber", alpha=1e-3, intercept=True), "newton", x0=far)
    assert r.converged
