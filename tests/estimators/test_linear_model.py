"""`apcg.linear_model` against scikit-learn: the same optimum, shapes, types; certificates."""

import warnings
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn_objectives import huber, logistic, net, ridge, svc, svr

from apcg import linear_model
from apcg.linear_model import _sklearn as private
from apcg.linear_model import huber as huber_module
from apcg.linear_model.answers import options_of

LONG = {"tol": 1e-9, "max_iter": 100_000}


def theirs(model):
    """scikit-learn's model with the same parameters."""
    name = type(model).__name__
    home = sklearn.svm if name in sklearn.svm.__all__ else sklearn.linear_model
    return getattr(home, name)(**model.get_params())


def data(name):
    """X, y and weights of a small real data set."""
    if name in ("iris", "cancer"):
        X, y = (load_iris if name == "iris" else load_breast_cancer)(return_X_y=True)
        X = scale(X)
    else:
        X, y = load_diabetes(return_X_y=True)
        X, y = X * 20, y / 100
        if name == "targets":
            y = np.column_stack([y, y**2, np.sin(3 * y)])
    return X, y, np.random.default_rng(0).uniform(0.2, 2.0, len(X))


L = linear_model
CASES = {
    "two classes": (L.LogisticRegression(C=0.3), "cancer", logistic),
    "softmax": (L.LogisticRegression(C=2.0), "iris", logistic),
    "no intercept": (L.LogisticRegression(fit_intercept=False), "iris", logistic),
    "logistic l1": (L.LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga"), "cancer", logistic),
    "softmax l1": (L.LogisticRegression(C=0.5, l1_ratio=1.0, solver="saga"), "iris", logistic),
    "logistic net": (L.LogisticRegression(l1_ratio=0.3, solver="saga"), "cancer", logistic),
    "liblinear": (L.LogisticRegression(solver="liblinear"), "cancer", logistic),
    "liblinear l1": (
        L.LogisticRegression(solver="liblinear", l1_ratio=1, C=0.2, intercept_scaling=3.0),
        "cancer",
        logistic,
    ),
    "svc": (L.LinearSVC(C=0.2), "cancer", svc),
    "svc, three classes": (L.LinearSVC(intercept_scaling=2.0), "iris", svc),
    "svc hinge": (L.LinearSVC(loss="hinge", C=0.1), "cancer", svc),
    "svc l1": (L.LinearSVC(penalty="l1", dual=False, C=0.3), "iris", svc),
    "svr": (L.LinearSVR(epsilon=0.2), "diabetes", svr),
    "svr squared": (L.LinearSVR(loss="squared_epsilon_insensitive"), "diabetes", svr),
    "ridge": (L.Ridge(), "diabetes", ridge),
    "ridge, targets": (L.Ridge(alpha=3.0), "targets", ridge),
    "ridge, alphas": (L.Ridge(alpha=np.array([0.1, 1.0, 10.0])), "targets", ridge),
    "ridge, signs": (L.Ridge(positive=True), "diabetes", ridge),
    "lasso": (L.Lasso(alpha=0.01), "diabetes", net),
    "lasso, targets": (L.Lasso(alpha=0.02), "targets", net),
    "lasso, signs": (L.Lasso(alpha=0.01, positive=True), "diabetes", net),
    "elastic net": (L.ElasticNet(alpha=0.02, l1_ratio=0.7), "diabetes", net),
    "net, no intercept": (L.ElasticNet(alpha=0.02, fit_intercept=False), "diabetes", net),
    "multi-task lasso": (L.MultiTaskLasso(alpha=0.05), "targets", net),
    "multi-task ridge": (L.MultiTaskElasticNet(alpha=0.05, l1_ratio=0), "targets", net),
    "huber": (L.HuberRegressor(alpha=0.1), "diabetes", huber),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_scikit_learns(case, sparse):
    model, name, objective = CASES[case]
    X, y, s = data(name)
    samples = sp.csr_matrix(X) if sparse else X
    best = theirs(model).set_params(**LONG)
    if getattr(best, "solver", "") == "saga":
        best.set_params(max_iter=2000)  # its last digits take minutes
    ours = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # scikit-learn's, at this tolerance
        warnings.filterwarnings("ignore", "Coordinate descent with l1_reg=0")
        takes = "sample_weight" in signature(best.fit).parameters
        weights = {"sample_weight": s} if takes else {}
        best.fit(X, y, **weights)
    ours.fit(samples, y, **weights)
    s = s if weights else np.ones(len(X))
    found, wanted = (objective(m, X, y, s) for m in (ours, best))
    gap = np.sum(ours.duality_gap_)
    assert found <= wanted * (1 + 2e-6)
    assert wanted >= found - gap - 1e-12 * abs(found)  # what the certificate says
    assert found <= wanted + gap + 1e-9 * abs(found)
    for attribute in ("coef_", "intercept_"):
        a, b = getattr(ours, attribute), getattr(best, attribute)
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, atol=3e-3 * np.max(np.abs(best.coef_)))


@pytest.mark.parametrize("case", ["softmax", "svc", "ridge", "lasso, targets", "multi-task lasso"])
def test_float32_stays_float32_where_scikit_learn_keeps_it(case):
    model, name, _ = CASES[case]
    X, y, _ = data(name)
    ours, best = clone(model), theirs(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best.fit(X.astype(np.float32), y)
    ours.fit(X.astype(np.float32), y)
    for attribute in ("coef_", "intercept_"):
        a, b = np.asarray(getattr(ours, attribute)), np.asarray(getattr(best, attribute))
        assert a.dtype == b.dtype
        assert a.shape == b.shape


def test_tol_is_translated():
    """A coefficient is as good as the root of the gap."""
    wanted = [options_of(tol, None)["tol"] for tol in (1.0, 1e-4, 1e-6, 1e-12, 0.0)]
    np.testing.assert_allclose(wanted, [1e-4, 1e-6, 1e-10, 1e-15, 1e-15])
    X, y, _ = data("cancer")
    for tol in (1e-2, 1e-4, 1e-6):
        model = L.LogisticRegression(tol=tol).fit(X, y)
        asked = options_of(tol, None)["tol"]
        assert model.duality_gap_ <= asked * logistic(model, X, y, np.ones(len(X)))


def test_one_answer_without_a_seed():
    X, y, _ = data("iris")
    for model in (L.LogisticRegression(), L.LinearSVC(), L.LinearSVC(multi_class="crammer_singer")):
        first = clone(model).fit(X, y).coef_
        np.testing.assert_array_equal(first, clone(model).fit(X, y).coef_)


def test_class_weights():
    X, y, s = data("iris")
    for weight in ("balanced", {0: 1.0, 1: 3.0, 2: 0.2}):
        for model in (L.LogisticRegression(), L.RidgeClassifier(), L.LinearSVC()):
            ours = clone(model).set_params(class_weight=weight, tol=1e-8)
            best = theirs(ours).set_params(tol=1e-10, max_iter=10_000)
            for m in (ours, best):
                m.fit(X, y, sample_weight=s)
            np.testing.assert_allclose(ours.coef_, best.coef_, atol=1e-4)


def test_a_class_of_weight_zero_is_never_predicted():
    X, y, _ = data("iris")
    model = L.LogisticRegression(class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(X, y)
    two = L.LogisticRegression().fit(X[y < 2], y[y < 2])
    assert set(model.predict(X)) == {0, 1}
    assert model.predict_proba(X)[:, 2].max() < 1e-9
    assert np.all(model.coef_[2] == 0)
    # the softmax over two classes: w_1 - w_0 has half the penalty of one w
    half = L.LogisticRegression(C=2.0).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], half.coef_[0], atol=1e-3)
    assert two.coef_.shape == (1, 4)


def test_folds_without_a_class():
    X, y, _ = data("iris")
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(3)]
    model = L.LogisticRegressionCV(
        Cs=[0.1, 1.0], cv=folds, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
    ).fit(X, y)
    assert np.all(model.scores_ == 0)  # a class that was not seen
    one = [(np.flatnonzero(y == 0), np.arange(150))]
    model.set_params(cv=one).fit(X, y)
    np.testing.assert_allclose(model.scores_, 1 / 3)
    model.set_params(cv=[(np.flatnonzero(y == 0), np.arange(100))]).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(model.scores_, 1 / 2)


def test_the_intercept_of_liblinear_has_a_penalty():
    X, y, _ = data("cancer")
    near = L.LinearSVC(C=0.01).fit(X + 1, y).intercept_
    far = L.LinearSVC(C=0.01, intercept_scaling=100.0).fit(X + 1, y).intercept_
    assert abs(far[0]) > 1.5 * abs(near[0])


def test_warm_starts():
    X, y, _ = data("diabetes")
    model = L.Lasso(alpha=0.01, warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_ == 0
    other = model.set_params(alpha=0.005).fit(X, y).coef_
    cold = L.Lasso(alpha=0.005).fit(X, y).coef_
    np.testing.assert_allclose(other, cold, atol=1e-4)
    with pytest.raises(ValueError, match="warm_start=True goes on from coef_ of shape"):
        model.fit(X[:, :3], y)
    X, y, _ = data("iris")
    model = L.LogisticRegression(warm_start=True).fit(X, y)
    before = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < before
    with pytest.raises(ValueError, match=r"Initialization coef is of shape \(3, 5\)"):
        model.fit(X[:, :2], y)


def test_no_pass_at_all():
    X, y, _ = data("iris")
    for model in (L.LogisticRegression(max_iter=0), L.LinearSVC(max_iter=0)):
        with pytest.warns(ConvergenceWarning, match="failed to converge"):
            model.fit(X, y)
        assert not model.coef_.any()
        assert not np.any(model.intercept_)
        assert np.all(model.duality_gap_ > 0.1)


def test_a_warning_says_how_far_it_got():
    X, y, _ = data("cancer")
    with pytest.warns(ConvergenceWarning, match=r"lbfgs failed to converge .* Duality gap: "):
        L.LogisticRegression(C=1e4, max_iter=1).fit(X, y)
    X, y, _ = data("diabetes")
    words = r"Objective did not converge\. You might want to increase the number of iterations"
    with pytest.warns(ConvergenceWarning, match=words):
        L.Lasso(alpha=1e-6, max_iter=1, tol=1e-12).fit(X * 10.0 ** np.arange(10), y)


def test_what_scikit_learn_solved_says_so():
    X, _, _ = data("diabetes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = L.HuberRegressor().fit(X, np.ones(len(X)))  # no residuals at all, no scale
    assert model.status_.code == "scikit-learn"
    assert np.isnan(model.duality_gap_)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 10.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_huber_at_other_penalties(alpha, intercept, monkeypatch):
    X, y, s = data("diabetes")
    made = {"alpha": alpha, "fit_intercept": intercept}
    theirs = sklearn.linear_model.HuberRegressor(**made, tol=1e-12, max_iter=10_000)
    wanted = huber(theirs.fit(X, y, s), X, y, s)
    ours = L.HuberRegressor(**made).fit(sp.csr_matrix(X), y, s)
    assert huber(ours, X, y, s) == pytest.approx(wanted, rel=1e-9)
    assert ours.duality_gap_ <= 1e-6 * wanted  # alpha=0: that of a wide box
    # the same by conjugate gradients
    monkeypatch.setattr(huber_module, "FACTORED", 5)
    again = L.HuberRegressor(**made).fit(X, y, s)
    assert huber(again, X, y, s) == pytest.approx(wanted, rel=1e-9)
    # from there no step is left
    again = L.HuberRegressor(**made, warm_start=True, tol=1e-4).fit(X, y, s).fit(X, y, s)
    assert again.n_iter_ <= 1


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", ["wide", "epsilon"])
def test_huber_where_the_scale_goes_to_zero(case, intercept):
    """There it is least absolute deviations, and the dual point of the joint problem proves it."""
    rng = np.random.default_rng(0)
    n, d, epsilon = {"wide": (40, 200, 1.35), "epsilon": (60, 3, 1.0)}[case]
    X = rng.standard_normal((n, d))
    y = X[:, 0] + 3 * intercept + rng.standard_normal(n)
    model = L.HuberRegressor(fit_intercept=intercept, epsilon=epsilon, alpha=1e-3).fit(X, y)
    least = huber(model, X, y, np.ones(n))
    assert model.scale_ <= 1e-6
    assert model.status_.code in ("converged", "precision")
    assert 0 <= model.duality_gap_ <= 1e-6 * least
    theirs = sklearn.linear_model.HuberRegressor(
        fit_intercept=intercept, epsilon=epsilon, alpha=1e-3, max_iter=10_000
    )
    assert least <= huber(theirs.fit(X, y), X, y, np.ones(n)) * (1 + 1e-6)


def test_huber_with_little_noise():
    """The scale falls step by step where most of y is fitted: else steps are short, and many."""
    rng = np.random.default_rng(0)
    X = sp.random(400, 300, 0.01, random_state=0, format="csr")
    y = X[:, :50] @ rng.standard_normal(50) + 0.1 * rng.standard_t(1.5, 400)
    model = L.HuberRegressor(alpha=1.0).fit(X, y)
    assert model.status_.code == "converged"
    assert 1e-9 < model.scale_ < 0.01 * np.abs(y).max()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
def test_leave_one_out_is_that_of_as_many_fits(shape, sparse):
    rng = np.random.default_rng(1)
    X = np.where(rng.random(shape) < 0.4, 0.0, rng.standard_normal(shape) + 1)
    Y = X[:, :2] + rng.standard_normal((shape[0], 2))
    s = rng.uniform(0.2, 2.0, len(X))
    A = sp.csr_matrix(X) if sparse else X
    alphas = [0.1, 1.0, 10.0]
    wanted = np.empty((*Y.shape, len(alphas)))
    for k, alpha in enumerate(alphas):
        for i in range(len(X)):
            rest = np.arange(len(X)) != i
            one = sklearn.linear_model.Ridge(alpha).fit(X[rest], Y[rest], s[rest])
            wanted[i, :, k] = s[i] * (Y[i] - one.predict(X[[i]])[0]) ** 2
    for each in (False, True):
        ours = L.RidgeCV(alphas, alpha_per_target=each, store_cv_results=True)
        ours.fit(A, Y, sample_weight=s)
        np.testing.assert_allclose(ours.cv_results_, wanted, rtol=1e-8)
        axis = 0 if each else (0, 1)
        best = np.array(alphas)[wanted.mean(axis=axis).argmin(axis=-1)]
        np.testing.assert_array_equal(ours.alpha_, best)
        final = sklearn.linear_model.Ridge(best).fit(X, Y, s)
        np.testing.assert_allclose(ours.coef_, final.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.intercept_, final.intercept_, rtol=1e-9)
        told = ours.status_ if isinstance(ours.status_, list) else [ours.status_]
        assert {r.code for r in told} <= {"converged", "precision"}
        assert np.all(ours.duality_gap_ <= 1e-14 * np.mean(Y**2))


def test_what_scikit_learn_refuses_is_refused():
    X, y, _ = data("cancer")
    for model, words in (
        (L.LinearSVC(penalty="l1", loss="hinge"), "Unsupported set of arguments"),
        (L.LogisticRegression(l1_ratio=1.0), "Solver lbfgs supports only 'l2'"),
        (L.LogisticRegression(C=-1.0), "The 'C' parameter of LogisticRegression must be"),
        (L.Ridge(solver="lbfgs"), "can be used only when positive=True"),
        (L.Ridge(solver="svd", positive=True), "does not support positive fitting"),
        (L.Ridge(alpha=np.array([1.0, 2.0])), "Number of targets and number of penalties"),
        (L.MultiTaskLasso(), "For mono-task outputs, use"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)


def test_paths():
    X, y, _ = data("diabetes")
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, coefs, gaps, passes = L.lasso_path(X, y, alphas=[0.1, 0.01, 1.0], return_n_iter=True)
    np.testing.assert_array_equal(alphas, [1.0, 0.1, 0.01])
    wanted = sklearn.linear_model.lasso_path(X, y, alphas=alphas, tol=1e-10)[1]
    np.testing.assert_allclose(coefs, wanted, atol=1e-5)
    assert gaps.max() <= 1e-9 * np.mean(y**2)
    assert len(passes) == 3
    Y = np.column_stack([y, y**2])
    alphas, coefs, _ = L.enet_path(X, Y, l1_ratio=0.5, eps=1e-2)
    theirs_alphas, wanted, _ = sklearn.linear_model.enet_path(
        X, Y, l1_ratio=0.5, eps=1e-2, tol=1e-8
    )
    np.testing.assert_allclose(alphas, theirs_alphas)
    np.testing.assert_allclose(coefs, wanted, atol=1e-3)
    with pytest.raises(ValueError, match="Unexpected parameters"):
        L.enet_path(X, y, wrong=1)


def test_searches_choose_as_scikit_learn_does():
    X, y, s = data("diabetes")
    for ours in (L.LassoCV(), L.ElasticNetCV(l1_ratio=[0.5, 0.9]), L.RidgeCV(cv=4)):
        best = theirs(ours).fit(X, y, sample_weight=s)
        ours.fit(X, y, sample_weight=s)
        assert ours.alpha_ == pytest.approx(best.alpha_)
        assert ours.status_.code == "converged"
        np.testing.assert_allclose(ours.coef_, best.coef_, atol=2e-3)
    X, y, _ = data("iris")
    ours = L.LogisticRegressionCV(
        l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False, n_jobs=2, tol=1e-6
    )
    best = theirs(ours).set_params(solver="newton-cholesky").fit(X, y)
    ours.fit(X, y)
    assert best.C_ == ours.C_
    np.testing.assert_allclose(ours.scores_, best.scores_, atol=1e-3)
    assert ours.status_.code == "converged"


def test_a_version_that_has_other_names_is_told():
    def function():
        return there()  # noqa: F821

    assert private.rebound(function, there=lambda: 3)() == 3
    with pytest.raises(ImportError, match=r"does not use elsewhere.*1\.6 to 1\.9"):
        private.rebound(function, elsewhere=1)
    with pytest.raises(ImportError, match="has no such name"):
        private._private(np, "_no_such_name")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_an_elastic_net_on_groups_is_ours(sparse):
    X, _, _ = data("diabetes")
    Y = X[:, :3] @ np.diag([1.0, 2.0, 3.0]) + X[:, [5, 6, 7]] ** 2
    A = sp.csr_matrix(X) if sparse else X
    for alpha in (1e-2, 1e-4):
        ours = L.MultiTaskElasticNet(alpha, l1_ratio=0.7).fit(A, Y)
        known = theirs(L.MultiTaskElasticNet(alpha, l1_ratio=0.7, tol=1e-14, max_iter=100_000))
        assert ours.status_.code == "converged"
        np.testing.assert_allclose(ours.coef_, known.fit(X, Y).coef_, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_a_path_at_a_tolerance_of_rounding(l1_ratio):
    X, y, _ = data("diabetes")
    largest = np.abs(X.T @ (y - y.mean())).max() / len(y) / l1_ratio
    alphas = np.geomspace(largest, 1e-3 * largest, 30)  # scikit-learn 1.8 takes no number of them
    _, coefs, gaps = L.enet_path(X, y - y.mean(), l1_ratio=l1_ratio, alphas=alphas, tol=1e-14)
    values = [0.5 * np.mean((y - y.mean() - X @ w) ** 2) for w in coefs.T]
    assert np.all(gaps <= 1e-13 * np.array(values))
    # the slopes of the loss are alpha l1_ratio on the support, but for the L2 part
    w = coefs[:, -1]
    slope = X.T @ (y - y.mean() - X @ w) / len(y) - alphas[-1] * (1 - l1_ratio) * w
    on = w != 0
    np.testing.assert_allclose(slope[on], alphas[-1] * l1_ratio * np.sign(w[on]), rtol=1e-9)


def test_a_gap_below_rounding_is_told_as_rounding():
    X = np.array([[0.0], [1.0], [2.0]])
    for model in (L.Lasso(alpha=10.0), L.MultiTaskElasticNet(alpha=1, tol=1e-8)):
        Y = np.hstack([X, X]) if "Multi" in type(model).__name__ else X.ravel()
        assert 0 < model.fit(np.hstack([X, X]), Y).dual_gap_ < 1e-5


def test_a_path_down_to_no_penalty():
    X, y, _ = data("diabetes")
    _, coefs, _ = L.lasso_path(X, y - y.mean(), alphas=[1.0, 0.0])
    np.testing.assert_allclose(coefs[:, 1], np.linalg.lstsq(X, y - y.mean())[0], rtol=1e-8)


def test_numbers_that_overflow_are_refused_with_a_cure():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y, heavy = X[:, 0] + 0.1 * rng.standard_normal(30), np.full(30, 1e308)
    for name in ("Lasso", "HuberRegressor", "QuantileRegressor", "Ridge"):
        with pytest.raises(ValueError, match="divide the weights"):
            getattr(linear_model, name)().fit(X, y, sample_weight=heavy)
    for name in ("LinearSVC", "LogisticRegression"):
        with pytest.raises(ValueError, match="divide the weights"):
            getattr(linear_model, name)().fit(X, y > 0, sample_weight=heavy)
    with pytest.raises(ValueError, match="scale y"):
        linear_model.HuberRegressor().fit(X, 1e250 * y)


def test_huge_numbers_end_with_the_warning_that_says_how_far_it_got():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(30)
    with pytest.warns(ConvergenceWarning, match="Duality gap"):
        linear_model.LinearSVC().fit(np.full((30, 4), 2**63, np.uint64), y > 0)
    model = linear_model.QuantileRegressor().fit(rng.standard_normal((30, 4)), 1e250 * y)
    assert model.status_.code == "converged"
