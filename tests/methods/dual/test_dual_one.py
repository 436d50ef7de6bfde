"""Dual sweeps of one output: certified answers, shrinking, budgets, odd data."""

import dataclasses
import time

import numpy as np
import pytest
import scipy.sparse as sp
from dual_runs import MOMENTUM_AT_ONCE, drive, start, tolerance
from erm_problems import LOSSES, data, problem, text_like

from apcg import ERM, losses, solve
from apcg.certify.certificate import certify
from apcg.methods.base import Budget
from apcg.methods.dual.estimates import SURE, Estimates
from apcg.methods.dual.method import DualSweeps
from apcg.methods.dual.tuning import ONE, PARTS, TuningOne


def as_layout(X, layout):
    if layout == "dense":
        return X.toarray()
    if layout == "dense32":
        return X.toarray().astype(np.float32)
    X = X.astype(np.float32 if layout == "csr32" else np.float64)
    if layout == "csr_long":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def accelerated(run):
    return any(note.startswith("momentum") for note in run.report.notes)


# ---- answers ------------------------------------------------------------------------------------


@pytest.mark.slow(but=24)
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
    assert ("momentum" not in without) or not accelerated(run)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_momentum_from_the_first_sweeps_on(loss, intercept):
    p = problem(loss, alpha=1e-3, n=100, d=30, seed=2, intercept=intercept)
    run = start(p, tolerance(p), tuning=MOMENTUM_AT_ONCE)
    drive(p, run)
    assert accelerated(run)


def test_momentum_takes_fewer_passes_where_the_problem_is_hard():
    p = problem("squared_hinge", alpha=1e-5, n=300, d=200, density=0.1, seed=0)
    plain = start(p, 1e-6, without=("momentum",))
    joined = start(p, 1e-6)
    slow, fast = drive(p, plain)[1], drive(p, joined)[1]
    assert accelerated(joined)
    assert fast < 0.5 * slow


def test_momentum_is_not_entered_where_few_sweeps_are_left():
    p = problem("squared_hinge", alpha=1.0, n=300, d=20, seed=0)
    run = start(p, 1e-6)
    assert drive(p, run)[1] < 20
    assert not accelerated(run)


@pytest.mark.parametrize("tuning", [ONE, MOMENTUM_AT_ONCE])
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


# ---- shrinking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "squared_hinge", "huber"])
def test_rows_at_their_bounds_are_dropped_and_no_others(loss):
    p = problem(loss, alpha=1e-3, n=300, d=10, seed=15)
    run = start(p, 1e-6)
    drive(p, run)
    low, high = p.loss.domain
    out = np.setdiff1d(np.arange(p.n), run.rows.keep)
    assert out.size > 30
    x = run.point().x[out]
    assert np.all((x == low) | (x == high))
    all_kept = start(p, 1e-6, without=("shrinking",))
    drive(p, all_kept)
    assert all_kept.rows.keep.size == p.n


def test_rows_held_at_zero_by_epsilon_are_dropped():
    p = ERM(*data("epsilon_insensitive", n=300, d=10), losses.EpsilonInsensitive(1.0), alpha=1e-2)
    run = start(p, 1e-5)
    drive(p, run)
    out = np.setdiff1d(np.arange(p.n), run.rows.keep)
    assert np.count_nonzero(run.point().x[out] == 0) > 30


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("momentum", [False, True])
def test_rows_that_were_left_out_wrongly_come_back(loss, momentum):
    p = problem(loss, alpha=1e-2, n=200, d=20, seed=16)
    run = start(p, 1e-5, tuning=MOMENTUM_AT_ONCE if momentum else TuningOne(patience=1e9))
    run.rows.keep = run.rows.keep[::4].copy()  # x = 0 in the others, where it does not rest
    drive(p, run)
    assert run.rows.keep.size > 50 or run.setup.all.size == 200


def test_with_all_rows_dropped_it_goes_on():
    p = problem("hinge", alpha=1e-2, n=100, d=10, seed=17)
    run = start(p, 1e-5)
    run.rows.keep = run.rows.keep[:0].copy()
    drive(p, run)


# ---- budgets, needs, odd data -------------------------------------------------------------------


def test_passes_are_counted_by_what_was_stepped_on():
    p = problem("squared", alpha=1e-4, n=60, d=40, seed=20)
    run = start(p, 0.0, without=("momentum",))
    assert run.advance(Budget(7)).passes == 7
    assert run.swept == 7
    shrunk = start(problem("hinge", alpha=1e-3, n=400, d=10, seed=20), 0.0, without=("momentum",))
    passes = sum(shrunk.advance(Budget(5)).passes for _ in range(10))
    assert passes < 0.5 * shrunk.swept


def test_a_sweep_in_many_calls_is_the_same_sweep():
    p = problem("hinge", alpha=1e-3, n=300, d=30, seed=21)
    for tuning in (ONE, MOMENTUM_AT_ONCE):
        whole = start(p, 1e-7, tuning=tuning)
        cut = start(p, 1e-7, tuning=dataclasses.replace(tuning, call=500))
        for run in (whole, cut):
            run.advance(Budget(6))
        assert np.array_equal(whole.point().x, cut.point().x)


def test_a_deadline_ends_a_sweep_between_its_calls():
    p = problem("hinge", alpha=1e-3, n=300, d=30, seed=22)
    run = start(p, 1e-7, tuning=TuningOne(call=500))
    work = run.advance(Budget(1000, deadline=time.perf_counter() - 1))
    assert work.passes == 0
    assert run.swept == 0
    assert run.passes < 1
    drive(p, run)


def test_what_it_needs():
    needs = DualSweeps().needs
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
        DualSweeps(without=("speed",))


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


def test_many_rows_are_in_random_order():
    """Where n >> d neighbours in the data may be alike; pieces are for the clock alone."""
    X, y = data("hinge", n=3000, d=15, seed=26)
    run = start(ERM(X, y, "hinge", alpha=1e-3), 1e-7)
    first, (begin, end) = run.sweeps.schedule(run.rows.keep, np.random.default_rng(0))
    assert sorted(first) == list(range(3000))
    assert begin[0] == 0
    assert end[-1] == 3000
    np.testing.assert_array_equal(begin[1:], end[:-1])
    assert np.mean(np.abs(np.diff(first)) < 100) < 0.1  # neighbours are not neighbours


@pytest.mark.parametrize(
    ("loss", "rate", "mu"),
    [("squared_hinge", 0.01, 1 / 16), ("squared_hinge", 0.5, 0.25), ("logistic", 0.01, 1.0)],
)
def test_mu_of_the_first_sweep_with_momentum(loss, rate, mu):
    """Half the rate of the plain sweeps; logistic rows have none yet."""
    run = start(problem(loss), 1e-9)
    run.estimates.values = list(np.exp(-rate * np.arange(4.0)))
    assert not run._gives_up()
    assert accelerated(run)
    assert run.report.mu == pytest.approx(max(mu, run.setup.problem.mu))


def test_an_estimate_below_zero_is_rounding():
    run = start(problem("smoothed_hinge"), 1e-9)
    known = run.estimates
    known.add(1e-16, plain=True)
    known.add(-1e-15, plain=True)
    assert known.last == known.now == 0.0
    assert known.look_pays(run.sweeps, 0.7, 2)


def rows_in_common(common, n=2000, seed=27):
    """n rows of norm 1, one number each of their own, with inner products of about `common`."""
    rng = np.random.default_rng(seed)
    own = sp.csr_array((np.full(n, np.sqrt(1 - common)), rng.permutation(n), np.arange(n + 1)))
    X = sp.csr_array(sp.hstack([own, sp.csr_array(np.full((n, 1), np.sqrt(common)))]))
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("dense", [False, True])
def test_blocks_are_shorter_where_neighbours_are_alike(dense):
    """A block is as long as its rows are new to each other: 0.5 over their mean cosine."""
    for common, length in ((0.0, 64), (0.1, 5), (0.25, 2)):
        X, y = rows_in_common(common)
        X = 3 * (X.toarray() if dense else X)
        setup = start(ERM(X, y, "squared_hinge", alpha=1e-3), 1e-6).setup
        assert setup.block(64 * 64, True) == length
        assert setup.block(64 * 64, False) == 1
        assert setup.block(64, True) == 1  # too few for blocks
        assert setup.block(64 * 64, True, parts=2) == length // 2
    sign = np.where(np.random.default_rng(0).random(y.size) < 0.5, 1.0, -1.0)[:, None]
    setup = start(ERM(X * sign, y, "squared_hinge", alpha=1e-3), 1e-6).setup
    assert setup.block(64 * 64, True) == 2  # of either sign they are as much alike


def test_blocks_of_rows_whose_columns_are_out_of_order():
    X, y = rows_in_common(0.1)
    X.indices, X.data = X.indices[::-1].copy(), X.data[::-1].copy()  # X has two numbers a row
    assert np.all(X.indices[::2] > X.indices[1::2])
    setup = start(ERM(X, y, "squared_hinge", alpha=1e-3), 1e-6).setup
    assert setup.block(64 * 64, True) == 5


def test_a_few_rows_are_all_taken_in_random_order():
    """Many short samples, few of them left: one block, and all rows in it."""
    X, y = data("hinge", n=3000, d=15, seed=26)
    run = start(ERM(X, y, "hinge", alpha=1e-3), 1e-7)
    keep = np.arange(5, 905)
    listed, (begin, end) = run.sweeps.schedule(keep, np.random.default_rng(0))
    assert sorted(listed) == list(keep)
    assert list(listed) != list(keep)
    assert (list(begin), list(end)) == ([0], [900])


#: no sweeps in a row
SINGLE = TuningOne(short=1)


def test_p_is_not_guessed_after_every_short_sweep(monkeypatch):
    """Over few rows a sweep takes less time than a guess: half a pass is between two of them."""
    run = start(problem("hinge"), 1e-9, without=("momentum",), tuning=SINGLE)
    guesses, guess = [], Estimates.guess_primal

    def noted(self, sweeps, est, passes):
        guesses.append(passes)
        guess(self, sweeps, est, passes)

    monkeypatch.setattr(Estimates, "guess_primal", noted)
    run.advance(Budget(1, sweeps=1))
    run.rows.keep = run.rows.keep[: run.rows.keep.size // 10]
    for _ in range(8):
        run.advance(Budget(1, sweeps=1))
        assert run.report.estimate is None or run.report.estimate > 0
    assert len(guesses) >= 2
    assert np.all(np.diff(guesses) >= 0.4)
    guesses.clear()
    run.estimates.guessed, run.estimates.sure = 8.0, False
    for passes in (9, 10):  # and a quarter of all passes so far
        assert run.estimates.seen(run.sweeps, passes) > 0
        assert len(guesses) == (passes == 10)


def test_blocks_do_not_cost_sweeps():
    """What rows have in common is seen to by the first of a block: longer blocks take longer."""
    X, y = rows_in_common(0.1)
    p = ERM(X, y, "squared_hinge", alpha=1e-4)
    chosen, single = (
        solve(p, DualSweeps(("momentum", *more), SINGLE), tol=1e-8, random_state=0)
        for more in ((), ("blocks",))
    )
    assert chosen.epochs <= 2 * single.epochs
    long = start(p, 1e-8, without=("momentum",), tuning=SINGLE)
    long.setup.__dict__["_longest_block"] = 64
    found, passes = drive(p, long)
    assert found.relative <= 1e-8
    assert passes >= 1.5 * chosen.epochs


def test_start_without_intercept_of_one_weight():
    """All weight on one class: the best constant is infinite, and no intercept asks for it."""
    X = np.array([[1.0, 2.0], [0.5, -1.0], [0.3, 0.1]])
    p = ERM(X, [1, -1, -1], "logistic", alpha=0.1, sample_weight=[1.0, 0.0, 0.0])
    assert solve(p, "dual", random_state=0).converged
    p = ERM(X, [1, -1, -1], "logistic", alpha=0.1, sample_weight=[1.0, 1e-18, 0.0], intercept=True)
    assert np.isfinite(solve(p, "dual", max_epochs=50, random_state=0).gap)


def test_an_optimum_of_zero():
    """P = 0 at the optimum: no share of it can be waited for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 30))
    p = ERM(X, 1e-3 * X[:, 0], losses.EpsilonInsensitive(2.5), alpha=1e-3)
    for seed in range(5):
        x0 = np.random.default_rng(seed).uniform(-1, 1, 150)
        r = solve(p, "dual", x0=x0, tol=1e-7, max_epochs=400, random_state=0)
        assert r.converged
        assert r.primal == 0


def test_a_look_that_failed_says_when_the_next_one_pays():
    """The gap was four times the estimate, so the next look waits for a quarter of it, and less."""
    p = problem("squared_hinge", alpha=1e-1, n=200)
    run = start(p, 1e-3, without=("momentum", "shrinking"))
    run.advance(Budget(1000))
    known = run.estimates
    before, now = known.wanted(ONE.calm), known.now
    assert run.looks
    assert now <= before
    found = certify(p, run.point())
    run.seen(dataclasses.replace(found, dual=found.primal - 4 * now))
    assert known.wanted(ONE.calm) == pytest.approx(0.25 * SURE * 1e-3 * found.primal)
    run.seen(dataclasses.replace(found, dual=found.primal - 1e-9 * now))  # never more hopeful
    assert known.wanted(ONE.calm) <= ONE.calm * 1e-3 * found.primal * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_momentum_gets_on_with_an_intercept(seed):
    """Its centre moves at a pace of its own: a mu-hat that follows that one falls without end."""
    X, y = text_like(150, 400, 20, seed=seed, noise=1.0)
    r = solve(ERM(X, y, "hinge", alpha=1e-3, intercept=True), "dual", random_state=0)
    assert r.converged
    assert r.trace["mu"].min() >= ONE.least_mu
