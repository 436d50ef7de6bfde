"""The softmax on columns that are nearly alike, of which matrices in float32 know too little."""

import numpy as np
import pytest

from apcg import ERM, solve
from apcg.methods.base import Target
from apcg.methods.softmax_set.method import ClassSet, OutputsGroupSet
from apcg.methods.working_set.tuning import Tuning
from apcg.points import Start

METHODS = {"l1": ClassSet, "group": OutputsGroupSet}


def nearly_alike(penalty, intercept=False, share=1e-5):
    """Columns that are 100 and a little."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 4)) + 100
    y = np.argmax((X - 100) @ rng.standard_normal((4, 3)) + rng.gumbel(size=(150, 3)), axis=1)
    most = np.abs(X.T @ (np.eye(3)[y] - np.eye(3)[y].mean(axis=0))).max() / 150
    return ERM(X, y, "multinomial", penalty, share * most, intercept=intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l1", "group"])
@pytest.mark.parametrize("share", [1e-3, 1e-5])
def test_columns_that_are_nearly_alike(penalty, intercept, share):
    assert solve(nearly_alike(penalty, intercept, share), tol=1e-6, max_epochs=300).converged


@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_float64_is_tried_before_a_run_gives_up(penalty):
    method = METHODS[penalty](Tuning(narrow_matrices=10**9))
    assert solve(nearly_alike(penalty), method, tol=1e-6, max_epochs=5000).converged


@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_float64_after_so_many_matrices_for_alpha_itself(penalty):
    p = nearly_alike(penalty)
    method = METHODS[penalty](Tuning(narrow_matrices=2))
    run = method.start(p, Start(), Target(1e-6), np.random.default_rng(0))
    run.theta = 2.0
    assert [run.kind() for _ in range(5)] == [np.float32] * 5
    run.theta = 1.0
    assert [run.kind() for _ in range(2)] == [np.float32] * 2
    run.turn(p, Target(1e-6))
    assert [run.kind() for _ in range(3)] == [np.float32, np.float32, np.float64]
    run.turn(p, Target(1e-6))  # what one alpha needed, the next ones do
    assert run.kind() is np.float64
