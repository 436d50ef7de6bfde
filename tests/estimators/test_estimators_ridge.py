"""The scores of the CV estimators: own R^2 and accuracy, and ridge regression in one go."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer, r2_score
from sklearn.model_selection import KFold

from apcg import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV
from apcg.estimators import ridge

ALPHAS = np.array([1e-3, 1.0, 1e-6, 0.1])


def regression(seed=0, n=60, d=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    y = X @ rng.standard_normal(d) + 5 + rng.standard_normal(n)
    return X, y, rng.uniform(0.1, 3, n) * (rng.random(n) < 0.8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_matrix])
def test_ridge_by_decomposition_is_ridge_in_every_fold(kind, intercept, weighted):
    X, y, s = regression()
    X = np.asarray(X.astype(np.float32), dtype=float) if kind is np.float32 else X
    model = APCGRegressorCV(alphas=ALPHAS, fit_intercept=intercept, random_state=0)
    model.fit(kind(X), y, sample_weight=s if weighted else None)
    wanted = np.empty((4, 5))
    for f, (train, test) in enumerate(KFold(5).split(X)):
        part = s[train] if weighted else np.ones(train.size)
        for k, alpha in enumerate(ALPHAS):
            peer = Ridge(alpha=alpha * part.sum(), fit_intercept=intercept, solver="svd")
            z = peer.fit(X[train], y[train], part).predict(X[test])
            wanted[k, f] = r2_score(y[test], z, sample_weight=s[test] if weighted else None)
    np.testing.assert_allclose(model.scores_, wanted, rtol=0, atol=1e-6)
    assert model.alpha_ == ALPHAS[wanted.mean(axis=1).argmax()]
    assert model.best_score_ == pytest.approx(wanted.mean(axis=1).max(), abs=1e-6)
    alone = APCGRegressor(alpha=model.alpha_, fit_intercept=intercept, random_state=0)
    alone.fit(kind(X), y, sample_weight=s if weighted else None)
    assert np.array_equal(model.coef_, alone.coef_)


def test_decomposition_agrees_with_the_race(monkeypatch):
    X, y, _ = regression(1)
    options = {"alphas": ALPHAS, "tol": 1e-10, "random_state": 0}
    fast = APCGRegressorCV(**options).fit(X, y)
    assert fast.n_iter_path_.max() == 1
    by_scorer = APCGRegressorCV(**options, scoring=make_scorer(r2_score)).fit(X, y)
    monkeypatch.setattr(ridge, "WIDEST", X.shape[1] - 1)  # too many features now
    raced = APCGRegressorCV(**options).fit(X, y)
    for other in (by_scorer, raced):
        assert other.n_iter_path_.max() > 1
        assert other.alpha_ == fast.alpha_
        best = list(ALPHAS).index(fast.alpha_)
        np.testing.assert_allclose(other.scores_[best], fast.scores_[best], rtol=0, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_own_scores_are_those_of_scikit_learn(count, weighted):
    X, y, s = regression(2)
    s = s if weighted else None
    names = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, count) / count))]
    model = APCGClassifier(random_state=0).fit(X, names)
    own = model._scores(X, names, model.coef_, model.intercept_, s)
    assert own == pytest.approx([accuracy_score(names, model.predict(X), sample_weight=s)])
    line = APCGRegressor(random_state=0).fit(X, y)
    W, b = np.stack([line.coef_, 0 * line.coef_]), np.array([line.intercept_[0], 0.0])
    wanted = [r2_score(y, z, sample_weight=s) for z in (line.predict(X), 0 * y)]
    np.testing.assert_allclose(line._scores(X, y, W, b, s), wanted, rtol=1e-12)


def test_what_has_no_score_is_left_to_scikit_learn():
    X, y, _ = regression(3, n=12)
    y[:4] = 1.0  # R^2 of a constant
    folds = [(np.arange(4, 12), np.arange(4)), (np.arange(8), np.arange(8, 12))]
    model = APCGRegressorCV(alphas=[1e-2], cv=folds, random_state=0).fit(X, y)
    assert model.scores_[0, 0] == 0.0
    empty = APCGRegressorCV(alphas=[1e-2], cv=[folds[0][::-1], folds[1]])
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        empty.fit(X, y, sample_weight=np.r_[np.zeros(4), np.ones(8)])


@pytest.mark.parametrize(
    "y",
    [
        np.array([0, 1, 1, 0]),
        np.array([-1.0, 1.0, 1.0, -1.0]),
        np.array([True, False, True, True]),
        np.array([3, 7, 3, 5]),
        np.array(["no", "yes", "no", "no"]),
        np.array([250, 3, 3, 250], dtype=np.uint8),
    ],
    ids=str,
)
def test_classes_of_any_kind_of_labels(y):
    X = np.random.default_rng(0).standard_normal((4, 2))
    model = APCGClassifier(alpha=1e-3, random_state=0).fit(X, y)
    assert np.array_equal(model.classes_, np.unique(y))
    assert model.classes_.dtype == y.dtype


@pytest.mark.parametrize("y", [[0.5, 1.0, 0.5, 1.0], [0.1, 0.2, 0.3, 0.4]])
def test_real_numbers_are_no_classes(y):
    X = np.random.default_rng(0).standard_normal((4, 2))
    for model in (APCGClassifier(), APCGClassifierCV()):
        with pytest.raises(ValueError, match="Unknown label type"):
            model.fit(X, y)
