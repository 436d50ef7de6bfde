"""Panels of eight columns for groups and the squared loss: kernels and choices."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from group_cases import off

from apcg import ERM
from apcg._kernels.data import products_k
from apcg._kernels.sparse import panels
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import SetTuning
from apcg.methods.sparse.groups import model as group_model
from apcg.methods.sparse.groups import panels as group_panels
from apcg.methods.sparse.groups import squares as group_squares
from apcg.methods.sparse.groups.model import GroupModel, GroupPenalty
from apcg.methods.sparse.groups.panels import Layout, Panels, PanelSource, PanelTuning
from apcg.methods.sparse.groups.run import GroupRun
from apcg.methods.sparse.groups.squares import SquaresRun

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
    products_k.dense_adjoint(X, R[:, :K], np.zeros((K, 8)), out)
    assert out == pytest.approx(R[:, :K].T @ X, abs=1e-12)
    if K == 1:
        return
    some = np.flatnonzero(rng.random(d) < 0.6)
    W[:, :K] = rng.standard_normal((d, K))
    got = np.empty((n, wide(K)))
    products_k.dense_times(X, some, np.ascontiguousarray(W[some]), got)
    assert got[:, :K] == pytest.approx(X[:, some] @ W[some, :K], abs=1e-12)


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
        PanelSource(X, NONE, NONE, 1 / n), np.arange(d), np.array(sizes), np.full(len(sizes), a),
        np.zeros((d, K)), padded(Y),
    )  # fmt: skip
    return X, Y, made


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
    source = PanelSource(X, NONE, NONE, 1 / len(X))
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


def most(X, Y, s):
    """lambda_max, without an intercept."""
    return np.linalg.norm(X.T @ (s[:, None] * Y), axis=1).max() / s.sum()


# ---- choices ------------------------------------------------------------------------------------


@pytest.fixture
def tuned(monkeypatch):
    def change(**values):
        made = dataclasses.replace(PanelTuning(), **values)
        monkeypatch.setattr(group_panels, "TUNING", made)
        monkeypatch.setattr(group_squares, "TUNING", made)

    return change


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
        model = GroupModel(G, A.T @ rng.standard_normal((2, 1)), w, on, SetTuning())
        monkeypatch.setattr(group_model, "_by_columns", lambda *_, step=step: step)
        model._newton()
        assert on.value(model.v) <= 2 * on.value(w)
        refused += 1
    assert refused


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


def test_sweeps_that_took_longer_than_a_gram_matrix_choose_the_model(tuned):
    _, _, made = set_of(n=40, alike=3.0)
    made.sweeps(True, 2, (0.0,) * 4)
    tuned(margin=0.0)  # whatever is predicted
    sweep, gram = 2 * 40 * 3, 40 * 8 * made._some().size / 2  # of one column
    assert not made._gram_pays(1.0, int(1.9 * gram / sweep))
    assert made._gram_pays(1.0, int(np.ceil(2 * gram / sweep)))
    tuned(margin=0.0, spent=10.0)
    assert not made._gram_pays(1.0, int(np.ceil(2 * gram / sweep)))
    _, _, few = set_of(n=11, alike=3.0, a=1e-3)
    few.sweeps(True, 2, (0.0,) * 4)
    tuned(margin=0.0)
    assert not few._gram_pays(1.0, 10**6)


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
    tuned(looks=5, look=3, margin=0.0, spent=np.inf)
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
        run = SquaresRun(p, Start(w=np.zeros((2000, 3))), Target(1e-6), SetTuning())
        run.begin(Budget(10))
        run._choose()
        sizes[share] = run._set.groups.size
    assert sizes == {0.1: 200, 0.5: 1000}
    assert SquaresRun.tall_at == PanelTuning().tall_at < GroupRun.tall_at
    for n, staged in ((99, True), (100, False)):
        X = rng.standard_normal((n, 100))
        p = ERM(X, X[:, :3], "squared", "group", 1e-3)
        run = SquaresRun(p, Start(), Target(1e-6), SetTuning())
        run.begin(Budget(10))
        assert (run.theta > 1) == staged
