"""Every function: gradients, constants, storage formats, and the numbers at the far ends."""

import inspect
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from cases import SIZES, array, convexity, hessian, matrix, shuffled_blocks
from hypothesis import given
from hypothesis import strategies as st

from apcg import functions, minimize, penalties, theory
from apcg.problems.composite import Composite

ROWS, N = 30, 20


def pseudo_huber(t, b):
    """A function of slope at most 1 and curvature at most 1: sqrt(1 + (t - b)^2)."""
    return math.sqrt(1.0 + (t - b) ** 2)


def pseudo_huber_derivative(t, b):
    return (t - b) / math.sqrt(1.0 + (t - b) ** 2)


def make(name: str, form: str = "dense", seed: int = 0):
    """The function called name, with A in the given form; the numbers depend on the seed only."""
    rng = np.random.default_rng(seed)
    A = matrix(ROWS, N, seed, "sparse")  # with zeros, in all forms
    A = {"dense": A.toarray(), "sparse": A, "csr": A.tocsr(), "coo": A.tocoo()}[
        form.removesuffix("32")
    ]
    if form.endswith("32"):
        A = A.astype(np.float32)
    b, c = rng.standard_normal(ROWS), rng.standard_normal(N)
    sigma = rng.uniform(0, 0.5, N)
    return {
        "LeastSquares": lambda: functions.LeastSquares(A, b),
        "LeastSquares, sigma": lambda: functions.LeastSquares(A, b, sigma),
        "Logistic": lambda: functions.Logistic(A, np.where(b > 0, 1.0, -1.0)),
        "Logistic, sigma": lambda: functions.Logistic(A, np.where(b > 0, 1.0, -1.0), 0.3),
        "Quadratic, Q": lambda: functions.Quadratic(A.T @ A, c),
        "Quadratic, Q alone": lambda: functions.Quadratic(A.T @ A),
        "Quadratic, factor": lambda: functions.Quadratic(c=c, factor=A),
        "LinearComposite": lambda: functions.LinearComposite(
            A, functions.Custom(pseudo_huber, pseudo_huber_derivative, 1.0, b), c, sigma
        ),
    }[name]()


NAMES = [
    "LeastSquares",
    "LeastSquares, sigma",
    "Logistic",
    "Logistic, sigma",
    "Quadratic, Q",
    "Quadratic, Q alone",
    "Quadratic, factor",
    "LinearComposite",
]
QUADRATIC = [name for name in NAMES if "Squares" in name or "Quadratic" in name]
MADE = {name: make(name) for name in NAMES}
seeds = st.integers(0, 10**6)


def test_every_public_function_is_here():
    public = {
        c
        for name, c in inspect.getmembers(functions, inspect.isclass)
        if name in functions.__all__ and issubclass(c, functions.LinearComposite)
    }
    assert public == {type(f) for f in MADE.values()}


def test_values_are_those_of_the_definitions():
    rng = np.random.default_rng(0)
    A, x = matrix(ROWS, N, 0, "sparse").toarray(), rng.standard_normal(N)
    rng = np.random.default_rng(0)
    b, c = rng.standard_normal(ROWS), rng.standard_normal(N)
    sigma = rng.uniform(0, 0.5, N)
    y, r = np.where(b > 0, 1.0, -1.0), A @ x
    logistic = np.log(1 + np.exp(-y * r)).sum()
    expected = {
        "LeastSquares": 0.5 * np.sum((r - b) ** 2),
        "LeastSquares, sigma": 0.5 * np.sum((r - b) ** 2) + 0.5 * np.sum(sigma * x**2),
        "Logistic": logistic,
        "Logistic, sigma": logistic + 0.15 * x @ x,
        "Quadratic, Q": 0.5 * r @ r + c @ x,
        "Quadratic, Q alone": 0.5 * r @ r,
        "Quadratic, factor": 0.5 * r @ r + c @ x,
        "LinearComposite": np.sqrt(1 + (r - b) ** 2).sum() + c @ x + 0.5 * np.sum(sigma * x**2),
    }
    for name, f in MADE.items():
        assert f.value(x) == pytest.approx(expected[name], rel=1e-12), name


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
def test_gradient_against_differences(name, seed):
    f = MADE[name]
    rng = np.random.default_rng(seed)
    x, d = rng.standard_normal(N), rng.standard_normal(N)
    eps = 1e-5
    difference = (f.value(x + eps * d) - f.value(x - eps * d)) / (2 * eps)
    assert f.gradient(x) @ d == pytest.approx(difference, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
def test_partial_gradients_are_parts_of_the_gradient(name, seed):
    f = MADE[name]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(N)
    g = f.gradient(x)
    each = [f.partial_gradient(i, x) for i in range(N)]
    assert all(isinstance(e, float) for e in each)
    np.testing.assert_allclose(each, g, atol=1e-12)
    block = rng.permutation(N)[:5]
    np.testing.assert_allclose(f.partial_gradient(block, x), g[block], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds, length=st.floats(-3, 2))
def test_lipschitz_constants_of_coordinates(name, seed, length):
    f = MADE[name]
    rng = np.random.default_rng(seed)
    x, L = 3 * rng.standard_normal(N), f.lipschitz()
    for i in rng.permutation(N)[:5]:
        h = 10.0**length
        moved = x.copy()
        moved[i] += h
        change = abs(f.partial_gradient(i, moved) - f.partial_gradient(i, x))
        assert change <= L[i] * h * (1 + 1e-9) + 1e-12
        if name in QUADRATIC:  # tight
            assert change == pytest.approx(L[i] * h, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
def test_lipschitz_constants_of_blocks(name, seed):
    f = MADE[name]
    rng = np.random.default_rng(seed)
    problem = Composite(f, None, N, shuffled_blocks(SIZES, seed))
    x = 3 * rng.standard_normal(N)
    for i in range(problem.n):
        members = problem.block(i)
        h = np.zeros(N)
        h[members] = rng.standard_normal(len(members))
        change = f.partial_gradient(members, x + h) - f.partial_gradient(members, x)
        norm = np.linalg.norm(h)
        assert np.linalg.norm(change) <= problem.L[i] * norm * (1 + 1e-9)
        # (lip-ineq): the quadratic upper bound that every step relies on
        upper = f.value(x) + f.gradient(x) @ h + problem.L[i] / 2 * norm**2
        assert f.value(x + h) <= upper + 1e-9


@pytest.mark.parametrize("name", ["LeastSquares", "Quadratic, Q", "Quadratic, factor"])
def test_block_constants_of_quadratics_are_eigenvalues(name):
    f = MADE[name]
    blocks = shuffled_blocks(SIZES, 3)
    problem = Composite(f, None, N, blocks)
    H = hessian(f)
    exact = [np.linalg.eigvalsh(H[np.ix_(b, b)])[-1] for b in blocks]
    np.testing.assert_allclose(problem.L, exact, rtol=1e-10)


@pytest.mark.parametrize("given_as", ["Q", "factor", "sparse factor"])
def test_constants_of_large_blocks_are_not_too_small(given_as):
    B = np.random.default_rng(4).standard_normal((450, 450))
    top = np.linalg.norm(B, 2) ** 2
    f = {
        "Q": lambda: functions.Quadratic(B.T @ B),
        "factor": lambda: functions.Quadratic(factor=B),
        "sparse factor": lambda: functions.Quadratic(factor=sp.csc_matrix(B)),
    }[given_as]()
    (L,) = Composite(f, None, 450, [450]).L
    assert top * (1 - 1e-9) <= L <= 1.01 * top


@pytest.mark.parametrize("form", ["sparse", "csr", "coo", "dense32", "sparse32", "csr32"])
@pytest.mark.parametrize("name", NAMES)
def test_forms_of_the_matrix_agree(name, form):
    f, other = MADE[name], make(name, form)
    tol = 1e-5 if form.endswith("32") else 1e-13
    rng = np.random.default_rng(5)
    for _ in range(5):
        x = rng.standard_normal(N)
        assert other.value(x) == pytest.approx(f.value(x), rel=tol)
        np.testing.assert_allclose(other.gradient(x), f.gradient(x), atol=10 * tol)
        parts = other.partial_gradient(np.arange(N), x)
        np.testing.assert_allclose(parts, other.gradient(x), atol=1e-12)
    np.testing.assert_allclose(other.lipschitz(), f.lipschitz(), rtol=tol)
    psi = penalties.L1(0.1)
    options = {"method": "apcg", "mu": 0.1, "tol": 0.0, "max_epochs": 30, "random_state": 0}
    found, expected = (minimize(g, psi, **options).x for g in (other, f))
    np.testing.assert_allclose(found, expected, atol=10 * tol)


def test_integer_and_boolean_matrices():
    A = np.random.default_rng(6).integers(-1, 2, (ROWS, 5))
    x = np.arange(5.0)
    for a in (A, sp.csr_matrix(A), A.astype(np.int8)):
        f = functions.LeastSquares(a, np.ones(ROWS, dtype=int))
        assert f.value(x) == pytest.approx(0.5 * np.sum((A @ x - 1.0) ** 2))
    f = functions.LeastSquares(A > 0, np.ones(ROWS))
    assert f.value(x) == pytest.approx(0.5 * np.sum(((A > 0) @ x - 1.0) ** 2))


# ---- zero columns --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_zero_columns_go_where_psi_wants_them(form):
    A = matrix(ROWS, N, 7)
    A[:, [0, 7, 19]] = 0.0
    b = np.random.default_rng(8).standard_normal(ROWS)
    f = functions.LeastSquares(sp.csc_matrix(A) if form == "sparse" else A, b)
    assert np.flatnonzero(f.lipschitz() == 0).tolist() == [0, 7, 19]
    start = np.full(N, 0.5)
    options = {"tol": 1e-10, "max_epochs": 5000, "random_state": 0}
    found = minimize(f, penalties.L1(0.1), start, mu=0.05, **options)
    assert found.converged
    assert np.all(found.x[[0, 7, 19]] == 0.0)
    kept = [i for i in range(N) if i not in (0, 7, 19)]
    rest = minimize(functions.LeastSquares(A[:, kept], b), penalties.L1(0.1), mu=0.05, **options)
    np.testing.assert_allclose(found.x[kept], rest.x, atol=1e-8)
    box = minimize(f, penalties.Box(0.2, 1.0), start, mu=0.05, **options)
    assert np.all((box.x >= 0.2) & (box.x <= 1.0))


def test_zero_column_of_a_quadratic_follows_its_linear_term():
    Q = np.diag([1.0, 0.0, 2.0, 0.0])
    f = functions.Quadratic(Q, [1.0, 3.0, -1.0, -3.0])
    found = minimize(f, penalties.Box(-5.0, 4.0), random_state=0, tol=1e-12)
    np.testing.assert_allclose(found.x, [-1.0, -5.0, 0.5, 4.0], atol=1e-9)
    ridge = minimize(f, penalties.L2(0.5), random_state=0, tol=1e-12)
    np.testing.assert_allclose(ridge.x, [-1 / 1.5, -6.0, 1 / 2.5, 6.0], atol=1e-9)


def test_zero_blocks():
    A = matrix(ROWS, 6, 9)
    A[:, 2:4] = 0.0
    f = functions.LeastSquares(A, np.ones(ROWS))
    found = minimize(
        f, penalties.GroupL2(0.1), np.ones(6), blocks=[2, 2, 2], mu=0.05, tol=1e-10, random_state=0
    )
    assert found.converged
    assert np.all(found.x[2:4] == 0.0)


# ---- the far ends --------------------------------------------------------------------------------


def test_logistic_margins_of_ten_thousand():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    A = 1e4 * np.array([[1.0], [1.0], [-1.0], [-1.0]])
    f = functions.Logistic(A, y)
    with np.errstate(all="raise"):
        for x in (1.0, -1.0):
            # two margins are 1e4, where the loss is 0, and two are -1e4, where it is the margin
            assert f.value([x]) == pytest.approx(2e4, rel=1e-15)
            assert f.gradient(np.array([x]))[0] == pytest.approx(x * 2e4, rel=1e-15)
            assert f.partial_gradient(0, [x]) == pytest.approx(x * 2e4, rel=1e-15)
        g = f.outer.derivative(np.array([1e4, -1e4, 0.0, 800.0]))
    assert np.all(np.isfinite(g))
    np.testing.assert_allclose(g, [0.0, 0.0, -0.5, 1.0], atol=1e-15)


def test_logistic_is_accurate_near_and_far():
    for t in (-745.0, -30.0, -1e-9, 0.0, 1e-9, 30.0, 700.0):
        f = functions.Logistic(np.array([[t]]), [1.0])
        assert f.value([1.0]) == pytest.approx(np.logaddexp(0.0, -t), rel=1e-14)


def test_logistic_from_a_far_start():
    A = matrix(ROWS, 5, 10)
    y = np.where(np.random.default_rng(11).random(ROWS) < 0.5, -1.0, 1.0)
    f = functions.Logistic(A, y, sigma=0.1)
    options = {"tol": 1e-12, "max_epochs": 10_000, "random_state": 0}
    near, far = (minimize(f, None, np.full(5, s), **options) for s in (0.0, 1e4))
    np.testing.assert_allclose(far.x, near.x, atol=1e-6)
    np.testing.assert_allclose(f.gradient(near.x), 0, atol=1e-10)


# ---- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_known_convexity_holds(name):
    f = MADE[name]
    problem = Composite(f, None, N)
    rng = np.random.default_rng(12)
    for _ in range(50):  # Assumption 2
        x, y = 3 * rng.standard_normal((2, N))
        lower = f.value(x) + f.gradient(x) @ (y - x)
        lower += problem.mu / 2 * np.sum(problem.L * (y - x) ** 2)
        assert f.value(y) >= lower - 1e-9
    if name in QUADRATIC:
        assert problem.mu <= convexity(problem) + 1e-12
    if name == "Logistic, sigma":
        assert problem.mu == pytest.approx(0.3 / f.lipschitz().max())


def test_convexity_parameter_of_a_sum():
    f = functions.LeastSquares(matrix(10, N, 13), np.ones(10), 0.5)  # fewer rows than columns
    exact = theory.convexity_parameter(hessian(f), f.lipschitz())
    assert 0 < Composite(f, None, N).mu <= exact + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_pickling(name):
    f = MADE[name]
    copy = pickle.loads(pickle.dumps(f))
    x = np.random.default_rng(14).standard_normal(N)
    assert copy.value(x) == f.value(x)
    np.testing.assert_array_equal(copy.gradient(x), f.gradient(x))


def test_nothing_given_is_modified():
    A, b = matrix(ROWS, N, 15, "sparse"), np.ones(ROWS)
    before = A.copy(), b.copy()
    f = functions.LeastSquares(A, b)
    minimize(f, penalties.L1(0.1), np.zeros(N), max_epochs=5, random_state=0)
    np.testing.assert_array_equal(array(A), array(before[0]))
    np.testing.assert_array_equal(b, before[1])
    value = f.value(np.zeros(N))
    b[:] = 7.0
    assert f.value(np.zeros(N)) == value
