"""Conjugate gradients on a support by rows, and with a factor: against plain linear algebra."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, solve
from apcg.data.linear_map import Sparse
from apcg.methods.working_set import Tuning, WorkingSet
from apcg.methods.working_set.support import Faces, Factor, Support, Turn

RNG_SEED = 3


def columns(n=80, d=12):
    rng = np.random.default_rng(RNG_SEED)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    S = sp.csr_matrix(X)
    return X, Sparse(S.data, S.indices, S.indptr, d), rng


def support(samples, X, ids):
    return Support(samples, ids, int(np.count_nonzero(X[:, ids])))


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("b", [0.0, 0.5])
def test_the_step_solves_the_system_of_any_support_among_the_columns(factored, centred, b):
    X, samples, rng = columns()
    ids, bend = np.array([0, 2, 3, 5, 6, 8, 9, 11]), rng.uniform(0.5, 2, 80)
    rows = support(samples, X, ids)
    mean = X.T @ bend / math.sqrt(bend.sum()) if centred else np.empty(0)
    ridge, at = np.full(12, b), mean[ids] if centred else mean
    factor = Factor(ids, rows.gram(bend, 0.0), ridge[ids], at) if factored else None
    names, S = np.arange(12), np.array([2, 5, 6, 9])
    G = X.T @ (bend[:, None] * X) - (np.outer(mean, mean) if centred else 0.0)
    left, part = rng.standard_normal(4), mean[S] if centred else mean
    squares = G.diagonal()[S]
    turn = Turn(rows, factor, names, bend)
    step, _, remains = turn.solve(S, left, squares, ridge[S], part, 30, 1e-9, 0.0)
    assert (G[np.ix_(S, S)] + b * np.eye(4)) @ step == pytest.approx(left, abs=1e-4)
    assert remains <= 1e-8
    if factored:  # and with a factor nearly at once
        assert turn.solve(S, left, squares, ridge[S], part, 2, 0.0, 0.0)[2] < 1e-3
    assert turn.solve(S, left, squares, ridge[S], part, 30, 0.0, 2 * np.abs(left).max())[1] == 0


def test_a_factor_serves_with_columns_that_it_does_not_know():
    X, samples, rng = columns()
    bend, all_ids = np.ones(1), np.arange(12)
    known = np.arange(9)
    factor = Factor(known, support(samples, X, known).gram(bend, 0.0), np.zeros(9), np.empty(0))
    left, G = rng.standard_normal(12), X.T @ X
    turn = Turn(support(samples, X, all_ids), factor, all_ids, bend)
    step, *_ = turn.solve(all_ids, left, G.diagonal(), np.zeros(12), np.empty(0), 40, 1e-9, 0.0)
    assert G @ step == pytest.approx(left, abs=1e-4)


def test_rows_of_little_curvature_are_left_out_of_a_gram_matrix():
    X, samples, _ = columns()
    bend = np.where(np.arange(80) < 50, 1.0, 0.01)
    made = support(samples, X, np.arange(12)).gram(bend, 0.1)
    assert made == pytest.approx(np.triu(X[:50].T @ X[:50]), abs=1e-4)


def test_a_factor_is_made_where_it_is_predicted_to_pay_and_dropped_where_it_does_not_help():
    _, samples, _ = columns()
    S, bend, b = np.arange(8), np.ones(1), np.zeros(1)

    def turn(faces, digits, most=10):
        return faces.turn(np.arange(12), S, lambda: np.arange(10), bend, b, most, digits)

    faces = Faces(samples, Tuning(by_rows=math.inf), intercept=False)
    assert turn(faces, 1e3) is None  # no rate is known
    faces.learn(10, 10, 0.1)
    assert turn(faces, 1e3) is None  # one run does not tell
    faces.learn(10, 10, 0.1)
    assert turn(faces, 1.0) is None  # little is left to do
    assert turn(faces, 1e3) is not None
    assert faces.factor is not None
    faces.learn(5, 20, 1e-4)
    assert faces.factor is not None
    faces.learn(20, 20, 0.5)
    assert faces.factor is None
    wide = Faces(samples, Tuning(by_rows=math.inf, widest=7), intercept=False)
    turn(wide, 1e3)
    for _ in range(2):
        wide.learn(10, 10, 0.1)
    assert turn(wide, 1e3) is None
    rows = Faces(samples, Tuning(by_rows=0.0, factors=0), intercept=False)
    turn(rows, 1e3)
    rows.learn(10, 10, 0.1)
    assert turn(rows, 1e3) is not None
    assert rows.factor is None


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"penalty": "elasticnet"}], ids=str)
@pytest.mark.parametrize("factors", [0, 5])
def test_answers_are_the_same_by_rows_and_with_factors(loss, options, factors):
    rng = np.random.default_rng(5)
    X = sp.random(300, 120, 0.1, format="csr", random_state=1)
    z = X @ rng.standard_normal(120) + 0.1 * rng.standard_normal(300)
    y = np.sign(z) if loss == "logistic" else z + 1.0
    problem = ERM(X, y, loss, alpha=1e-3, **{"penalty": "l1", **options})
    free = (0.0, (0.0, 0.0), 0.0, 0.0)
    tuning = Tuning(few_rows=0, tall=np.inf, by_rows=0.0, factors=factors, factor_costs=free)
    ours = solve(problem, WorkingSet(tuning), tol=1e-8, random_state=0)
    plain = Tuning(few_rows=0, tall=np.inf, by_rows=np.inf, factors=0)
    other = solve(problem, WorkingSet(plain), tol=1e-8, random_state=0)
    assert ours.gap <= 1e-8 * ours.primal
    assert ours.primal == pytest.approx(other.primal, rel=2e-8)
