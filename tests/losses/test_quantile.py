"""`losses.Pinball`, `QuantileRegressor`, and the squared epsilon-insensitive loss."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import QuantileRegressor
from sklearn.svm import LinearSVR

from apcg import ERM, losses, solve
from apcg import linear_model as L

X, Y = load_diabetes(return_X_y=True)


def objective(model, q, alpha, weights=None):
    r = Y - X @ model.coef_ - model.intercept_
    return (
        np.average(np.maximum(q * r, (q - 1) * r), weights=weights)
        + alpha * np.abs(model.coef_).sum()
    )


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
def test_against_scikit_learn(q, alpha):
    ours = L.QuantileRegressor(quantile=q, alpha=alpha).fit(X, Y)
    theirs = QuantileRegressor(quantile=q, alpha=alpha).fit(X, Y)
    assert ours.status_.code == "converged"
    best = objective(theirs, q, alpha)
    assert abs(objective(ours, q, alpha) - best) <= 1e-8 * best


def test_against_statsmodels():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it stops early
        fit = sm.QuantReg(Y, sm.add_constant(X)).fit(q=0.3, max_iter=5000, p_tol=1e-12)
    ours = L.QuantileRegressor(quantile=0.3, alpha=0).fit(X, Y)
    r = Y - sm.add_constant(X) @ fit.params
    theirs = np.mean(np.maximum(0.3 * r, -0.7 * r))
    assert objective(ours, 0.3, 0.0) <= theirs * (1 + 1e-8)
    assert objective(ours, 0.3, 0.0) >= theirs * (1 - 1e-4)  # theirs stops early


def test_weights_sparse_and_no_intercept():
    s = np.random.default_rng(0).integers(0, 3, Y.size).astype(float)
    for made in (np.asarray, sp.csc_array):
        ours = L.QuantileRegressor(quantile=0.7, alpha=0.02, fit_intercept=False)
        theirs = QuantileRegressor(quantile=0.7, alpha=0.02, fit_intercept=False)
        ours.fit(made(X), Y, sample_weight=s)
        theirs.fit(made(X), Y, sample_weight=s)
        best = objective(theirs, 0.7, 0.02, s)
        assert abs(objective(ours, 0.7, 0.02, s) - best) <= 1e-8 * best


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("intercept", [False, True])
def test_other_penalties_are_certified(penalty, intercept):
    problem = ERM(X, Y, losses.Pinball(0.2), penalty, 0.01, intercept=intercept)
    r = solve(problem, tol=1e-9)
    assert r.converged
    assert problem.gap(r.x, r.w) <= 1e-9 * r.primal


@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
def test_the_intercept_alone_is_a_quantile(q):
    ours = L.QuantileRegressor(quantile=q, alpha=1e3).fit(X, Y)
    assert not ours.coef_.any()
    assert np.mean(ours.intercept_ > Y) <= q <= np.mean(ours.intercept_ >= Y - 1e-6)


def test_solvers_that_are_refused():
    with pytest.raises(ValueError, match="does not support sparse X"):
        L.QuantileRegressor(solver="revised simplex").fit(sp.csr_array(X), Y)
    with pytest.raises(ValueError, match="not anymore available"):
        L.QuantileRegressor(solver="interior-point").fit(X, Y)
    with pytest.raises(ValueError, match="q must be in"):
        losses.Pinball(1.0)


@pytest.mark.parametrize("epsilon", [0.0, 20.0])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_squared_epsilon_insensitive(penalty, epsilon):
    loss = losses.SquaredEpsilonInsensitive(epsilon)
    r = solve(ERM(X, Y, loss, penalty, 0.01, intercept=True), tol=1e-9)
    assert r.converged


def test_linear_svr_with_a_squared_loss():
    y = (Y - Y.mean()) / Y.std()
    parts = {"loss": "squared_epsilon_insensitive", "epsilon": 0.2, "C": 3.0, "tol": 1e-8}
    ours = L.LinearSVR(**parts).fit(X, y)
    theirs = LinearSVR(max_iter=100_000, dual=False, **parts).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    assert ours.status_.code == "converged"
