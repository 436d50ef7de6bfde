"""Working sets for the softmax: L1, elastic net and rows of W, by optimality and by peers."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

from apcg import ERM, path, solve
from apcg._kernels.losses import softmax
from apcg._kernels.sparse import softmax_columns
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.data import by_row, views
from apcg.losses import Multinomial
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import ClassSet
from apcg.methods.sparse.dense.chosen_columns import ChosenColumnsRun
from apcg.methods.sparse.groups.run import GroupRun
from apcg.methods.sparse.method import OF_ROWS
from apcg.methods.sparse.penalty import ScaledPenalty
from apcg.methods.sparse.softmax.columns import ClassColumnsRun
from apcg.methods.sparse.softmax.entries import Entries
from apcg.methods.sparse.softmax.losses_at import ClassLosses
from apcg.methods.sparse.softmax.support_cg import EntryModel
from apcg.methods.sparse.tuning import SetTuning

ON_COLUMNS = ClassSet(SetTuning(few_rows=0))  # sparse columns also where there are few rows


def data(seed=0, n=60, d=12, K=4, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < (0.4 if sparse else 1.0))
    X[:, 5] = 0.0
    X[:, 7] = X[:, 6]  # alike
    z = X[:, :4] @ rng.standard_normal((4, K)) * 2 + rng.gumbel(size=(n, K))
    y = z.argmax(axis=1)
    y[:K] = np.arange(K)
    return (sp.csr_array(X) if sparse else X), y


def lambda_max(X, y):
    return np.abs(X.T @ (np.eye(y.max() + 1)[y] - 1 / (y.max() + 1))).max() / y.size


def gradient(p, w, b):
    """X'(pi - e) s/n by its definition, and that of the intercepts."""
    X = p.samples.stored
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    z = X @ w + b
    pi = np.exp(z - z.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
    pi[np.arange(p.n_samples), p.y] -= 1.0
    pi *= (np.broadcast_to(p.weights, p.n_samples) / p.n)[:, None]
    return X.T @ pi, pi.sum(axis=0)


def off(p, r):
    """How far W is from rest, relative to alpha times the L1 part."""
    slope, balance = gradient(p, r.w, r.intercept)
    w, far = r.w, np.abs(balance).max() if p.intercept else 0.0
    if p.g.separable:
        a, b = p.alpha * float(p.g.a[0]), p.alpha * float(p.g.b[0])
        g = slope + b * w
        away = np.where(w == 0, np.maximum(np.abs(g) - a, 0), np.abs(g + a * np.sign(w)))
    else:
        a, b = p.alpha * p.g.a, p.alpha * p.g.ridge
        g, size = slope + b * w, np.linalg.norm(w, axis=1, keepdims=True)
        moving = np.linalg.norm(g + a * w / np.where(size > 0, size, 1), axis=1)
        resting = np.maximum(np.linalg.norm(g, axis=1) - a, 0)
        away = np.where(size[:, 0] > 0, moving, resting)
    return max(far, away.max()) / a


CASES = [
    ("l1", "working_set", False, np.float64), ("l1", "working_set", True, np.float64),
    ("l1", ON_COLUMNS, True, np.float64), ("l1", ON_COLUMNS, True, np.float32),
    ("elasticnet", "working_set", False, np.float32), ("elasticnet", ON_COLUMNS, True, np.float64),
    ("group", "group_set", False, np.float64), ("group", "group_set", True, np.float32),
    ("group_elasticnet", "group_set", False, np.float64),
]  # fmt: skip


@pytest.mark.parametrize(("penalty", "method", "sparse", "kind"), CASES, ids=str)
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"sample_weight": True}], ids=str)
@pytest.mark.parametrize("alpha", [0.1, 3e-3])
def test_at_rest_certified_and_as_another_method(penalty, method, sparse, kind, options, alpha):
    X, y = data(3, sparse=sparse)
    if options.get("sample_weight"):
        rng = np.random.default_rng(1)
        weights = rng.uniform(0.2, 3.0, y.size) * (rng.random(y.size) < 0.9)
        weights[:4] = 1.0
        options = {"sample_weight": weights, "intercept": True}
    p = ERM(X.astype(kind), y, "multinomial", penalty, alpha, **options)
    r = solve(p, method, tol=1e-12, max_epochs=10_000)
    assert r.converged or "rounding" in str(r.status)
    assert off(p, r) < 1e-5
    exact = certify(p, Point(r.w, r.x, r.intercept))
    assert exact.gap == pytest.approx(r.gap, abs=1e-13)
    other = solve(p, "afg", tol=1e-8, max_epochs=20_000)
    assert other.dual - 1e-12 <= r.primal <= other.primal + 1e-12
    if alpha == 0.1 and penalty == "l1":
        assert np.count_nonzero(r.w) < r.w.size / 2


def test_kkt_to_eight_digits():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for penalty in ("l1", "group"):
        p = ERM(X, y, "multinomial", penalty, 1e-2, intercept=True)
        r = solve(p, tol=1e-15, max_epochs=10_000)
        assert off(p, r) < 1e-8
        assert r.gap <= 1e-13


@pytest.mark.parametrize(("penalty", "ratio"), [("l1", 1.0), ("elasticnet", 0.7)])
def test_it_is_what_saga_finds(penalty, ratio):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    alpha = 0.02
    p = ERM(X, y, "multinomial", penalty, alpha, l1_ratio=ratio, intercept=True)
    r = solve(p, "working_set", tol=1e-12)
    model = LogisticRegression(
        l1_ratio=ratio, C=1 / (alpha * y.size), solver="saga", tol=1e-12, max_iter=20_000,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    W = model.coef_.T
    assert p.primal(W, model.intercept_ - model.intercept_.mean()) >= r.dual - 1e-13
    np.testing.assert_allclose(r.w, W, atol=1e-6)
    assert np.array_equal(r.w == 0, np.abs(W) < 1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_two_classes_are_the_logistic_problem(intercept, sparse):
    """W = (-u, u)/2 has the margins of u, and |W|_1 = |u|_1; a split of u changes neither."""
    X, y = data(5, K=2, sparse=sparse)
    soft = solve(ERM(X, y, "multinomial", "l1", 0.02, intercept=intercept),
                 ON_COLUMNS if sparse else "auto", tol=1e-12)  # fmt: skip
    one = solve(ERM(X, 2.0 * y - 1, "logistic", "l1", 0.02, intercept=intercept), tol=1e-12)
    assert soft.primal == pytest.approx(one.primal, abs=1e-11)
    np.testing.assert_allclose(X @ (soft.w[:, 1] - soft.w[:, 0]), X @ one.w, atol=1e-5)


def test_auto_takes_it_and_needs_are_told():
    X, y = data()
    for penalty, name, word in (("l1", "working_set", "entries"), ("group", "group_set", "rows"),
                                ("group_elasticnet", "interior", "norms")):  # fmt: skip
        r = solve(ERM(X, y, "multinomial", penalty, 0.05), tol=1e-6)
        assert set(r.trace["method"]) == {name}
        assert word in r.trace.notes[0]
    assert set(solve(ERM(X, y, "multinomial", "elasticnet", 0.05)).trace["method"]) == {"dual"}
    with pytest.raises(ValueError, match="an L1 part"):
        solve(ERM(X, y, "multinomial", "l2", 0.05), "working_set")
    with pytest.raises(ValueError, match="an L1 part"):
        solve(ERM(X, y, "multinomial", "l1", 0.05, positive=True), "working_set")
    with pytest.raises(ValueError, match='loss "multinomial"'):
        solve(ERM(X, np.eye(4)[y], "squared", "l1", 0.05), "working_set")
    bounded = solve(ERM(X, y, "multinomial", "l1", 0.05, positive=True), max_epochs=5000)
    assert bounded.converged
    assert set(bounded.trace["method"]) == {"afg"}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_a_path_is_as_its_points_alone(sparse, penalty):
    X, y = data(7, n=80, sparse=sparse)
    method = ON_COLUMNS if sparse and penalty == "l1" else "auto"
    p = ERM(X, y, "multinomial", penalty, 1.0, intercept=True)
    alphas = lambda_max(X, y) * np.geomspace(0.9, 0.02, 6)
    for alpha, r in zip(alphas, path(p, alphas, method, tol=1e-9), strict=True):
        assert r.converged
        alone = solve(p.with_alpha(alpha), "afg", tol=1e-7, max_epochs=20_000)
        assert abs(r.primal - alone.primal) <= 2e-7 * alone.primal


@pytest.mark.parametrize("method", ["auto", ON_COLUMNS, "group_set"], ids=str)
def test_a_start_is_gone_on_from(method):
    X, y = data(9, sparse=True)
    penalty = "group" if method == "group_set" else "l1"
    p = ERM(X, y, "multinomial", penalty, 0.01, intercept=True)
    first = solve(p, method, tol=1e-10)
    again = solve(p, method, tol=1e-8, x0=first)
    assert again.converged
    assert again.epochs <= 1 < first.epochs
    assert np.array_equal(first.w, solve(p, method, tol=1e-10).w)  # the same bits


def test_int64_indices_and_explicit_zeros():
    X, y = data(11, sparse=True)
    long = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    long.data[:3] = 0.0
    X.data[:3] = 0.0
    p, q = (ERM(A, y, "multinomial", "l1", 0.01) for A in (X, long))
    assert np.array_equal(solve(p, ON_COLUMNS).w, solve(q, ON_COLUMNS).w)


def test_zero_is_found_at_once_and_only_above_lambda_max():
    X, y = data(13)
    top = lambda_max(X, y)
    assert not solve(ERM(X, y, "multinomial", "l1", 1.001 * top)).w.any()
    assert solve(ERM(X, y, "multinomial", "l1", 0.99 * top), tol=1e-8).w.any()


# ---- parts ------------------------------------------------------------


def hessian(p, z, floor):
    """Of the mean loss by W, entry j K + k, with `floor` on the curvature of each output."""
    X = p.samples.stored
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    pi = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    s = np.broadcast_to(p.weights, p.n_samples) / p.n
    H = 0.0
    for x, q, c in zip(X, pi, s, strict=True):
        H = H + c * np.kron(np.outer(x, x), np.diag(q + floor) - np.outer(q, q))
    return H


def test_losses_slopes_and_intercepts():
    X, y = data(2)
    rng = np.random.default_rng(0)
    p = ERM(X, y, "multinomial", "l1", 0.1, intercept=True, sample_weight=rng.uniform(0, 2, y.size))
    losses, z = ClassLosses(p), rng.standard_normal((y.size, 4)) * 3
    seen = losses.at(z.reshape(-1))
    assert seen.value == pytest.approx(p.loss_total(z) / p.n, rel=1e-13)
    np.testing.assert_allclose(losses.dual_of(seen.slope).reshape(z.shape),
                               Multinomial().duals(z, p.y, p.weights), atol=1e-14)  # fmt: skip
    far = losses.along(seen.z, np.ones(z.size), 0.5)
    np.testing.assert_allclose(far.bend, seen.bend, atol=1e-14)  # alike for all classes
    best, moved = losses.settle(seen)
    np.testing.assert_allclose(best.z.reshape(z.shape), z + moved, atol=1e-12)
    np.testing.assert_allclose(moved, p.best_intercept(z), atol=1e-7)
    assert np.abs(best.slope.reshape(z.shape).sum(axis=0)).max() < 1e-15


def test_a_tiny_loss_and_its_slope_do_not_cancel():
    z, y = np.array([[60.0, 0.0, 0.0]]), np.zeros(1, np.int32)
    at, slope, pi = np.empty_like(z), np.empty_like(z), np.empty_like(z)
    value = softmax.evaluate(z, z, 0.0, y, np.ones(1), 1.0, at, slope, pi)
    assert value == pytest.approx(2 * np.exp(-60.0), rel=1e-12)
    assert slope[0, 0] == pytest.approx(-2 * np.exp(-60.0), rel=1e-12)


@pytest.mark.parametrize("free", [False, True])
def test_the_matrix_of_a_set_is_that_of_second_derivatives(free):
    X, y = data(4)
    p = ERM(X, y, "multinomial", "l1", 0.1, intercept=free)
    run = ChosenColumnsRun(p, Start(), Target(1e-6, 10), SetTuning())
    rng = np.random.default_rng(3)
    z = rng.standard_normal((y.size, 4))
    run.now(seen=run.losses.at(z.reshape(-1)))
    W = np.sort(rng.choice(48, 20, replace=False))
    block = Entries(run.columns, W)
    G, mean = block.gram(run.bend(), free, kept=False)
    bordered = p.altered(samples=type(p.samples)(np.hstack([X, np.ones((y.size, 1))])))
    H = hessian(bordered, z, run.bend().floor)
    exact = H[np.ix_(W, W)]
    if free:
        ones = H[48:, 48:] + np.trace(H[48:, 48:]) / 4 / 4
        np.testing.assert_allclose(mean, np.linalg.solve(ones, H[48:, W]), atol=1e-5)
        exact = exact - H[W, 48:] @ np.linalg.solve(ones, H[48:, W])
    np.testing.assert_allclose(G, exact, atol=3e-6 * np.abs(exact).max())
    step = rng.standard_normal(20)
    D = np.zeros(48)
    D[W] = step
    np.testing.assert_allclose(block.times(step), X @ D.reshape(12, 4), atol=1e-12)
    few = block.part(np.arange(0, 20, 3))
    np.testing.assert_allclose(few.times(step[::3]), Entries(run.columns, W[::3]).times(step[::3]))
    slope = block.descent(run.at.slope)
    np.testing.assert_allclose(slope, -(X.T @ run.at.slope.reshape(-1, 4)).reshape(-1)[W])


@pytest.mark.parametrize("free", [False, True])
def test_sweeps_and_conjugate_gradients_minimise_the_model(free):
    """The minimiser of M by its matrix, in the place of sums that are kept."""
    X, y = data(6, sparse=True)
    X.data[:] = X.data.astype(np.float32)
    rng = np.random.default_rng(8)
    p = ERM(X, y, "multinomial", "elasticnet", 0.02, sample_weight=rng.uniform(0.1, 2, y.size))
    losses, floor = ClassLosses(p), 1e-3
    seen = losses.at(rng.standard_normal(y.size * 4))
    w = np.where(rng.random(48) < 0.3, rng.standard_normal(48), 0.0)
    W = np.arange(48).reshape(12, 4).T.reshape(-1)  # by class
    edge = np.array([np.inf])
    penalty = ScaledPenalty(np.array([0.01]), np.array([0.01]), -edge, edge)
    slopes, packed = losses.descent(seen.slope), p.samples.view(views.columns)
    model = EntryModel(packed, W, w[W], slopes[W], penalty, seen, losses, floor, free)
    for _ in range(40):
        model.positions = np.arange(48)
        model.sweep()
        model.face(20, 1e-3)
    bordered = p.altered(samples=by_row(np.hstack([X.toarray(), np.ones((y.size, 1))]), "X"))
    H = hessian(bordered, losses.rows(seen.z), floor)
    v = np.empty(48)
    v[W] = model.v
    step = np.concatenate([v - w, model.b])
    ones = np.hstack([X.toarray(), np.ones((y.size, 1))])
    g = -(ones.T @ losses.rows(seen.slope)).reshape(-1) - H @ step
    way = g[:48] - 0.01 * v
    rest = np.where(v == 0, np.maximum(np.abs(way) - 0.01, 0), np.abs(way - 0.01 * np.sign(v)))
    assert rest.max() < 1e-9
    if free:
        assert np.abs(g[48:] - g[48:].mean()).max() < 1e-9
    np.testing.assert_allclose(model.way().T, ones @ step.reshape(13, 4), atol=1e-6)
    assert 0 < np.count_nonzero(v == 0) < 48


def test_slopes_of_some_columns_and_their_tops():
    X, _ = data(1, sparse=True)
    p = ERM(X, np.arange(60) % 4, "multinomial", "l1", 0.1)
    u = np.random.default_rng(0).standard_normal((60, 4))
    out, top, some = np.full((12, 4), np.nan), np.full(12, np.nan), np.array([2, 5, 9])
    softmax_columns.slopes(p.samples.view(views.columns).columns, some, u, out, top)
    np.testing.assert_allclose(out[some], (X.T @ u)[some], atol=1e-6)
    np.testing.assert_array_equal(top[some], np.abs(out[some]).max(axis=1))
    assert np.isnan(np.delete(out, some, axis=0)).all()


# ---- rules ------------------------------------------------------------


def test_which_run_is_taken():
    X, y = data(2, sparse=True)
    many = sp.csr_array(sp.vstack([X] * 11))
    rng = np.random.default_rng(0)
    target = Target(1e-6, 10)
    for A, labels, kind in ((X, y, ChosenColumnsRun), (many, np.tile(y, 11), ClassColumnsRun),
                            (many.toarray(), np.tile(y, 11), ChosenColumnsRun)):  # fmt: skip
        p = ERM(A, labels, "multinomial", "l1", 0.1)
        run = ClassSet().start(p, Start(), target, rng)
        assert type(getattr(run, "at_last", run)) is kind


def test_slopes_by_float32_give_way_to_those_of_the_data():
    """At a tolerance that float32 cannot reach, looks fail, and slopes are exact then."""
    X, y = data(2, sparse=True)
    p = ERM(X, y, "multinomial", "l1", 0.01)
    run = ON_COLUMNS.start(p, Start(), Target(1e-6, 1000), np.random.default_rng(0)).at_last
    assert not run.exact
    fine = ON_COLUMNS.start(p, Start(), Target(1e-9, 1000), np.random.default_rng(0)).at_last
    assert fine.exact
    run._tol = 1e-13
    for _ in range(20):
        run.advance(Budget(1000))
        run.seen(certify(p, run.point().bare()))
    assert run.exact
    assert certify(p, run.point().bare()).relative < 1e-12


def test_columns_left_out_come_back():
    """`kept` without a column that violates: the last look has all columns, and finds it."""
    X, y = data(2, sparse=True)
    p = ERM(X, y, "multinomial", "l1", 0.005)
    best = solve(p, ON_COLUMNS, tol=1e-9)
    run = ON_COLUMNS.start(p, Start(), Target(1e-9, 1000), np.random.default_rng(0)).at_last
    run.advance(Budget(1))
    run.theta, run.kept = 1.0, np.arange(1)
    run.top[1:] = 0.0  # as if they had been far away
    run.advance(Budget(1000))
    found = certify(p, run.point().bare())
    assert found.primal == pytest.approx(best.primal, rel=1e-8)


@pytest.mark.slow
def test_a_sparse_w_on_digits_in_few_rounds():
    """Newton's steps: the gap falls from 1e-3 to 1e-9 in a handful of them."""
    X, y = load_digits(return_X_y=True)
    p = ERM(X / 16, y, "multinomial", "l1", 6e-4)
    steps = []
    for tol in (1e-3, 1e-9):
        run = ClassSet().start(p, Start(), Target(tol, 10_000), np.random.default_rng(0))
        calls = []
        run.move = lambda *a, _move=run.move, _calls=calls: _calls.append(1) or _move(*a)
        run.advance(Budget(10_000))
        assert certify(p, run.point().bare()).relative <= tol
        steps.append(len(calls))
    assert steps[1] <= steps[0] + 8 <= 30


def text(n=300, d=900, K=5, seed=0):
    """Rows of some words, of which a few tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    chance = 1.0 / (5 + np.arange(d))
    X = (
        rng.random((n, d)) < np.minimum(chance * 8 * (1 + 3 * (np.arange(d) % K == y[:, None])), 1)
    ) * 1.0
    return sp.csr_array(X / np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]), y


def test_without_a_floor_steps_are_cut():
    """The floor of the curvature and the region of trust: without them there are more trials."""
    X, y = text()
    p = ERM(X, y, "multinomial", "l1", lambda_max(X, y) / 100)
    trials = []
    for floor, trust in ((SetTuning().floor, SetTuning().trust), (0.0, 1e9)):
        tuning = replace(SetTuning(few_rows=0), floor=floor, least_floor=min(floor, 1e-12),
                         trust=trust, trusts=(1.0, max(20.0, trust)))  # fmt: skip
        made = ClassSet(tuning).start(p, Start(), Target(1e-3, 10_000), np.random.default_rng(0))
        run = made.at_last
        calls, along = [], run.losses.along
        run.losses.along = lambda *a, _along=along, _calls=calls: _calls.append(1) or _along(*a)
        run.advance(Budget(10_000))
        trials.append(len(calls))
    assert trials[0] < trials[1]


def test_alike_columns_have_a_factor_in_float32():
    """What is added to the diagonal makes up for the rounding of float32."""
    X, y = data(4)
    p = ERM(np.repeat(X, 3, axis=1), y, "multinomial", "l1", 0.1)
    least = {}
    for spare in (SetTuning().spare, 0.0):
        run = ChosenColumnsRun(p, Start(), Target(1e-6, 10), SetTuning(spare=spare))
        run.now(seen=run.losses.at(np.zeros(y.size * 4)))
        some = np.arange(36 * 4)[np.repeat(X.any(axis=0), 12)]
        G, _ = Entries(run.columns, some).gram(run.bend(), False, kept=False)
        least[spare] = np.linalg.eigvalsh(G)[0]
    assert least[0.0] < 0 < least[SetTuning().spare]


def test_a_matrix_is_counted_in_the_passes():
    X, y = data(4)
    p = ERM(X, y, "multinomial", "l1", 0.1)
    run = ChosenColumnsRun(p, Start(), Target(1e-6, 10), SetTuning(product=0.5))
    run.now(seen=run.losses.at(np.zeros(y.size * 4)))
    block = Entries(run.columns, np.arange(24))
    block.gram(run.bend(), False, kept=False)
    assert block.cost == 0.5 * 24**2 / 48


def test_sparse_data_with_too_many_numbers_has_no_sets_of_rows(monkeypatch):
    X, y = data(sparse=True)
    p = ERM(X, y, "multinomial", "group", 0.05)
    dense = ERM(X.toarray(), y, "multinomial", "group", 0.05)
    assert OF_ROWS.holds(p)
    monkeypatch.setattr(SetTuning, "dense_room", X.shape[0] * X.shape[1] - 1)
    assert not OF_ROWS.holds(p)
    assert OF_ROWS.holds(dense)


def test_rows_run_is_the_one_for_groups():
    X, y = data()
    p = ERM(X, y, "multinomial", "group", 0.05)
    run = GroupRun(p, Start(), Target(1e-9, 1000), SetTuning())
    run.advance(Budget(1000))
    assert certify(p, run.point().bare()).relative <= 1e-9
