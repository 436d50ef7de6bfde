"""Following the rate: what mu-hat does with the values of F it is shown."""

import math

import numpy as np
import pytest
from erm_problems import problem

from apcg.methods.paper.adaptive.iterate import Adaptive
from apcg.methods.paper.adaptive.rate import LEAST, Rate, RateTuning

T = RateTuning()
N = 100


def feed(rate, c, windows, highest=1):
    """Values of F that fall at a rate of c a sweep, shown at the end of each window."""
    sweeps, value, restarts = 0.0, rate._values[-1], 0
    base = value - 1.0
    for _ in range(windows):
        left = rate.left(N)
        rate.stepped(left)
        sweeps += left / N
        restarts += rate.saw(base + math.exp(-c * sweeps), N, highest)
    return restarts


def test_a_slow_rate_lowers_mu_to_what_it_tells():
    rate = Rate(1.0, 0.0, 1.0, T)
    feed(rate, 0.4, 2)
    assert rate.mu == pytest.approx(T.shrink * 0.4)


@pytest.mark.parametrize("highest", [1, 4, 16])
def test_mu_falls_gently_where_visits_are_uneven(highest):
    rate = Rate(0.25, 0.0, 1.0, T)
    feed(rate, 1e-6, 2, highest)
    assert rate.mu == 0.25 / max(T.gentle, T.steepest / highest)


def test_mu_never_leaves_its_interval():
    rate = Rate(1.0, 1e-2, 1.0, T)
    feed(rate, 1e-9, 20)
    assert rate.mu == 1e-2
    assert Rate(1.0, 0.0, 1.0, T).least == LEAST
    rate = Rate(0.5, 1e-2, 1.0, T)
    assert feed(rate, -1.0, 3) == 3
    assert rate.mu == 1.0


def test_mu_grows_after_patience_if_momentum_limits_the_rate():
    rate = Rate(0.01, 1e-6, 1.0, T)
    feed(rate, 0.1, 2 * T.patience - 1)
    assert rate.mu == 0.01
    rate = Rate(0.01, 1e-6, 1.0, T)
    feed(rate, 0.1, 2 * T.patience)
    assert rate.mu == pytest.approx(T.grow * 0.01)
    for c in (0.07, 0.2):  # over-damped, or faster than momentum can be
        other = Rate(0.01, 1e-6, 1.0, T)
        feed(other, c, 2 * T.patience)
        assert other.mu <= 0.01


def test_patience_is_not_endless():
    """Seven windows that momentum limits are enough for more of it, whatever the constant is."""
    rate = Rate(0.01, 1e-6, 1.0, T)
    feed(rate, 0.1, 7)
    assert rate.mu > 0.01


def test_a_rise_of_f_restarts_with_a_larger_mu():
    rate = Rate(0.01, 1e-6, 1.0, T)
    assert feed(rate, -0.1, 1) == 1
    assert rate.restarts == 1
    assert rate.mu == pytest.approx(T.grow * 0.01)


def test_no_fall_at_all_says_nothing():
    rate = Rate(0.01, 1e-6, 1.0, T)
    for _ in range(6):
        rate.stepped(rate.left(N))
        assert not rate.saw(1.0, N, 1)
    assert rate.mu == 0.01


def test_what_is_no_step_is_no_part_of_the_rate():
    plain, shifted = (Rate(1.0, 0.0, 1.0, T) for _ in range(2))
    for rate, jump in ((plain, 0.0), (shifted, -5.0)):
        rate.stepped(rate.left(N))
        rate.saw(0.5, N, 1)
        rate.shift(jump)
        rate.stepped(rate.left(N))
        rate.saw(0.2 + jump, N, 1)
    assert plain.mu == pytest.approx(shifted.mu)
    assert plain.mu < 1


@pytest.mark.parametrize("mu", [1.0, 0.04, 1e-4])
def test_a_window_is_a_number_of_steps(mu):
    rate = Rate(mu, 0.0, 1.0, T)
    assert rate.left(N) == math.ceil(T.window / math.sqrt(mu)) * N
    rate.stepped(30)
    assert rate.left(N) == math.ceil(T.window / math.sqrt(mu)) * N - 30
    assert Rate(1.0, 0.0, 1.0, T).left(3) == T.fewest
    rate.resize(2 * N, N)
    assert rate.left(2 * N) == 2 * (math.ceil(T.window / math.sqrt(mu)) * N - 30)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
def test_cutting_a_pass_into_pieces_changes_nothing(loss, seed):
    """Also where sweeps are uneven and some coordinates are left out."""
    p = problem(loss, alpha=1e-4, n=60 + seed)
    whole, cut = (Adaptive(p.form, np.zeros(p.n), np.arange(p.n), p.mu) for _ in range(2))
    rng = np.random.default_rng(seed)
    for k in range(25):
        kept = np.arange(p.n) if k % 3 else np.flatnonzero(rng.random(p.n) < 0.7)
        order = whole.sample(kept).shuffled(rng)
        cut.sample(kept)
        whole.epoch(order)
        for piece in np.array_split(order, 2 + seed % 5):
            cut.epoch(piece)
        assert whole.mu == cut.mu
    np.testing.assert_array_equal(whole.x, cut.x)
