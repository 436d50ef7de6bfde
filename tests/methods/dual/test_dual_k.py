"""Dual sweeps of K outputs from inside, and problems of one output side by side."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from outputs_problems import LAYOUTS, problem, text

from apcg import ERM, solve
from apcg._kernels.data import products_k
from apcg.certify.certificate import certify
from apcg.certify.points import Point, Start
from apcg.data import views
from apcg.estimators import APCGClassifier
from apcg.methods.base import Budget, Target
from apcg.methods.dual.method import begin
from apcg.methods.dual.start_k import start
from apcg.methods.dual.tuning import MANY
from apcg.methods.plan.plan import Auto
from apcg.methods.reductions import together


def started(p, without=(), **changes):
    rng, tuning = np.random.default_rng(0), replace(MANY, **changes)
    return begin(p, Start(), Target(1e-9, 1000), rng, without, tuning)


def sweeps(run, count):
    for _ in range(count):
        run._sweep(Budget(1000, False, None))
    return run


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_sum_over_labels_is_the_product(layout):
    p = problem("softmax", layout=layout, weighted=True)
    share = np.random.default_rng(1).dirichlet(np.ones(8))
    out = np.zeros((p.d, 8))
    products_k.adjoint_labels(*p.samples.view(views.arrays), p.y, p.weights, share, out)
    x = p.weights[:, None] * (np.eye(8)[p.y] - share)
    assert np.allclose(out, p.samples.stored.T @ x, atol=1e-6 if layout == "float32" else 1e-13)


@pytest.mark.parametrize("large", [0.0, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "crammer_singer", "columns", "logistic"])
def test_sums_belong_to_the_blocks(loss, intercept, weighted, large):
    """W is A x after any sweep, plain or with momentum, and x is in its domain.

    With all features in their place and by frequency, those of one sample apart.
    """
    p = rare(problem(loss, alpha=1e-4, intercept=intercept, weighted=weighted, layout="csr", n=150))
    run = sweeps(started(p, large=large), 3)
    assert (run.setup.alone.size == p.n_samples) == (large == 0)
    for stage in range(2):
        setup, at = run.setup, run.sweeps
        x = setup.x(at.a)
        assert np.allclose(at.w, setup.rows(x), atol=1e-9 * np.abs(at.w).max())
        v = p.v_of(x)
        assert np.allclose(setup.expand(at.w, x), v, atol=1e-9 * np.abs(v).max())
        assert p.dual_from(x, v) > -np.inf
        square = at.state.pq if stage else at.state.W
        s = at.state.s if stage else 0.0
        assert setup.square(square, at.a, s) == pytest.approx(np.sum(v * v), rel=1e-9)
        same(setup.certificate(x, at.b), certify(p, Point(x=x, b=at.b)))
        if stage == 0:
            run._accelerate(at, 0.1)
            sweeps(run, 12)
    assert run.sweeps.state.s < 1


def rare(p):
    """The same problem with more features, of one sample each and of none."""
    X = sp.csr_array(p.samples.stored)
    n = X.shape[0]
    more = sp.random_array((n, 2), density=0.1, rng=np.random.default_rng(2), format="csr")
    own = sp.diags_array(np.linspace(0.5, 2.0, n)).tocsr()[:, : n // 2]
    none = sp.csr_array((n, 3))
    wide = sp.hstack([own, X, none, more], format="csr")
    weights = p.weights if p.weights.size > 1 else None
    return ERM(wide, p.y, p.loss, "l2", p.alpha, intercept=p.intercept, sample_weight=weights)


def same(found, exact):
    assert found.exact
    assert exact.exact
    assert found.primal == pytest.approx(exact.primal, rel=1e-12)
    assert found.dual == pytest.approx(exact.dual, rel=1e-11)
    assert np.allclose(found.w, exact.w, atol=1e-12 * np.abs(exact.w).max())
    z = exact.z - exact.b
    assert np.allclose(found.z - found.b, z, atol=1e-11 * np.abs(z).max())
    assert np.array_equal(found.x, exact.x)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "logistic"])
def test_the_order_of_features_makes_no_difference(loss, penalty):
    p = rare(problem(loss, layout="csr", n=150, alpha=3e-6))
    p = ERM(p.samples.stored, p.y, p.loss, penalty, p.alpha)
    without = ("newton", "one_by_one")
    answers = [
        solve(p, Auto(without, outputs=replace(MANY, large=large)), tol=1e-9, random_state=0)
        for large in (0.0, np.inf)
    ]
    assert all(r.converged and r.mu < 1 for r in answers)
    assert answers[0].primal == pytest.approx(answers[1].primal, rel=2e-9)
    assert np.allclose(answers[0].w, answers[1].w, atol=1e-3 * np.abs(answers[1].w).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_the_start_is_the_best_on_its_segment(loss, intercept):
    for alpha in (1e-4, 1e-2, 10.0):
        p = problem(loss, alpha=alpha, intercept=intercept, weighted=True, layout="csr")
        setup = started(p).setup
        x = setup.x(start(setup, Start())[0])
        D = p.dual_from(x, p.v_of(x))
        assert p.dual_from(0 * x, np.zeros((p.d, p.K))) < D
        for t in (0.97, 1.03):
            other = p.loss.clip(t * x, p.y, p.weights)
            if np.allclose(other, t * x):  # else it was at its end
                assert p.dual_from(other, p.v_of(other)) - 1e-5 * abs(D) <= D


def test_visits_are_even_at_first():
    p = problem("softmax", n=300, d=400, alpha=1e-5, layout="csr")
    run = started(p)
    highest = [max(sweeps(run, 1)._parts[1]) for _ in range(4)]
    assert highest[:2] == [1, 1]
    assert max(highest[2:]) > 1


def test_rows_at_a_vertex_are_dropped_and_come_back():
    p = problem("crammer_singer", n=400, alpha=0.1)
    run = sweeps(started(p), 12)
    assert run.rows.keep.size < 0.5 * p.n_samples
    whole = sweeps(started(p, ("shrinking",)), 12)
    assert whole.rows.keep.size == p.n_samples
    assert run.setup.tally.work < whole.setup.tally.work
    # at another W nothing of that holds: the rows that do not rest there are back
    before = run.rows.keep
    z = np.random.default_rng(0).standard_normal((p.n_samples, p.K))
    run.rows.bring_back(run.sweeps.a, z)
    back = np.setdiff1d(run.rows.keep, before)
    out = np.setdiff1d(np.arange(p.n_samples), run.rows.keep)
    top = run.sweeps.a[:, : p.K].argmax(axis=1)
    A = z + (np.arange(p.K) != p.y[:, None])
    rest = A.argmax(axis=1) == top
    assert back.size
    assert rest[out].all()
    assert run.setup.tally.high == np.inf


@pytest.mark.parametrize("loss", ["crammer_singer", "smoothed"])
def test_rows_dropped_too_soon_do_no_harm(loss):
    """With a threshold of zero every row at rest is dropped at once."""
    p = problem(loss, n=200, d=20, alpha=1e-3)
    hasty = Auto(("newton",), outputs=replace(MANY, drop=0.0, drop_from=np.inf))
    r = solve(p, hasty, tol=1e-7, random_state=0, max_epochs=20000)
    assert r.converged, r.status
    exact = solve(p, Auto(("shrinking", "newton")), tol=1e-7, random_state=0, max_epochs=20000)
    assert r.primal == pytest.approx(exact.primal, rel=2e-7)


def ovr(loss="smoothed_hinge", n=150, d=400, K=6, intercept=False, alpha=1e-3):
    X, y = text(n, d, K)
    codes = np.unique(y, return_inverse=True)[1]
    first = ERM(X, np.where(codes == 0, 1.0, -1.0), loss, "l2", alpha, intercept=intercept)
    return [first] + [first.with_labels(np.where(codes == k, 1.0, -1.0)) for k in range(1, K)]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic", "squared_hinge", "hinge"])
def test_each_problem_has_its_own_certificate(loss, intercept):
    problems = ovr(loss, intercept=intercept)
    found = together.sweep(problems, 1e-5, 1000, np.random.default_rng(0))
    done = 0
    for k, p in enumerate(problems):
        r = found.solution(k, 1e-5)
        if r is None:
            start = found.starts[k]
            r = solve(p, x0=start, tol=1e-5, random_state=0)
        else:
            done += 1
            again = certify(p, Point(r.w, r.x, r.intercept))
            assert again.primal == pytest.approx(r.primal, rel=1e-12)
            assert again.dual == pytest.approx(r.dual, rel=1e-11)
        alone = solve(p, tol=1e-6, random_state=0)
        assert r.converged
        assert alone.dual <= r.primal <= alone.primal * (1 + 1.1e-5)
    assert done == len(problems) or loss == "hinge"


def test_side_by_side_is_for_many_problems_that_are_not_tall():
    patience = together.patience
    assert patience(ovr()) > patience(ovr("hinge")) > 0
    assert patience(ovr()[:2]) == 0
    easy = ovr(n=400, d=30, alpha=1e-2)
    assert 0 < patience(easy) < patience(ovr())
    assert patience(ovr("hinge", n=2000, d=60, alpha=1.0)) == patience(easy)
    assert patience(ovr("hinge", n=2000, d=60, alpha=1e-6)) == 0
    assert patience(ovr(n=400, d=30, alpha=1e-4)) > 0
    assert patience(ovr(n=400, d=30, alpha=1e-6)) == 0


def test_slow_problems_go_their_own_ways(monkeypatch):
    problems = ovr(alpha=1e-6)
    monkeypatch.setattr(together, "PATIENCE", 0.0)
    found = together.sweep(problems, 1e-9, 1000, np.random.default_rng(0))
    assert not found.found
    assert found.passes < 20
    assert found.solution(0, 1e-9) is None
    r = solve(problems[0], x0=found.starts[0], tol=1e-9, random_state=0)
    assert r.converged


def test_the_classifier_shares_its_passes(monkeypatch):
    X, y = text(150, 400, 6)
    model = APCGClassifier("logistic", multi_class="ovr", alpha=1e-3, random_state=0).fit(X, y)
    assert all("side by side" in trace.notes[0] for trace in model.trace_)
    assert all(status.code == "converged" for status in model.status_)
    threads = APCGClassifier("logistic", multi_class="ovr", alpha=1e-3, random_state=0, n_jobs=2)
    assert np.array_equal(threads.fit(X, y).coef_, model.coef_)
    monkeypatch.setattr(together, "patience", lambda _: 0.0)
    alone = APCGClassifier("logistic", multi_class="ovr", alpha=1e-3, random_state=0).fit(X, y)
    assert not any("side by side" in " ".join(trace.notes) for trace in alone.trace_)
    assert np.abs(alone.coef_ - model.coef_).max() <= 1e-2 * np.abs(model.coef_).max()


def test_a_sum_of_logistic_losses_is_as_many_problems():
    problems = ovr("logistic", alpha=1e-4, intercept=True)
    joint = together.join(problems)
    r = solve(joint, tol=1e-9, random_state=0)
    alone = sum(solve(p, tol=1e-10, random_state=0).primal for p in problems)
    assert r.converged
    assert r.primal == pytest.approx(alone, rel=2e-9)
    assert sp.issparse(joint.samples.stored)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("loss", ["softmax", "crammer_singer"])
def test_memory_is_a_few_times_that_of_w_and_x(loss, momentum):
    """At most 10 (n + d) K numbers beside the data, as the docs say."""
    p = problem(loss, n=1500, d=200, K=20, alpha=1e-5, layout="csr")
    without = ("newton",) if momentum else ("newton", "momentum")
    tracemalloc.start()
    try:
        r = solve(p, Auto(without), tol=1e-9, max_epochs=25, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (r.mu < 1) == momentum
    assert peak / 8 <= 10 * (p.n_samples + p.d) * p.K


def test_newton_gets_on_where_its_matrix_is_nearly_singular():
    """Few samples are where phi is curved, and intercepts have no penalty."""
    X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1], [-1, -2], [2, 2], [-2, -2]])
    for seed in range(6):
        model = APCGClassifier(multi_class="crammer_singer", random_state=seed)
        model.fit(X, [1, 1, 1, 2, 2, 2, 3, 3, 3])
        assert model.status_.code == "converged"


@pytest.mark.parametrize("loss", ["softmax", "crammer_singer"])
def test_dual_is_a_name_for_k_outputs_too(loss):
    p = problem(loss, alpha=1e-2)
    r = solve(p, "dual", tol=1e-7, random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(solve(p, tol=1e-9, random_state=0).primal, rel=2e-7)
    with pytest.raises(ValueError, match=r"'dual' needs penalty"):
        solve(ERM(p.samples.stored, p.y, p.loss, "l1", p.alpha), "dual")
