"""Where a certificate would begin to lie: each test fails if a rule of it is loosened a little."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, APCGRegressor, losses, path, solve
from apcg.certify.certificate import certify, certify_enough
from apcg.certify.judge import STALL, Stall
from apcg.certify.points import Certificate
from apcg.losses.shift import imbalance
from apcg.methods.base import Point, Work
from apcg.methods.paper.adaptive.resting import Resting

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 5))
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(30) > 0, 1.0, -1.0)


# ---- dual points a little outside ---------------------------------------------------------------


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("beyond", [1e-6, 1e-9, 1e-12])
def test_l1_bounds_are_sharp(beyond, positive):
    """g* is infinite where |v_j| > a_j, be it by a millionth; of w >= 0 where v_j is."""
    p = ERM(X, Y, "logistic", "l1", 0.01, positive=positive)
    x, v = p.dual_point(p.predictions(0.1 * np.abs(RNG.standard_normal(5))), exact=True)
    top = v.max() if positive else np.abs(v).max()
    assert top > 0
    assert math.isfinite(p.dual(x / top * (1 - 1e-12)))
    assert p.dual(x / top * (1 + beyond)) == -math.inf


@pytest.mark.parametrize("off", [1e-6, 1e-10, 1e-12])
def test_the_balance_of_an_intercept_is_sharp(off):
    p = ERM(X, Y, "logistic", alpha=0.1, intercept=True)
    x = p.balance(np.full(30, 0.3))
    assert math.isfinite(p.dual(x))
    x[0] += off * np.abs(x).sum()
    assert p.dual(x) == -math.inf


@pytest.mark.parametrize("loss", ["logistic", "hinge", losses.StronglyConvex("logistic", 1.0)])
def test_rows_of_weight_zero_have_x_zero(loss):
    weight = np.ones(30)
    weight[3] = 0.0
    p = ERM(X, Y, loss, alpha=0.1, sample_weight=weight)
    x = np.where(weight > 0, 0.3, 0.0)
    assert math.isfinite(p.dual(x))
    x[3] = 1e-300
    assert p.dual(x) == -math.inf


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("beyond", [1e-6, 1e-9, 1e-14])
def test_bounds_times_weights_are_sharp(loss, beyond):
    p = ERM(X, Y, loss, alpha=0.1, sample_weight=RNG.random(30) + 0.5)
    x = 1.0 * p.weights
    assert math.isfinite(p.dual(x))
    x[7] *= 1 + beyond
    assert p.dual(x) == -math.inf
    x[7] = -beyond
    assert p.dual(x) == -math.inf


@pytest.mark.parametrize("beyond", [1e-6, 1e-9, 1e-14])
def test_shares_of_the_gap_are_sharp(beyond):
    loss, s = losses.Hinge(), np.array([0.7])
    assert np.isfinite(loss.gap_share(np.zeros(1), s.copy(), s)).all()
    assert loss.gap_share(np.zeros(1), s * (1 + beyond), s)[0] == math.inf


# ---- what is given back is computed from w and x alone ------------------------------------------


@pytest.mark.parametrize("method", ["apcg", "sdca", "afg", "adaptive", "dual"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_run_that_is_cut_short_has_an_exact_certificate(method, intercept):
    p = ERM(X, Y, "logistic", alpha=1e-6, intercept=intercept)
    r = solve(p, method, tol=1e-14, max_epochs=23, random_state=0)
    assert r.status.code == "max_epochs"
    b = {"intercept": r.intercept} if intercept else {}
    assert r.primal == p.primal(r.w, **b)
    assert r.dual == p.dual(r.x)


def test_a_pair_with_an_unbalanced_x_is_balanced():
    p = ERM(X, Y, "logistic", alpha=0.1, intercept=True)
    x = RNG.random(30)
    assert imbalance(Y * x) > 1
    found = certify(p, Point(np.zeros(5), x))
    assert imbalance(Y * found.x) <= 1
    assert found.dual == p.dual(found.x) > -math.inf


def test_sums_of_a_method_end_no_run():
    """A point whose sums promise a gap of zero is certified from w and x."""
    p = ERM(X, Y, "logistic", alpha=0.1)
    best = solve(p, tol=1e-12, random_state=0)
    x = p.into_domain(best.x + 0.05)
    lying = Point(w=best.w, x=x, z=p.predictions(best.w), v=p.combine(best.x))
    claimed = certify(p, lying)
    found = certify_enough(p, lying, 1.0)
    assert found.exact
    assert not claimed.exact
    assert found.gap == pytest.approx(p.gap(x, best.w), rel=1e-12)


def test_a_negative_gap_is_looked_at_again():
    p = ERM(X, Y, "logistic", alpha=0.1)
    best = solve(p, tol=1e-12, random_state=0)
    lying = Point(w=best.w, x=best.x, z=p.predictions(best.w) + 5 * Y)
    assert certify(p, lying).gap < 0
    assert certify_enough(p, lying, 0.0).exact


class Polished:
    """Solves at once, and has something worse to add at the end."""

    name, needs = "polished", ()
    worse = None

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.best = solve(problem, tol=1e-9, random_state=0)
        return self

    def advance(self, budget):
        return Work(1)

    def point(self):
        return Point(w=self.best.w, x=self.best.x)

    def seen(self, certificate):
        pass

    def finish(self, certificate, converged):
        return Point(w=certificate.w + self.worse, x=certificate.x)


@pytest.mark.parametrize("worse", [0.1, 1e-2, 1e-3])
def test_polishing_never_loses_the_tolerance(worse):
    made = type("Made", (Polished,), {"worse": worse})
    p = ERM(X, Y, "logistic", alpha=0.1)
    r = solve(p, made, tol=1e-8)
    assert r.converged
    assert r.gap <= 1e-8 * r.primal


def test_polishing_within_the_tolerance_is_taken():
    made = type("Made", (Polished,), {"worse": 1e-7})
    p = ERM(X, Y, "logistic", alpha=0.1)
    r = solve(p, made, tol=1e-6)
    assert r.converged
    assert np.any(r.w != solve(p, tol=1e-9, random_state=0).w)


# ---- sums and balance ---------------------------------------------------------------------------


def test_sums_are_compensated():
    """A million terms of many sizes: right to the last digit, as plain sums are not."""
    rng = np.random.default_rng(0)
    r = rng.standard_normal(10**6) * 10 ** rng.uniform(-6, 3, 10**6)
    kernel = losses.Squared().arrays
    one, none = np.ones(1), np.zeros(r.size)
    exact = math.fsum(0.5 * t * t for t in r.tolist())
    assert kernel.total(r, none, False, one) == pytest.approx(exact, rel=2e-16)
    assert kernel.total_conjugate(r, one) == pytest.approx(exact, rel=2e-16)
    assert abs(float(np.cumsum(0.5 * r * r)[-1]) / exact - 1) > 2e-16


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Huber(5.0)])
def test_a_million_entries_over_many_decades_are_balanced(loss):
    rng = np.random.default_rng(1)
    n = 10**6
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss.margin else np.zeros(n)
    s = 10 ** rng.uniform(-8, 0, n)
    x = loss.clip(s * rng.random(n) * 10 ** rng.uniform(-8, 0, n), None, s)
    made = loss.balance(x, y, s)
    signed = y * made if loss.margin else made
    # far below what `imbalance` lets pass: the further rounds take what the first one left
    assert abs(math.fsum(signed)) <= 2e-17 * float(np.abs(signed).sum())
    np.testing.assert_array_equal(loss.clip(made, None, s), made)


# ---- when to give up ----------------------------------------------------------------------------


def stall_after(count, level=0.5 * STALL):
    stall, rng = Stall(), np.random.default_rng(0)
    zero = np.zeros(1)
    said = []
    for _ in range(count):
        gap = level * (1 + 0.05 * rng.random())
        said.append(stall.saw(Certificate(zero, zero, 0.0, zero, 1.0, 1.0 - gap), "dual"))
    return said


def test_a_slow_problem_is_not_called_precision():
    """Forty looks without a fall may be a slow method; two hundred are not."""
    assert not any(stall_after(40))
    assert any(stall_after(200))


def test_coordinates_left_out_come_back():
    """What a look found is too old `hold` passes later: everything is sampled again."""
    p = ERM(X, np.sign(Y) * 0.3 + X[:, 0], "squared", alpha=1e-8)
    resting = Resting(p, np.arange(30))
    method = SimpleNamespace(mu=0.5 * resting.tuning.accelerated)
    found = replace(certify(p, Point(x=np.zeros(30))), primal=1.0, dual=1.0)
    resting.after_look(method, found, 10.0)
    assert not resting.expired(10.0 + 0.5 * resting.tuning.hold)
    assert resting.expired(10.0 + resting.tuning.hold)


# ---- around it ----------------------------------------------------------------------------------


def test_ctrl_c_in_fit_raises_and_keeps_what_there_is():
    def interrupt(check):
        raise KeyboardInterrupt

    model = APCGRegressor(alpha=1e-6, tol=1e-14, max_epochs=10**6)
    from apcg.estimators import linear

    original = linear.solve

    def interrupted(problem, *given, **options):
        options["callback"] = interrupt
        options["check_every"] = 1
        return original(problem, *given, **options)

    linear.solve = interrupted
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, X[:, 0])
    finally:
        linear.solve = original
    assert model.coef_.shape == (5,)
    assert np.isfinite(model.coef_).all()
    assert model.status_.code == "interrupted"


def test_a_path_looks_ahead():
    """Starts that follow the path take fewer passes than the last answer alone."""
    rng = np.random.default_rng(0)
    A = sp.random_array((400, 100), density=0.2, format="csr", rng=rng)
    y = A @ rng.standard_normal(100) + 0.1 * rng.standard_normal(400)
    p, alphas = ERM(A, y, "squared", alpha=1.0), np.geomspace(1e-2, 1e-3, 12)
    along = path(p, alphas, method="sdca", tol=1e-8, max_epochs=5000, random_state=0)
    passes, last = 0, None
    for alpha in alphas:
        last = solve(p.with_alpha(alpha), "sdca", x0=last, tol=1e-8, max_epochs=5000,
                     random_state=0)  # fmt: skip
        passes += last.epochs
    assert all(r.converged for r in along)
    assert sum(r.epochs for r in along) < 0.9 * passes


def test_a_small_gap_is_not_rounding():
    """16 eps of |P| + |D| is; a hundred times as much is worth the next look."""
    zero, eps = np.zeros(1), np.finfo(float).eps
    for times, expected in ((20, True), (2000, False), (1e6, False)):
        found = Certificate(zero, zero, 0.0, zero, 1.0, 1.0 - times * eps)
        assert Stall().saw(found, "dual") is expected
