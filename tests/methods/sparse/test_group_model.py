"""Groups on Gram matrices: Newton steps, sets, and which of them is chosen."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from group_cases import off

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg._kernels.sparse import lasso, panels
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import SetTuning
from apcg.methods.sparse.groups import model as group_model
from apcg.methods.sparse.groups import panels as group_panels
from apcg.methods.sparse.groups import squares as group_squares
from apcg.methods.sparse.groups.gram import GramSet
from apcg.methods.sparse.groups.model import GroupModel, GroupPenalty, ModelTuning, largest
from apcg.methods.sparse.groups.panels import Panels, PanelSource, PanelTuning, gram_first
from apcg.methods.sparse.groups.squares import SquaresRun

NONE = np.empty(0)


@pytest.fixture
def tuned(monkeypatch):
    """Other constants of models and of sets."""

    def change(**values):
        names = {f.name for f in dataclasses.fields(ModelTuning)}
        of_models = {k: v for k, v in values.items() if k in names}
        of_sets = {k: v for k, v in values.items() if k not in names}
        monkeypatch.setattr(group_model, "MODEL", dataclasses.replace(ModelTuning(), **of_models))
        made = dataclasses.replace(PanelTuning(), **of_sets)
        monkeypatch.setattr(group_panels, "TUNING", made)
        monkeypatch.setattr(group_squares, "TUNING", made)

    return change


def hessian(G, W, a, starts):
    """Of (1/2)<W, G W> + sum_q a_q |W_q|, entries of W by rows."""
    K = W.shape[1]
    H = np.kron(G, np.eye(K))
    for q, (i, j) in enumerate(pairwise(starts)):
        w = W[i:j].ravel()
        size, at = np.linalg.norm(w), slice(i * K, j * K)
        H[at, at] += a[q] / size * (np.eye(w.size) - np.outer(w, w) / size**2)
    return H


def model_of(K, sizes, seed=0, alike=0.0, n=40, a=0.1, scale=1.0):
    rng = np.random.default_rng(seed)
    d, starts = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
    X = (rng.standard_normal((n, d)) + alike * rng.standard_normal((n, 1))) * scale
    Y = X @ rng.standard_normal((d, K)) + rng.standard_normal((n, K))
    on = GroupPenalty(a * rng.uniform(0.5, 2.0, len(sizes)), starts)
    W = rng.standard_normal((d, K))
    G = X.T @ X / n
    return X, Y, GroupModel(G, X.T @ (Y - X @ W) / n, W, on, SetTuning()), on


SHAPES = [(1, [3, 1, 4, 2]), (1, [1] * 6), (2, [1] * 7), (5, [1] * 9)]


@pytest.mark.parametrize(("K", "sizes"), SHAPES)
def test_a_newton_step_is_that_of_the_hessian(K, sizes):
    _, _, model, on = model_of(K, sizes)
    W, g = model.v.copy(), model.g.copy()
    each = np.repeat(on.a / on.norms(W), sizes)[:, None]
    want = np.linalg.solve(hessian(model.G, W, on.a, on.starts), (g - each * W).ravel())
    q = np.repeat(np.arange(len(sizes)), sizes)
    norms = on.norms(W)[q]
    solve = group_model._by_columns if K == 1 else group_model._by_outputs
    step = solve(model.G, g - each * W, W / norms[:, None], on.a[q] / norms, q)
    assert step.ravel() == pytest.approx(want, abs=1e-8)


def test_a_factor_that_fails_leaves_it_to_sweeps():
    _, _, model, _ = model_of(3, [1] * 6)
    model.G[0, 0] = -1e9
    before = model.v.copy()
    assert not model._newton()
    assert np.array_equal(model.v, before)


def test_sweeps_between_newton_steps_take_as_long_as_one(tuned, monkeypatch):
    most, real = [], lasso.group_sweeps

    def counted(*given):
        most.append(given[7])
        return real(*given)

    monkeypatch.setattr(group_model.lasso, "group_sweeps", counted)

    def sweeps(**values):
        tuned(**values)
        most.clear()
        model_of(2, [1] * 10)[2].solve(1.0, 1.0, 1.0, 1.0)
        return most[0]

    assert sweeps(calls=0.0) == SetTuning().sweeps
    usual = sweeps()
    assert usual > 2 * SetTuning().sweeps
    assert sweeps(calls=1e6) > 2 * usual
    assert sweeps(group=200.0) < usual
    assert sweeps(madd=10.0) < usual


@pytest.mark.parametrize(("K", "sizes"), SHAPES)
def test_a_model_of_columns_of_very_different_scales_comes_to_rest(K, sizes):
    scale = 10.0 ** np.linspace(-2, 2, sum(sizes))
    X, Y, model, on = model_of(K, sizes, alike=5.0, scale=scale, a=1e-3)
    model.solve(0.0, 0.0, 1e-7, 1e-12)
    W = model.v
    assert off(X, Y, W, sizes, 1.0) < np.inf
    grad = X.T @ (Y - X @ W) / len(X)
    for q, (i, j) in enumerate(pairwise(on.starts)):
        size = np.linalg.norm(W[i:j])
        away = grad[i:j] - (on.a[q] * W[i:j] / size if size else 0.0)
        assert np.linalg.norm(away) <= on.a[q] * (1e-5 if size else 1 + 1e-5)


def test_curvatures_are_bounded_from_above():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 13))
    G, starts = A.T @ A, np.array([0, 1, 4, 9, 13])
    for q, (i, j) in enumerate(pairwise(starts)):
        true = np.linalg.eigvalsh(G[i:j, i:j])[-1]
        assert true * (1 - 1e-14) <= largest(G, starts)[q] <= true * (j - i) ** (1 / 16)
    assert np.array_equal(largest(G, np.arange(14)), G.diagonal())
    out = np.empty(4)
    panels.largest_of(G, starts, np.empty(50), out)
    assert np.array_equal(out, largest(G, starts))


# ---- sets by their Gram matrix ------------------------------------------------------------------


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_set_that_grows_is_the_whole_set(rows, dtype):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 9)).astype(dtype)
    mean = X.mean(axis=0, dtype=float) if rows else NONE
    root = rng.uniform(0.5, 2.0, 30) if rows else NONE
    source = PanelSource(X, mean, root, 1 / 30)
    order, sizes = np.array([2, 3, 8, 0, 1, 7]), np.array([2, 1, 3])
    part = GramSet(source, order[:3], sizes[:2], np.ones(2))
    part.extend(order[3:], sizes[2:], np.ones(3), None)
    whole = GramSet(source, order, sizes, np.ones(3))
    Z = X[:, order].astype(float)
    Z = (Z - Z.mean(axis=0)) * root[:, None] if rows else Z
    assert pytest.approx(Z.T @ Z / 30, abs=1e-6) == part._G
    assert pytest.approx(whole._G, abs=1e-12) == part._G
    assert part._bend == pytest.approx(whole._bend)
    assert np.array_equal(part._starts, [0, 2, 3, 6])


def test_all_columns_in_their_order_are_not_copied():
    X = np.random.default_rng(0).standard_normal((5, 4))
    source = PanelSource(X, NONE, NONE, 1.0)
    assert source.columns(np.arange(4)) is X
    assert np.array_equal(source.columns(np.array([1, 0, 2, 3])), X[:, [1, 0, 2, 3]])


def test_a_gram_matrix_comes_first_where_columns_are_few(tuned):
    assert gram_first(1000, 10, 2)
    assert not gram_first(1000, 1000, 2)
    assert gram_first(1000, 1000, 50)
    tuned(first_sweeps=0.1)
    assert not gram_first(1000, 10, 2)
    rng = np.random.default_rng(0)
    for n, first_sweeps, kind in ((300, 6.0, GramSet), (300, 0.0, Panels), (20, 6.0, Panels)):
        tuned(first_sweeps=first_sweeps)
        X = rng.standard_normal((n, 30))
        run = SquaresRun(ERM(X, X[:, :3], "squared", "group", 0.1), Start(), Target(), SetTuning())
        run.begin(Budget(10))
        run._choose()
        assert isinstance(run._set.block, kind)


def test_a_first_set_of_most_groups_has_all(tuned):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    p = ERM(X, X[:, :16] @ rng.standard_normal((16, 2)), "squared", "group", 0.5)
    sizes = []
    for most in (0.3, 1.0):
        tuned(most=most)
        run = SquaresRun(p, Start(), Target(), SetTuning())
        run.begin(Budget(10))
        run._choose()
        sizes.append(run._set.groups.size)
    assert sizes[0] == 20 > sizes[1] > 6


@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"sample_weight": True}], ids=str)
@pytest.mark.parametrize("K", [1, 2, 4])
def test_a_path_with_a_set_that_stays(K, options):
    rng = np.random.default_rng(K)
    X = rng.standard_normal((120, 12)) + 2.0
    Y = X[:, :5] @ rng.standard_normal((5, K)) + rng.standard_normal((120, K))
    if "sample_weight" in options:
        options = {"sample_weight": rng.uniform(0.1, 3.0, 120)}
    y, penalty = (Y[:, 0], pen.GroupLasso([3] * 4)) if K == 1 else (Y, "group")
    p = ERM(X, y, "squared", penalty, 1.0, **options)
    alphas = np.geomspace(5.0, 0.005, 8)
    for alpha, r in zip(alphas, path(p, alphas, tol=1e-10), strict=True):
        alone = solve(p.with_alpha(alpha), tol=1e-10)
        assert r.converged
        assert r.primal == pytest.approx(alone.primal, rel=3e-10)
        assert r.primal == pytest.approx(p.with_alpha(alpha).primal(r.w, r.intercept), rel=1e-12)
        assert r.dual == pytest.approx(p.with_alpha(alpha).dual(r.x), rel=1e-12)


@pytest.mark.parametrize("K", [1, 3])
def test_large_means_without_an_intercept_arrive(K):
    """Condition 1e5 and more: sweeps alone take thousands of passes."""
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((50, 7)) + 300 * rng.standard_normal(7)) * 10.0 ** np.arange(-3, 4)
    Y = rng.standard_normal((50, K)) + X @ rng.standard_normal((7, K)) / np.abs(X).max(axis=0).sum()
    y, penalty = (Y[:, 0], pen.GroupLasso([2, 2, 3])) if K == 1 else (Y, "group")
    most = np.linalg.norm(X.T @ Y, axis=1).max() / 50
    r = solve(ERM(X, y, "squared", penalty, 1e-6 * most), tol=1e-8, max_epochs=200)
    assert r.converged


def test_a_model_that_is_dear_is_left_early():
    _, _, model, _ = model_of(2, [1] * 30, alike=30.0, a=1e-6, scale=100.0)
    _, _, other, _ = model_of(2, [1] * 30, alike=30.0, a=1e-6, scale=100.0)
    model._room = 0.0
    model.solve(1e-14, 0.0, 1e-14, 0.0)
    other.solve(1e-14, 0.0, 1e-14, 0.0)
    assert 0 < model.work < 0.5 * other.work


def test_a_budget_ends_a_model_before_its_newton_steps():
    for K in (1, 2):
        _, _, model, _ = model_of(K, [1] * 30, alike=30.0, a=1e-6, scale=100.0)
        seen = []
        model.solve(1e-14, 0.0, 1e-14, 0.0, lambda work: bool(seen.append(work)) or len(seen) > 1)
        assert len(seen) == 2
        assert seen[1] == model.work > seen[0] > 0
