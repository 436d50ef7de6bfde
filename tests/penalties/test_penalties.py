"""Every penalty against the definition of its value, its prox and its strong convexity."""

import inspect
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from apcg import penalties
from apcg.penalties import Penalty

SIZE = 4  # of the vectors of parameters


def custom_value(x, a):
    return a * max(x, 0.0) + 0.5 * x * x if x >= -2.0 else math.inf


def custom_prox(v, step, a):
    # a max(x, 0) + x^2/2 on x >= -2: on each side of 0 a parabola
    right, left = (v - step * a) / (1 + step), v / (1 + step)
    x = right if right > 0 else min(left, 0.0)
    return max(x, -2.0)


def weights(seed):
    return np.random.default_rng(seed).uniform(0.1, 2.0, SIZE)


SCALAR = {
    "Zero": penalties.Zero(),
    "L1": penalties.L1(0.7),
    "L1, vector": penalties.L1(weights(0)),
    "L1, zero": penalties.L1(0.0),
    "L2": penalties.L2(0.7),
    "L2, vector": penalties.L2(weights(1)),
    "ElasticNet": penalties.ElasticNet(1.3, 0.3),
    "ElasticNet, vector": penalties.ElasticNet(weights(2), 0.8),
    "ElasticNet, all L1": penalties.ElasticNet(0.5, 1.0),
    "ElasticNet, all L2": penalties.ElasticNet(0.5, 0.0),
    "Box": penalties.Box(-0.5, 1.5),
    "Box, vectors": penalties.Box(-weights(3), weights(4)),
    "Box, half": penalties.Box(-np.inf, 0.3),
    "Box, mixed": penalties.Box(np.array([-np.inf, 0.0, -1.0, 0.5]), np.inf),
    "Box, a point": penalties.Box(0.25, 0.25),
    "NonNegative": penalties.NonNegative(),
    "Custom": penalties.Custom(custom_value, custom_prox, weights(5), 1.0),
    "Custom, moved": penalties.Custom(
        custom_value, custom_prox, weights(5), 0.5
    ).without_strong_convexity(),
}
BLOCK = {
    "GroupL2": penalties.GroupL2(0.7),
    "GroupL2, vector": penalties.GroupL2(weights(6)),
    "L2Ball": penalties.L2Ball(1.2),
    "L2Ball, vector": penalties.L2Ball(weights(7)),
    "L2Ball, a point": penalties.L2Ball(0.0),
}
ALL = SCALAR | BLOCK

values = st.floats(-10, 10)
# "Custom, moved" has a prox for steps below 1/mu_Psi only, here below 2.
steps = st.floats(-4, 0.2).map(lambda e: 10.0**e)
index = st.integers(0, SIZE - 1)
vectors = st.lists(values, min_size=3, max_size=3).map(np.array)


def convexity(psi: Penalty, i: int) -> float:
    return float(np.broadcast_to(psi.strong_convexity, SIZE)[i])


def point(psi: Penalty, v: np.ndarray, i: int) -> np.ndarray:
    """A point of the domain of psi_i: near v, the projection of v."""
    return np.atleast_1d(psi.prox(v, 1e-12, i))


def test_every_public_penalty_is_here():
    public = {
        c
        for name, c in inspect.getmembers(penalties, inspect.isclass)
        if name in penalties.__all__ and issubclass(c, Penalty) and c is not Penalty
    }
    assert public == {type(psi) for psi in ALL.values()}


@pytest.mark.parametrize("name", SCALAR)
@given(v=values, step=steps, i=index)
def test_prox_is_the_minimiser_found_by_brute_force(name, v, step, i):
    psi = SCALAR[name]
    x = psi.prox(v, step, i)
    assert isinstance(x, float)

    def objective(t):
        return psi.value(t, i) + (t - v) ** 2 / (2 * step)

    # The minimum of a convex function over the domain, bracketed by the projections of far points.
    low, high = psi.prox(-40.0, 1e-12, i), psi.prox(40.0, 1e-12, i)
    if low == high:
        assert x == low
        return
    brute = minimize_scalar(
        objective, bounds=(low, high), method="bounded", options={"xatol": 1e-10, "maxiter": 500}
    )
    best = min(brute.fun, objective(low), objective(high))
    assert objective(x) <= best + 1e-9 * (1 + abs(best))
    # A strongly convex objective: values this close make the points close.
    nearest = min((brute.x, low, high), key=lambda t: abs(t - x))
    assert abs(nearest - x) <= 1e-4 * (1 + abs(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@given(v=vectors, x=vectors, step=steps, i=index)
def test_prox_beats_every_other_point(name, v, x, step, i):
    """p is the prox: psi(x) + |x - v|^2/(2 step) exceeds its value at p by |x - p|^2/(2 step)."""
    psi = ALL[name]
    p = psi.prox(v, step, i)
    assert p.shape == v.shape
    at_p = psi.value(p, i) + np.sum((p - v) ** 2) / (2 * step)
    for other in (point(psi, x, i), (point(psi, x, i) + p) / 2, p + 1e-3 * (point(psi, x, i) - p)):
        at_other = psi.value(other, i) + np.sum((other - v) ** 2) / (2 * step)
        excess = np.sum((other - p) ** 2) / (2 * step)
        assert at_other >= at_p + excess - 1e-9 * (1 + abs(at_other))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@given(v=vectors, w=vectors, step=steps, i=index)
def test_prox_is_firmly_nonexpansive(name, v, w, step, i):
    psi = ALL[name]
    d = psi.prox(v, step, i) - psi.prox(w, step, i)
    assert d @ d <= d @ (v - w) + 1e-12
    mu = convexity(psi, i)  # and a contraction as strong as psi is convex
    assert (1 + mu * step) * (d @ d) <= d @ (v - w) + 1e-9


@pytest.mark.parametrize("name", ALL)
@given(x=vectors, y=vectors, share=st.floats(0, 1), i=index)
def test_strong_convexity(name, x, y, share, i):
    psi = ALL[name]
    mu = convexity(psi, i)
    x, y = point(psi, x, i), point(psi, y, i)
    between = psi.value(point(psi, share * x + (1 - share) * y, i), i)  # up to rounding
    chord = share * psi.value(x, i) + (1 - share) * psi.value(y, i)
    sag = mu / 2 * share * (1 - share) * np.sum((x - y) ** 2)
    assert between <= chord - sag + 1e-9
    assert math.isfinite(chord)


@pytest.mark.parametrize("name", ["L2", "L2, vector", "ElasticNet", "ElasticNet, vector", "Custom"])
def test_declared_strong_convexity_is_not_zero(name):
    psi = SCALAR[name]
    assert np.min(psi.strong_convexity) > 0
    # and it is attained: along this chord the inequality above is an equality
    for i in range(SIZE):
        sag = 0.5 * (psi.value(1.0, i) + psi.value(2.0, i)) - psi.value(1.5, i)
        assert sag == pytest.approx(convexity(psi, i) / 8)


@pytest.mark.slow(but=8)
@pytest.mark.parametrize("name", ALL)
@given(x=vectors, v=vectors, step=steps, i=index)
def test_without_strong_convexity(name, x, v, step, i):
    psi = ALL[name]
    mu, rest = convexity(psi, i), psi.without_strong_convexity()
    assert np.max(rest.strong_convexity) == 0
    x = point(psi, x, i)
    assert rest.value(x, i) == pytest.approx(psi.value(x, i) - mu / 2 * (x @ x), abs=1e-9)
    # prox of psi from that of the rest: psi + |x - v|^2/(2 step) up to a constant
    p = rest.prox(v / (1 + mu * step), step / (1 + mu * step), i)
    np.testing.assert_allclose(p, psi.prox(v, step, i), atol=1e-9)


OUTSIDE = {
    "Box": (1.5 + 1e-9, -0.5 - 1e-9),
    "Box, half": (0.3 + 1e-9, 1e300),
    "Box, a point": (0.2, 0.3),
    "NonNegative": (-1e-300, -1.0),
    "Custom": (-2.1, -1e9),
    "Custom, moved": (-2.1, -1e9),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_value_is_infinite_outside_the_domain(name):
    psi = SCALAR[name]
    for x in OUTSIDE[name]:
        assert psi.value(x, 0) == math.inf
        inside = psi.prox(x, 1e-9, 0)
        assert math.isfinite(psi.value(inside, 0))
        assert psi.value(np.array([inside, x, inside]), 0) == math.inf


def test_ball_is_infinite_outside():
    psi = penalties.L2Ball(weights(8))
    for i, radius in enumerate(weights(8)):
        direction = np.array([0.6, 0.0, -0.8])
        assert psi.value(radius * direction, i) == 0.0
        assert psi.value(radius * (1 + 1e-9) * direction, i) == math.inf
    assert penalties.L2Ball(0.0).value([0.0, 0.0]) == 0.0


@pytest.mark.parametrize("name", SCALAR)
@given(
    v=st.lists(values, min_size=SIZE, max_size=SIZE),
    s=st.lists(steps, min_size=SIZE, max_size=SIZE),
)
def test_all_coordinates_at_once(name, v, s):
    psi = SCALAR[name]
    v, s = np.array(v), np.array(s)
    each = np.array([psi.prox(v[i], s[i], i) for i in range(SIZE)])
    np.testing.assert_array_equal(psi.prox(v, s), each)
    one = np.array([psi.prox(v[i], 0.3, i) for i in range(SIZE)])
    np.testing.assert_array_equal(psi.prox(v, 0.3), one)
    total = sum(psi.value(each[i], i) for i in range(SIZE))
    assert psi.value(each) == pytest.approx(total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_pickling(name):
    psi = ALL[name]
    copy = pickle.loads(pickle.dumps(psi))
    assert type(copy) is type(psi)
    assert repr(copy) == repr(psi)
    np.testing.assert_array_equal(copy.strong_convexity, psi.strong_convexity)
    rng = np.random.default_rng(9)
    for i in range(SIZE):
        v = 3 * rng.standard_normal(3)
        np.testing.assert_array_equal(copy.prox(v, 0.3, i), psi.prox(v, 0.3, i))
        p = psi.prox(v, 0.3, i)
        assert copy.value(p, i) == psi.value(p, i)


def test_nothing_given_is_modified():
    alpha, v = weights(10), np.array([3.0, -1.0, 0.2, 0.0])
    before = alpha.copy(), v.copy()
    for psi in (penalties.L1(alpha), penalties.Box(-alpha, alpha), penalties.GroupL2(alpha)):
        psi.prox(v, 0.5, None if not psi.is_block else 1)
    np.testing.assert_array_equal(alpha, before[0])
    np.testing.assert_array_equal(v, before[1])
    psi = penalties.L1(alpha)
    alpha[:] = 100.0  # nor does psi follow what is done to it afterwards
    assert psi.value(np.ones(SIZE)) == pytest.approx(before[0].sum())
