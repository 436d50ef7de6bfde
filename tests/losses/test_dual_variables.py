"""The dual variables of every loss: clip, room, dual_of, resting, gap_share, and exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from erm_problems import LOSSES, OWN, data
from hypothesis import assume, given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, losses

EVERY = [
    *LOSSES.values(),
    *OWN,
    losses.EpsilonInsensitive(0.0),
    losses.StronglyConvex("logistic", 7.0),
    losses.StronglyConvex(OWN[0], 0.5),
]
every = pytest.mark.parametrize("loss", EVERY, ids=repr)
ONE = np.ones(1)
numbers = st.floats(-9, 9)
weights = st.sampled_from([0.0, 1.0, 1e-3, 0.3, 1 / 3, 7.7])


def conjugate(loss, x, s):
    """s phi*(-x/s), with its limit at s = 0, from the definition; a rounding of x is let pass."""
    if s == 0:
        return 0.0 if x == 0 else math.inf
    low, high = loss.domain
    u = x / s
    near = min(max(u, low), high)
    return s * float(loss.conjugate(-near)) if abs(u - near) <= 1e-15 * abs(u) else math.inf


def bounds(loss):
    return [b for b in loss.domain if math.isfinite(b)]


# ---- clip -----------------------------------------------------------------------------------


@every
@given(x=numbers, s=weights, other=numbers)
def test_clip_is_the_nearest_feasible_point(loss, x, s, other):
    found = float(loss.clip(np.array([x]), None, np.array([s]))[0])
    assert math.isfinite(conjugate(loss, found, s))
    if math.isfinite(conjugate(loss, x, s)) and s > 0:
        assert found == pytest.approx(x, rel=1e-15)
    for point in (other, *(s * b for b in bounds(loss)), 0.0):
        if math.isfinite(conjugate(loss, point, s)):
            assert abs(found - x) <= abs(point - x) + 1e-15 * abs(x)


@every
def test_clip_leaves_what_is_inside_as_it_is(loss):
    rng = np.random.default_rng(0)
    low, high = np.clip(loss.domain, -5, 5)
    s = rng.uniform(0.1, 3, 1000)
    x = s * rng.uniform(low + 1e-9, high - 1e-9, 1000)
    np.testing.assert_array_equal(loss.clip(x, None, s), x)
    np.testing.assert_array_equal(loss.clip(x / s, None, ONE), x / s)
    assert not loss.clip(x, None, np.zeros(1000)).any()


# ---- room -----------------------------------------------------------------------------------


@pytest.mark.slow(but=6)
@every
@given(x=numbers, s=weights)
def test_room_stays_in_the_domain_and_off_the_kink(loss, x, s):
    x = loss.clip(np.array([x]), None, np.array([s]))
    room = loss.room(x, np.array([s]))
    assert room[0] >= 0
    for new in (x - room, x + room):
        inside = loss.clip(new, None, np.array([s]))
        np.testing.assert_allclose(new, inside, rtol=1e-14, atol=1e-15 * (1 + abs(x[0])))
    if loss.conjugate_kink:
        assert room[0] <= abs(x[0]) * (1 + 1e-15) + 1e-300


@every
@given(u=numbers, away=st.floats(1e-9, 1), s=weights)
def test_room_is_smooth_and_goes_with_the_weight(loss, u, away, s):
    u, other = loss.clip(np.array([u]), None, ONE), loss.clip(np.array([u + away]), None, ONE)
    change = abs(loss.room(u, ONE) - loss.room(other, ONE))[0]
    assert change <= abs(u - other)[0] * (1 + 1e-9) + 1e-15
    weighted = loss.room(s * u, np.array([s]))
    np.testing.assert_allclose(weighted, s * loss.room(u, ONE), rtol=1e-9, atol=1e-14)


@every
def test_room_is_zero_at_bounds_and_kinks_and_nowhere_else(loss):
    ends = np.array([*bounds(loss), *([0.0] if loss.conjugate_kink else [])])
    np.testing.assert_array_equal(loss.room(ends, ONE), np.zeros(ends.size))
    inside = np.linspace(*np.clip(loss.domain, -6, 6), 1001)
    inside = inside[~np.isin(inside, ends)]
    inside = inside[(abs(inside[:, None] - ends) > 1e-12).all(axis=1)]
    assert np.all(loss.room(inside, ONE) > 0)
    # a kink is one of phi*: its slope jumps there
    if loss.domain[0] < 0 < loss.domain[1]:
        h = 1e-6
        above, below = ((loss.conjugate(-t) - loss.conjugate(0.0)) / t for t in (h, -h))
        assert loss.conjugate_kink == (above - below > 0.1)
    else:
        assert not loss.conjugate_kink


# ---- dual_of and gap_share ------------------------------------------------------------------


@every
@given(z=numbers, s=weights, label=st.floats(-3, 3))
def test_dual_of_is_the_slope_in_the_prediction(loss, z, s, label):
    y = (1.0 if label > 0 else -1.0) if loss.margin else label
    x = loss.duals(np.array([z]), np.array([y]), np.array([s]))
    sign = y if loss.margin else 1.0
    assert sign * x[0] == pytest.approx(-s * loss.derivative(z, y), abs=1e-14)
    m = loss.argument(np.array([z]), np.array([y]))
    np.testing.assert_allclose(loss.prediction(m, y), z, atol=1e-14)
    np.testing.assert_allclose(loss.duals(m, None, np.array([s])), x, rtol=1e-15, atol=1e-300)
    # Fenchel-Young is tight there
    assert loss.gap_share(m, x, np.array([s]))[0] <= 1e-12 * (1 + abs(s * z) ** 2)


@every
@given(m=numbers, x=numbers, s=weights)
def test_gap_share_is_the_fenchel_young_gap(loss, m, x, s):
    x = float(loss.clip(np.array([x]), None, np.array([s]))[0])
    share = loss.gap_share(np.array([m]), np.array([x]), np.array([s]))[0]
    phi = s * float(loss.value(m))
    expected = phi + conjugate(loss, x, s) + m * x
    assert share >= 0
    assert share == pytest.approx(max(expected, 0), rel=1e-12, abs=1e-12 * (1 + phi + abs(m * x)))


@every
def test_gap_share_outside_the_domain_and_at_weight_zero(loss):
    m = np.array([0.3, 0.3])
    shares = loss.gap_share(m, np.array([0.0, 1e-9]), np.zeros(2))
    np.testing.assert_array_equal(shares, [0.0, math.inf])
    for bound in bounds(loss):
        s, outward = np.array([0.3, 0.3]), math.copysign(1e-9, bound if bound else -1.0)
        x = s * np.array([bound, bound + outward])
        if bound == 0 and loss.domain[1] == 0:
            continue
        assert list(np.isfinite(loss.gap_share(m, x, s))) == [True, False]


@every
def test_the_shares_add_up_to_the_gap(loss):
    """P(omega(x)) - D(x) = (1/n) sum_i share_i, because g(w) + g*(v) = <w, v> for that w."""
    rng = np.random.default_rng(5)
    X, y = data("hinge" if loss.margin else "huber")
    s = rng.uniform(0.2, 3, 40) * (rng.random(40) < 0.8)
    p = ERM(X, y, loss, alpha=0.1, sample_weight=s)
    x = p.weights * rng.uniform(*np.clip(loss.domain, -2, 2), 40)
    w = p.omega(x)
    shares = loss.gap_share(loss.argument(p.predictions(w), y), x, p.weights)
    assert not shares[s == 0].any()
    assert shares.sum() / p.n == pytest.approx(p.primal(w) - p.dual(x), rel=1e-9)


# ---- resting --------------------------------------------------------------------------------


@every
@given(m=numbers, delta=st.floats(1e-6, 3))
def test_resting_is_a_constant_slope(loss, m, delta):
    (mask,), (value,) = loss.resting(np.array([m]), delta)
    around = m + delta * np.linspace(-1, 1, 201)
    x = -loss.arrays.derivative(around)
    assert mask == (bool(np.all(x == x[0])) and loss.rests)
    if mask:
        assert value == x[0]


@every
def test_rests_says_whether_any_margin_rests(loss):
    m = np.linspace(-20, 20, 4001)
    mask, values = loss.resting(m, 1e-3)
    assert mask.any() == loss.rests
    assert set(values[mask]) <= {*loss.domain, 0.0}
    # a tiny delta on large numbers makes no difference of derivatives: that is not resting
    far = np.array([1e9, -1e9])
    mask, values = loss.resting(far, 1e-12)
    for at_rest, value in zip(mask, values, strict=True):
        assert not at_rest or value in (*loss.domain, 0.0)


def test_what_rests():
    assert losses.Hinge().rests
    assert losses.SquaredHinge().rests
    assert losses.Huber().rests
    assert losses.EpsilonInsensitive(0.0).rests
    assert not losses.Logistic().rests
    assert not losses.Squared().rests
    assert not losses.StronglyConvex("huber", 1.0).rests
    mask, value = losses.EpsilonInsensitive(0.5).resting(np.array([0.0, 0.45, 1.0, -3.0]), 0.1)
    np.testing.assert_array_equal(mask, [True, False, True, True])
    np.testing.assert_array_equal(value[mask], [0.0, -1.0, 1.0])
    # no margin of the logistic loss rests, though its slope underflows
    assert not losses.Logistic().resting(np.array([1e4, -1e4]), 1.0)[0].any()


# ---- the sums of P and D ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huber", "logistic"])
def test_dual_points_that_are_a_little_outside(loss):
    """x made as s times a bound is feasible whatever its rounding; a millionth more is not."""
    X, y = data(loss)
    s = np.random.default_rng(0).uniform(0.2, 3, 40)
    s[7] = 0
    p = ERM(X, y, LOSSES[loss], alpha=0.1, sample_weight=s)
    bound = bounds(p.loss)[-1]
    x = p.weights * bound
    assert math.isfinite(p.dual(x))
    outward = 1.0 if bound == p.loss.domain[1] else -1.0
    for excess in (1e-6, 5e-7, 1e-9, 1e-14):
        further = x.copy()
        further[3] += outward * excess * p.weights[3]
        assert p.dual(further) == -math.inf
    outside = x.copy()
    outside[7] = outward * 1e-300
    assert p.dual(outside) == -math.inf


@examples(200)
@given(s=st.floats(1e-3, 1e3), bound=st.floats(1e-3, 1e3))
def test_a_weight_times_a_bound_is_feasible(s, bound):
    assume(s != 1)
    loss = losses.Huber(bound)
    x, s = np.array([s * bound, -s * bound]), np.array([s, s])
    assert math.isfinite(loss.arrays.total_conjugate(x, s))
    assert loss.arrays.total_conjugate(x * (1 + 1e-6), s) == math.inf


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge", "huber"])
def test_sums_over_a_million_samples(loss):
    """A gap of 1e-14 P is a difference of two sums: each must be right to its last digits."""
    loss, n = LOSSES[loss], 1_000_000
    rng = np.random.default_rng(1)
    t, y = 3 * rng.standard_normal(n), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    s = rng.uniform(0.01, 2, n)
    exact = math.fsum(s * loss.value(loss.argument(t, y)))
    assert abs(loss.arrays.total(t, y, loss.margin, s) - exact) <= 1e-15 * exact
    x = loss.duals(t, y, s)
    terms = s * loss.arrays.conjugate(x / s)
    scale = math.fsum(abs(terms))
    assert abs(loss.arrays.total_conjugate(x, s) - math.fsum(terms)) <= 1e-15 * scale


def test_the_gap_of_a_million_samples():
    """P - D at a pair of points, against rational sums of the same numbers."""
    n, d = 1_000_000, 2
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    p = ERM(X, y, "squared_hinge", alpha=1e-3)
    w = np.array([0.7, 0.1])
    x, v = p.dual_point(p.predictions(w))
    terms = p.loss.value(p.predictions(w), y)
    assert abs(p.primal(w) - float(Fraction(math.fsum(terms)) / n) - 5e-4 * (w @ w)) <= (
        1e-15 * p.primal(w)
    )
    conjugates = p.loss.arrays.conjugate(x)
    D = -math.fsum(conjugates) / n - p.alpha * p.g.conjugate(v)
    assert p.dual_from(x, v) == pytest.approx(D, abs=1e-15 * p.primal(w))
