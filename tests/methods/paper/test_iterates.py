"""The implicit iterate is Algorithm 1 (and 2, and 3), step by step and to rounding."""

import numpy as np
import pytest
from cases import convexity, iterate_cases, least_squares, logistic, quadratic

from apcg import minimize, penalties
from apcg.methods.paper import reference
from apcg.methods.paper.apcg import APCG
from apcg.problems.composite import Composite
from apcg.sequences import Sequence, largest_gamma0

STEPS = 2000
CLOSE = 1e-10  # absolute; the iterates are of unit size

PROBLEMS = iterate_cases()
#: One of each kind, where the storage of A plays no part.
KINDS = ["lasso sparse", "group lasso, sizes", "balls", "box QP given Q", "logistic"]


def parameters(n: int, mu: float) -> dict[str, tuple[float, float]]:
    """(mu, gamma_0) for Algorithm 1 in general and for its two special cases."""
    return {
        "2": (mu, mu),
        "1, gamma_0 a little over mu": (mu, mu + 0.1 * (1 - mu)),
        "1, gamma_0 = 1": (mu, 1.0),
        "1, alpha_0 = 1/n": (mu / 10, largest_gamma0(n, mu / 10)),
        "3, APPROX": (0.0, largest_gamma0(n, 0.0)),
        "3, small alpha_-1": (0.0, 0.05),
    }


def start(problem: Composite, seed: int = 7) -> np.ndarray:
    x = 0.3 * np.random.default_rng(seed).standard_normal(problem.N)
    return problem.prox_all(x, np.full(problem.n, 1e-9))  # into dom Psi


def uniform(problem: Composite, steps: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(problem.n, size=steps).astype(np.intp)


def implicit(problem, x0, mu, gamma0, order, **options):
    """x^(1..k), y^(0..k-1), z^(1..k) of the efficient method, and the method at the end."""
    method = APCG(problem, x0, Sequence(problem.n, mu, gamma0), **options)
    x, y, z = (np.empty((len(order), problem.N)) for _ in range(3))
    for k in range(len(order)):
        y[k] = method.y
        method.epoch(order[k : k + 1])
        x[k], z[k] = method.x, method.z
    return (x, y, z), method


def assert_same(found, expected, tol=CLOSE):
    for name, a, b in zip("xyz", found, expected, strict=True):
        worst = np.abs(a - b).max(axis=1)
        assert worst.max() <= tol, f"{name} differs by {worst.max():.1e} at step {worst.argmax()}"


@pytest.mark.slow(but=5)
@pytest.mark.parametrize("which", parameters(2, 0.5))
@pytest.mark.parametrize("name", PROBLEMS)
def test_implicit_iterates_are_those_of_algorithm_1(name, which):
    problem = PROBLEMS[name]
    mu, gamma0 = parameters(problem.n, convexity(problem) or 0.01)[which]
    x0, order = start(problem), uniform(problem, STEPS, 8)
    textbook = reference.algorithm_1(problem, x0, mu, gamma0, order.tolist())
    expected = reference.stack(textbook, STEPS)
    assert np.abs(expected[0]).max() > 0.1
    found, method = implicit(problem, x0, mu, gamma0, order, fold_at=0.05 if mu > 0 else 0.5)
    assert method.state.folds >= 3
    assert_same(found, expected)
    np.testing.assert_allclose(method.rows(), problem.f.rows(method.x), atol=CLOSE, rtol=0)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("which", list(parameters(2, 0.5))[:-1])
def test_default_folding_keeps_the_iterates_as_close(which):
    problem = PROBLEMS["lasso sparse"]
    mu, gamma0 = parameters(problem.n, convexity(problem))[which]
    steps = 6000
    x0, order = start(problem), uniform(problem, steps, 9)
    expected = reference.stack(reference.algorithm_1(problem, x0, mu, gamma0, order), steps)
    found, method = implicit(problem, x0, mu, gamma0, order)
    assert method.state.folds >= (3 if mu > 0 else 1)
    assert_same(found, expected)
    np.testing.assert_allclose(method.rows(), problem.f.rows(method.x), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("name", ["lasso sparse", "group lasso, given Q", "box QP given Q"])
def test_a_tiny_s_costs_no_digits_of_algorithm_2(name):
    # z = v + t u with t = -s/2: from t = 0 it would cancel, with an error that grows like eps/s.
    problem = PROBLEMS[name]
    mu = convexity(problem)
    x0, order = start(problem), uniform(problem, STEPS, 8)
    expected = reference.stack(reference.algorithm_2(problem, x0, mu, order), STEPS)
    found, method = implicit(problem, x0, mu, mu, order, fold_at=1e-12)
    assert method.state.folds >= 1
    assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_algorithm_2_is_algorithm_1_with_gamma0_equal_mu(name):
    problem = PROBLEMS[name]
    mu = convexity(problem) or 0.01
    x0, order = start(problem), uniform(problem, STEPS, 10).tolist()
    expected = reference.stack(reference.algorithm_1(problem, x0, mu, mu, order), STEPS)
    assert_same(reference.stack(reference.algorithm_2(problem, x0, mu, order), STEPS), expected)


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("name", KINDS)
def test_algorithm_3_is_algorithm_1_with_mu_0(name, share):
    problem = PROBLEMS[name]
    alpha = share / np.sqrt(problem.n**2 - problem.n)  # alpha_{-1}
    gamma0 = problem.n**2 * alpha**2
    x0, order = start(problem), uniform(problem, STEPS, 11).tolist()
    expected = reference.stack(reference.algorithm_1(problem, x0, 0.0, gamma0, order), STEPS)
    assert_same(reference.stack(reference.algorithm_3(problem, x0, alpha, order), STEPS), expected)


def test_rpcg_is_algorithm_1_with_mu_1():
    for name in ("lasso sparse", "group lasso, index arrays", "box QP given Q", "logistic"):
        problem = PROBLEMS[name]
        x0, order = start(problem), uniform(problem, STEPS, 12)
        expected = reference.stack(reference.rpcg(problem, x0, order), STEPS)
        found, method = implicit(problem, x0, 1.0, 1.0, order)
        assert_same(found, expected)
        assert not np.any(method.state.u)  # there is no momentum


@pytest.mark.parametrize("name", ["lasso sparse", "group lasso, given Q", "logistic"])
def test_an_epoch_is_its_steps_to_the_last_bit(name):
    problem = PROBLEMS[name]
    order = uniform(problem, 500, 13)
    sequence = Sequence(problem.n, 0.02, 0.5)
    whole, pieces = (APCG(problem, start(problem), sequence, fold_at=0.1) for _ in range(2))
    whole.epoch(order)
    for piece in np.array_split(order, 37):
        pieces.epoch(piece)
    np.testing.assert_array_equal(whole.x, pieces.x)
    np.testing.assert_array_equal(whole.rows(), pieces.rows())
    assert whole.state.folds == pieces.state.folds > 0


def test_a_fold_rewrites_the_same_iterate():
    problem = PROBLEMS["group lasso, index arrays"]
    method = APCG(problem, start(problem), Sequence(problem.n, 0.02, 0.5), fold_at=0.0)
    method.epoch(uniform(problem, 100, 14))
    before = method.x, method.y, method.z, method.rows()
    s = method.state.s
    assert s < 0.5
    method.state.fold()
    assert method.state.s == 1.0
    for a, b in zip(before, (method.x, method.y, method.z, method.rows()), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14, rtol=0)


LONG = {
    "lasso": (least_squares("sparse", columns=10), penalties.L1(0.1), None),
    "group lasso": (least_squares(columns=10), penalties.GroupL2(0.1), [3, 3, 4]),
    "box QP": (quadratic("Q", columns=10), penalties.Box(-0.3, 0.5), None),
    "logistic": (logistic(columns=10), penalties.L1(0.1), None),
}


@pytest.mark.parametrize("start_above", [False, True])
@pytest.mark.parametrize("name", LONG)
def test_long_runs_stay_at_rounding_level(name, start_above):
    f, psi, blocks = LONG[name]
    problem = Composite(f, psi, 10, blocks)
    mu = convexity(problem)
    method = APCG(problem, np.zeros(10), Sequence(problem.n, mu, 1.0 if start_above else mu))
    for k in range(20):
        method.epoch(uniform(problem, 10_000, 15 + k))
        # The rows of A x are accumulated: a hundredth of a rounding error a step is allowed.
        level = 1e-14 + 1e-18 * 10_000 * (k + 1)
        assert problem.residual(method.x) <= level or k == 0
        np.testing.assert_allclose(method.rows(), f.rows(method.x), atol=2 * level, rtol=0)
    assert method.state.folds >= 100
    np.testing.assert_allclose(method.z, method.x, atol=1e-13, rtol=0)


def test_long_runs_of_algorithm_3_keep_their_rate():
    problem = PROBLEMS["lasso underdetermined"]
    method = APCG(problem, np.zeros(20), Sequence.choose(problem.n, 0.0, None))
    best = minimize(problem.f, problem.psi, mu=0.01, tol=1e-15, max_epochs=20_000, random_state=0)
    gaps = []
    for k in range(20):
        method.epoch(uniform(problem, 10_000, 50 + k))
        gaps.append(problem.value(method.x) - best.fun)
    assert 0 < gaps[-1] <= gaps[0] / 100  # 1/k^2 is 1/400
    np.testing.assert_allclose(method.rows(), problem.f.rows(method.x), atol=1e-12, rtol=0)
