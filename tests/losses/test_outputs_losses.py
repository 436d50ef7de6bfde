"""Losses over K outputs against brute force: values, gradients, conjugates, proxes, domains."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from apcg import losses
from apcg.losses import Columns, MulticlassHinge, Multinomial, OutputsLoss

CLASSES = [Multinomial(), MulticlassHinge(), MulticlassHinge(0.3), MulticlassHinge(2.0)]
SUMS = [Columns(losses.Squared()), Columns(losses.Huber(0.7)), Columns(losses.SmoothedHinge(0.5))]
every = pytest.mark.parametrize("loss", CLASSES, ids=repr)
seeds = st.integers(0, 10**6)


def case(seed):
    """Logits, a label, a point of the simplex; small, large, with ties, with one that dominates."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 51))
    z = rng.standard_normal(K) * 10.0 ** rng.uniform(-2, 3)
    kind = rng.integers(4)
    if kind == 0:
        z = np.round(z)  # ties
    if kind == 1:
        z[rng.integers(K)] += 1e3
    pi = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-2, 1)))
    return z[None], int(rng.integers(K)), pi[None], rng


def direct(loss, z, y):
    """phi by its definition, independent of the kernels."""
    if isinstance(loss, Multinomial):
        return logsumexp(z) - z[y]
    shifted = z + (np.arange(z.size) != y) - z[y]
    if loss.gamma == 0:
        return shifted.max()
    target = shifted / loss.gamma + np.eye(z.size)[y]
    order = np.sort(target)[::-1]
    means = (np.cumsum(order) - 1) / np.arange(1, z.size + 1)
    nu = means[np.flatnonzero(order > means)[-1]]
    pi = np.maximum(target - nu, 0)
    off = pi - np.eye(z.size)[y]
    return pi @ shifted - loss.gamma / 2 * off @ off


@every
@given(seeds)
def test_value_is_the_definition(loss, seed):
    z, y, _, _ = case(seed)
    expected = direct(loss, z[0], y)
    assert loss.value(z, y)[0] == pytest.approx(expected, abs=1e-12 * (1 + np.abs(z).max()))


@every
@given(seeds)
def test_fenchel_young(loss, seed):
    """phi(z) + phi*(u) >= <u, z>, with equality at the gradient; u sums to zero."""
    z, y, pi, _ = case(seed)
    e = np.eye(z.size)[[y]]
    scale = 1 + np.abs(z).max()
    total = loss.value(z, y) + loss.conjugate(pi - e, y) - np.sum((pi - e) * z)
    assert total[0] >= -1e-12 * scale
    u = loss.derivative(z, y)
    assert np.abs(u.sum()) <= 1e-12
    gap = loss.value(z, y) + loss.conjugate(u, y) - np.sum(u * z)
    assert abs(gap[0]) <= 1e-12 * scale * z.size


@every
@given(seeds)
def test_the_conjugate_is_infinite_outside_the_simplex(loss, seed):
    z, y, pi, rng = case(seed)
    u = pi - np.eye(z.size)[[y]]
    off = u.copy()
    off[0, rng.integers(z.size)] += 0.1  # does not sum to zero
    assert loss.conjugate(off, y)[0] == math.inf
    k, other = rng.permutation(z.size)[:2]
    far = u.copy()
    far[0, k] -= pi[0, k] + 0.1
    far[0, other] += pi[0, k] + 0.1  # pi_k < 0
    assert loss.conjugate(far, y)[0] == math.inf


@every
@given(seeds, st.floats(-3, 3))
def test_prox_of_the_conjugate_satisfies_moreau(loss, seed, power):
    """u = prox(v) iff (v - u)/step is a subgradient of phi* at u: Fenchel-Young is tight there."""
    z, y, pi, _ = case(seed)
    step = 10.0**power
    v = pi - np.eye(z.size)[[y]] + step * np.clip(z, -1e3, 1e3)
    u = loss.prox_conjugate(v, step, y)
    m = (v - u) / step
    gap = loss.value(m, y) + loss.conjugate(u, y) - np.sum(u * m)
    assert abs(gap[0]) <= 1e-10 * (1 + np.abs(m).max()) * z.size
    pi = u[0] + np.eye(z.size)[y]
    assert pi.min() >= 0
    assert pi.sum() == pytest.approx(1, abs=1e-13)


@given(seeds)
def test_the_conjugate_of_the_plain_hinge_is_a_linear_program(seed):
    """max <u, z> - t with t >= z_k + [k != y] - z_y"""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 9))
    y, u = int(rng.integers(K)), rng.dirichlet(np.ones(K))
    u[y] -= 1
    rows = np.column_stack([np.eye(K) - np.eye(K)[y], -np.ones(K)])
    above = -(np.arange(K) != y).astype(float)
    found = linprog(np.append(-u, 1.0), rows, above, bounds=(None, None))
    assert MulticlassHinge().conjugate(u[None], y)[0] == pytest.approx(-found.fun, abs=1e-9)


@pytest.mark.parametrize("loss", [c for c in CLASSES if c.gamma > 0] + SUMS, ids=repr)
@examples(20)
@given(seeds)
def test_the_conjugate_is_the_numerical_maximum(loss, seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5))
    y = rng.choice([-1.0, 1.0], (1, K)) if loss in SUMS else int(rng.integers(K))
    u = loss.derivative(rng.standard_normal((1, K)), y)
    if loss not in SUMS:  # inside, where the maximum is attained
        u = 0.5 * u + 0.5 * (np.full((1, K), 1 / K) - np.eye(K)[[y]])

    def value(z):
        return loss.value(z[None], y)[0] - u[0] @ z

    found = minimize(value, np.zeros(K), method="Nelder-Mead", options={
        "xatol": 1e-9, "fatol": 1e-12, "maxiter": 20000, "maxfev": 20000})  # fmt: skip
    assert loss.conjugate(u, y)[0] == pytest.approx(-found.fun, abs=1e-5 * (1 + abs(found.fun)))


@pytest.mark.parametrize("loss", [c for c in CLASSES if c.gamma > 0] + SUMS, ids=repr)
@given(seeds)
def test_the_derivative_is_the_numerical_one_and_gamma_is_right(loss, seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 8))
    y = rng.choice([-1.0, 1.0], (1, K)) if loss in SUMS else int(rng.integers(K))
    z, way = rng.standard_normal((2, 1, K))
    way /= np.linalg.norm(way)
    h = 1e-5
    numerical = (loss.value(z + h * way, y) - loss.value(z - h * way, y)) / (2 * h)
    slope = np.sum(loss.derivative(z, y) * way)
    assert numerical[0] == pytest.approx(slope, abs=h / loss.gamma + 1e-9)
    other = z + rng.standard_normal((1, K))
    change = loss.derivative(other, y) - loss.derivative(z, y)
    assert np.linalg.norm(change) <= np.linalg.norm(other - z) / loss.gamma * (1 + 1e-12)


def test_gamma_of_the_softmax_cannot_be_larger():
    """diag(p) - pp' has the eigenvalue 1/2 at p = (1/2, 1/2, 0, ..)."""
    z = np.array([[0.0, 0.0, -800.0]])
    way = np.array([[1.0, -1.0, 0.0]]) / math.sqrt(2)
    change = Multinomial().derivative(z + 1e-6 * way, 0) - Multinomial().derivative(z, 0)
    assert np.linalg.norm(change) / 1e-6 == pytest.approx(1 / Multinomial().gamma, rel=1e-6)


@given(st.floats(-30, 30), st.integers(0, 1))
def test_two_classes_are_the_binary_losses(t, y):
    z, m = np.array([[0.0, t]]), t if y == 1 else -t
    assert Multinomial().value(z, y)[0] == pytest.approx(losses.Logistic().value(m), abs=1e-14)
    assert MulticlassHinge().value(z, y)[0] == pytest.approx(losses.Hinge().value(m), abs=1e-13)
    smooth = MulticlassHinge(0.4).value(z, y)[0]
    assert smooth == pytest.approx(losses.SmoothedHinge(0.8).value(m), abs=1e-13)


@given(seeds)
def test_the_smoothed_hinge_is_between(seed):
    z, y, _, _ = case(seed)
    plain, smooth = MulticlassHinge().value(z, y)[0], MulticlassHinge(0.3).value(z, y)[0]
    slack = 1e-12 * (1 + np.abs(z).max())
    assert plain - 0.3 - slack <= smooth <= plain + slack


@pytest.mark.parametrize("loss", SUMS, ids=repr)
def test_a_sum_over_outputs_is_the_sum_of_its_columns(loss):
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((7, 3)), rng.choice([-1.0, 1.0], (7, 3))
    s = rng.uniform(0.5, 2, 7)
    one = loss.loss
    assert np.allclose(loss.value(z, y), sum(one.value(z[:, k], y[:, k]) for k in range(3)))
    assert loss.total(z, y, s) == pytest.approx(float(s @ loss.value(z, y)), rel=1e-14)
    x = loss.duals(z, y, s)
    signed = y * x if one.margin else x
    assert np.allclose(signed, -s[:, None] * loss.derivative(z, y), atol=1e-15)
    each = loss.conjugate(-signed / s[:, None], y)
    assert loss.conjugate_total(x, y, s) == pytest.approx(float(s @ each), abs=1e-12)
    u = loss.prox_conjugate(z, s, y)
    assert np.allclose(u[:, 1], one.prox_conjugate(z[:, 1], s, y[:, 1]), atol=1e-15)


@every
@given(seeds)
def test_totals_dual_points_and_clips_agree_with_rows(loss, seed):
    rng = np.random.default_rng(seed)
    n, K = 9, int(rng.integers(2, 9))
    z, y = rng.standard_normal((n, K)), rng.integers(0, K, n).astype(np.int32)
    s = rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
    assert loss.total(z, y, s) == pytest.approx(float(s @ loss.value(z, y)), abs=1e-12)
    x = loss.duals(z, y, s)
    assert np.allclose(x, -s[:, None] * loss.derivative(z, y), atol=1e-14)
    kept = s > 0
    each = loss.conjugate(-x[kept] / s[kept, None], y[kept])
    assert loss.conjugate_total(x, y, s) == pytest.approx(float(s[kept] @ each), abs=1e-12)
    assert np.allclose(loss.clip(x, y, s), x, atol=1e-15)
    wild = loss.clip(x + s[:, None] * rng.standard_normal((n, K)), y, s)
    assert math.isfinite(loss.conjugate_total(wild, y, s))
    assert not wild[~kept].any()
    if not kept.all():
        x[~kept] = 1e-3
        assert loss.conjugate_total(x, y, s) == math.inf


def test_they_are_registered_and_travel():
    assert losses.names_of_classes() == ("multinomial", "multiclass_hinge")
    assert losses.by_name("multinomial") == Multinomial()
    for loss in [*CLASSES, *SUMS]:
        assert pickle.loads(pickle.dumps(loss)) == loss
        assert hash(pickle.loads(pickle.dumps(loss))) == hash(loss)
    assert MulticlassHinge(0.5) != MulticlassHinge(0.6)
    with pytest.raises(NotImplementedError):
        OutputsLoss().value(np.zeros((1, 2)), 0)
