"""The softmax on columns that are nearly alike, of which matrices in float32 know too little."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, solve
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import ClassSet, OutputsGroupSet
from apcg.methods.sparse.state import Progress
from apcg.methods.sparse.tuning import SetTuning

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
    method = METHODS[penalty](SetTuning(narrow_matrices=10**9))
    assert solve(nearly_alike(penalty), method, tol=1e-6, max_epochs=5000).converged


@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_float64_after_so_many_matrices_for_alpha_itself(penalty):
    p = nearly_alike(penalty)
    method = METHODS[penalty](SetTuning(narrow_matrices=2))
    run = method.start(p, Start(), Target(1e-6), np.random.default_rng(0))
    columns = run.columns

    def narrow(count, last=True):
        found = []
        for _ in range(count):
            columns.count(last)
            found.append(columns.narrow)
        return found

    assert all(narrow(5, last=False))
    assert all(narrow(2))
    run.turn(p, Target(1e-6))
    assert narrow(3) == [True, True, False]
    run.turn(p, Target(1e-6))  # what one alpha needed, the next ones do
    assert not any(narrow(1))


# ---- sparse columns ------------------------------------------------------------------------------


def many_alike(share=1e-3):
    """Sparse data with more rows than are taken as dense."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((800, 6)) + 100
    y = np.argmax((X - 100) @ rng.standard_normal((6, 3)) + rng.gumbel(size=(800, 3)), axis=1)
    most = np.abs(X.T @ (np.eye(3)[y] - 1 / 3)).max() / 800
    return ERM(sp.csr_array(X), y, "multinomial", "l1", share * most)


def test_columns_that_get_no_further_hand_over_to_matrices():
    p = many_alike()
    assert solve(p, tol=1e-6).converged
    r = solve(p, ClassSet(), tol=1e-6)
    assert r.converged
    assert any("by matrices" in note for note in r.trace.notes)
    for q in path(p, p.alpha * np.array([100.0, 10.0, 1.0]), tol=1e-6):
        assert q.converged


def test_sets_that_are_too_large_are_not_handed_over():
    p = many_alike()
    r = solve(p, ClassSet(SetTuning(widest=1)), tol=1e-6, max_epochs=500)
    assert r.status.code == "max_epochs"
    assert not r.trace.notes


def test_when_rounds_on_columns_have_spent_enough():
    """So many passes, and what so many matrices cost; if another method is there to go on."""
    p = many_alike()
    first = ClassSet(SetTuning(columns_passes=20, matrices=1000.0, widest=30))
    run = first.start(p, Start(), Target(1e-9), np.random.default_rng(0)).at_last
    run.advance(Budget(1))
    run.support = np.arange(2)
    assert run.price() < 20
    price = 1000.0 * SetTuning.product * 18**2 / 18
    for size, most in ((2, 20.0), (18, price), (31, np.inf)):
        run.support = np.arange(size)
        for cost, alone, ends in ((0.9 * most, False, False), (1.1 * most, False, True),
                                  (1.1 * most, True, False)):  # fmt: skip
            run.cost, run.alone, run._progress = min(cost, 1e6), alone, Progress()
            assert run._idles(1.0, 1.0) == (ends and most < np.inf)
