"""Working sets of groups: the group lasso and the multi-task lasso, by optimality and by peers."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg._kernels.sparse import lasso
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.methods.base import Budget, Target
from apcg.methods.plan.plan import Auto
from apcg.methods.sparse import GroupSet, SetTuning
from apcg.methods.sparse.groups.run import GroupRun
from apcg.methods.sparse.groups.squares import SquaresRun

SIZES = [3, 1, 4, 2] * 6


def data(seed=0, n=50, K=1, sparse=False, signs=False):
    rng = np.random.default_rng(seed)
    d = sum(SIZES)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < (0.4 if sparse else 1.0))
    X[:, 5] = 0.0
    X[:, 9] = X[:, 8]  # alike, in one group
    beta = np.zeros((d, K))
    beta[:8] = rng.standard_normal((8, K))
    y = X @ beta + 0.3 * rng.standard_normal((n, K)) + 1.0
    y = np.sign(y) if signs else y
    return (sp.csr_matrix(X) if sparse else X), (y[:, 0] if K == 1 else y)


def kkt(p, w, b, groups, weights):
    """How far w is from rest, relative to alpha times the weight of the group."""
    X = p.samples.stored
    X = X.toarray() if sp.issparse(X) else X
    z = X @ w + b
    slope = -np.asarray(p.loss.duals(z, p.y, p.weights)) / p.n
    slope = p.y * slope if p.loss.margin else slope
    grad, off = X.T @ slope, 0.0
    for group, weight in zip(groups, weights, strict=True):
        g, v = grad[group].ravel(), w[group].ravel()
        size = np.linalg.norm(v)
        a = p.alpha * weight
        away = np.linalg.norm(g + a * v / size) if size else max(np.linalg.norm(g) - a, 0.0)
        off = max(off, away / a)
    return max(off, np.abs(slope.sum(axis=0)).max() if p.intercept else 0.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"sample_weight": True}], ids=str)
def test_a_group_lasso_is_at_rest(sparse, loss, options):
    rng = np.random.default_rng(2)
    X, y = data(3, sparse=sparse, signs=loss == "logistic")
    if options.get("sample_weight"):
        options = {"sample_weight": rng.uniform(0.1, 3.0, y.size) * (rng.random(y.size) < 0.9)}
    weights = rng.uniform(0.5, 2.0, len(SIZES))
    order = rng.permutation(sum(SIZES))
    groups = np.split(order, np.cumsum(SIZES)[:-1])
    p = ERM(X, y, loss, pen.GroupLasso(groups, weights), 0.03, **options)
    r = solve(p, tol=1e-10, max_epochs=10**5, random_state=0)
    assert r.trace["method"][-1] == "group_set"
    assert r.gap <= 1e-9 * r.primal
    assert kkt(p, r.w, r.intercept, groups, weights) <= 1e-4
    zero = [not r.w[group].any() for group in groups]
    assert 0 < sum(zero) < len(groups)
    assert all(r.w[group].all() for group, off in zip(groups, zero, strict=True) if not off
               if 5 not in group)  # fmt: skip
    assert p.dual(r.x) == r.dual


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"sample_weight": True}], ids=str)
def test_a_multi_task_lasso_is_at_rest(sparse, options):
    X, y = data(4, K=3, sparse=sparse)
    if options.get("sample_weight"):
        options = {"sample_weight": np.random.default_rng(0).uniform(0.1, 3.0, len(y))}
    p = ERM(X, y, "squared", "group", 0.1, **options)
    run = Auto().start(p, Start(), Target(), np.random.default_rng(0))
    assert run.report.at_work == "group_set"
    r = solve(p, tol=1e-10, max_epochs=10**5, random_state=0)
    assert r.gap <= 1e-9 * r.primal
    rows = [[j] for j in range(p.d)]
    assert kkt(p, r.w, r.intercept, rows, np.ones(p.d)) <= 1e-4
    assert p.dual(r.x) == r.dual
    assert 0 < np.count_nonzero(r.w.any(axis=1)) < p.d


def test_it_agrees_with_scikit_learn():
    from sklearn.linear_model import MultiTaskLasso

    X, Y = data(5, K=4)
    X = np.delete(X, 9, axis=1)  # without the copy, whose share of the weight is not unique
    theirs = MultiTaskLasso(alpha=0.2, tol=1e-12, max_iter=10**5).fit(X, Y)
    r = solve(ERM(X, Y, "squared", "group", 0.2, intercept=True), tol=1e-12, max_epochs=10**5)
    assert r.w == pytest.approx(theirs.coef_.T, abs=1e-7)
    assert r.intercept == pytest.approx(theirs.intercept_, abs=1e-7)
    assert np.array_equal(r.w.any(axis=1), np.abs(theirs.coef_).max(axis=0) > 1e-10)


def test_groups_of_one_are_the_lasso():
    X, y = data(6)
    lasso_ = solve(ERM(X, y, "squared", "l1", 0.05), tol=1e-11, max_epochs=10**5)
    r = solve(ERM(X, y, "squared", pen.GroupLasso([1] * X.shape[1]), 0.05), tol=1e-11)
    assert r.primal == pytest.approx(lasso_.primal, rel=1e-10)


@pytest.mark.parametrize("K", [1, 3])
def test_a_path_gives_the_answers_of_single_problems(K):
    X, y = data(7, K=K)
    penalty = pen.GroupLasso(SIZES) if K == 1 else "group"
    p = ERM(X, y, "squared", penalty)
    alphas = [1.0, 0.3, 0.1, 0.03]
    for alpha, r in zip(alphas, path(p, alphas, tol=1e-9, max_epochs=10**5), strict=True):
        assert r.converged
        found = certify(p.with_alpha(alpha), Point(r.w, r.x, r.intercept))
        assert found.gap <= 1e-9 * found.primal * (1 + 1e-6)


def test_a_run_goes_on_only_with_its_own_data():
    X, y = data(8)
    p = ERM(X, y, "squared", pen.GroupLasso(SIZES), 0.1)
    run = GroupRun(p, Start(), Target(1e-6), SetTuning())
    assert not run.goes_on(p)  # not begun
    run.advance(Budget(1000))
    assert run.goes_on(p.with_alpha(0.05))
    assert not run.goes_on(p.with_labels(-y))
    assert not run.goes_on(p.with_alpha(0.05), run.w + 1.0)


@pytest.mark.parametrize("K", [1, 3, 4, 6])
def test_block_sweeps_bring_a_model_to_rest(K):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 10))
    G, gs = A.T @ A, np.ascontiguousarray(rng.standard_normal((K, 30)) @ A)
    q, vs = gs.T.copy(), np.zeros((K, 10))
    starts, a = np.array([0, 3, 4, 10]), np.array([3.0, 1.0, 200.0])
    bend = np.array([np.linalg.eigvalsh(G[i:j, i:j])[-1] for i, j in pairwise(starts)])
    sweeps, worst = lasso.group_sweeps(G, gs, vs, starts, bend, a, np.empty(6 * K), 10**5, 0.0,
                                       0.0, 1e-11, 1.0)  # fmt: skip
    g, v = gs.T, vs.T
    assert sweeps < 10**5
    assert worst <= 1e-11
    assert g == pytest.approx(q - G @ v, abs=1e-9)
    assert not v[4:].any()
    for k in range(2):
        rows = slice(starts[k], starts[k + 1])
        assert g[rows] == pytest.approx(a[k] * v[rows] / np.linalg.norm(v[rows]), abs=1e-8)


def test_bad_groups():
    X, y = data()
    with pytest.raises(ValueError, match="sizes in groups must be positive and add up to the"):
        ERM(X, y, "squared", pen.GroupLasso([3, 4]))
    with pytest.raises(ValueError, match="one for each group"):
        ERM(X, y, "squared", pen.GroupLasso(SIZES, [1.0, 2.0]))
    with pytest.raises(ValueError, match="positive"):
        ERM(X, y, "squared", pen.GroupLasso(SIZES, 0.0))
    with pytest.raises(ValueError, match="positive=True"):
        ERM(X, y, "squared", pen.GroupLasso(SIZES), positive=True)
    with pytest.raises(ValueError, match="not smooth"):
        ERM(X, np.sign(y), "hinge", pen.GroupLasso(SIZES))


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_sparse_data_is_solved_as_dense(K, dtype):
    X, y = data(5, K=K, sparse=True)
    X = X.astype(dtype)
    penalty = pen.GroupLasso(SIZES) if K == 1 else "group"
    p = ERM(X, y, "squared", penalty, 0.1, intercept=True)
    rng = np.random.default_rng(0)
    run = GroupSet().start(p, Start(), Target(1e-8), rng)
    assert isinstance(run, SquaresRun)
    for smaller in ({"few_rows": 49}, {"dense_room": 50 * 60 - 1}):
        other = GroupSet(SetTuning(**smaller)).start(p, Start(), Target(1e-8), rng)
        assert type(other) is GroupRun
    run.advance(Budget(1000))
    assert run.goes_on(p.with_alpha(0.05))
    assert not run.goes_on(ERM(X.toarray(), y, "squared", penalty, 0.05, intercept=True))
    alphas = np.geomspace(1.0, 0.01, 5)
    for alpha, r in zip(alphas, path(p, alphas, tol=1e-9), strict=True):
        q = ERM(X.toarray(), y, "squared", penalty, alpha, intercept=True)
        assert r.converged
        assert r.primal == pytest.approx(solve(q, tol=1e-9).primal, rel=3e-9)
        assert r.primal == pytest.approx(p.with_alpha(alpha).primal(r.w, r.intercept), rel=1e-12)
        assert r.dual == pytest.approx(p.with_alpha(alpha).dual(r.x), rel=1e-12)
