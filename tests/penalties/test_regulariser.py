"""The interval family of g against brute force, and its values against those of the kernels."""

import math
import pickle
import re

import numpy as np
import pytest
from erm_problems import data
from hypothesis import assume, example, given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, penalties, solve
from apcg._kernels.losses.terms import Outer, Psi
from apcg.penalties import registry
from apcg.penalties.interval import Interval

inf = math.inf
#: (a, b, lower, upper) of one feature: L2, L1, elastic net, boxes, one side, bounds without zero.
SCALAR = [
    (0.0, 2.0, -inf, inf),
    (0.7, 0.0, -inf, inf),
    (0.7, 0.5, -inf, inf),
    (0.0, 0.0, -1.5, 0.5),
    (0.3, 0.0, -1.5, 0.5),
    (0.3, 2.0, -1.5, 0.5),
    (0.4, 0.0, 0.0, inf),
    (0.4, 0.0, -inf, 0.0),
    (0.4, 1.0, 0.0, inf),
    (0.0, 0.0, 0.0, inf),
    (0.2, 0.0, 1.0, 2.0),
    (0.2, 0.6, 1.0, 2.0),
    (0.2, 0.0, -3.0, -1.0),
    (0.0, 0.0, 0.5, 0.5),
    (0.0, 0.0, -inf, inf),
]
one = pytest.mark.parametrize("theta", SCALAR, ids=str)
numbers = st.floats(-8, 8)


def make(*rows):
    """g with these parameters, one row for each feature."""
    return Interval(*np.array(rows, dtype=float).T.copy())


def g_of(theta, w):
    a, b, lower, upper = theta
    return np.where((w < lower) | (w > upper), inf, a * np.abs(w) + b / 2 * np.square(w))


def conjugate_of(theta, v):
    """max_w v w - g(w): the function is concave, so infinite if it still rises far out."""
    a, b, lower, upper = theta
    if b == 0 and ((upper == inf and v > a) or (lower == -inf and v < -a)):
        return inf
    w = np.linspace(max(lower, -1e3), min(upper, 1e3), 20_001)
    spots = [0.0, lower, upper] + ([(v - a) / b, (v + a) / b] if b else [])
    w = np.append(w, [t for t in spots if lower <= t <= upper and math.isfinite(t)])
    return float(np.max(v * w - g_of(theta, w)))


@one
@given(w=numbers)
def test_value(theta, w):
    g = make(theta)
    at = g.value(np.array([w]))
    assert at == pytest.approx(float(g_of(theta, w)), rel=1e-15)
    assert g.contains(np.array([w])) == math.isfinite(at)
    near = g.clip(np.array([w]))
    assert math.isfinite(g.value(near))
    assert abs(near[0] - w) <= min(abs(w - t) for t in np.clip([w, 0.0, 1e9, -1e9], *theta[2:]))


@one
@given(v=numbers)
def test_conjugate_is_the_maximum_and_is_attained(theta, v):
    g = make(theta)
    assume(v == 0 or abs(v) > 1e-9)
    at, w = g.conjugate(np.array([v])), g.conjugate_gradient(np.array([v]))
    exact = conjugate_of(theta, v)
    assert at == pytest.approx(exact, rel=1e-9, abs=1e-12)
    if math.isfinite(at):
        assert v * w[0] - g.value(w) == pytest.approx(at, rel=1e-12, abs=1e-15)
    else:
        assert abs(w[0]) == inf


@one
@given(v=numbers)
def test_excess_says_where_the_conjugate_is_infinite(theta, v):
    g = make(theta)
    at = np.array([v])
    times = g.excess(at)
    assert (times <= 1) == math.isfinite(g.conjugate(at))
    if 1 < times < inf:
        assert math.isfinite(g.conjugate(at / (times * (1 + 1e-15))))
        assert not math.isfinite(g.conjugate(at / times * (1 + 1e-9)))
    if theta[1] > 0:
        assert times == 0


@examples(300)
@given(a=st.floats(1e-3, 1e3), steps=st.integers(-3, 3))
@example(a=math.nextafter(2.0, 0.0), steps=1)
def test_excess_and_conjugate_agree_to_the_last_bit(a, steps):
    """v/a is not rounded to 1 where v is above a, however little."""
    v = a
    for _ in range(abs(steps)):
        v = math.nextafter(v, inf if steps > 0 else 0.0)
    g = make((a, 0.0, -inf, inf), (a, 0.0, 0.0, inf))
    for point in ([v, 0.0], [-v, 0.0], [0.0, v]):
        at = np.array(point)
        assert (g.excess(at) > 1) == (v > a) == (g.conjugate(at) == inf)
    assert g.excess(np.array([0.0, -2 * v])) == 0


@pytest.mark.parametrize("over", [1e-4, 1e-6, 1e-9, 1e-12])
def test_a_dual_point_a_little_outside_the_domain_is_infeasible(over):
    """|v_j| = a_j (1 + 1e-6) for one feature: D is -inf there, and finite at the border."""
    X, y = data("squared", sparse=False)
    p = ERM(X, y, "squared", penalties.L1(np.linspace(0.5, 2, 12)), 0.1)
    x = np.random.default_rng(0).standard_normal(40)
    x = x / (p.g.excess(p.combine(x)) * (1 + 1e-14))
    assert math.isfinite(p.dual(x))
    assert p.dual(x * (1 + over)) == -inf


@one
@given(v=numbers, step=st.floats(1e-3, 1e3), other=numbers)
def test_prox_minimises(theta, v, step, other):
    g = make(theta)
    for whole in (True, False):
        prox = g.prox if whole else g.prox_without_square
        kept = theta if whole else (theta[0], 0.0, *theta[2:])
        w = prox(np.array([v]), step)[0]

        def objective(t):
            return float(g_of(kept, t)) + (t - v) ** 2 / (2 * step)

        at = objective(w)
        assert math.isfinite(at)
        for t in (other, 0.0, v, w + 1e-4, w - 1e-4, *theta[2:]):
            if math.isfinite(t):
                assert at <= objective(t) + 1e-12 * (1 + abs(at))


@one
@given(v=numbers, step=st.floats(1e-2, 1e2))
def test_moreau(theta, v, step):
    """w = prox(v) iff (v - w)/step is a subgradient at w: Fenchel-Young is tight."""
    g = make(theta)
    w = g.prox(np.array([v]), step)
    u = (np.array([v]) - w) / step
    if (times := g.excess(u)) > 1:  # by a rounding
        assert times <= 1 + 1e-12
        u = u / (times * (1 + 1e-15))
    total = g.value(w) + g.conjugate(u) - float(u @ w)
    assert total == pytest.approx(0.0, abs=1e-9 * (1 + abs(v) ** 2 / step))


def test_features_differ_and_vectors_are_sums():
    rows = SCALAR[:-1]
    g, single = make(*rows), [make(row) for row in rows]
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = g.clip(3 * rng.standard_normal(len(rows)))
        v = rng.standard_normal(len(rows)) * 0.2
        step = 10 ** rng.uniform(-2, 2)
        parts = [(g1, w[[k]], v[[k]]) for k, g1 in enumerate(single)]
        assert g.value(w) == pytest.approx(sum(g1.value(t) for g1, t, _ in parts), rel=1e-14)
        conjugates = [g1.conjugate(u) for g1, _, u in parts]
        assert g.conjugate(v) == pytest.approx(sum(conjugates), rel=1e-13)
        assert g.excess(v) == max(g1.excess(u) for g1, _, u in parts)
        for name in ("conjugate_gradient", "clip"):
            each = [getattr(g1, name)(u)[0] for g1, _, u in parts]
            np.testing.assert_array_equal(getattr(g, name)(v), each)
        np.testing.assert_array_equal(g.prox(v, step), [g1.prox(u, step)[0] for g1, _, u in parts])


@pytest.mark.parametrize(
    "penalty",
    ["l1", "elasticnet", penalties.Box(-0.5, 2.0), penalties.L2(np.linspace(0.5, 2, 12))],
    ids=str,
)
def test_the_value_reported_is_that_of_the_kernels(penalty):
    X, y = data("squared")
    p = ERM(X, y, "squared", penalty, 0.1)
    theta, rng = p.g.theta, np.random.default_rng(3)
    for _ in range(20):
        w = p.g.clip(rng.standard_normal(12))
        assert p.g.value(w) == pytest.approx(Psi("interval", theta).value(w), rel=1e-14)
        v = 0.3 * rng.standard_normal(12)
        assert p.g.conjugate(v) == Outer("support", theta=theta).value(v)
        if p.dual_form:
            x = rng.standard_normal(40)
            assert p.form.value(x) == pytest.approx(-p.dual(x), rel=1e-13)
        else:
            assert p.form.value(w) == pytest.approx(p.primal(w), rel=1e-13)
            step = np.array([0.3])
            kernels = p.form.psi.terms.prox(w, step)  # psi is alpha times g without its square
            np.testing.assert_array_equal(kernels, p.g.prox_without_square(w, 0.3 * p.alpha))


def test_sums_over_a_million_features():
    rng, d = np.random.default_rng(0), 1_000_000
    g = Interval(rng.random(d), rng.random(d) + 0.1, np.full(1, -inf), np.full(1, inf))
    w = rng.standard_normal(d)
    exact = math.fsum(g.a * np.abs(w) + 0.5 * g.b * w * w)
    assert abs(g.value(w) - exact) <= 1e-15 * exact
    best = g.conjugate_gradient(w)
    exact = math.fsum(w * best - g.a * np.abs(best) - 0.5 * g.b * best * best)
    assert abs(g.conjugate(w) - exact) <= 1e-15 * exact


def test_what_is_known_of_it():
    l2, l1 = make((0, 2.0, -inf, inf)), make((1.0, 0, -inf, inf))
    box, net = make((0, 1.0, 0, inf)), make((0.5, 0.5, -inf, inf))
    own = make((0, 1.0, -inf, inf), (0, 2.0, -inf, inf))
    assert [g.strong_convexity for g in (l2, l1, box, net, own)] == [2.0, 0.0, 1.0, 0.5, 1.0]
    assert [g.is_l2 for g in (l2, l1, box, net, own)] == [True, False, False, False, False]
    assert [g.is_quadratic for g in (l2, l1, box, net, own)] == [True, False, False, False, True]
    assert not any(g.leaves_free for g in (l2, l1, box, net, own))
    assert make((0, 0, 0.0, inf)).leaves_free
    assert make((1.0, 0, -inf, inf), (0, 0, -inf, inf)).leaves_free
    assert not make((0, 0, 0.0, 1.0)).leaves_free
    assert all(g.separable and g.splits_exactly for g in (l2, l1, box, net, own))


@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_extended_by_a_feature_without_bounds(strength):
    for rows in (SCALAR[:1], SCALAR[5:6], SCALAR[:9]):
        g = make(*rows)
        d = 9 if len(rows) == 1 else len(rows)
        more = g.extended(d, strength)
        w = np.append(g.clip(np.linspace(-1, 1, d)), 3.0)
        assert more.value(w) == pytest.approx(g.value(w[:-1]) + strength / 2 * 9, rel=1e-14)
        np.testing.assert_array_equal(more.prox(w, 0.5)[:-1], g.prox(w[:-1], 0.5))
        assert more.prox(w, 0.5)[-1] == pytest.approx(3 / (1 + 0.5 * strength))


def test_pickle_makes_the_compiled_parts_again():
    g = make((0.3, 0.5, -1.0, 2.0), (0.7, 0.0, -inf, inf))
    w = np.array([0.5, -0.4])
    before = g.value(w), g.conjugate(w)
    again = pickle.loads(pickle.dumps(g))
    assert (again.value(w), again.conjugate(w)) == before
    X, y = data("squared")
    p = pickle.loads(pickle.dumps(ERM(X, y, "squared", "l1", 0.1)))
    assert solve(p, random_state=0).converged


@pytest.mark.parametrize(
    ("penalty", "kind", "text"),
    [
        (
            penalties.GroupL2(1.0),
            TypeError,
            "of coordinates (L1, L2, ElasticNet, ...), got Group",
        ),
        (penalties.GroupL2(1.0), TypeError, "over the groups you give it"),
        (penalties.L2Ball(1.0), TypeError, "which is of blocks"),
        (penalties.L1, ValueError, "Make an object of the class: L1(...)"),
        ("group", ValueError, "penalty must be one of 'l2', 'l1', 'elasticnet'"),
    ],
)
def test_what_is_not_a_penalty(penalty, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        registry.of(penalty, 0.5, False, 12)
