"""`solve`: certificates, agreement with independent solvers, stopping."""

import math
import pickle
import signal

import numpy as np
import pytest
import sklearn.linear_model as sk
import sklearn.svm
from erm_problems import LOSSES, SMOOTH, data, problem, text_like

from apcg import ERM, solve

METHODS = ("apcg", "sdca", "afg", "auto")


def possible(loss, penalty, method):
    if loss in SMOOTH:
        return True
    return penalty != "l1" and method != "afg"


CASES = [
    (loss, penalty, method)
    for loss in LOSSES
    for penalty in ("l2", "elasticnet", "l1")
    for method in METHODS
    if possible(loss, penalty, method)
]


@pytest.mark.parametrize(("loss", "penalty", "method"), CASES)
@pytest.mark.parametrize("positive", [False, True])
def test_every_answer_is_certified(loss, penalty, method, positive):
    p = problem(loss, penalty, 0.02, weighted=True, positive=positive)
    # without strong convexity the accelerated methods have the rate 1/k^2
    linear = p.loss.gamma and (penalty != "l1" or method in ("sdca", "auto"))
    tol = 1e-8 if linear else 1e-4
    r = solve(p, method, tol=tol, max_epochs=20_000, random_state=0)
    assert r.converged, r.status
    assert r.gap <= tol * r.primal
    # the certificate is of w and x themselves, not of what was accumulated on the way
    assert r.primal == pytest.approx(p.primal(r.w), rel=1e-12)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-12, abs=1e-14)
    assert np.all(r.trace["gap"] >= -1e-14 * np.abs(r.trace["primal"]))
    if positive:
        assert r.w.min() >= 0
    if r.side == "dual":
        np.testing.assert_array_equal(r.w, p.omega(r.x))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "l1"])
def test_the_methods_agree(loss, penalty):
    p = problem(loss, penalty, 0.02)
    tol = 1e-6 if penalty == "l1" else 1e-10
    best = [solve(p, m, tol=tol, max_epochs=20_000, random_state=1) for m in METHODS]
    for r in best:
        assert r.primal == pytest.approx(best[0].primal, rel=2 * tol)
        assert r.primal >= max(s.dual for s in best) - 1e-15


def objective_within(p, w, rel):
    method = "apcg" if p.dual_form and p.loss.gamma else "sdca"
    r = solve(p, method, tol=rel / 10, max_epochs=200_000, random_state=0)
    assert r.converged, r.status
    # both ways: ours is not worse than theirs, and theirs is not better than our certificate
    assert r.primal <= p.primal(w) * (1 + rel)
    assert p.primal(w) <= r.primal * (1 + rel)


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_against_scikit_learn(alpha):
    n = 60
    X, y = data("squared", n=n, d=20, sparse=False)
    ridge = sk.Ridge(alpha=alpha * n, fit_intercept=False, tol=1e-12).fit(X, y)
    objective_within(ERM(X, y, "squared", "l2", alpha), ridge.coef_, 1e-9)
    tight = {"fit_intercept": False, "tol": 1e-14, "max_iter": 1_000_000}
    lasso = sk.Lasso(alpha=alpha, **tight).fit(X, y)
    objective_within(ERM(X, y, "squared", "l1", alpha), lasso.coef_, 1e-9)
    enet = sk.ElasticNet(alpha=alpha, l1_ratio=0.3, **tight).fit(X, y)
    objective_within(ERM(X, y, "squared", "elasticnet", alpha, l1_ratio=0.3), enet.coef_, 1e-9)
    positive = sk.ElasticNet(alpha=alpha, l1_ratio=0.3, positive=True, **tight).fit(X, y)
    p = ERM(X, y, "squared", "elasticnet", alpha, l1_ratio=0.3, positive=True)
    objective_within(p, positive.coef_, 1e-9)
    weights = np.random.default_rng(0).uniform(0.5, 2, n)
    weights *= n / weights.sum()
    ridge = sk.Ridge(alpha=alpha * n, fit_intercept=False, tol=1e-12).fit(X, y, weights)
    objective_within(ERM(X, y, "squared", "l2", alpha, sample_weight=weights), ridge.coef_, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_against_liblinear(alpha):
    n = 60
    X, y = data("logistic", n=n, d=20, seed=2, sparse=False)
    C = 1 / (alpha * n)
    tight = {"fit_intercept": False, "tol": 1e-12, "max_iter": 1_000_000}
    lr = sk.LogisticRegression(C=C, solver="newton-cholesky", **tight).fit(X, y)
    objective_within(ERM(X, y, "logistic", "l2", alpha), lr.coef_[0], 1e-8)
    l1 = sk.LogisticRegression(C=C, l1_ratio=1.0, solver="saga", random_state=0, **tight)
    l1.fit(X, y)
    objective_within(ERM(X, y, "logistic", "l1", alpha), l1.coef_[0], 1e-6)
    tight["tol"] = 1e-9  # liblinear's dual solvers do not always get further
    for loss in ("hinge", "squared_hinge"):
        svc = sklearn.svm.LinearSVC(loss=loss, C=C, dual=True, random_state=0, **tight).fit(X, y)
        objective_within(ERM(X, y, loss, "l2", alpha), svc.coef_[0], 1e-6)
    l1 = sklearn.svm.LinearSVC(penalty="l1", C=C, dual=False, random_state=0, **tight).fit(X, y)
    objective_within(ERM(X, y, "squared_hinge", "l1", alpha), l1.coef_[0], 1e-6)
    z = X @ np.random.default_rng(1).standard_normal(20) + y
    svr = sklearn.svm.LinearSVR(epsilon=0.1, C=C, dual=True, random_state=0, **tight).fit(X, z)
    objective_within(ERM(X, z, "epsilon_insensitive", "l2", alpha), svr.coef_, 1e-6)


def test_wide_data():
    """n << d, as in gene expression."""
    for penalty in ("l2", "l1", "elasticnet"):
        p = problem("logistic", penalty, 1e-2, n=30, d=800, sparse=False)
        assert solve(p, tol=1e-6, max_epochs=20_000, random_state=0).converged


@pytest.mark.parametrize("method", METHODS)
def test_warm_start(method):
    p = problem("logistic", alpha=1e-3)
    cold = solve(p, method, tol=1e-8, max_epochs=10_000, random_state=0)
    start = cold.w if method == "afg" else cold.x
    kept = start.copy()
    for given in (start, cold):
        warm = solve(p, method, tol=1e-8, x0=given, random_state=0)
        # the w of "auto" need not be that of its x alone
        assert warm.epochs <= (1 if method == "auto" and given is start else 0)
        assert warm.converged
    np.testing.assert_array_equal(start, kept)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["logistic", "epsilon_insensitive", "squared"])
@pytest.mark.parametrize("intercept", [False, True])
def test_going_on_never_gives_back_less(penalty, loss, intercept):
    """Also where only a few passes are left, and the way leads through worse points."""
    p = problem(loss, penalty, 1e-4, intercept=intercept)
    last = solve(p, tol=1e-9, max_epochs=200, random_state=0)
    for seed in range(8):
        for passes in (0, 1, 3):
            more = solve(p, tol=1e-14, max_epochs=passes, x0=last, random_state=seed)
            assert more.gap <= last.gap * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("method", METHODS)
def test_going_on_from_an_earlier_solution(method):
    """Whichever of x and w the method starts from; of a neighbouring problem too."""
    p, q = problem("logistic", "l1", 0.02), problem("logistic", "l2", 0.02)
    for problem_ in (p, q):
        cold = solve(problem_, method, tol=1e-5, random_state=0)
        warm = solve(problem_, method, tol=1e-5, x0=cold, random_state=0)
        assert warm.epochs == 0
    near = problem("logistic", "l2", 0.018)
    warm = solve(near, method, tol=1e-5, x0=cold, random_state=0)
    assert warm.trace["gap"][0] < 0.1 * solve(near, method, max_epochs=0).gap


def test_infeasible_start():
    for loss, bad in [("hinge", 1.5), ("logistic", -0.1), ("huber", 2.0), ("squared_hinge", -1.0)]:
        p = problem(loss)
        with pytest.raises(ValueError, match="x0 must be dual feasible"):
            solve(p, x0=np.full(p.n, bad))
    weights = np.ones(40)
    weights[3] = 0
    X, y = data("logistic")
    p = ERM(X, y, "logistic", alpha=0.1, sample_weight=weights)
    with pytest.raises(ValueError, match="x0 must be dual feasible"):
        solve(p, x0=np.full(40, 0.5))
    p = problem("logistic", "l1", positive=True)
    with pytest.raises(ValueError, match="within the bounds"):
        solve(p, x0=np.full(12, -1.0))


@pytest.mark.parametrize("method", METHODS)
def test_as_far_as_double_precision_goes(method):
    p = problem("smoothed_hinge", alpha=1e-2)
    r = solve(p, method, tol=0.0, max_epochs=100_000, random_state=0)
    assert r.status.code in ("precision", "converged")
    assert "double precision" in r.status or r.gap <= 0
    assert abs(r.gap) <= 1e-13 * r.primal
    assert r.epochs < 100_000


def test_the_best_point_is_given_back():
    p = problem("hinge", alpha=1e-4)
    for method in ("apcg", "sdca"):
        r = solve(p, method, max_epochs=60, check_every=1, random_state=0)
        assert r.gap == pytest.approx(r.trace["gap"].min(), rel=1e-9)
        assert r.status.code == "max_epochs"


def test_callback_stops_and_sees_everything():
    p, seen = problem("logistic", alpha=1e-4), []

    def callback(check):
        seen.append((check.epoch, check.gap))
        assert check.gap == pytest.approx(p.primal(check.w) - p.dual(check.x), abs=1e-9)
        return check.epoch >= 6

    r = solve(p, "apcg", tol=0.0, check_every=2, callback=callback, random_state=0)
    assert r.status.code == "callback"
    assert [e for e, _ in seen] == [0, 2, 4, 6]
    assert list(r.trace["epoch"]) == [0, 2, 4, 6]


@pytest.mark.parametrize("method", METHODS)
def test_interrupt(method):
    p = problem("logistic", alpha=1e-6)

    def callback(check):
        if check.epoch >= 4:
            signal.raise_signal(signal.SIGINT)

    r = solve(p, method, tol=0.0, check_every=2, callback=callback, random_state=0)
    assert r.status.code == "interrupted"
    assert "interrupted" in r.status
    assert r.gap < r.trace["gap"][0]
    assert math.isfinite(p.gap(r.x, r.w))


def test_time_limit():
    p = problem("hinge", alpha=1e-7, n=300)
    r = solve(p, "sdca", tol=0.0, max_epochs=10**9, time_limit=0.2, random_state=0)
    assert r.status.code == "time_limit"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_the_seed_decides(method, sampling):
    p = problem("logistic", alpha=1e-4)
    options = {"sampling": sampling, "max_epochs": 7, "tol": 0.0}
    a, b = (solve(p, method, random_state=3, **options) for _ in range(2))
    np.testing.assert_array_equal(a.w, b.w)
    c = solve(p, method, random_state=4, **options)
    assert method == "afg" or np.any(a.w != c.w)


def test_apcg_is_ahead_when_lambda_is_small_and_level_when_it_is_not():
    """The point of the paper, in passes to a relative gap of 1e-6; AFG is behind both."""
    X, y = text_like()

    def passes(alpha, method):
        r = solve(ERM(X, y, "smoothed_hinge", "l2", alpha), method, check_every=1, random_state=0)
        return r.epochs

    assert passes(1e-5, "apcg") <= 0.4 * passes(1e-5, "sdca")
    assert passes(1e-5, "afg") > passes(1e-5, "sdca")
    assert abs(passes(1e-2, "apcg") - passes(1e-2, "sdca")) <= 2
    assert passes(1e-2, "afg") > 2 * passes(1e-2, "apcg")


def test_repr_says_what_matters():
    r = solve(problem("logistic"), random_state=0)
    again = pickle.loads(pickle.dumps(r))
    assert again.gap == r.gap
    assert r != again  # arrays inside: identity, not an error
    (line,) = r.trace.plot().get_lines()
    assert np.isfinite(line.get_ydata()).all()
    assert "gap=" in repr(r)
    assert "converged" in repr(r)
    numbers = ("epoch", "seconds", "primal", "dual", "gap", "mu", "restarts")
    assert r.trace.columns == (*numbers, "method")


def test_the_status_is_that_of_the_answer():
    """What is done after the loop may bring the gap under tol; then it has converged."""
    X, y = text_like(n=200, d=50, noise=0.2)
    p = ERM(X, y, "squared_hinge", "l1", alpha=1e-3, intercept=True)
    for k in range(1, 10):
        options = {"method": "apcg", "max_epochs": k, "check_every": k, "random_state": 0}
        r = solve(p, tol=0.0, **options)
        assert solve(p, tol=1.001 * r.gap / r.primal, **options).converged


def test_a_gap_of_zero_has_converged():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(10, 2))
    y = X @ [1.0, -1.0] + 0.3 * rng.normal(size=10)
    r = solve(ERM(X, y, "huber", alpha=3.0, intercept=True), tol=0.0, random_state=0)
    assert r.converged == (r.gap <= 0)
