"""The best pair of points is at least as good as every one that was seen."""

import numpy as np
import pytest
from erm_problems import SMOOTH, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from apcg import solve
from apcg.certificate import certify
from apcg.methods.adaptive.pair import combine
from apcg.points import Certificate, Point


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(SMOOTH), st.integers(0, 10_000))
def test_a_combination_is_at_least_as_good_as_both(loss, seed):
    p = problem(loss, alpha=1e-3)
    rng = np.random.default_rng(seed)
    low, high = np.clip(p.loss.domain, -2, 2)
    a, b = (certify(p, Point(x=rng.uniform(low, high, p.n))) for _ in range(2))
    both = combine(p, a, b)
    assert both.primal <= min(a.primal, b.primal)
    assert both.dual == max(a.dual, b.dual)
    assert both.primal == pytest.approx(p.primal(both.w), rel=1e-12)
    assert both.dual == pytest.approx(p.dual(both.x), rel=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_a_fast_fall_of_the_gap_loses_no_better_point(loss):
    """Then no point between is looked for, but the better of each is kept."""
    p = problem(loss, alpha=1e-3)
    x = solve(p, tol=1e-3, random_state=0).x
    good = certify(p, Point(x=x))
    worse = 1.01 * good.w
    z = p.predictions(worse)
    new = Certificate(worse, x, 0.0, z, p.primal(worse), good.dual)
    poor = Certificate(good.w, 0 * x, 0.0, good.z, good.primal, p.dual(0 * x))
    assert new.gap < 0.2 * poor.gap
    both = combine(p, poor, new)
    assert both.primal == min(poor.primal, new.primal)
    assert both.dual == new.dual


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_auto_is_never_worse_than_what_it_has_seen(loss):
    seen = []
    r = solve(
        problem(loss, alpha=1e-6),
        tol=1e-12,
        max_epochs=40,
        check_every=1,
        random_state=0,
        callback=lambda c: seen.append((c.primal, c.dual)),
    )
    primal, dual = np.array(seen).T
    assert r.primal <= primal.min() * (1 + 1e-12)
    assert r.dual >= dual.max() - 1e-12 * abs(dual.max())
    assert np.all(np.diff(primal - dual) <= 1e-14)
