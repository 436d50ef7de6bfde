"""Short sweeps in one call, interior points of smooth losses, first steps for all classes."""

import math

import numpy as np
import pytest
from dual_runs import drive, start, tolerance
from erm_problems import problem

from apcg import ERM, APCGClassifier, solve
from apcg.certify.points import Start
from apcg.methods.base import Target
from apcg.methods.dual.tuning import TuningOne
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import PlanTuning, Watch
from apcg.methods.reductions import together


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "epsilon_insensitive"])
@pytest.mark.parametrize("without", [("momentum",), ("momentum", "shrinking")])
def test_short_sweeps_come_in_bursts(loss, without):
    """Each is a sweep: its own estimate, its own order, all its rows."""
    p = problem(loss)
    run = start(p, tolerance(p), without=without)
    run.rows.keep = run.rows.keep[: run.rows.keep.size // 8]
    kept = run.rows.keep.size
    run._burst(8)
    assert len(run.estimates.values) == run.swept == 8
    assert run.estimates.last == run.sweeps.estimate()
    assert run.estimates.last < run.estimates.values[0] / 2
    assert run.passes <= 1
    if "shrinking" in without:
        assert run.rows.keep.size == kept
        assert run.passes > 0.5
    if loss == "hinge" and "shrinking" not in without:
        for _ in range(3):
            run._burst(8)
        assert run.rows.keep.size < kept  # rows at rest are dropped
    run.rows.open()
    found, _ = drive(p, run)
    assert found.relative <= tolerance(p)


def test_bursts_are_for_few_numbers_without_intercept():
    def begun(p, **options):
        run = start(p, 1e-12, **options)
        run.rows.keep, run.swept = (
            run.rows.keep[: run.rows.keep.size // 8],
            2 * run.setup.tuning.burst,
        )
        return run

    p = problem("hinge")
    run = begun(p)
    assert run._in_a_row(math.inf) == run.setup.tuning.burst
    assert run._in_a_row(0.5) == 4  # passes are left for no more
    run.swept = 6
    assert run._in_a_row(math.inf) == 3
    run.rows.keep = run.setup.all
    assert run._in_a_row(math.inf) == 1  # momentum may be wanted soon
    run.without = ("momentum",)
    assert run._in_a_row(math.inf) == 3
    free = ERM(p.samples.stored, p.y, "hinge", alpha=1e-3, intercept=True)
    assert begun(free)._in_a_row(math.inf) == 1  # its centre moves after every sweep
    assert begun(p, tuning=TuningOne(short=1))._in_a_row(math.inf) == 0
    assert begun(p, tuning=TuningOne(burst=3))._in_a_row(math.inf) == 3
    assert begun(p, tuning=TuningOne(few_left=0.1))._in_a_row(math.inf) == 1


def tall(loss, alpha=1e-3, K=3, seed=0, **more):
    """K problems of 600 x 12, one class against the rest."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=600)
    X = rng.standard_normal((600, 12)) + rng.standard_normal((K, 12))[labels]
    return [ERM(X, np.where(labels == k, 1.0, -1.0), loss, alpha=alpha, **more) for k in range(K)]


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_interior_points_agree_with_other_methods(loss, intercept):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 600)
    p = tall(loss, intercept=intercept, sample_weight=weights)[0]
    found = solve(p, "interior", tol=1e-9)
    assert found.converged
    expected = solve(p, "adaptive", tol=1e-6, max_epochs=100_000, random_state=0)
    assert expected.dual - 1e-12 <= found.primal <= expected.primal + 1e-9


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_first_steps_are_those_of_newton(loss, intercept):
    """H times the step is minus the gradient at 0."""
    problems = tall(loss, intercept=intercept)
    for p, at in zip(problems, together.first_steps(problems), strict=True):
        X = np.hstack([p.samples.stored, np.ones((600, int(intercept)))])
        ridge = np.append(np.full(12, p.alpha), np.zeros(int(intercept)))
        bend = 2.0 if loss == "squared_hinge" else 0.25
        slope = -2.0 if loss == "squared_hinge" else -0.5
        H = bend * X.T @ X / 600 + np.diag(ridge)
        step = np.linalg.solve(H, -slope * X.T @ p.y / 600)
        np.testing.assert_allclose(
            np.append(at.w, at.b)[: X.shape[1]].astype(float), step, rtol=1e-8
        )
    assert together.first_steps(problems[:2]) is None
    assert together.first_steps(tall("hinge")) is None


def test_classes_begin_with_shared_steps(monkeypatch):
    X = np.random.default_rng(0).standard_normal((1200, 64))  # too wide for the small lane
    y, calls = np.arange(1200) % 3, []
    whole = together.first_steps
    monkeypatch.setattr(together, "first_steps", lambda ps: calls.append(1) or whole(ps))
    model = APCGClassifier("squared_hinge", alpha=1e-7, random_state=0).fit(X, y)
    assert calls
    assert all(code.code == "converged" for code in model.status_)


def test_sweeps_go_on_while_they_put_rows_to_rest():
    """As long as a fourth of what the interior point method saves is more than they took."""
    p = problem("hinge", alpha=1e-6, n=4000, d=20)
    assert Watch(p, Target(1e-6, 10**5))._falls(0.0, 0.0) is False
    watch = Watch(p, Target(1e-6, 10**5))
    watch._last = (0.0, 10.0)
    assert watch._falls(1.0, 5.0)
    assert not watch._falls(2.0, 2.0)
    assert not watch._falls(3.0, 4.0)
    watch = Watch(p, Target(1e-6, 10**5), PlanTuning(saved=0.0))
    watch._last = (0.0, 10.0)
    assert not watch._falls(1.0, 5.0)


def test_interior_points_come_first_where_they_take_next_to_no_time():
    def first(p, **changes):
        return Auto(tuning=PlanTuning(**changes)).first(p, Start())[0].name

    small, large = problem("hinge", n=100, d=10), problem("hinge", n=20_000, d=10)
    assert (first(small), first(large)) == ("interior", "dual")
    assert (first(small, tiny=0.0), first(large, tiny=math.inf)) == ("dual", "interior")
