"""Words of other libraries are answered with ours; and the parameters that people expect."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, ElasticNetCV, Lasso, LassoCV, Ridge
from sklearn.preprocessing import scale

from apcg import ERM, functions, losses, minimize, penalties, solve
from apcg.estimators import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV

ALL = (APCGClassifier, APCGRegressor, APCGClassifierCV, APCGRegressorCV)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y - y.mean()


# ---- names of parameters -----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("C", r"alpha=1/\(C n\)"),
        ("Cs", r"alphas, 1/\(C n\) for each C"),
        ("max_iter", "max_epochs, the passes over the data"),
        ("solver", "method"),
        ("l1_ratios", "l1_ratio, which takes a list"),
        ("intercept", "fit_intercept"),
    ],
)
def test_parameters_of_other_libraries(estimator, name, ours):
    match = f"{estimator.__name__} has no parameter '{name}'; write {ours}"
    with pytest.raises(TypeError, match=match):
        estimator(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        estimator(nonsense=1)


def test_parameters_of_other_libraries_in_functions():
    X, y = np.eye(3), [1.0, -1.0, 1.0]
    with pytest.raises(TypeError, match=r"ERM has no parameter 'C'; write alpha=1/\(C n\)"):
        ERM(X, y, C=1.0)
    with pytest.raises(TypeError, match="ERM has no parameter 'fit_intercept'; write intercept"):
        ERM(X, [0, 1, 2], "multinomial", fit_intercept=True)
    with pytest.raises(TypeError, match="solve has no parameter 'max_iter'; write max_epochs"):
        solve(ERM(X, y), max_iter=10)
    with pytest.raises(TypeError, match="minimize has no parameter 'max_iter'; write max_epochs"):
        minimize(functions.LeastSquares(X, y), penalties.L1(0.1), max_iter=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        ERM(X, y, nonsense=1.0)


@pytest.mark.parametrize("estimator", ALL)
def test_the_parameters_are_still_seen(estimator):
    """scikit-learn reads them from the signature."""
    assert {"loss", "positive", "l1_ratio", "n_jobs"} <= set(estimator().get_params())
    assert clone(estimator(tol=1e-3)).tol == 1e-3


# ---- names of losses and penalties -------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "ours"),
    [
        ("log_loss", "Did you mean 'logistic'"),
        ("softmax", "loss='logistic', with multi_class='multinomial'"),
        ("multinomial", "loss='logistic', with multi_class='multinomial'"),
        ("crammer_singer", "loss='hinge' with multi_class='crammer_singer'"),
        ("multiclass_hinge", "loss='hinge' with multi_class='crammer_singer'"),
        ("modified_huber", "4 times the smoothed hinge with gamma=2: take that, and alpha/4"),
        ("squared", "real targets: take APCGRegressor"),
        ("mse", "real targets: take APCGRegressor"),
    ],
)
def test_losses_of_a_classifier(loss, ours):
    with pytest.raises(ValueError, match=ours):
        APCGClassifier(loss).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    ("loss", "ours"),
    [
        ("squared_error", "Did you mean 'squared'"),
        ("log_loss", "a loss of classes: take APCGClassifier"),
        ("hinge", "a loss of classes: take APCGClassifier"),
        ("softmax", "a loss of classes: take APCGClassifier"),
    ],
)
def test_losses_of_a_regressor(loss, ours):
    with pytest.raises(ValueError, match=ours):
        APCGRegressor(loss).fit(np.eye(2), [0.5, 1])


def test_the_modified_huber_loss_is_what_the_hint_says():
    m = np.linspace(-4, 3, 50)
    theirs = np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m)
    np.testing.assert_allclose(
        4 * losses.SmoothedHinge(2).value(m, np.ones(50)), theirs, atol=1e-12
    )


@pytest.mark.parametrize("penalty", [None, "none"])
def test_no_penalty_is_one_too(penalty):
    assert ERM(np.eye(2), [1, -1], penalty=penalty).penalty == "none"
    model = APCGClassifier(penalty=penalty).fit(np.eye(2), [0, 1])
    assert model.score(np.eye(2), [0, 1]) == 1


# ---- positive ----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_positive_is_that_of_scikit_learn(penalty):
    X, y = diabetes()
    theirs = {
        "l1": Lasso(alpha=3.0, positive=True, tol=1e-12),
        "elasticnet": ElasticNet(alpha=3.0, l1_ratio=0.5, positive=True, tol=1e-12),
        "l2": Ridge(alpha=3.0 * len(y), positive=True, tol=1e-12),
    }[penalty].fit(X, y)
    ours = APCGRegressor(penalty=penalty, alpha=3.0, positive=True, tol=1e-10, random_state=0)
    ours.fit(X, y)
    assert ours.coef_.min() == 0
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4 * abs(theirs.coef_).max())
    plain = APCGRegressor(penalty=penalty, alpha=3.0, random_state=0).fit(X, y)
    assert plain.coef_.min() < 0


@pytest.mark.parametrize("multi_class", ["auto", "ovr"])
def test_positive_with_many_classes(multi_class):
    X, y = load_digits(n_class=3, return_X_y=True)
    model = APCGClassifier("logistic", alpha=1e-2, positive=True, multi_class=multi_class,
                           random_state=0).fit(X / 16, y)  # fmt: skip
    assert model.coef_.min() >= 0
    assert np.all(np.isfinite(model.duality_gap_))
    assert model.score(X / 16, y) > 0.9
    with pytest.raises(TypeError, match="positive must be True, False or a pair"):
        APCGClassifier(positive=2).fit(X, y)


def test_positive_in_a_search():
    X, y = diabetes()
    alphas = np.geomspace(10, 0.1, 5)
    for penalty, theirs in (
        ("l1", LassoCV(alphas=alphas, positive=True, cv=3, tol=1e-10)),
        ("elasticnet", ElasticNetCV(alphas=alphas, positive=True, cv=3, tol=1e-10)),
    ):
        ours = APCGRegressorCV(
            penalty=penalty,
            alphas=alphas,
            positive=True,
            cv=3,
            scoring="neg_mean_squared_error",
            tol=1e-8,
            random_state=0,
        )
        assert ours.fit(X, y).alpha_ == theirs.fit(X, y).alpha_
        np.testing.assert_allclose(-ours.scores_, theirs.mse_path_, rtol=1e-4)
        assert ours.coef_.min() >= 0
    squares = APCGRegressorCV(alphas=alphas, positive=True, cv=3, random_state=0).fit(X, y)
    assert squares.coef_.min() >= 0  # the eigenvalues of a ridge regression know no bounds


# ---- l1_ratio and n_jobs -----------------------------------------------------------------------


def test_a_list_of_l1_ratio_is_that_of_ElasticNetCV():
    X, y = diabetes()
    alphas, ratios = np.geomspace(10, 0.1, 6), [0.1, 0.5, 0.9]
    theirs = ElasticNetCV(l1_ratio=ratios, alphas=alphas, cv=3, tol=1e-10).fit(X, y)
    ours = APCGRegressorCV(penalty="elasticnet", l1_ratio=ratios, alphas=alphas, cv=3, tol=1e-8,
                           scoring="neg_mean_squared_error", random_state=0).fit(X, y)  # fmt: skip
    assert (ours.l1_ratio_, ours.alpha_) == (theirs.l1_ratio_, theirs.alpha_)
    assert ours.scores_.shape == ours.n_iter_path_.shape == (3, 6, 3)
    np.testing.assert_allclose(-ours.scores_, theirs.mse_path_, rtol=1e-4)
    best = ours.scores_.mean(axis=2)
    assert ours.best_score_ == pytest.approx(best.max())
    assert best[ratios.index(ours.l1_ratio_), list(alphas).index(ours.alpha_)] == best.max()
    # the fit is that with these two
    alone = APCGRegressor(penalty="elasticnet", l1_ratio=ours.l1_ratio_, alpha=ours.alpha_,
                          tol=1e-8, random_state=0).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(ours.coef_, alone.coef_, rtol=1e-12)
    assert ours.l1_ratio == ratios  # the parameter is as it was


def test_a_list_of_l1_ratio_for_classes():
    X, y = load_breast_cancer(return_X_y=True)
    X, ratios, alphas = scale(X), [0.2, 0.8], [1e-1, 1e-2, 1e-3]
    model = APCGClassifierCV("logistic", penalty="elasticnet", l1_ratio=ratios, alphas=alphas,
                             cv=3, random_state=0).fit(X, y)  # fmt: skip
    each = [
        APCGClassifierCV("logistic", penalty="elasticnet", l1_ratio=ratio, alphas=alphas, cv=3,
                         random_state=0).fit(X, y)
        for ratio in ratios
    ]  # fmt: skip
    assert model.best_score_ == pytest.approx(max(e.best_score_ for e in each), abs=1e-12)
    assert each[0].l1_ratio_ == 0.2
    assert each[0].scores_.shape == (3, 3)
    three = APCGClassifierCV(
        "logistic", penalty="elasticnet", l1_ratio=[0.5], alphas=[0.1, 0.01], cv=2, random_state=0
    )
    assert three.fit(X, np.arange(len(y)) % 3).scores_.shape == (1, 2, 2)


def test_ctrl_c_in_a_search_over_l1_ratio_keeps_what_there_is():
    X, y = load_breast_cancer(return_X_y=True)
    calls, end = [], [10**9]

    def scoring(model, X, y):
        calls.append(model.l1_ratio)
        if len(calls) == end[0]:
            raise KeyboardInterrupt
        return model.score(X, y)

    def fit():
        calls.clear()
        model = APCGClassifierCV("logistic", penalty="elasticnet", l1_ratio=[0.2, 0.8], cv=2,
                                 alphas=[0.1, 0.01], scoring=scoring, random_state=0)  # fmt: skip
        with pytest.raises(KeyboardInterrupt):
            model.fit(scale(X), y)
        return model

    whole = APCGClassifierCV("logistic", penalty="elasticnet", l1_ratio=[0.2, 0.8], cv=2,
                             alphas=[0.1, 0.01], scoring=scoring, random_state=0)  # fmt: skip
    whole.fit(scale(X), y)
    assert set(calls) == {0.2, 0.8}
    for count in (3, len(calls)):  # in the search of the first, and of the last
        end[0] = count
        model = fit()
        assert model.l1_ratio_ == calls[-1]
        assert model.alpha_ in (0.1, 0.01)
        assert np.isfinite(model.duality_gap_)
        assert model.predict(scale(X)).shape == y.shape


def test_lists_of_l1_ratio_that_are_refused():
    X, y = np.eye(6), [0, 1] * 3
    with pytest.raises(ValueError, match="list of l1_ratio is for penalty='elasticnet'"):
        APCGClassifierCV(l1_ratio=[0.5]).fit(X, y)
    for ratios in ([], [0.5, 1.5], [-0.1]):
        with pytest.raises(ValueError, match=r"l1_ratio must be numbers in \[0, 1\]"):
            APCGClassifierCV(penalty="elasticnet", l1_ratio=ratios).fit(X, y)


def test_n_jobs_of_a_regressor():
    X, y = diabetes()
    one, two = (APCGRegressor(n_jobs=n, random_state=0).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    with pytest.raises(ValueError, match="n_jobs must be None, a number of threads"):
        APCGRegressor(n_jobs="two").fit(X, y)


# ---- what a warning advises --------------------------------------------------------------------


def test_a_warning_names_auto_if_another_method_was_asked_for():
    X, y = load_breast_cancer(return_X_y=True)
    for method in ("apcg", "auto"):
        model = APCGClassifier("logistic", method=method, max_epochs=1, tol=1e-14, random_state=0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(scale(X), y)
        (said,) = [str(w.message) for w in told if w.category is ConvergenceWarning]
        assert ('Take method="auto", which chooses' in said) == (method == "apcg")
        assert "Raise max_epochs" in said
