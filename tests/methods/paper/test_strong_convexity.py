"""Section 2.2: strong convexity of Psi moved to f."""

import math

import numpy as np
import pytest
from cases import SIZES, least_squares, logistic, quadratic, shuffled_blocks

from apcg import functions, minimize, penalties, theory
from apcg.methods.paper import reference
from apcg.methods.paper.apcg import APCG
from apcg.problems.composite import Composite
from apcg.sequences import Sequence

TIGHT = {"method": "apcg", "tol": 1e-12, "max_epochs": 20_000, "random_state": 0}
ALPHA, RATIO = 0.2, 0.4
MU_PSI = ALPHA * (1 - RATIO)

FUNCTIONS = {
    "least squares": least_squares("sparse"),
    "underdetermined": least_squares(rows=8),
    "given Q": quadratic("Q"),
    "logistic": logistic(sigma=0.0),
}


class Anchored:
    """f-tilde and Psi-tilde of section 2.2 as printed, for Psi an elastic net, with x0 and s0.

    psi-tilde_i(x) = psi_i(x) - psi_i(x0_i) - s0_i(x - x0_i) - (mu_Psi/2)(x - x0_i)^2
                   = l1 |x| - (s0_i - mu_Psi x0_i) x + a constant.
    """

    def __init__(self, f, seed: int) -> None:
        rng = np.random.default_rng(seed)
        N = f.n_coordinates
        self.f, self.n = f, N
        self.L = f.lipschitz() + MU_PSI
        self.x0 = np.where(rng.random(N) < 0.5, 0.0, rng.standard_normal(N))
        sign = np.where(self.x0 == 0, rng.uniform(-1, 1, N), np.sign(self.x0))
        self.s0 = ALPHA * RATIO * sign + MU_PSI * self.x0  # in the subdifferential of Psi at x0

    def block(self, i):
        return i

    def partial_gradient(self, i, x):
        moved = self.s0[i] + MU_PSI * (x[i] - self.x0[i])
        return self.f.partial_gradient(i, x) + moved

    def prox(self, i, v, step):
        shifted = v + step * (self.s0[i] - MU_PSI * self.x0[i])
        return np.sign(shifted) * max(abs(shifted) - step * ALPHA * RATIO, 0.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_iterates_do_not_depend_on_the_anchor(name):
    f = FUNCTIONS[name]
    moved, mu = Composite(f, penalties.ElasticNet(ALPHA, RATIO), 20).moved()
    start = np.random.default_rng(1).standard_normal(20)
    order = np.random.default_rng(2).integers(20, size=1000)
    for gamma0 in (mu, 1.0):
        expected = reference.stack(
            reference.algorithm_1(moved, start, mu, gamma0, order), len(order)
        )
        for seed in range(3):
            printed = reference.algorithm_1(Anchored(f, seed), start, mu, gamma0, order)
            found = reference.stack(printed, len(order))
            np.testing.assert_allclose(found, expected, atol=1e-11, rtol=0)
        method = APCG(moved, start, Sequence(20, mu, gamma0))
        method.epoch(order.astype(np.intp))
        np.testing.assert_allclose(method.x, expected[0][-1], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_minimize_uses_the_mu_of_the_paper(name):
    f = FUNCTIONS[name]
    found = minimize(f, penalties.ElasticNet(ALPHA, RATIO), **TIGHT)
    assert found.converged
    L = f.lipschitz()
    assert found.mu == pytest.approx(MU_PSI / (L.max() + MU_PSI), rel=1e-12)
    assert found.mu == theory.moved_convexity(L, MU_PSI)
    assert found.gamma0 == found.mu  # Algorithm 2
    np.testing.assert_allclose(found.L, L + MU_PSI, rtol=1e-14)
    # The same mu as the convexity parameter of f-tilde = f + (mu_Psi/2)|x|^2 guarantees.
    if name != "logistic":
        H = np.array([f.gradient(e) - f.gradient(0 * e) for e in np.eye(20)])
        exact = theory.convexity_parameter(H + MU_PSI * np.eye(20), L + MU_PSI)
        assert found.mu <= exact * (1 + 1e-9)


def test_moved_convexity_is_equation_mu():
    L = np.array([0.5, 2.0, 1.0])
    assert theory.moved_convexity(L, 0.3) == pytest.approx(0.3 / 2.3)
    assert theory.moved_convexity(L, 0.3, mu_f=0.1) == pytest.approx(0.4 / 2.3)
    # One mu_Psi for each coordinate: Assumption 2 holds with the least of the ratios.
    mu_psi = np.array([0.1, 0.9, 0.2])
    mu = theory.moved_convexity(L, mu_psi)
    assert np.all(mu_psi >= mu * (L + mu_psi) * (1 - 1e-12))
    assert np.any(np.isclose(mu_psi, mu * (L + mu_psi)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_moved_problem_is_the_same_problem(name):
    f = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    for psi in (penalties.ElasticNet(rng.uniform(0.1, 1, 20), RATIO), penalties.L2(0.3)):
        problem = Composite(f, psi, 20)
        moved, mu = problem.moved()
        assert 0 < mu < 1
        for _ in range(5):
            x = rng.standard_normal(20)
            assert moved.value(x) == pytest.approx(problem.value(x), rel=1e-12)
            whole = moved.gradient(x)
            parts = [moved.partial_gradient(i, x) for i in range(20)]
            np.testing.assert_allclose(parts, whole, atol=1e-12)
            np.testing.assert_allclose(whole - f.gradient(x), psi.strong_convexity * x, atol=1e-12)


def test_known_convexity_of_f_is_used_instead():
    f = least_squares("sparse", sigma=0.3)
    found = minimize(f, penalties.ElasticNet(ALPHA, RATIO), **TIGHT)
    assert found.mu == pytest.approx(np.min(0.3 / f.lipschitz()), rel=1e-12)
    np.testing.assert_allclose(found.L, f.lipschitz(), rtol=1e-14)


# ---- the user's own psi --------------------------------------------------------------------------


class OwnElasticNet:
    """psi_i(x) = a|x| + (b/2)x^2 of numbers or of blocks, in Python."""

    def __init__(self, a, b, strong_convexity=None):
        self.a, self.b = a, b
        if strong_convexity is not None:
            self.strong_convexity = strong_convexity

    def value(self, x, i):
        return self.a * np.sum(np.abs(x)) + self.b / 2 * np.sum(np.square(x))

    def prox(self, v, step, i):
        return np.sign(v) * np.maximum(np.abs(v) - step * self.a, 0) / (1 + step * self.b)


def custom_value(x, a):
    return a * abs(x) + MU_PSI / 2 * x * x


def custom_prox(v, step, a):
    return math.copysign(max(abs(v) - step * a, 0.0), v) / (1 + step * MU_PSI)


def own_elastic_nets():
    data = np.full(20, ALPHA * RATIO)
    return {
        "object": OwnElasticNet(ALPHA * RATIO, MU_PSI, MU_PSI),
        "object, part of it declared": OwnElasticNet(ALPHA * RATIO, MU_PSI, MU_PSI / 2),
        "object, nothing declared": OwnElasticNet(ALPHA * RATIO, MU_PSI),
        "compiled": penalties.Custom(custom_value, custom_prox, data, MU_PSI),
        "compiled, part of it declared": penalties.Custom(
            custom_value, custom_prox, data, MU_PSI / 2
        ),
    }


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_own_psi_gives_the_solution_of_the_built_in(name):
    f = FUNCTIONS[name]
    expected = minimize(f, penalties.ElasticNet(ALPHA, RATIO), **TIGHT)
    for kind, psi in own_elastic_nets().items():
        declared = getattr(psi, "strong_convexity", 0.0)
        options = TIGHT if declared else {**TIGHT, "mu": 0.01}
        found = minimize(f, psi, **options)
        assert found.converged, kind
        if declared:
            assert found.mu == pytest.approx(theory.moved_convexity(f.lipschitz(), declared))
        assert found.fun == pytest.approx(expected.fun, rel=1e-12)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-8, rtol=0)


def test_own_psi_in_blocks():
    f, blocks = least_squares(), shuffled_blocks(SIZES, 4)
    expected = minimize(f, penalties.ElasticNet(ALPHA, RATIO), blocks=blocks, **TIGHT)
    assert expected.mu == pytest.approx(MU_PSI / expected.L.max())
    for kind in ("object", "compiled"):
        found = minimize(f, own_elastic_nets()[kind], blocks=blocks, **TIGHT)
        assert found.mu == pytest.approx(expected.mu)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-8, rtol=0)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3])
def test_own_psi_far_more_or_less_curved_than_f(scale):
    # The prox of Psi-tilde exists for steps under 1/mu_Psi only: L is enlarged to see to that.
    f = functions.LeastSquares(
        least_squares().columns.stored.T * np.geomspace(0.01, 1, 20), np.ones(30)
    )
    expected = minimize(f, penalties.ElasticNet(scale, RATIO), **TIGHT)
    own = OwnElasticNet(scale * RATIO, scale * (1 - RATIO), scale * (1 - RATIO))
    found = minimize(f, own, **TIGHT)
    assert found.mu == pytest.approx(expected.mu)
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)


def test_l2_is_ridge_regression():
    f = least_squares("dense")
    A, b = f.columns.stored.T, f.shift
    alpha = np.random.default_rng(5).uniform(0.1, 1.0, 20)
    for psi in (penalties.L2(alpha), penalties.L2(alpha.min())):
        weight = np.broadcast_to(psi.alpha, 20)
        exact = np.linalg.solve(A.T @ A + np.diag(weight), A.T @ b)
        found = minimize(f, psi, **TIGHT)
        assert found.mu == pytest.approx(theory.moved_convexity(f.lipschitz(), weight))
        np.testing.assert_allclose(found.x, exact, atol=1e-9)
    exact = np.linalg.solve(A.T @ A + 0.3 * np.eye(20), A.T @ b)
    found = minimize(f, OwnElasticNet(0.0, 0.3, 0.3), **TIGHT)
    np.testing.assert_allclose(found.x, exact, atol=1e-9)


class Oracle:
    """Any f, seen only through value, partial_gradient and L."""

    def __init__(self, f):
        self.f, self.L = f, f.lipschitz()

    def value(self, x):
        return self.f.value(x)

    def partial_gradient(self, i, x):
        return self.f.partial_gradient(i, x)


@pytest.mark.parametrize("vector", [False, True])
def test_own_f_with_the_convexity_of_a_built_in_psi(vector):
    f = least_squares()
    alpha = np.random.default_rng(6).uniform(0.1, 1.0, 20) if vector else ALPHA
    psi = penalties.ElasticNet(alpha, RATIO)
    expected = minimize(f, psi, **TIGHT)
    found = minimize(Oracle(f), psi, np.zeros(20), **TIGHT)
    assert found.mu == expected.mu
    np.testing.assert_allclose(found.x, expected.x, atol=1e-9, rtol=0)


def test_own_psi_with_one_convexity_for_each_coordinate():
    f = least_squares()
    b = np.random.default_rng(7).uniform(0.1, 1.0, 20)

    class Ridge:
        strong_convexity = b

        def value(self, x, i):
            return b[i] / 2 * x**2

        def prox(self, v, step, i):
            return v / (1 + step * b[i])

    found = minimize(f, Ridge(), **TIGHT)
    np.testing.assert_allclose(found.x, minimize(f, penalties.L2(b), **TIGHT).x, atol=1e-9)
