"""The plan: which method it takes, when it changes over, what it is worth."""

import numpy as np
import pytest
from erm_problems import one_hot, problem, text_like

from apcg import ERM, solve
from apcg.methods.base import Target
from apcg.methods.plan import Watch


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
def test_few_collinear_features_are_solved_in_the_primal(loss):
    """The dual is slow there whatever mu-hat is."""
    X, y = one_hot()
    p = ERM(X, y, loss, alpha=1e-8)
    auto = solve(p, "auto", tol=1e-6, max_epochs=1000, check_every=1, random_state=0)
    apcg = solve(p, "apcg", tol=1e-6, max_epochs=1000, check_every=1, random_state=0)
    assert auto.converged
    assert auto.side == "primal"
    assert auto.epochs < 0.5 * apcg.epochs


def test_many_features_and_easy_problems_stay_in_the_dual():
    X, y = text_like(n=600, d=900, noise=0.3)
    assert solve(ERM(X, y, "logistic", alpha=1e-6), random_state=0).side == "dual"
    X, y = one_hot()
    assert solve(ERM(X, y, "hinge", alpha=1e-2), tol=1e-3, random_state=0).side == "dual"


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("logistic", "l1"), ("huber", "elasticnet"), ("epsilon_insensitive", "elasticnet")],
)
def test_where_newton_does_not_apply_it_is_never_chosen(loss, penalty):
    p = problem(loss, penalty, 1e-5)
    choice = Watch(p, Target(1e-9, 10**9))
    assert not any(choice.leave(e, 1.0) for e in range(1000))


def test_the_choice_follows_the_rate():
    """A gap that falls by ten each pass is left alone; one that stands still is not."""
    X, y = one_hot()
    p = ERM(X, y, "logistic", alpha=1e-6)
    fast, slow, short = (Watch(p, Target(1e-6, n)) for n in (1000, 1000, 12))
    assert not any(fast.leave(e, 0.1**e) for e in range(60))
    assert any(slow.leave(e, 0.99**e) for e in range(60))
    assert not any(short.leave(e, 0.99**e) for e in range(12))  # no room for it


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 300)), int(rng.integers(5, 120))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.uniform(0.1, 1))
    X *= np.exp(rng.normal(0, rng.uniform(0, 1.5), d))
    z = X @ rng.standard_normal(d)
    y = np.where(z + rng.uniform(0, 2) * np.std(z) * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = -1, 1
    loss = ("smoothed_hinge", "logistic", "squared_hinge")[seed % 3]
    return ERM(X, y, loss, alpha=10 ** rng.uniform(-6, -1)), int(rng.choice([10, 25, 50, 100]))


def test_auto_against_sdca_and_apcg_on_random_problems():
    """To a certified 1e-6: wherever one of them arrives auto does, and seldom later."""
    ratios = []
    for seed in range(60):
        p, _ = random_problem(seed)
        auto, *others = (
            solve(p, m, max_epochs=3000, random_state=0) for m in ("auto", "sdca", "apcg")
        )
        arrived = [r.epochs for r in others if r.converged]
        assert auto.converged or not arrived
        if arrived:
            ratios.append(auto.epochs / min(arrived))
    assert len(ratios) > 40
    # a factor of Newton's method counts as many passes on such small dense problems
    assert np.mean(np.array(ratios) <= 1.25) >= 0.75
    assert np.exp(np.mean(np.log(ratios))) <= 0.6


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_the_interior_point_method_ends_what_sweeps_do_not(loss, intercept):
    """Noisy labels and a tiny lambda: 1,000 plain passes are not enough."""
    X, y = one_hot(400)
    p = ERM(X, y, loss, alpha=1e-6, intercept=intercept)
    r = solve(p, tol=1e-9, random_state=0)
    assert r.converged
    assert r.side == "primal"
    assert r.gap == pytest.approx(p.gap(r.x, r.w, r.intercept if intercept else None), abs=1e-15)
    plain = solve(p, "dual", tol=1e-9, random_state=0)
    assert not plain.converged or plain.epochs > 100
    assert r.primal <= plain.primal * (1 + 1e-9)
