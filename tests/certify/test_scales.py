"""Columns of any scale: an answer is never worse than w = 0, and says what rounding cost."""

import numpy as np
import pytest
from erm_problems import voice

from apcg import ERM, losses, solve
from apcg.certify.points import Point
from apcg.methods.base import Work

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge", "logistic", "squared", "huber",
          "epsilon_insensitive", "multinomial", "multiclass_hinge"]  # fmt: skip


class Lost:
    """A method that goes far away."""

    name, needs, outputs, intercept = "lost", (), True, True

    def start(self, problem, at, target, rng):
        self.w = np.full((problem.d, problem.K)[: 1 + (problem.K > 1)], 1e9)
        self.w[0] *= -1
        return self

    def advance(self, budget):
        return Work(1)

    def point(self):
        return Point(w=self.w)

    def seen(self, certificate):
        pass


def at_zero(problem):
    """P(0) with the best b, by brute force for the multiclass hinge."""
    w, rows = np.zeros((problem.d, problem.K)), np.zeros((problem.n_samples, problem.K))
    if problem.K == 1:
        w, rows = w[:, 0], rows[:, 0]
    if not problem.intercept:
        return problem.primal(w)
    if problem.loss.gamma == 0 and problem.K > 1:
        steps = np.linspace(-2, 2, 9)
        grid = np.array(np.meshgrid(*[steps] * problem.K)).reshape(problem.K, -1).T
        return min(problem.primal(w, b) for b in grid)
    return problem.primal(w, problem.best_intercept(rows))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("largest", [0.4, 0.7])
def test_a_method_that_goes_astray_is_not_believed(loss, intercept, largest):
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((30, 4)), rng.standard_normal(30)
    y = z
    if loss in losses.names_of_classes():
        y = np.where(np.arange(30) < 30 * largest, 1, np.where(z > 0, 0, 2))
    elif losses.by_name(loss).margin:
        y = np.where(np.arange(30) < 30 * largest, 1.0, -1.0)
    p = ERM(X, y, loss, alpha=0.1, intercept=intercept)
    r = solve(p, Lost(), max_epochs=3)
    assert not r.w.any()
    assert r.primal <= at_zero(p) * (1 + 1e-12)
    assert 0 <= r.dual <= r.primal
    assert r.status.code == "max_epochs"
    assert f"at a relative gap {r.gap / r.primal:.2e}" in r.status


def test_a_dual_point_is_not_worse_than_zero():
    """The better of two w may come with an x that says less than x = 0."""

    class Half(Lost):
        def start(self, problem, at, target, rng):
            self.w, self.x = np.full(problem.d, 0.1), np.full(problem.n_samples, 1e6)
            return self

        def point(self):
            return Point(w=self.w, x=self.x)

    X = np.random.default_rng(0).standard_normal((30, 4))
    p = ERM(X, X @ [0.2, 0.1, 0.1, 0.1], "squared", alpha=1e-3)
    r = solve(p, Half(), max_epochs=3)
    assert np.all(r.w == 0.1)
    assert r.dual == 0.0


# ---- columns of any scale -----------------------------------------------------------------------


def extended(p, r):
    """P and D in extended precision, for L2 and one output; by the definitions."""
    long = np.longdouble
    X, y, w, x = (np.asarray(a, dtype=long) for a in (p.samples.stored, p.y, r.w, r.x))
    s = np.broadcast_to(p.weights, p.n_samples).astype(long)
    z = X @ w + long(r.intercept)
    m = z * y if p.loss.margin else z - y
    if p.loss.kernel == "logistic":
        phi = np.logaddexp(long(0), -m)
        conjugate = x * np.log(x / s) + (s - x) * np.log1p(-x / s)
    else:
        k, epsilon, gamma, lower, upper = map(long, p.loss.theta)
        slope = np.sign(k - m) * np.maximum(np.abs(k - m) - epsilon, 0)
        slope = np.clip(slope / gamma if gamma else slope * long(1e300), lower, upper)
        phi = (k - m) * slope - epsilon * np.abs(slope) - gamma / 2 * slope**2
        conjugate = -k * x + epsilon * np.abs(x) + gamma / 2 * x**2 / s
    psi = y * x if p.loss.margin else x
    conjugate = conjugate - (0 if p.loss.margin else x * y)
    v = X.T @ psi / (long(p.alpha) * p.n)
    P = np.sum(s * phi) / p.n + long(p.alpha) / 2 * np.sum(w * w)
    D = -np.sum(conjugate) / p.n - long(p.alpha) / 2 * np.sum(v * v)
    return float(P), float(D)


ONE = LOSSES[:7]


@pytest.mark.parametrize("loss", ONE)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_raw_columns_are_solved(loss, intercept, weighted):
    X, y = voice(loss=loss)
    s = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    p = ERM(X, y, loss, alpha=1 / len(y), intercept=intercept, sample_weight=s)
    r = solve(p, random_state=0)
    assert r.trace.notes == ["orthogonal: lambda is less than the rounding of X X'"]
    assert r.converged
    P, D = extended(p, r)
    assert -1e-9 * P <= P - D <= 1.01e-6 * P
    assert abs(P - r.primal) + abs(D - r.dual) <= 1e-7 * P


@pytest.mark.parametrize("d", [20, 60])
@pytest.mark.parametrize("loss", ["logistic", "huber", "hinge"])
def test_tall_and_square_too(d, loss):
    X, y = voice(60, d, loss=loss)
    for alpha in (1 / 60, 1e-8):
        p = ERM(X, y, loss, alpha=alpha, intercept=True)
        r = solve(p, random_state=0)
        assert r.converged, r
        P, D = extended(p, r)
        assert P - D <= 1.01e-6 * P


def exact_ridge(X, y, alpha, intercept):
    """By singular values, and refined in extended precision."""
    X, y = (X - X.mean(0), y - y.mean()) if intercept else (X, y)
    U, sigma, V = np.linalg.svd(X, full_matrices=False)
    kept = sigma > 1e-12 * sigma[0]
    V, bend = V[kept], sigma[kept] ** 2 + alpha * len(y)
    w = V.T @ (sigma[kept] * (U[:, kept].T @ y) / bend)
    long, exact = np.longdouble, X.astype(np.longdouble)
    for _ in range(3):
        gradient = exact.T @ (y - exact @ w.astype(long)) - long(alpha * len(y)) * w
        w = w + V.T @ ((V @ np.asarray(gradient, dtype=float)) / bend)
    return w


@pytest.mark.parametrize("kind", ["wide", "wide centred", "wide of low rank", "tall of low rank"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("tol", [1e-6, 1e-12])
@pytest.mark.parametrize("alpha", [1e-8, 1e-10, 1e-14])
def test_ridge_is_exact_to_rounding(kind, intercept, tol, alpha):
    rng = np.random.default_rng(0)
    n, d = (100, 20) if kind.startswith("tall") else (30, 100)
    X = rng.standard_normal((n, d))
    if "rank" in kind:
        X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, d))
    X -= X.mean(0) if "centred" in kind else 0.0
    y = rng.standard_normal(n) + X[:, 0]
    r = solve(ERM(X, y, "squared", alpha=alpha, intercept=intercept), tol=tol)
    assert r.status.code in ("converged", "precision")
    w = exact_ridge(X, y, alpha, intercept)
    assert np.abs(r.w - w).max() <= 1e-13 * np.abs(w).max()


def test_where_double_precision_ends_the_columns_are_named():
    X, y = voice(30, 80, loss="squared")
    X[:, 0] *= 1e6
    p = ERM(X, y, "squared", alpha=1e-12, intercept=True)
    r = solve(p, tol=1e-12)
    assert r.status.code == "precision"
    sizes = np.linalg.norm(X, axis=0)
    assert f"norms from {sizes.min():.1e} to {sizes.max():.1e}, and alpha is 1.0e-12" in r.status
    assert r.primal <= at_zero(p)


def test_columns_alike_in_size_are_not_blamed():
    X = np.random.default_rng(0).standard_normal((30, 4))
    r = solve(ERM(X, X[:, 0], "squared", alpha=0.1), Lost(), max_epochs=2)
    assert "columns" not in r.status
    r = solve(ERM(X * [1e-3, 1, 1, 1e2], X[:, 0], "squared", alpha=0.1), Lost(), max_epochs=2)
    assert "columns of X have norms from 5.1e-03 to" in r.status
