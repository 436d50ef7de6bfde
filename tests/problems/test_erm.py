"""ERM: P, D, omega and the constants, against their definitions."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, SMOOTH, data, dense, dual, feasible, primal, problem
from scipy.optimize import lsq_linear

from apcg import ERM, losses, penalties, solve

PENALTIES = [
    {"penalty": "l2"},
    {"penalty": "elasticnet", "l1_ratio": 0.3},
    {"penalty": "l2", "positive": True},
    {"penalty": "elasticnet", "l1_ratio": 0.7, "positive": True},
    {"penalty": penalties.L2(np.linspace(0.5, 2, 12))},
]
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=str)
weighted = pytest.mark.parametrize("weighted", [False, True])


@every_loss
@every_penalty
@weighted
def test_values_are_those_of_the_definition(loss, penalty, weighted):
    p = problem(loss, weighted=weighted, **penalty)
    rng = np.random.default_rng(3)
    for _ in range(5):
        w, x = rng.standard_normal(p.d), feasible(p, rng)
        w = np.abs(w) if penalty.get("positive") else w
        assert p.primal(w) == pytest.approx(primal(p, w), rel=1e-12)
        assert p.dual(x) == pytest.approx(dual(p, x), rel=1e-11)
        # omega(x) maximises <A x/(lambda n), w> - g(w); weak duality, for any pair
        assert p.primal(w) >= p.dual(x)
        assert p.gap(x) == pytest.approx(p.primal(p.omega(x)) - p.dual(x), rel=1e-12)
        assert p.gap(x) >= 0


@every_penalty
def test_omega_is_the_gradient_of_g_star(penalty):
    p = problem("squared", **penalty)
    rng = np.random.default_rng(4)
    x, h = feasible(p, rng), 1e-6
    v = p.combine(x)
    numerical = [
        (p.g.conjugate(v + h * e) - p.g.conjugate(v - h * e)) / (2 * h) for e in np.eye(p.d)
    ]
    np.testing.assert_allclose(p.omega(x), numerical, atol=1e-4)


@pytest.mark.parametrize("loss", SMOOTH)
@weighted
def test_constants(loss, weighted):
    """L_i, R, mu and the condition number of section 5, and mu <= the true convexity parameter."""
    p = problem(loss, weighted=weighted, alpha=0.02)
    gamma, s = p.loss.gamma, np.broadcast_to(p.weights, p.n)
    norms = np.linalg.norm(dense(p), axis=1)
    np.testing.assert_allclose(p.L, norms**2 / (0.02 * p.n**2) + gamma / (p.n * s), rtol=1e-12)
    assert pytest.approx(np.max(np.sqrt(s) * norms)) == p.R
    strength = 0.02 * gamma * p.n
    assert p.mu == pytest.approx(strength / (p.R**2 + strength))
    assert p.condition_number == pytest.approx(p.R**2 / (0.02 * gamma))
    A = dense(p).T
    hessian = A.T @ A / (0.02 * p.n**2) + np.diag(gamma / (p.n * s))
    scaled = hessian / np.sqrt(np.outer(p.L, p.L))
    assert p.mu <= np.linalg.eigvalsh(scaled)[0] + 1e-12
    assert p.spectral_norm >= np.linalg.norm(A * np.sqrt(s), 2) * (1 - 1e-12)
    assert p.spectral_norm <= np.linalg.norm(A * np.sqrt(s), 2) * 1.002


def test_constants_where_nothing_is_smooth_or_strongly_convex():
    hinge, lasso = problem("hinge"), problem("squared", "l1")
    assert hinge.mu == lasso.mu == 0
    assert hinge.condition_number == lasso.condition_number == math.inf
    columns = np.linalg.norm(dense(lasso), axis=0)
    np.testing.assert_allclose(lasso.L, columns**2 / lasso.n)
    with pytest.raises(ValueError, match="omega"):
        lasso.omega(np.zeros(lasso.n))


def test_elastic_net_puts_lambda_times_one_minus_r_in_the_place_of_lambda():
    p, q = problem("logistic", "elasticnet", 0.02, l1_ratio=0.25), problem("logistic", "l2", 0.015)
    np.testing.assert_allclose(p.L, q.L)
    assert p.mu == pytest.approx(q.mu)
    assert p.condition_number == pytest.approx(q.condition_number)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [(k, g) for k in LOSSES for g in ("l2", "elasticnet", "l1") if g != "l1" or k in SMOOTH],
)
def test_integer_weights_are_repeated_rows(loss, penalty):
    X, y = data(loss)
    weights = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    p = ERM(X, y, LOSSES[loss], penalty, 0.05, sample_weight=weights)
    q = ERM(X[rows], y[rows], LOSSES[loss], penalty, 0.05)
    assert p.n == np.count_nonzero(weights)
    w = np.random.default_rng(6).standard_normal(p.d)
    assert p.primal(w) == pytest.approx(q.primal(w), rel=1e-12)
    tol, passes = (1e-9, 20_000) if LOSSES[loss].gamma else (1e-5, 20_000)
    r = solve(p, "sdca", tol=tol, max_epochs=passes, random_state=0)
    t = solve(q, "sdca", tol=tol, max_epochs=passes, random_state=0)
    assert r.converged
    assert t.converged
    assert r.primal == pytest.approx(t.primal, rel=2 * tol)
    assert np.all(r.x[weights == 0] == 0) or penalty == "l1"
    # weights are relative
    scaled = ERM(X, y, LOSSES[loss], penalty, 0.05, sample_weight=7 * weights)
    assert scaled.primal(w) == pytest.approx(p.primal(w), rel=1e-12)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_rows_of_weight_zero_do_not_matter(penalty):
    X, y = data("logistic")
    weights = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    kept = weights > 0
    p = ERM(X, y, "logistic", penalty, 0.01, sample_weight=weights)
    q = ERM(X[kept], y[kept], "logistic", penalty, 0.01)
    assert p.n == q.n == kept.sum()
    assert p.mu == pytest.approx(q.mu)
    r, t = (solve(m, tol=1e-10, max_epochs=5000, random_state=0) for m in (p, q))
    np.testing.assert_allclose(r.w, t.w, atol=1e-4)
    assert r.primal == pytest.approx(t.primal, rel=1e-9)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_formats_give_the_same_problem(make, loss):
    X, y = data(loss, sparse=False)
    p, q = ERM(X, y, loss, alpha=0.1), ERM(make(X), y, loss, alpha=0.1)
    r, t = (solve(m, "apcg", tol=1e-9, random_state=0) for m in (p, q))
    np.testing.assert_allclose(r.x, t.x, rtol=1e-9, atol=1e-12)
    # zeros that are stored make a pass longer, so "auto" may change sides at another time
    assert solve(q, tol=1e-9, random_state=0).primal == pytest.approx(r.primal, rel=2e-9)


def test_own_loss_and_penalty_objects():
    X, y = data("huber")
    named = ERM(X, y, "huber", "elasticnet", 0.1, l1_ratio=0.4)
    own = ERM(X, y, losses.Huber(1.35), penalties.ElasticNet(1.0, 0.4), 0.1)
    w = np.random.default_rng(0).standard_normal(12)
    assert own.primal(w) == named.primal(w)
    assert "Huber(delta=1.35)" in repr(own)
    with pytest.raises(TypeError, match="of coordinates"):
        ERM(X, y, "huber", penalties.GroupL2(1.0), 0.1)
    with pytest.raises(ValueError, match="for 3 features, but X has 12"):
        ERM(X, y, "huber", penalties.L2(np.ones(3)), 0.1)
    none, named = ERM(X, y, "huber", penalties.Zero(), 0.1), ERM(X, y, "huber", None)
    assert none.primal(w) == named.primal(w)


def test_a_penalty_of_its_own_for_each_feature_weighs_the_norms():
    """L_i = sum_j A_ji^2/(lambda b_j n^2) + gamma/n, the curvature of the dual in x_i."""
    b = np.linspace(0.2, 3, 12)
    X, y = data("logistic")
    p = ERM(X, y, "logistic", penalties.L2(b), 0.05)
    curvature = (dense(p) ** 2 / b).sum(axis=1) / (0.05 * p.n**2) + 4 / p.n
    np.testing.assert_allclose(p.L, curvature, rtol=1e-12)
    assert p.mu == pytest.approx(np.min(4 / p.n / curvature))
    assert solve(p, tol=1e-9, max_epochs=5000, random_state=0).converged


@pytest.mark.parametrize("method", ["apcg", "sdca", "auto", "afg"])
def test_bounds_without_zero(method):
    """w in [1, 2]: the start is put into the bounds, the answer is at them or between."""
    X, y = data("squared")
    p = ERM(X, y, "squared", penalties.Box(1.0, 2.0), 0.1)
    r = solve(p, method, tol=1e-6, max_epochs=20_000, random_state=0)
    assert r.converged
    assert r.w.min() >= 1
    assert r.w.max() <= 2
    direct = lsq_linear(dense(p), y, bounds=(1, 2), tol=1e-12)
    assert p.primal(r.w) <= p.primal(np.clip(direct.x, 1, 2)) * (1 + 1e-6)
