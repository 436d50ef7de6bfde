"""Smoothing: the optimum of the hinge and epsilon-insensitive losses, stage by stage."""

import numpy as np
import pytest
from erm_problems import KINKED, data, look

from apcg import ERM, losses, solve
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.methods.base import Budget, Target
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import PlanTuning, Watch
from apcg.methods.reductions.smoothing import Smoothed, Smoothing, SmoothingTuning


def noisy(n=1500, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)


def begin(p, tol=1e-9, tuning=None, at=None):
    made = Smoothing(tuning or SmoothingTuning())
    return made.start(p, at or Start(), Target(tol), np.random.default_rng(0))


def stages(p, tol=1e-9, tuning=None, most=12):
    """The relative gap at each look, until it is at most tol."""
    run, found = begin(p, tol, tuning), []
    while not found or (found[-1].relative > tol and len(found) < most):
        if found:
            run.seen(found[-1])
        run.advance(Budget(100_000))
        found.append(look(p, run.point()))
    return run, found


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
    _, found = stages(p)
    assert found[-1].relative <= 1e-9
    other = solve(p, "interior", tol=1e-9)
    assert found[-1].primal == pytest.approx(other.primal, rel=3e-9)


def test_the_gap_of_a_stage_is_of_second_order_in_gamma():
    p = ERM(*noisy(20_000), "hinge", alpha=1e-4)
    exact = SmoothingTuning(gammas=(0.4, 0.2, 0.1), stage=1e-9, enough=0.0)
    _, found = stages(p, 1e-12, exact, most=3)
    first, second, third = (c.relative for c in found)
    assert 2.5 < first / second < 6  # 4 for each half
    assert 2.5 < second / third < 6


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_the_smoothed_loss(loss):
    """phi* gets (gamma/2) x^2, and phi falls by at most gamma/2."""
    smooth = Smoothed(loss, 0.3)
    x = np.linspace(*loss.domain, 41)
    np.testing.assert_allclose(smooth.conjugate(-x), loss.conjugate(-x) + 0.15 * x**2, atol=1e-14)
    m = np.linspace(-3, 3, 601)
    fall = loss.value(m) - smooth.value(m)
    assert fall.min() >= -1e-14
    assert fall.max() <= 0.15 + 1e-14


def test_few_rows_are_left_for_the_interior_points():
    p = ERM(*noisy(5000), "hinge", alpha=1e-5)
    run, found = stages(p, 1e-9)
    assert found[-1].relative <= 1e-9
    assert run._interior._rows.n < 0.5 * p.n
    far = np.abs(1 - p.y * found[-1].z) > 2 * run._width
    assert far.any()
    np.testing.assert_allclose(found[-1].x[far], (p.y * found[-1].z < 1)[far])


def test_rows_that_were_left_out_come_back():
    """With next to no rows near the kink the first set is wrong, and the look says so."""
    p = ERM(*noisy(3000), "hinge", alpha=1e-5)
    run, found = stages(p, 1e-9, SmoothingTuning(gammas=(0.3,), near=0.05, enough=1.0))
    assert found[-1].relative <= 1e-9
    assert run._width > 0.05 * 0.3
    assert len(found) > 2


def test_auto_takes_it_for_noisy_data():
    X, y = noisy(20_000, 10)
    r = solve(ERM(X, y, "hinge", alpha=1e-7), random_state=0)
    assert r.converged
    assert any(note.startswith("dual -> smoothing") for note in r.trace.notes)


def test_when_to_smooth():
    p = ERM(*noisy(20_000, 10), "hinge", alpha=1e-7)
    watch = Watch(p, Target(1e-6, 10**6))
    everyone, half = np.arange(20_000), np.arange(10_000)
    assert not watch.leave(1, 0.9, everyone, spent=1.0)  # too early to tell
    assert watch.leave(50, 0.9, everyone, spent=1e9)
    assert watch.smooths
    watch.leave(51, 0.9, half, spent=1.1e9)
    assert not watch.smooths
    assert watch.leave(52, 0.9, np.arange(17_000), spent=1.2e9)  # fewer than 0.9 of them
    assert not watch.smooths
    few = ERM(*noisy(60, 10), "hinge", alpha=1e-7)
    assert not Watch(few, Target(1e-6, 10**6), PlanTuning(crowded=0.0)).smooths


def test_the_rate_of_the_start_counts_while_there_is_no_other():
    p = ERM(*noisy(20_000, 10), "hinge", alpha=1e-7)
    watch = Watch(p, Target(1e-6, 10**6))
    watch.leave(2, 1e-2, spent=2.0)
    watch.leave(4, 1e-2, spent=4.0)  # a jump of the estimate
    assert watch._time_left() == pytest.approx(4.0 * 2)  # as many digits again, and two more
    watch.leave(8, 1e-2, spent=8.0)
    assert watch._time_left() == np.inf


def test_reruns_are_equal_and_the_start_is_kept():
    X, y = noisy(5000)
    p = ERM(X, y, "hinge", alpha=1e-6)
    a, b = (solve(p, "smoothing", tol=1e-8, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(a.w, b.w)
    w = a.w.copy()
    again = solve(p, "smoothing", tol=1e-8, x0=a, random_state=0)
    assert again.converged
    np.testing.assert_array_equal(a.w, w)
    assert Auto().first(p, Start())[0].name == "dual"


def test_other_losses_are_refused():
    with pytest.raises(ValueError, match='needs loss "hinge" or "epsilon_insensitive"'):
        solve(ERM(*noisy(50), losses.SmoothedHinge(0.1)), "smoothing")


def test_gamma_is_in_units_of_the_loss():
    """It grows with the labels, and does not with the number of rows."""
    X, y = noisy(400)
    y = X[:, 0] + y
    gammas = [
        begin(ERM(A, b, losses.EpsilonInsensitive(e), alpha=1e-3))._gamma
        for A, b, e in ((X, y, 0.1), (X, 10 * y, 1.0), (np.vstack([X] * 5), np.tile(y, 5), 0.1))
    ]
    mean = np.maximum(np.abs(y) - 0.1, 0).mean()
    np.testing.assert_allclose(gammas, 0.3 * mean * np.array([1, 10, 1]), rtol=1e-12)


def test_rows_that_crossed_a_kink_are_taken():
    """A bad point tells which rows were missing. It does not tell where the others are."""
    p = ERM(*noisy(), "hinge", alpha=1e-4)
    run = begin(p)
    while run._interior is None:
        run.advance(Budget(10_000))
        good = look(p, run.point())
        run.seen(good)
    before = set(run._interior._free)
    run.advance(Budget(10_000))
    w = good.w + 3 * np.eye(p.d)[0]
    bad = certify(p, Point(w=w))
    assert bad.relative > 2 * run._interior.relative
    run.seen(bad)
    free = set(run._interior._free)
    crossed = np.flatnonzero(p.loss.duals(bad.z, p.y, p.weights) != run._sides(good.z))
    assert before < free
    assert set(crossed) <= free
    assert len(free) < 0.9 * p.n
    np.testing.assert_array_equal(run._z, good.z)
    near = np.flatnonzero(np.abs(1 - p.y * good.z) <= run._width)
    assert free == set(near) | set(crossed)
    run.advance(Budget(10_000))
    far = set(crossed) - set(np.flatnonzero(np.abs(1 - p.y * good.z) <= 2 * run._width))
    assert far
    run.seen(certify(p, Point(w=good.w, x=np.zeros(p.n))))  # as bad, and nobody has crossed
    assert far <= set(run._interior._free)  # once is enough
