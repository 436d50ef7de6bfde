"""Paths of the squared loss with few columns: one Gram matrix, and certificates made together."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, penalties, solve
from apcg.methods.working_set import Tuning, whole

ALPHAS = np.geomspace(0.5, 5e-3, 12)[[3, 0, 7, 1, 2, 4, 5, 6, 8, 11, 10, 9]]


def problem(n=60, d=30, *, penalty="l1", weighted=False, dtype=np.float64, sparse=False, **options):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = X[:, :5] @ rng.standard_normal(min(d, 5)) + 0.3 * rng.standard_normal(n) + 2.0
    weights = rng.integers(0, 4, n) * 1.0 if weighted else None
    X = sp.csr_matrix(X) if sparse else X.astype(dtype)
    return ERM(X, y, "squared", penalty, sample_weight=weights, **options)


def together(answers):
    """Which of them were."""
    return [any("on one Gram matrix" in note for note in r.trace.notes) for r in answers]


PENALTIES = ["l1", "elasticnet", penalties.L1(np.linspace(0.5, 2.0, 30))]


@pytest.mark.parametrize("penalty", PENALTIES, ids=["l1", "elasticnet", "weights"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_the_certificates_are_those_of_the_problem(penalty, intercept, weighted, tol):
    p = problem(penalty=penalty, weighted=weighted, intercept=intercept)
    answers = path(p, ALPHAS, tol=tol)
    assert all(together(answers))
    for alpha, r in zip(ALPHAS, answers, strict=True):
        at = p.with_alpha(float(alpha))
        alone = solve(at, tol=1e-10, random_state=0)
        assert r.converged
        assert at.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-13)
        assert at.dual(r.x) == pytest.approx(r.dual, rel=1e-13)  # feasible too
        assert r.gap <= tol * r.primal
        assert r.dual * (1 - 1e-12) <= alone.primal <= r.primal * (1 + 1e-10)


def test_x_is_feasible_however_its_products_are_summed():
    """With alpha next to nothing the products X_j'x are small sums of large terms."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    p = ERM(X, 1e3 + X[:, 0], "squared", "l1")
    alphas = np.geomspace(1e2, 1e-6, 40)
    certificates = whole.certified(p, alphas, whole.optima(p, alphas, 1e-6)[0])
    for alpha, found in zip(alphas, certificates, strict=True):
        exact = np.abs(X.T.astype(np.longdouble) @ found.x) / (alpha * 400)
        assert exact.max() <= 1
        for order in (rng.permutation(400) for _ in range(5)):
            assert np.abs(found.x[order] @ X[order] / (alpha * 400)).max() <= 1
        assert p.with_alpha(float(alpha)).dual(found.x) > -np.inf


def test_an_intercept_wants_x_to_sum_to_zero():
    """Also where y is far from zero, and its mean has fewer digits than the residuals need."""
    p = problem(intercept=True)
    far = ERM(p.samples.stored, p.y + 1e9, "squared", "l1", intercept=True)
    W = whole.optima(p, ALPHAS, 1e-6)[0]
    for alpha, found in zip(ALPHAS, whole.certified(far, ALPHAS, W), strict=True):
        rounding = 1e-15 * float(np.abs(far.y) @ np.abs(found.x)) / far.n
        assert far.with_alpha(float(alpha)).dual(found.x) == pytest.approx(found.dual, abs=rounding)
        assert found.dual > -np.inf


def test_an_x_that_does_not_is_no_certificate(monkeypatch):
    monkeypatch.setattr(ERM, "_imbalance", lambda *_: 1.1)
    assert whole.answers(problem(intercept=True), ALPHAS, 1e-3) == [None] * ALPHAS.size


@pytest.mark.parametrize("intercept", [False, True])
def test_a_point_that_is_not_good_enough_is_solved_again(monkeypatch, intercept):
    found = whole.optima

    def spoiled(*args):
        W, b = found(*args)
        W[3:6] *= 1.5
        W[8] = np.nan
        return W, b

    monkeypatch.setattr(whole, "optima", spoiled)
    p = problem(intercept=intercept)
    answers = path(p, ALPHAS, tol=1e-6)
    assert [k for k, so in enumerate(together(answers)) if not so] == [3, 4, 5, 8]
    for alpha, r in zip(ALPHAS, answers, strict=True):
        at = p.with_alpha(float(alpha))
        assert r.converged
        assert at.primal(r.w, r.intercept) - at.dual(r.x) <= 1e-6 * r.primal


def test_if_the_gram_matrix_does_not_do_all_are_solved_one_by_one(monkeypatch):
    monkeypatch.setattr(whole, "optima", lambda *_: None)
    answers = path(problem(), ALPHAS, tol=1e-6)
    assert all(r.converged for r in answers)
    assert not any(together(answers))


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"n": 29}, {}),
        ({"sparse": True}, {}),
        ({"dtype": np.float32}, {}),
        ({"positive": True}, {}),
        ({"penalty": "l2"}, {}),
        ({}, {"tol": 1e-10}),
        ({}, {"method": "adaptive"}),
        ({}, {"callback": lambda _: None}),
        ({}, {"check_every": 1}),
        ({}, {"time_limit": 60.0}),
        ({}, {"max_epochs": 0}),
    ],
)
def test_what_it_is_not_for(given, options, monkeypatch):
    """Then no Gram matrix is made in vain either."""
    monkeypatch.setattr(whole, "optima", lambda *_: pytest.fail("it was made"))
    answers = path(problem(**given), ALPHAS, **options)
    assert len(answers) == ALPHAS.size
    assert not any(together(answers))


def test_many_columns_want_many_alphas():
    """A Gram matrix of all columns has to pay."""
    (first, more), most = Tuning.columns_for, Tuning.few_columns
    cases = ((first + more, 1), (first + more + 1, 1), (first + 2 * more, 2), (most + 1, 60))
    taken = []
    for d, count in cases:
        found = whole.answers(problem(n=d + 5, d=d), np.full(count, 0.5), 1e-3)
        taken.append(all(c is not None for c in found))
    assert taken == [True, False, True, False]


def test_zeros_are_exact_and_those_of_a_cold_solve():
    p = problem(n=200)
    for alpha, r in zip(ALPHAS, path(p, ALPHAS, tol=1e-9), strict=True):
        alone = solve(p.with_alpha(float(alpha)), tol=1e-12, random_state=0)
        assert np.array_equal(r.w != 0, alone.w != 0)


def test_certificates_are_made_in_parts(monkeypatch):
    """So that the predictions for many alphas take no more room than X."""
    sizes, made = [], whole.certified

    def watched(p, grid, W):
        sizes.append(grid.size)
        return made(p, grid, W)

    monkeypatch.setattr(whole, "certified", watched)
    p, alphas = problem(n=40_000, d=4), np.geomspace(0.5, 0.05, 10)
    answers = path(p, alphas, tol=1e-6)
    assert all(together(answers))
    assert sizes == [4, 3, 3]
    for alpha, r in zip(alphas, answers, strict=True):
        assert p.with_alpha(float(alpha)).gap(r.x, r.w) <= 1e-6 * r.primal
