"""Few samples with many features: the same problem in the span of the samples."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, losses, solve
from apcg.certify.points import Start
from apcg.data import Dense
from apcg.methods.base import Target
from apcg.methods.newton.newton import Newton
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import PlanTuning
from apcg.methods.reductions.row_space import Basis, Span

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge", "logistic", "squared", "huber",
          "epsilon_insensitive"]  # fmt: skip


def wide(n=40, d=300, loss="logistic", seed=0, centred=False, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ np.diag(np.exp(rng.normal(0, 1, d)))
    X -= X.mean(0) if centred else 0.0
    z = X @ rng.standard_normal(d) / 10 + rng.standard_normal(n)
    y = np.where(z > np.median(z), 1.0, -1.0) if losses.by_name(loss).margin else z
    return X.astype(dtype), y


@pytest.mark.parametrize("kind", ["plain", "centred", "repeated", "float32", "a zero row"])
def test_the_basis_has_the_inner_products_of_the_samples(kind):
    dtype = np.float32 if kind == "float32" else np.float64
    X, _ = wide(d=2500, centred=kind == "centred", dtype=dtype)
    if kind == "repeated":
        X[20:33] = X[:13]
    if kind == "a zero row":
        X[3] = 0.0
    basis, exact = Basis(Dense(X)), X.astype(float) @ X.astype(float).T
    size = np.abs(exact).max()
    assert np.abs(basis.L @ basis.L.T - exact).max() <= 1e-13 * size
    missing = {"centred": 1, "repeated": 13, "a zero row": 1}.get(kind, 0)
    assert basis.L.shape == (40, 40 - missing)
    v = np.random.default_rng(1).standard_normal(basis.L.shape[1])
    w = basis.w(v)
    assert np.allclose(X @ w, basis.L @ v, rtol=1e-8, atol=1e-8 * np.abs(basis.L @ v).max())
    assert np.isclose(w @ w, v @ v, rtol=1e-8)


@pytest.mark.slow(but=14)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-1, 1e-6])
def test_the_optimum(loss, intercept, weighted, alpha):
    X, y = wide(loss=loss, centred=True)
    s = np.arange(40) % 3.0 if weighted else None
    p = ERM(X, y, loss, alpha=alpha, sample_weight=s, intercept=intercept)
    found = solve(p, Span(Auto()), tol=1e-8, random_state=0)
    assert found.converged
    assert found.gap <= 1e-8 * found.primal
    other = solve(p, "adaptive", tol=1e-4, max_epochs=300, random_state=0)
    assert other.dual <= found.primal * (1 + 1e-9)
    assert found.dual <= other.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_auto_takes_it_for_dense_samples_that_are_few_and_long(loss):
    X, y = wide(loss=loss)
    assert Auto().first(ERM(X, y, loss), Start())[0].name == "span"
    assert Auto(("span",)).first(ERM(X, y, loss), Start())[0].name == "dual"
    assert Auto().first(ERM(sp.csr_array(X), y, loss), Start())[0].name == "dual"
    assert Auto().first(ERM(X[:, :79], y, loss), Start())[0].name != "span"
    assert Auto().first(ERM(X, y, loss, "elasticnet"), Start())[0].name != "span"


def test_many_samples_are_not_worth_it():
    """X X' grows with n^2; a squared loss needs more passes otherwise, and may pay more."""
    X, y = wide(n=400, d=900)
    assert Auto().first(ERM(X, y, "hinge"), Start())[0].name == "dual"
    assert Auto().first(ERM(X, y, "squared"), Start())[0].name == "span"
    tuning = PlanTuning(span=(1.0, 1.0))
    assert Auto(tuning=tuning).first(ERM(X, y, "squared"), Start())[0].name == "dual"


def test_ridge_takes_one_factor():
    """The same answer as the normal equations, for any lambda."""
    X, y = wide(loss="squared")
    for alpha in (1e-1, 1e-4, 1e-8):
        r = solve(ERM(X, y, "squared", alpha=alpha), tol=1e-9, random_state=0)
        c = np.linalg.solve(X @ X.T + alpha * 40 * np.eye(40), y)
        assert np.allclose(r.w, X.T @ c, rtol=1e-6, atol=1e-9 * np.abs(X.T @ c).max())
        assert r.epochs <= 40 / 4 + 10  # X X', and what is small beside it


def test_inner_products_without_digits_are_noticed(monkeypatch):
    """The look is at X itself: it fails, and another method goes on from there."""
    X, y = wide()

    class Wrong(Basis):
        def __init__(self, X):
            super().__init__(X)
            self.L = self.L * np.linspace(0.8, 1.2, len(self.L))[:, None]

    monkeypatch.setattr("apcg.methods.reductions.row_space.Basis", Wrong)
    p = ERM(X, y, "logistic", alpha=1e-3)
    r = solve(p, tol=1e-8, random_state=0)
    assert r.converged
    assert r.gap <= 1e-8 * r.primal
    alone = solve(p, Span(Newton()), tol=1e-8, random_state=0)
    assert alone.status.code == "stuck"  # not rounding
    assert 'take method "auto"' in alone.status


def test_a_warm_start_is_used():
    X, y = wide()
    p = ERM(X, y, "logistic", alpha=1e-3)
    first = solve(p, tol=1e-10, random_state=0)
    run = Span(Newton()).start(
        p, Start(x=first.x), Target(1e-6), np.random.default_rng(0)
    )  # fmt: skip
    assert p.primal(run.point().w if run.point().w is not None else p.omega(run.point().x)) <= (
        first.primal * (1 + 1e-6)
    )


def test_it_needs_dense_x_and_l2():
    X, y = wide()
    with pytest.raises(ValueError, match="needs dense X in memory, and X is Sparse"):
        solve(ERM(sp.csr_array(X), y, "logistic"), "span")
    with pytest.raises(ValueError, match='needs penalty "l2"'):
        solve(ERM(X, y, "logistic", "l1"), "span")


def test_reruns_are_bit_equal():
    X, y = wide()
    p = ERM(X, y, "hinge", alpha=1e-4)
    a, b = (solve(p, random_state=0) for _ in range(2))
    assert np.array_equal(a.w, b.w)
    assert np.array_equal(a.x, b.x)
