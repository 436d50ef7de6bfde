"""Dual sweeps of one output: steps against SDCA and APCG, the estimate, the point, the visits."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from dual_runs import EXACT, MOMENTUM_AT_ONCE, certify, drive, start
from erm_problems import LOSSES, feasible, problem

from apcg import ERM, solve
from apcg._kernels.dual import one_output as kernel
from apcg._kernels.dual import one_output_momentum as accelerated
from apcg.certify.points import Start
from apcg.methods.base import Budget
from apcg.methods.dual.method import DualSweeps
from apcg.methods.dual.momentum import Momentum
from apcg.methods.dual.setup_one import SetupOne
from apcg.methods.dual.sweeps_one import MomentumOne, PlainOne
from apcg.methods.dual.tuning import ONE
from apcg.methods.paper.apcg import APCG
from apcg.methods.paper.sdca import SDCA
from apcg.sequences import Sequence


def with_momentum(plain, without, mu):
    sweeps = plain.accelerated(without)
    return sweeps, Momentum(sweeps, without, mu)


# ---- the step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_plain_sweep_is_sdca(loss, weighted, sparse):
    p = problem(loss, alpha=1e-2, weighted=weighted, sparse=sparse, seed=7)
    x0 = 0.5 * feasible(p, np.random.default_rng(1))
    setup = SetupOne(p, EXACT)
    sweeps = PlainOne(setup, ("blocks",), Start(x=x0))
    slow = SDCA(p.form, x0)
    rng = np.random.default_rng(2)
    for _ in range(4):
        keep, blocks = sweeps.schedule(setup.all, rng)
        order = keep[blocks[0]]
        assert np.array_equal(np.sort(order), np.arange(p.n))
        sweeps.call(keep, blocks)
        slow.epoch(order)
        np.testing.assert_allclose(setup.x(sweeps.a), slow.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sweeps.w, p.combine(slow.x), atol=1e-9)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_accelerated_sweep_is_apcg(loss, weighted, sparse):
    p = problem(loss, alpha=1e-2, weighted=weighted, sparse=sparse, seed=8)
    x0 = 0.5 * feasible(p, np.random.default_rng(1))
    setup, mu = SetupOne(p, EXACT), max(0.03, p.mu)
    plain = PlainOne(setup, ("blocks",), Start(x=x0))
    sweeps, pace = with_momentum(plain, ("visits", "settling"), mu)
    slow = APCG(p.form, x0, Sequence(p.n, mu, mu))
    rng = np.random.default_rng(2)
    for _ in range(5):
        keep, blocks = pace.schedule(setup.all, rng)
        sweeps.call(keep, blocks)
        slow.epoch(keep[blocks[0]])
        np.testing.assert_allclose(setup.x(sweeps._x), slow.x, rtol=0, atol=1e-10)
        sweeps.come_inside(0.3)  # the same iterate, written anew
    assert not np.allclose(setup.x(sweeps._x), x0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_is_the_gap_where_nothing_moves(loss):
    """With infinite L the rows stay where they are, and est is the sum of their parts."""
    p = problem(loss, alpha=1e-2, weighted=True, intercept=True, seed=9)
    near = solve(p, tol=1e-3, random_state=0)
    for x, exact in ((0.5 * feasible(p, np.random.default_rng(3)), False), (near.x, True)):
        setup = SetupOne(p, ONE)
        setup.rows = kernel.Rows(
            np.array((0.0, 0.0, 4.0, 0.0, 1.0) if setup.logistic else p.loss.theta),
            p.y,
            p.weights,
            np.full(p.n_samples, 1e30),
            p.d,
            logistic=setup.logistic,
            margin=p.loss.margin,
            scale=setup.scale,
        )
        plain = PlainOne(setup, (), Start(x=x, b=0.3))
        a, w = setup.inside(x / p.weights), plain.w.copy()
        m = p.loss.argument(p.predictions(w) + 0.3, p.y)
        parts = p.loss.value(m) + p.loss.arrays.conjugate(a) + m * a
        expected = float(np.sum(p.weights * parts))
        for sweeps, pace in ((plain, plain), with_momentum(plain, (), 0.1)):
            setup.tally.begin()
            sweeps.call(*pace.schedule(setup.all, np.random.default_rng(0)))
            # logistic: a second order, good near the optimum
            rtol = (0.1 if exact else 0.5) if setup.logistic else 1e-9
            assert sweeps.estimate() * p.n == pytest.approx(expected, rel=rtol, abs=1e-12)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "logistic", "squared"])
def test_the_estimate_that_calls_for_a_look_is_near_the_gap(loss, momentum):
    p = problem(loss, alpha=1e-2, n=400, d=30, seed=10)
    without = ("shrinking",) if momentum else ("shrinking", "momentum")  # of all rows
    run = start(p, 1e-5, tuning=MOMENTUM_AT_ONCE, without=without)
    run.advance(Budget(10_000))
    assert isinstance(run.sweeps, MomentumOne) == momentum
    found = certify(p, run.point())
    assert 0.05 * run.estimates.last <= found.gap <= 3 * run.estimates.last
    assert found.relative <= 1e-4


# ---- the point ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_x_is_in_its_domain_and_v_belongs_to_it(loss, weighted):
    p = problem(loss, alpha=1e-4, n=100, d=60, seed=11, weighted=weighted)
    run = start(p, 0.0, tuning=MOMENTUM_AT_ONCE)
    for _ in range(30):
        run.advance(Budget(1))
        point = run.point()
        assert np.isfinite(p.dual(point.x))
        v = p.combine(point.x)
        np.testing.assert_allclose(point.v, v, atol=1e-9 * np.abs(v).max())


def outside(p, by=1e-3):
    """A momentum state with x outside the domain in two rows, at v, without momentum."""
    setup = SetupOne(p, ONE)
    plain = PlainOne(setup, (), Start())
    sweeps = plain.accelerated(())
    uv = np.asarray(sweeps.state.uv)
    uv[3, 1], uv[5, 1] = -by, 1 + by
    sweeps.refresh()
    return setup, sweeps


def test_x_outside_its_domain_is_clipped_and_w_moves_with_it():
    p = problem("hinge", alpha=1e-2)
    setup, sweeps = outside(p)
    assert sweeps._x.min() < 0 < 1 < sweeps._x.max()
    a = sweeps.a
    assert (a.min(), a.max()) == (0.0, 1.0)
    np.testing.assert_allclose(sweeps.w, setup.w(a), rtol=0, atol=1e-14)
    expected = -p.dual_from(setup.x(a), p.combine(setup.x(a)))
    assert sweeps.value() == pytest.approx(expected, rel=1e-13)
    sweeps.restart()
    assert np.array_equal(sweeps._x, a)
    np.testing.assert_allclose(sweeps.w, setup.w(a), rtol=0, atol=1e-14)


def test_a_row_outside_its_domain_does_not_rest_there():
    """At rest is exactly at a bound: outside, G points outward too, and the row would stay."""
    X = sp.csr_array(np.array([[1.0], [1.0], [-1.0]]))
    p = ERM(X, [1, 1, -1], "hinge", alpha=0.01)
    setup = SetupOne(p, ONE)
    sweeps, pace = with_momentum(PlainOne(setup, (), Start(x=np.ones(3))), (), 0.5)
    np.asarray(sweeps.state.uv)[0, 1] = -1e-3  # w is large: margins above 1, G outward at 0
    sweeps.refresh()
    keep, blocks = pace.schedule(np.array([0]), np.random.default_rng(0))
    for _ in range(50):
        sweeps.call(keep, blocks)
    assert abs(sweeps._x[0]) < 2e-4


@pytest.mark.parametrize("without", [(), ("settling",)])
@pytest.mark.parametrize("margin_of_others", [0.0, 25.0])
def test_a_row_settles_only_if_the_dual_does_not_fall(margin_of_others, without):
    """Row 0: z goes to the bound 0, x = 0.005 is near. G = 1 would have it back, G = -24 not."""
    X = sp.csr_array(np.array([[10.0], [1.0], [-1.0]]))
    p = ERM(X, [1, 1, -1], "hinge", alpha=0.01)
    setup = SetupOne(p, ONE)
    sweeps, pace = with_momentum(PlainOne(setup, (), Start()), without, 0.5)
    pace.schedule(setup.all, np.random.default_rng(0))
    uv, alpha = np.asarray(sweeps.state.uv), sweeps.state.root / sweeps.state.N
    s = sweeps.state.s * (1 - alpha) / (1 + alpha)  # as the step has it
    uv[0] = 0.505 / s, -0.2475  # x = v + s u/2 = 0.005, z = v - s u/2 = -0.5
    pq = np.asarray(sweeps.state.pq)
    pq[:, 0], pq[:, 1] = 0.0, margin_of_others / 10  # the margin of row 0 is what it is to be
    one = np.array([1])
    sweeps.call(setup.all.copy(), (one - 1, one, one, one))
    settled = uv[0, 0] == 0.0 == uv[0, 1]
    assert settled == (margin_of_others > 0 and not without)


def test_an_exact_certificate_that_failed_computes_the_sums_anew():
    p = problem("squared_hinge", alpha=1e-3, n=100, d=40, seed=12)
    for without in ((), ("momentum",)):
        run = start(p, 1e-9, tuning=MOMENTUM_AT_ONCE, without=without)
        run.advance(Budget(4))
        if isinstance(run.sweeps, MomentumOne):
            np.asarray(run.sweeps.state.pq)[:] += 1e-3
        else:
            np.asarray(run.sweeps.state.w)[:] += 1e-3
        assert not np.allclose(run.point().v, p.combine(run.point().x), rtol=0, atol=1e-5)
        run.seen(certify(p, run.point()))
        assert not np.allclose(run.point().v, p.combine(run.point().x), rtol=0, atol=1e-5)
        run.seen(certify(p, run.point().bare()))
        np.testing.assert_allclose(run.point().v, p.combine(run.point().x), atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_is_where_it_begins(loss):
    p = problem(loss, alpha=1e-2, seed=13, weighted=True, intercept=True)
    near = solve(p, tol=1e-7, random_state=0, max_epochs=10_000)
    run = start(p, 1e-5, x=near.x, b=near.intercept)
    before = certify(p, run.point())
    assert before.relative <= (1e-5 if p.loss.gamma > 0 else 1e-3)
    assert drive(p, run)[1] <= 0.5 * drive(p, start(p, 1e-5))[1]
    if p.loss.rests and p.loss.domain[1] < np.inf:
        with pytest.raises(ValueError, match="x0 must be dual feasible"):
            start(p, x=10 * near.x + 3)


def test_a_start_from_a_primal_point():
    p = problem("smoothed_hinge", alpha=1e-2, seed=14)
    near = solve(p, tol=1e-12, random_state=0)
    run = start(p, 1e-6, w=near.w)
    assert certify(p, run.point()).relative <= 1e-4


# ---- visits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(10, 0, 3, 0, 1), (700, 300, 0, 0, 40), (1, 0, 0, 0, 0)])
def test_every_row_has_its_visits_spread_over_the_sweep(sizes):
    rng = np.random.default_rng(18)
    exponents = rng.permutation(np.repeat(np.arange(5), sizes))
    keep = np.sort(rng.choice(10_000, exponents.size, replace=False))
    lengths = np.array([7, 3, 2, 1, 1])
    blocks = -(-np.array(sizes) // lengths)
    total = int(blocks @ (1 << np.arange(5)))
    random = rng.integers(0, 1 << 32, size=total, dtype=np.uint32)
    listed, order = np.empty(keep.size, np.intp), np.empty(int(blocks.sum()), np.intp)
    begin, end, visits, last = np.empty((4, total), np.intp)
    accelerated.arrange(
        keep, exponents, np.array(sizes), lengths, random, listed, order, begin, end, visits, last
    )
    assert np.array_equal(np.sort(listed), keep)
    steps = np.concatenate([listed[b:e] for b, e in zip(begin, end, strict=True)])
    when = np.repeat(np.arange(total), end - begin)
    highest = 1 << int(np.flatnonzero(sizes)[-1])
    for row, e in zip(keep, exponents, strict=True):
        mine = when[steps == row]
        assert mine.size == 1 << e
        assert np.all(visits[mine] == 1 << e)
        assert np.array_equal(np.flatnonzero(last[mine]), [(1 << e) - 1])
        # one in each of the 2^e parts of the sweep, whose slots are about as long as each other
        if mine.size > 1:
            assert np.diff(mine).max() <= 2.5 * total / mine.size + highest


def test_rows_that_move_more_have_more_visits():
    p = problem("squared", alpha=1e-3, n=50, seed=19)
    setup = SetupOne(p, ONE)
    sweeps = PlainOne(setup, (), Start()).accelerated(())
    uv = np.asarray(sweeps.state.uv)
    uv[:, 1] = 1e-3 / np.sqrt(setup.L)
    uv[7, 1], uv[9, 1] = 0.1 / np.sqrt(setup.L[7]), 7e-3 / np.sqrt(setup.L[9])
    moved = np.abs(uv[:, 1]) * np.sqrt(setup.L)
    ratio = moved / np.average(moved, weights=p.samples.lengths)
    exponents, counts = np.empty(50, np.intp), np.empty(5, np.intp)
    accelerated.choose_visits(
        setup.rows,
        sweeps.state,
        setup.all,
        p.samples.lengths,
        np.zeros(50),
        np.empty(50),
        exponents,
        16.0,
        counts,
    )
    expected = np.floor(np.log2(np.clip(ratio, 1, 16))).astype(int)
    assert np.array_equal(exponents, expected)
    assert expected[7] > expected[9] > 0
    assert np.array_equal(counts, np.bincount(expected, minlength=5))


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_what_is_fetched_changes_no_bit(loss):
    """With so many features the entries of w of the next row are asked for in time."""
    rng = np.random.default_rng(0)
    X = sp.random(200, 300, 0.05, format="csr", random_state=0)
    p = ERM(X, np.sign(rng.standard_normal(200)), loss, alpha=1e-3)
    found = []
    for far in (1, 10**9):
        method = DualSweeps(tuning=replace(ONE, far=far))
        found.append(solve(p, method, tol=1e-6, random_state=0))
    assert np.array_equal(found[0].w, found[1].w)
