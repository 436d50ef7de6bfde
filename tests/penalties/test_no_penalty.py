"""Problems without a penalty, or with features that have none: alpha=0, C=inf, weights of zero."""

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from scipy.optimize import minimize

from apcg import ERM, losses, penalties, solve
from apcg import linear_model as L
from apcg.certify.points import Start

REGRESSION = ("squared", "huber", "squared_epsilon_insensitive", "epsilon_insensitive", "pinball")
MARGINS = ("logistic", "hinge", "smoothed_hinge", "squared_hinge")
intercepts = pytest.mark.parametrize("intercept", [False, True])


def data(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d)
    z = (X / X.std(axis=0)) @ rng.normal(size=d)
    return X, z + rng.normal(size=n), np.sign(z + 3 * rng.normal(size=n))


def labels(loss, y, c):
    return c if loss in MARGINS else y


@intercepts
@pytest.mark.parametrize("loss", REGRESSION + MARGINS)
def test_no_point_of_the_box_is_better(loss, intercept):
    X, y, c = data()
    problem = ERM(X, labels(loss, y, c), loss, "l2", 0.0, intercept=intercept)
    r = solve(problem, tol=1e-8)
    assert r.converged or r.status.code == "precision"
    assert 0 <= r.gap <= 1e-8 * r.primal
    assert np.all(np.abs(r.w) < problem.box)  # the box does not bind
    rng = np.random.default_rng(1)
    for size in (1e-6, 1e-3, 1.0):  # P is convex: what is no better nearby is no better far away
        for _ in range(20):
            w = r.w + size * rng.normal(size=r.w.size) / X.std(axis=0)
            b = problem.best_intercept(X @ w) if intercept else 0.0
            assert problem.primal(w, b) >= r.primal - r.gap


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_a_loss_of_lines_against_a_linear_program(loss):
    X, y, c = data(60, 4)
    y = labels(loss, y, c)
    r = solve(ERM(X, y, loss, None), tol=1e-9)
    problem = ERM(X, y, loss, None)
    size = 1 / X.std(axis=0)
    best = min(
        minimize(lambda u: problem.primal(u * size), r.w / size, method="Powell").fun
        for _ in range(2)
    )
    assert r.primal <= best + 1e-9


@pytest.mark.parametrize("shape", [(80, 5), (20, 50), (60, 12)])
@pytest.mark.parametrize("sparse", [False, True])
@intercepts
def test_ridge_at_zero_is_the_solution_of_least_norm(shape, sparse, intercept):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0]) + 3.0
    if shape[1] == 12:  # of rank 6
        X[:, 6:] = X[:, :6] @ rng.normal(size=(6, 6))
    mean = X.mean(axis=0) if intercept else 0.0
    offset = y.mean() if intercept else 0.0
    w = np.linalg.lstsq(X - mean, y - offset, rcond=None)[0]
    model = L.Ridge(alpha=0, fit_intercept=intercept)
    model.fit(sp.csr_array(X) if sparse else X, y)
    np.testing.assert_allclose(model.coef_, w, atol=1e-9 * np.abs(w).max())
    assert model.status_.code in ("converged", "precision")


def test_products_find_the_solution_of_least_norm_too(monkeypatch):
    from apcg.methods.reductions import least_squares

    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(15, 30)), rng.normal(size=(15, 2))
    monkeypatch.setattr(least_squares, "MOST", 0.0)
    r = solve(ERM(X, y, "squared", None, intercept=True))
    w = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(axis=0), rcond=None)[0]
    np.testing.assert_allclose(r.w, w, atol=1e-9)


def test_an_alpha_for_each_target_may_be_zero():
    X, y, _ = data()
    Y = np.column_stack([y, y**2])
    both = L.Ridge(alpha=np.array([0.0, 2.0])).fit(X, Y)
    for k, alpha in enumerate((0.0, 2.0)):
        one = L.Ridge(alpha=alpha).fit(X, Y[:, k])
        np.testing.assert_allclose(both.coef_[k], one.coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Setting penalty=None")  # scikit-learn 1.8 says it of C=inf
def test_against_statsmodels():
    X, _, c = data()
    model = L.LogisticRegression(C=np.inf, tol=1e-8).fit(X, c)
    scale = X.std(axis=0)
    fit = sm.Logit(c > 0, sm.add_constant(X / scale)).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(model.coef_[0] * scale, fit.params[1:], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, fit.params[:1], rtol=1e-5)


def test_softmax_has_no_gradient_left():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(150, 4)), rng.integers(0, 3, 150)
    r = solve(ERM(X, y, "multinomial", None, intercept=True), tol=1e-8)
    assert r.converged
    p = np.exp(X @ r.w + r.intercept)
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(150), y] -= 1
    np.testing.assert_allclose(X.T @ p / 150, 0, atol=1e-9)
    np.testing.assert_allclose(p.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("shape", [(100, 4), (20, 40)])
def test_separable_data_have_no_minimum(loss, shape):
    rng = np.random.default_rng(5)
    X = rng.normal(size=shape)
    y = np.argmax(X[:, :3], axis=1) if loss == "multinomial" else np.sign(X @ np.ones(shape[1]))
    r = solve(ERM(X, y, loss, None))
    assert r.status.code == "no_minimum"
    assert "separates" in r.status
    z = X @ r.w
    right = z.argmax(axis=1) == y if loss == "multinomial" else y * z > 0
    assert right.all()


@pytest.mark.parametrize("most", [3, 40, 1000])
def test_a_run_that_ends_at_a_w_that_separates_says_so(most):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 20))
    y = np.digitize(X @ rng.normal(size=20), [-1, 1])
    for labels, loss in ((y, "multinomial"), (np.where(y > 1, 1.0, -1.0), "logistic")):
        problem = ERM(X, labels, loss, None, intercept=True)
        r = solve(problem, tol=1e-10, max_epochs=most)
        z = X @ r.w + r.intercept
        right = z.argmax(axis=1) == y if loss == "multinomial" else labels * z > 0
        assert (r.status.code == "no_minimum") == right.all()
        assert r.epochs <= max(most, 60)


def test_data_that_are_not_separable_have_one():
    X, _, c = data()
    assert solve(ERM(X, c, "logistic", None)).converged


@pytest.mark.parametrize("penalty", [penalties.L2, penalties.L1])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_features_with_a_weight_of_zero(penalty, loss):
    X, y, c = data()
    X = X / X.std(axis=0)
    weights = np.ones(X.shape[1])
    weights[:3] = 0.0
    problem = ERM(X, labels(loss, y, c), loss, penalty(weights), 0.1, intercept=True)
    r = solve(problem, tol=1e-9)
    assert r.converged
    gradient = problem.combine(problem.dual_point(X @ r.w + r.intercept)[0])
    np.testing.assert_allclose(gradient[:3], 0, atol=1e-4)  # times alpha: the slope of the loss
    assert np.isinf(problem.box[3:]).all()
    assert np.isfinite(problem.box[:3]).all()
    # next to no weight has next to the same answer
    near = ERM(X, labels(loss, y, c), loss, penalty(np.maximum(weights, 1e-7)), 0.1, intercept=True)
    assert abs(solve(near, tol=1e-9).primal - r.primal) <= 1e-5


def test_bounds_without_a_penalty():
    X, y, _ = data()
    r = solve(ERM(X, y, "squared", None, positive=True), tol=1e-9)
    from scipy.optimize import nnls

    w, _ = nnls(X, y)
    assert r.converged
    np.testing.assert_allclose(X @ r.w, X @ w, atol=1e-3)


def test_other_labels_have_another_box():
    X, y, _ = data()
    first = ERM(X, y, "squared", None)
    second = first.with_labels(1e6 * y)
    np.testing.assert_allclose(second.box, 1e6 * first.box)
    np.testing.assert_allclose(solve(second).w, 1e6 * solve(first).w, rtol=1e-9)


def test_alpha_of_a_problem_without_a_penalty():
    X, y, _ = data()
    problem = ERM(X, y, "squared", "l2", 1.0)
    none = problem.with_alpha(0.0)
    assert none.penalty == "none"
    assert none.with_alpha(0.0) is none
    np.testing.assert_allclose(solve(none).w, solve(ERM(X, y, "squared", None)).w)
    with pytest.raises(ValueError, match="no penalty for alpha"):
        none.with_alpha(1.0)
    with pytest.raises(ValueError, match="take penalty=None"):
        ERM(X, np.column_stack([y, y]), "squared", "group", 0.0)


def test_nets_at_zero():
    X, y, _ = data()
    w = L.Ridge(alpha=0).fit(X, y).coef_
    for model in (L.Lasso(alpha=0), L.ElasticNet(alpha=0)):
        np.testing.assert_allclose(model.fit(X, y).coef_, w, rtol=1e-8)
    both = L.MultiTaskLasso(alpha=0).fit(X, np.column_stack([y, -y]))
    np.testing.assert_allclose(both.coef_, [w, -w], rtol=1e-8)


def test_a_start_by_x_alone_where_no_w_belongs_to_it():
    """Of K outputs: a feature without a penalty has no w of an x."""
    rng = np.random.default_rng(0)
    p = ERM(rng.standard_normal((9, 2)), rng.standard_normal((9, 3)), "huber",
            penalties.L2([0.0, 1.0]))  # fmt: skip
    x = p.into_domain(rng.standard_normal((9, 3)))
    assert solve(p, x0=Start(x=x)).converged


@pytest.mark.parametrize("penalty", ["none", penalties.L2(np.array([1.0, 0, 1, 1, 1, 1]))])
def test_a_loss_of_your_own_with_kinks_is_refused_with_the_problem(penalty):
    """Interior points without a penalty are for losses that apcg names; with L1 they take it."""

    class Own(losses.Loss):
        name, domain, gamma, margin = "own", (-1.0, 2.0), 0.0, False
        theta = (0.0, 0.1, 0.0, -1.0, 2.0)

    X, y, _ = data()
    with pytest.raises(ValueError, match="a loss of your own"):
        ERM(X, y, Own(), penalty, 1.0)
    assert solve(ERM(X, y, Own(), "l1", 0.1), tol=1e-6).converged
