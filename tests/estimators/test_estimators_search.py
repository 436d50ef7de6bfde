"""The CV estimators against GridSearchCV, and random fits."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import text_like
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from apcg import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV, losses

PASSES = []


class Counted(APCGClassifier):
    """Counts the passes of all its fits."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        PASSES.append(self.n_iter_)
        return self


def cases():
    X, y = load_breast_cancer(return_X_y=True)
    yield "cancer", scale(X), y, np.logspace(0, -4, 15)
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y == 8, np.logspace(-1, -4, 15)
    X, y = text_like(1000, 1000)
    yield "text", X, y, np.logspace(-1, -5, 15)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
@pytest.mark.parametrize(
    ("name", "X", "y", "alphas"), list(cases()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_fewer_passes_than_a_grid_search_and_the_same_alpha(name, X, y, alphas, loss):
    model = APCGClassifierCV(loss, alphas=alphas, random_state=0, n_jobs=2).fit(X, y)
    PASSES.clear()
    grid = GridSearchCV(Counted(loss, random_state=0), {"alpha": alphas}, error_score="raise")
    grid.fit(X, y)
    assert len(PASSES) == 76
    assert model.n_iter_path_.sum() + model.n_iter_ <= 0.6 * sum(PASSES)
    assert model.alpha_ == grid.best_params_["alpha"]
    assert model.best_score_ == pytest.approx(grid.best_score_, abs=5 / len(y))
    assert np.array_equal(model.coef_, grid.best_estimator_.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regression_by_several_losses():
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    alphas = np.logspace(1, -4, 8)
    # At the default tol, R^2 of neighbouring alphas differs by less than what tol leaves open.
    options = {"tol": 1e-9, "max_epochs": 5000, "random_state": 0}
    for loss, penalty in (("squared", "l2"), ("huber", "elasticnet"), ("squared", "l1")):
        a = APCGRegressorCV(loss, penalty=penalty, alphas=alphas, **options).fit(X, y)
        base = APCGRegressor(loss, penalty=penalty, **options)
        b = GridSearchCV(base, {"alpha": alphas}, error_score="raise").fit(X, y)
        assert a.alpha_ == b.best_params_["alpha"]
        assert a.scores_.shape == a.n_iter_path_.shape == (8, 5)
        assert a.score(X, y) == pytest.approx(b.score(X, y), abs=1e-6)


@pytest.mark.slow
def test_threads_scorers_and_missing_classes():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    options = {"alphas": [1e-1, 1e-2], "cv": 3, "random_state": 0}
    one = APCGClassifierCV(**options).fit(X, y)
    two = APCGClassifierCV(**options, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.scores_, two.scores_)
    s = np.random.default_rng(0).uniform(0, 1, 300)
    for scoring in (lambda model, X, y: model.score(X, y), make_scorer(accuracy_score), "f1_macro"):
        APCGClassifierCV(**options, scoring=scoring).fit(X, y, sample_weight=s)
    half = np.arange(300)
    folds = [(half[y != 9], half[y == 9]), (half[:200], half[200:])]  # one without nines
    model = APCGClassifierCV(**options | {"cv": folds}).fit(X, y)
    assert model.scores_[0, 0] == 0
    assert model.classes_.size == 10


@st.composite
def fits(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(4, 40)), draw(st.integers(1, 15))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density) * 10.0 ** rng.uniform(-2, 1, d)
    X = X.astype(draw(st.sampled_from([np.float32, np.float64, np.int64])))
    layout = draw(st.sampled_from([np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix]))
    weights = draw(st.sampled_from(["none", "real", "zeros"]))
    s = None if weights == "none" else rng.uniform(0.1, 5, n)
    if weights == "zeros":
        s[4:] *= rng.random(n - 4) < 0.5
    regression = draw(st.booleans())
    name = draw(
        st.sampled_from(
            ["squared", "huber", "epsilon_insensitive"]
            if regression
            else ["logistic", "hinge", "smoothed_hinge", "squared_hinge"]
        )
    )
    smooth = name not in ("hinge", "epsilon_insensitive")
    options = {
        "penalty": draw(st.sampled_from(["l2", "elasticnet"] + ["l1"] * smooth)),
        "alpha": 10.0 ** draw(st.integers(-5, 1)),
        "fit_intercept": draw(st.booleans()),
        "random_state": 0,
        "max_epochs": 300,
    }
    model = (APCGRegressor if regression else APCGClassifier)(name, **options)
    y = (
        rng.standard_normal(n) * 10.0 ** draw(st.integers(-3, 3))
        if regression
        else rng.integers(0, 2, n)
    )
    if not regression:
        y[:4] = 0, 1, 0, 1
    return model, X, layout, y, s, rng.permutation(n)


def value(model, X, y, s):
    """The objective, from the definition."""
    X = X.astype(np.float64)
    s = np.ones(len(y)) if s is None else s
    labels = np.where(y == 1, 1.0, -1.0) if hasattr(model, "classes_") else y
    z = X @ model.coef_.ravel() + float(model.intercept_[0])
    ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.5}[model.penalty]
    g = ratio * np.abs(model.coef_).sum() + (1 - ratio) / 2 * (model.coef_**2).sum()
    return s @ losses.by_name(model.loss).value(z, labels) / s.sum() + model.alpha * g


@pytest.mark.slow
@examples(150)
@given(fits())
def test_any_fit_is_certified_whatever_the_order_of_rows(case):
    model, X, layout, y, s, order = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        a = clone(model).fit(layout(X), y, s)
        b = clone(model).fit(layout(X[order]), y[order], None if s is None else s[order])
    P, Q = value(a, X, y, s), value(b, X, y, s)
    rounding = 1e-10 * (1e-10 + P)
    assert np.isfinite(a.coef_).all()
    assert a.duality_gap_ >= -rounding
    # each certificate bounds the other's objective from below
    assert P - a.duality_gap_ - rounding <= Q
    assert Q - b.duality_gap_ - rounding <= P
    if a.status_.converged:
        assert a.duality_gap_ <= 1e-6 * P + rounding


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("shape", [(60, 12), (40, 70)])  # by the Gram matrix alone; by a run
def test_sparse_regression_agrees_with_scikit_learn(penalty, shape):
    from sklearn.linear_model import ElasticNetCV, LassoCV

    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(shape[0]) + 3.0
    kind = LassoCV if penalty == "l1" else ElasticNetCV
    theirs = kind(cv=4, tol=1e-9, max_iter=10**6, alphas=30).fit(X, y)
    ours = APCGRegressorCV(
        penalty=penalty, alphas=theirs.alphas_, cv=4, scoring="neg_mean_squared_error", tol=1e-9
    ).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert -ours.scores_ == pytest.approx(theirs.mse_path_, rel=1e-3)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-4)
    assert ours.n_iter_path_.shape == ours.scores_.shape


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_chooses_the_C_of_LogisticRegressionCV(name, intercept):
    """C is 1/(alpha n) with n of a fold. Solved well enough, since its default tolerance is not."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import KFold

    load = load_breast_cancer if name == "breast_cancer" else load_diabetes
    X, y = load(return_X_y=True)
    y = y if name == "breast_cancer" else (y > np.median(y)).astype(int)
    n = len(y) - len(y) % 5  # so that all folds have the same n
    X, y = scale(X[:n]), y[:n]
    Cs = np.logspace(-2, -1, 3) if intercept else np.logspace(-3, 0, 7)
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that change from version to version
        theirs = LogisticRegressionCV(
            Cs=Cs, cv=folds, penalty="l1", solver="saga" if intercept else "liblinear",
            fit_intercept=intercept, tol=1e-6, max_iter=10_000, random_state=0,
            scoring="accuracy",
        ).fit(X, y)  # fmt: skip
    known = theirs.scores_
    scores = np.reshape(next(iter(known.values())) if isinstance(known, dict) else known, (5, -1))
    ours = APCGClassifierCV(
        "logistic", penalty="l1", alphas=1 / (Cs * 0.8 * n), cv=folds, fit_intercept=intercept,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(ours.scores_, scores.T, rtol=1e-12)
    assert 1 / (ours.alpha_ * 0.8 * n) == pytest.approx(np.ravel(theirs.C_)[0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "r2", "neg_max_error"])
def test_sparse_scores_are_those_of_single_fits(weighted, scoring):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90] * 10, y[:90]
    s = np.random.default_rng(0).uniform(0.2, 2.0, y.size) if weighted else None
    model = APCGRegressorCV(penalty="l1", alphas=[3.0, 0.3], cv=3, scoring=scoring, tol=1e-9)
    model.fit(X, y, s)
    grid = GridSearchCV(
        APCGRegressor(penalty="l1", tol=1e-9), {"alpha": [3.0, 0.3]}, cv=3,
        scoring=scoring or "r2",
    )  # fmt: skip
    if not weighted:  # GridSearchCV scores without weights
        found = grid.fit(X, y).cv_results_
        scores = np.transpose([found[f"split{k}_test_score"] for k in range(3)])
        assert model.scores_ == pytest.approx(scores, rel=1e-4)
    single = APCGRegressor(penalty="l1", alpha=model.alpha_, tol=1e-9).fit(X, y, s)
    assert model.coef_ == pytest.approx(single.coef_, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_classification_scores_are_those_of_single_fits(classes):
    X, y = load_digits(n_class=classes, return_X_y=True)
    X, y = X[:150] / 16, y[:150]
    model = APCGClassifierCV(
        "logistic", penalty="l1", alphas=[0.1, 0.01], cv=3, multi_class="ovr", tol=1e-8
    ).fit(X, y)
    grid = GridSearchCV(
        APCGClassifier("logistic", penalty="l1", multi_class="ovr", tol=1e-8),
        {"alpha": [0.1, 0.01]}, cv=3,
    ).fit(X, y)  # fmt: skip
    scores = np.transpose([grid.cv_results_[f"split{k}_test_score"] for k in range(3)])
    assert model.scores_ == pytest.approx(scores, abs=1e-12)
    assert model.alpha_ == grid.best_params_["alpha"]
