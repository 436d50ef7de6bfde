"""Many rows, dense columns, losses of several models: the Gram matrix of columns that may move."""

import dataclasses

import numpy as np
import pytest

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import WorkingSet
from apcg.methods.sparse.dense.all_columns import AllColumnsRun
from apcg.methods.sparse.tuning import SetTuning


def problem(seed=0, n=600, d=40, share=20, **options):
    """Columns like their neighbours, so that some enter late that were far from it at first."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.9 * X[:, j - 1] + 0.4 * X[:, j]
    z = X[:, ::7] @ rng.standard_normal(X[:, ::7].shape[1])
    y = np.where(z + rng.standard_normal(n) > 0, 1.0, -1.0)
    most = np.abs(X.T @ y).max() / (2 * n)
    return ERM(X, y, "logistic", "l1", most / share, **options)


def without_sweeps(part):
    """All rounds by Gram matrices in float64, which `moving` is for."""
    return dataclasses.replace(SetTuning(), moving=part, strip_columns=(10**6, 10**6))


def by(part):
    return WorkingSet(without_sweeps(part))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [3, 20, 300])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_answer_is_that_of_all_columns(seed, share, intercept):
    s = np.random.default_rng(seed).uniform(0.1, 2.0, 600)
    p = problem(seed, share=share, intercept=intercept, sample_weight=s)
    few, all_ = (solve(p, by(part), tol=1e-10, random_state=0) for part in (1.0, 0.0))
    assert few.converged
    assert all_.converged
    assert few.primal == pytest.approx(all_.primal, rel=3e-10)
    np.testing.assert_array_equal(few.w != 0, all_.w != 0)


def run_of(p, part):
    run = AllColumnsRun(p, Start(), Target(1e-8), without_sweeps(part), np.random.default_rng(0))
    run.advance(Budget(1000))
    return run


def test_few_columns_are_in_the_model_where_few_may_move():
    p = problem(share=3)
    support = np.count_nonzero(solve(p, tol=1e-10).w)
    assert support < run_of(p, 1.0)._kept.W.size < p.d / 2
    assert run_of(p, 0.0)._kept.W.size == p.d
    # so many are near to moving that all are as good
    assert run_of(problem(share=3000), 0.8)._kept.W.size == p.d


def test_a_column_outside_that_may_move_ends_a_gram_matrix():
    p = problem(share=3)
    run = run_of(p, 1.0)
    kept = run._kept
    assert run._serves(kept)
    kept = dataclasses.replace(kept, W=kept.W[run.w[kept.W] == 0])  # without the support ...
    run.now(w=np.zeros_like(run.w))
    run.arrive(run.predict())  # ... at a point where that violates
    assert not run._serves(kept)


def test_the_squared_loss_has_one_matrix_of_all_columns():
    p = problem(share=3)
    run = run_of(ERM(p.samples.stored, p.y, "squared", "l1", 0.1), 1.0)
    assert run._kept.W.size == p.d


def test_where_most_columns_move_the_one_matrix_has_all():
    """In float32 too: the squared loss needs no other one then."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((700, 5)) @ rng.standard_normal((5, 140))
    X += 0.5 * rng.standard_normal((700, 140))
    y = X @ rng.standard_normal(140) + rng.standard_normal(700)
    p = ERM(X, y, "squared", "l1", 1e-3 * np.abs(X.T @ y).max() / 700)
    sizes = []

    class Run(AllColumnsRun):
        def narrow_gram(self, W):
            sizes.append((W.size, self.moving().size))
            return super().narrow_gram(W)

    run = Run(p, Start(), Target(1e-6), SetTuning(), np.random.default_rng(0))
    run.advance(Budget(1000))
    (taken, moving), *more = sizes
    assert 0.8 * 140 < moving < taken == 140
    assert not more
    assert run.relative <= 1e-6


@pytest.mark.parametrize(("part", "least", "most"), [(0.0, 4, 20), (SetTuning.kept[1], 1, 3)])
def test_a_gram_matrix_is_kept_while_it_serves(part, least, most):
    """At a large alpha curvatures hardly change: few matrices do, if each is kept."""
    p = problem(share=3)
    tuning = dataclasses.replace(without_sweeps(0.0), kept=(part, part), least_rows=10**9)
    made = []

    class Run(AllColumnsRun):
        def _gram(self):
            made.append(1)
            return super()._gram()

    run = Run(p, Start(), Target(1e-9), tuning, np.random.default_rng(0))
    run.advance(Budget(1000))
    assert run.relative <= 1e-9
    assert least <= len(made) <= most
