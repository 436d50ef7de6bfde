"""Paths of the squared loss on sets of sparse columns: optimality, the Gram matrix, who goes on."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

from apcg import ERM, path, solve
from apcg._kernels.sparse import columns, lasso
from apcg.certify.points import Certificate, Start
from apcg.data import Sparse, views
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.blocks import DenseColumns, StoredColumns
from apcg.methods.sparse.columns.columns import ColumnsRun
from apcg.methods.sparse.dense.all_columns import AllColumnsRun
from apcg.methods.sparse.dense.chosen_columns import ChosenColumnsRun
from apcg.methods.sparse.gram import GramModel
from apcg.methods.sparse.penalty import ScaledPenalty

#: sets that grow often
SMALL = SetTuning(few_rows=0, tall=np.inf, first=5, more=2)
ALPHAS = 0.5 * np.geomspace(1, 1e-3, 10)


def sparse_data(seed=0, n=60, d=90):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.0, 1.0  # alike, empty, constant
    y = X[:, :8] @ rng.standard_normal(8) + 0.3 * rng.standard_normal(n) + 1.0
    return X, y


def walk(p, tuning, alphas=ALPHAS, tol=1e-9):
    """The runs of a path, one after the other, each told the next alpha."""
    run = WorkingSet(tuning).start(
        p.with_alpha(float(alphas[0])), Start(), Target(tol), np.random.default_rng(0)
    )
    run.advance(Budget(10**5))
    for alpha in alphas[1:]:
        run = run.turn(p.with_alpha(float(alpha)), Target(tol))
        run.advance(Budget(10**5))
        yield run


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_each_point_is_that_of_an_independent_solver(intercept, weighted, ratio):
    X, y = sparse_data()
    s = np.random.default_rng(1).uniform(0.2, 2.0, y.size) if weighted else None
    p = ERM(sp.csr_matrix(X), y, "squared", "elasticnet", l1_ratio=ratio, intercept=intercept,
            sample_weight=s)  # fmt: skip
    answers = path(p, ALPHAS, WorkingSet(SMALL), tol=1e-10, max_epochs=10**5)
    for alpha, r in zip(ALPHAS, answers, strict=True):
        at = p.with_alpha(float(alpha))
        assert r.converged
        assert at.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-12)
        assert at.dual(r.x) == pytest.approx(r.dual, rel=1e-12)
        theirs = ElasticNet(
            alpha=alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-12, max_iter=10**6
        ).fit(X, y, s)
        value = at.primal(theirs.coef_, theirs.intercept_)
        assert r.dual * (1 - 1e-12) <= value
        assert r.primal <= value * (1 + 1e-9)
        one_of_two = np.array([0, 1])  # alike: only their sum is determined
        assert r.w[one_of_two].sum() == pytest.approx(theirs.coef_[one_of_two].sum(), abs=1e-4)
        assert r.w[4:] == pytest.approx(theirs.coef_[4:], abs=1e-4)
        assert r.w[2] == 0


def test_a_small_support_is_gone_on_with_by_sets_and_a_large_one_by_columns():
    X, y = sparse_data()
    p = ERM(sp.csr_matrix(X), y, "squared", "l1")
    assert all(isinstance(run, ChosenColumnsRun) for run in walk(p, SMALL))
    assert all(isinstance(run, ColumnsRun) for run in walk(p, SetTuning(few_rows=0, few_picked=-1)))
    labels = ERM(sp.csr_matrix(X), np.sign(y), "logistic", "l1")
    assert all(isinstance(run, ColumnsRun) for run in walk(labels, SMALL))
    few = SetTuning(few_rows=0, tall=np.inf, first=5, more=2, few_picked=3, most_picked=12)
    *_, last = walk(p, few)
    assert not last.goes_on(p)  # its set is too large
    answers = path(p, ALPHAS, WorkingSet(few), tol=1e-9, max_epochs=10**5)
    assert all(r.gap <= 1e-9 * r.primal for r in answers)


def test_a_run_that_is_told_the_same_alpha_stays_where_it_is():
    X, y = sparse_data()
    p = ERM(sp.csr_matrix(X), y, "squared", "l1", 0.05)
    *_, run = walk(p, SMALL, [0.1, 0.05], 1e-12)
    w = run.w.copy()
    again = run.turn(p, Target(1e-6))
    assert again.advance(Budget(10**5)).passes == 1
    assert again.relative <= 1e-6
    assert again.w == pytest.approx(w, abs=1e-9)


@pytest.mark.parametrize("centred", [False, True])
def test_the_gram_matrix_of_sparse_columns_grows_with_them(centred):
    X, y = sparse_data()
    bend = np.random.default_rng(2).uniform(0.1, 1.0, y.size)
    W, more = np.array([5, 0, 8]), np.array([3, 30, 2])
    for kind, given in ((StoredColumns, sp.csr_matrix(X)), (DenseColumns, X)):
        block = kind(ERM(given, y, "squared", "l1"), W)
        block.gram(bend, centred, kept=True)
        block.extend(more)
        G, mean = block.gram(bend, centred, kept=True)
        A = X[:, np.concatenate([W, more])]
        if centred:
            assert mean == pytest.approx(bend @ A / bend.sum(), abs=1e-13)
            A = A - mean
        assert pytest.approx(A.T @ (bend[:, None] * A), abs=1e-12) == G
        v = np.arange(6.0)
        assert block.times(v) == pytest.approx(X[:, block.W] @ v, abs=1e-12)
        assert block.descent(bend) == pytest.approx(-X[:, block.W].T @ bend, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_of_a_gram_matrix_for_every_type(dtype, index):
    X, _ = sparse_data()
    M = sp.csr_matrix(X.astype(dtype))
    arrays = M.data, M.indices.astype(index), M.indptr.astype(index)
    W, bend = np.array([7, 3, 11, 0]), np.linspace(0.5, 2.0, X.shape[0])
    place = np.full(X.shape[1], -1)
    place[W] = np.arange(4)
    for first in range(5):
        out = np.full((4 - first, 4), np.nan)
        room = np.empty(4, np.int64), np.empty(4)
        columns.gram_rows(*arrays, place, first, bend, *room, out)
        A = X.astype(dtype).astype(float)[:, W]
        assert out == pytest.approx(A[:, first:].T @ (bend[:, None] * A), abs=1e-12)


def test_a_product_with_few_columns_is_the_same_by_columns():
    X, _ = sparse_data()
    M = sp.csr_matrix(X)
    map_, w = Sparse(M.data, M.indices, M.indptr, X.shape[1]), np.zeros(X.shape[1])
    for count in (0, 5, 90):
        w[:count] = np.linspace(1.0, 2.0, count)
        by_rows = Sparse(M.data, M.indices, M.indptr, X.shape[1]).times(w)
        assert map_.view(views.stored_columns).shape == X.shape  # makes the columns
        assert map_.times(w) == pytest.approx(by_rows, abs=1e-13)
        assert by_rows == pytest.approx(X @ w, abs=1e-12)


def test_a_factor_that_failed_is_not_tried_again_without_more_on_its_diagonal():
    A = np.random.default_rng(0).standard_normal((30, 6))
    one = ScaledPenalty(np.array([0.1]), np.zeros(1), np.array([-np.inf]), np.array([np.inf]))
    for alike in (False, True):
        B = np.hstack([A, A]) if alike else A
        size = B.shape[1]
        G, v = B.T @ B, np.full(size, 0.5)
        room = np.empty((size, size)), np.empty(size, np.intp), np.empty((4, size))
        failed = np.array([size + 1])
        g = B.T @ (A[:, 0] - B @ v)
        lasso.gram_newton(G, g, v, *one.parts, *room, failed)
        assert failed[0] == (size if alike else size + 1)
    off = []
    for limit in (size + 1, 6):
        v = np.full(6, 5.0)
        G, g = A.T @ A, A.T @ (A @ np.full(6, 4.0) - A @ v)
        lasso.gram_newton(G, g, v, *one.parts, *room, np.array([limit]))
        off.append(np.abs(g - 0.1).max())
    assert off[0] <= 1e-10 < off[1]


def test_a_model_takes_as_many_sweeps_as_it_is_told_before_a_newton_step(monkeypatch):
    A = np.random.default_rng(0).standard_normal((30, 6))
    one = ScaledPenalty(np.array([0.1]), np.zeros(1), np.array([-np.inf]), np.array([np.inf]))
    counts, sweeps = [], lasso.gram_sweeps
    monkeypatch.setattr(
        "apcg.methods.sparse.gram.lasso.gram_sweeps",
        lambda *given: counts.append(given[7]) or sweeps(*given),
    )
    for told, expected in ((0, SetTuning().sweeps), (3, 3)):
        counts.clear()
        model = GramModel(A.T @ A, A.T @ A[:, 0], np.zeros(6), one, SetTuning(), told)
        assert model.solve(0.0, 0.0, 1e-12, 1e-12)
        assert set(counts) == {expected}


def test_a_path_from_zero_makes_no_columns_in_float32():
    X, y = sparse_data()
    p = ERM(sp.csr_matrix(X), y, "squared", "l1")
    top = np.abs(X.T @ y).max() / y.size
    *_, run = walk(p, SMALL, top * np.array([1.01, 0.5, 0.1]))
    assert isinstance(run, ChosenColumnsRun)
    assert run.w.any()
    assert (views.columns,) not in p.samples._views


def test_a_step_that_does_not_bring_p_down_is_not_taken():
    X, y = sparse_data()
    p = ERM(X, y, "squared", "l1", 0.05, intercept=True)
    run = WorkingSet(SMALL).start(p, Start(), Target(1e-8), np.random.default_rng(0))
    run.advance(Budget(10**5))
    before, W = (run.w.copy(), run.b, run.at.z.copy(), run.descent.copy()), run.block.W
    worse = SimpleNamespace(v=run.w[W] + 1.0, g=np.zeros(W.size))
    assert not run.arrive_at(W, worse, np.ones(W.size), run.at.value + run.penalty.value(run.w))
    for now, then in zip((run.w, run.b, run.at.z, run.descent), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert run.point().relative <= 1e-8


def test_neither_is_one_of_all_columns():
    """Of all columns w is no copy by itself, and what is undone must be."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    p = ERM(X, X[:, 0] + rng.standard_normal(200), "squared", "l1", 0.05)
    run = WorkingSet().start(p, Start(), Target(1e-8), rng)
    assert isinstance(run, AllColumnsRun)
    run.advance(Budget(10**5))
    w, all_columns = run.w.copy(), slice(None)
    worse = SimpleNamespace(v=run.w + 1.0, g=np.zeros(8))
    assert not run.arrive_at(all_columns, worse, None, run.at.value + run.penalty.value(run.w))
    np.testing.assert_array_equal(run.w, w)
    found = run.point()
    assert found.primal == p.primal(found.w)


def test_a_step_that_overflows_is_not_taken():
    X, y = sparse_data()
    p = ERM(X, y, "squared", "elasticnet", 0.05)
    run = WorkingSet(SMALL).start(p, Start(), Target(1e-3), np.random.default_rng(0))
    run.advance(Budget(10**5))
    w = run.w.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        assert run.move(np.array([0]), np.array([1e200]), 1e200 * X[:, 0], 0.0) == 0
    np.testing.assert_array_equal(run.w, w)


def test_predictions_that_moved_along_a_line_are_not_taken_for_a_certificate():
    X, y = sparse_data()
    p = ERM(X, y, "squared", "l1", 0.05)
    run = WorkingSet(SMALL).start(p, Start(), Target(0.5), np.random.default_rng(0))
    run.advance(Budget(10**5))
    best = solve(p, WorkingSet(SMALL), tol=1e-12, max_epochs=10**5).w
    W = np.arange(p.d)
    drifted = X @ (best - run.w) + 1e-6
    assert run.move(W, best, drifted, 0.0) == 1
    run.block = run.columns.make(W)
    run.descend()
    run.gap()
    found = run.point()
    assert isinstance(found, Certificate)
    assert found.primal == p.primal(best)


@pytest.mark.parametrize("given", ["dense", "sparse"])
def test_a_set_is_extended_while_it_is_not_much_larger_than_the_support(given):
    X, y = sparse_data()
    p = ERM(sp.csr_matrix(X) if given == "sparse" else X, y, "squared", "l1")
    for roomy, extends in ((10**6, True), (1, False)):
        both = (roomy, 2) if given == "dense" else (2, roomy)
        tuning = SetTuning(few_rows=0, tall=np.inf, first=5, more=2, roomy=both)
        sets = [run.block.W.copy() for run in walk(p, tuning, ALPHAS[:7])]
        extended = [not np.array_equal(W, np.sort(W)) for W in sets]  # a new set is in order
        assert any(extended) == extends
