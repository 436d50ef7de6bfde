"""Looks at sweeps of K outputs from the W that they keep, and the order of the data they read."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from outputs_problems import problem
from test_dual_k import rare, started, sweeps

from apcg import ERM, solve
from apcg._kernels.data import products_k
from apcg.certify.result import Solution
from apcg.data import compact
from apcg.methods.dual.sweeps_k import error_bound
from apcg.methods.dual.tuning import MANY
from apcg.methods.plan.plan import Auto


def exact(p, found):
    """P and D of a certificate, computed anew from its w and x."""
    return p.primal(found.w), p.dual(found.x)


@pytest.mark.parametrize("large", [0.0, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "crammer_singer", "logistic"])
def test_a_look_has_the_values_of_its_points(loss, weighted, large):
    """D by the identity of `LookK` is D(x), never above it by more than rounding."""
    p = rare(problem(loss, alpha=1e-3, weighted=weighted, layout="csr", n=150))
    run = started(p, large=large)
    for _ in range(4):
        sweeps(run, 1)
        found = run.sweeps.look().certificate()
        P, D = exact(p, found)
        assert found.primal == pytest.approx(P, rel=1e-13)
        assert found.dual == pytest.approx(D, abs=1e-13 * P)


def test_what_rounding_does_to_w_is_below_its_bound():
    for alpha in (1e-1, 1e-3, 1e-6):
        p = rare(problem("softmax", alpha=alpha, layout="csr", n=150))
        run = sweeps(started(p, ("momentum",)), 50)
        off = np.linalg.norm(run.sweeps.w - run.setup.rows(run.setup.x(run.sweeps.a)))
        bound = error_bound(run.setup, run.sweeps.steps, run.sweeps.first)
        assert 0 < off <= bound
        assert bound < 1e-6 * np.linalg.norm(run.sweeps.w)


def test_the_bound_is_charged():
    """With W off by a known amount, and that for its bound, D is not above the true one."""
    p = rare(problem("softmax", alpha=1e-3, layout="csr", n=150))
    run = sweeps(started(p), 2)
    look = run.sweeps.look()
    off = 1e-3 * np.random.default_rng(0).standard_normal(run.sweeps.w.shape)
    off[:, p.K :] = 0.0
    np.asarray(run.sweeps.state.W)[:] += off
    moved = type(look).at(run.setup, run.sweeps.a, run.sweeps.w, float(np.linalg.norm(off)))
    D = p.dual(moved.x)
    assert moved.dual <= D + 1e-13
    assert moved.dual == pytest.approx(D, abs=2 * moved.charge + 1e-13)
    assert moved.primal == pytest.approx(p.primal(moved.certificate().w), rel=1e-13)


def test_a_bound_that_is_not_rounding_takes_the_exact_certificate():
    p = rare(problem("softmax", alpha=1e-3, layout="csr", n=150))
    run = sweeps(started(p), 2)
    run.sweeps.steps = 10**12
    found = run.point()
    assert np.array_equal(found.w, run.setup.certificate(found.x, run.sweeps.b).w)
    assert found.dual == pytest.approx(p.dual(found.x), abs=1e-14)


@pytest.mark.parametrize("alone", [False, True])
def test_numbers_of_rare_features_are_last(alone, monkeypatch):
    """In each row, those of places from NEAR on; all numbers are there, and products are right."""
    monkeypatch.setattr(compact, "NEAR", 10)
    X = sp.random(200, 120, density=0.05, format="csr", random_state=0)
    arrays = (X.data, X.indices, X.indptr)
    made = compact.Compact.of(arrays, 120, alone=alone)
    data, places, indptr = made.shared
    for i in range(200):
        far = places[indptr[i] : indptr[i + 1]] >= 10
        assert np.all(np.diff(far.astype(int)) >= 0)
        assert far.sum() == made.far[i]
    assert 0 < made.far.sum() < data.size
    back = sp.csr_matrix((data, made.order[places], indptr), shape=X.shape)
    back = back + sp.csr_matrix(made.own, shape=X.shape)
    assert (back != X).nnz == 0
    x = np.random.default_rng(0).standard_normal((200, 4))
    rows, z = np.zeros((made.order.size, 4)), np.empty((200, 4))
    products_k.adjoint(*made.shared, x, rows, made.far)
    assert np.allclose(made.expand(rows, x), X.T @ x, atol=1e-13)
    W = X.T @ x
    products_k.times(*made.shared, np.ascontiguousarray(W[made.order]), z, made.far)
    assert np.allclose(z + (sp.csr_matrix(made.own, shape=X.shape) @ W), X @ W, atol=1e-12)


def test_where_far_begins_does_not_change_an_answer(monkeypatch):
    p = rare(problem("softmax", alpha=1e-3, layout="csr", n=150))
    tuned = Auto((), outputs=replace(MANY, large=0.0))

    def answer(near) -> Solution:
        monkeypatch.setattr(compact, "NEAR", near)
        q = ERM(p.samples.stored, p.y, "multinomial", "l2", p.alpha)
        return solve(q, tuned, tol=1e-10, random_state=0)

    first, second = answer(5), answer(10**6)
    assert first.converged
    assert np.allclose(first.w, second.w, atol=1e-5 * np.abs(first.w).max())
