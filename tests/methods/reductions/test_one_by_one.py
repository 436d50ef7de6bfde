"""K outputs one by one: the sum of the problems of one output, and its certificate."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet, Lasso

from apcg import ERM, path, penalties, solve
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target, met
from apcg.methods.plan.plan import Auto
from apcg.methods.reductions.per_output import OneByOne
from apcg.problems.joint import apart, join

PENALTIES = {
    "l1": {"penalty": "l1"},
    "elasticnet": {"penalty": "elasticnet", "l1_ratio": 0.7},
    "positive": {"penalty": "l1", "positive": True},
    "weights": {"penalty": penalties.L1(np.linspace(0.5, 2.0, 12))},
}


def data(seed=0, n=40, d=12, K=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1, 20, d)  # columns of different sizes
    W = np.zeros((d, K))
    W[:4] = rng.standard_normal((4, K))
    return X, X @ W + rng.standard_normal((n, K))


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix])
def test_is_the_sum_of_its_outputs(loss, penalty, intercept, stored):
    X, Y = data()
    s = np.random.default_rng(1).uniform(0.2, 3.0, len(Y))
    options = PENALTIES[penalty] | {"alpha": 0.3, "sample_weight": s, "intercept": intercept}
    problem = ERM(stored(X), Y, loss, **options)
    r = solve(problem, tol=1e-9, random_state=0)
    assert r.converged
    assert r.trace.notes[0].startswith("one_by_one")
    assert r.gap <= 1e-9 * r.primal
    for k in range(Y.shape[1]):
        alone = solve(ERM(stored(X), Y[:, k], loss, **options), tol=1e-11, random_state=0)
        np.testing.assert_allclose(r.w[:, k], alone.w, atol=1e-4 * (1 + np.abs(alone.w).max()))
    # the certificate is that of the problem with K outputs
    np.testing.assert_allclose(r.primal, problem.primal(r.w, r.intercept), rtol=1e-12)
    np.testing.assert_allclose(r.dual, problem.dual(r.x), rtol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_agrees_with_scikit_learn(ratio):
    X, Y = data(2)
    ours = solve(ERM(X, Y, "squared", "elasticnet", 0.5, l1_ratio=ratio), tol=1e-13)
    model = Lasso(0.5) if ratio == 1 else ElasticNet(0.5, l1_ratio=ratio)
    model.set_params(fit_intercept=False, tol=1e-14, max_iter=10**6).fit(X, Y)
    np.testing.assert_allclose(ours.w, model.coef_.T, atol=1e-7)
    np.testing.assert_array_equal(ours.w != 0, model.coef_.T != 0)


def test_raw_features_converge():
    """Columns of very different sizes: AFG stopped at a gap of 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 3)) * [10, 150, 70]
    Y = X @ rng.standard_normal((3, 3)) + [180, 35, 56]
    r = solve(ERM(X, Y, "squared", "l1", 0.1, intercept=True), random_state=0)
    assert r.converged


def test_apart_is_the_inverse_of_side_by_side():
    X, Y = data()
    problem = ERM(X, Y, "huber", "l1", 0.3, intercept=True)
    parts = apart(problem)
    assert [p.K for p in parts] == [1, 1, 1]
    again = join(parts)
    np.testing.assert_array_equal(again.y, problem.y)
    W = np.random.default_rng(0).standard_normal((12, 3))
    np.testing.assert_allclose(again.primal(W), problem.primal(W), rtol=1e-15)
    each = [p.primal(W[:, k]) for k, p in enumerate(parts)]
    np.testing.assert_allclose(sum(each), problem.primal(W), rtol=1e-14)


def test_starts_at_what_is_given_and_stops_when_told():
    X, Y = data()
    problem = ERM(X, Y, "squared", "l1", 0.3, intercept=True)
    known = solve(problem, tol=1e-10)
    again = solve(problem, tol=1e-9, x0=known)
    assert again.epochs == 0
    assert again.converged
    at = solve(problem, x0=Start(w=known.w, b=known.intercept), max_epochs=0)
    assert at.status.code in ("max_epochs", "converged")
    np.testing.assert_array_equal(at.w, known.w)
    cold = solve(problem, max_epochs=0)
    assert not cold.w.any()
    assert solve(problem, time_limit=1e-9).status.code == "time_limit"


def test_an_output_that_is_done_has_no_more_turns():
    """And one that never had a turn is certified all the same."""
    X, Y = data()
    Y[:, 1] = 0.0
    problem = ERM(X, Y, "squared", "l1", 0.01)
    r = solve(problem, tol=1e-10, callback=lambda check: None)
    assert r.converged
    assert not r.w[:, 1].any()
    run = OneByOne(Auto()).start(problem, Start(), Target(tol=1e-12), np.random.default_rng(0))
    assert run.point().gap >= 0
    run.advance(Budget(1))
    assert 1 not in run._open
    before = run.found[1]
    run.advance(Budget(1))
    assert run.found[1] is before


def test_auto_takes_it_where_there_is_l1_enough():
    X, Y = data()

    def first(**options):
        return solve(ERM(X, Y, alpha=0.3, **options)).trace.notes[0].split(":")[0]

    assert first(loss="squared", penalty="elasticnet", l1_ratio=0.5) == "one_by_one"
    assert first(loss="squared", penalty="elasticnet", l1_ratio=0.4) == "dual"
    assert first(loss="epsilon_insensitive", penalty="elasticnet", l1_ratio=0.5) == "dual"
    assert first(loss="squared", penalty="l2") != "one_by_one"


def test_a_path_is_certified_at_each_alpha():
    X, Y = data()
    answers = path(ERM(X, Y, "squared", "l1"), [3.0, 1.0, 0.1], tol=1e-8)
    assert all(r.gap <= 1e-8 * r.primal for r in answers)


def test_who_asks_for_it_where_it_does_not_fit_is_told():
    X, Y = data()
    with pytest.raises(ValueError, match="'one_by_one' needs many outputs, and there is 1"):
        solve(ERM(X, Y[:, 0], "squared", "l1"), "one_by_one")
    labels = np.arange(len(Y)) % 3
    with pytest.raises(ValueError, match="needs a loss that is a sum over outputs"):
        solve(ERM(X, labels, "multinomial", "l1"), "one_by_one")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"x": np.zeros((39, 3))}, "x of x0"),
        ({"w": np.full((12, 3), np.nan)}, "NaN"),
        ({"w": np.zeros(12)}, "w of x0"),
        ({"w": np.zeros((12, 3)), "b": np.zeros(2)}, "b of x0"),
    ],
)
def test_a_bad_start_is_refused(start, message):
    X, Y = data()
    with pytest.raises(ValueError, match=message):
        solve(ERM(X, Y, "squared", "l1", 0.3, intercept=True), "one_by_one", x0=Start(**start))


def test_how_many_needs_are_met():
    """The method whose needs are met the furthest is the one that an error names."""
    X = np.random.default_rng(0).standard_normal((20, 4))
    assert met(OneByOne(Auto()), ERM(X, X[:, :2], "squared", "l1", 0.1)) == math.inf
    assert met(OneByOne(Auto()), ERM(X, X[:, :2], "squared", "group", 0.1)) == 1
    assert met(OneByOne(Auto()), ERM(X, X[:, 0], "squared", "l1", 0.1)) == 0
