"""Columns of any scale: an answer is never worse than w = 0, and says what rounding cost."""

import numpy as np
import pytest

from apcg import ERM, losses, solve
from apcg._base.budget import Work
from apcg.certify.points import Point

LOSSES = ["hinge", "squared_hinge", "smoothed_hinge", "logistic", "squared", "huber",
          "epsilon_insensitive", "multinomial", "multiclass_hinge"]  # fmt: skip


class Lost:
    """A method that goes far away."""

    name, needs, outputs = "lost", (), True

    def start(self, problem, at, target, rng):
        self.w = np.full((problem.d, problem.K)[: 1 + (problem.K > 1)], 1e9)
        self.w[0] *= -1
        return self

    def advance(self, budget):
        return Work(1)

    def point(self):
        return Point(w=self.w)

    def seen(self, certificate):
        pass


def at_zero(problem):
    """P(0) with the best b, by brute force for the multiclass hinge."""
    w, rows = np.zeros((problem.d, problem.K)), np.zeros((problem.n_samples, problem.K))
    if problem.K == 1:
        w, rows = w[:, 0], rows[:, 0]
    if not problem.intercept:
        return problem.primal(w)
    if problem.loss.gamma == 0 and problem.K > 1:
        steps = np.linspace(-2, 2, 9)
        grid = np.array(np.meshgrid(*[steps] * problem.K)).reshape(problem.K, -1).T
        return min(problem.primal(w, b) for b in grid)
    return problem.primal(w, problem.best_intercept(rows))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("largest", [0.4, 0.7])
def test_a_method_that_goes_astray_is_not_believed(loss, intercept, largest):
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((30, 4)), rng.standard_normal(30)
    y = z
    if loss in losses.names_of_classes():
        y = np.where(np.arange(30) < 30 * largest, 1, np.where(z > 0, 0, 2))
    elif losses.by_name(loss).margin:
        y = np.where(np.arange(30) < 30 * largest, 1.0, -1.0)
    p = ERM(X, y, loss, alpha=0.1, intercept=intercept)
    r = solve(p, Lost(), max_epochs=3)
    assert not r.w.any()
    assert r.primal <= at_zero(p) * (1 + 1e-12)
    assert 0 <= r.dual <= r.primal
    assert r.status.code == "max_epochs"
    assert f"at {r.gap / r.primal:.2e}" in r.status


def test_a_dual_point_is_not_worse_than_zero():
    """The better of two w may come with an x that says less than x = 0."""

    class Half(Lost):
        def start(self, problem, at, target, rng):
            self.w, self.x = np.full(problem.d, 0.1), np.full(problem.n_samples, 1e6)
            return self

        def point(self):
            return Point(w=self.w, x=self.x)

    X = np.random.default_rng(0).standard_normal((30, 4))
    p = ERM(X, X @ [0.2, 0.1, 0.1, 0.1], "squared", alpha=1e-3)
    r = solve(p, Half(), max_epochs=3)
    assert np.all(r.w == 0.1)
    assert r.dual == 0.0
