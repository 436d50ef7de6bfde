"""method="auto": never much worse than the better of APCG and SDCA, and the state it relies on."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, SMOOTH, problem, text_like

from apcg import ERM, functions, minimize, penalties, solve
from apcg.methods.paper import reference
from apcg.methods.paper.adaptive.iterate import Adaptive
from apcg.methods.paper.apcg import APCG
from apcg.methods.paper.sdca import SDCA
from apcg.sequences import Sequence

BUDGET = 1500


def near_orthogonal(rng):
    n = 300
    return np.eye(n, 400) + 0.02 * rng.standard_normal((n, 400))


def correlated(rng):
    base = rng.standard_normal((400, 1))
    return base + 0.1 * rng.standard_normal((400, 40))


def clustered(rng):
    return rng.standard_normal((8, 60))[rng.integers(8, size=400)] + 0.05 * rng.standard_normal(
        (400, 60)
    )


def one_huge_row(rng):
    X = rng.standard_normal((300, 50))
    X[17] *= 100
    return X


def duplicated_rows(rng):
    return np.repeat(rng.standard_normal((100, 40)), 4, axis=0)


FAMILIES = [near_orthogonal, correlated, clustered, one_huge_row, duplicated_rows]


def labels(X, rng, noise):
    z = X @ rng.standard_normal(X.shape[1])
    z = z / np.std(z) + noise * rng.standard_normal(X.shape[0])
    return np.where(z > np.median(z), 1.0, -1.0)


def passes(p, method, budget=BUDGET):
    return solve(p, method, tol=1e-6, max_epochs=budget, check_every=1, random_state=0)


def not_much_worse(p, factor=1.25, slack=3):
    """The adaptive method in passes; `auto`, which goes by time, arrives where one of them does."""
    own, apcg, sdca = (passes(p, m) for m in ("adaptive", "apcg", "sdca"))
    best = min((apcg, sdca), key=lambda r: r.epochs if r.converged else 1e9 + r.gap)
    if best.converged:
        assert own.converged
        assert own.epochs <= factor * best.epochs + slack
        assert solve(p, max_epochs=BUDGET, random_state=0).converged
    else:
        # a factor of Newton's method counts as tens of passes, and takes the time of few
        assert solve(p, max_epochs=10 * BUDGET, random_state=0).gap <= 1.1 * best.gap


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic", "squared_hinge"])
def test_families(family, alpha, loss):
    rng = np.random.default_rng(0)
    X = family(rng)
    not_much_worse(ERM(X, labels(X, rng, 0.3), loss, "l2", alpha))


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("alpha", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_text(alpha, loss, noise):
    """noise = 0 is separable: SDCA can be far ahead of the paper's mu there."""
    X, y = text_like(n=600, d=900, noise=noise)
    not_much_worse(ERM(sp.csr_array(X), y, loss, "l2", alpha))


@pytest.mark.parametrize("loss", SMOOTH)
def test_l1_without_knowing_mu(loss):
    """The primal form has no mu to know, and mu = 0 is slow."""
    p = problem(loss, "l1", 0.02, weighted=True)
    not_much_worse(p, factor=1.5)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_losses_that_are_not_smooth(loss):
    p = problem(loss, alpha=1e-3)
    auto = solve(p, "auto", tol=1e-5, max_epochs=20_000, random_state=0)
    apcg = solve(p, "apcg", tol=1e-5, max_epochs=20_000, random_state=0)
    assert auto.converged
    assert auto.epochs <= apcg.epochs


@pytest.mark.parametrize("loss", LOSSES)
def test_it_starts_as_sdca(loss):
    """mu-hat = 1 until the rule has seen two windows."""
    p = problem(loss)
    a, s = Adaptive(p.form, np.zeros(p.n), np.arange(p.n), p.mu), SDCA(p.form, np.zeros(p.n))
    order = np.random.default_rng(0).permutation(p.n)
    for _ in range(2):
        a.epoch(order)
        s.epoch(order)
    np.testing.assert_allclose(a.x, s.x, rtol=1e-10, atol=1e-12)


def test_changing_mu_and_restarting_leave_x_alone():
    """A change of mu touches neither x nor z; a restart makes z = x, and p and q follow."""
    p = problem("logistic", alpha=1e-4)
    rng = np.random.default_rng(0)
    method = APCG(p.form, np.zeros(p.n), Sequence(p.n, 1e-2, 1e-2))
    for _ in range(7):
        method.epoch(rng.permutation(p.n))
    x, z = method.x, method.z
    assert np.abs(x - z).max() > 1e-6
    method.set_momentum(p.n, 1e-4)
    np.testing.assert_array_equal(method.x, x)
    np.testing.assert_array_equal(method.z, z)
    method.restart()
    np.testing.assert_allclose(method.x, x, atol=1e-15)
    np.testing.assert_allclose(method.z, x, atol=1e-15)
    np.testing.assert_allclose(method.rows(), p.form.f.rows(x), atol=1e-12)
    # and from there it is Algorithm 2 started at x
    indices = rng.integers(p.n, size=200)
    textbook = reference.algorithm_2(p.form, method.x, 1e-4, indices)
    for i, (expected, _, _) in zip(indices, textbook, strict=True):
        method.epoch(np.array([i]))
        np.testing.assert_allclose(method.x, expected, atol=1e-10)


def test_mu_stays_between_the_theorem_and_one():
    X, y = text_like(n=600, d=900, noise=0.3)
    p = ERM(X, y, "smoothed_hinge", alpha=1e-6)
    r = solve(p, "auto", tol=1e-9, max_epochs=3000, check_every=1, random_state=0)
    assert r.side == "dual"
    assert r.trace["mu"].max() <= 1
    assert r.trace["mu"].min() >= p.mu
    assert r.trace["mu"][0] == 1
    assert r.trace["mu"].min() < 0.1


def test_pieces_of_a_pass_are_a_pass():
    """The loop cuts long passes into pieces; the rule must not see that."""
    p = problem("logistic", alpha=1e-4)
    whole, cut = (Adaptive(p.form, np.zeros(p.n), np.arange(p.n), p.mu) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(30):
        order = rng.permutation(p.n)
        whole.epoch(order)
        for piece in np.array_split(order, 3):
            cut.epoch(piece)
        assert whole.mu == cut.mu
    np.testing.assert_array_equal(whole.x, cut.x)


def test_minimize_without_knowing_mu():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 50))
    b = A[:, :3] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(200)
    f, psi = functions.LeastSquares(A, b), penalties.L1(20.0)
    auto = minimize(f, psi, method="auto", check_every=1, random_state=0)
    plain = minimize(f, psi, method="rpcg", check_every=1, random_state=0)
    assert auto.converged
    assert auto.epochs <= 1.25 * plain.epochs + 3
    groups = minimize(
        f, penalties.GroupL2(20.0), blocks=[5] * 10, method="auto", tol=1e-8, random_state=0
    )
    assert groups.converged

    class Own:
        L = np.ones(50)

        def value(self, x):
            return 0.5 * x @ x

        def partial_gradient(self, i, x):
            return x[i]

    assert minimize(Own(), psi, np.zeros(50), method="auto").converged  # in Python


def test_auto_steers_by_looks_of_its_own():
    """Fewer checks for the user are not fewer for shrinking and the choice of side."""
    X, y = text_like(n=1500, d=2000, noise=0.3)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((2000, 20)) * np.logspace(0, -2, 20)
    z = np.where(Z @ rng.standard_normal(20) + 0.1 * rng.standard_normal(2000) > 0, 1.0, -1.0)
    for p in (ERM(X, y, "smoothed_hinge", alpha=1e-7), ERM(Z, z, "logistic", alpha=1e-8)):
        own = solve(p, random_state=0)
        seldom = solve(p, check_every=60, random_state=0)
        assert own.converged
        assert seldom.epochs < own.epochs + 60
        assert seldom.converged
        assert len(seldom.trace["epoch"]) == 2  # the start, and the first check
