"""`apcg.linear_model` at the edges: types and shapes of all that is fitted, words of errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn_objectives import huber

from apcg import linear_model as ours

OWN = {"duality_gap_", "status_", "trace_"}
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def theirs(name):
    """scikit-learn's class of that name."""
    return getattr(sklearn.svm if hasattr(sklearn.svm, name) else sklearn.linear_model, name)


def fitted(kind, parameters, X, y, **told):
    """A model and the warnings of its fit, or the error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            model = kind(**parameters).fit(X, y, **told)
        except (ValueError, TypeError) as error:
            return error, []
    told = {(w.category.__name__, str(w.message)) for w in seen}
    return model, {w for w in told if w[0] != "ConvergenceWarning"}


def kind_of(value):
    """What is seen of an attribute but its numbers."""
    if isinstance(value, dict):
        return {key: kind_of(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype
    if isinstance(value, list):
        return len(value), kind_of(value[0])
    return type(value)


CLASSIFIERS = {
    "LogisticRegression": [{}, {"solver": "liblinear"}, {"C": np.inf}, {"fit_intercept": False}],
    "LogisticRegressionCV": [
        {
            "Cs": 3,
            "cv": 3,
            "use_legacy_attributes": legacy,
            "l1_ratios": (0,),
            "scoring": "accuracy",
        }
        for legacy in (True, False)
    ],
    "LinearSVC": [{}, {"multi_class": "crammer_singer"}, {"fit_intercept": False}],
    "RidgeClassifier": [{}, {"fit_intercept": False}, {"solver": "cholesky"}],
    "RidgeClassifierCV": [{}, {"cv": 3}, {"store_cv_results": True}],
}
REGRESSORS = {
    "LinearSVR": [{"epsilon": 0.5}, {"fit_intercept": False}],
    "Ridge": [{}, {"fit_intercept": False}, {"positive": True}, {"solver": "lsqr"}],
    "RidgeCV": [{}, {"fit_intercept": False}, {"store_cv_results": True}, {"cv": 3}],
    "Lasso": [{"alpha": 0.1}, {"fit_intercept": False}, {"positive": True}],
    "LassoCV": [{"alphas": 5, "cv": 3}, {"alphas": 5, "fit_intercept": False}],
    "ElasticNet": [{"alpha": 0.1}, {"l1_ratio": 0.9, "fit_intercept": False}],
    "ElasticNetCV": [{"alphas": 5, "cv": 3, "l1_ratio": [0.5, 0.9]}],
    "QuantileRegressor": [{"alpha": 0.01}, {"fit_intercept": False}],
    "HuberRegressor": [{}, {"fit_intercept": False}],
}
TASKS = {
    "MultiTaskLasso": [{"alpha": 0.1}, {"fit_intercept": False}],
    "MultiTaskElasticNet": [{"alpha": 0.1}],
    "MultiTaskLassoCV": [{"alphas": 5, "cv": 3}],
    "MultiTaskElasticNetCV": [{"alphas": 5, "cv": 3}],
}
FORMS = {
    "float64": np.asarray,
    "float32": lambda X: np.asarray(X, np.float32),
    "int": lambda X: np.round(3 * X).astype(int),
    "csr": sp.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]),
}


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name in (*CLASSIFIERS, *REGRESSORS, *TASKS)
        for form in (("float32",) if name.endswith("CV") else FORMS)
    ],
)
def test_what_is_fitted_has_the_types_and_shapes_of_scikit_learn(name, form):
    if name in CLASSIFIERS:
        X, y = load_iris(return_X_y=True)
        labels = [np.where(y > 1, "b", "a"), y] if name != "LogisticRegressionCV" else [y]
    else:
        X, y = load_diabetes(return_X_y=True)
        X, y = X[:120] * 20, y[:120] / 100
        labels = [np.column_stack([y, y**2])] if name in TASKS else [y]
    X = FORMS[form](scale(X) + 0.3)
    for parameters in {**CLASSIFIERS, **REGRESSORS, **TASKS}[name]:
        for target in labels:
            made = []
            for kind in (theirs(name), getattr(ours, name)):
                if parameters.get("solver") == "liblinear" and len(set(target)) > 2:
                    continue
                made.append(fitted(kind, parameters, X.copy(), target.copy()))
            if not made:
                continue
            (known, told), (found, said) = made
            if isinstance(known, Exception):
                assert (type(found), str(found)) == (type(known), str(known))
                continue
            assert said == told
            assert {k for k in vars(found) if not k.startswith("_")} - OWN == {
                k for k in vars(known) if not k.startswith("_")
            }
            for key, value in vars(known).items():
                if key.endswith("_"):
                    assert kind_of(getattr(found, key)) == kind_of(value), (parameters, key)
            for method in METHODS:
                assert hasattr(found, method) == hasattr(known, method)
                if hasattr(known, method):
                    assert kind_of(getattr(found, method)(X)) == kind_of(getattr(known, method)(X))


def test_a_ridge_classifier_of_integers_has_coefficients_that_are_no_integers():
    X, y = load_iris(return_X_y=True)
    X = np.round(2 * X).astype(int)
    known = sklearn.linear_model.RidgeClassifier().fit(X, y)
    found = ours.RidgeClassifier().fit(X, y)
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-9)


@pytest.mark.parametrize("weight", ["balanced", {0: 3.0}])
def test_class_weights_in_a_search_of_liblinear(weight):
    X, y = load_iris(return_X_y=True)
    told = {"solver": "liblinear", "class_weight": weight, "Cs": [0.01, 1.0], "l1_ratios": (0,)}
    told |= {"use_legacy_attributes": False, "scoring": "neg_log_loss", "tol": 1e-8}
    y = (y == 2).astype(int)
    known = sklearn.linear_model.LogisticRegressionCV(**told).fit(X, y)
    found = ours.LogisticRegressionCV(**told).fit(X, y)
    assert found.C_ == known.C_
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-5)


def test_a_class_weight_for_no_class_is_said_before_the_combination_of_parameters():
    X, y = load_iris(return_X_y=True)
    model = {"loss": "hinge", "dual": False, "class_weight": {7: 1.0}}
    known, _ = fitted(sklearn.svm.LinearSVC, model, X, y)
    found, _ = fitted(ours.LinearSVC, model, X, y)
    assert str(found) == str(known)


@pytest.mark.parametrize("seed", range(12))
def test_huber_with_as_many_features_as_samples(seed):
    rng = np.random.default_rng(seed)
    n = 12 + seed % 3
    X, y = rng.standard_normal((n, 11)), rng.standard_normal(n)
    X *= rng.random(X.shape) < 0.5
    for alpha in (0.0, 1e-4):
        told = {
            "alpha": alpha,
            "max_iter": 5000,
            "tol": 1e-9,
            "epsilon": (1.0, 1.35, 3.0)[seed % 3],
        }
        known = sklearn.linear_model.HuberRegressor(**told).fit(X, y)
        found = ours.HuberRegressor(**told).fit(X, y)
        best = huber(known, X, y, np.ones(n))
        assert huber(found, X, y, np.ones(n)) <= best * (1 + 1e-6) + 1e-9


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_huber_without_a_penalty_on_wide_data_where_most_of_y_is_fitted():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 22)), rng.standard_normal(20)
    model = ours.HuberRegressor(alpha=0.0).fit(X, y)
    assert np.abs(model.predict(X) - y).mean() < 0.01 * y.std()


INSTANCES = [
    ours.LogisticRegression(solver="newton-cholesky", fit_intercept=False),
    ours.LogisticRegression(solver="saga", l1_ratio=1.0),
    ours.LogisticRegression(solver="saga", l1_ratio=0.5, max_iter=500),
    ours.LogisticRegressionCV(
        cv=3, solver="liblinear", max_iter=5, scoring="neg_log_loss", use_legacy_attributes=False
    ),
    ours.LinearSVC(penalty="l1", dual=False),
    ours.LinearSVC(loss="hinge", multi_class="crammer_singer"),
    ours.LinearSVR(loss="squared_epsilon_insensitive"),
    ours.Ridge(positive=True),
    ours.Ridge(fit_intercept=False, solver="lsqr"),
    ours.RidgeClassifier(class_weight="balanced"),
    ours.Lasso(alpha=0.1, positive=True),
    ours.ElasticNet(l1_ratio=1.0, fit_intercept=False),
    ours.QuantileRegressor(alpha=0.1, quantile=0.8),
    ours.HuberRegressor(epsilon=3.0, fit_intercept=False),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", INSTANCES, ids=repr)
def test_check_estimator_with_parameters_that_are_not_the_default(model):
    """No check fails that scikit-learn's own class passes."""
    known = theirs(type(model).__name__)(**model.get_params())
    for made, check in estimator_checks_generator(model):
        try:
            check(made)
        except Exception as error:
            name = check.func.__name__
            others = [c for _, c in estimator_checks_generator(known) if c.func.__name__ == name]
            with pytest.raises(type(error)):
                others[0](known)
