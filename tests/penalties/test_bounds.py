"""Bounds and signs for each feature: ERM and the estimators."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

from apcg import ERM, APCGClassifier, APCGRegressor, APCGRegressorCV, solve

INF = np.inf
LOWER = np.array([0, -INF, 0, -5, -INF, 0, -INF, -1, 0, -INF])
UPPER = np.array([INF, 0, 20, 5, INF, INF, 0, 1, INF, 10])


def data():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y - y.mean()


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_least_squares_with_bounds_against_scipy(alpha):
    X, y = data()
    n, d = X.shape
    found = solve(ERM(X, y, "squared", "l2", alpha, positive=(LOWER, UPPER)), tol=1e-12)
    A = np.vstack([X / np.sqrt(n), np.sqrt(alpha) * np.eye(d)])
    wanted = lsq_linear(A, np.append(y / np.sqrt(n), np.zeros(d)), (LOWER, UPPER), tol=1e-14)
    assert found.status.code in ("converged", "precision")
    np.testing.assert_allclose(found.w, wanted.x, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("logistic", "l2"), ("logistic", "l1"), ("logistic", "elasticnet"), ("hinge", "l2")],
)
def test_classifiers_keep_signs(loss, penalty):
    X, y = load_breast_cancer(return_X_y=True)
    signs = np.where(np.arange(X.shape[1]) % 2, 1.0, -1.0)
    bounds = np.where(signs > 0, 0, -INF), np.where(signs > 0, INF, 0)
    model = APCGClassifier(loss, penalty=penalty, alpha=0.01, positive=bounds).fit(scale(X), y)
    assert np.all(model.coef_[0] * signs >= 0)
    assert np.any(model.coef_ != 0)
    assert model.duality_gap_ <= 1e-6


def test_regressors_and_their_searches():
    X, y = data()
    free = APCGRegressor("squared", alpha=0.1).fit(X, y)
    wide = APCGRegressor("squared", alpha=0.1, positive=(-1e6, 1e6)).fit(X, y)
    np.testing.assert_allclose(wide.coef_, free.coef_, rtol=1e-3)
    true = APCGRegressor("squared", alpha=0.1, positive=True).fit(X, y)
    pair = APCGRegressor("squared", alpha=0.1, positive=(0, INF)).fit(X, y)
    np.testing.assert_array_equal(true.coef_, pair.coef_)
    search = APCGRegressorCV("squared", alphas=[1.0, 0.1], cv=3, positive=(LOWER, UPPER)).fit(X, y)
    assert np.all((search.coef_ >= LOWER) & (search.coef_ <= UPPER))


@pytest.mark.parametrize(
    ("bounds", "error", "words"),
    [
        ([0.0, 1.0], TypeError, "must be True, False or a pair"),
        ((1.0, 2.0), ValueError, "must leave w = 0"),
        ((np.zeros(3), INF), ValueError, "bounds for 3 features, but X has 10"),
        ((0.0, np.nan), ValueError, "upper must not hold NaN"),
    ],
)
def test_what_is_refused(bounds, error, words):
    X, y = data()
    with pytest.raises(error, match=words):
        ERM(X, y, "squared", positive=bounds)
