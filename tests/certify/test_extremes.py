"""Numbers at the ends of the floating point range: an answer, or an error that says what to do."""

import contextlib
import dataclasses
import math

import numpy as np
import pytest

from apcg import (
    ERM,
    APCGClassifierCV,
    APCGRegressor,
    functions,
    linear_model,
    losses,
    minimize,
    path,
    penalties,
    solve,
)
from apcg._base.weights import LEAST, mean
from apcg.certify.certificate import certify
from apcg.methods.base import Point, Work
from apcg.run.loop import IDLE

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 4)), np.tile([1.0, -1.0], 6)


# ---- P = 0 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "afg", "newton"])
def test_where_the_optimum_is_zero_the_answer_is_zero(method):
    """A gap cannot be over P there: no gap is within any tolerance, and another within none."""
    p = ERM(X, np.zeros(12), "squared", alpha=0.1)
    r = solve(p, method, check_every=1, random_state=0)
    assert r.converged
    assert (r.primal, r.gap) == (0.0, 0.0)
    assert not r.w.any()
    assert certify(p, Point(w=np.zeros(4), x=np.ones(12))).relative == math.inf


# ---- slopes next to nothing (F8) ----------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "adaptive", "dual"])
@pytest.mark.parametrize("label", [1e-60, 1e-200, 1e-300])
def test_a_row_of_zeros_with_a_tiny_label(method, label):
    p = ERM([[1.0], [0.0]], [1.0, label], losses.EpsilonInsensitive(0.0), alpha=0.1)
    r = solve(p, method, random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(0.05)  # w = 1: (0.1/2) w^2, and nothing of the second row


@pytest.mark.parametrize("slope", [-1e-60, -1e-230, -1.0, -1e60])
def test_a_zero_column_goes_to_its_bound(slope):
    f = functions.Quadratic(np.diag([1.0, 0.0]), c=np.array([0.0, slope]))
    assert minimize(f, penalties.Box(-2.0, 2.0)).x[1] == 2.0
    with pytest.raises(ValueError, match="unbounded below"):
        minimize(f)


# ---- weights (F9) -------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [1e-320, 1e-310, 1e-200, 0.9 * LEAST])
def test_weights_that_no_sum_can_show(small):
    with pytest.raises(ValueError, match="Give 0 for weights below 1e-150 of the largest"):
        ERM([[1.0], [2.0]], [1.0, 2.0], "squared", sample_weight=[1.0, small])
    with pytest.raises(ValueError, match="Give 0 for weights"):
        ERM([[1.0], [2.0]], [1.0, 2.0], "squared", sample_weight=[1e298, small * 1e298])


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive", "huber"])
@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "dual"])
def test_the_smallest_weights_there_are(loss, method):
    p = ERM(X, RNG.standard_normal(12), loss, alpha=0.1, sample_weight=[1.1 * LEAST] + [1.0] * 11)
    r = solve(p, method, max_epochs=5000, random_state=0)
    assert r.converged


# ---- X next to nothing (F10) --------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-100, 1e-150, 1e-160, 1e-170])
@pytest.mark.parametrize("method", ["sdca", "adaptive", "dual", "auto"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_next_to_nothing_among_others(size, method, intercept):
    A = np.vstack([X, [[size, 0, 0, 0], [2 * size, 0, 0, 0]]])
    p = ERM(A, np.append(Y, [1.0, -1.0]), "hinge", alpha=0.1, intercept=intercept)
    if intercept and method == "dual":
        pytest.skip("an intercept that rows of zeros decide is slow for it, tiny or not")
    r = solve(p, method, max_epochs=5000, random_state=0)
    assert r.converged


@pytest.mark.parametrize("size", [1e-140, 1e-150, 1e-155, 1e-160])
def test_a_tiny_x_is_solved_or_refused(size):
    for intercept in (False, True):
        for method in ("sdca", "adaptive", "dual", "auto", "apcg"):
            p = ERM(size * X, Y, "hinge", alpha=0.1, intercept=intercept)
            try:
                r = solve(p, method, random_state=0)
            except ValueError as error:
                assert "X is too small for alpha = 0.1; scale" in str(error)  # noqa: PT017
            else:
                assert math.isfinite(r.gap)
                assert r.status.code in ("converged", "max_epochs")
                assert method == "apcg" or r.converged


# ---- values that overflow (F11) -----------------------------------------------------------------


def test_p_that_overflows_is_an_error():
    with pytest.raises(ValueError, match=r"The largest \|y\| is 2e\+154; scale y"):
        solve(ERM([[1.0], [2.0]], [1e154, 2e154], "squared"), "afg")


@pytest.mark.parametrize("method", ["afg", "newton"])
def test_a_start_that_overflows_is_an_error(method):
    p = ERM(X, Y, "logistic", alpha=0.1)
    r = solve(p)
    with pytest.raises(ValueError, match="start from another x0"):
        solve(p, method, x0=dataclasses.replace(r, w=np.full(4, 1e200)))


def test_a_dual_method_starts_from_x_whatever_w_is():
    p = ERM(X, Y, "logistic", alpha=0.1)
    r = solve(p, "dual", random_state=0)
    again = solve(p, "dual", x0=dataclasses.replace(r, w=np.full(4, 1e200)), random_state=0)
    assert again.converged
    assert again.primal == pytest.approx(r.primal, rel=1e-6)


@pytest.mark.parametrize("b", [1e300, -1e101, math.nan, math.inf])
def test_an_intercept_that_is_none(b):
    p = ERM(X, Y, "logistic", alpha=0.1, intercept=True)
    with pytest.raises(ValueError, match="b of x0 must be in"):
        solve(p, x0=dataclasses.replace(solve(p), intercept=b))


@pytest.mark.parametrize("method", ["afg", "newton", "auto", "apcg", "sdca", "dual"])
def test_a_gap_is_never_nan(method):
    for alpha in (1e-200, 1e-300, 1e300):
        try:
            r = solve(ERM([[1.0], [2.0]], [1, -1], "logistic", alpha=alpha), method, max_epochs=50)
        except ValueError as error:
            assert "overflow" in str(error) or "underflow" in str(error)  # noqa: PT017
        else:
            assert not math.isnan(r.gap)
            assert not math.isnan(r.dual)


def test_a_certificate_holds_no_nan():
    p = ERM(X, Y, "logistic", alpha=0.1)
    for point in (Point(w=np.full(4, np.nan)), Point(x=np.full(12, np.nan))):
        found = certify(p, point)
        assert found.gap == math.inf
        assert not found.finite
    found = certify(p, Point(np.zeros(4), np.full(12, np.nan)))  # w has an x of its own
    assert found.gap == p.primal(np.zeros(4)) - p.dual(found.x)
    assert np.isfinite(found.x).all()


# ---- smaller things (F12) -----------------------------------------------------------------------

HUGE = 10**400


@pytest.mark.parametrize(
    "call",
    [
        lambda: ERM(X, Y, alpha=HUGE),
        lambda: solve(ERM(X, Y), tol=HUGE),
        lambda: solve(ERM(X, Y), time_limit=HUGE),
        lambda: solve(ERM(X, Y), max_epochs=HUGE),
        lambda: penalties.L1(HUGE),
        lambda: losses.Huber(HUGE),
        lambda: minimize(functions.LeastSquares(X, Y), mu=HUGE),
        lambda: linear_model.Ridge(alpha=HUGE).fit(X, Y),
        lambda: linear_model.LogisticRegression(C=HUGE).fit(X, Y),
        lambda: linear_model.LinearSVC(C=HUGE).fit(X, Y),
    ],
)
def test_integers_beyond_floating_point(call):
    with pytest.raises(ValueError, match=r"must be below (1e308|2\^62)"):
        call()


@pytest.mark.parametrize("C", [1e-320, 1e308])
def test_a_c_whose_inverse_overflows_warns_nobody(C):
    model = linear_model.LogisticRegression(C=C, max_iter=1000)
    with contextlib.suppress(ValueError):  # alpha is infinite
        model.fit(X, Y)
        assert np.isfinite(model.coef_).all()


def test_sums_of_labels_and_weights_that_overflow():
    labels = np.array([1e308, 0.9e308, 0.8e308, 0.7e308])
    assert mean(labels) == pytest.approx(0.85e308)
    assert mean(labels[:, None]) == pytest.approx(0.85e308)
    assert mean(np.arange(4.0), np.full(4, 1e308)) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="cale"):
        APCGRegressor().fit(X[:4], labels)


def test_a_path_to_next_to_no_penalty_has_an_answer():
    found = path(ERM(X, X @ np.ones(4), "squared", "l1", 0.1), [1.0, 1e-320], max_epochs=50)
    assert len(found) == 2
    assert found[1].gap <= found[1].primal


def test_a_time_is_no_number():
    with pytest.raises(TypeError, match="must be a number"):
        solve(ERM(X, Y), tol=np.timedelta64(1))


def test_sizes_whose_sum_wraps():
    with pytest.raises(ValueError, match="add up to 18446744073709551620"):
        minimize(functions.LeastSquares(X, Y), blocks=[2**62, 2**62, 2**62, 2**62 + 4])


def test_cv_without_a_split():
    with pytest.raises(ValueError, match="cv gives no split"):
        APCGClassifierCV(cv={}).fit(X, Y)


def test_x0_below_the_bounds_is_told_so():
    p = ERM(X, Y, "logistic", "l1", 0.01, positive=True)
    with pytest.raises(ValueError, match="within the bounds of the penalty l1") as error:
        solve(p, "apcg", x0=np.full(4, -1.0))
    assert "phi*" not in str(error.value)


# ---- methods that do no work --------------------------------------------------------------------


class Idle:
    """Asks to be looked at, and does nothing."""

    name, needs, side = "idle", (), "primal"
    work = Work(0)

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.problem, self.looks = problem, 0
        return self

    def advance(self, budget):
        return self.work

    def point(self):
        self.looks += 1
        return Point(w=np.zeros(self.problem.d))

    def seen(self, certificate):
        pass


@pytest.mark.parametrize("every", [None, 3])
def test_a_method_that_never_works_is_ended(every):
    r = solve(ERM(X, Y, "logistic"), Idle, max_epochs=10, check_every=every)
    assert r.status.code == "max_epochs"
    assert r.epochs == 10
    assert len(r.trace) <= IDLE + 12


@pytest.mark.parametrize("given", [None, 3, Work(-1), Work(0.5), Work("1")])
def test_what_advance_may_return(given):
    class Wrong(Idle):
        work = given

    with pytest.raises(TypeError, match=r"must return Work\(passes\)"):
        solve(ERM(X, Y, "logistic"), Wrong)
