"""The method of working sets: optimality by its definition, in every shape, with every option."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.methods.base import Budget, Target
from apcg.methods.plan.plan import Auto, PlanRun
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.columns.columns import ColumnsRun
from apcg.methods.sparse.dense.all_columns import AllColumnsRun
from apcg.methods.sparse.dense.chosen_columns import ChosenColumnsRun
from apcg.methods.sparse.gram import GramModel
from apcg.problems import costs

#: a method for each shape of data, whatever the shape is
COLUMNS = WorkingSet(SetTuning(few_rows=0, tall=np.inf))
WIDE = WorkingSet(SetTuning(few_rows=10**9, tall=np.inf))
TALL = WorkingSet(SetTuning(tall=0.0))
SHAPES = {"columns": COLUMNS, "wide": WIDE, "tall": TALL}


def data(seed=0, n=40, d=60, density=0.3, labels="real"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    X[:, 1] = X[:, 0]  # alike
    X[:, 2] = 0.0
    X[:, 3] = 1.0
    z = X[:, :8] @ rng.standard_normal(8) + 0.3 * rng.standard_normal(n)
    return X, (np.sign(z + 1e-9) if labels == "signs" else z + 2.0)


def kkt(problem, w, b=0.0):
    """How far w and b are from rest, relative to the size of alpha a, by the definition."""
    X = problem.samples.stored
    X = X.toarray() if sp.issparse(X) else X
    z = X @ w + b
    slope = problem.weights * problem.loss.derivative(z, problem.y) / problem.n
    g, alpha = problem.g, problem.alpha
    grad = X.T @ slope + alpha * g.b * w
    a, lower, upper = (np.broadcast_to(v, w.shape) for v in (alpha * g.a, g.lower, g.upper))
    low = np.where(w > 0, grad + a, grad - a)  # the least and the greatest subgradient
    high = np.where(w < 0, grad - a, grad + a)
    low, high = np.where(w < 0, grad - a, low), np.where(w > 0, grad + a, high)
    low, high = np.where(w <= lower, -np.inf, low), np.where(w >= upper, np.inf, high)
    off = np.maximum(np.maximum(low, -high), 0.0).max()
    return max(off, abs(slope.sum()) if problem.intercept else 0.0) / (alpha * np.max(g.a))


def problem(loss, shape, seed=0, alpha=0.02, **options):
    X, y = data(seed, labels="signs" if loss in ("logistic", "squared_hinge") else "real")
    if shape == "tall":
        X = X[:, :7]
    if shape == "columns":
        X = sp.csr_matrix(X)
    options.setdefault("penalty", "l1")
    return ERM(X, y, loss, alpha=alpha, **options)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"intercept": True},
        {"sample_weight": "some"},
        {"sample_weight": "some", "intercept": True},
        {"penalty": "elasticnet", "l1_ratio": 0.6},
        {"positive": True},
        {"penalty": "weighted"},
        {"penalty": "weighted", "intercept": True, "sample_weight": "some"},
    ],
    ids=str,
)
def test_the_answer_is_at_rest(loss, shape, options):
    options = dict(options)
    rng = np.random.default_rng(3)
    if options.get("sample_weight") == "some":
        weight = rng.uniform(0.1, 3.0, 40)
        weight[::7] = 0.0
        options["sample_weight"] = weight
    if options.get("penalty") == "weighted":
        options["penalty"] = pen.L1(rng.uniform(0.3, 2.0, 7 if shape == "tall" else 60))
    p = problem(loss, shape, **options)
    r = solve(p, SHAPES[shape], tol=1e-12, max_epochs=100_000, random_state=0)
    assert r.gap <= 1e-9 * r.primal
    assert kkt(p, r.w, r.intercept) <= 1e-4
    assert 0 < np.count_nonzero(r.w) < p.d or shape == "tall"
    assert r.w[2] == 0  # a column of zeros


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_take_the_run_that_is_meant(shape):
    runs = {"columns": ColumnsRun, "wide": ChosenColumnsRun, "tall": AllColumnsRun}
    p = problem("squared", shape)
    run = SHAPES[shape].start(p, Start(), Target(), np.random.default_rng(0))
    assert type(run) is runs[shape]


def test_the_shape_follows_from_the_data():
    start = WorkingSet().start
    rng = np.random.default_rng(0)

    def kind(n, d, sparse):
        X = sp.random(n, d, 0.05, "csr", random_state=0) if sparse else rng.random((n, d))
        p = ERM(X, np.arange(n) % 3 - 1.0, "squared", "l1", 0.1)
        return type(start(p, Start(), Target(), rng))

    assert kind(50, 80, False) is ChosenColumnsRun
    assert kind(800, 80, True) is AllColumnsRun
    assert kind(790, 80, True) is ColumnsRun
    assert kind(600, 80, True) is ChosenColumnsRun  # few rows


@pytest.mark.parametrize("shape", ["columns", "wide"])
def test_zeros_are_exact_and_those_of_an_independent_solver(shape):
    from sklearn.linear_model import Lasso

    X, y = data(5, n=50, d=80)
    X = X[:, 2:]  # without the copy, whose share of the weight is not unique
    lasso = Lasso(alpha=0.05, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(X, y)
    p = ERM(sp.csr_matrix(X) if shape == "columns" else X, y, "squared", "l1", 0.05)
    r = solve(p, SHAPES[shape], tol=1e-13, max_epochs=10**5, random_state=0)
    assert np.array_equal(r.w != 0, np.abs(lasso.coef_) > 1e-10)
    assert r.w == pytest.approx(lasso.coef_, abs=1e-7)


def test_logistic_agrees_with_liblinear():
    from sklearn.linear_model import LogisticRegression

    X, y = data(7, n=80, d=40, labels="signs")
    alpha = 0.02
    r = solve(ERM(sp.csr_matrix(X), y, "logistic", "l1", alpha), COLUMNS, tol=1e-10)
    theirs = LogisticRegression(
        solver="liblinear", l1_ratio=1.0, C=1 / (alpha * 80), tol=1e-10, fit_intercept=False,
        max_iter=10**5,
    )  # fmt: skip
    theirs.fit(X, y)
    p = ERM(X, y, "logistic", "l1", alpha)
    assert p.primal(r.w) <= p.primal(theirs.coef_[0]) * (1 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types_of_the_data(dtype, index):
    X, y = data(1)
    S = sp.csr_matrix(X.astype(dtype))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    for tol in (1e-6, 1e-11):
        r = solve(ERM(S, y, "squared", "l1", 0.05), COLUMNS, tol=tol, max_epochs=10**5)
        assert r.converged
        assert kkt(ERM(S.astype(np.float64), y, "squared", "l1", 0.05), r.w) <= 10 * tol**0.5


def test_slopes_are_exact_where_float32_is_too_coarse():
    p = problem("squared", "columns")
    rng = np.random.default_rng(0)
    narrow = COLUMNS.start(p, Start(), Target(1e-6), rng)
    assert narrow.slack == 1e-7
    assert COLUMNS.start(p, Start(), Target(1e-8), rng).slack == 1e-14
    narrow.advance(Budget(10**4))
    for _ in range(COLUMNS.tuning.failures):  # looks that did not pass
        assert narrow.slack == 1e-7
        narrow.seen(certify(p, narrow.point().bare()))
    assert narrow.slack == 1e-14


def test_a_look_that_failed_with_exact_slopes_makes_a_run_aim_lower():
    """Rounding is between its gap and that of the certificate: it must not stay where it is."""
    p = problem("squared", "columns")
    run = COLUMNS.start(p, Start(), Target(1e-4), np.random.default_rng(0))
    run.exact = True
    run.advance(Budget(10**4))
    reached = run.relative
    assert 0 < reached <= 1e-4
    run._tol = 1.001 * reached
    run.seen(certify(p, run.point().bare()))
    run.advance(Budget(10**4))
    assert run.relative <= 0.501 * reached


def test_with_exact_slopes_predictions_do_not_drift_from_w():
    """They come from w alone: a step along the copy in float32 would leave 1e-8 or so."""
    p = problem("logistic", "columns")
    run = COLUMNS.start(p, Start(), Target(1e-11), np.random.default_rng(0))
    run.advance(Budget(10**4))
    np.testing.assert_allclose(run.at.z, p.samples.times(run.w) + run.b, rtol=0, atol=1e-13)


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from(sorted(SHAPES)),
    loss=st.sampled_from(["squared", "logistic", "squared_hinge", "huber", "smoothed_hinge"]),
    ratio=st.sampled_from([1.0, 0.5]),
    intercept=st.booleans(),
    power=st.floats(-4, 0),
)
def test_a_certificate_holds_against_any_other_method(seed, shape, loss, ratio, intercept, power):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 12 if shape == "tall" else 50))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5) * 10 ** rng.uniform(-3, 3)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = sp.csr_matrix(X) if shape == "columns" else X
    alpha = max(float(np.abs(X.T @ y).max()) / n, 1e-3) * 10**power
    p = ERM(X, y, loss, "elasticnet", alpha, l1_ratio=ratio, intercept=intercept)
    r = solve(p, SHAPES[shape], tol=1e-5, max_epochs=2000, random_state=0)
    other = solve(p, Auto(without=("working_set",)), tol=1e-5, max_epochs=300, random_state=0)
    assert p.gap(r.x, r.w, r.intercept) == pytest.approx(r.gap, abs=1e-11 * abs(r.primal))
    assert other.primal >= r.dual - 1e-12 * abs(r.primal)
    assert r.primal >= other.dual - 1e-12 * abs(r.primal)
    assert not r.converged or r.gap <= 1e-5 * abs(r.primal)


def test_stages_begin_below_the_largest_slope_and_end_at_one():
    p = problem("squared", "wide", alpha=1e-4)
    run = WIDE.start(p, Start(), Target(1e-8), np.random.default_rng(0))
    largest = np.abs(p.samples.adjoint(p.y)).max() / p.n / p.alpha
    run.begin(Budget(1))
    assert run.theta == pytest.approx(largest / WIDE.tuning.stage[0])
    thetas = []
    step = run.round
    run.round = lambda *a: (thetas.append(run.theta), step(*a))[1]
    run.advance(Budget(10**4))
    assert thetas == sorted(thetas, reverse=True)
    assert thetas[-1] == 1
    assert len(set(thetas)) > 3
    assert run.fallen(5 * run.falls) == pytest.approx(5)
    assert run.fallen(run.falls * (1 + 1e-14)) == run.fallen(0.1) == 1  # a rounding is no stage
    warm = WIDE.start(p, Start(w=run.w), Target(), np.random.default_rng(0))
    warm.begin(Budget(1))
    assert warm.theta == 1


def test_a_start_that_is_good_enough_is_not_worked_on():
    p = problem("logistic", "columns")
    r = solve(p, COLUMNS, tol=1e-9, max_epochs=10**4)
    again = solve(p, COLUMNS, tol=1e-6, x0=Start(w=r.w))
    assert np.array_equal(again.w, r.w)
    assert again.epochs <= 2
    assert len(again.trace) == 1  # nobody looked at the start but the method


def test_a_start_outside_the_bounds():
    p = problem("squared", "wide", positive=True)
    with pytest.raises(ValueError, match="x0 must be within the bounds"):
        solve(p, WIDE, x0=-np.ones(p.d))


def test_a_path_gives_the_answers_of_single_problems():
    p = problem("squared", "columns")
    top = np.abs(p.samples.adjoint(p.y)).max() / p.n
    alphas = top / np.array([1.0, 3.0, 10.0, 30.0])
    for r, alpha in zip(path(p, alphas, tol=1e-9, max_epochs=10**4), alphas, strict=True):
        alone = solve(p.with_alpha(alpha), COLUMNS, tol=1e-9, max_epochs=10**4)
        assert r.converged
        assert r.primal == pytest.approx(alone.primal, rel=2e-9)
    assert not path(p, [1.001 * top])[0].w.any()


# ---- the plan -----------------------------------------------------------------------------------


def first(p):
    return Auto().first(p, Start())[0].name


def test_auto_takes_it_for_penalties_with_an_l1_part():
    assert first(problem("squared", "wide")) == "working_set"
    assert first(problem("logistic", "columns", penalty="elasticnet")) == "working_set"
    assert first(problem("squared", "wide", positive=True)) == "working_set"
    bounds = pen.Box(-np.ones(60), np.ones(60))
    assert first(problem("squared", "wide", penalty=bounds)) == "newton_bounds"
    assert first(problem("squared", "wide", penalty="l2")) != "working_set"
    X, y = data(labels="signs")
    assert first(ERM(X, y, "hinge", "elasticnet", 0.1)) != "working_set"  # not smooth
    left_out = Auto(without=("working_set",)).first(problem("squared", "wide"), Start())
    assert left_out[0].name == "adaptive"


def test_auto_goes_on_with_another_method_where_it_gets_no_further():
    p = problem("squared", "wide")
    rng = np.random.default_rng(0)
    run = Auto().start(p, Start(), Target(1e-8), rng)
    assert isinstance(run, PlanRun)
    run._run.stuck = True
    run.seen(certify(p, Point(w=np.zeros(p.d))))
    assert not run.report.stuck
    assert run.report.at_work == "interior"
    for _ in range(2000):
        run.advance(Budget(50))
        found = certify(p, run.point().bare())
        if found.relative <= 1e-8:
            break
        run.seen(found)
    assert found.relative <= 1e-8


def test_it_says_when_it_gets_no_further():
    p = problem("squared", "wide")
    run = WIDE.start(p, Start(), Target(0.0), np.random.default_rng(0))  # never to be reached
    for _ in range(200):
        run.advance(Budget(10**6))
        if run.stuck:
            break
    assert run.stuck
    assert certify(p, run.point().bare()).relative <= 1e-13


def test_it_does_not_blame_rounding_for_a_large_gap():
    """Nothing moves: alone it ends with the gap that it has, in a plan another method goes on."""
    p = problem("squared", "wide")
    for method, code in ((WIDE, "max_epochs"), (WorkingSet(alone=False), None)):
        run = method.start(p, Start(), Target(1e-8), np.random.default_rng(0))
        run.round = lambda gap, value: False
        work = run.advance(Budget(700))
        assert run.stuck == (code is None)
        assert work.passes == (700 if code else 1)


def test_a_dual_point_that_rounding_put_outside_is_made_anew():
    p = problem("squared", "wide")
    r = solve(p, tol=1e-6)
    found = certify(p, Point(w=r.w, x=r.x * 1.01))
    assert np.isfinite(found.dual)
    assert found.gap <= 1e-5 * found.primal


def test_auto_leaves_a_support_of_many_more_columns_than_rows_to_the_dual():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2500))
    y = np.sign(X[:, :5].sum(axis=1))

    def notes(ratio, loss="logistic"):
        p = ERM(X, y, loss, "elasticnet", 0.02, l1_ratio=ratio)
        r = solve(p, tol=1e-6, max_epochs=5000, random_state=0)
        assert r.converged
        return " ".join(r.trace.notes)

    assert "takes longer than dual sweeps" in notes(0.01)
    assert "->" not in notes(0.9)
    assert "->" not in notes(0.01, "squared")  # one Gram matrix is made, not many


def test_a_step_within_the_set_ends_where_the_gap_would_do():
    X, y = data(11, n=50, d=90, labels="signs")
    p = ERM(X, y, "logistic", "l1", 0.02)
    passes = [WIDE.start(p, Start(), Target(tol), np.random.default_rng(0)) for tol in (0.5, 1e-9)]
    for run in passes:
        run.advance(Budget(10**5))
    assert passes[0].relative <= 0.5
    assert passes[1].relative <= 1e-9
    assert passes[0].cost < passes[1].cost


def test_a_certificate_of_the_run_is_that_of_its_points():
    for shape in SHAPES:
        p = problem("squared", shape, intercept=True)
        run = SHAPES[shape].start(p, Start(), Target(1e-8), np.random.default_rng(0))
        run.advance(Budget(10**5))
        found = run.point()
        again = certify(p, found.bare())
        assert found.exact
        assert (found.primal, found.dual) == (again.primal, again.dual)


def test_a_set_is_extended_on_a_path_with_the_right_gram_matrix():
    from apcg.methods.sparse.blocks import DenseColumns

    for intercept in (False, True):
        p = problem("squared", "wide", intercept=intercept)
        bend = np.random.default_rng(0).uniform(0.1, 1.0, 40)
        block = DenseColumns(p, np.arange(5))
        block.gram(bend, intercept, kept=True)
        block.extend(np.array([9, 7, 30]))
        G, mean = block.gram(bend, intercept, kept=True)
        fresh, fresh_mean = DenseColumns(p, np.array([0, 1, 2, 3, 4, 9, 7, 30])).gram(
            bend, intercept
        )
        assert pytest.approx(fresh, abs=1e-12) == G
        assert (mean is None) == (fresh_mean is None)
        if mean is not None:
            assert mean == pytest.approx(fresh_mean, abs=1e-14)


def test_inner_work_counts_as_passes_and_a_budget_ends_it(monkeypatch):
    """Columns that are alike, and a tiny alpha: thousands of sweeps and steps in a round."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20)) @ rng.standard_normal((20, 200))
    X += 0.3 * rng.standard_normal((100, 200))
    p = ERM(X, X[:, :10].sum(axis=1) + rng.standard_normal(100), "squared", "l1", 1e-5)
    spent, real = [], GramModel.solve

    def watched(model, *wanted):
        real(model, *wanted)
        spent.append(model.work / costs.look(p))

    monkeypatch.setattr(GramModel, "solve", watched)
    run = WorkingSet().start(p, Start(), Target(1e-12, 300), rng)
    passes = run.advance(Budget(300)).passes
    assert 300 <= passes <= 450
    assert 100 <= sum(spent) <= passes
