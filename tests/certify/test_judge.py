"""The judge: which certificates are exact, and when only rounding is left."""

import numpy as np
import pytest
from erm_problems import problem

from apcg import solve
from apcg.certify.judge import FLOOR, PATIENCE, STALL, Judge, Stall
from apcg.certify.points import Certificate, Point
from apcg.methods.base import Run


def found(gap, primal=1.0):
    zero = np.zeros(1)
    return Certificate(zero, zero, 0.0, zero, primal, primal - gap)


def looks(stall, gaps):
    return [stall.saw(found(g), "dual") for g in gaps]


def test_a_gap_at_rounding_level_is_the_end():
    assert looks(Stall(), [1e-3, 1e-8, 1.9 * FLOOR]) == [False, False, True]


def noise(level, count, seed=0):
    return level * (1 + 0.05 * np.random.default_rng(seed).random(count))


def test_a_small_gap_that_does_not_fall_is_the_end():
    """After the method had one chance to compute its sums anew."""
    stall = Stall()
    ends = looks(stall, noise(0.5 * STALL, 8 * PATIENCE))
    assert any(ends)
    assert ends.index(True) > 2 * PATIENCE
    refreshed, stall = [], Stall()
    for gap in noise(0.5 * STALL, 3 * PATIENCE):
        stall.saw(found(gap), "dual")
        refreshed.append(stall.drifted)
    assert sum(refreshed) == 1


def test_slow_is_not_the_end():
    falling = 0.5 * STALL * np.geomspace(1, 0.95, 8 * PATIENCE)
    assert not any(looks(Stall(), falling))
    assert not any(looks(Stall(), noise(10 * STALL, 8 * PATIENCE)))  # too large for rounding


def test_another_method_has_another_chance():
    stall = Stall()
    looks(stall, noise(0.5 * STALL, 2 * PATIENCE))
    assert not stall.saw(found(0.5 * STALL), "primal")
    assert not any(stall.saw(found(g), "primal") for g in noise(0.5 * STALL, PATIENCE))


class Drifted(Run):
    """A run whose sums are wrong: they promise a gap of zero."""

    def __init__(self, p):
        self.p, self.x = p, np.full(p.n, 0.3)
        self.best = solve(p, tol=1e-10, max_epochs=10_000, random_state=0)

    def point(self):
        return Point(x=self.x, v=self.p.combine(self.best.x))


def test_a_certificate_that_would_end_the_run_is_computed_from_the_points():
    p = problem("smoothed_hinge", alpha=1e-2)
    run = Drifted(p)
    check = Judge(p, run, tol=10.0)()
    assert check.certificate.exact
    assert check.gap == pytest.approx(p.gap(run.x), rel=1e-12)


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "afg", "adaptive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_whatever_ends_a_run_its_certificate_is_exact(method, intercept):
    p = problem("squared_hinge", alpha=1e-4, intercept=intercept)
    r = solve(p, method, tol=1e-12, max_epochs=7, random_state=0)
    b = r.intercept if intercept else None
    assert not r.converged
    assert r.gap == pytest.approx(p.gap(r.x, r.w, b), rel=1e-12)
    assert r.primal == p.primal(r.w, r.intercept)
