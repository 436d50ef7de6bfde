"""`path`: the answers are those of cold solves, and cost less."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import data, problem, text_like

from apcg import ERM, path, solve
from apcg.certify.points import Start
from apcg.methods.base import Target
from apcg.methods.paper.adaptive import AdaptiveMethod
from apcg.methods.sparse.dense.chosen_columns import ChosenColumnsRun
from apcg.run import path as run_path


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "l1"])
def test_the_answers_are_certified_and_in_order(penalty):
    p = problem("logistic", penalty, 0.5, weighted=True)
    alphas = [1e-2, 1.0, 1e-1, 3e-3]
    answers = path(p, alphas, tol=1e-7, max_epochs=5000, random_state=0)
    for alpha, r in zip(alphas, answers, strict=True):
        own = problem("logistic", penalty, alpha, weighted=True)
        assert r.converged
        assert own.primal(r.w) == pytest.approx(r.primal, rel=1e-12)
        assert own.gap(r.x, r.w) <= 1e-7 * r.primal
    assert p.alpha == 0.5


def test_warm_starts_save_passes():
    X, y = text_like()
    p = ERM(X, y, "smoothed_hinge")
    alphas = np.geomspace(1e-3, 1e-6, 15)
    warm = sum(r.epochs for r in path(p, alphas, check_every=1, random_state=0))
    cold = sum(solve(p.with_alpha(a), check_every=1, random_state=0).epochs for a in alphas)
    assert warm <= 0.85 * cold


def test_data_is_shared_between_alphas():
    p = problem("logistic")
    q = p.with_alpha(3.0)
    assert q.samples is p.samples
    assert (p.alpha, q.alpha) == (0.01, 3.0)
    assert q.mu > p.mu
    assert q.L[0] < p.L[0]


def test_bad_input():
    p = problem("logistic")
    with pytest.raises(TypeError, match="path has no x0"):
        path(p, [0.1], x0=np.zeros(40))
    with pytest.raises(ValueError, match="alpha must be in"):
        path(p, [0.1, -1.0])
    with pytest.raises(ValueError, match="alphas must be a vector"):
        path(p, 0.1)
    with pytest.raises(TypeError, match="must be an apcg"):
        path(data("logistic")[0], [0.1])


@pytest.mark.parametrize("method", ["auto", "sdca"])
def test_l1_has_exact_zeros(method):
    """As many as coordinate descent finds, and the certificate holds for the w that has them."""
    X, y = data("squared", n=100, d=60)
    p = ERM(X, y, "squared", "l1", 0.1)
    r = solve(p, method, tol=1e-8, random_state=0)
    assert r.converged
    assert 5 < np.count_nonzero(r.w == 0) < 55
    assert p.gap(r.x, r.w) <= 1e-8 * r.primal
    assert np.abs(r.w[r.w != 0]).min() > 1e-6


def test_an_interrupt_ends_the_path():
    p, looks = problem("logistic"), []

    def callback(check):
        looks.append(check.epoch)
        if len(looks) == 2:
            raise KeyboardInterrupt

    answers = path(p, [1e-3, 1e-1, 1e-2], callback=callback, check_every=1, random_state=0)
    assert [r.status.code for r in answers] == ["interrupted"]


def test_all_alphas_are_checked_before_any_is_solved():
    looks = []
    with pytest.raises(ValueError, match="alpha must be in"):
        path(problem("logistic"), [0.1, -1.0], callback=looks.append)
    assert not looks
    with pytest.raises(ValueError, match="alphas is empty"):
        path(problem("logistic"), [])


def test_looking_ahead_gives_better_starts():
    """Better in P and in D than the last answer, along a path of small steps; and fewer passes."""
    X, y = text_like(n=500, d=700, noise=0.2)
    p, alphas = ERM(X, y, "logistic"), np.geomspace(1e-3, 1e-5, 12)
    answers = path(p, alphas, tol=1e-8, random_state=0)
    problems = [p.with_alpha(a) for a in alphas]
    seen = [run_path._Seen(q, r) for q, r in zip(problems, answers, strict=True)]
    better = []
    for k in range(3, len(alphas)):
        at = run_path._ahead(problems[k], seen[k - 3 : k])
        last = answers[k - 1]
        better.append(
            problems[k].primal(at.w) < problems[k].primal(last.w)
            and problems[k].dual(at.x) > problems[k].dual(last.x)
        )
        gap = problems[k].gap(at.x, at.w)
        assert gap <= problems[k].gap(last.x, last.w)
    assert np.mean(better) > 0.7
    ahead = sum(r.epochs for r in path(p, alphas, check_every=1, random_state=0))
    plain, last = 0, None
    for q in problems:
        last = solve(q, x0=last, check_every=1, random_state=0)
        plain += last.epochs
    assert ahead < plain


def test_a_warm_start_goes_on_with_the_root_of_the_last_mu():
    """Halfway, in logarithms, between no momentum and what the last run ended with."""
    p = problem("logistic", alpha=1e-4)
    for mu in (1e-4, 0.25, None):
        run = AdaptiveMethod().start(p, Start(mu=mu), Target(), np.random.default_rng(0))
        assert run.report.mu == (1.0 if mu is None else max(mu**0.5, p.mu))
    r = solve(p, "adaptive", tol=1e-3, random_state=0)
    again = solve(p, "adaptive", tol=1e-9, max_epochs=0, x0=r, random_state=0)
    assert again.trace["mu"][0] == pytest.approx(r.mu**0.5)


@pytest.mark.parametrize("method", ["auto", "apcg", "dual", "newton"])
def test_answers_at_the_bounds_with_an_intercept(method):
    """The slopes of logistic x = 0 are infinite: nothing can be said ahead, and nothing fails."""
    rng = np.random.default_rng(0)
    p = ERM(rng.standard_normal((4, 3)), [1, -1, 1, -1], "logistic", "l2", intercept=True)
    found = path(p, [1, 0.1, 0.01, 0.001], method, max_epochs=0, random_state=0)
    assert [r.status.code for r in found] == ["max_epochs"] * 4


def sparse_problem(shape, loss="squared", **options):
    rng = np.random.default_rng(3)
    n, d = {"wide": (40, 90), "tall": (300, 8), "columns": (700, 150)}[shape]
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    y = X[:, :5] @ rng.standard_normal(5) + 0.3 * rng.standard_normal(n)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    X = sp.csr_matrix(X) if shape == "columns" else X
    return ERM(X, y, loss, "l1", **options)


@pytest.mark.parametrize("shape", ["wide", "tall", "columns"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_sparse_path_goes_on_with_one_run_and_certifies_every_point(shape, loss, intercept):
    p = sparse_problem(shape, loss, intercept=intercept)
    alphas = 0.3 * np.geomspace(1, 1e-2, 12)
    answers = path(p, alphas, tol=1e-7, max_epochs=10**5, random_state=0)
    went_on = sum("goes on" in note for r in answers for note in r.trace.notes)
    assert went_on >= 9
    for alpha, r in zip(alphas, answers, strict=True):
        at = p.with_alpha(float(alpha))
        alone = solve(at, tol=1e-9, max_epochs=10**5, random_state=0)
        assert r.converged
        assert at.dual(r.x) == pytest.approx(r.dual, rel=1e-13)  # feasible, and as it says
        assert at.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-12)
        assert r.gap <= 1e-7 * r.primal
        assert alone.primal <= r.primal * (1 + 1e-12) <= alone.primal * (1 + 2e-7)


def test_a_path_that_is_watched_is_solved_point_by_point():
    seen = []
    alphas = [0.3, 0.1, 0.03]
    answers = path(sparse_problem("wide"), alphas, tol=1e-6, callback=lambda c: seen.append(c.gap))
    assert len(seen) >= len(answers) == 3
    assert not any("goes on" in note for r in answers for note in r.trace.notes)


def test_a_path_of_few_passes_says_so():
    answers = path(sparse_problem("columns"), [0.1, 1e-4], tol=1e-12, max_epochs=1)
    assert answers[-1].status.code == "max_epochs"
    assert answers[-1].gap > 1e-12 * answers[-1].primal


@pytest.fixture
def steps(monkeypatch):
    """What a run on sets did: steps, looks at the gap, and P and w before and after looks ahead."""
    done = {"step": 0, "gap": 0}
    for name in done:
        made = getattr(ChosenColumnsRun, name)

        def counted(self, *args, name=name, made=made):
            done[name] += 1
            return made(self, *args)

        monkeypatch.setattr(ChosenColumnsRun, name, counted)
    return done


@pytest.mark.parametrize("intercept", [False, True])
def test_a_path_on_sets_looks_ahead(steps, monkeypatch, intercept):
    """P is lower there, what is zero stays so and nothing crosses zero; and it saves steps."""
    p = sparse_problem("wide", "logistic", intercept=intercept)
    alphas, ahead, taken = 0.3 * np.geomspace(1, 1e-2, 30), ChosenColumnsRun._look_ahead, []

    def watched(run):
        w, before = run.w.copy(), run.at.value + run.penalty.value(run.w)
        if ahead(run):
            taken.append((w * run.w).min() >= 0 and not run.w[w == 0].any())
            at = run.problem.primal(run.w, run.b)
            assert at == pytest.approx(run.at.value + run.penalty.value(run.w), rel=1e-12)
            assert at < before
            return True
        return False

    monkeypatch.setattr(ChosenColumnsRun, "_look_ahead", watched)
    path(p, alphas, tol=1e-7, random_state=0)
    with_it = steps["step"]
    assert len(taken) > 20
    assert all(taken)
    monkeypatch.setattr(ChosenColumnsRun, "_look_ahead", lambda run: False)
    path(p, alphas, tol=1e-7, random_state=0)
    assert with_it < 0.95 * (steps["step"] - with_it)


def test_a_look_ahead_is_for_alphas_that_fall_and_w_without_bounds(monkeypatch):
    ahead, taken = ChosenColumnsRun._look_ahead, []
    monkeypatch.setattr(
        ChosenColumnsRun, "_look_ahead", lambda run: taken.append(ahead(run)) or taken[-1]
    )
    path(sparse_problem("wide", "logistic"), [0.1, 0.1, 0.1, 0.05, 0.05], random_state=0)
    assert not any(taken)
    p = sparse_problem("wide", "logistic", positive=True)
    answers = path(p, 0.3 * np.geomspace(1, 1e-2, 12), random_state=0)
    assert all(r.converged for r in answers)
    assert not any(taken)


def test_another_alpha_is_not_looked_at_before_the_first_round(steps):
    p = sparse_problem("wide", "logistic")
    answers = path(p, 0.3 * np.geomspace(1, 1e-2, 30), tol=0.1, random_state=0)
    went_on = sum("goes on" in note for r in answers for note in r.trace.notes)
    assert went_on >= 25
    assert steps["gap"] <= 1.2 * 30
