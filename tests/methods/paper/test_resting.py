"""Resting leaves coordinates out of the passes, and never changes the answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, SMOOTH, problem, text_like
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, solve
from apcg.certify.certificate import certify
from apcg.certify.points import Point
from apcg.methods.paper.adaptive import AdaptiveRun, resting
from apcg.methods.paper.adaptive.iterate import Adaptive
from apcg.methods.paper.adaptive.resting import Resting


def run(p, **options):
    """Solve, with the number of coordinates that are sampled at each epoch."""
    sizes = []
    original = AdaptiveRun.sweep

    def sweep(self):
        found = original(self)
        sizes.append(np.unique(found.indices).size)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdaptiveRun, "sweep", sweep)
        return solve(p, "adaptive", random_state=0, **options), np.array(sizes)


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "logistic", "hinge"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-5])
def test_text(loss, alpha):
    X, y = text_like(n=800, d=1200, noise=0.1)
    p = ERM(X, y, loss, alpha=alpha)
    tol = 1e-4 if loss == "hinge" else 1e-8
    r, sizes = run(p, tol=tol, max_epochs=5000)
    other = solve(p, "apcg", tol=tol, max_epochs=20_000, random_state=1)
    assert r.converged
    assert r.dual <= other.primal
    assert other.dual <= r.primal
    assert r.primal == pytest.approx(other.primal, rel=2 * tol)
    if loss != "logistic":
        assert sizes.min() < 0.9 * p.n  # it does leave some out


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_loss_still_converges(loss, weighted):
    p = problem(loss, alpha=1e-3, weighted=weighted, n=150, d=200)
    tol = 1e-9 if LOSSES[loss].gamma > 0 else 1e-4
    r, _ = run(p, tol=tol, max_epochs=20_000)
    assert r.converged
    assert p.primal(r.w) - p.dual(r.x) <= tol * abs(r.primal) * (1 + 1e-9)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("loss", SMOOTH)
def test_lasso(loss):
    p = problem(loss, "l1", 0.05, n=100, d=300)
    r, sizes = run(p, tol=1e-8, max_epochs=5000)
    other = solve(p, "sdca", tol=1e-8, max_epochs=50_000, random_state=1)
    assert r.converged
    assert sizes.min() < 0.5 * p.d
    assert r.primal == pytest.approx(other.primal, rel=2e-8)


@examples(40)
@given(st.sampled_from(["smoothed_hinge", "squared_hinge", "huber", "hinge"]), st.integers(0, 999))
def test_near_the_optimum_only_those_that_rest_are_left_out(loss, seed):
    p = problem(loss, alpha=1e-2, n=60, d=80, seed=seed)
    tight = solve(p, "apcg" if loss != "hinge" else "sdca", tol=1e-10, max_epochs=50_000)
    method = Adaptive(p.form, tight.x.copy(), np.arange(p.n), p.mu)
    found = certify(p, Point(x=tight.x))
    kept = Resting(p, np.arange(p.n)).after_look(method, found, 1.0)
    left_out = np.setdiff1d(np.arange(p.n), kept)
    m = p.loss.argument(p.predictions(tight.w), p.y)
    resting = -p.weights * p.loss.arrays.derivative(m)
    # what is left out has the value that its margin wants
    np.testing.assert_allclose(method.x[left_out], resting[left_out], atol=1e-12)
    assert p.dual(method.x) >= tight.dual - 1e-6 * abs(tight.dual)


def test_putting_coordinates_to_rest_keeps_p_and_q():
    p = problem("smoothed_hinge", alpha=1e-4, n=60, d=30)
    method = Adaptive(p.form, np.zeros(p.n), np.arange(p.n), p.mu, first=1e-2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        method.epoch(rng.permutation(p.n))
    idle = rng.random(p.n) < 0.5
    method.place(idle, np.zeros(p.n))
    np.testing.assert_array_equal(method.x[idle], 0)
    np.testing.assert_allclose(method.rows(), p.form.f.rows(method.x), atol=1e-12)
    for _ in range(3):  # and they stay there while the others move
        method.epoch(rng.permutation(np.flatnonzero(~idle)))
    np.testing.assert_array_equal(method.x[idle], 0)


def test_an_epoch_has_as_many_nonzeros_as_the_data():
    """Passes are counted in nonzeros: leaving rows out makes more steps, not cheaper passes."""
    X, y = text_like(n=800, d=1200, noise=0.1)
    p = ERM(X, y, "squared_hinge", alpha=1e-4)
    lengths = np.diff(p.samples.stored.indptr)
    work = []
    original = Adaptive.epoch

    def epoch(self, order):
        work.append(lengths[order].sum())
        return original(self, order)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Adaptive, "epoch", epoch)
        r = solve(p, "adaptive", tol=1e-9, max_epochs=300, check_every=1, random_state=0)
    assert r.epochs == len(work)
    assert np.abs(np.array(work) / X.nnz - 1).max() < 0.1


def test_where_nothing_rests_nothing_is_left_out():
    assert not resting.applies(problem("squared"))
    p = problem("squared", alpha=1e-5, n=100, d=300)
    _, sizes = run(p, tol=1e-9)
    assert (sizes[sizes > 1] == p.n).all()


def test_rows_of_weight_zero_stay_out():
    X, y = text_like(n=300, d=400)
    weights = np.arange(300) % 3.0
    r = solve(ERM(X, y, "hinge", alpha=1e-3, sample_weight=weights), tol=1e-4, random_state=0)
    np.testing.assert_array_equal(r.x[weights == 0], 0)
    kept = weights > 0
    q = ERM(sp.csr_array(X)[kept], y[kept], "hinge", alpha=1e-3, sample_weight=weights[kept])
    assert q.primal(r.w) == pytest.approx(r.primal, rel=1e-10)


def test_samples_that_hold_little_of_the_gap_are_left_out_for_a_pass():
    X, y = text_like(n=800, d=1200, noise=0.1)
    p = ERM(X, y, "logistic", alpha=1e-5)
    r = solve(p, tol=1e-3, random_state=0)
    method = Adaptive(p.form, r.x.copy(), np.arange(p.n), p.mu, first=1e-2)
    rule = Resting(p, np.arange(p.n))
    found = certify(p, Point(x=r.x))
    kept = rule.after_look(method, found, passes=7)
    out = np.setdiff1d(np.arange(p.n), kept)
    parts = p.loss.gap_share(p.loss.argument(found.z, p.y), r.x, p.weights)
    assert 0 < out.size < p.n
    assert parts[out].sum() <= rule.tuning.share * parts.sum() * (1 + 1e-12)
    assert parts[out].max() <= parts[kept].min()
    assert not rule.expired(7)
    assert rule.expired(8)
    slow = Adaptive(p.form, r.x.copy(), np.arange(p.n), p.mu, first=1.0)
    assert rule.after_look(slow, found, 7).size == p.n  # no momentum, no need
    assert not rule.expired(10**6)
