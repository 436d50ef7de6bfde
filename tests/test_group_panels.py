"""Panels of eight columns for groups and the squared loss: kernels, answers, stops, choices."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg._kernels import panels
from apcg.data.linear_map import Dense
from apcg.methods import group_panels, group_products, group_run, group_squares
from apcg.methods.base import Budget, Target
from apcg.methods.group_panels import Layout, Panels, PanelTuning, Source
from apcg.methods.group_run import GroupModel, GroupPenalty, GroupRun
from apcg.methods.group_set import GroupSet
from apcg.methods.group_squares import SquaresRun
from apcg.methods.working_set import Tuning
from apcg.points import Start

NONE = np.empty(0)
SHAPES = [(1, 1), (3, 5), (4, 8), (37, 9), (40, 30)]


def wide(K):
    return 1 if K == 1 else -(-K // 4) * 4


def padded(Y):
    out = np.zeros((len(Y), wide(Y.shape[1])))
    out[:, : Y.shape[1]] = Y
    return out


# ---- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3, 4, 5, 6, 7, 13])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_products_with_data_by_rows(n, d, K):
    rng = np.random.default_rng(10 * n + K)
    X, R, W = rng.standard_normal((n, d)), rng.standard_normal((n, K + 2)), np.zeros((d, wide(K)))
    out = np.zeros((K, d))
    panels.dot(X, R[:, :K], np.zeros((K, 8)), out)
    assert out == pytest.approx(R[:, :K].T @ X, abs=1e-12)
    if K == 1:
        return
    some = np.flatnonzero(rng.random(d) < 0.6)
    W[:, :K] = rng.standard_normal((d, K))
    got = np.empty((n, wide(K)))
    panels.tdot(X, some, np.ascontiguousarray(W[some]), got)
    assert got[:, :K] == pytest.approx(X[:, some] @ W[some, :K], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [1, 2, 4, 8])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.99, 1.0])
def test_products_choose_a_way_and_give_the_same(dtype, K, zeros):
    rng = np.random.default_rng(K)
    X = rng.standard_normal((33, 50)).astype(dtype)
    samples, x = Dense(X), rng.standard_normal((33, K))
    W = rng.standard_normal((50, K)) * (rng.random((50, 1)) >= zeros)
    for given in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        assert group_products.columns_times(samples, given) == pytest.approx(X.T @ given, abs=1e-5)
    assert group_products.rows_times(samples, W) == pytest.approx(X @ W, abs=1e-5)
    assert group_products.rows_times(samples, W[:, 0]) == pytest.approx(X @ W[:, 0], abs=1e-5)
    if dtype == np.float64:
        assert group_products.rows_times(samples, W) == pytest.approx(X @ W, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_panels_are_centred_and_weighted_columns(n, d, dtype):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)).astype(dtype)
    mean, root = rng.standard_normal(d), rng.uniform(0, 2, n)
    for columns in (rng.permutation(d), np.arange(d)):
        place = np.full(-(-d // 8) * 8 + 8, -1)
        place[:d] = columns
        for m, r in ((NONE, NONE), (mean, NONE), (NONE, root), (mean, root)):
            out = np.empty((place.size // 8, n, 8))
            panels.pack(X, place, m, r, out)
            want = X - (m if m.size else 0.0)
            want = want * (r[:, None] if r.size else 1.0)
            flat = out.transpose(1, 0, 2).reshape(n, -1)
            assert flat[:, :d] == pytest.approx(want[:, columns], abs=1e-15)
            assert not flat[:, d:].any()


@pytest.mark.parametrize("K", [1, 2, 3, 5, 6, 7, 9, 20])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_slopes_and_changes_by_panels(n, d, K):
    rng = np.random.default_rng(n + K)
    X, R = rng.standard_normal((n, d)), rng.standard_normal((n, K))
    place = np.full(-(-d // 8) * 8, -1)
    place[:d] = np.arange(d)
    P = np.empty((place.size // 8, n, 8))
    panels.pack(X, place, NONE, NONE, P)
    out, room = np.empty((place.size, K)), np.empty(8 * max(K, wide(K)))
    panels.products(P, padded(R), 0.5, room, out)
    assert out[:d] == pytest.approx(0.5 * X.T @ R, abs=1e-12)
    D, left = rng.standard_normal((place.size, K)), padded(R)
    panels.move(P, D, room, left)
    assert left[:, :K] == pytest.approx(R - X @ D[:d], abs=1e-12)
    assert not left[:, K:].any()
    G = np.empty((place.size,) * 2)
    panels.gram(P, np.arange(place.size // 8), 2.0, G)
    assert G[:d, :d] == pytest.approx(2 * X.T @ X, abs=1e-11)
    assert np.array_equal(G, G.T)


@pytest.mark.parametrize(
    "sizes", [[1], [1] * 7, [1] * 8, [1] * 17, [3, 1, 4, 2] * 6, [30], [7, 9, 20, 1], [16, 16, 1]]
)
def test_a_layout_has_every_column_once(sizes):
    lay = Layout.of(np.array(sizes))
    assert lay.real.size == np.unique(lay.real).size == sum(sizes)
    places = np.split(lay.real, np.cumsum(sizes)[:-1])
    for q, place in enumerate(places):
        assert lay.start[q] == place[0]
        assert np.array_equal(place, np.arange(place[0], place[0] + sizes[q]))
        assert place[-1] < lay.start[q + 1]
    assert lay.start[-1] == 8 * lay.panel[-1]
    assert lay.group[-1] == len(sizes)
    for s, (first, last) in enumerate(pairwise(lay.group)):
        assert first < last
        assert lay.start[first] == 8 * lay.panel[s]
        assert lay.start[last] == 8 * lay.panel[s + 1]


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_the_curvature_of_a_group_is_bounded_from_above(size):
    A = np.random.default_rng(size).standard_normal((size + 3, size))
    lay = Layout.of(np.array([size]))
    width = int(lay.start[-1])
    G = np.zeros((width, width))
    G[:size, :size] = A.T @ A
    out = np.empty(1)
    panels.largest(G.ravel(), lay.panel, lay.group, lay.at, lay.start, np.empty(2 * width**2), out)
    true = np.linalg.eigvalsh(G)[-1]
    assert true * (1 - 1e-14) <= out[0] <= true * width ** (1 / 16)


def set_of(seed=0, n=40, sizes=(1,) * 21, K=3, alike=0.0, a=0.3):
    rng = np.random.default_rng(seed)
    d = sum(sizes)
    X = rng.standard_normal((n, d)) + alike * rng.standard_normal((n, 1))
    Y = X[:, :5] @ rng.standard_normal((5, K)) + 0.1 * rng.standard_normal((n, K))
    made = Panels(
        Source(X, NONE, NONE, 1 / n), np.arange(d), np.array(sizes), np.full(len(sizes), a),
        np.zeros((d, K)), padded(Y),
    )  # fmt: skip
    return X, Y, made


def off(X, Y, W, sizes, a):
    """How far W is from rest, relative to a."""
    grad, far = X.T @ (Y - X @ W) / len(X), 0.0
    for i, j in pairwise(np.cumsum([0, *sizes])):
        size = np.linalg.norm(W[i:j])
        away = np.linalg.norm(grad[i:j] - a * W[i:j] / size) if size else (
            max(np.linalg.norm(grad[i:j]) - a, 0.0))  # fmt: skip
        far = max(far, away / a)
    return far


@pytest.mark.parametrize("sizes", [(1,) * 21, (3, 1, 4, 2, 9, 20, 1), (17,)])
@pytest.mark.parametrize("K", [1, 2, 5, 8])
def test_sweeps_come_to_rest_and_keep_what_is_left(sizes, K):
    X, Y, made = set_of(sizes=sizes, K=K)
    for k in range(400):
        made.sweeps(k % 3 == 0, 4, (0.0, 0.0, 0.0, 0.0))
    assert made.R[:, :K] == pytest.approx(Y - X @ made.weights, abs=1e-11)
    assert off(X, Y, made.weights, sizes, 0.3) <= 1e-9
    P = np.sum((Y - X @ made.weights) ** 2) / (2 * len(X)) + made.total()
    assert made.value() == pytest.approx(P, rel=1e-12)


def test_a_set_that_grows_is_the_whole_set():
    X, Y, whole = set_of(sizes=(1,) * 13 + (2, 5))
    source = Source(X, NONE, NONE, 1 / len(X))
    part = Panels(
        source, np.arange(5), np.ones(5, int), np.full(5, 0.3), np.zeros((5, 3)), padded(Y)
    )
    part.sweeps(True, 3, (0.0,) * 4)
    W = np.vstack([part.weights, np.zeros((15, 3))])
    part.extend(np.arange(5, 20), np.array([1] * 8 + [2, 5]), np.full(15, 0.3), W)
    for _ in range(300):
        whole.sweeps(True, 4, (0.0,) * 4)
        part.sweeps(True, 4, (0.0,) * 4)
    assert part.weights == pytest.approx(whole.weights, abs=1e-9)


# ---- answers ------------------------------------------------------------------------------------


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
        assert true <= max(r.gap, 0.0) * (1 + 1e-6) + 1e-12 * r.primal


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
    point = SquaresRun(p, Start(w=w), Target(), Tuning()).point()
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


# ---- stops --------------------------------------------------------------------------------------


def test_a_stop_is_honest():
    X, Y = data("low rank", 4)
    p = ERM(X, Y, "squared", "group", 1e-3)
    rows, ones = [[j] for j in range(p.d)], np.ones(p.d)
    short = solve(p, tol=1e-9, max_epochs=1)
    late = solve(p, tol=1e-9, time_limit=1e-6)
    for r in (short, late):
        assert not r.converged
        assert r.gap > 1e-9 * r.primal
        assert gap_anew(p, r, rows, ones) <= r.gap * (1 + 1e-9)
    fine = solve(p, tol=1e-12, max_epochs=10**5)
    assert gap_anew(p, fine, rows, ones) <= max(fine.gap, 0.0) + 1e-13 * fine.primal
    assert fine.gap <= 1e-9 * fine.primal


def test_a_model_that_raises_p_is_undone():
    _, _, made = set_of(alike=4.0)
    made.sweeps(True, 2, (0.0,) * 4)
    W, R = made.W.copy(), made.R.copy()
    assert not made._by_gram((0.0,) * 4, lambda G, g, W, *_: W + 1e3)
    assert np.array_equal(made.W, W)
    assert np.array_equal(made.R, R)


def test_a_newton_step_where_the_curve_is_lost_in_rounding_is_refused(monkeypatch):
    """Of a step along which G is zero rounding may say that the curve is negative."""
    rng, refused = np.random.default_rng(3), 0
    for _ in range(30):
        A = 100 * rng.standard_normal((2, 6))
        G, w = A.T @ A, rng.standard_normal((6, 1))
        step = 1e17 * np.linalg.svd(A)[2][-1][:, None]
        if np.sum(step * (G @ step)) > -1e19 * np.abs(step).sum() / 1e17:
            continue
        on = GroupPenalty(np.ones(6), np.arange(7))
        model = GroupModel(G, A.T @ rng.standard_normal((2, 1)), w, on, Tuning())
        monkeypatch.setattr(group_run, "_conjugate_gradients", lambda *_, step=step: step)
        model._newton()
        assert on.value(model.v) <= 2 * on.value(w)
        refused += 1
    assert refused


def test_rounding_is_bounded_with_the_weights_of_rows():
    X, Y = data("tall", 3)
    s = np.random.default_rng(0).uniform(0.01, 1.0, len(X))
    s[0] = 1e4
    run = SquaresRun(
        ERM(X, Y, "squared", "group", 0.1, sample_weight=s), Start(), Target(), Tuning()
    )
    run.begin(Budget(10))
    size, eps = np.linalg.norm(X) * np.linalg.norm(run._x()), np.finfo(float).eps
    assert run._rounding >= (len(X) + 8) * eps * size / (0.1 * run.problem.n)


# ---- choices ------------------------------------------------------------------------------------


@pytest.fixture
def tuned(monkeypatch):
    def change(**values):
        made = dataclasses.replace(PanelTuning(), **values)
        monkeypatch.setattr(group_panels, "TUNING", made)
        monkeypatch.setattr(group_squares, "TUNING", made)

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
        tuned(margin=margin, look=2)
        made.clear()
        r = solve(p, tol=1e-10, max_epochs=10**6)
        assert bool(made) == (margin > 0)
        assert r.converged
        found.append(r.w)
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_costs_choose_the_model(tuned):
    _, _, made = set_of(n=40, alike=3.0)
    made.sweeps(True, 2, (0.0,) * 4)
    tuned()
    assert made._gram_pays(1e4)
    assert not made._gram_pays(1.0)  # one sweep more is less than a Gram matrix
    for broken in ({"gram_cost": 1e9}, {"model_cost": 1e9}, {"margin": 1e-9}):
        tuned(**broken)
        assert not made._gram_pays(1e4), broken
    tuned(gram_cost=0.0, model_cost=0.0)
    assert made._gram_pays(1.0)


def test_few_rows_have_a_model_too(tuned):
    """A sweep on a Gram matrix costs more there, but Newton steps end it."""
    _, _, made = set_of(n=4, alike=3.0, a=1e-3)
    made.sweeps(True, 2, (0.0,) * 4)
    tuned()
    assert made._gram_pays(1e4)
    tuned(model_sweeps=10**6)
    assert not made._gram_pays(1e4)


def test_a_round_ends(tuned):
    _, _, made = set_of(alike=5.0, a=1e-3)
    calls = []

    def model(G, g, W, *rest):
        calls.append(len(W))
        return W

    tuned(models=3, gram_cost=0.0, model_cost=0.0)
    made.solve((0.0, 0.0, 0.0, 0.0), model)
    assert len(calls) == 3
    tuned(looks=5, look=3, margin=0.0)
    count, real = [], made.sweeps
    made.sweeps = lambda *a: count.append(a[1]) or real(*a)
    made.solve((0.0, 0.0, 0.0, 0.0), model)
    assert len(count) == 5
    assert count[0] == 3
    assert max(count) <= 12


def test_turns_over_a_set(tuned):
    """More turns on the Gram matrix of a set go further in one sweep; `part` ends them."""
    values = {}
    for name, kw in {
        "one": {"inner": 1},
        "five": {"inner": 5, "part": 0.0},
        "cut": {"inner": 5, "part": 1.0},
    }.items():
        tuned(**kw)
        _, _, made = set_of(sizes=(1,) * 8, alike=1.0, a=0.05)
        made.sweeps(True, 1, (0.0,) * 4)
        values[name] = made.value()
    assert values["five"] < values["one"]
    assert values["five"] < values["cut"] <= values["one"]


def test_sets_have_so_many_columns(tuned):
    sizes = np.full(12, 4)
    for columns, sets in ((8, 6), (16, 3), (48, 1)):
        tuned(set_columns=columns)
        assert Layout.of(sizes).at.size == sets


def test_stages_and_the_first_set(tuned):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2000))
    Y = X[:, :40] @ rng.standard_normal((40, 3))
    p = ERM(X, Y, "squared", "group", 1e-3 * most(X, Y, np.ones(100)))
    sizes = {}
    for share in (0.1, 0.5):
        tuned(share=share)
        run = SquaresRun(p, Start(w=np.zeros((2000, 3))), Target(1e-6), Tuning())
        run.begin(Budget(10))
        run._renew()
        sizes[share] = run._chosen.size
    assert sizes == {0.1: 200, 0.5: 1000}
    assert SquaresRun.tall_at == PanelTuning().tall_at < GroupRun.tall_at
    for n, staged in ((99, True), (100, False)):
        X = rng.standard_normal((n, 100))
        p = ERM(X, X[:, :3], "squared", "group", 1e-3)
        run = SquaresRun(p, Start(), Target(1e-6), Tuning())
        run.begin(Budget(10))
        assert (run.theta > 1) == staged
