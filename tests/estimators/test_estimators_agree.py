"""The estimators against scikit-learn's at tight tolerance, or a direct numerical minimisation."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, LinearSVR

from apcg import APCGClassifier, APCGRegressor, losses


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def digits():
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    return X[kept] / 16, y[kept]


def random_sparse():
    rng = np.random.default_rng(5)
    X = sp.random_array((300, 40), density=0.2, rng=rng, format="csr")
    return X, (X @ rng.standard_normal(40) + 0.3 * rng.standard_normal(300) > 0.1).astype(int)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), (y - y.mean()) / y.std() + 2


def sparse_targets():
    X, _ = random_sparse()
    rng = np.random.default_rng(6)
    return X, X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(300) - 1


def objective(model, X, y, w, b, s):
    """The mean loss and the penalty, from the definition."""
    loss = losses.by_name(model.loss)
    ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": model.l1_ratio}[model.penalty]
    g = ratio * np.abs(w).sum() + (1 - ratio) / 2 * w @ w
    s = np.ones(len(y)) if s is None else s
    return s @ loss.value(X @ w + b, y) / s.sum() + model.alpha * g


def agree(model, X, y, s, w, b, *, coefficients=True):
    """Within 1e-7 of the other's objective, not above the dual bound, and 1e-4 in the weights."""
    labels = np.where(y == model.classes_[1], 1.0, -1.0) if hasattr(model, "classes_") else y
    own = objective(model, X, labels, model.coef_.ravel(), float(model.intercept_[0]), s)
    other = objective(model, X, labels, np.ravel(w), b, s)
    assert own <= other * (1 + 1e-7)
    assert own - model.duality_gap_ <= other * (1 + 1e-12)
    assert own >= other * (1 - 1e-7)
    if coefficients:
        assert np.abs(model.coef_.ravel() - np.ravel(w)).max() < 1e-4
        assert abs(float(model.intercept_[0]) - b) < 1e-4


def weights(y, weighted):
    return np.random.default_rng(0).uniform(0.2, 2, len(y)) if weighted else None


def total(y, s):
    return len(y) if s is None else s.sum()


TIGHT = {"tol": 1e-11, "max_epochs": 50_000, "random_state": 0}
both = pytest.mark.parametrize("fit_intercept", [True, False])
weighted = pytest.mark.parametrize("weighted", [False, True])
classes = pytest.mark.parametrize("load", [cancer, digits, random_sparse])
targets = pytest.mark.parametrize("load", [diabetes, sparse_targets])


@both
@weighted
@classes
def test_logistic_regression(load, weighted, fit_intercept):
    X, y = load()
    s = weights(y, weighted)
    m = APCGClassifier("logistic", alpha=1e-2, fit_intercept=fit_intercept, **TIGHT).fit(X, y, s)
    C = 1 / (1e-2 * total(y, s))
    other = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=5000)
    other.fit(X, y, sample_weight=s)
    agree(m, X, y, s, other.coef_, float(np.ravel(other.intercept_)[0]))


@weighted
@classes
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_svc(load, weighted, loss):
    X, y = load()
    s = weights(y, weighted)
    options = TIGHT | ({"tol": 1e-8} if loss == "hinge" else {})
    m = APCGClassifier(loss, alpha=1e-2, fit_intercept=False, **options).fit(X, y, s)
    C = 1 / (1e-2 * total(y, s))
    other = LinearSVC(loss=loss, C=C, fit_intercept=False, tol=1e-10, max_iter=10**6, dual=True)
    other.fit(X, y, sample_weight=s)
    agree(m, X, y, s, other.coef_, 0.0)


@weighted
@pytest.mark.parametrize("load", [cancer, random_sparse])
def test_hinge_with_an_intercept(load, weighted):
    """LinearSVC penalises the intercept; SVC does not."""
    X, y = load()
    s = weights(y, weighted)
    m = APCGClassifier("hinge", alpha=1e-2, **TIGHT | {"tol": 2e-8}).fit(X, y, s)
    other = SVC(kernel="linear", C=1 / (1e-2 * total(y, s)), tol=1e-9).fit(X, y, sample_weight=s)
    w = other.coef_.toarray() if sp.issparse(other.coef_) else other.coef_
    agree(m, X, y, s, w, float(other.intercept_[0]), coefficients=False)
    assert np.abs(m.coef_ - w).max() < 1e-3


def smooth_minimum(model, X, y, s, start):
    """By BFGS on (w, b), or on w alone."""
    d = X.shape[1]
    loss = losses.by_name(model.loss)
    weight = np.ones(len(y)) if s is None else s

    def value_and_gradient(v):
        w, b = v[:d], v[d] if v.size > d else 0.0
        slope = weight * loss.derivative(X @ w + b, y) / weight.sum()
        gradient = X.T @ slope + model.alpha * w
        value = objective(model, X, y, w, b, s)
        return value, np.append(gradient, slope.sum()) if v.size > d else gradient

    options = {"gtol": 1e-12, "maxiter": 100_000, "maxfun": 10**6, "ftol": 1e-16, "maxcor": 30}
    v = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x
    return v[:d], float(v[d]) if v.size > d else 0.0


@both
@weighted
@classes
@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge"])
def test_smooth_hinges(load, loss, weighted, fit_intercept):
    X, y = load()
    s = weights(y, weighted)
    m = APCGClassifier(loss, alpha=1e-2, fit_intercept=fit_intercept, **TIGHT).fit(X, y, s)
    labels = np.where(y == m.classes_[1], 1.0, -1.0)
    w, b = smooth_minimum(m, X, labels, s, np.zeros(X.shape[1] + fit_intercept))
    agree(m, X, y, s, w, b)


@both
@weighted
@targets
def test_huber(load, weighted, fit_intercept):
    X, y = load()
    s = weights(y, weighted)
    m = APCGRegressor("huber", alpha=1e-2, fit_intercept=fit_intercept, **TIGHT).fit(X, y, s)
    w, b = smooth_minimum(m, X, y, s, np.zeros(X.shape[1] + fit_intercept))
    agree(m, X, y, s, w, b)


@both
@weighted
@targets
def test_ridge(load, weighted, fit_intercept):
    X, y = load()
    s = weights(y, weighted)
    m = APCGRegressor(alpha=1e-2, fit_intercept=fit_intercept, **TIGHT).fit(X, y, s)
    dense = X.toarray() if sp.issparse(X) else X
    other = Ridge(alpha=1e-2 * total(y, s), fit_intercept=fit_intercept)
    other.fit(dense, y, sample_weight=s)
    agree(m, X, y, s, other.coef_, float(other.intercept_))


@both
@weighted
@targets
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_lasso_and_elastic_net(load, penalty, weighted, fit_intercept):
    X, y = load()
    s = weights(y, weighted)
    options = {"fit_intercept": fit_intercept, "penalty": penalty, "l1_ratio": 0.7}
    m = APCGRegressor(alpha=1e-2, **options, **TIGHT).fit(X, y, s)
    ratio = {} if penalty == "l1" else {"l1_ratio": 0.7}
    kind = Lasso if penalty == "l1" else ElasticNet
    other = kind(alpha=1e-2, fit_intercept=fit_intercept, tol=1e-12, max_iter=10**5, **ratio)
    other.fit(X, y, sample_weight=s)
    agree(m, X, y, s, other.coef_, float(other.intercept_))


def test_sparse_logistic_regression():
    X, y = cancer()
    m = APCGClassifier("logistic", penalty="l1", alpha=1e-2, **TIGHT | {"tol": 1e-9}).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions want no name of the penalty
        other = LogisticRegression(
            penalty="elasticnet",
            l1_ratio=1,
            C=1 / (1e-2 * len(y)),
            solver="saga",
            tol=1e-9,
            max_iter=20_000,
        ).fit(X, y)
    agree(m, X, y, None, other.coef_, float(other.intercept_[0]))


@both
def test_ten_classes(fit_intercept):
    """One against the rest is ten problems of two classes."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    options = TIGHT | {"tol": 1e-9, "multi_class": "ovr"}
    m = APCGClassifier("logistic", alpha=1e-2, fit_intercept=fit_intercept, n_jobs=2, **options)
    m.fit(X, y)
    for k in (0, 8):
        other = LogisticRegression(
            C=1 / (1e-2 * len(y)), fit_intercept=fit_intercept, tol=1e-10, max_iter=5000
        ).fit(X, y == k)
        assert np.abs(m.coef_[k] - other.coef_[0]).max() < 1e-4


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_the_squared_epsilon_insensitive_loss_has_its_epsilon(epsilon):
    X, y = diabetes()
    name, alpha = "squared_epsilon_insensitive", 1e-2
    options = {"epsilon": epsilon, "fit_intercept": False, "tol": 1e-10}
    m = APCGRegressor(name, alpha=alpha, **options).fit(X, y)
    other = LinearSVR(loss=name, C=1 / (alpha * len(y)), dual=False, **options).fit(X, y)
    np.testing.assert_allclose(m.coef_, other.coef_, atol=1e-5)


@targets
@weighted
def test_epsilon_insensitive(load, weighted):
    """Against many points near the answer and far from it: none is below the dual bound."""
    X, y = load()
    s = weights(y, weighted)
    m = APCGRegressor("epsilon_insensitive", alpha=1e-2, **TIGHT | {"tol": 1e-7}).fit(X, y, s)
    w, b = m.coef_, float(m.intercept_[0])
    own = objective(m, X, y, w, b, s)
    rng = np.random.default_rng(0)
    for step in 10.0 ** rng.uniform(-6, 1, 100):
        v = rng.standard_normal(w.size + 1)
        assert objective(m, X, y, w + step * v[:-1], b + step * v[-1], s) >= own * (1 - 1e-7)
