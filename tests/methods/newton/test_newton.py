"""Newton's method: its passes against NumPy, the optimum, the stop, what it does with a budget."""

import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import SMOOTH, data, dense, one_hot, problem
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from threadpoolctl import threadpool_limits

from apcg import ERM, losses, penalties, solve
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.methods.base import Budget, Method, Target
from apcg.methods.newton import hessian as own
from apcg.methods.newton.hessian import Hessian
from apcg.methods.newton.newton import Newton
from apcg.problems.objective import Objective

LOSSES = [losses.by_name(name) for name in SMOOTH] + [
    losses.SmoothedHinge(0.3),
    losses.StronglyConvex("logistic", 2.0),
    losses.StronglyConvex("huber", 3.0),
]


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """A sample is drawn from 300 rows or more."""
    monkeypatch.setattr(own, "LEAST_ROWS", 100)


def run(p, tol=1e-10, at=None, seed=0, max_passes=3000):
    """The loop: advance, look, tell; gives the certificate, the passes and the looks."""
    made = Newton().start(p, at or Start(), Target(tol), np.random.default_rng(seed))
    passes = looks = 0
    while True:
        passes += made.advance(Budget(max_passes - passes)).passes
        looks += 1
        point = made.point()
        found = certify(p, point.bare())
        if found.relative <= tol or passes >= max_passes or looks > 20:
            return found, passes, looks
        made.seen(found)


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("n", [60, 500])
def test_every_smooth_loss_to_rounding(loss, weighted, intercept, kind, n):
    """60 rows have factors of H itself, 500 a sample and conjugate gradients."""
    X, y = data("logistic" if loss.margin else "squared", n=n, sparse=kind == "sparse")
    X = X.astype(np.float32) if kind == "float32" else X
    weights = np.arange(n) % 4.0 if weighted else None
    p = ERM(X, y, loss, alpha=1e-4, sample_weight=weights, intercept=intercept)
    found, _, looks = run(p)
    assert found.relative <= 1e-10
    assert looks <= 3
    steps = np.random.default_rng(0).standard_normal((10, p.d))
    h = 1e-5 * max(1.0, np.abs(found.w).max())
    least = found.primal * (1 - 1e-13)
    assert all(p.primal(found.w + h * s, found.b) >= least for s in steps)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("intercept", [False, True])
def test_collinear_rare_empty_and_huge_features(loss, alpha, intercept):
    X, y = one_hot(3000, rare=5)
    scale = np.ones(X.shape[1])
    scale[3] = 1e5
    X = sp.hstack([X * scale, X[:, :5], sp.csr_array((X.shape[0], 2))], format="csr")
    y = y if losses.by_name(loss).margin else y + np.sin(np.arange(len(y)))
    p = ERM(X, y, loss, alpha=alpha, intercept=intercept)
    found, passes, _ = run(p, 1e-9)
    assert found.relative <= 1e-9
    assert passes < 300
    np.testing.assert_array_equal(found.w[-2:], 0)
    np.testing.assert_allclose(found.w[:3], found.w[-7:-4], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_separable_samples(loss, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = np.where(X[:, 0] > 0.1, 1.0, -1.0)
    for alpha in (1e-3, 1e-8):
        found, _, _ = run(ERM(X, y, loss, alpha=alpha, intercept=intercept), 1e-8)
        assert found.relative <= 1e-8


def test_a_class_that_the_sample_may_miss():
    X, y = one_hot(3000)
    y[:] = -1
    y[17] = 1
    found, _, _ = run(ERM(X, y, "logistic", alpha=1e-6, intercept=True), 1e-8)
    assert found.relative <= 1e-8


def test_a_penalty_for_each_feature():
    X, y = data("logistic", n=400)
    p = ERM(X, y, "logistic", penalties.L2(np.geomspace(1e-3, 10, 12)), 1e-3)
    assert run(p)[0].relative <= 1e-10


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_against_another_method(loss, intercept):
    p = problem(loss, n=500, alpha=1e-3, intercept=intercept)
    other = solve(p, "sdca", tol=1e-9, max_epochs=100_000, random_state=0)
    found, _, _ = run(p)
    assert other.dual * (1 - 1e-12) <= found.primal <= other.primal * (1 + 1e-12)
    np.testing.assert_allclose(found.w, other.w, atol=1e-3 * np.abs(found.w).max())


def test_against_scikit_learn():
    from sklearn.linear_model import LogisticRegression, Ridge

    X, y = data("logistic", n=600, sparse=False)
    alpha = 1e-3
    p = ERM(X, y, "logistic", alpha=alpha, intercept=True)
    found, _, _ = run(p)
    theirs = LogisticRegression(C=1 / (alpha * 600), tol=1e-12, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(found.w, theirs.coef_[0], rtol=1e-5, atol=1e-7)
    assert found.b == pytest.approx(theirs.intercept_[0], rel=1e-5)
    X, y = data("squared", n=600, sparse=False)
    for intercept in (False, True):
        found, _, looks = run(ERM(X, y, "squared", alpha=alpha, intercept=intercept))
        ridge = Ridge(alpha * 600, fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(found.w, ridge.coef_, rtol=1e-9)
        assert found.b == pytest.approx(float(ridge.intercept_), rel=1e-9, abs=1e-12)
        assert looks == 1


# ---- the stop -----------------------------------------------------------------------------------


@examples(40)
@given(st.sampled_from(LOSSES), st.integers(0, 1000), st.floats(0.01, 3))
def test_the_gap_is_that_of_the_gradient(loss, seed, size):
    """P - D = sum_j (grad P)_j^2/(2 lambda b_j), wherever w is."""
    X, y = data("logistic" if loss.margin else "squared", seed=seed)
    rng = np.random.default_rng(seed)
    b = rng.uniform(0.1, 2, 12)
    p = ERM(X, y, loss, penalties.L2(b), 0.1, sample_weight=rng.random(40))
    rows = Objective.of(p)
    w = size * rng.standard_normal(12)
    at = rows.at(w, rows.X.times(w))
    assert at.value == pytest.approx(p.primal(w), rel=1e-12)
    gap = np.sum(rows.gradient(at) ** 2 / (2 * 0.1 * b))
    assert gap == pytest.approx(certify(p, Point(w=w)).gap, rel=1e-7, abs=1e-10 * at.value)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_the_first_look_is_the_last(loss, tol, intercept):
    p = problem(loss, n=500, alpha=1e-4, intercept=intercept)
    found, _, looks = run(p, tol)
    assert found.relative <= tol
    assert looks == 1


def test_a_point_carries_its_predictions():
    p = problem("logistic", n=500, alpha=1e-5, intercept=True)
    made = Newton().start(p, Start(), Target(1e-12), np.random.default_rng(0))
    made.advance(Budget(3))
    point = made.point()
    np.testing.assert_allclose(point.z, dense(p) @ point.w + point.b, rtol=1e-10, atol=1e-12)
    z = point.z.copy()
    made.advance(Budget(30, fixed=True))
    np.testing.assert_array_equal(point.z, z)  # it is not written to later


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber"])
def test_a_point_has_the_best_intercept(loss):
    """Only there is the gap that of the gradient."""
    p = problem(loss, n=500, alpha=1e-3, intercept=True)
    made = Newton().start(p, Start(), Target(1e-2), np.random.default_rng(0))
    made.advance(Budget(1000))
    point = made.point()
    slope = p.loss.derivative(dense(p) @ point.w + point.b, p.y)
    assert abs(slope.sum()) <= 1e-8 * np.abs(slope).sum()


def test_it_goes_on_after_a_look_that_does_not_end_the_run():
    p = problem("logistic", n=500, alpha=1e-5)
    made = Newton().start(p, Start(), Target(1e-3), np.random.default_rng(0))
    gaps = []
    for _ in range(4):
        assert made.advance(Budget(1000)).passes > 0
        gaps.append(certify(p, made.point().bare()).relative)
        made.seen(certify(p, made.point().bare()))
    assert all(b < 0.2 * a for a, b in pairwise(gaps))


def test_rounding_ends_an_advance():
    """Nobody waits for a gap of zero."""
    p = problem("logistic", n=500, alpha=1e-4)
    made = Newton().start(p, Start(), Target(0.0), np.random.default_rng(0))
    assert made.advance(Budget(10_000)).passes < 200
    assert certify(p, made.point().bare()).relative < 1e-13


# ---- starts and budgets -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("n", [60, 500])
def test_every_step_lowers_the_objective(loss, n):
    p = problem(loss, n=n, alpha=1e-6)
    start = Start(w=np.full(p.d, 50.0))  # far too long
    made = Newton().start(p, start, Target(0.0), np.random.default_rng(0))
    values = [p.primal(np.zeros(p.d))]
    for _ in range(12):
        made.advance(Budget(1, fixed=True))
        values.append(p.primal(made.point().w))
    assert all(b <= a * (1 + 1e-13) for a, b in pairwise(values))
    assert values[-1] < values[0]


@pytest.mark.parametrize("intercept", [False, True])
def test_a_warm_start(intercept):
    p = problem("logistic", n=500, alpha=1e-5, intercept=intercept)
    first, passes, _ = run(p)
    start = Start(w=first.w, b=first.b)
    again, fewer, looks = run(p, 1e-9, start)
    assert again.relative <= 1e-9
    assert looks == 1
    assert fewer <= 2 < passes
    near, some, _ = run(p.with_alpha(5e-6), at=start)
    assert near.relative <= 1e-10
    assert some < run(p.with_alpha(5e-6))[1]


def test_a_warm_start_that_is_far_too_long():
    p = problem("logistic", n=500, alpha=1e-3)
    w = run(p, 1e-3)[0].w
    made = Newton().start(p, Start(w=1000 * w), Target(1e-1), np.random.default_rng(0))
    made.advance(Budget(1))
    assert p.primal(made.point().w) <= p.primal(np.zeros(p.d))


def test_a_budget_is_kept():
    p = problem("logistic", n=500, alpha=1e-8)
    made = Newton().start(p, Start(), Target(1e-14), np.random.default_rng(0))
    total = 0
    for _ in range(5):
        work = made.advance(Budget(4))
        assert 1 <= work.passes < 60
        total += work.passes
    assert total < 200


def test_a_fixed_distance_between_looks_is_used_up():
    p = problem("logistic", n=500, alpha=1e-2)
    made = Newton().start(p, Start(), Target(0.5), np.random.default_rng(0))
    assert made.advance(Budget(30, fixed=True)).passes >= 30


@pytest.mark.parametrize("n", [60, 500])
def test_a_deadline(n):
    """One that has passed leaves a point that can be certified."""
    p = problem("logistic", n=n, alpha=1e-8, intercept=True)
    made = Newton().start(p, Start(), Target(1e-14), np.random.default_rng(0))
    assert made.advance(Budget(1000, deadline=time.perf_counter() - 1)).passes < 30
    point = made.point()
    first = certify(p, point.bare())
    assert first.primal <= p.primal(np.zeros(p.d)) * (1 + 1e-12)
    made.advance(Budget(1000))
    assert certify(p, made.point().bare()).gap < first.gap


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_reruns_are_equal_to_the_bit(loss, sparse):
    p = problem(loss, n=2000, d=40, alpha=1e-5, sparse=sparse, intercept=True)
    with threadpool_limits(1):
        first = run(p)
    again = run(p)
    np.testing.assert_array_equal(first[0].w, again[0].w)
    assert first[1:] == again[1:]


def test_passes_are_products_over_two_nnz():
    """Squared loss: a Gram matrix, a factor, and half a pass each for X'y and the rest."""
    X, y = data("squared", n=400, sparse=False)
    made = Newton().start(ERM(X, y, "squared"), Start(), Target(), np.random.default_rng(0))
    expected = (400 * 12 * 13 / 2 + 12**3 / 6) / (2 * 400 * 12) + 1
    assert made.advance(Budget(100)).passes == np.ceil(expected)


def test_it_is_a_method():
    assert isinstance(Newton(), Method)
    assert Newton().name == "newton"
    smooth_loss, quadratic = Newton().needs[-2:]
    assert smooth_loss.holds(problem("logistic"))
    assert not smooth_loss.holds(problem("hinge"))
    assert not quadratic.holds(problem("logistic", "l1"))
    assert not quadratic.holds(problem("logistic", "elasticnet"))


# ---- the parts that make it robust --------------------------------------------------------------


def test_a_step_that_overshoots_is_made_gentler():
    """phi'' in its place is at least that, and at least the slope of phi' along the step."""
    p = problem("logistic", n=60, alpha=1e-6)
    rows = Objective.of(p)
    at = rows.at(np.zeros(p.d), np.full(60, -4.0) * p.y)
    dz = 40.0 * p.y * np.where(np.arange(60) % 3 == 0, -1, 1)
    whole = rows.trial(at, np.zeros(p.d), dz)
    assert rows.gentler(at, 0 * dz, rows.trial(at, np.zeros(p.d), 0 * dz), 0.0) is None
    whole = rows.trial(at, np.zeros(p.d), dz)
    found = rows.gentler(at, dz, whole, float(at.slope @ dz))
    assert found is not None
    assert np.all(found >= at.bend)
    assert np.all(found * np.abs(dz) >= np.abs(whole[0].slope - at.slope) * (1 - 1e-12))
    # the parabola with this curvature is above the loss, for those in the wrong tail
    far = dz * p.y > 0
    m = np.linspace(-30, 30, 601)
    value, slope = np.log1p(np.exp(4.0)), -1 / (1 + np.exp(-4.0))
    bend = found[far].min() * 60
    assert np.all(value + slope * (m + 4) + 0.5 * bend * (m + 4) ** 2 >= np.logaddexp(0, -m) - 1e-9)


def test_rare_features_are_in_the_sample():
    """A sample drawn evenly knows nothing of them, and lambda is too small to help."""
    X, y = one_hot(n=8000, rare=25)
    rows = Objective.of(ERM(X, y, "logistic", alpha=1e-8))
    hessian = Hessian(rows)
    hessian.draw(np.random.default_rng(0))
    sample = hessian.sample
    rare = slice(X.shape[1] - 25, None)
    np.testing.assert_array_equal(sample.X.stored[:, rare].sum(0), X[:, rare].sum(0))
    assert sample.n < 0.2 * rows.n
    assert sample.weights.sum() == pytest.approx(rows.n, rel=0.2)  # P of the sample is P, about
    # with a lambda that bends more than a row, every row has the same chance
    even = Hessian(Objective.of(ERM(X, y, "logistic", alpha=1e-1)))
    even.draw(np.random.default_rng(0))
    assert np.ptp(even.sample.weights) == 0


def few_positives(n, fields, values, seed, positive=0.05):
    """Rows with one of `values` in each of `fields`, few labels 1, and lambda next to nothing."""
    rng = np.random.default_rng(seed)
    columns = (rng.zipf(1.6, (n, fields)) % values) + values * np.arange(fields)
    X = sp.csr_array((np.ones(n * fields), columns.ravel(), np.arange(0, n * fields + 1, fields)))
    scores = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n)
    y = np.where(scores > np.quantile(scores, 1 - positive), 1.0, -1.0)
    return ERM(X, y, "logistic", alpha=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_is_not_fitted_further_than_it_tells_of_others(seed, monkeypatch):
    """The sample is separable. Its optimum is far from ours; the steps end before that."""
    p = few_positives(6000, 8, 12, seed)

    def first_w():
        made = Newton().start(p, Start(), Target(1e-6), np.random.default_rng(seed))
        made._hessian.draw(made._rng)
        held = made._hessian.held_out()
        assert 0.3 < held.n / made._hessian.sample.n < 0.7
        assert held.weights.sum() == pytest.approx(6000, rel=0.2)  # P on them is P, about
        return made._on_sample(Budget(1000))

    stopped = p.primal(first_w())
    monkeypatch.setattr(Objective, "value", lambda self, w: 0.0)  # as if all were well
    assert stopped < 0.7 * p.primal(first_w())


@pytest.mark.parametrize(("dear", "most"), [(1e9, 12), (0.0, 2)])
def test_steps_on_a_sample_whose_factor_is_dear(dear, most, monkeypatch):
    """They cost as much as steps on all rows: only so many as make a start."""
    p = few_positives(6000, 8, 12, 0)
    monkeypatch.setattr(own, "DEAR", (dear, dear))
    made = Newton().start(p, Start(), Target(1e-6), np.random.default_rng(0))
    made._hessian.draw(made._rng)
    assert made._hessian.sample_steps == most
    before = made._hessian.cost
    made._on_sample(Budget(1000))
    one = (made._hessian.sample.X.gram_madds + made._rows.size**3 / 6) / (2 * made._rows.X.nnz)
    factors = (made._hessian.cost - before) / one
    assert 1.5 < factors <= most + 0.5
    assert (factors > 2.5) == (most > 2)


def test_which_factor_is_dear():
    """One of dense rows with many features; not one of short rows."""
    rng = np.random.default_rng(0)
    long = ERM(rng.standard_normal((4000, 200)), np.sign(rng.standard_normal(4000)), "logistic")
    for p, steps in ((long, 2), (few_positives(6000, 8, 12, 0), 12)):
        made = Newton().start(p, Start(), Target(1e-6), rng)
        made._hessian.draw(rng)
        assert made._hessian.sample_steps == steps


def test_rows_of_weight_zero_are_not_in_the_sample():
    X, y = one_hot(3000)
    weights = np.arange(3000) % 2.0
    rows = Objective.of(ERM(X, y, "logistic", alpha=1e-8, sample_weight=weights))
    hessian = Hessian(rows)
    hessian.draw(np.random.default_rng(0))
    assert hessian.sample.weights.min() > 0
    assert hessian.held_out().weights.min() > 0


def test_a_poor_sample_is_left_for_a_factor_of_all_rows(monkeypatch):
    """Conjugate gradients cost more there than the factor, and are given up."""
    X, y = one_hot(n=4000, rare=30)
    X = sp.csr_array(X * np.geomspace(1e-3, 1e3, X.shape[1]))
    rows = Objective.of(ERM(X, y, "logistic", alpha=1e-9))
    for name, value in (("LEAST_ROWS", 5), ("ROWS_PER_FEATURE", 0.1), ("SHARE", 0.0)):
        monkeypatch.setattr(own, name, value)
    hessian = Hessian(rows)
    hessian.draw(np.random.default_rng(0))
    w = np.zeros(rows.size)
    at = rows.at(w, rows.X.times(w))
    r = -rows.gradient(at)
    A = X.toarray()
    H = A.T @ (at.bend[:, None] * A) + np.diag(rows.ridge)
    norm = np.sqrt(H.diagonal())
    residuals = []
    for _ in range(2):
        way, dz = hessian.solve(r, at.bend, 0.0, Budget(1000))
        residuals.append(np.abs((H @ way - r) / norm).max() / np.abs(r / norm).max())
        np.testing.assert_allclose(dz, A @ way, rtol=1e-8, atol=1e-8 * np.abs(dz).max())
    assert residuals[0] > 1e-3
    assert residuals[1] < 1e-8
