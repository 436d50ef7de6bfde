"""Newton's method for the softmax on dense rows: its kernels, its answers, its certificates."""

import numpy as np
import pytest

from apcg import ERM, solve
from apcg._kernels.newton import softmax_rows
from apcg.methods.newton import softmax
from apcg.methods.plan.plan import Auto

ALL = np.empty(0, dtype=np.int64)


def table(n=3000, d=5, K=3, seed=0, dtype=np.float64):
    """Rows of a few classes, some of them far out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (1 + 10 * (rng.random((n, 1)) < 0.01))
    y = (X @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X.astype(dtype), y.astype(np.int32)


def dense(X, y, W, s, border):
    """P, its gradient, x and the Hessian, by formulas."""
    X = np.hstack([X, np.ones((len(X), 1))]) if border else X
    z = X @ W
    top = z.max(axis=1, keepdims=True)
    pi = np.exp(z - top)
    total = pi.sum(axis=1, keepdims=True)
    pi /= total
    e = np.eye(W.shape[1])[y]
    loss = (top + np.log(total))[:, 0] - z[np.arange(len(y)), y]
    bend = s[:, None, None] * (pi[:, :, None] * np.eye(len(W.T)) - pi[:, :, None] * pi[:, None])
    H = np.einsum("ij,ikm,il->kjml", X, bend, X).reshape(W.size, W.size)
    return s @ loss, X.T @ (s[:, None] * (pi - e)), s[:, None] * (e - pi), H


@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_are_the_formulas(K, border, dtype):
    X, y = table(131, 6, K, dtype=dtype)
    rng = np.random.default_rng(1)
    some, s = np.flatnonzero(rng.random(131) < 0.5), rng.random(131)
    D = 6 + border
    W = rng.standard_normal((D, K))
    for index in (ALL, some):
        rows = index if index.size else np.arange(131)
        value, G, x, H = dense(X[rows].astype(float), y[rows], W, s[rows], border)
        gradient, duals = np.empty((D, K)), np.empty((len(rows), K))
        total = softmax_rows.evaluate(X, border, index, y, s[rows], W, gradient, duals)
        assert total == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(gradient, G, atol=1e-11)
        np.testing.assert_allclose(duals, x, atol=1e-14)
        found = np.empty((K * D, K * D))
        softmax_rows.hessian(X, border, index, y, s[rows], duals, found)
        found = np.triu(found) + np.triu(found, 1).T
        r = np.array(G.T).reshape(-1)  # sums to zero over the classes: no part where H is flat
        np.testing.assert_allclose(found @ r, H @ r, atol=1e-9 * np.abs(H @ r).max())
        assert np.linalg.eigvalsh(found).min() > 0


def test_losses_that_are_tiny_keep_their_digits():
    X, y, W = np.array([[40.0], [400.0]]), np.zeros(2, dtype=np.int32), np.array([[1.0, 0.0]])
    G, x = np.empty((1, 2)), np.empty((2, 2))
    total = softmax_rows.evaluate(X[:1], False, ALL, y, np.ones(1), W, G, x)
    assert total == pytest.approx(np.log1p(np.exp(-40.0)), rel=1e-14)
    assert softmax_rows.evaluate(X, False, ALL, 1 - y, np.ones(1), W, G, x) == pytest.approx(440)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("order", ["drawn", "sorted", "weighted"])
def test_answers_are_certified_and_optimal(intercept, alpha, order):
    """The gap is computed again from w and x, and the gradient by formulas."""
    X, y = table()
    weights = None
    if order == "sorted":
        rows = np.argsort(y, kind="stable")
        X, y = np.ascontiguousarray(X[rows]), y[rows]
    if order == "weighted":
        weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    p = ERM(X, y, "multinomial", "l2", alpha, sample_weight=weights, intercept=intercept)
    assert softmax.at_once(p)
    r = solve(p, tol=1e-9, random_state=0)
    assert r.converged
    assert "newton" in r.trace.notes[0]
    b = r.intercept if intercept else 0.0
    assert p.primal(r.w, b) == pytest.approx(r.primal, rel=1e-13)
    assert p.dual(r.x) == pytest.approx(r.dual, rel=1e-12)
    assert r.primal - p.dual(r.x) <= 1e-9 * r.primal * 1.01
    W = np.vstack([r.w, b]) if intercept else r.w
    s = np.broadcast_to(p.weights, len(y)) / p.n
    G = dense(X, y, W, s, intercept)[1]
    G[:5] += alpha * r.w
    assert np.sum(G[:5] ** 2) / (2 * alpha) <= 1.1e-9 * r.primal
    if intercept:
        assert np.abs(G[-1]).max() <= 1e-12


def test_it_agrees_with_dual_sweeps():
    X, y = table(800, 4, 4, seed=3)
    p = ERM(X, y, "multinomial", "l2", 1e-3, intercept=True)
    methods = "newton", Auto(("newton",))
    one, other = (solve(p, m, tol=1e-10, max_epochs=5000, random_state=0) for m in methods)
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(one.w, other.w, atol=1e-4)
    assert one.primal == pytest.approx(other.primal, rel=1e-9)


def test_float32_rows_are_read_as_they_are():
    X, y = table(dtype=np.float32)
    narrow, wide = (ERM(A, y, "multinomial", "l2", 1e-3) for A in (X, X.astype(np.float64)))
    one, other = (solve(p, "newton", tol=1e-9, random_state=0) for p in (narrow, wide))
    assert one.converged
    assert one.primal == pytest.approx(other.primal, rel=1e-9)


def test_a_start_is_gone_on_from():
    X, y = table()
    p = ERM(X, y, "multinomial", "l2", 1e-3, intercept=True)
    first = solve(p, tol=1e-8, random_state=0)
    again = solve(p, tol=1e-7, x0=first, random_state=0)
    assert again.converged
    assert again.epochs == 0
    near = solve(p.with_alpha(9e-4), tol=1e-8, x0=first, random_state=0)
    assert near.converged
    assert near.epochs <= first.epochs


def test_raw_columns_are_solved():
    """Columns from 1e-4 to 1e4: a factor does not see the difference."""
    X, y = table()
    p = ERM(X * 10.0 ** np.arange(-4, 6, 2), y, "multinomial", "l2", 1e-4, intercept=True)
    r = solve(p, tol=1e-6, random_state=0)
    assert r.converged
    assert p.gap(r.x, r.w, r.intercept) <= 1e-6 * r.primal


def test_passes_and_time_are_kept_to():
    X, y = table(seed=4)
    p = ERM(X, y, "multinomial", "l2", 1e-6)
    few = solve(p, "newton", tol=1e-12, max_epochs=1, random_state=0)
    assert few.status.code in ("max_epochs", "converged")
    seen = []
    r = solve(
        p, "newton", tol=1e-8, check_every=3, callback=lambda c: seen.append(c.gap), random_state=0
    )
    assert r.converged
    assert len(seen) >= 2
    assert seen[-1] <= 1e-8 * r.primal
