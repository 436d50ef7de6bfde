"""Answers under L1 have exact zeros whatever the method; those of `minimize` too."""

import numpy as np
import pytest

from apcg import ERM, functions, minimize, penalties, solve

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 60))
Y = X[:, :6] @ RNG.standard_normal(6) + 0.1 * RNG.standard_normal(200)


class OwnElasticNet:
    """(r|w|_1 + (1 - r)/2 |w|^2), as a user writes it."""

    def __init__(self, ratio):
        self.r, self.strong_convexity = ratio, 1 - ratio

    def value(self, w):
        return float(self.r * np.abs(w).sum() + 0.5 * (1 - self.r) * w @ w)

    def prox(self, v, step):
        soft = np.sign(v) * np.maximum(np.abs(v) - self.r * step, 0)
        return soft / (1 + (1 - self.r) * step)

    def conjugate_gradient(self, v):
        return np.sign(v) * np.maximum(np.abs(v) - self.r, 0) / (1 - self.r)

    def conjugate(self, v):
        if self.r == 1:
            return 0.0 if np.max(np.abs(v)) <= 1 + 1e-12 else np.inf
        u = self.conjugate_gradient(v)
        return float(v @ u) - self.value(u)

    def excess(self, v):
        return float(np.max(np.abs(v)))


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "afg", "adaptive"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize(
    ("penalty", "ratio", "intercept"),
    [("l1", 1.0, False), ("l1", 1.0, True), ("elasticnet", 0.5, False), ("elasticnet", 0.5, True)],
)
def test_every_method_has_the_zeros_of_the_optimum(penalty, ratio, intercept, loss, method):
    p = ERM(X, Y, loss, penalty, 0.1, intercept=intercept)
    best = solve(p, tol=1e-11, max_epochs=20_000, random_state=0)
    r = solve(p, method, tol=1e-6, max_epochs=5000, random_state=0)
    assert r.converged
    assert r.gap <= 1e-6 * r.primal
    np.testing.assert_array_equal(r.w != 0, best.w != 0)
    assert 0 < np.count_nonzero(r.w) < 10


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_penalty_of_ones_own_has_them_too(ratio, intercept):
    known = ERM(X, Y, "squared", "elasticnet", 0.1, l1_ratio=ratio, intercept=intercept)
    own = ERM(X, Y, "squared", OwnElasticNet(ratio), 0.1, intercept=intercept)
    best = solve(known, tol=1e-11, random_state=0)
    r = solve(own, random_state=0)
    assert r.converged
    np.testing.assert_array_equal(r.w != 0, best.w != 0)


class Oracle:
    """(1/2)|X x - y|^2 in Python."""

    L = np.sum(X**2, axis=0)

    def value(self, x):
        return 0.5 * float(np.sum((X @ x - Y) ** 2))

    def partial_gradient(self, i, x):
        return float(X[:, i] @ (X @ x - Y))


class Absolute:
    def value(self, x, i):
        return 20.0 * float(abs(x))

    def prox(self, v, step, i):
        return np.sign(v) * max(abs(v) - 20 * step, 0.0)


@pytest.mark.parametrize("options", [{}, {"method": "rpcg"}, {"method": "apcg", "mu": 0.05}])
@pytest.mark.parametrize("psi", [penalties.L1(20.0), Absolute()], ids=["L1", "own"])
@pytest.mark.parametrize("f", [functions.LeastSquares(X, Y), Oracle()], ids=["f", "own f"])
def test_minimize(f, psi, options):
    r = minimize(f, psi, np.zeros(60), random_state=0, **options)
    assert r.converged
    assert np.count_nonzero(r.x) == 6
    # and what is given back is what is reported
    value = 0.5 * np.sum((X @ r.x - Y) ** 2) + 20 * np.abs(r.x).sum()
    assert r.fun == pytest.approx(value, rel=1e-12)
    gradient = X.T @ (X @ r.x - Y)
    assert np.all(np.abs(gradient[r.x == 0]) <= 20 + r.residual)
    assert np.abs(gradient + 20 * np.sign(r.x))[r.x != 0].max() <= 1.001 * r.residual


def test_groups_are_zero_as_a_whole():
    f = functions.LeastSquares(X, Y)
    r = minimize(f, penalties.GroupL2(20.0), blocks=[3] * 20, random_state=0)
    assert r.converged
    used = (r.x.reshape(20, 3) != 0).sum(axis=1)
    assert set(used.tolist()) == {0, 3}
    assert (used > 0).sum() == 2


def test_a_run_that_is_too_short_keeps_its_point_and_names_what_helps():
    r = minimize(functions.LeastSquares(X, Y), penalties.L1(20.0), method="apcg", max_epochs=20)
    assert r.status.code == "max_epochs"
    assert 'method "auto"' in r.status
    s = solve(ERM(X, Y, "squared", "l1", 0.1), "apcg", max_epochs=3, random_state=0)
    assert s.status.code == "max_epochs"
    assert 'method "auto"' in s.status
    assert "auto" not in solve(ERM(X, Y, "squared", "l1", 0.1), max_epochs=0).status


def test_own_objects_adapt_as_compiled_ones_do():
    """By default mu is found: an ill-conditioned f takes far fewer passes than with mu = 0."""
    scale = np.logspace(0, 2, 20)
    A = RNG.standard_normal((60, 20)) * scale + RNG.standard_normal((60, 1)) * scale
    b = RNG.standard_normal(60)

    class Own:
        L = np.sum(A**2, axis=0)

        def value(self, x):
            return 0.5 * float(np.sum((A @ x - b) ** 2))

        def partial_gradient(self, i, x):
            return float(A[:, i] @ (A @ x - b))

    found = minimize(Own(), None, np.zeros(20), tol=1e-7, max_epochs=3000, random_state=0)
    plain = minimize(Own(), None, np.zeros(20), method="rpcg", tol=1e-7, max_epochs=3000,
                     random_state=0)  # fmt: skip
    assert found.converged
    assert found.mu < 0.5
    assert found.epochs < 0.7 * plain.epochs
    exact = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(A @ found.x, A @ exact, atol=1e-5)
