"""Data of any scale: certificates hold, runs end, and what cannot be done is said."""

import dataclasses
import math

import numpy as np
import pytest

from apcg import ERM, losses, path, penalties, solve
from apcg.certify import certificate
from apcg.certify.certificate import certify, impossible
from apcg.certify.points import Certificate, Point
from apcg.methods import registry
from apcg.methods.base import Budget, Start, Target, Work
from apcg.methods.plan.plan import Auto
from apcg.methods.reductions.per_output import OneByOne
from apcg.penalties.groups import safe_norms

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 8)), RNG.standard_normal((12, 3))
SIGNS = np.where(Y[:, 0] > 0, 1.0, -1.0)
SCALES = [1e-250, 1e-200, 1e-170, 1e-158, 1e-155, 1e-120, 1e-40, 1e40, 1e100, 1e140]


# ---- norms of groups ----------------------------------------------------------------------------


def squares(w):
    return np.einsum("jk,jk->j", w, w)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-170, 1e-141, 1.0, 1e149, 1e160, 1e300])
def test_norms_lose_no_digits_at_any_scale(scale):
    w = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    large = np.array([[1.0, 1.0]])  # another group of ordinary size
    found = safe_norms(squares, np.vstack([w * scale, large]))
    np.testing.assert_allclose(found, [5 * scale, 0, scale, math.sqrt(2)], rtol=1e-15, atol=0)


def test_norms_of_what_is_not_finite():
    found = safe_norms(squares, np.array([[np.inf, 1.0], [np.nan, 1.0], [3.0, 4.0]]))
    assert found[0] == np.inf
    assert np.isnan(found[1])
    assert found[2] == 5


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("penalty", [penalties.GroupLasso([4, 4]), "group"])
def test_penalties_on_groups_at_any_scale(scale, penalty):
    """g is homogeneous, and so is its excess; the conjugate knows what is beyond."""
    K = 3 if penalty == "group" else 1
    g = ERM(X, Y if K > 1 else Y[:, 0], "squared", penalty).g
    w = RNG.standard_normal((8, K) if K > 1 else 8)
    assert g.value(scale * w) == pytest.approx(scale * g.value(w), rel=1e-14)
    assert g.excess(scale * w) == pytest.approx(scale * g.excess(w), rel=1e-14)
    step = 0.3 * scale * g.excess(w)
    np.testing.assert_allclose(
        g.prox(scale * w, step) / scale, g.prox(w, 0.3 * g.excess(w)), rtol=1e-13
    )


@pytest.mark.parametrize("penalty", [penalties.GroupLasso([4, 4]), "group"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("intercept", [False, True])
def test_certificates_of_groups_hold_at_any_scale(penalty, scale, intercept):
    """With c X and c alpha, w/c has the same P: the optimum is that of scale 1."""
    y = Y if penalty == "group" else Y[:, 0]
    best = solve(ERM(X, y, "squared", penalty, 0.1, intercept=intercept), tol=1e-12)
    assert best.converged
    p = ERM(scale * X, y, "squared", penalty, scale * 0.1, intercept=intercept)
    r = solve(p, max_epochs=50, random_state=0)
    assert r.dual <= best.primal * (1 + 1e-9)
    assert r.primal >= best.dual * (1 - 1e-9)
    assert p.dual(r.x) == pytest.approx(r.dual, rel=1e-12)
    assert r.converged == (r.gap <= 1e-6 * r.primal)


def test_slopes_whose_squares_underflow():
    """D was 35 times P, and x infeasible, at a status of "converged"."""
    p = ERM(1e-80 * np.eye(2), 1e-80 * np.ones(2), "squared", penalties.GroupLasso([2]), 1e-162)
    r = solve(p)
    assert r.converged
    assert r.gap >= 0
    assert p.dual(r.x) == pytest.approx(r.dual)


def test_slopes_whose_squares_overflow():
    """It did not come back."""
    p = ERM(1e100 * X, 1e60 * Y[:, 0], "squared", penalties.GroupLasso([4, 4]), 1e158)
    r = solve(p, time_limit=1, max_epochs=2)
    assert r.status.code in ("converged", "max_epochs", "stuck")
    assert p.dual(r.x) == pytest.approx(r.dual)


@pytest.mark.parametrize("penalty", ["l1", penalties.GroupLasso([4, 4])])
def test_slopes_that_overflow_are_refused(penalty):
    p = ERM(1e150 * X, 1e200 * Y[:, 0], "squared", penalty, 1.0)
    with pytest.raises(ValueError, match=r"overflow.*Scale X or y|scale\s+y and X"):
        solve(p, max_epochs=2)


@pytest.mark.parametrize("penalty", ["l1", penalties.GroupLasso([4, 4])])
@pytest.mark.parametrize("theta", [math.inf, math.nan])
def test_a_stage_that_is_not_finite_is_refused(penalty, theta):
    """Stages fall by a factor: from infinity they never came to an end."""
    p = ERM(X[:6], Y[:6, 0], "squared", penalty, 1e-3)
    method = registry.find("working_set" if penalty == "l1" else "group_set", p)
    run = method.start(p, Start(), Target(1e-6, 1000), np.random.default_rng(0))
    assert run.fallen(1e300) < 1e300
    with pytest.raises(ValueError, match=r"alpha = 0.001\)\. Scale X or y"):
        run.fallen(theta)


def test_a_penalty_on_rows_without_its_l1_part():
    """0/0 of a row of zeros was a RuntimeWarning."""
    p = ERM(X, Y, "huber", "group_elasticnet", 0.1, l1_ratio=0.0)
    v = np.zeros((8, 3))
    v[0] = 1.0
    np.testing.assert_array_equal(p.g.prox(v, 1.0), v / 2)
    assert solve(p, "afg").converged


# ---- a dual above the primal --------------------------------------------------------------------


class Claims:
    """A method that gives a certificate of its own making."""

    name, needs, outputs, intercept = "claims", (), True, True

    def __init__(self, certificate):
        self.certificate = certificate

    def start(self, problem, at, target, rng):
        return self

    def advance(self, budget):
        return Work(1)

    def point(self):
        return self.certificate

    def seen(self, certificate):
        pass


@pytest.mark.parametrize(
    "p",
    [
        ERM(X, SIGNS, "hinge", "l2", 0.1),
        ERM(X, Y[:, 0], "squared", "l1", 0.1, intercept=True),
        ERM(X, Y, "squared", "group", 0.1),
        ERM(X, np.arange(12) % 3, "multinomial", "l2", 0.1),
    ],
)
@pytest.mark.parametrize("above", [1e-9, 1.0, 1e30])
def test_a_dual_above_the_primal_is_not_believed(p, above):
    shape = (p.d,) if p.K == 1 else (p.d, p.K)
    true = certify(p, Point(np.zeros(shape)))
    false = dataclasses.replace(true, dual=true.primal * (1 + above))
    assert impossible(p, false)
    r = solve(p, Claims(false), max_epochs=2)
    assert not r.converged
    assert true.dual <= r.dual <= solve(p).primal


@pytest.mark.parametrize("units", [1, 4, 15])
def test_a_dual_above_by_rounding_is_believed(units):
    p = ERM(X, SIGNS, "hinge", "l2", 0.1)
    r = solve(p, tol=1e-12, max_epochs=10_000)
    found = certify(p, Point(r.w, r.x))
    eps = np.finfo(float).eps
    above = dataclasses.replace(found, dual=found.primal * (1 + units * eps))
    assert not impossible(p, above)
    assert not impossible(p, dataclasses.replace(found, dual=-math.inf))


def test_rounding_is_that_of_terms_that_cancel():
    """|z| is small where |a||w| is not: D may be above P by as much as the digits of z allow."""
    wide = np.array([[1e8, -1e8 + 1.0], [1.0, 1.0]])
    p = ERM(wide, [1.0, -1.0], "squared", "l2", 1e-12)
    w, x = np.array([0.5, 0.5]), np.array([1e-3, 1e-3])
    zero = Certificate(w, x, 0.0, p.predictions(w), 0.1, 0.1 * (1 + 1e-13))
    assert not impossible(p, zero)
    assert impossible(p, dataclasses.replace(zero, dual=0.2))


@pytest.mark.parametrize("method", ["auto", "sdca", "newton"])
def test_squares_of_w_that_underflow_certify_nothing(method):
    """alpha |w|^2 counts, and |w|^2 is zero: D was above P."""
    p = ERM(1e60 * X, 1e-110 * Y[:, 0], "squared", "l2", 1e119)
    r = solve(p, method, max_epochs=50)
    assert not r.converged
    assert r.dual <= r.primal * (1 + 1e-12)


# ---- huge numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [0.0, 1e-6])
def test_an_intercept_whose_square_overflows(tol):
    """It was an OverflowError."""
    p = ERM(1e120 * np.tile(X, (3, 1)), np.tile(SIGNS, 3), "logistic", "l2", 1.0, intercept=True)
    r = solve(p, tol=tol, max_epochs=100, random_state=0)
    assert r.gap <= r.primal
    with np.errstate(over="ignore"):
        assert p.dual(r.x) == pytest.approx(r.dual)


@pytest.mark.parametrize("seed", range(4))
def test_a_method_that_takes_over_begins_where_p_is_finite(seed):
    """It began at an x without a right digit, and ended at once as "non_finite"."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(8) > 0.5, 1.0, -1.0)
    data = 1e120 * rng.standard_normal((8, 3))
    r = solve(ERM(data, y, losses.StronglyConvex("logistic", 1.0), "elasticnet", 1e-3))
    assert r.status.code != "non_finite"
    assert r.gap < 0.2 * r.primal


def test_newton_with_a_step_of_nothing():
    """It was an UnboundLocalError."""
    rng = np.random.default_rng(660)
    big, labels = 1e140 * rng.standard_normal((18, 5)), 1e70 * rng.standard_normal((18, 3))
    r = solve(ERM(big, labels, "squared", "l2", 1e207))
    assert r.gap >= 0
    assert r.converged == (r.gap <= 1e-6 * r.primal)


def test_a_start_whose_squares_overflow_warns_nobody():
    y = np.where(Y > 0, 1.0, -1.0)
    assert solve(ERM(1e-140 * X, y, "logistic", "l2", 1e-300), max_epochs=20).gap >= 0


# ---- starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "penalty", "y"),
    [
        ("squared", "l2", Y[:, 0] + 3),
        ("huber", "l2", Y[:, 0] + 3),
        ("squared", "l1", Y[:, 0] + 3),
        ("squared", "group", Y + 3),
    ],
)
def test_an_answer_with_a_huge_intercept_is_a_start(loss, penalty, y):
    """`path` refused the b of its own answer: beyond 1e100."""
    scale = 1e120 if penalty != "l2" else 1.0
    p = ERM(X, 1e120 * y, loss, penalty, scale, intercept=True)
    answers = path(p, scale * np.array([1.0, 0.1, 0.01]), random_state=0)
    assert [r.converged for r in answers] == [True] * 3
    assert np.abs(answers[0].intercept).max() > 1e100
    assert solve(p.with_alpha(0.1 * scale), x0=answers[1]).converged


def test_a_start_is_not_made_worse_by_another_intercept(monkeypatch):
    """The best b for w is found to rounding: from its own answer P rose, with no pass made."""
    p = ERM(X, Y[:, 0], "huber", "l2", 1e-3, intercept=True)
    r = solve(p, "sdca", max_epochs=2, random_state=0)
    assert not r.converged
    monkeypatch.setattr(type(p), "best_shift", lambda self, z, guess=0.0: guess + 10.0)
    again = solve(p, "sdca", x0=r, max_epochs=0)
    assert again.intercept == r.intercept
    assert again.gap == pytest.approx(r.gap, rel=1e-12)


@pytest.mark.parametrize("method", ["auto", "sdca", "apcg", "adaptive"])
def test_columns_whose_squares_underflow(method):
    """The problem is not "unbounded below": what goes by squares says what is wrong."""
    p = ERM(1e-170 * X, Y[:, 0], "squared", "l1", 1e-172)
    if method == "auto":
        r = solve(p)
        assert "scale the data" in str(r.status)
        assert r.dual <= solve(ERM(X, Y[:, 0], "squared", "l1", 0.01)).primal <= r.primal
    else:
        with pytest.raises(ValueError, match=r"squares of column 0 underflow.*scale the features"):
            solve(p, method)
    tiny = X * np.append(1e-170, np.ones(7))
    assert solve(ERM(tiny, Y[:, 0], "squared", "l1", 0.1), method).converged


# ---- outputs one by one -------------------------------------------------------------------------


def test_an_x_of_all_outputs_is_feasible_for_all_of_them(monkeypatch):
    """Sums over all outputs are rounded otherwise than those of one."""
    p = ERM(X, Y, "squared", "l1", 0.1)
    run = OneByOne(Auto()).start(p, Start(), Target(1e-10, 1000), np.random.default_rng(0))
    for _ in range(5):
        run.advance(Budget(1000))
    made = run.point()
    assert made.exact
    assert p.dual(made.x) == pytest.approx(made.dual, rel=1e-14)
    combine = type(p).v_of
    monkeypatch.setattr(type(p), "v_of", lambda self, x: combine(self, x) * (1 + 1e-7))
    again = run.point()
    assert p.g.excess(combine(p, again.x) * (1 + 1e-7)) <= 1
    assert p.dual(again.x) == again.dual
    assert again.dual == pytest.approx(made.dual, rel=1e-6)
    monkeypatch.setattr(certificate, "TRIALS", 0)
    assert p.dual(run.point().x) == -math.inf  # so that the test can fail
