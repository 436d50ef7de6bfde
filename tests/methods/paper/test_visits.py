"""Uneven sampling: the step, its theorem, the sweeps, and what it brings."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import problem, text_like
from hypothesis import given
from hypothesis import strategies as st
from test_theorem1 import CASES, SMALL, STRONG

from apcg import ERM, functions, minimize, penalties, solve, theory
from apcg.methods.paper import reference
from apcg.methods.paper.adaptive import visits as visits_module
from apcg.methods.paper.adaptive.iterate import Adaptive
from apcg.methods.paper.adaptive.visits import Visits, VisitsTuning, visits
from apcg.methods.paper.sampling import HIGHEST
from apcg.methods.plan.plan import Auto
from apcg.problems.composite import Composite

moves = st.lists(st.floats(0, 1e100), min_size=1, max_size=60).map(np.array)


@given(moves, st.floats(0.1, 40), st.integers(0, 1000))
def test_visits(moved, most, seed):
    lengths = np.random.default_rng(seed).integers(1, 100, moved.size).astype(float)
    r = visits(moved, lengths, most)
    most = max(1, min(most, HIGHEST))
    assert ((r & (r - 1)) == 0).all()
    assert r.min() >= 1
    assert r.max() <= most
    assert lengths @ r <= 2 * lengths.sum()
    mean = np.average(moved, weights=lengths)
    if mean > 0:
        wanted = np.clip(moved / mean, 1, most)
        assert (r <= wanted * (1 + 1e-12)).all()
        assert (2 * r > wanted * (1 - 1e-12)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-300, np.inf, np.nan])
def test_who_move_alike_are_visited_alike(value):
    assert (visits(np.full(30, value), np.ones(30)) == 1).all()


# ---- the step ------------------------------------------------------------------------------------


def uneven_auto(form, x0, mu, r, monkeypatch):
    """An adaptive iterate with these visits, and with a mu-hat that stays."""
    monkeypatch.setattr(visits_module, "visits", lambda travelled, lengths, most: r)
    method = Adaptive(
        form,
        x0,
        np.arange(form.n),
        mu / 10,
        mu,
        visits=VisitsTuning(fewest=1),
        without=("rate",),
    )
    assert method.sample(np.arange(form.n)).highest == r.max()
    return method


@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic", "squared"])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "l1"])
def test_the_step_is_that_of_the_textbook(loss, penalty, monkeypatch):
    form = problem(loss, penalty, 1e-3).form
    rng = np.random.default_rng(0)
    r = 2 ** rng.integers(0, 5, size=form.n)
    x0, mu = np.zeros(form.N), 0.02
    method = uneven_auto(form, x0, mu, r, monkeypatch)
    order = rng.choice(np.repeat(np.arange(form.n), r), 300)
    for i, (x, _, z) in zip(order, reference.uneven(form, x0, mu, r, order), strict=True):
        method.epoch(np.array([i]))
        np.testing.assert_allclose(method.x, x, atol=1e-11)
        np.testing.assert_allclose(method.z, z, atol=1e-11)
    assert np.abs(x).max() > 1e-3


def test_with_one_visit_to_each_it_is_algorithm_2():
    form = problem("logistic", alpha=1e-3).form
    order = np.random.default_rng(0).integers(form.n, size=100)
    x0, ones = np.zeros(form.n), np.ones(form.n)
    pairs = zip(
        reference.uneven(form, x0, 0.01, ones, order),
        reference.algorithm_2(form, x0, 0.01, order),
        strict=True,
    )
    for ours, paper in pairs:
        np.testing.assert_allclose(ours, paper, atol=1e-13)


# ---- the theorem ---------------------------------------------------------------------------------


def convexity(case, r):
    """mu_r of a least-squares problem, and |x0 - x*| in the norm of L_i/r_i^2."""
    weights = case.L / case.problem.per_coordinate(np.asarray(r, dtype=float)) ** 2
    H = np.array([case.problem.f.gradient(e) for e in np.eye(len(case.x0))])
    H -= case.problem.f.gradient(np.zeros(len(case.x0)))
    mu = np.linalg.eigvalsh(H / np.sqrt(np.outer(weights, weights)))[0]
    return min(float(mu), 1.0), float(np.sqrt(np.sum(weights * (case.x0 - case.x) ** 2)))


def bound(case, r, mu, R0, k):
    return theory.apcg_bound(int(np.sum(r)), mu, mu, k, gap0=case.gap0, R0=R0)


@pytest.mark.parametrize("name", ["quadratic, n = 2", "lasso, n = 2", "box, n = 3"])
def test_theorem_1_over_all_index_sequences(name):
    case, steps = SMALL[name]
    r = np.array([4, 1, 2])[: case.n]
    mu, R0 = convexity(case, r)
    assert case.mu <= mu <= 1
    p, mean = r / r.sum(), np.zeros(steps)
    for order in product(range(case.n), repeat=steps):
        run = reference.stack(reference.uneven(case.problem, case.x0, mu, r, order), steps)
        values = np.array([case.problem.value(case.problem.nearest(x)) for x in run[0]])
        mean += np.prod(p[list(order)]) * (values - case.optimum)
    assert (mean <= bound(case, r, mu, R0, np.arange(1, steps + 1)) * (1 + 1e-9)).all()


def test_even_sampling_breaks_that_bound():
    """So the bound is not so loose that anything would pass: here mu_r is much larger than mu."""
    rng = np.random.default_rng(0)
    A = np.eye(12)
    A[:2, :2] = [[1, 0.99], [0, np.sqrt(1 - 0.99**2)]]  # two columns that are nearly the same
    x = rng.standard_normal(12)
    f = functions.LeastSquares(A, A @ x)
    p, r = Composite(f, penalties.Zero(), 12), np.where(np.arange(12) < 2, 8, 1)
    H = A.T @ A
    mu, even = (float(np.linalg.eigvalsh(H * np.outer(s, s))[0]) for s in (r, np.ones(12)))
    assert mu > 50 * even
    x0 = np.zeros(12)
    x0[:2] = 10 * np.array([1, -1])
    R0 = np.sqrt(np.sum((x0 - x) ** 2 / r**2))
    steps, values = 40 * r.sum(), {}
    for name, run, sampled in (
        ("uneven", lambda i: reference.uneven(p, x0, mu, r, i), np.repeat(np.arange(12), r)),
        ("even", lambda i: reference.algorithm_2(p, x0, even, i), np.arange(12)),
    ):
        last = [reference.take(run(rng.choice(sampled, steps)), steps)[-1][0] for _ in range(20)]
        values[name] = np.mean([p.value(point) for point in last])
    limit = theory.apcg_bound(int(r.sum()), mu, mu, steps, gap0=p.value(x0), R0=R0)
    assert values["uneven"] <= limit < values["even"]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", STRONG)
def test_theorem_1_for_the_mean_of_many_runs(name, monkeypatch):
    case = CASES[name]
    r = np.where(np.arange(case.n) % 3 == 0, 4, 1)
    mu, R0 = convexity(case, r)
    assert mu >= case.mu
    k = np.unique(np.geomspace(1, 8 / np.sqrt(mu) * r.sum(), 20).astype(int))
    steps, runs = np.repeat(np.arange(case.n), r), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        method = uneven_auto(case.problem, case.x0, mu, r, monkeypatch)
        values = []
        for size in np.diff(k, prepend=0):
            method.epoch(rng.choice(steps, size))
            values.append(case.problem.value(case.problem.nearest(method.x)) - case.optimum)
        runs.append(values)
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    limit = bound(case, r, mu, R0, k)
    assert limit[-1] < 0.01 * limit[0]
    assert (mean <= limit + 4 * error).all()


# ---- what it brings ------------------------------------------------------------------------------


def with_near_duplicates(n=1500, d=2500, pairs=60, noise=0.02):
    """Text-like data, where a few rows are nearly the same as others."""
    X, y = text_like(n=n, d=d, noise=0.1)
    rng = np.random.default_rng(0)
    X = sp.csr_array(X)
    again = X[:pairs].copy()
    again.data = again.data * (1 + noise * rng.standard_normal(again.nnz))
    return sp.csr_array(sp.vstack([X, again])), np.concatenate([y, y[:pairs]])


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_near_duplicates_cost_few_passes(loss, sampling):
    p = ERM(*with_near_duplicates(), loss, alpha=1e-7)
    options = {"max_epochs": 3000, "check_every": 1, "random_state": 0, "sampling": sampling}
    uneven = solve(p, **options)
    evenly = solve(p, Auto(without=("visits",)), **options)
    assert uneven.converged
    assert evenly.converged
    assert uneven.side == evenly.side == "dual"
    assert uneven.epochs <= 0.8 * evenly.epochs
    assert abs(uneven.primal - evenly.primal) <= uneven.gap + evenly.gap


def test_correlated_features_cost_few_passes(monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 300))
    for j in range(1, 300):
        A[:, j] = 0.99 * A[:, j - 1] + np.sqrt(1 - 0.99**2) * A[:, j]
    b = A[:, ::30] @ rng.standard_normal(10)
    f, psi = functions.LeastSquares(A, b), penalties.L1(0.01 * np.abs(A.T @ b).max())
    options = {"method": "auto", "tol": 1e-8, "max_epochs": 5000, "random_state": 0}
    uneven = minimize(f, psi, **options)
    monkeypatch.setattr(Visits, "choose", lambda *_: None)
    evenly = minimize(f, psi, **options)
    assert uneven.converged
    assert evenly.converged
    assert uneven.epochs <= 0.5 * evenly.epochs
    np.testing.assert_allclose(uneven.fun, evenly.fun, rtol=1e-8)


@pytest.mark.parametrize("blocks", [None, [3] * 50])
def test_how_far_blocks_have_moved(blocks, monkeypatch):
    """In the norm of L, since the last time; and blocks are sampled unevenly too."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 150)) * np.geomspace(1, 10, 150)
    A[:, 3:6] = A[:, :3] + 0.01 * rng.standard_normal((300, 3))
    f, psi = functions.LeastSquares(A, A @ rng.standard_normal(150)), penalties.GroupL2(1.0)
    if blocks is None:
        psi = penalties.L1(1.0)
    points, made = [np.zeros(150)], []
    original = Adaptive.sample

    def sample(self, kept):
        found = original(self, kept)
        points.append(self.x)
        made.append((self.mu, found))
        return found

    monkeypatch.setattr(Adaptive, "sample", sample)
    options = {"method": "auto", "random_state": 0, "max_epochs": 2000, "tol": 1e-8}
    r = minimize(f, psi, np.zeros(150), blocks=blocks, **options)
    assert r.converged
    n, sizes = len(r.L), blocks or [1] * 150
    starts = np.cumsum([0, *sizes[:-1]])
    uneven = 0
    for before, after, (mu, found) in zip(points, points[1:], made, strict=False):
        assert np.unique(found.indices).size == n
        moved = np.sqrt(np.add.reduceat((after - before) ** 2, starts) * r.L)
        if mu < 1 and moved.any():
            expected = visits(moved, np.asarray(sizes) * 300.0, VisitsTuning.uneven / np.sqrt(mu))
            np.testing.assert_array_equal(np.bincount(found.indices), expected)
            uneven += expected.max() > 1
    assert uneven > 3


def test_dense_rows_are_not_visited_too_often():
    """A visit costs its nonzeros: three rows that are very long must not have most of them."""
    rng = np.random.default_rng(0)
    short = sp.random_array((500, 2000), density=0.004, rng=rng, format="csr")
    X = sp.csr_array(sp.vstack([short, 0.3 * rng.standard_normal((3, 2000))]))
    p = ERM(X, rng.standard_normal(503), "squared", alpha=1e-3)
    method = Adaptive(p.form, np.zeros(p.n), np.arange(p.n), 1e-9, 0.01)
    method.epoch(np.array([3, 40, 500, 501, 502]))
    found = method.sample(np.arange(p.n))
    assert found.highest > 1
    assert found.indices.size <= 2.01 * found.steps  # a sweep is two passes at most


@pytest.mark.parametrize(
    ("d", "first", "uneven"), [(80, 2.5e-3, True), (80, 1.5e-3, False), (2, 2.5e-3, False)]
)
def test_where_what_is_slow_is_not_local_sampling_is_even(d, first, uneven):
    """At the mu of the theorem, and if many more coordinates move than there are rows of A."""
    p = problem("logistic", n=60, d=d)
    method = Adaptive(p.form, np.zeros(p.n), np.arange(p.n), 1e-3, first)
    method.epoch(np.repeat(np.arange(8), [1, 1, 1, 1, 1, 1, 1, 9]))
    assert (method.sample(np.arange(p.n)).highest > 1) == uneven
