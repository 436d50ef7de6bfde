"""Faults that were found: starts and labels that led to 0/0, to infinite w, or nowhere."""

from __future__ import annotations

import numpy as np
import pytest

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.methods.dual.start_k import best_share
from apcg.methods.interior.interior_l1 import InteriorL1
from apcg.penalties import GroupLasso


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("y", ["zero", "within"])
def test_targets_within_the_tube_are_solved_exactly(intercept, positive, y):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8))
    y = np.zeros(30) if y == "zero" else 0.09 * rng.uniform(-1, 1, 30)
    problem = ERM(X, y, "epsilon_insensitive", "l1", 0.01, intercept=intercept, positive=positive)
    r = solve(problem, random_state=0)
    assert r.converged
    assert r.primal == r.dual == 0
    assert not r.w.any()
    assert not r.x.any()


def test_interior_points_with_nothing_left_do_not_divide_by_zero():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 12, 2)
        X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([0, 8])
        problem = ERM(X, np.zeros(n), "huber", "l1", 10.0 ** rng.uniform(-9, 2))
        r = solve(problem, InteriorL1(), tol=1e-11, max_epochs=20000)
        assert r.converged
        assert r.primal == 0


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_outputs_with_l1_start_from_a_dual_point_alone(loss, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 2)) + 0.1 * rng.standard_normal((40, 2))
    problem = ERM(X, Y, loss, "l1", 1e-3, intercept=intercept)
    x = problem.into_domain(rng.standard_normal((40, 2)))
    assert solve(problem, x0=Start(x=x), random_state=0).converged


def test_the_best_share_of_nothing_is_all_of_it():
    with np.errstate(all="raise"):
        assert best_share(np.ones((1, 1)), np.zeros((1, 1)), 0.0, 0.0) == [1.0]


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_start_beyond_the_targets_gets_a_feasible_dual_point(K, intercept):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((60, 8)), rng.standard_normal(8)
    W, groups = (w, GroupLasso([[0, 1], [2, 3, 4], [5, 6, 7]])) if K == 1 else (
        np.column_stack([w, -w]), "group")  # fmt: skip
    problem = ERM(X, X @ W, "squared", groups, 1e-4, intercept=intercept)
    r = solve(problem, x0=Start(w=2 * W), tol=1e-3, random_state=0)
    assert problem.g.excess(problem.v_of(r.x)) <= 1 + 1e-10
    assert r.converged
    assert r.primal < 1e-2


def test_groups_of_large_weights_have_a_value():
    rng = np.random.default_rng(0)
    X, Y = 1e-150 * rng.standard_normal((20, 6)), rng.standard_normal((20, 2))
    problem = ERM(X, Y, "squared", "group", 1e-151)
    W = np.full((6, 2), 5e153)
    assert np.isclose(problem.g.value(W), 6 * np.sqrt(2) * 5e153)
