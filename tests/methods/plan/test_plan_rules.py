"""The rules of the plan, each by itself: what to begin with, and when to leave the dual."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, losses, solve
from apcg.certify.certificate import certify
from apcg.datasets import text_like
from apcg.methods.base import Budget, Start, Target
from apcg.methods.interior.interior import InteriorRun, InteriorTuning
from apcg.methods.newton import many_outputs as newton_k
from apcg.methods.plan.case import Case
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import BlockWatch, PlanTuning, Watch
from apcg.problems import costs

RNG = np.random.default_rng(0)


def problem(n=400, d=20, loss="logistic", penalty="l2", **options):
    X = RNG.standard_normal((n, d))
    y = X[:, 0] + RNG.standard_normal(n)
    p = ERM(X, y, "squared", alpha=1e-6) if loss == "squared" else None
    return p or ERM(X, np.sign(y), loss, penalty, 1e-6, **options)


class Ridge:
    strong_convexity = 1.0

    def value(self, w):
        return 0.5 * float(w @ w)

    def prox(self, v, step):
        return v / (1 + step)

    def conjugate(self, v):
        return 0.5 * float(v @ v)

    def conjugate_gradient(self, v):
        return v


def first(p, **start):
    return Auto().first(p, Start(**start))[0].name


def test_what_to_begin_with():
    assert first(problem(penalty=Ridge())) == "afg"
    assert first(problem(d=150)) == "dual"
    assert first(problem(d=150), side="primal") == "newton"
    assert first(problem(penalty="l1")) == "working_set"
    assert first(problem(loss="hinge", penalty="elasticnet")) == "interior_l1"
    assert first(problem(n=20, d=200)) == "span"
    assert first(problem(n=20, d=30)) == "dual"  # few samples, but not for so few features


def test_a_wide_problem_is_never_tall():
    wide = Auto().tuning.widest + 1
    p = problem(20, 5)
    assert not Case(p.altered(d=wide, n=10**9), Start()).tall
    assert Case(p.altered(d=5, n=10**9), Start()).tall
    squared = problem(20, 5, "squared")
    assert Case(squared, Start()).one_factor
    assert not Case(squared.altered(d=wide), Start()).one_factor


def easy(alpha, loss="logistic", n=3000, d=150, density=0.5, **options):
    """Rows of unit norm: |a_i|^2/(lambda n) is 1/(alpha n)."""
    rng = np.random.default_rng(1)
    X = sp.random_array((n, d), density=density, rng=rng).tocsr()
    X = sp.csr_array(X.multiply(1 / np.sqrt((X * X).sum(axis=1) + 1e-300)[:, None]))
    return ERM(X, np.sign(rng.standard_normal(n)), loss, "l2", alpha, **options)


def test_few_sweeps_where_lambda_is_large():
    """Many samples for each feature, but a factor costs more than the few sweeps that it takes."""
    assert first(easy(1e-2)) == first(easy(1e-2, "squared_hinge")) == "dual"
    assert first(easy(1e-6)) == first(easy(1e-6, "squared_hinge")) == "newton"
    assert first(easy(1e-2, density=0.03)) == "newton"  # a Gram matrix of short rows is cheap
    assert first(easy(1e-2), w=np.zeros(150)) == "newton"  # it begins near the end
    assert Auto(without=("dual",)).first(easy(1e-2), Start())[0].name == "newton"
    names = [Auto().first(easy(3e-4), Start(), tol)[0].name for tol in (1e-1, 1e-9)]
    assert names == ["dual", "newton"]  # each digit takes a sweep more
    resting = easy(7e-4, "squared_hinge")  # a sweep steps on part of the samples
    assert Auto().first(resting, Start(), 1e-9)[0].name == "dual"
    assert solve(easy(3e-4), tol=1e-9, random_state=0).trace.notes[0].startswith("newton")
    free = easy(1e-2, intercept=True)
    assert [Auto().first(free, Start(), tol)[0].name for tol in (1e-3, 1e-6)] == ["dual", "newton"]
    rows = easy(1e-2)
    squared = ERM(rows.samples.stored, rows.y, "squared", alpha=1e-2)
    assert first(squared) == "newton"  # one factor


def test_dense_rows_have_their_own_prices():
    sparse = easy(1e-2, density=1.0)
    dense = ERM(sparse.samples.stored.toarray(), sparse.y, "logistic", alpha=1e-2)
    assert costs.easy_sweeps(dense, 1e-3) < costs.easy_sweeps(sparse, 1e-3)
    assert costs.newton(dense, 1e-3) < costs.newton(sparse, 1e-3)
    assert costs.gram_entries(dense) == costs.gram_entries(sparse)


def test_what_an_easy_problem_costs():
    p, tol = easy(1e-2), 1e-3
    assert costs.easy_sweeps(p, 1e-6) > costs.easy_sweeps(p, tol) < costs.newton(p, tol)
    assert costs.easy_sweeps(easy(1e-6), tol) == math.inf  # 1/(alpha n) is 300
    assert costs.easy_sweeps(easy(1 / 11_000), tol) < math.inf  # r = 1/(4 alpha n) < 1
    assert costs.easy_sweeps(easy(1 / 13_000), tol) == math.inf
    assert costs.easy_sweeps(p, tol) < costs.easy_sweeps(easy(1e-3), tol)
    resting = costs.easy_sweeps(easy(1e-2, losses.SmoothedHinge(4.0)), tol)
    assert resting == pytest.approx(costs.RESTING * costs.easy_sweeps(p, tol))
    heavy = easy(1e-2, sample_weight=np.where(np.arange(3000) < 1500, 1.0, 3.0))
    assert costs.easy_sweeps(heavy, tol) == pytest.approx(costs.easy_sweeps(p, tol))


def test_digits():
    assert costs.digits(1e-3) == pytest.approx(3)
    assert costs.digits(10.0) == 0
    assert costs.digits(0.0) == costs.digits(1e-300) == pytest.approx(12)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_easy_problems_are_solved(loss):
    found = solve(easy(1e-2, loss), tol=1e-8, random_state=0)
    assert found.converged
    assert found.trace.notes[0].startswith("dual")
    other = solve(easy(1e-2, loss), "newton", tol=1e-8, random_state=0)
    assert found.primal == pytest.approx(other.primal, rel=1e-7)


def watch(tol=1e-6, most=10**6):
    """A problem on which a step of Newton's method costs 10 passes, of one unit each."""
    made = Watch(problem(), Target(tol, most))
    made._pass, made._step, made._step_passes, made.interior = 1.0, 10.0, 10.0, False
    return made


def gaps(made, rate, passes, first=0.1):
    """The answers of `leave` at gaps that fall by the factor exp(-rate) a pass."""
    return [made.leave(k, first * math.exp(-rate * k)) for k in passes]


def test_a_slow_dual_is_left_and_a_fast_one_is_not():
    slow, fast = gaps(watch(), 1e-4, range(1, 200)), gaps(watch(), 0.5, range(1, 20))
    assert any(slow)
    assert not any(fast)


def test_it_is_not_left_before_the_rate_is_known():
    """Half of Newton's cost is spent first: 5 of 10 times the steps it takes."""
    answers = gaps(watch(), 1e-4, range(1, 200))
    spent = answers.index(True) + 1
    steps = watch()._steps(0.1)
    assert spent == pytest.approx(0.5 * 10 * steps, abs=1)


def test_it_is_not_left_for_a_method_that_takes_as_long():
    """Just below twice the cost the dual is kept, just above it is left."""
    made = watch()
    cost = 10 * made._steps(1e-3)
    passes = 1000
    for share, expected in ((0.9, False), (1.1, True)):
        made = watch()
        # so many passes are left at the rate seen
        rate = (math.log(1e-3) - math.log(1e-6)) / (share * 2 * cost)
        made.leave(1, 1.0)
        made.leave(passes // 2 - 100, 1e-3 * math.exp(rate * (passes // 2 + 100)))
        assert made.leave(passes, 1e-3) is expected


def test_what_has_reached_the_tolerance_is_not_left():
    assert not any(gaps(watch(tol=0.5), 1e-4, range(1, 200)))
    made = watch()
    assert not any(made.leave(k, 1e-8) for k in range(1, 200))  # though it no longer falls


def test_too_few_passes_left_for_newton():
    assert not any(gaps(watch(most=15), 1e-4, range(1, 15)))


def test_a_gap_that_rises_tells_no_rate():
    made = watch()
    for k in range(1, 40):
        made.leave(k, 0.1)
    assert made.leave(80, 0.2)
    assert made._time_left() == math.inf


def counts(intercept=True, positives=0.04, n=2000, d=40, **options):
    """Raw counts, and one class that is rare."""
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(1, 2, d), (n, d)).astype(float)
    z = (X - X.mean(axis=0)) @ rng.standard_normal(d) / d + rng.standard_normal(n)
    y = np.where(z > np.quantile(z, 1 - positives), 1.0, -1.0)
    return ERM(X, y, "hinge", alpha=1 / n, intercept=intercept, **options)


def test_a_rare_class_with_an_intercept_is_not_for_smoothing():
    """Next to all samples of the other class are at the kink: interior points on all of them."""
    assert costs.smoothing(counts()) > 5 * costs.smoothing(counts(intercept=False))
    assert costs.smoothing(counts(positives=0.3)) == costs.smoothing(counts(False))
    r = solve(counts(), tol=1e-6, max_epochs=1000, random_state=0)
    assert r.converged
    assert not any("smoothing" in note for note in r.trace.notes)
    assert Watch(counts(), Target(1e-6)).whole
    assert not Watch(counts(positives=0.3), Target(1e-6)).whole


def test_interior_points_on_some_rows_give_up_after_many_steps():
    p = counts()
    free = np.arange(0, 2000, 2)
    few = InteriorTuning(most_steps=3)
    x = np.where(p.y > 0, 0.02, 0.001)
    run = InteriorRun(p, Target(1e-12), few, free=free, x=x)
    run.advance(Budget(10_000))
    assert run.report.stuck
    run = InteriorRun(p, Target(1e-6), few)  # on all rows it goes on
    run.advance(Budget(10_000))
    assert not run.report.stuck


def test_what_one_factor_gave_is_not_solved_for_again():
    p = problem(loss="squared")
    run = Auto().start(p, Start(), Target(1e-13), np.random.default_rng(0))
    run.advance(Budget(1))
    assert run.report.exact
    assert run.finish(certify(p, run.point()), converged=True) is None
    rough = ERM(*columns_alike(), "squared", alpha=1e-12)
    run = Auto().start(rough, Start(), Target(1e-13), np.random.default_rng(0))
    run.advance(Budget(1))
    assert not run.report.exact  # the factor has lost too many digits


def columns_alike(n=300):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((n, 1))
    return np.hstack([a, a + 1e-6 * rng.standard_normal((n, 1))]), rng.standard_normal(n)


def test_few_samples_a_feature_stay_in_the_dual():
    """Newton's method takes many steps there: without that in mind it takes over too early."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 200))
    y = np.sign(X @ rng.standard_normal(200) / 14 + 0.7 * rng.standard_normal(200))
    p = ERM(X, y, "squared_hinge", alpha=1e-5)
    left = [
        " ".join(solve(p, Auto(tuning=PlanTuning(more_steps=m)), random_state=0).trace.notes)
        for m in (1.0, 5.0)
    ]
    assert ["dual -> newton" in notes for notes in left] == [True, False]


def test_newtons_method_is_not_begun_where_its_steps_would_not_fit_either():
    """On few sparse numbers a factor is some 80 passes: a dozen of them end at max_epochs."""
    X, y = text_like(120, 30, 5)
    X = sp.csr_array((X.data, X.indices, X.indptr), shape=(120, 99))
    r = solve(ERM(X, y, "smoothed_hinge", alpha=1e-4, intercept=True), random_state=0)
    assert r.converged, r.status


def test_a_dual_that_would_not_arrive_is_left_where_newtons_steps_fit():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((421, 255)) * 10 ** rng.uniform(-1.5, 1.5, 255)
    z = X @ rng.standard_normal(255)
    y = np.where(z / z.std() + 5 * rng.standard_normal(421) > 0, 1.0, -1.0)
    r = solve(ERM(X, y, "logistic", alpha=3e-4), random_state=0)
    assert r.converged, r.status


def classes():
    """A softmax, and the cost of Newton's method on it, in passes."""
    rng = np.random.default_rng(0)
    p = ERM(rng.standard_normal((400, 60)), rng.integers(4, size=400), "multinomial", alpha=1e-6)
    return p, newton_k.cost(p) / newton_k.sweep_cost(p)


def left(rate, passes, most=10**6):
    """Whether sweeps of K outputs are left, at gaps that fall by the factor exp(-rate) a pass."""
    watch = BlockWatch(classes()[0], Target(1e-6, most))
    return [watch.leave(k, 0.1 * math.exp(-rate * k)) for k in passes]


def test_slow_sweeps_of_k_outputs_are_left_and_fast_ones_are_not():
    cost = classes()[1]
    answers = left(1e-4, range(1, int(cost) + 10))
    assert answers.index(True) + 1 == pytest.approx(cost, abs=2)  # two gaps are needed
    assert not any(left(0.5, range(1, int(cost) + 10)))


@pytest.mark.parametrize(("share", "expected"), [(0.9, False), (1.1, True)])
def test_sweeps_of_k_outputs_that_take_twice_as_long_are_left(share, expected):
    cost, passes = classes()[1], 1000
    rate = math.log(1e-3 / 1e-6) / (share * 2 * cost)
    watch = BlockWatch(classes()[0], Target(1e-6, 10**6))
    watch.leave(passes // 2, 1e-3 * math.exp(rate * passes / 2))
    assert watch.leave(passes, 1e-3) is expected


def test_sweeps_of_k_outputs_whose_gap_rises_are_left():
    cost = classes()[1]
    watch = BlockWatch(classes()[0], Target(1e-6, 10**6))
    assert not watch.leave(int(cost), 0.1)
    assert watch.leave(int(2 * cost), 0.2)


@pytest.mark.parametrize("seed", [2, 3])
def test_slow_sweeps_of_a_softmax_are_left_for_sets_where_no_factor_is_affordable(seed):
    """Interior points would take more than max_epochs; the sweeps, a million passes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 140)) * 10 ** rng.uniform(-1.5, 2.5, 140)
    y = (X @ rng.standard_normal((140, 10))).argmax(axis=1)
    y[:10] = np.arange(10)
    p = ERM(X, y, "multinomial", "elasticnet", 0.05, l1_ratio=0.99)
    r = solve(p, random_state=0)
    assert r.converged
    assert any("dual -> working_set" in note for note in r.trace.notes)
