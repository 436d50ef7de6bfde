"""The user's own f and psi, in Python and compiled, on a problem that nothing built in covers.

A Huber fit with a penalty on positive coefficients only:

    minimize sum_j huber((A x)_j - b_j) + sum_i a_i max(x_i, 0)
"""

import gc

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from cases import shuffled_blocks
from scipy import LowLevelCallable
from scipy.optimize import Bounds
from scipy.optimize import minimize as scipy_minimize

from apcg import functions, minimize, penalties
from apcg.methods.paper import reference
from apcg.problems.composite import Composite

ROWS, N, DELTA = 60, 15, 0.3
RNG = np.random.default_rng(0)
A = RNG.standard_normal((ROWS, N)) / np.sqrt(ROWS)
OUTLIERS = 5 * (RNG.random(ROWS) < 0.2) * RNG.standard_normal(ROWS)
B = A @ (3 * RNG.standard_normal(N)) + 0.1 * RNG.standard_normal(ROWS) + OUTLIERS
WEIGHTS = RNG.uniform(0.05, 0.6, N)
TIGHT = {"mu": 0.02, "tol": 1e-11, "max_epochs": 20_000, "random_state": 0}


def huber(t, b):
    r = abs(t - b)
    return 0.5 * r * r if r <= DELTA else DELTA * (r - 0.5 * DELTA)


def huber_derivative(t, b):
    return max(-DELTA, min(DELTA, t - b))


def positive_part(x, a):
    return a * max(x, 0.0)


def positive_part_prox(v, step, a):
    return v - step * a if v > step * a else min(v, 0.0)


@numba.cfunc("float64(float64, CPointer(float64))")
def huber_c(t, data):
    r = abs(t - data[0])
    return 0.5 * r * r if r <= DELTA else DELTA * (r - 0.5 * DELTA)


@numba.cfunc("float64(float64, CPointer(float64))")
def huber_derivative_c(t, data):
    return max(-DELTA, min(DELTA, t - data[0]))


@numba.cfunc("float64(float64, CPointer(float64))")
def positive_part_c(x, data):
    return data[0] * max(x, 0.0)


@numba.cfunc("float64(float64, float64, CPointer(float64))")
def positive_part_prox_c(v, step, data):
    a = data[0]
    return v - step * a if v > step * a else min(v, 0.0)


class HuberOracle:
    """f in Python: value, partial_gradient, L; of numbers, or of blocks if they are given."""

    def __init__(self, blocks=None):
        self.columns = A.T if blocks is None else [A.T[b] for b in blocks]
        self.L = [np.linalg.norm(c, 2) ** 2 for c in self.columns]

    def value(self, x):
        return sum(huber(t, b) for t, b in zip(A @ x, B, strict=True))

    def partial_gradient(self, i, x):
        return self.columns[i] @ np.clip(A @ x - B, -DELTA, DELTA)


class PositivePart:
    """psi in Python, of numbers or of blocks of coordinates with the given weights."""

    def __init__(self, weights=WEIGHTS):
        self.weights = weights

    def value(self, x, i):
        return np.sum(self.weights[i] * np.maximum(x, 0))

    def prox(self, v, step, i):
        a = step * self.weights[i]
        return np.where(v > a, v - a, np.minimum(v, 0.0))


def low_level(function):
    return LowLevelCallable(function.ctypes)


def smooth_parts():
    h = functions.Custom(huber, huber_derivative, 1.0, B)
    low = functions.Custom(low_level(huber_c), low_level(huber_derivative_c), 1.0, B)
    return {
        "python": HuberOracle(),
        "numba": functions.LinearComposite(A, h),
        "numba, sparse": functions.LinearComposite(sp.csr_matrix(A), h),
        "LowLevelCallable": functions.LinearComposite(A, low),
    }


def simple_parts():
    return {
        "python": PositivePart(),
        "numba": penalties.Custom(positive_part, positive_part_prox, WEIGHTS),
        "LowLevelCallable": penalties.Custom(
            low_level(positive_part_c), low_level(positive_part_prox_c), WEIGHTS
        ),
    }


@pytest.fixture(scope="module")
def smooth():
    return smooth_parts()


@pytest.fixture(scope="module")
def simple():
    return simple_parts()


def objective(x):
    return HuberOracle().value(x) + PositivePart().value(x, slice(None))


def by_scipy():
    """In x = p - q with p, q >= 0 the objective is smooth."""

    def value(pq):
        x = pq[:N] - pq[N:]
        g = A.T @ np.clip(A @ x - B, -DELTA, DELTA)
        return HuberOracle().value(x) + WEIGHTS @ pq[:N], np.hstack([g + WEIGHTS, -g])

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 50_000, "maxfun": 10**6}
    bounds = Bounds(np.zeros(2 * N), np.full(2 * N, np.inf))
    found = scipy_minimize(
        value, np.ones(2 * N), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.x[:N] - found.x[N:]


PAIRS = [
    ("python", "python"),
    ("python", "numba"),
    ("numba", "python"),
    ("numba", "numba"),
    ("numba, sparse", "numba"),
    ("LowLevelCallable", "LowLevelCallable"),
]


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("f", "psi"), PAIRS)
def test_solution_is_that_of_an_independent_solver(smooth, simple, f, psi):
    found = minimize(smooth[f], simple[psi], np.zeros(N), **TIGHT)
    assert found.converged
    x, theirs = found.x, by_scipy()
    assert found.fun == pytest.approx(objective(x), rel=1e-12)
    assert found.fun == pytest.approx(objective(theirs), rel=1e-8)
    assert found.fun <= objective(theirs) * (1 + 1e-10)
    np.testing.assert_allclose(x, theirs, atol=1e-4)
    # Optimality: -g_i is a_i where x_i > 0, 0 where x_i < 0, and in between where x_i = 0.
    g = A.T @ np.clip(A @ x - B, -DELTA, DELTA)
    positive, negative = x > 1e-6, x < -1e-6
    assert positive.sum() > 2
    assert negative.sum() > 2
    assert (~positive & ~negative).sum() > 0
    np.testing.assert_allclose(-g[positive], WEIGHTS[positive], atol=1e-8)
    np.testing.assert_allclose(g[negative], 0, atol=1e-8)
    assert np.all(-g >= -1e-8)
    assert np.all(-g <= WEIGHTS + 1e-8)


@pytest.mark.parametrize("mu", [0.0, 0.02])
@pytest.mark.parametrize(("f", "psi"), PAIRS)
def test_every_pair_takes_the_same_steps(smooth, simple, f, psi, mu):
    rng, order = np.random.default_rng(1), []
    for _ in range(40):
        order.extend(rng.permutation(N))
    problem = Composite(HuberOracle(), PositivePart(), N)
    gamma0 = mu or N / (N - 1)
    *_, (expected, _, _) = reference.algorithm_1(problem, np.zeros(N), mu, gamma0, order)
    options = {"tol": 0.0, "max_epochs": 40, "check_every": 40, "random_state": 1}
    options |= {"method": "apcg", "mu": mu}
    found = minimize(smooth[f], simple[psi], np.zeros(N), **options)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(found.x, expected, atol=1e-10, rtol=0)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("method", ["apcg", "rpcg"])
def test_own_blocks(method):
    blocks = shuffled_blocks((4, 1, 5, 2, 3), 2)
    psi = PositivePart([WEIGHTS[b] for b in blocks])
    options = {**TIGHT, "blocks": blocks, "method": method}
    if method == "rpcg":
        del options["mu"]
    found = minimize(HuberOracle(blocks), psi, np.zeros(N), **options)
    assert found.converged
    custom = functions.Custom(huber, huber_derivative, 1.0, B)
    compiled = minimize(
        functions.LinearComposite(A, custom),
        penalties.Custom(positive_part, positive_part_prox, WEIGHTS),
        **options,
    )
    np.testing.assert_allclose(found.L, compiled.L, rtol=1e-10)
    np.testing.assert_allclose(found.x, compiled.x, atol=1e-9)
    assert found.fun == pytest.approx(objective(by_scipy()), rel=1e-8)


def test_value_and_derivative_of_the_compiled_h(smooth):
    x = np.random.default_rng(3).standard_normal(N)
    oracle = smooth["python"]
    g = [oracle.partial_gradient(i, x) for i in range(N)]
    for name in ("numba", "numba, sparse", "LowLevelCallable"):
        assert smooth[name].value(x) == pytest.approx(oracle.value(x), rel=1e-13)
        np.testing.assert_allclose(smooth[name].gradient(x), g, atol=1e-13)
        np.testing.assert_allclose(smooth[name].lipschitz(), oracle.L, rtol=1e-12)


def test_without_data_the_parameter_is_zero():
    h = functions.Custom(huber, huber_derivative, 1.0)
    f = functions.LinearComposite(A, h)
    x = np.random.default_rng(4).standard_normal(N)
    assert f.value(x) == pytest.approx(sum(huber(t, 0.0) for t in A @ x))
    psi = penalties.Custom(positive_part, positive_part_prox)  # a = 0: no penalty at all
    assert psi.value(x) == 0.0
    np.testing.assert_array_equal(psi.prox(x, 0.5), x)


def test_machine_code_outlives_the_functions_it_came_from():
    def make():
        scale = 0.5 + np.random.default_rng(5).random()  # a closure, gone when make returns

        def value(x, a):
            return scale * a * abs(x)

        def prox(v, step, a):
            return v - min(max(v, -step * scale * a), step * scale * a)

        return penalties.Custom(value, prox, WEIGHTS), scale

    psi, scale = make()
    gc.collect()
    x = np.random.default_rng(6).standard_normal(N)
    expected = penalties.L1(scale * WEIGHTS)
    assert psi.value(x) == pytest.approx(expected.value(x))
    np.testing.assert_allclose(psi.prox(x, 0.7), expected.prox(x, 0.7), atol=1e-14)


SLOPE = 0.5


def linear(x, a):
    return SLOPE * x


def linear_prox(v, step, a):
    return v - step * SLOPE


@pytest.mark.parametrize("slope", [0.5, 2.0])
def test_functions_are_compiled_anew_when_what_they_read_has_changed(monkeypatch, slope):
    monkeypatch.setitem(globals(), "SLOPE", slope)
    psi = penalties.Custom(linear, linear_prox)
    assert psi.value(3.0) == 3 * slope
    assert psi.without_strong_convexity().prox(3.0, 0.5) == 3 - 0.5 * slope


def test_own_f_may_say_how_convex_it_is():
    class Ridge:
        """(1/2)|A x - B|^2 + |x|^2/2."""

        def __init__(self):
            self.L = np.sum(A**2, axis=0) + 1.0
            self.mu = float(np.min(1.0 / self.L))

        def value(self, x):
            return 0.5 * np.sum((A @ x - B) ** 2) + 0.5 * x @ x

        def partial_gradient(self, i, x):
            return A[:, i] @ (A @ x - B) + x[i]

    found = minimize(Ridge(), None, np.zeros(N), method="apcg", tol=1e-12, random_state=0)
    assert found.mu == found.gamma0 == Ridge().mu
    np.testing.assert_allclose(found.x, np.linalg.solve(A.T @ A + np.eye(N), A.T @ B), atol=1e-9)
