"""X of any scale: orthogonal coordinates, QR factors, digits by Newton's method on w and x."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import voice

from apcg import ERM, solve
from apcg.certify import scales
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.methods.base import Budget, Target
from apcg.methods.newton.hessian import StackedFactor
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import PlanTuning
from apcg.methods.reductions import orthogonal
from apcg.methods.reductions.orthogonal import Orthogonal, OrthogonalCoordinates
from apcg.problems.costs import hidden
from apcg.problems.objective import Objective


@pytest.mark.parametrize("shape", [(20, 50), (50, 20), (30, 30)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["plain", "low rank", "float32", "sparse", "weighted"])
def test_coordinates_are_those_of_the_problem(shape, intercept, kind):
    rng = np.random.default_rng(0)
    n, d = shape
    X = rng.standard_normal(shape) + 3.0
    if kind == "low rank":
        X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, d))
    X = X.astype(np.float32) if kind == "float32" else X
    s = rng.uniform(0, 1, n) if kind == "weighted" else None
    given = sp.csr_array(X) if kind == "sparse" else X
    p = ERM(given, rng.standard_normal(n), "squared", alpha=0.3, intercept=intercept,
            sample_weight=s)  # fmt: skip
    ways = OrthogonalCoordinates(p)
    r = ways.small.d
    assert r == (4 if kind == "low rank" else min(n - (intercept and n <= d), d))
    q = rng.standard_normal(r + intercept)
    w, b = ways.w(q)
    z = X.astype(float) @ w + b
    assert np.allclose(ways.z(q), z, atol=1e-10)
    c = float(q[-1]) if intercept else 0.0
    assert p.primal(w, b) == pytest.approx(ways.small.primal(q[:r], c), rel=1e-10)
    gram = ways.U.T @ ways.U
    assert np.allclose(gram, np.diag(ways.squares), atol=1e-12)
    by_w, by_b, by_z = rng.standard_normal(d), float(intercept), rng.standard_normal(n)
    slope = by_w @ w + by_b * b + by_z @ z
    assert ways.gradient(by_w, by_b, by_z) @ q == pytest.approx(slope, rel=1e-8)


def test_a_singular_value_that_is_rounding_is_left_out():
    """Two columns are the same, and large: what the decomposition has in their place is noise."""
    X = np.random.default_rng(0).standard_normal((30, 6))
    X[:, 1] = X[:, 0]
    X *= [1e9, 1e9, 1, 1, 1, 1]
    p = ERM(X, X[:, 2], "squared", alpha=1e-20)
    assert OrthogonalCoordinates(p).small.d == 5


def test_a_ridge_below_the_rounding_of_squares_counts():
    """H = X'X + ridge with a ridge of 1e-24 |X|^2, where X'X alone is singular."""
    X = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    p = ERM(X, np.zeros(3), "squared", alpha=1e-24)
    made = StackedFactor(X, np.full(2, p.alpha), np.full(3, 1 / 3), 1e-12)
    w = made.solve(np.array([1.0, -1.0]))  # the eigenvector of the ridge
    assert np.allclose(w, [1e24, -1e24], rtol=1e-3)


def test_an_intercept_without_curvature_has_some():
    X = np.random.default_rng(0).standard_normal((10, 3))
    made = StackedFactor(X, np.array([0.1, 0.1, 0.1, 0.0]), np.zeros(10), 1e-12)
    assert np.allclose(made.solve(np.array([0.1, 0.0, 0.0, 1e-12])), [1.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_refinement_is_what_certifies(loss, monkeypatch):
    """The small problem is solved by then: P is right to 1e-6, and its gap on X is not."""
    X, y = voice()
    p = ERM(X, y, loss, alpha=1e-6, intercept=True)
    r = solve(p, "orthogonal", random_state=0)
    assert r.converged
    monkeypatch.setattr(orthogonal, "ROUNDS", 0)
    rough = solve(p, "orthogonal", random_state=0)
    assert rough.primal <= r.primal * (1 + 1e-6)
    assert rough.gap > 0.01 * rough.primal
    assert not rough.converged


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge"])
def test_dual_variables_below_the_rounding_of_margins(loss):
    """P is 1e-15 of P(0), and x_i = 1e-20 cannot be told from margins that are 1 to 16 digits."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 200)) * 10 ** rng.uniform(-8, 8, 200)
    p = ERM(X, np.where(rng.random(30) < 0.5, 1.0, -1.0), loss, alpha=1e-5)
    r = solve(p, random_state=0)
    assert r.primal < 1e-12
    assert r.converged


def test_rows_leave_and_return():
    """From a wrong set of rows at rest the steps find the right one."""
    X, y = voice(loss="hinge")
    p = ERM(X, y, "squared_hinge", alpha=1 / len(y))
    ways = OrthogonalCoordinates(p)
    hessian = orthogonal.Stacked(Objective.of(ways.small), ways.U, ways.squares)
    x = np.zeros(len(y))
    x[::3] = 0.1
    found = orthogonal.Refinement(p, ways, hessian).run(np.zeros(ways.small.d), x, 1e-6, Budget(1))
    assert found.relative <= 1e-6


def test_the_better_of_two_pairs():
    X, y = voice()
    p = ERM(X, y, "logistic", alpha=0.1)
    zero = certify(p, Point(np.zeros(p.d), np.zeros(p.n)))
    other = certify(p, Point(np.full(p.d, 1e-20), np.full(p.n, 0.5)))
    assert other.dual < zero.dual
    for pair in ((zero, other), (other, zero)):
        best = orthogonal.better(*pair)
        assert best.primal == min(zero.primal, other.primal)
        assert best.dual == zero.dual


def test_when_the_plan_takes_it():
    X, y = voice()
    raw = ERM(X, y, "logistic", alpha=1 / len(y))
    assert hidden(raw) > 0.1
    assert Auto().first(raw, Start())[0].name == "orthogonal"
    assert Auto(("orthogonal",)).first(raw, Start())[0].name == "span"
    assert Auto(tuning=PlanTuning(hidden=1e30)).first(raw, Start())[0].name == "span"
    even = ERM(X / np.linalg.norm(X, axis=0), y, "logistic", alpha=1 / len(y))
    assert hidden(even) < 1e-10
    assert Auto().first(even, Start())[0].name == "span"
    tall, labels = voice(90, 30)
    for loss in ("logistic", "squared_hinge", "hinge"):
        name = "dual" if loss == "logistic" else "orthogonal"
        assert Auto().first(ERM(tall, labels, loss, alpha=0.01), Start())[0].name == name


def test_what_is_stuck_goes_on_in_these_coordinates():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 100))
    p = ERM(X - X.mean(0), rng.standard_normal(30), "squared", alpha=1e-13, intercept=True)
    r = solve(p)
    assert r.trace.notes[-1] == "span -> orthogonal: it got stuck"
    assert r.converged
    without = solve(p, Auto(("orthogonal",)))
    assert not any("orthogonal" in note for note in without.trace.notes)


@pytest.mark.slow
def test_sweeps_in_the_span_have_a_limit():
    """So many passes over X as the coordinates cost; without them, for ever."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 200)) * np.geomspace(1, 1e3, 200)
    p = ERM(X + 50.0, 100 * rng.standard_normal(40), "huber", alpha=1e-2)
    assert hidden(p) < 0.1
    r = solve(p, random_state=0)
    assert r.converged
    assert r.trace.notes[-1] == "span -> orthogonal: it got stuck"
    slow = solve(p, Auto(("orthogonal",)), random_state=0)
    assert slow.epochs > 3 * r.epochs


def test_the_time_ends():
    X, y = voice(60, 150)
    p = ERM(X, y, "logistic", alpha=1 / 60, intercept=True)
    run = Orthogonal().start(p, Start(), Target(), np.random.default_rng(0))
    assert np.array_equal(run.point().w, np.zeros(p.d))
    run.advance(Budget(1, deadline=0.0))
    assert run.report.stuck
    found = certify(p, run.point().bare())
    assert found.primal <= certify(p, Point(np.zeros(p.d))).primal


def test_zeros_for_data():
    p = ERM(np.zeros((5, 3)), [1.0, 2.0, 3.0, 4.0, 5.0], "squared", alpha=1.0, intercept=True)
    r = solve(p, "orthogonal")
    assert r.converged
    assert not r.w.any()
    assert r.intercept == pytest.approx(3.0)


def test_too_large_is_refused():
    X = np.ones((3000, 3000), dtype=np.float32)
    y = np.ones(3000)
    y[0] = -1
    with pytest.raises(ValueError, match="that is affordable, and X is 3,000 x 3,000"):
        solve(ERM(X, y, "logistic"), "orthogonal")


def test_reruns_are_bit_equal():
    X, y = voice()
    p = ERM(X, y, "hinge", alpha=1 / len(y), intercept=True)
    a, b = (solve(p, random_state=0) for _ in range(2))
    assert np.array_equal(a.w, b.w)
    assert np.array_equal(a.x, b.x)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("K", [1, 3])
def test_the_bound_on_rounding_holds(stored, K, monkeypatch):
    """P and D in double precision are within it of what they are in extended precision."""
    monkeypatch.setattr(scales, "_BLOCK", 1000)  # some blocks
    rng = np.random.default_rng(0)
    X, _ = voice(seed=2)
    W = rng.standard_normal((X.shape[1], K)) / np.abs(X).max(0)[:, None]
    Z = X @ W
    p = ERM(stored(X), Z if K > 1 else Z[:, 0], "squared", alpha=1e-3)
    x = rng.standard_normal(Z.shape) * 1e-3
    found = certify(p, Point(W if K > 1 else W[:, 0], x if K > 1 else x[:, 0]))
    A, V, x = (a.astype(np.longdouble) for a in (X, W, x))
    alpha, n = np.longdouble(p.alpha), len(X)
    v = A.T @ x / (alpha * n)
    P = np.sum((A @ V - Z) ** 2) / 2 / n + alpha / 2 * np.sum(V**2)
    D = (np.sum(Z * x) - np.sum(x**2) / 2) / n - alpha / 2 * np.sum(v**2)
    bound = scales.rounding(p, found)
    off = abs(P - found.primal) + abs(D - found.dual)
    assert off <= bound + 1e-15 * (abs(found.primal) + abs(found.dual))
    assert bound <= 1e6 * max(off, 1e-16 * abs(found.dual))
