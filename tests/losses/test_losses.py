"""Every loss against independent checks; one that is registered is found by itself."""

import math
import pickle
import re

import numpy as np
import pytest
from erm_problems import OWN
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from scipy.optimize import minimize_scalar

from apcg import losses

NAMED = [
    losses.Hinge(),
    losses.SmoothedHinge(),
    losses.SmoothedHinge(0.05),
    losses.SmoothedHinge(3.0),
    losses.SquaredHinge(),
    losses.Logistic(),
    losses.Squared(),
    losses.Huber(),
    losses.Huber(0.2),
    losses.EpsilonInsensitive(),
    losses.EpsilonInsensitive(0.0),
    losses.SquaredEpsilonInsensitive(),
    losses.Pinball(),
    losses.Pinball(0.1),
]
PLAIN = NAMED + OWN
LOSSES = PLAIN + [losses.StronglyConvex(loss, 7.0) for loss in PLAIN if 0 < loss.gamma < loss.eta]
SMOOTH = [loss for loss in LOSSES if loss.gamma > 0]
numbers = st.floats(-20, 20)
steps = st.floats(1e-4, 1e4)
every = pytest.mark.parametrize("loss", LOSSES, ids=repr)
smooth = pytest.mark.parametrize("loss", SMOOTH, ids=repr)


def labels(loss):
    return (None, -1.0, 1.0) if loss.margin else (None, -0.7, 2.5)


def slopes(loss, y, t):
    """A dual value u in the domain of phi*, from t in [0, 1]."""
    low, high = (max(min(v, 30.0), -30.0) for v in loss.domain)
    x = low + t * (high - low)
    return -x * (y if loss.margin and y is not None else 1.0)


def test_every_named_loss_is_tested():
    of_one = (*losses.names(margin=True), *losses.names(margin=False))
    named = [losses.by_name(name) for name in of_one]
    assert {type(loss) for loss in NAMED} == {type(loss) for loss in named}
    assert set(named) <= set(NAMED)
    assert {"hinge", "logistic", "squared"} <= set(of_one)


@every
@given(z=numbers, t=st.floats(0, 1))
def test_fenchel_young(loss, z, t):
    for y in labels(loss):
        u = slopes(loss, y, t)
        total = loss.value(z, y) + loss.conjugate(u, y)
        assert total >= u * z - 1e-10 * (1 + abs(u * z))


@every
@given(z=numbers)
def test_fenchel_young_is_an_equality_at_the_derivative(loss, z):
    for y in labels(loss):
        u = loss.derivative(z, y)
        total = loss.value(z, y) + loss.conjugate(u, y)
        assert total == pytest.approx(u * z, abs=1e-10 * (1 + abs(u * z)))


@smooth
@given(z=numbers)
def test_derivative_is_the_numerical_one(loss, z):
    h = 1e-5
    for y in labels(loss):
        numerical = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
        # a central difference of a 1/gamma-smooth function is off by h/(2 gamma) at the most
        assert loss.derivative(z, y) == pytest.approx(numerical, abs=h / loss.gamma + 1e-8)


@every
@given(z=numbers, other=numbers)
def test_derivative_is_a_subgradient(loss, z, other):
    for y in labels(loss):
        below = loss.value(z, y) + loss.derivative(z, y) * (other - z)
        assert loss.value(other, y) >= below - 1e-9 * (1 + abs(below))


@every
@examples(30)
@given(t=st.floats(0.001, 0.999))
def test_conjugate_is_the_numerical_maximum(loss, t):
    for y in labels(loss):
        u = slopes(loss, y, t)
        best = minimize_scalar(
            lambda z: loss.value(z, y) - u * z,
            bounds=(-300, 300),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert loss.conjugate(u, y) == pytest.approx(-best.fun, abs=2e-5 * (1 + abs(best.fun)))


@every
@given(v=numbers, step=steps, t=st.floats(0, 1))
def test_prox_of_the_conjugate_beats_every_other_point(loss, v, step, t):
    for y in labels(loss):
        u = loss.prox_conjugate(v, step, y)

        def objective(w):
            return loss.conjugate(w, y) + (w - v) ** 2 / (2 * step)

        at = objective(u)
        assert math.isfinite(at)
        for other in (slopes(loss, y, t), u + 1e-3, u - 1e-3, u * (1 + 1e-6), 0.0):
            assert at <= objective(other) + 1e-10 * (1 + abs(at))


@every
@given(v=numbers, step=steps)
def test_prox_of_the_conjugate_satisfies_moreau(loss, v, step):
    """u = prox(v) iff (v - u)/step is a subgradient of phi* at u: Fenchel-Young is tight."""
    for y in labels(loss):
        u = loss.prox_conjugate(v, step, y)
        z = (v - u) / step
        gap = loss.value(z, y) + loss.conjugate(u, y) - u * z
        scale = 1 + abs(v) + abs(u * z) + 1 / step
        assert gap == pytest.approx(0.0, abs=1e-11 * scale * (1 + abs(z)))


@every
@given(v=numbers, step=steps)
def test_dual_prox_minimises_psi(loss, v, step):
    """psi(x) = phi*(-x) - (gamma/2) x^2, what Algorithm 5 takes the prox of."""
    x = float(loss.arrays.dual_prox(np.array([v]), np.array([step]))[0])

    def objective(w):
        return loss.conjugate(-w) - 0.5 * loss.gamma * w**2 + (w - v) ** 2 / (2 * step)

    at = objective(x)
    assert math.isfinite(at)
    for other in (x + 1e-4, x - 1e-4, x * 0.999, 0.5 * x, 0.5 * x + 0.5, v):
        assert at <= objective(other) + 1e-9 * (1 + abs(at) + v**2 / step)


@smooth
def test_gamma_is_the_best_smoothness_constant(loss):
    """Second differences of phi reach 1/gamma and never exceed it."""
    z, h = np.linspace(-6, 6, 40_001), 1e-3
    second = (loss.value(z + h) - 2 * loss.value(z) + loss.value(z - h)) / h**2
    assert second.max() <= 1 / loss.gamma + 1e-6
    assert second.max() >= (1 - 1e-3) / loss.gamma
    assert second.min() >= 1 / loss.eta - 1e-6
    if math.isfinite(loss.eta):
        wide = np.array([-1e3, -60.0, 60.0, 1e3, *z])
        flat = (loss.value(wide + 0.1) - 2 * loss.value(wide) + loss.value(wide - 0.1)) / 0.01
        assert flat.min() == pytest.approx(1 / loss.eta, rel=1e-4)


@every
@given(t=st.floats(0, 1), s=st.floats(0, 1))
def test_conjugate_is_gamma_strongly_convex(loss, t, s):
    u, w = slopes(loss, None, t), slopes(loss, None, s)
    middle = loss.conjugate((u + w) / 2)
    chord = (loss.conjugate(u) + loss.conjugate(w)) / 2 - loss.gamma / 8 * (u - w) ** 2
    assert middle <= chord + 1e-10 * (1 + abs(chord))


@pytest.mark.parametrize("loss", PLAIN, ids=repr)
def test_domain_edges(loss):
    for edge, outward in zip(loss.domain, (-1.0, 1.0), strict=True):
        if math.isfinite(edge):
            assert math.isfinite(loss.conjugate(-edge))
            assert loss.conjugate(-np.nextafter(edge, outward * np.inf)) == math.inf
            assert loss.conjugate(-(edge + outward)) == math.inf
    assert math.isnan(loss.value(math.nan)) or loss.name == "hinge"
    assert not math.isfinite(loss.conjugate(math.nan))


@every
@pytest.mark.parametrize("m", [-1e4, 1e4, -1e300, 1e300, 0.0])
def test_huge_margins_do_not_overflow_to_nan(loss, m):
    assert not math.isnan(loss.value(m))
    assert not math.isnan(loss.derivative(m))
    assert loss.value(m) >= 0


def test_logistic_prox_from_a_guess():
    """As the kernels take it: the same root to rounding, and found from all guesses nearby."""
    loss, rng, n = losses.by_name("logistic").arrays, np.random.default_rng(0), 20_000
    step = 10 ** rng.uniform(-6, -0.61, n)  # step <= 1/4
    eta, away = rng.normal(0, 4, n), 10 ** rng.uniform(-9, 1, n)
    x, near = 1 / (1 + np.exp(-eta)), 1 / (1 + np.exp(-(eta + away * rng.normal(0, 1, n))))
    v = step * eta + (1 - 4 * step) * x
    found = loss.dual_prox(v, step, near)
    arrived = np.isfinite(found)
    assert arrived[away < 0.1].all()
    exact = loss.dual_prox(v, step)
    np.testing.assert_allclose(found[arrived], exact[arrived], rtol=1e-14, atol=1e-300)
    assert np.isnan(loss.dual_prox(v[:2], step[:2], np.array([0.0, 1.0]))).all()


def test_logistic_at_the_edges():
    loss = losses.Logistic()
    assert loss.value(1e4) == 0.0
    assert loss.value(-1e4) == 1e4
    assert loss.value(40.0) == pytest.approx(math.exp(-40), rel=1e-12)  # not 0, not log1p's 1.0
    assert loss.derivative(-1e4) == -1.0
    assert loss.conjugate(0.0) == loss.conjugate(-1.0) == 0.0
    assert loss.conjugate(-1e-300) == pytest.approx(1e-300 * (math.log(1e-300) - 1), rel=1e-9)


@examples(300)
@given(v=st.floats(-1e6, 1e6), log_step=st.floats(-12, 8))
def test_logistic_prox_is_a_root_to_the_last_digits(v, log_step):
    """x = sigmoid(eta) solves eta + (1/step - 4) x = v/step, where the logit can be formed."""
    step = 10.0**log_step
    x = float(losses.Logistic().arrays.dual_prox(np.array([v]), np.array([step]))[0])
    assert 0 <= x <= 1
    if 1e-300 < x < 1 - 1e-6:
        eta = math.log(x) - math.log1p(-x)
        wanted = v / step - (1 / step - 4) * x
        scale = abs(v / step) + abs((1 / step - 4) * x) + abs(eta) + 1
        assert eta == pytest.approx(wanted, abs=1e-12 * scale)


def test_tiny_gamma_tends_to_the_hinge():
    m = np.linspace(-3, 3, 61)
    tiny, hinge = losses.SmoothedHinge(1e-12), losses.Hinge()
    np.testing.assert_allclose(tiny.value(m), hinge.value(m), atol=1e-12)
    np.testing.assert_allclose(tiny.conjugate(-0.3), hinge.conjugate(-0.3), atol=1e-12)


@pytest.mark.parametrize("loss", PLAIN, ids=repr)
@given(x=st.floats(0, 1), m=numbers)
def test_nearest_slope_of_the_conjugate(loss, x, m):
    """a is in the subdifferential of phi* at -x, so Fenchel-Young is tight, and it is nearest."""
    low, high = (max(min(v, 5.0), -5.0) for v in loss.domain)
    for value in (low + x * (high - low), low, high, 0.0):
        a = float(loss.nearest_conjugate_slope(np.array([value]), np.array([m]))[0])
        if not math.isfinite(a):
            assert loss.name == "logistic"
            assert value in (0.0, 1.0)
            continue
        slack = loss.value(a) + loss.conjugate(-value) + value * a
        assert slack == pytest.approx(0.0, abs=1e-9 * (1 + abs(a)))
        if loss.derivative(m) == -value:  # m itself is such a slope
            assert a == pytest.approx(m, abs=1e-9 * (1 + abs(m)))


@every
def test_pickle_repr_equality(loss):
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    assert hash(again) == hash(loss)
    z = np.linspace(-3, 3, 7)
    np.testing.assert_array_equal(again.value(z), loss.value(z))
    assert type(loss).__name__ in repr(loss)
    assert loss != losses.SmoothedHinge(0.123)


@every
def test_shapes_are_kept(loss):
    z = np.linspace(-3, 3, 6).reshape(2, 3)
    assert loss.value(z).shape == loss.derivative(z).shape == (2, 3)
    assert loss.prox_conjugate(z, 0.5).shape == loss.conjugate(z).shape == (2, 3)
    assert np.ndim(loss.value(0.3)) == np.ndim(loss.prox_conjugate(0.3, 1.0)) == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: losses.SmoothedHinge(0.0), "gamma must be in (0, inf), got 0"),
        (lambda: losses.SmoothedHinge(-1), "gamma"),
        (lambda: losses.Huber(math.nan), "delta"),
        (lambda: losses.EpsilonInsensitive(-0.1), "epsilon must be in [0, inf), got -0.1"),
        (lambda: losses.StronglyConvex(losses.Hinge(), 1.0), "must be smooth"),
        (lambda: losses.StronglyConvex(losses.Logistic(), 0.0), "eta"),
        (lambda: losses.by_name("logisitc"), "Did you mean 'logistic'?"),
        (lambda: losses.by_name("x"), "'hinge', 'smoothed_hinge', 'squared_hinge'"),
    ],
)
def test_bad_parameters(make, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        make()
