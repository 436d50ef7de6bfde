"""Newton's method with bounds on the weights: `newton_bounds`."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, minimize, nnls

from apcg import ERM, losses, penalties, solve
from apcg import linear_model as L
from apcg.methods.base import Target
from apcg.methods.interior import general


def data(n=80, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    y = X @ (rng.normal(size=d) / X.std(axis=0)) + rng.normal(size=n)
    return X, y


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
def test_bounds_are_certified(loss, intercept):
    X, y = data()
    y = y if loss in ("squared", "huber") else np.sign(y)
    g = penalties.Box(-0.05, np.linspace(0.01, 0.5, 12))
    r = solve(ERM(X, y, loss, g, 1.0, intercept=intercept), "newton_bounds", tol=1e-11)
    assert r.converged
    assert np.all(r.w >= -0.05)
    assert np.all(r.w <= g.upper)
    assert np.any((r.w == -0.05) | (r.w == g.upper))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(80, 12), (15, 30)])
def test_ridge_with_w_above_zero_against_nnls(shape, sparse):
    X, y = data(*shape)
    d = shape[1]
    w, _ = nnls(np.vstack([X, np.sqrt(0.3) * np.eye(d)]), np.append(y, np.zeros(d)))
    model = L.Ridge(alpha=0.3, positive=True, fit_intercept=False)
    model.fit(sp.csr_array(X) if sparse else X, y)
    np.testing.assert_allclose(model.coef_, w, atol=1e-8 * w.max())


def test_least_squares_in_a_box_against_scipy():
    X, y = data()
    r = solve(ERM(X, y, "squared", penalties.Box(-0.2, 0.3), 1.0), tol=1e-12)
    found = lsq_linear(X, y, (-0.2, 0.3), tol=1e-14, lsq_solver="exact", method="bvls")
    np.testing.assert_allclose(r.w, found.x, atol=1e-7)


def test_logistic_above_zero_against_scipy():
    X, y = data()
    y = np.sign(y)
    problem = ERM(X, y, "logistic", "l2", 1e-2, positive=True)
    r = solve(problem, tol=1e-11)

    def value(w):
        z = y * (X @ w)
        return np.mean(np.logaddexp(0, -z)) + 0.005 * w @ w

    def slope(w):
        return -X.T @ (y / (1 + np.exp(y * (X @ w)))) / len(y) + 0.01 * w

    found = minimize(value, np.zeros(12), jac=slope, bounds=[(0, None)] * 12,
                     options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    assert r.converged
    assert abs(r.primal - found.fun) <= 1e-9


def test_a_start_within_the_bounds_is_taken():
    X, y = data()
    problem = ERM(X, y, "squared", "l2", 1e-2, positive=True)
    r = solve(problem, tol=1e-10)
    again = solve(problem, tol=1e-10, x0=r)
    assert again.epochs <= 1
    np.testing.assert_allclose(again.w, r.w, atol=1e-9)


def test_auto_takes_it():
    X, y = data()
    r = solve(ERM(X, y, "squared", "l2", 1e-2, positive=True))
    assert r.trace.notes[0].startswith("newton_bounds")
    wide = np.random.default_rng(0).normal(size=(3, 3000))
    r = solve(ERM(wide, y[:3], "squared", "l2", 1e-2, positive=True))
    assert r.trace.notes[0].startswith("adaptive")


def test_steps_that_arrive_late_leave_room_for_interior_points():
    """A step takes a hundred passes: one more than there is room for would leave too few."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((343, 5)) @ rng.standard_normal((5, 283))
    X += 0.3 * rng.standard_normal((343, 283))
    y = np.sign(X @ rng.standard_normal(283) + rng.standard_normal(343))
    p = ERM(X, y, losses.SmoothedHinge(0.02), "l2", 1e-4, positive=True)
    r = solve(p, random_state=0)
    assert r.converged
    assert any("newton_bounds -> interior" in note for note in r.trace.notes)
    spent = r.trace["epoch"][r.trace["method"] == "newton_bounds"]
    assert spent[-1] <= 1000 - general.kept(p, Target(1e-6, 1000))
