"""The free intercept: its parts, the problem that the kernels see, and the certificate."""

import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, OWN, SMOOTH, Own, data, dense, problem
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from scipy.optimize import minimize, minimize_scalar

from apcg import ERM, losses, path, solve
from apcg._kernels.newton import objective as kernel
from apcg.losses.shift import imbalance
from apcg.methods.paper.apcg import APCG
from apcg.methods.paper.sdca import SDCA
from apcg.sequences import Sequence

PENALTIES = ("l2", "elasticnet", "l1")
CASES = [(loss, g) for loss in LOSSES for g in PENALTIES if g != "l1" or loss in SMOOTH]


def objective(p, w, b):
    """P(w, b), from the definition."""
    s = np.broadcast_to(p.weights, p.n_samples)
    g = np.sum(p.g.a * np.abs(w) + p.g.b / 2 * w**2)
    return np.sum(s * p.loss.value(dense(p) @ w + b, p.y)) / p.n + p.alpha * g


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_the_best_intercept_minimises(name, weighted):
    loss = LOSSES[name]
    X, y = data(name, n=31, seed=3)
    rng = np.random.default_rng(0)
    s = rng.uniform(0.2, 3, 31) * (rng.random(31) < 0.9) if weighted else np.ones(1)
    for z in (X @ rng.standard_normal(12), np.zeros(31), 1e3 * rng.standard_normal(31)):
        for guess in (0.0, 50.0, -1e4):
            b = loss.best_shift(z, y, s, guess)
            total = lambda c: np.sum(s * loss.value(z + c, y))  # noqa: E731
            around = b + np.array([-1, 1, -1e-4, 1e-4]) * (1 + abs(b))
            assert all(total(b) <= total(c) * (1 + 1e-13) for c in around)
            found = minimize_scalar(total, bracket=(b - 1, b + 1), tol=1e-12)
            assert total(b) <= found.fun * (1 + 1e-12)


class Flat(losses.Loss):
    """max(|r| - 0.5, 0)^2/(2 gamma): no bound on its slopes, and a flat part."""

    name, margin, gamma, domain = "flat", False, 0.4, (-math.inf, math.inf)
    theta = (0.0, 0.5, 0.4, -math.inf, math.inf)


def test_a_flat_part_has_no_curvature_whatever_the_bounds_are():
    m = np.array([-2.0, -0.4, 0.0, 0.3, 0.6])
    np.testing.assert_allclose(Flat().arrays.curvature(m), [2.5, 0, 0, 0, 2.5])
    theta, out = np.array(Flat().theta), np.empty((3, 5))
    found = kernel.evaluate("interval", theta, m, np.ones(5), 0.0, np.zeros(5), False,
                             np.ones(1), 1.0, *out)  # fmt: skip
    np.testing.assert_allclose(out[2], [2.5, 0, 0, 0, 2.5])
    assert found[2] == pytest.approx(5.0)


@pytest.mark.parametrize("weight", [1e-11, 1e-9])
def test_the_best_intercept_is_found_where_newton_creeps(weight, monkeypatch):
    """A row of next to no weight decides, and phi'' of the others says nothing of it."""
    X, y = np.zeros((3, 1)), np.array([0.0, 0.2, 3.0])
    p = ERM(X, y, Flat(), alpha=0.1, intercept=True, sample_weight=[1.0, 1.0, weight])
    b = p.best_intercept(np.zeros(3), 0.3)
    assert b == pytest.approx(0.5, abs=1e-6)  # as near to 3 as costs nothing
    evaluate = kernel.evaluate

    def creeping(*given):
        value, slope, _ = evaluate(*given)
        return value, slope, 17.5  # as if the flat part had curvature

    monkeypatch.setattr("apcg.losses.shift.objective.evaluate", creeping)
    assert p.best_intercept(np.zeros(3), 0.3) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("guess", [-3.0, 0.5, 3.0])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "hinge"])
def test_the_middle_of_an_interval_of_margins(loss, guess):
    """Margins above 1 lose nothing: every b in [-4, 6] is best, and 1 is the middle."""
    p = ERM(np.eye(2), [1, -1], loss, alpha=0.1, intercept=True)
    assert p.best_intercept([5.0, -7.0], guess) == pytest.approx(1.0, abs=1e-12)


def test_the_middle_of_an_interval():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    z = np.array([3.0, 2.5, -4.0, -2.0])  # all b with z + b >= 1 and z + b <= -1
    assert losses.Hinge().best_shift(z, y, np.ones(1), 0.3) == pytest.approx((1 - 2.5 + 2 - 1) / 2)
    values, absolute = np.array([0.0, 1.0, 5.0, 9.0]), losses.EpsilonInsensitive(0.0)
    b = absolute.best_shift(np.zeros(4), values, np.ones(1), 4.9)
    assert b == pytest.approx(3.0)  # a median
    heavy = absolute.best_shift(np.zeros(4), values, np.array([0.0, 1, 1, 0]), 0.0)
    assert heavy == pytest.approx(3.0)


@examples(200)
@given(st.sampled_from([*LOSSES.values(), *OWN]), st.integers(0, 10**6), st.booleans())
def test_a_balanced_point_is_feasible_and_near(loss, seed, corner):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1, -1
    s = rng.uniform(0.1, 3, n) * (rng.random(n) < 0.8) if seed % 2 else np.ones(1)
    low, high = (max(min(v, 3.0), -3.0) for v in loss.domain)
    u = rng.uniform(low, high, n)
    if corner:
        u = np.where(rng.random(n) < 0.7, rng.choice([low, 0.0, high], n), u)
    x = np.broadcast_to(s, n) * u
    new = loss.balance(x, y, s)
    sign = y if loss.margin else 1.0
    assert imbalance(sign * new) <= 1
    assert np.isfinite(loss.arrays.total_conjugate(new, s))
    assert np.abs(new - x).sum() <= 2 * np.abs(x).sum() + 1e-12
    assert np.allclose(loss.balance(new, y, s), new, rtol=0, atol=1e-12 * (1 + np.abs(new).max()))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e10, -1e10])
@pytest.mark.parametrize("weighted", [False, True])
def test_balance_of_many_decades_is_exact(offset, weighted):
    """Without bounds the balanced point is x - s sum(x)/sum(s), to the last digits of that."""
    rng = np.random.default_rng(0)
    s = rng.uniform(0.2, 3, 30) if weighted else np.ones(1)
    x = np.broadcast_to(s, 30) * offset + 10.0 ** rng.uniform(-6, 2, 30) * rng.choice([-1, 1], 30)
    new = losses.Squared().balance(x, np.zeros(30), s)
    exact = [Fraction(float(v)) for v in x]
    each = [Fraction(float(v)) for v in np.broadcast_to(s, 30)]
    share = sum(exact) / sum(each)
    wanted = np.array([float(v - share * e) for v, e in zip(exact, each, strict=True)])
    # with weights, s_i times the share is rounded where the share is large
    rounding = 4e-16 * np.abs(s * offset) if weighted else 0.0
    assert np.all(np.abs(new - wanted) <= 1e-13 * np.abs(wanted).max() + rounding)
    assert imbalance(new) <= 1


def test_balance_leaves_bounds_alone_whatever_the_rounding():
    """One x_i of 1e10 goes down to what the others need, and these stay at their bound."""
    x = np.array([-1e10, *[1.0] * 7])
    new = Own((-np.inf, 1.0), 1.0).balance(x, np.zeros(8), np.ones(1))
    np.testing.assert_array_equal(new[1:], 1.0)
    assert new[0] == pytest.approx(-7.0, rel=1e-13)


@pytest.mark.parametrize("domain", [(-0.3, np.inf), (-np.inf, 1.0), (-0.3, 0.7)])
def test_balance_ends_inside_the_domain_whatever_the_rounding(domain):
    """x less the whole of its room may be outside by a rounding, and phi* infinite."""
    loss = Own(domain, 1.0)
    edge, inward = (domain[0], 1.0) if np.isfinite(domain[0]) else (domain[1], -1.0)
    for seed in range(500):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        s = 10.0 ** rng.uniform(-4, 1, n)
        x = loss.clip(s * (edge + inward * 10.0 ** rng.uniform(-3, 18, n)), None, s)
        new = loss.balance(x, np.zeros(n), s)
        assert np.isfinite(loss.arrays.total_conjugate(new, s))
        assert imbalance(new) <= 1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huber", "logistic", "squared"])
def test_a_point_out_of_balance_by_a_little_is_infeasible(loss):
    X, y = data(loss)
    p = ERM(X, y, LOSSES[loss], alpha=0.1, intercept=True)
    x = p.balance(np.random.default_rng(0).uniform(0.1, 0.7, 40))
    assert np.isfinite(p.dual(x))
    sign = y if p.loss.margin else np.ones(40)
    for off in (1e-6, 1e-10, 1e-12):
        moved = x.copy()
        moved[3] += sign[3] * off * np.abs(x).sum()
        assert np.sum(sign * moved) == pytest.approx(off * np.abs(x).sum(), rel=1e-2)
        assert p.dual(moved) == -np.inf


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "l1"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [loss for loss in OWN if loss.gamma > 0], ids=repr)
def test_every_domain_of_a_loss_converges(loss, weighted, penalty):
    """Half open to either side, with and without kinks, as (-inf, 1.0)."""
    X, y = data("hinge" if loss.margin else "huber", n=80)
    s = np.random.default_rng(2).uniform(0.1, 2, 80) if weighted else None
    y = y if loss.margin else y + 3
    p = ERM(X, y, loss, penalty, 1e-2, sample_weight=s, intercept=True)
    r = solve(p, tol=1e-8, max_epochs=50_000, random_state=0)
    assert r.converged
    assert r.gap <= 1e-8 * r.primal
    assert r.primal == pytest.approx(objective(p, r.w, r.intercept), rel=1e-12)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-12)
    rng = np.random.default_rng(1)
    for step in 10.0 ** rng.uniform(-6, 1, 20):
        w, b = r.w + step * rng.standard_normal(12), r.intercept + step * rng.standard_normal()
        assert objective(p, w, b) >= r.dual - 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_constant_row_is_a_column_of_x(sparse, penalty, dtype):
    """The kernels take the same steps as with the constant stored in X."""
    p = problem("logistic", penalty, weighted=True, sparse=sparse, intercept=True)
    p = ERM(p.samples.stored.astype(dtype), p.y, "logistic", penalty, 1e-2, intercept=True)
    border = p.bordered()
    c = border.samples.constant
    column = np.full((p.n, 1), c)
    stored = p.samples.stored.astype(float)
    X = sp.hstack([stored, column], format="csr") if sparse else np.hstack([stored, column])
    ratio = 0.5 if penalty == "elasticnet" else 0.0
    explicit = ERM(X, p.y, "logistic", "l2", 1e-2).altered(g=border.g)
    assert explicit.g.strong_convexity == 1 - ratio
    assert np.allclose(explicit.form.L, border.form.L, rtol=1e-12)
    order = np.random.default_rng(0).permutation(np.tile(np.arange(p.n), 5))
    for make in (SDCA, lambda f, x: APCG(f, x, Sequence(p.n, 0.01, 0.01))):
        a, b = make(border.form, np.zeros(p.n)), make(explicit.form, np.zeros(p.n))
        a.epoch(order)
        b.epoch(order)
        assert np.allclose(a.x, b.x, rtol=0, atol=1e-9)
        assert np.allclose(a.rows(), b.rows(), rtol=1e-7, atol=1e-7)
        a.refresh()
        assert np.allclose(a.rows(), b.rows(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "penalty"), CASES)
def test_the_certificate_holds(loss, penalty, weighted):
    smooth = loss in SMOOTH
    tol = 1e-9 if smooth else 1e-5
    p = problem(loss, penalty, 1e-2, weighted=weighted, intercept=True)
    r = solve(p, tol=tol, max_epochs=20_000, random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(objective(p, r.w, r.intercept), rel=1e-12)
    assert r.primal == pytest.approx(p.primal(r.w, r.intercept), rel=1e-14)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-12)
    assert np.isfinite(r.dual)
    assert r.gap <= tol * r.primal
    # any other point is above the dual value; the best known one is at most the gap below
    start = np.append(r.w, r.intercept)
    rng = np.random.default_rng(1)
    for step in 10.0 ** rng.uniform(-6, 1, 30):
        other = start + step * rng.standard_normal(start.size)
        assert objective(p, other[:-1], other[-1]) >= r.dual - 1e-13
    if smooth and penalty == "l2":
        found = minimize(lambda v: objective(p, v[:-1], v[-1]), start * 0, method="BFGS")
        assert found.fun >= r.dual - 1e-12
        assert r.primal <= found.fun * (1 + 1e-8)


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "afg"])
def test_every_method_and_going_on(method):
    p = problem("squared_hinge", alpha=1e-2, intercept=True)
    best_known = solve(p, tol=1e-12, max_epochs=50_000, random_state=0)
    r = solve(p, method, tol=1e-7, max_epochs=50_000, random_state=0)
    assert r.converged
    assert abs(r.intercept - best_known.intercept) < 1e-3
    again = solve(p, method, tol=1e-6, x0=r, random_state=0)
    assert again.epochs <= 40
    short = solve(p, method, tol=1e-12, max_epochs=3, random_state=0)
    assert not short.converged
    assert short.primal == pytest.approx(p.primal(short.w, short.intercept), rel=1e-12)
    assert short.gap >= short.primal - best_known.primal


def test_path_and_labels_share_the_data():
    p = problem("logistic", intercept=True)
    answers = path(p, [1e-1, 1e-2, 1e-3], tol=1e-8, max_epochs=20_000, random_state=0)
    for alpha, r in zip([1e-1, 1e-2, 1e-3], answers, strict=True):
        alone = solve(p.with_alpha(alpha), tol=1e-8, max_epochs=20_000, random_state=1)
        assert r.primal == pytest.approx(alone.primal, rel=2e-8)
    other = p.with_labels(-p.y, np.arange(1, 41))
    assert other.samples is p.samples
    lasso = problem("logistic", "l1", intercept=True)
    assert lasso.form.f.columns is lasso.with_alpha(0.1).with_labels(-lasso.y).form.f.columns


def test_scaled_labels_and_a_mean_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [1.0, -1, 0.5, 0] + 7 + 0.1 * rng.standard_normal(60)
    r = solve(ERM(X, y, "squared", alpha=1e-3, intercept=True), tol=1e-10, random_state=0)
    A = np.column_stack([X, np.ones(60)])
    exact = np.linalg.solve(A.T @ A / 60 + 1e-3 * np.diag([1, 1, 1, 1, 0]), A.T @ y / 60)
    assert np.allclose(np.append(r.w, r.intercept), exact, atol=1e-6)


def test_errors_say_what_to_do():
    X, y = data("hinge")
    with pytest.raises(TypeError, match="intercept must be True or False"):
        ERM(X, y, "hinge", intercept=1)
    with pytest.raises(ValueError, match="only one class has samples of positive weight"):
        ERM(X, y, "hinge", sample_weight=(y > 0), intercept=True)
    p = ERM(X, y, "logistic")
    with pytest.raises(ValueError, match="no intercept"):
        p.primal(np.zeros(12), 1.0)
    free = ERM(X, y, "logistic", intercept=True)
    assert free.dual(np.where(y > 0, 0.5, 0.0)) == -np.inf
    for name in ("refine", "pdgbound"):
        with pytest.raises(ValueError, match="without an intercept"):
            getattr(free, name)(np.zeros(40))


def one_hot(n=2000, fields=(5, 3, 8, 2, 16), seed=0):
    """Fields of which one feature is 1: the constant is in the span of the features."""
    rng = np.random.default_rng(seed)
    hot = [np.eye(k)[rng.choice(k, n, p=rng.dirichlet(np.ones(k)))] for k in fields]
    X = sp.csr_array(np.hstack(hot))
    z = X @ rng.standard_normal(X.shape[1]) - 1
    return X, np.where(z + rng.logistic(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_one_hot_data(loss):
    """Where alternating between intercept and weights stalls."""
    X, y = one_hot()
    r = solve(ERM(X, y, loss, "l2", 1e-6, intercept=True), max_epochs=2000, random_state=0)
    assert r.converged


@pytest.mark.skipif("APCG_DATA_DIR" not in os.environ, reason="needs a9a in APCG_DATA_DIR")
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_raw_a9a(loss):
    from sklearn.datasets import load_svmlight_file

    folder = Path(os.environ["APCG_DATA_DIR"])
    file = next((f for f in (folder / "a9a", folder / "a9a.bz2") if f.exists()), None)
    if file is None:
        pytest.skip("no a9a in APCG_DATA_DIR")
    X, y = load_svmlight_file(str(file))
    p = ERM(X, y, loss, "l2", 1e-6, intercept=True)
    r = solve(p, tol=1e-6, random_state=0)
    assert r.converged
    assert r.primal - p.dual(r.x) <= 1e-6 * r.primal


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((3, 1)), [1.0, 0.0, -1.0]),
        ([[1.0], [-1.0], [2.0], [0.0], [0.0]], [1.0, -1.0, 0.5, 0.0, 1.0]),
    ],
)
def test_a_median_that_is_zero(X, y):
    """The slope in b is a step at b = 0, where no search reaches a relative accuracy."""
    p = ERM(X, y, losses.EpsilonInsensitive(0.0), alpha=1e-3, intercept=True)
    assert solve(p, random_state=0).converged
