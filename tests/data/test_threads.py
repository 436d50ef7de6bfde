"""Threads in products with X: the same sums, the same bits for the same number, never more."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from apcg import ERM, APCGClassifier, APCGRegressor, solve
from apcg.data import by_row, threads


def matrices():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((700, 40))
    S = sp.random_array((700, 90), density=0.2, rng=rng, format="csr")
    empty = sp.csr_array((295, 90))  # parts have about as many numbers, not rows
    S = sp.vstack([S[:5], empty, S[300:]], format="csr")
    return {"dense": A, "float32": A.astype(np.float32), "wide": A.T.copy(), "sparse": S}


@pytest.fixture
def small(monkeypatch):
    """Threads for small matrices too."""
    monkeypatch.setattr(threads, "LARGE", 1)


@pytest.mark.parametrize("kind", matrices())
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("jobs", [2, 3, 50])
def test_products_are_those_of_one_thread(small, kind, constant, jobs):
    X = by_row(matrices()[kind], "X")
    X = X.bordered(constant) if constant else X
    (n, d), rng = X.shape, np.random.default_rng(1)
    w, r, s = rng.standard_normal(d), rng.standard_normal(n), rng.random(n)
    q, q2 = np.empty(n), np.empty(n)

    def products(q):
        upper = np.triu(X.gram(s))
        return [X.times(w), X.adjoint(r), X.times(np.outer(w, [1, 2])),
                X.adjoint(np.outer(r, [1, 2, 3])), upper, X.gram_times(s, w, q), q]  # fmt: skip

    alone = products(q)
    with threads.using(jobs):
        together, again = products(q2), products(q2)
    for one, two, three in zip(alone, together, again, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(two, three)


def test_parts_are_of_about_one_size():
    X = by_row(matrices()["sparse"], "X")
    parts = threads.split(X, 3)
    assert [at.start for at, _ in parts][1:] == [at.stop for at, _ in parts][:-1]
    assert parts[0][0].start == 0
    assert parts[-1][0].stop == X.shape[0]
    assert max(part.nnz for _, part in parts) < 0.5 * X.nnz


def test_never_more_threads_than_asked(small, monkeypatch):
    X, seen, blas = by_row(matrices()["dense"], "X"), set(), []
    adjoint = type(X)._adjoint

    def watched(self, r):
        seen.add(threading.get_ident())
        blas.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        return adjoint(self, r)

    monkeypatch.setattr(type(X), "_adjoint", watched)
    with threads.using(2):
        for _ in range(20):
            X.adjoint(np.ones(700))
    assert len(seen) <= 2
    assert set(blas) == {1}
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge", "hinge"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_answers_are_certified_and_repeat(small, loss, penalty):
    X = matrices()["dense"]
    y = np.sign(X[:, 0] + X[:, 1] * X[:, 2])
    problem = ERM(X, y, loss, penalty, 0.01, intercept=True)
    alone = solve(problem, random_state=0)
    one, two = (solve(problem, random_state=0, n_jobs=3) for _ in range(2))
    assert one.converged
    assert one.dual <= alone.primal * (1 + 1e-12)
    assert alone.dual <= one.primal * (1 + 1e-12)
    np.testing.assert_array_equal(one.w, two.w)


@pytest.mark.parametrize("jobs", [0, 1.5, "two", True])
def test_what_is_no_number_of_threads(jobs):
    X, y = np.eye(4), [1, -1, 1, -1]
    with pytest.raises(ValueError, match=r"n_jobs must be .* got"):
        solve(ERM(X, y), n_jobs=jobs)
    with pytest.raises(ValueError, match="n_jobs must be"):
        APCGClassifier(n_jobs=jobs).fit(X, y)


def test_estimators_with_one_problem_take_threads(small):
    X = matrices()["dense"]
    y = X @ np.linspace(0, 1, 40)
    for jobs in (1, 2, -1):
        model = APCGRegressor("squared", alpha=1e-3, n_jobs=jobs).fit(X, y)
        assert model.duality_gap_ <= 1e-6
