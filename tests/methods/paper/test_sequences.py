"""Lemmas 1, 2 and 3 of the paper, and its remark that mu <= 1."""

import numpy as np
import pytest
from cases import hessian, least_squares, quadratic
from hypothesis import given
from hypothesis import strategies as st

from apcg import penalties, theory
from apcg.methods.paper import reference
from apcg.problems.composite import Composite
from apcg.sequences import Sequence, largest_gamma0

ROUNDING = 1e-12  # relative, for sums and products of some thousand terms


@st.composite
def sequences(draw, largest_n=1000):
    """Sequences over all of n >= 1, mu in [0, 1] and gamma_0 in [mu, (n - mu)/(n - 1)]."""
    n = draw(st.integers(1, largest_n))
    mu = draw(st.one_of(st.just(0.0), st.just(1.0), st.floats(-9, 0).map(lambda e: 10.0**e)))
    top = largest_gamma0(n, mu)
    share = draw(st.one_of(st.just(1.0), st.floats(0.01, 1)))
    lowest = draw(st.booleans())
    return Sequence(n, mu, mu if lowest and mu > 0 else max(mu, 1e-6 * top, share * top))


def check_lemma_1(sequence: Sequence, steps: int) -> None:
    n, mu, gamma0 = sequence.n, sequence.mu, sequence.gamma0
    alpha, gamma, lam = sequence.arrays(steps)
    up, down = 1 + ROUNDING, 1 - ROUNDING
    # The equations themselves: (alphak) and (gammak).
    before, after = gamma[:-1], gamma[1:]
    right = (1 - alpha) * before + alpha * mu
    np.testing.assert_allclose(n**2 * alpha**2, right, rtol=ROUNDING)
    np.testing.assert_allclose(after, right, rtol=ROUNDING)
    # (i) and (ii); the upper bound of gamma_k is gamma_0 where the paper has gamma_0 <= 1.
    assert np.all(alpha > 0)
    assert np.all(gamma > 0)
    assert np.all(alpha >= np.sqrt(mu) / n * down)
    assert np.all(alpha <= 1 / n * up)
    assert np.all(gamma >= mu * down)
    assert np.all(gamma <= max(1.0, gamma0) * up)
    # (iii)
    assert np.all(np.diff(alpha) <= ROUNDING * alpha[:-1])
    assert np.all(np.diff(gamma) <= ROUNDING * before)
    # (iv)
    np.testing.assert_allclose(after, n**2 * alpha**2, rtol=ROUNDING)
    # (v)
    linear, sublinear = theory.lambda_bound(n, mu, gamma0, np.arange(steps + 1))
    assert np.all(lam <= linear * (1 + 1e-9))
    assert np.all(lam <= sublinear * (1 + 1e-9))


@given(sequences())
def test_lemma_1(sequence):
    check_lemma_1(sequence, 1000)


@pytest.mark.parametrize(
    ("n", "mu", "gamma0"),
    [(1, 0.0, 1.0), (7, 1e-8, 1.0), (100, 0.0, 100 / 99), (100, 1e-4, 1e-4), (1000, 1e-3, 0.5)],
)
def test_lemma_1_over_a_hundred_thousand_steps(n, mu, gamma0):
    check_lemma_1(Sequence(n, mu, gamma0), 100_000)


@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("mu", [1e-6, 0.01, 1.0])
def test_gamma0_of_mu_makes_everything_constant(n, mu):
    alpha, gamma, lam = Sequence(n, mu, mu).arrays(1000)
    assert np.all(alpha == np.sqrt(mu) / n)
    assert np.all(gamma == mu)
    linear, _ = theory.lambda_bound(n, mu, mu, np.arange(1001))
    np.testing.assert_allclose(lam, linear, rtol=1e-11, atol=0)  # Lemma 1 (v) is then an equality


def test_without_mu_lambda_falls_like_one_over_k_squared():
    n = 5
    _, _, lam = Sequence(n, 0.0, 1.0).arrays(100_000)
    _, bound = theory.lambda_bound(n, 0.0, 1.0, np.arange(100_001))
    assert lam[-1] / bound[-1] == pytest.approx(1.0, abs=0.01)  # the second term is sharp


# ---- Lemma 2 -------------------------------------------------------------------------------------


@given(sequences(largest_n=50), st.integers(0, 60))
def test_theta_is_a_convex_combination(sequence, k):
    theta = sequence.theta(k)
    assert theta.shape == (k + 1,)
    assert theta.min() >= -1e-12
    assert theta.sum() == pytest.approx(1.0, abs=1e-12)


RUNS = {
    "lasso": (least_squares("sparse"), penalties.L1(0.1), None),
    "group lasso": (least_squares(), penalties.GroupL2(0.1), [5, 1, 6, 8]),
    "box QP": (quadratic("Q"), penalties.Box(-0.3, 0.5), None),
}


@pytest.mark.parametrize(("mu", "share"), [(0.05, 0.0), (0.05, 1.0), (0.0, 1.0), (0.0, 0.1)])
@pytest.mark.parametrize("name", RUNS)
def test_x_is_the_combination_of_the_z(name, mu, share):
    f, psi, blocks = RUNS[name]
    problem = Composite(f, psi, 20, blocks)
    n, steps = problem.n, 80
    sequence = Sequence(n, mu, mu + share * (largest_gamma0(n, mu) - mu))
    x0 = np.full(20, 0.2)
    order = np.random.default_rng(1).integers(n, size=steps)
    run = reference.algorithm_1(problem, x0, mu, sequence.gamma0, order)
    x, _, z = reference.stack(run, steps)
    x, z = np.vstack([x0, x]), np.vstack([x0, z])
    for k in range(steps + 1):
        combined = sequence.theta(k) @ z[: k + 1]
        np.testing.assert_allclose(combined, x[k], atol=1e-12, rtol=0)


# ---- Lemma 3 -------------------------------------------------------------------------------------


class BoxedL1:
    """psi_i(x) = a_i|x| on [-lower_i, upper_i]: neither smooth nor finite."""

    def __init__(self, a, lower, upper):
        self.a, self.lower, self.upper = a, lower, upper

    def value(self, x, i):
        inside = -self.lower[i] - 1e-14 <= x <= self.upper[i] + 1e-14  # up to rounding
        return self.a[i] * abs(x) if inside else np.inf

    def prox(self, v, step, i):
        soft = np.sign(v) * max(abs(v) - step * self.a[i], 0.0)
        return min(max(soft, -self.lower[i]), self.upper[i])


def lemma_3_problems():
    rng = np.random.default_rng(2)
    f = least_squares(rows=9, columns=6, seed=3)
    boxed = BoxedL1(rng.uniform(0.1, 0.4, 6), rng.uniform(0.1, 0.4, 6), rng.uniform(0.1, 0.4, 6))
    return {
        "L1": Composite(f, penalties.L1(rng.uniform(0.1, 0.4, 6)), 6),
        "boxed L1": Composite(f, boxed, 6),
        "elastic net": Composite(f, penalties.ElasticNet(0.4, 0.5), 6),
        "groups": Composite(f, penalties.GroupL2(0.3), 6, [[0, 3], [1, 5, 2], [4]]),
    }


@pytest.mark.slow(but=4)
@pytest.mark.parametrize(("mu", "gamma0"), [(0.1, 0.1), (0.1, 1.0), (0.0, 1.0), (0.0, 0.05)])
@pytest.mark.parametrize("name", lemma_3_problems())
def test_lemma_3_with_the_expectation_enumerated(name, mu, gamma0):
    problem = lemma_3_problems()[name]
    n, steps = problem.n, 40
    sequence = Sequence(n, mu, gamma0)
    alpha, _, _ = sequence.arrays(steps)
    x0 = np.full(6, 0.1)
    order = np.random.default_rng(4).integers(n, size=steps).tolist()
    Psi_z, slack = [problem.psi_value(x0)], []
    for k in range(steps):
        # z^(k+1) for every i_k; block i of z-tilde is where i_k = i puts it
        after = []
        for i in range(n):
            run = reference.algorithm_1(problem, x0, mu, gamma0, [*order[:k], i])
            after.append(reference.take(run, k + 1)[-1])
        z_tilde = np.empty(6)
        for i in range(n):
            z_tilde[problem.block(i)] = after[i][2][problem.block(i)]
        theta = sequence.theta(k + 1)
        past = theta[:-1] @ Psi_z
        expected = np.mean([past + theta[-1] * problem.psi_value(z1) for _, _, z1 in after])
        hat = sequence.theta(k) @ Psi_z
        bound = alpha[k] * problem.psi_value(z_tilde) + (1 - alpha[k]) * hat
        slack.append(bound - expected)
        x, _, z_next = after[order[k]]
        Psi_z.append(problem.psi_value(z_next))
        # Psi(x^(k)) <= Psi-hat_k, the other half of the lemma
        assert problem.psi_value(x) <= theta @ Psi_z + 1e-12
    assert np.all(np.isfinite(slack))
    assert min(slack) >= -1e-12
    if mu == 0:  # z moves in one block only, and the inequality is an equality
        assert max(slack) <= 1e-12


# ---- the remark after Assumption 2 ---------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 10**6), st.floats(0, 3))
def test_mu_is_at_most_1(columns, rows, seed, spread):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((rows, columns)) * 10 ** rng.uniform(-spread, spread, columns)
    H = B.T @ B
    L = np.diag(H)
    scaled = H / np.sqrt(np.outer(L, L))  # with a unit diagonal: its eigenvalues average one
    least = np.linalg.eigvalsh(scaled)[0]
    assert least <= 1 + 1e-12
    assert theory.convexity_parameter(H, L) == pytest.approx(max(least, 0.0), abs=1e-10)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_mu_is_at_most_1_for_blocks(seed, sizes):
    f = quadratic("Q", rows=sum(sizes) + 3, columns=sum(sizes), seed=seed)
    problem = Composite(f, None, sum(sizes), sizes)
    H, L = hessian(f), problem.per_coordinate(problem.L)
    least = np.linalg.eigvalsh(H / np.sqrt(np.outer(L, L)))[0]
    assert 0 < least <= 1 + 1e-12
    # Assumption 2 with this mu, along the worst direction and along random ones
    mu = theory.convexity_parameter(H, L)
    d = np.random.default_rng(seed + 1).standard_normal((20, sum(sizes)))
    assert np.all(np.einsum("ki,ij,kj->k", d, H, d) >= mu * (d**2 @ L) * (1 - 1e-9))


def test_mu_is_1_only_for_separable_quadratics():
    assert theory.convexity_parameter(np.diag([1.0, 5.0, 0.2]), [1.0, 5.0, 0.2]) == 1.0
    assert theory.convexity_parameter([[1.0, 0.5], [0.5, 1.0]], [1.0, 1.0]) == pytest.approx(0.5)
