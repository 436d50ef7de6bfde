"""Corners of ERM and solve that an adversary would try."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import data, problem

from apcg import ERM, solve, theory

METHODS = ("apcg", "sdca", "auto", "afg")


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("method", ["apcg", "sdca", "auto"])
def test_a_zero_row_of_weight_zero(loss, method):
    X, y = np.array([[0.0, 0], [1, 2], [3, -1]]), np.array([1.0, -1, 1])
    r = solve(ERM(X, y, loss, alpha=0.1, sample_weight=[0, 1, 1]), method, tol=1e-4)
    assert r.converged
    assert r.x[0] == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_dual_point_of_l1_is_feasible_as_it_stands(method):
    """A feature with a large offset: the sums of A x cancel, and rounding may exceed the bound."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.c_[rng.standard_normal((300, 3)), 2e3 + rng.standard_normal(300)]
        y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
        p = ERM(X, y, "logistic", "l1", 1e-3)
        r = solve(p, method, tol=1e-4, max_epochs=100, random_state=0)
        assert math.isfinite(p.dual(r.x))
        assert p.gap(r.x, r.w) == pytest.approx(r.gap, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("wrong", [3, -1, 900_000_000])
def test_indices_outside_the_matrix(wrong):
    indices = np.array([0, 1, 2, wrong], dtype=np.int32)
    X = sp.csr_matrix((np.ones(4), indices, np.array([0, 2, 4], dtype=np.int32)), shape=(2, 3))
    with pytest.raises(ValueError, match="broken sparse matrix"):
        ERM(X, [1.0, -1.0])


@pytest.mark.parametrize("size", [1e308, 1e-310, 1e-5])
def test_only_ratios_of_weights_matter(size):
    X, y = data("logistic")
    plain = ERM(X, y, "logistic", alpha=0.1)
    p = ERM(X, y, "logistic", alpha=0.1, sample_weight=np.full(40, size))
    w = np.ones(12)
    assert p.primal(w) == pytest.approx(plain.primal(w), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_no_data_to_speak_of(method):
    p = ERM(np.zeros((4, 3)), [1.0, -1, 1, -1], "squared", "l1", 0.1)
    r = solve(p, method, x0=np.full(3, 0.5))
    assert r.converged
    q = ERM(np.zeros((4, 3)), [1.0, -1, 1, -1], "smoothed_hinge", "l2", 0.1)
    assert q.spectral_norm == 0
    np.testing.assert_array_equal(q.refine(np.zeros(4)), np.ones(4))
    assert math.isfinite(theory.promised_passes(q, 1e-3, "apcg", "refined"))


def test_promised_passes_of_a_solved_problem():
    assert theory.promised_passes(ERM(np.eye(3), np.zeros(3), "squared"), 1e-3) == 0
    with pytest.raises(ValueError, match="epsilon must be in"):
        theory.promised_passes(ERM(np.eye(3), np.ones(3), "squared"), 0)


def test_pdgbound_outside_the_domain():
    assert problem("smoothed_hinge").pdgbound(np.full(40, -0.5)) == math.inf
    assert problem("logistic").pdgbound(np.full(40, 1 + 1e-9)) == math.inf


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
@pytest.mark.parametrize("method", METHODS)
def test_scales(scale, method):
    """Nothing divides by zero or runs for ever; what is claimed is true."""
    X, y = data("logistic", sparse=False)
    p = ERM(X * scale, y, "logistic", "l2", 1e-2)
    r = solve(p, method, max_epochs=20, random_state=0)
    assert math.isfinite(r.gap)
    assert p.gap(r.x, r.w) == pytest.approx(r.gap, rel=1e-6, abs=1e-12 * r.primal)


def test_constants_that_overflow():
    X, y = data("logistic", sparse=False)
    with pytest.raises(ValueError, match="squared norm overflows; scale its features"):
        ERM(X * 1e200, y)
    with pytest.raises(ValueError, match="the constants L_i overflow"):
        solve(ERM(X * 1e100, y, alpha=1e-200), "sdca")


@pytest.mark.parametrize("method", ["apcg", "sdca", "auto"])
@pytest.mark.parametrize("far", [1e6, 1e9, 1e12])
def test_drift_of_p_and_q_is_cured(method, far):
    """From a start so far off that p and q keep a large rounding error for good."""
    rng = np.random.default_rng(0)
    p = ERM(rng.standard_normal((50, 6)), rng.standard_normal(50), "squared", "l2", 0.1)
    r = solve(p, method, x0=np.full(50, far), tol=1e-11, max_epochs=3000, random_state=0)
    assert r.converged
    assert p.primal(r.w) - p.dual(r.x) <= 1e-11 * r.primal


def test_the_answer_is_certified_exactly_however_it_ended():
    rng = np.random.default_rng(0)
    p = ERM(rng.standard_normal((50, 6)), rng.standard_normal(50), "squared", "l2", 0.1)
    for method in ("apcg", "sdca", "auto"):
        r = solve(p, method, x0=np.full(50, 1e15), tol=0.0, max_epochs=30, random_state=0)
        assert (r.primal, r.dual) == (p.primal(r.w), p.dual(r.x))
        assert r.gap == pytest.approx(r.primal - r.dual, abs=1e-14)  # 0 if rounding is all
        assert r.gap >= 0


def test_labels_are_copied():
    X, y = data("squared")
    p = ERM(X, y, "squared")
    before = p.primal(np.ones(12))
    y[:] = 0
    assert p.primal(np.ones(12)) == before


@pytest.mark.parametrize("method", METHODS)
def test_a_start_outside_the_bounds(method):
    p = problem("logistic", "l1", positive=True)
    with pytest.raises(ValueError, match="within the bounds"):
        solve(p, method, x0=np.full(12, -1.0))


@pytest.mark.parametrize("check_every", [1, None])
@pytest.mark.parametrize("method", ["sdca", "apcg", "auto"])
def test_slow_is_not_taken_for_rounding(method, check_every):
    """A warm start with a small gap on an ill-conditioned problem: it goes down, if slowly."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 60)) * np.logspace(0, -2, 60)
    y = X @ rng.standard_normal(60) + rng.standard_normal(60)
    p = ERM(X, y, "squared", "l2", 1e-4)
    start = solve(p, "auto", tol=5e-10, max_epochs=50_000, random_state=0)
    assert start.converged
    r = solve(p, method, 1e-12, 1500, x0=start, random_state=1, check_every=check_every)
    assert r.status.code in ("converged", "max_epochs")


def test_l1_reaches_a_tight_gap():
    """The dual point is scaled down by a rounding, not by more."""
    X, y = data("squared")
    r = solve(ERM(X, y, "squared", "l1", 0.1), "sdca", tol=1e-13, max_epochs=5000, random_state=0)
    assert r.gap <= 1e-13 * r.primal


def test_auto_does_not_take_a_standstill_for_slowness():
    """Nothing moves any more: that is no reason to lower mu-hat."""
    p = ERM(np.array([[3.0, 1.0]]), np.array([2.0]), "squared", alpha=0.7)
    r = solve(p, "auto", tol=0.0, max_epochs=500, callback=lambda c: c.epoch > 400)
    assert r.mu == 1
