"""A step reads and writes its own block, its own column and the rows of that, and nothing else.

With two million coordinates some hundred steps are taken, and the state is compared with what it
was. Everything a step has no business with is then filled with NaN, and the steps are taken again:
had one of those numbers been read, the answer would show it.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import functions, penalties
from apcg.methods.paper.apcg import APCG
from apcg.problems.composite import Composite
from apcg.sequences import Sequence

N, ROWS, PER_COLUMN, STEPS = 2_000_000, 1_000_000, 3, 500


def columns(n: int, n_rows: int) -> sp.csc_matrix:
    """Three entries in each column, in different rows."""
    rng = np.random.default_rng(0)
    rows = (np.arange(n) * 7919 % (n_rows - 3))[:, None] + np.arange(PER_COLUMN)
    data = rng.uniform(0.5, 1.5, (n, PER_COLUMN)).astype(np.float32)
    starts = np.arange(0, n * PER_COLUMN + 1, PER_COLUMN)
    return sp.csc_matrix(
        (data.ravel(), rows.ravel().astype(np.int32), starts.astype(np.int32)), shape=(n_rows, n)
    )


@pytest.fixture(scope="module")
def A():
    return columns(N, ROWS)


def least_squares(A, blocks=None):
    rows, n = A.shape
    b = np.random.default_rng(1).standard_normal(rows)
    psi = penalties.L1(0.1) if blocks is None else penalties.GroupL2(0.1)
    return Composite(functions.LeastSquares(A, b), psi, n, blocks)


def logistic(A):
    y = np.where(np.random.default_rng(2).random(ROWS) < 0.5, -1.0, 1.0)
    return Composite(functions.Logistic(A, y), penalties.L1(0.01), N)


def tridiagonal():
    """A box QP given by Q, with three entries in each row."""
    Q = sp.diags([-np.ones(N - 1), np.full(N, 2.5), -np.ones(N - 1)], [-1, 0, 1], format="csr")
    c = np.random.default_rng(3).standard_normal(N)
    return Composite(functions.Quadratic(Q, c), penalties.Box(-1.0, 1.0), N)


def touched(problem, order):
    """Which coordinates and which rows the steps may touch."""
    coordinates = np.zeros(problem.N, dtype=bool)
    for i in order:
        coordinates[problem.block(int(i))] = True
    rows = np.zeros(problem.f.columns.shape[1], dtype=bool)
    rows[problem.f.columns.stored[np.flatnonzero(coordinates)].indices] = True
    return coordinates, rows


def start(problem, mu):
    """Half-way: every entry of u, v, p and q is some number that is not zero."""
    method = APCG(problem, np.full(problem.N, 0.25), Sequence.choose(problem.n, mu, None))
    rng = np.random.default_rng(4)
    state = method.state
    np.asarray(state.u)[:] = 1e-3 * rng.standard_normal(problem.N)
    np.asarray(state.pq)[:, 0] = 1e-3 * rng.standard_normal(len(state.pq))
    return method


def snapshot(method):
    s = method.state
    return np.array(s.u), np.array(s.v), np.array(s.pq)


def check_steps(problem, mu, steps=STEPS):
    order = np.random.default_rng(5).integers(problem.n, size=steps).astype(np.intp)
    coordinates, rows = touched(problem, order)
    assert coordinates.sum() <= 0.01 * problem.N

    method = start(problem, mu)
    before = snapshot(method)
    method.epoch(order)
    u, v, pq = after = snapshot(method)
    assert method.state.folds == 0
    for old, new, mine in zip(before, after, (coordinates, coordinates, rows), strict=True):
        np.testing.assert_array_equal(new[~mine], old[~mine])
    assert np.mean(v[coordinates] != before[1][coordinates]) > 0.5
    assert np.mean(pq[rows, 1] != before[2][rows, 1]) > 0.5

    poisoned = start(problem, mu)
    np.asarray(poisoned.state.u)[~coordinates] = np.nan
    np.asarray(poisoned.state.v)[~coordinates] = np.nan
    np.asarray(poisoned.state.pq)[~rows] = np.nan
    poisoned.epoch(order)
    again = snapshot(poisoned)
    np.testing.assert_array_equal(again[0][coordinates], u[coordinates])
    np.testing.assert_array_equal(again[1][coordinates], v[coordinates])
    np.testing.assert_array_equal(again[2][rows], pq[rows])


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 1e-4, 1.0])
def test_steps_of_least_squares(A, mu):
    check_steps(least_squares(A), mu)


def test_steps_of_blocks():
    blocks = np.random.default_rng(6).permutation(10_000).reshape(-1, 5)
    check_steps(least_squares(columns(10_000, 5000), list(blocks)), 1e-4, steps=20)


def test_steps_of_logistic_regression(A):
    check_steps(logistic(A), 1e-4)


@pytest.mark.slow
def test_steps_of_a_quadratic_given_by_its_matrix():
    check_steps(tridiagonal(), 0.0)


def test_steps_do_not_read_other_columns(A):
    order = np.random.default_rng(7).integers(N, size=STEPS).astype(np.intp)
    problem = least_squares(A.copy())
    method = APCG(problem, np.zeros(N), Sequence.choose(N, 1e-4, None))
    method.epoch(order)
    x = method.x
    other = APCG(problem, np.zeros(N), Sequence.choose(N, 1e-4, None))
    mine = np.zeros(N, dtype=bool)
    mine[order] = True
    problem.f.columns.stored.data.reshape(N, PER_COLUMN)[~mine] = np.nan
    problem.L[~mine] = np.nan
    other.epoch(order)
    np.testing.assert_array_equal(other.x, x)
    assert np.count_nonzero(x) > STEPS / 2
