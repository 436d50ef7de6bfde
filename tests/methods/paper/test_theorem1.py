"""Theorem 1: for the exact expectation of short runs, and for the mean of many long ones."""

from itertools import product

import numpy as np
import pytest
from cases import array, convexity, matrix
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from sklearn.linear_model import Lasso

from apcg import functions, penalties, theory
from apcg.methods.paper import reference
from apcg.methods.paper.apcg import APCG
from apcg.problems.composite import Composite
from apcg.sequences import Sequence, largest_gamma0

SEEDS = 400
ALLOWANCE = 4  # standard errors of the mean over the seeds


class Case:
    """A least-squares problem with its solution found by somebody else's means."""

    def __init__(self, kind: str, rows: int, columns: int, seed: int, decades: float = 0.0):
        rng = np.random.default_rng(seed)
        A = matrix(rows, columns, seed + 1)
        u, s, v = np.linalg.svd(A, full_matrices=False)
        A = u * np.geomspace(1, 10**-decades, s.size) @ v  # singular values over so many decades
        b = A @ rng.standard_normal(columns) + 0.1 * rng.standard_normal(rows)
        psi, blocks = penalties.Zero(), None
        x0 = 0.5 * rng.standard_normal(columns)
        if kind == "lasso":
            psi = penalties.L1(0.02)
        elif kind == "box":
            psi = penalties.Box(-0.6, 0.6)
            x0 = np.clip(x0, -0.6, 0.6)
        elif kind == "groups":
            blocks = [3] * (columns // 3)
        self.problem = Composite(functions.LeastSquares(A, b), psi, columns, blocks)
        self.x0, self.L = x0, self.problem.per_coordinate(self.problem.L)
        self.x = self.solution(kind, array(A), b)
        self.mu = convexity(self.problem) if rows >= columns else 0.0
        self.optimum = self.problem.value(self.x)
        self.gap0 = self.problem.value(x0) - self.optimum
        self.R0 = float(np.sqrt(np.sum(self.L * (x0 - self.x) ** 2)))
        assert self.problem.residual(self.x) < 1e-7

    def solution(self, kind, A, b):
        """The solution nearest to x0 in |.|_L."""
        if kind == "box":
            return lsq_linear(A, b, (-0.6, 0.6), method="bvls", tol=1e-14).x
        if kind == "lasso":
            model = Lasso(0.02 / len(b), fit_intercept=False, tol=1e-14, max_iter=10**6)
            return model.fit(A, b).coef_
        root = np.sqrt(self.L)
        return self.x0 + np.linalg.lstsq(A / root, b - A @ self.x0, rcond=1e-10)[0] / root

    def bound(self, gamma0: float, k) -> np.ndarray:
        return theory.apcg_bound(self.n, self.mu, gamma0, k, gap0=self.gap0, R0=self.R0)

    @property
    def n(self) -> int:
        return self.problem.n

    def gaps(self, sequence: Sequence, records: np.ndarray, seed: int) -> np.ndarray:
        """F(x^(k)) - F* at the recorded k, for one run with uniform sampling."""
        rng = np.random.default_rng(seed)
        method = APCG(self.problem, self.x0, sequence)
        out, done = [], 0
        for k in records:
            method.epoch(rng.integers(self.n, size=k - done).astype(np.intp))
            out.append(self.problem.value(self.problem.nearest(method.x)) - self.optimum)
            done = k
        return np.array(out)

    def mean_gaps(self, sequence: Sequence, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean over the seeds and its standard error."""
        runs = np.array([self.gaps(sequence, records, seed) for seed in range(SEEDS)])
        return runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(SEEDS)


CASES = {
    "strongly convex": Case("quadratic", 20, 10, 0, decades=1.5),
    "strongly convex, blocks": Case("groups", 30, 12, 1, decades=1.0),
    "strongly convex, box": Case("box", 20, 10, 2, decades=1.0),
    "strongly convex, lasso": Case("lasso", 20, 10, 3, decades=1.0),
    "plain": Case("quadratic", 8, 12, 4),
    "plain, blocks": Case("groups", 8, 15, 5),
    "plain, lasso": Case("lasso", 8, 12, 6),
}
STRONG = [name for name, case in CASES.items() if case.mu > 0]
PLAIN = [name for name, case in CASES.items() if case.mu == 0]


def records(case: Case) -> np.ndarray:
    """Every step at first, then fewer, up to where the bound is about 1e-4 of where it began."""
    last = 10 / np.sqrt(case.mu) if case.mu else 60
    return np.unique(np.geomspace(1, last * case.n, 40).astype(int))


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", STRONG)
def test_theorem_1_for_strongly_convex_f(name, share):
    case = CASES[name]
    gamma0 = case.mu + share * (largest_gamma0(case.n, case.mu) - case.mu)
    k = records(case)
    mean, error = case.mean_gaps(Sequence(case.n, case.mu, gamma0), k)
    bound = case.bound(gamma0, k)
    assert bound[-1] < 0.01 * bound[0]
    assert np.all(mean <= bound + ALLOWANCE * error)
    linear, sublinear = theory.lambda_bound(case.n, case.mu, gamma0, k)
    if share == 0:
        assert np.all(linear < sublinear)
    else:  # both terms of the minimum have been put to the test
        assert np.any(linear < sublinear)
        assert np.any(sublinear < linear)


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("name", PLAIN)
def test_theorem_1_for_plainly_convex_f(name, share):
    case = CASES[name]
    alpha = share / np.sqrt(case.n**2 - case.n)  # alpha_{-1} of Algorithm 3
    gamma0 = case.n**2 * alpha**2
    k = records(case)
    mean, error = case.mean_gaps(Sequence(case.n, 0.0, gamma0), k)
    bound = case.bound(gamma0, k)
    linear, sublinear = theory.lambda_bound(case.n, 0.0, gamma0, k)
    assert np.all(sublinear < linear)
    assert bound[-1] < 0.1 * bound[0]
    assert np.all(mean <= bound + ALLOWANCE * error)


def test_the_unaccelerated_method_breaks_the_bound():
    # So the bound is not so loose that anything would pass.
    case = CASES["strongly convex"]
    k = records(case)
    mean, error = case.mean_gaps(Sequence(case.n, 1.0, 1.0), k)
    assert np.any(mean > case.bound(case.mu, k) + ALLOWANCE * error)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", CASES)
def test_rate_of_the_unaccelerated_method(name):
    case = CASES[name]
    k = np.unique(np.geomspace(1, 100 * case.n, 40).astype(int))
    mean, error = case.mean_gaps(Sequence(case.n, 1.0, 1.0), k)
    bound = theory.rpcg_bound(case.n, case.mu, k, gap0=case.gap0, R0=case.R0)
    assert bound[-1] < 0.5 * bound[0]
    assert np.all(mean <= bound + ALLOWANCE * error)


# ---- the expectation taken exactly ---------------------------------------------------------------

SMALL = {
    "quadratic, n = 2": (Case("quadratic", 4, 2, 7, decades=1.0), 10),
    "lasso, n = 2": (Case("lasso", 4, 2, 8), 10),
    "box, n = 3": (Case("box", 4, 3, 9, decades=0.5), 6),
    "plain, n = 3": (Case("quadratic", 2, 3, 10), 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", SMALL)
def test_theorem_1_over_all_index_sequences(name, share):
    case, steps = SMALL[name]
    top = largest_gamma0(case.n, case.mu)
    gamma0 = case.mu + max(share, 0.0 if case.mu else 0.1) * (top - case.mu)
    sequence, x0 = Sequence(case.n, case.mu, gamma0), case.x0
    total, runs = np.zeros(steps), 0
    for order in product(range(case.n), repeat=steps):
        method = APCG(case.problem, x0, sequence)
        for k, i in enumerate(order):
            method.epoch(np.array([i], dtype=np.intp))
            total[k] += case.problem.value(case.problem.nearest(method.x)) - case.optimum
        runs += 1
    assert np.all(total / runs <= case.bound(gamma0, np.arange(1, steps + 1)) * (1 + 1e-9))


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", ["strongly convex", "strongly convex, lasso", "plain, lasso"])
def test_the_potential_of_the_proof_falls_in_expectation(name, share):
    """E_{i_k}[f(x') + Psi-hat' - F* + (gamma'/2)|x* - z'|_L^2] <= (1 - alpha_k) the same before."""
    case = CASES[name]
    problem, n, mu, steps = case.problem, case.n, case.mu, 30
    gamma0 = mu + max(share, 0.0 if mu else 0.1) * (largest_gamma0(n, mu) - mu)
    sequence = Sequence(n, mu, gamma0)
    alpha, gamma, _ = sequence.arrays(steps)

    def potential(k, x, Psi_z, z):
        hat = sequence.theta(k) @ Psi_z
        distance = np.sum(case.L * (case.x - z) ** 2)
        return problem.f.value(x) + hat - case.optimum + gamma[k] / 2 * distance

    order = np.random.default_rng(11).integers(n, size=steps).tolist()
    x, z, Psi_z = case.x0, case.x0, [problem.psi_value(case.x0)]
    for k in range(steps):
        after = []
        for i in range(n):
            run = reference.algorithm_1(problem, case.x0, mu, gamma0, [*order[:k], i])
            after.append(reference.take(run, k + 1)[-1])
        values = [potential(k + 1, x1, [*Psi_z, problem.psi_value(z1)], z1) for x1, _, z1 in after]
        before = potential(k, x, Psi_z, z)
        assert np.mean(values) <= (1 - alpha[k]) * before + 1e-10
        x, _, z = after[order[k]]
        Psi_z.append(problem.psi_value(z))


# ---- numbers of steps ----------------------------------------------------------------------------

sizes = st.floats(1e-3, 1e3)


@given(
    n=st.integers(1, 200),
    mu=st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-8, 1)),
    share=st.floats(0.01, 1),
    epsilon=st.floats(1e-9, 10),
    gap0=sizes,
    R0=sizes,
)
def test_numbers_of_steps_are_the_least_that_the_bounds_allow(n, mu, share, epsilon, gap0, R0):
    gamma0 = max(mu, share)
    accelerated = theory.apcg_steps(n, mu, gamma0, epsilon, gap0=gap0, R0=R0)
    plain = theory.rpcg_steps(n, mu, epsilon, gap0=gap0, R0=R0)
    assume(max(accelerated, plain) < 1e9)  # beyond, n/(n + k) at k and k - 1 is the same number

    def of_apcg(k):
        return theory.apcg_bound(n, mu, gamma0, k, gap0=gap0, R0=R0)

    def of_rpcg(k):
        return theory.rpcg_bound(n, mu, k, gap0=gap0, R0=R0)

    for steps, bound in ((accelerated, of_apcg), (plain, of_rpcg)):
        assert steps == int(steps) >= 0
        assert bound(steps) <= epsilon * (1 + 1e-6)
        assert steps == 0 or bound(steps - 1) > epsilon * (1 - 1e-6)


def steps_to(case: Case, sequence: Sequence, target: float, seed: int, most: int) -> int:
    """How many steps until F(x^(k)) - F* <= target, counted in epochs of n."""
    rng = np.random.default_rng(seed)
    method = APCG(case.problem, case.x0, sequence)
    for k in range(case.n, most, case.n):
        method.epoch(rng.integers(case.n, size=case.n).astype(np.intp))
        if case.problem.value(method.x) - case.optimum <= target:
            return k
    raise AssertionError(f"not reached in {most} steps")


@pytest.mark.parametrize("kind", ["quadratic", "groups"])
def test_acceleration_saves_most_of_the_steps(kind):
    case = Case(kind, 60, 39, 12, decades=2.0)
    assert case.mu < 1e-3
    target = 1e-6 * case.gap0
    constants = {"gap0": case.gap0, "R0": case.R0}
    promised = theory.apcg_steps(case.n, case.mu, case.mu, target, **constants)
    unaccelerated = theory.rpcg_steps(case.n, case.mu, target, **constants)
    assert promised < unaccelerated / 3
    fast, slow = [], []
    for seed in range(5):
        fast.append(steps_to(case, Sequence(case.n, case.mu, case.mu), target, seed, 4 * promised))
        slow.append(steps_to(case, Sequence(case.n, 1.0, 1.0), target, seed, 4 * unaccelerated))
    assert np.mean(fast) <= promised
    assert np.mean(slow) >= 3 * np.mean(fast)
