"""The lean dual sweeps: the step against SDCA and APCG, shrinking, momentum, certified answers."""

import dataclasses
import time

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, data, feasible, problem

from apcg import ERM, certificate, losses, solve
from apcg._kernels import lean as kernel
from apcg.methods.apcg import APCG
from apcg.methods.base import Budget, Target
from apcg.methods.lean import Lean, PlainSweeps
from apcg.methods.lean_momentum import Momentum
from apcg.methods.lean_setup import PARTS, Setup, Tuning
from apcg.methods.sdca import SDCA
from apcg.points import Certificate, Start
from apcg.sequences import Sequence

#: Logistic steps to the last digit, as the slower kernels take them.
EXACT = Tuning(series=1e-5, enough=1e-7, easy=0.0)
MOMENTUM_AT_ONCE = Tuning(patience=0.0, earliest=1)


def certify(p, point):
    """What the loop makes of a point."""
    if p.intercept:
        v = p.combine(point.x) if point.v is None else point.v
        w = p.g.conjugate_gradient(v)
        c = certificate.with_intercept(p, w, point.x, point.b, best=True)
    else:
        c = certificate.of_dual(p, point.x, point.v)
    return Certificate(c.w, c.x, c.intercept, c.z, c.primal, c.dual, exact=point.v is None)


def start(p, tol=1e-9, *, without=(), tuning=None, seed=0, **at):
    method = Lean(without, tuning or Tuning())
    return method.start(p, Start(**at), Target(tol), np.random.default_rng(seed))


def drive(p, run, max_passes=20_000, passes=0):
    """The loop: advance, certify, tell. Gives the certificate that ended it, and the passes."""
    while True:
        passes += run.advance(Budget(100)).passes
        found = certify(p, run.point())
        if found.relative <= run.target.tol:
            found = found if found.exact else certify(p, run.point().bare())
            if found.relative <= run.target.tol:
                return found, passes
        assert passes <= max_passes, f"not solved in {passes} passes: {found.relative:.1e}"
        run.seen(found)


def tolerance(p):
    return 1e-9 if p.loss.gamma > 0 else 1e-6


def as_layout(X, layout):
    if layout == "dense":
        return X.toarray()
    if layout == "dense32":
        return X.toarray().astype(np.float32)
    X = X.astype(np.float32 if layout == "csr32" else np.float64)
    if layout == "csr_long":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


# ---- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "csr32", "csr_long", "dense", "dense32"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_certified_answers_agree_with_auto(loss, weighted, intercept, layout):
    X, y = data(loss, n=60, seed=4)
    weights = None
    if weighted:
        weights = np.random.default_rng(5).uniform(0.2, 3, y.size)
        weights[::9] = 0.0
    rest = {"alpha": 1e-2, "sample_weight": weights, "intercept": intercept}
    p = ERM(as_layout(X, layout), y, LOSSES[loss], **rest)
    tol = tolerance(p)
    found, _ = drive(p, start(p, tol))
    assert found.dual <= found.primal + 1e-12
    expected = solve(p, tol=tol, max_epochs=100_000, random_state=0)
    assert found.primal - expected.dual <= 2 * tol * found.primal
    assert expected.primal - found.dual <= 2 * tol * found.primal
    assert np.all(found.x[::9] == 0) or not weighted


@pytest.mark.parametrize("without", [(), *((part,) for part in PARTS), PARTS])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "epsilon_insensitive"])
def test_without_each_idea_it_converges(loss, without):
    alpha = 3e-2 if loss == "epsilon_insensitive" else 3e-3  # plain sweeps are slow on it
    p = problem(loss, alpha=alpha, n=120, d=60, seed=1)
    run = start(p, 1e-5, without=without)
    drive(p, run)
    assert ("momentum" not in without) or isinstance(run.sweeps, PlainSweeps)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_momentum_from_the_first_sweeps_on(loss, intercept):
    p = problem(loss, alpha=1e-3, n=100, d=30, seed=2, intercept=intercept)
    run = start(p, tolerance(p), tuning=MOMENTUM_AT_ONCE)
    drive(p, run)
    assert isinstance(run.sweeps, Momentum)


def test_momentum_takes_fewer_passes_where_the_problem_is_hard():
    p = problem("squared_hinge", alpha=1e-5, n=300, d=200, density=0.1, seed=0)
    plain = start(p, 1e-6, without=("momentum",))
    joined = start(p, 1e-6)
    slow, fast = drive(p, plain)[1], drive(p, joined)[1]
    assert isinstance(joined.sweeps, Momentum)
    assert fast < 0.5 * slow


def test_momentum_is_not_entered_where_few_sweeps_are_left():
    p = problem("squared_hinge", alpha=1.0, n=300, d=20, seed=0)
    run = start(p, 1e-6)
    assert drive(p, run)[1] < 20
    assert isinstance(run.sweeps, PlainSweeps)


@pytest.mark.parametrize("tuning", [Tuning(), MOMENTUM_AT_ONCE])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_same_seed_gives_the_same_bits(loss, tuning):
    p = problem(loss, alpha=1e-3, n=200, d=50, seed=6, intercept=True)
    runs = [start(p, 0.0, tuning=tuning, seed=s) for s in (3, 3, 4)]
    for run in runs:
        for _ in range(4):
            run.advance(Budget(3))
    first, second, other = (run.point() for run in runs)
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.v, second.v)
    assert first.b == second.b
    assert not np.array_equal(first.x, other.x)


# ---- the step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_plain_sweep_is_sdca(loss, weighted, sparse):
    p = problem(loss, alpha=1e-2, weighted=weighted, sparse=sparse, seed=7)
    x0 = 0.5 * feasible(p, np.random.default_rng(1))
    setup = Setup(p, EXACT)
    sweeps, tally = PlainSweeps(setup, ("blocks",), Start(x=x0)), kernel.Tally()
    slow = SDCA(p.form, x0)
    rng = np.random.default_rng(2)
    for _ in range(4):
        keep, blocks = sweeps.schedule(setup.all, rng)
        order = keep[blocks[0]]
        assert np.array_equal(np.sort(order), np.arange(p.n))
        sweeps.call(keep, tally, blocks)
        slow.epoch(order)
        np.testing.assert_allclose(setup.x(sweeps.a), slow.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sweeps.w, p.combine(slow.x), atol=1e-9)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_accelerated_sweep_is_apcg(loss, weighted, sparse):
    p = problem(loss, alpha=1e-2, weighted=weighted, sparse=sparse, seed=8)
    x0 = 0.5 * feasible(p, np.random.default_rng(1))
    setup, mu = Setup(p, EXACT), max(0.03, p.mu)
    plain = PlainSweeps(setup, (), Start(x=x0))
    sweeps = Momentum(setup, ("blocks", "visits", "settling"), plain.state, mu)
    slow, tally = APCG(p.form, x0, Sequence(p.n, mu, mu)), kernel.Tally()
    rng = np.random.default_rng(2)
    for _ in range(5):
        keep, blocks = sweeps.schedule(setup.all, rng)
        sweeps.call(keep, tally, blocks)
        slow.epoch(keep[blocks[0]])
        np.testing.assert_allclose(setup.x(sweeps._x), slow.x, rtol=0, atol=1e-10)
        if sweeps.state.s < 0.3:
            sweeps._fold()  # the same iterate, written anew
    assert not np.allclose(setup.x(sweeps._x), x0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_is_the_gap_where_nothing_moves(loss):
    """With infinite L the rows stay where they are, and est is the sum of their parts."""
    p = problem(loss, alpha=1e-2, weighted=True, intercept=True, seed=9)
    near = solve(p, tol=1e-3, random_state=0)
    for x, exact in ((0.5 * feasible(p, np.random.default_rng(3)), False), (near.x, True)):
        setup = Setup(p, Tuning())
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
        plain = PlainSweeps(setup, (), Start(x=x, b=0.3))
        a, w = setup.inside(x / p.weights), plain.w.copy()
        m = p.loss.argument(p.predictions(w) + 0.3, p.y)
        parts = p.loss.value(m) + p.loss.arrays.conjugate(a) + m * a
        expected = float(np.sum(p.weights * parts))
        for sweeps in (plain, Momentum(setup, (), plain.state, 0.1)):
            tally = kernel.Tally()
            sweeps.call(*_swapped(sweeps.schedule(setup.all, np.random.default_rng(0)), tally))
            # logistic: a second order, good near the optimum
            rtol = (0.1 if exact else 0.5) if setup.logistic else 1e-9
            assert tally.est == pytest.approx(expected, rel=rtol, abs=1e-12)


def _swapped(scheduled, tally):
    keep, blocks = scheduled
    return keep, tally, blocks


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "logistic", "squared"])
def test_the_estimate_that_calls_for_a_look_is_near_the_gap(loss, momentum):
    p = problem(loss, alpha=1e-2, n=400, d=30, seed=10)
    without = ("shrinking",) if momentum else ("shrinking", "momentum")  # of all rows
    run = start(p, 1e-5, tuning=MOMENTUM_AT_ONCE, without=without)
    run.advance(Budget(10_000))
    assert isinstance(run.sweeps, Momentum if momentum else PlainSweeps)
    found = certify(p, run.point())
    assert 0.05 * run.estimates[-1] <= found.gap <= 3 * run.estimates[-1]
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
    setup = Setup(p, Tuning())
    plain = PlainSweeps(setup, (), Start())
    sweeps = Momentum(setup, (), plain.state, 0.1)
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
    assert sweeps._value() == pytest.approx(expected, rel=1e-13)
    sweeps._restart()
    assert np.array_equal(sweeps._x, a)
    np.testing.assert_allclose(sweeps.w, setup.w(a), rtol=0, atol=1e-14)


def test_a_row_outside_its_domain_does_not_rest_there():
    """At rest is exactly at a bound: outside, G points outward too, and the row would stay."""
    X = sp.csr_array(np.array([[1.0], [1.0], [-1.0]]))
    p = ERM(X, [1, 1, -1], "hinge", alpha=0.01)
    setup = Setup(p, Tuning())
    sweeps = Momentum(setup, (), PlainSweeps(setup, (), Start(x=np.ones(3))).state, 0.5)
    np.asarray(sweeps.state.uv)[0, 1] = -1e-3  # w is large: margins above 1, G outward at 0
    sweeps.refresh()
    keep, blocks = sweeps.schedule(np.array([0]), np.random.default_rng(0))
    for _ in range(50):
        sweeps.call(keep, kernel.Tally(), blocks)
    assert abs(sweeps._x[0]) < 2e-4


def test_an_exact_certificate_that_failed_computes_the_sums_anew():
    p = problem("squared_hinge", alpha=1e-3, n=100, d=40, seed=12)
    for without in ((), ("momentum",)):
        run = start(p, 1e-9, tuning=MOMENTUM_AT_ONCE, without=without)
        run.advance(Budget(4))
        if isinstance(run.sweeps, Momentum):
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
    assert certify(p, start(p, x=10 * near.x + 3).point()).finite  # clipped into the domain


def test_a_start_from_a_primal_point():
    p = problem("smoothed_hinge", alpha=1e-2, seed=14)
    near = solve(p, tol=1e-8, random_state=0)
    run = start(p, 1e-6, w=near.w)
    assert certify(p, run.point()).relative <= 1e-4


# ---- shrinking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "squared_hinge", "huber"])
def test_rows_at_their_bounds_are_dropped_and_no_others(loss):
    p = problem(loss, alpha=1e-3, n=300, d=10, seed=15)
    run = start(p, 1e-6)
    drive(p, run)
    low, high = p.loss.domain
    out = np.setdiff1d(np.arange(p.n), run.keep)
    assert out.size > 30
    x = run.point().x[out]
    assert np.all((x == low) | (x == high))
    all_kept = start(p, 1e-6, without=("shrinking",))
    drive(p, all_kept)
    assert all_kept.keep.size == p.n


def test_rows_held_at_zero_by_epsilon_are_dropped():
    p = ERM(*data("epsilon_insensitive", n=300, d=10), losses.EpsilonInsensitive(1.0), alpha=1e-2)
    run = start(p, 1e-5)
    drive(p, run)
    out = np.setdiff1d(np.arange(p.n), run.keep)
    assert np.count_nonzero(run.point().x[out] == 0) > 30


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("momentum", [False, True])
def test_rows_that_were_left_out_wrongly_come_back(loss, momentum):
    p = problem(loss, alpha=1e-2, n=200, d=20, seed=16)
    run = start(p, 1e-5, tuning=MOMENTUM_AT_ONCE if momentum else Tuning(patience=1e9))
    run.keep = run.keep[::4].copy()  # x = 0 in the others, where it does not rest
    drive(p, run)
    assert run.keep.size > 50 or run.setup.all.size == 200


def test_with_all_rows_dropped_it_goes_on():
    p = problem("hinge", alpha=1e-2, n=100, d=10, seed=17)
    run = start(p, 1e-5)
    run.keep = run.keep[:0].copy()
    drive(p, run)


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
    kernel.arrange(
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
    setup = Setup(p, Tuning())
    sweeps = Momentum(setup, (), PlainSweeps(setup, (), Start()).state, 0.1)
    uv = np.asarray(sweeps.state.uv)
    uv[:, 1] = 1e-3 / np.sqrt(setup.L)
    uv[7, 1], uv[9, 1] = 0.1 / np.sqrt(setup.L[7]), 7e-3 / np.sqrt(setup.L[9])
    moved = np.abs(uv[:, 1]) * np.sqrt(setup.L)
    ratio = moved / np.average(moved, weights=p.samples.lengths)
    exponents, counts = np.empty(50, np.intp), np.empty(5, np.intp)
    kernel.choose_visits(
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


# ---- budgets, needs, odd data -------------------------------------------------------------------


def test_passes_are_counted_by_what_was_stepped_on():
    p = problem("squared", alpha=1e-4, n=60, d=40, seed=20)
    run = start(p, 0.0, without=("momentum",))
    assert run.advance(Budget(7)).passes == 7
    assert len(run.estimates) == 7
    shrunk = start(problem("hinge", alpha=1e-3, n=400, d=10, seed=20), 0.0, without=("momentum",))
    passes = sum(shrunk.advance(Budget(5)).passes for _ in range(10))
    assert passes < 0.5 * len(shrunk.estimates)


def test_a_sweep_in_many_calls_is_the_same_sweep():
    p = problem("hinge", alpha=1e-3, n=300, d=30, seed=21)
    for tuning in (Tuning(), MOMENTUM_AT_ONCE):
        whole = start(p, 1e-7, tuning=tuning)
        cut = start(p, 1e-7, tuning=dataclasses.replace(tuning, call=500))
        for run in (whole, cut):
            run.advance(Budget(6))
        assert np.array_equal(whole.point().x, cut.point().x)


def test_a_deadline_ends_a_sweep_between_its_calls():
    p = problem("hinge", alpha=1e-3, n=300, d=30, seed=22)
    run = start(p, 1e-7, tuning=Tuning(call=500))
    work = run.advance(Budget(1000, deadline=time.perf_counter() - 1))
    assert work.passes == 0
    assert not run.estimates
    assert run.tally.count < run.setup.work
    drive(p, run)


def test_what_it_needs():
    needs = Lean().needs
    X, y = data("squared")
    for p, expected in (
        (ERM(X, y, "squared"), True),
        (ERM(X, y, "squared", "elasticnet"), False),
        (ERM(X, y, "squared", "l1"), False),
        (ERM(X, y, losses.StronglyConvex("huber", 10.0)), False),
        (ERM(X, y, "squared", positive=True), False),
    ):
        assert all(need.holds(p) for need in needs) is expected
        assert all(need.has(p) for need in needs)
    with pytest.raises(ValueError, match=r"without: got \['speed'\]"):
        Lean(without=("speed",))


@pytest.mark.parametrize("loss", LOSSES)
def test_empty_rows_and_columns(loss):
    X, y = data(loss, n=50, seed=23)
    X = X.toarray()
    X[3] = X[17] = 0.0
    X[:, 2] = 0.0
    for matrix in (sp.csr_array(X), X):
        p = ERM(matrix, y, LOSSES[loss], alpha=1e-2)
        drive(p, start(p, tolerance(p)))


def test_a_penalty_with_a_weight_of_its_own():
    from apcg.penalties import L2

    X, y = data("smoothed_hinge", seed=24)
    p = ERM(X, y, "smoothed_hinge", L2(3.0), alpha=1e-2)
    q = ERM(X, y, "smoothed_hinge", "l2", alpha=3e-2)
    found, same = (drive(e, start(e, 1e-10))[0] for e in (p, q))
    np.testing.assert_allclose(found.w, same.w, atol=1e-4)
    assert found.primal == pytest.approx(same.primal, rel=1e-9)
