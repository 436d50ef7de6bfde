"""Group and multi-task lasso by panels of columns: answers, certificates and stops."""

import dataclasses

import numpy as np
import pytest
from group_cases import off

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import GroupSet, SetTuning
from apcg.methods.sparse.groups import panels as group_panels
from apcg.methods.sparse.groups.panels import Panels, PanelTuning
from apcg.methods.sparse.groups.squares import SquaresRun

KINDS = {
    "tall": {"n": 200, "d": 20},
    "square": {"n": 60, "d": 60},
    "wide": {"n": 30, "d": 150},
    "few columns": {"n": 30, "d": 3},
    "alike": {"n": 80, "d": 30, "alike": 3.0},
    "low rank": {"n": 60, "d": 40, "rank": 6},
    "two rows": {"n": 2, "d": 30},
}


def data(kind, K, seed=0, odd=True):
    of = {"alike": 0.0, "rank": 0, **KINDS[kind]}
    rng = np.random.default_rng(seed)
    n, d = of["n"], of["d"]
    X = rng.standard_normal((n, d)) + of["alike"] * rng.standard_normal((n, 1))
    if of["rank"]:
        X = 0.1 * X + rng.standard_normal((n, of["rank"])) @ rng.standard_normal((of["rank"], d))
    Y = X[:, ::4] @ rng.standard_normal((len(range(0, d, 4)), K)) + rng.standard_normal((n, K)) + 2
    if odd and d > 3:
        X[:, 1], X[:, 2] = 0.0, 5.0
        X[:, -1] = X[:, 0]
    return X, Y


def most(X, Y, s):
    """lambda_max, without an intercept."""
    return np.linalg.norm(X.T @ (s[:, None] * Y), axis=1).max() / s.sum()


def gap_anew(p, r, groups, weights):
    """P - D in extended precision, with x made feasible if it is not."""
    X, n, N = np.asarray(p.samples.stored).astype(np.longdouble), p.n, p.n_samples
    s = np.broadcast_to(p.weights, N).reshape(N, 1).astype(np.longdouble)
    Y, w, x = (np.asarray(v, np.longdouble).reshape(m, -1)
               for v, m in ((p.y, N), (r.w, p.d), (r.x, N)))  # fmt: skip
    P = np.sum(s * (X @ w + r.intercept - Y) ** 2) / (2 * n)
    P += p.alpha * sum(a * np.linalg.norm(w[q]) for q, a in zip(groups, weights, strict=True))
    x = x - s * (x.sum(axis=0) / s.sum()) if p.intercept else x
    v = X.T @ x / (n * p.alpha)
    most = max(np.linalg.norm(v[q]) / a for q, a in zip(groups, weights, strict=True))
    x = x / max(most, 1.0)
    return P - np.sum(x * Y - np.divide(x * x, 2 * s, out=0 * x, where=s > 0)) / n


@pytest.mark.slow(but=28)
@pytest.mark.parametrize("options", ["", "intercept", "weights", "both"])
@pytest.mark.parametrize("K", [2, 3, 5, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_a_multi_task_lasso_at_1e_10(kind, K, options):
    X, Y = data(kind, K)
    rng = np.random.default_rng(1)
    s = rng.uniform(0.1, 9.0, len(X)) if options in {"weights", "both"} else np.ones(len(X))
    given = {"intercept": options in {"intercept", "both"}}
    if options in {"weights", "both"}:
        given["sample_weight"] = s
    p = ERM(X, Y, "squared", "group", 0.05 * most(X, Y, s), **given)
    assert isinstance(GroupSet().start(p, Start(), Target(), rng), SquaresRun)
    r = solve(p, tol=1e-10, max_epochs=10**5, random_state=0)
    assert r.converged
    rows, ones = [[j] for j in range(p.d)], np.ones(p.d)
    assert gap_anew(p, r, rows, ones) <= 1e-10 * r.primal + 1e-13
    assert r.primal == pytest.approx(p.primal(r.w, r.intercept), rel=1e-13)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-13)
    s = np.broadcast_to(p.weights, len(X))
    root = np.sqrt(s)[:, None]
    mean = (s @ X / s.sum(), s @ Y / s.sum()) if given["intercept"] else (0.0, 0.0)
    scaled = np.sqrt(len(X) / p.n)
    far = off(scaled * root * (X - mean[0]), scaled * root * (Y - mean[1]), r.w, [1] * p.d, p.alpha)
    assert far <= 1e-4


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K", [2, 4, 9])
@pytest.mark.parametrize("kind", ["tall", "square", "wide", "few columns", "alike"])
def test_it_agrees_with_scikit_learn(kind, K, intercept):
    from sklearn.linear_model import MultiTaskLasso

    X, Y = data(kind, K, odd=False)
    alpha = 0.1 * most(X, Y, np.ones(len(X)))
    theirs = MultiTaskLasso(alpha=alpha, tol=1e-12, max_iter=10**6, fit_intercept=intercept)
    theirs.fit(X, Y)
    r = solve(ERM(X, Y, "squared", "group", alpha, intercept=intercept), tol=1e-12,
              max_epochs=10**5)  # fmt: skip
    assert r.w == pytest.approx(theirs.coef_.T, abs=2e-6)
    assert r.intercept == pytest.approx(theirs.intercept_, abs=1e-5)


@pytest.mark.parametrize("sizes", [[1] * 18, [6] * 3, [3, 1, 4, 2, 8], [18], [17, 1]], ids=str)
@pytest.mark.parametrize("kind", ["tall", "low rank", "alike", "two rows"])
def test_groups_of_several_sizes(kind, sizes):
    X, Y = data(kind, 1)
    X = X[:, :18]
    groups = np.split(np.random.default_rng(0).permutation(X.shape[1]), np.cumsum(sizes)[:-1])
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(groups))
    p = ERM(X, Y[:, 0], "squared", pen.GroupLasso(groups, weights), 0.3, intercept=True)
    r = solve(p, tol=1e-10, max_epochs=10**5)
    assert r.converged
    assert gap_anew(p, r, groups, weights) <= 1e-10 * r.primal * (1 + 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_kinds_of_numbers(dtype):
    X, Y = data("tall", 4)
    X = np.round(4 * X)
    want = solve(ERM(X, Y, "squared", "group", 0.5), tol=1e-11)
    for given in (X.astype(dtype), np.asfortranarray(X.astype(dtype)), np.repeat(X, 2, 1)[:, ::2]):
        r = solve(ERM(given, Y, "squared", "group", 0.5), tol=1e-11)
        assert r.w == pytest.approx(want.w, abs=1e-6)


@pytest.mark.parametrize("weights", [False, True])
def test_large_means_and_weights_do_not_deceive(weights):
    rng = np.random.default_rng(0)
    X, Y = data("square", 3, odd=False)
    X, Y = X + 1e4 * rng.standard_normal(X.shape[1]), Y + 1e3
    s = 10 ** rng.uniform(-3, 3, len(X)) if weights else None
    p = ERM(X, Y, "squared", "group", 0.01, intercept=True, sample_weight=s)
    for tol in (1e-2, 1e-5, 1e-8):
        r = solve(p, tol=tol, max_epochs=10**4)
        true = gap_anew(p, r, [[j] for j in range(p.d)], np.ones(p.d))
        # X w and b are 6e4, so that rounding moves P by some 1e-12
        assert true <= max(r.gap, 0.0) * (1 + 1e-6) + 1e-11 * r.primal


def test_a_path_goes_on():
    X, Y = data("square", 3)
    p = ERM(X, Y, "squared", "group", 1.0, intercept=True)
    alphas = np.geomspace(1.0, 0.01, 6)
    for alpha, r in zip(alphas, path(p, alphas, tol=1e-9, max_epochs=10**4), strict=True):
        alone = solve(p.with_alpha(alpha), tol=1e-9, max_epochs=10**4)
        assert r.converged
        assert r.primal == pytest.approx(alone.primal, rel=3e-9)


@pytest.mark.parametrize("K", [1, 3])
def test_a_look_before_the_first_round(K):
    X, Y = data("square", K)
    y, penalty = (Y[:, 0], pen.GroupLasso([60])) if K == 1 else (Y, "group")
    p = ERM(X, y, "squared", penalty, 0.1, intercept=True)
    w = np.zeros((60, K))[:, 0] if K == 1 else np.zeros((60, K))
    point = SquaresRun(p, Start(w=w), Target(), SetTuning()).point()
    assert np.array_equal(point.w, w)
    r = solve(p, tol=1e-8, max_epochs=10**4)
    again = solve(p, tol=1e-8, x0=Start(w=r.w, b=r.intercept))
    assert again.converged
    assert again.epochs <= 2


def test_reruns_are_equal():
    X, Y = data("wide", 5)
    p = ERM(X, Y, "squared", "group", 0.1)
    first, again = (solve(p, tol=1e-8, random_state=0) for _ in range(2))
    assert np.array_equal(first.w, again.w)
    assert first.gap == again.gap


@pytest.mark.slow
def test_a_stop_is_honest():
    X, Y = data("low rank", 4)
    p = ERM(X, Y, "squared", "group", 1e-3)
    rows, ones = [[j] for j in range(p.d)], np.ones(p.d)
    short = solve(p, tol=1e-9, max_epochs=1)
    late = solve(p, tol=1e-9, time_limit=1e-6)
    for r in (short, late):
        assert not r.converged
        assert r.gap > 1e-9 * r.primal
        assert gap_anew(p, r, rows, ones) <= r.gap * (1 + 1e-9) + 1e-13 * r.primal
    fine = solve(p, tol=1e-12, max_epochs=10**5)
    assert gap_anew(p, fine, rows, ones) <= max(fine.gap, 0.0) + 1e-13 * fine.primal
    assert fine.gap <= 1e-9 * fine.primal


def test_rounding_is_bounded_with_the_weights_of_rows():
    X, Y = data("tall", 3)
    s = np.random.default_rng(0).uniform(0.01, 1.0, len(X))
    s[0] = 1e4
    run = SquaresRun(
        ERM(X, Y, "squared", "group", 0.1, sample_weight=s), Start(), Target(), SetTuning()
    )
    run.begin(Budget(10))
    size, eps = (
        np.linalg.norm(X) * np.linalg.norm(run._targets.dual(run._left.R)),
        np.finfo(float).eps,
    )
    assert run._rounding >= (len(X) + 8) * eps * size / (0.1 * run.problem.n)


@pytest.fixture
def tuned(monkeypatch):
    def change(**values):
        made = dataclasses.replace(PanelTuning(), **values)
        monkeypatch.setattr(group_panels, "TUNING", made)

    return change


def models(monkeypatch):
    """A list that gets an entry for each model on a Gram matrix."""
    made, real = [], Panels._by_gram

    def counted(self, wanted, model):
        made.append(self._some().size)
        return real(self, wanted, model)

    monkeypatch.setattr(Panels, "_by_gram", counted)
    return made


@pytest.mark.parametrize("kind", ["tall", "square", "wide", "alike", "low rank"])
def test_with_and_without_a_gram_matrix_the_answer_is_the_same(kind, tuned, monkeypatch):
    X, Y = data(kind, 4, odd=False)
    p = ERM(X, Y, "squared", "group", 0.1 * most(X, Y, np.ones(len(X))))
    found, made = [], models(monkeypatch)
    for margin in (0.0, 1e9):
        tuned(margin=margin, look=2, first_sweeps=0.0, spent=np.inf)
        made.clear()
        r = solve(p, "group_set", tol=1e-10, max_epochs=10**6)
        assert bool(made) == (margin > 0)
        assert r.converged
        found.append(r.w)
    assert found[0] == pytest.approx(found[1], abs=1e-4)
