"""Algorithm 5 as printed, against the kernels and against Algorithms 1, 2 and 4; SDCA is mu = 1."""

import math

import numpy as np
import pytest
from erm_problems import LOSSES, SMOOTH, dense, feasible, problem

from apcg.methods.paper import reference
from apcg.methods.paper.apcg import APCG
from apcg.methods.paper.sdca import SDCA
from apcg.sequences import Sequence

every_loss = pytest.mark.parametrize("loss", LOSSES)
weighted = pytest.mark.parametrize("weighted", [False, True])


def algorithm_5(p, x0, mu, indices):
    """Algorithm 5 of the paper, line by line, for g = L2 and without weights; yields (x, w)."""
    n, lam, gamma = p.n, p.alpha, p.loss.gamma
    A = dense(p).T * (p.y if p.loss.margin else 1.0)
    alpha = math.sqrt(mu) / n
    rho = (1 - alpha) / (1 + alpha)
    u, v = np.zeros(n), x0.copy()
    bp, q = np.zeros(p.d), A @ x0
    for k, i in enumerate(indices):
        r = rho ** (k + 1)
        gradient = A[:, i] @ (r * bp + q) / (lam * n**2) + gamma / n * (r * u[i] + v[i])
        if not p.loss.margin:
            gradient -= p.y[i] / n  # phi_i*(-x) = phi*(-x) - y_i x
        weight = alpha * (A[:, i] @ A[:, i] + lam * gamma * n) / (lam * n)
        centre = -r * u[i] + v[i]
        step = 1 / weight
        prox = p.loss.arrays.dual_prox(np.array([centre - step * gradient]), np.array([step / n]))
        h = float(prox[0]) - centre
        u[i] -= (1 - n * alpha) / (2 * r) * h
        v[i] += (1 + n * alpha) / 2 * h
        bp -= (1 - n * alpha) / (2 * r) * h * A[:, i]
        q += (1 + n * alpha) / 2 * h * A[:, i]
        yield r * u + v, (r * bp + q) / (lam * n)


def compare(method, iterates, indices, w_of):
    """The method's x and w after each step, against those of the iterates, to a relative 1e-9."""
    for i, (x, w) in zip(indices, iterates, strict=True):
        method.epoch(np.array([i]))
        np.testing.assert_allclose(method.x, x, rtol=1e-9, atol=1e-9 * np.abs(x).max())
        np.testing.assert_allclose(w_of(method), w, rtol=1e-9, atol=1e-9 * np.abs(w).max())


@pytest.mark.slow
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("alpha", [1e-1, 1e-4])
def test_the_kernel_is_algorithm_5(loss, alpha):
    p = problem(loss, alpha=alpha)
    rng = np.random.default_rng(1)
    x0, indices = feasible(p, rng), rng.integers(p.n, size=1500)
    method = APCG(p.form, x0, Sequence(p.n, p.mu, p.mu))

    def w_of(method):
        return method.rows() / (p.alpha * p.n)

    compare(method, algorithm_5(p, x0, p.mu, indices), indices, w_of)


@pytest.mark.slow(but=2)
@every_loss
@weighted
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
def test_the_kernel_is_algorithm_1_on_the_dual(loss, weighted, penalty):
    """For every loss, with weights, and the mu = 0 form for losses that are not smooth."""
    p = problem(loss, penalty, 1e-3, weighted=weighted)
    rng = np.random.default_rng(2)
    x0, indices = feasible(p, rng), rng.integers(p.n, size=1500)
    sequence = Sequence.choose(p.n, p.mu, None)
    textbook = reference.algorithm_1(p.form, x0, sequence.mu, sequence.gamma0, indices)
    iterates = ((x, p.omega(x)) for x, _, _ in textbook)

    def w_of(method):
        return p.g.conjugate_gradient(method.rows() / (p.alpha * p.n))

    compare(APCG(p.form, x0, sequence), iterates, indices, w_of)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_primal_form_is_algorithm_1_too(loss):
    p = problem(loss, "l1", 1e-2, weighted=True)
    indices = np.random.default_rng(3).integers(p.d, size=1000)
    sequence = Sequence.choose(p.d, 0.01, None)
    textbook = reference.algorithm_1(p.form, np.zeros(p.d), 0.01, sequence.gamma0, indices)
    method = APCG(p.form, np.zeros(p.d), sequence)
    shift = 0.0 if p.loss.margin else p.y

    def w_of(method):
        return method.rows() + shift

    compare(method, ((w, p.predictions(w)) for w, _, _ in textbook), indices, w_of)


@every_loss
@weighted
@pytest.mark.parametrize("sparse", [True, False])
def test_an_apcg_step_with_mu_one_is_an_sdca_step(loss, weighted, sparse):
    p = problem(loss, weighted=weighted, sparse=sparse)
    rng = np.random.default_rng(4)
    x0 = feasible(p, rng)
    apcg, sdca = APCG(p.form, x0, Sequence(p.n, 1.0, 1.0)), SDCA(p.form, x0)
    for i in rng.integers(p.n, size=500):
        apcg.epoch(np.array([i]))
        sdca.epoch(np.array([i]))
        np.testing.assert_allclose(apcg.x, sdca.x, rtol=1e-12, atol=1e-13)


@every_loss
@weighted
def test_an_sdca_step_is_the_exact_maximisation(loss, weighted):
    """No other value of the coordinate has a larger D."""
    p = problem(loss, weighted=weighted)
    rng = np.random.default_rng(5)
    sdca = SDCA(p.form, feasible(p, rng))
    for i in rng.integers(p.n, size=60):
        sdca.epoch(np.array([i]))
        x, best = sdca.x, p.dual(sdca.x)
        assert math.isfinite(best)
        for change in (1e-2, -1e-2, 1e-4, -1e-4, 0.3, -0.3):
            x[i] += change
            assert p.dual(x) <= best + 1e-13 * (1 + abs(best))
            x[i] -= change


def test_twenty_thousand_passes_stay_at_rounding_level():
    """No overflow, w from p and q is w from x, and the gap does not come back."""
    for loss in ("smoothed_hinge", "logistic", "squared"):
        p = problem(loss, alpha=1e-3)
        method = APCG(p.form, np.zeros(p.n), Sequence(p.n, p.mu, p.mu))
        rng = np.random.default_rng(6)
        for epoch in range(20_000):
            method.epoch(rng.permutation(p.n))
            if epoch % 4000 == 3999:
                x = method.x
                w = p.omega(x)
                accumulated = method.rows() / (p.alpha * p.n)
                np.testing.assert_allclose(accumulated, w, atol=1e-9 * np.abs(w).max())
                assert p.gap(x) <= 1e-13 * p.primal(w)
        assert method.state.folds > 50
        assert 1e-4 <= method.state.s <= 1


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_long_runs_of_the_form_without_smoothness(loss):
    p = problem(loss, alpha=1e-2)
    method = APCG(p.form, np.zeros(p.n), Sequence.choose(p.n, 0.0, None))
    rng = np.random.default_rng(7)
    for _ in range(5000):
        method.epoch(rng.permutation(p.n))
    w = p.omega(method.x)
    np.testing.assert_allclose(method.rows() / (p.alpha * p.n), w, atol=1e-9 * np.abs(w).max())
    assert p.gap(p.form.nearest(method.x)) <= 1e-5 * p.primal(w)
