"""With one block APCG is Nesterov's method; with alpha_0 = 1/n and mu = 0 it is APPROX."""

from math import sqrt

import numpy as np
import pytest
from cases import (
    SIZES,
    convexity,
    hessian,
    iterate_cases,
    least_squares,
    logistic,
    quadratic,
    shuffled_blocks,
)

from apcg import minimize, penalties
from apcg.methods.paper import reference
from apcg.methods.paper.apcg import APCG
from apcg.problems.composite import Composite
from apcg.sequences import Sequence, largest_gamma0

CLOSE = 1e-10


# ---- one block: Nesterov, Introductory Lectures on Convex Optimization, section 2.2 -----------


def nesterov(gradient, L, q, alpha, x0, steps):
    """Constant step scheme II, with q = mu/L: yields x_{k+1}, y_k, alpha_k."""
    x, y = x0, x0
    for _ in range(steps):
        x_next = y - gradient(y) / L
        # alpha_{k+1}^2 = (1 - alpha_{k+1}) alpha_k^2 + q alpha_{k+1}
        half = (alpha**2 - q) / 2
        alpha_next = -half + sqrt(half**2 + alpha**2)
        beta = alpha * (1 - alpha) / (alpha**2 + alpha_next)
        yield x_next, y, alpha
        x, y, alpha = x_next, x_next + beta * (x_next - x), alpha_next


ONE_BLOCK = {
    "least squares": least_squares("sparse"),
    "given Q": quadratic("Q"),
    "logistic": logistic("dense"),
}


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("setting", ["gamma0 = mu", "mu, gamma0 = 1", "mu = 0", "mu = 1"])
@pytest.mark.parametrize("name", ONE_BLOCK)
def test_one_block_is_nesterovs_method(name, setting):
    f = ONE_BLOCK[name]
    problem = Composite(f, None, f.n_coordinates, [f.n_coordinates])
    known = convexity(problem)
    mu, gamma0 = {
        "gamma0 = mu": (known, known),
        "mu, gamma0 = 1": (known, 1.0),
        "mu = 0": (0.0, 1.0),
        "mu = 1": (1.0, 1.0),
    }[setting]
    assert problem.n == 1
    assert 0 < known < 1
    # gamma_0 = alpha_0(alpha_0 L - mu)/(1 - alpha_0), with L = 1, solved for alpha_0
    half = (gamma0 - mu) / 2
    alpha0 = -half + sqrt(half**2 + gamma0)
    x0 = np.random.default_rng(1).standard_normal(problem.N)
    method = APCG(problem, x0, Sequence.choose(1, mu, gamma0))
    textbook = reference.algorithm_1(problem, x0, mu, gamma0, iter(int, 1))  # 0, 0, 0, ...
    before = x0
    for x, y, alpha in nesterov(f.gradient, problem.L[0], mu, alpha0, x0, 2000):
        z = before + (x - before) / alpha  # v_{k+1} of the general scheme
        np.testing.assert_allclose(method.y, y, atol=CLOSE, rtol=0)
        method.epoch(np.zeros(1, dtype=np.intp))
        for found in ((method.x, y, method.z), next(textbook)):
            np.testing.assert_allclose(found, (x, y, z), atol=CLOSE, rtol=0)
        before = x


def test_mu_1_and_one_block_is_the_gradient_method():
    f = quadratic("factor")
    L = np.linalg.eigvalsh(hessian(f))[-1]
    x = np.ones(f.n_coordinates)
    for _ in range(100):
        x = x - f.gradient(x) / L
    found = minimize(
        f,
        None,
        np.ones(x.size),
        mu=1.0,
        blocks=[x.size],
        tol=0.0,
        max_epochs=100,
        check_every=100,
        random_state=0,
    )
    np.testing.assert_allclose(found.x, x, atol=1e-12, rtol=0)


# ---- mu = 0 and alpha_0 = 1/n: Fercoq and Richtarik, APPROX, Algorithm 1 with tau = 1 ------------


def approx(problem, x0, indices):
    """Yields x_{k+1}, y_k, z_{k+1}; v_i = L_i."""
    n, tau = problem.n, 1
    x, z, theta = x0.copy(), x0.copy(), tau / n
    for i in indices:
        y = (1 - theta) * x + theta * z
        b = problem.block(i)
        weight = n * theta * problem.L[i] / tau
        z_next = z.copy()
        z_next[b] = problem.prox(i, z[b] - problem.partial_gradient(i, y) / weight, 1 / weight)
        x = y + n / tau * theta * (z_next - z)
        z, theta = z_next, (sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
        yield x, y, z


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    "name", ["lasso underdetermined", "group lasso, index arrays", "box QP given Q", "logistic"]
)
def test_alpha_0_of_1_over_n_is_approx(name):
    problem = iterate_cases()[name]
    n, steps = problem.n, 2000
    x0 = np.full(problem.N, 0.1)
    order = np.random.default_rng(2).integers(n, size=steps).astype(np.intp)
    expected = reference.stack(approx(problem, x0, order), steps)
    third = reference.algorithm_3(problem, x0, 1 / sqrt(n**2 - n), order)
    np.testing.assert_allclose(reference.stack(third, steps), expected, atol=CLOSE, rtol=0)
    method = APCG(problem, x0, Sequence.choose(n, 0.0, None), fold_at=0.5)  # the default of mu = 0
    for k in range(steps):
        np.testing.assert_allclose(method.y, expected[1][k], atol=CLOSE, rtol=0)
        method.epoch(order[k : k + 1])
        np.testing.assert_allclose(method.x, expected[0][k], atol=CLOSE, rtol=0)
        np.testing.assert_allclose(method.z, expected[2][k], atol=CLOSE, rtol=0)
    assert method.state.folds >= 3


def test_minimize_with_mu_0_is_approx():
    f, psi = least_squares("sparse", rows=12), penalties.L1(0.1)
    rng, orders = np.random.default_rng(3), []
    for _ in range(30):
        orders.extend(rng.integers(20, size=20))
    *_, (x, _, _) = approx(Composite(f, psi, 20), np.zeros(20), orders)
    options = {"sampling": "uniform", "tol": 0.0, "max_epochs": 30, "check_every": 30}
    found = minimize(f, psi, mu=0.0, method="apcg", random_state=3, **options)
    np.testing.assert_allclose(found.x, x, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_which_alpha_minus_1_gives_alpha_0_of_1_over_n(n):
    def alpha_0(before):
        return (sqrt(before**4 + 4 * before**2) - before**2) / 2

    assert alpha_0(1 / sqrt(n**2 - n)) == pytest.approx(1 / n, rel=1e-14)
    # As printed in the paper, 1/sqrt(n^2 - 1): too small by a relative 1/(2n) or so.
    assert alpha_0(1 / sqrt(n**2 - 1)) < (1 - 0.2 / n) / n
    gamma0 = largest_gamma0(n, 0.0)
    assert gamma0 == pytest.approx(n**2 / (n**2 - n), rel=1e-14)
    alpha, _, _ = Sequence(n, 0.0, gamma0).arrays(1)
    assert alpha[0] == pytest.approx(1 / n, rel=1e-14)


def test_misprinted_alpha_minus_1_gives_other_iterates():
    blocks = shuffled_blocks(SIZES, 6)
    problem = Composite(least_squares(), penalties.GroupL2(0.1), 20, blocks)
    n, x0, order = problem.n, np.zeros(20), np.random.default_rng(4).integers(7, size=50)
    x, _, _ = reference.stack(approx(problem, x0, order), 50)
    right, _, _ = reference.stack(reference.algorithm_3(problem, x0, 1 / sqrt(n**2 - n), order), 50)
    wrong, _, _ = reference.stack(reference.algorithm_3(problem, x0, 1 / sqrt(n**2 - 1), order), 50)
    assert np.abs(right - x).max() < 1e-13
    assert np.abs(wrong - x).max() > 1e-3
