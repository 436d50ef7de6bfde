"""The interior point method: the optimum of losses without a smooth part, rows that are fixed."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import KINKED, data, look, one_hot, problem

from apcg import ERM, penalties, solve
from apcg.certify.points import Start
from apcg.methods.base import Budget, Method, Target
from apcg.methods.interior.interior import Interior, InteriorRun


def run(p, tol=1e-9, made=None):
    made = made or Interior().start(p, Start(), Target(tol), np.random.default_rng(0))
    looks, found = 0, None
    while found is None or (found.relative > tol and looks < 5):
        if found is not None:
            made.seen(found)
        made.advance(Budget(100_000))
        found = look(p, made.point())
        looks += 1
    return found, looks


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-5])
def test_the_optimum(loss, weighted, intercept, kind, alpha):
    X, y = data("hinge" if loss.margin else "squared", n=150, sparse=kind == "sparse")
    X = X.astype(np.float32) if kind == "float32" else X
    weights = np.arange(150) % 4.0 if weighted else None
    p = ERM(X, y, loss, alpha=alpha, sample_weight=weights, intercept=intercept)
    found, looks = run(p)
    assert found.relative <= 1e-9
    assert looks <= 2
    other = solve(p, tol=1e-3, max_epochs=300, random_state=0)
    assert other.dual - 1e-9 * found.primal <= found.primal <= other.primal + 1e-9 * found.primal


@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("intercept", [False, True])
def test_collinear_rare_and_empty_features(alpha, intercept):
    X, y = one_hot(n=600, rare=5)
    X = sp.hstack([X, X[:, :5], sp.csr_array((600, 2))], format="csr")
    found, _ = run(ERM(X, y, "hinge", alpha=alpha, intercept=intercept), 1e-7)
    assert found.relative <= 1e-7
    np.testing.assert_allclose(found.w[-2:], 0, atol=1e-9)


def test_a_penalty_for_each_feature():
    X, y = data("hinge", n=150)
    p = ERM(X, y, "hinge", penalties.L2(np.geomspace(0.1, 10, 12)), 1e-3)
    assert run(p)[0].relative <= 1e-9


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_are_fixed(loss, intercept):
    """With the others at the optimum, a third of the rows find theirs."""
    p = problem(loss, n=150, alpha=1e-2, intercept=intercept)
    best, _ = run(p, 1e-10)
    x = best.x.copy()
    free = np.arange(0, 150, 3)
    x[free] = 0.123  # not used
    made = InteriorRun(p, Target(1e-9), free=free, x=x)
    made.advance(Budget(100_000))
    point = made.point()
    fixed = np.setdiff1d(np.arange(150), free)
    np.testing.assert_array_equal(point.x[fixed], best.x[fixed])
    found = look(p, point)
    assert found.dual == pytest.approx(best.dual, rel=1e-7)
    np.testing.assert_allclose(point.w, best.w, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_x_is_dual_feasible_at_every_step(loss):
    p = problem(loss, n=150, alpha=1e-6, weighted=True)
    made = Interior().start(p, Start(), Target(1e-12), np.random.default_rng(0))
    gaps = []
    for _ in range(60):
        if made.advance(Budget(1, fixed=True)).passes == 0:
            break
        found = look(p, made.point())
        gaps.append(found.gap)
        assert np.isfinite(found.dual)
        assert found.gap >= -1e-12
    assert gaps[-1] < 1e-9 * gaps[0]


def test_deadline_and_budget():
    p = problem("hinge", n=150, alpha=1e-4)
    made = Interior().start(p, Start(), Target(1e-9), np.random.default_rng(0))
    assert made.advance(Budget(1000, deadline=time.perf_counter() - 1)).passes == 0
    assert 0 < made.advance(Budget(8)).passes < 40
    assert np.isfinite(look(p, made.point()).gap)


def test_reruns_are_equal_to_the_bit():
    p = problem("hinge", n=300, alpha=1e-4, intercept=True)
    np.testing.assert_array_equal(run(p)[0].w, run(p)[0].w)


def test_it_is_a_method():
    assert isinstance(Interior(), Method)
    linear, quadratic = Interior().needs[-2:]
    assert linear.holds(problem("epsilon_insensitive"))
    assert not linear.holds(problem("logistic"))
    assert quadratic.holds(problem("hinge"))
    assert not quadratic.holds(problem("hinge", "elasticnet"))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("options", [{}, {"check_every": 1}, {"time_limit": 1e-9}])
@pytest.mark.parametrize("method", ["interior", "auto"])
def test_a_tolerance_of_zero_ends(method, options, intercept):
    """mu stops falling where the gap is rounding, and a run without passes ends in time."""
    p = problem("hinge", n=80, d=6, intercept=intercept)
    r = solve(p, method, tol=0, max_epochs=2000, random_state=0, **options)
    assert np.isfinite(r.gap)
    if not options:
        assert r.status.code in ("converged", "precision", "max_epochs")
        assert r.gap <= 1e-12 * r.primal


def test_no_rows_to_solve_for_are_all_rows():
    X, y = data("hinge", n=60)
    p = ERM(X, y, "hinge", alpha=1e-2)
    none = np.empty(0, dtype=np.intp)
    found, _ = run(p, made=InteriorRun(p, Target(1e-9), free=none, x=np.zeros(60)))
    assert found.relative <= 1e-9


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_all_steps_in_one_call_are_the_same_steps(loss, weighted, intercept):
    X, y = data("hinge" if loss.margin else "squared", n=150, sparse=False)
    weights = np.arange(150) % 4.0 if weighted else None
    p = ERM(X, y, loss, alpha=1e-3, sample_weight=weights, intercept=intercept)
    made, steps = InteriorRun(p, Target(1e-9)), InteriorRun(p, Target(1e-9))
    assert made.at_once()
    assert look(p, made.point()).relative <= 1e-9
    assert made.advance(Budget(0)).passes <= 2 * steps.advance(Budget(1000)).passes
    np.testing.assert_allclose(made.point().w, steps.point().w, rtol=1e-5, atol=1e-9)


def test_a_matrix_without_a_good_factor_is_left_to_steps_that_repair_it():
    """Two equal columns, and next to no ridge."""
    X, y = data("hinge", n=150, sparse=False)
    p = ERM(np.hstack([X, X]), y, "hinge", alpha=1e-14)
    assert not InteriorRun(p, Target(1e-6)).at_once()
    assert np.isfinite(solve(p, tol=1e-3, random_state=0).primal)
