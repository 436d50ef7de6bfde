"""Paths of the squared loss on dense data: stretches of alphas on one set of columns."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, penalties, solve
from apcg.methods.sparse import ScaledPenalty, SetTuning
from apcg.methods.sparse.dense import path_dense, path_one_gram
from apcg.methods.sparse.dense.certify_many import look

ALPHAS = np.geomspace(0.5, 5e-3, 12)[[3, 0, 7, 1, 2, 4, 5, 6, 8, 11, 10, 9]]
#: more columns than are taken at once
WIDE = {"d": 300}


def problem(n=60, d=30, *, penalty="l1", weighted=False, dtype=np.float64, sparse=False, **options):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = X[:, :5] @ rng.standard_normal(min(d, 5)) + 0.3 * rng.standard_normal(n) + 2.0
    weights = rng.integers(0, 4, n) * 1.0 if weighted else None
    X = sp.csr_matrix(X) if sparse else X.astype(dtype)
    return ERM(X, y, "squared", penalty, sample_weight=weights, **options)


def grid(p, count=40, least=1e-2):
    """From lambda_max to a part of it."""
    top = np.abs(p.samples.adjoint(p.weights * (p.y - p.intercept * p.y.mean()))).max() / p.n
    return top / p.interval.a.min() * np.geomspace(1.0, least, count)


def together(answers):
    """Which of them were."""
    return [any("on one Gram matrix" in note for note in r.trace.notes) for r in answers]


def is_certified(p, alphas, answers, tol):
    for alpha, r in zip(alphas, answers, strict=True):
        at = p.with_alpha(float(alpha))
        assert r.converged
        assert at.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-13)
        assert at.dual(r.x) == pytest.approx(r.dual, rel=1e-13)  # feasible too
        assert r.gap <= tol * r.primal


@pytest.fixture
def calls(monkeypatch):
    """The sizes of the sets and the alphas of all that is solved on Gram matrices."""
    made, solved = [], path_dense.solved

    def watched(G, q, total, slope, w, unit, alphas, tol, tuning):
        made.append((q.size, alphas))
        return solved(G, q, total, slope, w, unit, alphas, tol, tuning)

    monkeypatch.setattr(path_dense, "solved", watched)
    return made


def tuned(monkeypatch, **changes):
    monkeypatch.setattr(path_dense, "SetTuning", lambda: replace(SetTuning(), **changes))


PENALTIES = ["l1", "elasticnet", "weights"]


@pytest.mark.slow(but=12)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("d", [30, 300])
def test_the_certificates_are_those_of_the_problem(penalty, intercept, weighted, tol, d):
    g = penalties.L1(np.linspace(0.5, 2.0, d)) if penalty == "weights" else penalty
    p = problem(d=d, penalty=g, weighted=weighted, intercept=intercept)
    alphas = grid(p, 25)[np.random.default_rng(0).permutation(25)]
    answers = path(p, alphas, tol=tol)
    assert all(together(answers))
    is_certified(p, alphas, answers, tol)
    for k in (3, 11):
        alone = solve(p.with_alpha(float(alphas[k])), tol=1e-10, random_state=0)
        assert answers[k].dual * (1 - 1e-12) <= alone.primal <= answers[k].primal * (1 + 1e-10)


def test_x_is_feasible_however_its_products_are_summed():
    """With alpha next to nothing the products X_j'x are small sums of large terms."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    p = ERM(X, 1e3 + X[:, 0], "squared", "l1")
    alphas = np.geomspace(1e2, 1e-6, 40)
    W = path_one_gram.optima(p, alphas, 1e-6)[0]
    found = look(p, alphas, W, X.T, ScaledPenalty.of(p.with_alpha(1.0)))
    for alpha, x in zip(alphas, found.x, strict=True):
        exact = np.abs(X.T.astype(np.longdouble) @ x) / (alpha * 400)
        assert exact.max() <= 1
        for order in (rng.permutation(400) for _ in range(5)):
            assert np.abs(x[order] @ X[order] / (alpha * 400)).max() <= 1
        assert p.with_alpha(float(alpha)).dual(x) > -np.inf


def test_an_intercept_wants_x_to_sum_to_zero():
    """Also where y is far from zero, and its mean has fewer digits than the residuals need."""
    p = problem(intercept=True)
    far = ERM(p.samples.stored, p.y + 1e9, "squared", "l1", intercept=True)
    W, on = path_one_gram.optima(p, ALPHAS, 1e-6)[0], ScaledPenalty.of(p.with_alpha(1.0))
    found = look(far, ALPHAS, W, far.samples.stored.T, on)
    for alpha, x, dual in zip(ALPHAS, found.x, found.dual, strict=True):
        rounding = 1e-15 * float(np.abs(far.y) @ np.abs(x)) / far.n
        assert far.with_alpha(float(alpha)).dual(x) == pytest.approx(dual, abs=rounding)
        assert dual > -np.inf


def test_an_x_that_does_not_is_no_certificate(monkeypatch):
    monkeypatch.setattr(ERM, "imbalance", lambda *_: 1.1)
    assert not list(path_dense.answers(problem(intercept=True), ALPHAS, 1e-3))


@pytest.mark.parametrize("d", [30, 300])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_point_that_is_not_good_enough_is_solved_again(monkeypatch, intercept, d):
    """On the set, and if that does not help by a run."""
    p, solved, tries = problem(d=d, intercept=intercept), path_dense.solved, []
    alphas = grid(p)
    once, never = alphas[5], alphas[[12, 20]]

    def spoiled(*args):
        W, part = solved(*args), args[6]
        tries.extend(part)
        for k, alpha in enumerate(part[: len(W)]):
            if alpha in never or (alpha == once and tries.count(once) == 1):
                W[k] = 1.5 * W[k] + 1e-3
        return W

    monkeypatch.setattr(path_dense, "solved", spoiled)
    answers = path(p, alphas, tol=1e-6)
    assert [k for k, so in enumerate(together(answers)) if not so] == [12, 20]
    assert tries.count(once) > 1
    assert max(tries.count(a) for a in never) <= 2 * SetTuning.tries + 2
    is_certified(p, alphas, answers, 1e-6)


@pytest.mark.parametrize("d", [30, 300])
def test_if_a_model_does_not_come_to_an_end_the_rest_is_solved_one_by_one(monkeypatch, d):
    p, solved = problem(d=d), path_dense.solved
    alphas = grid(p)

    def ends(*args):
        return solved(*args)[: np.count_nonzero(args[6] > alphas[9])]

    monkeypatch.setattr(path_dense, "solved", ends)
    answers = path(p, alphas, tol=1e-6)
    assert together(answers) == [True] * 9 + [False] * 31
    is_certified(p, alphas, answers, 1e-6)


def test_nan_is_no_answer(monkeypatch):
    solved = path_dense.solved
    monkeypatch.setattr(path_dense, "solved", lambda *args: np.nan * solved(*args))
    assert not list(path_dense.answers(problem(), ALPHAS, 1e-3))


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"sparse": True}, {}),
        ({"dtype": np.float32}, {}),
        ({"positive": True}, {}),
        ({"penalty": "l2"}, {}),
        ({}, {"method": "adaptive"}),
        ({}, {"callback": lambda _: None}),
        ({}, {"check_every": 1}),
        ({}, {"time_limit": 60.0}),
        ({}, {"max_epochs": 0}),
    ],
)
def test_what_it_is_not_for(given, options, monkeypatch):
    """Then no Gram matrix is made in vain either."""
    monkeypatch.setattr(path_dense, "Walk", lambda *_: pytest.fail("it was begun"))
    answers = path(problem(**given), ALPHAS, **options)
    assert len(answers) == ALPHAS.size
    assert not any(together(answers))


def test_many_columns_are_taken_at_once_for_many_alphas_only(calls):
    """If alpha falls too far for sets, a Gram matrix of all columns has to pay."""
    (first, more), most = SetTuning.columns_for, SetTuning.few_columns
    cases = ((first + more, 1), (first + more + 1, 1), (first + 2 * more, 2), (most + 1, 60))
    taken = []
    for d, count in cases:
        p = problem(n=d + 5, d=d)
        alphas = np.full(count, 0.9 * grid(p)[0] / SetTuning.stage[0])  # a fall of more than that
        taken.append(len(list(path_dense.answers(p, alphas, 1e-3))) == count)
    assert taken == [True, False, True, False]
    assert [size for size, _ in calls] == [first + more, first + 2 * more]


def test_a_fall_is_from_one_alpha_to_the_next():
    p = problem(**WIDE)
    fine, fall = grid(p, 6, 0.2), SetTuning.stage[0]
    assert len(list(path_dense.answers(p, fine, 1e-3))) == 6
    assert not list(path_dense.answers(p, np.append(fine, 0.9 * fine[-1] / fall), 1e-3))
    assert list(path_dense.answers(p, np.append(fine, 1.1 * fine[-1] / fall), 1e-3))


def test_few_columns_are_one_stretch_and_more_than_samples_are_not(calls):
    for n, d, sizes in ((220, 200, {200}), (220, 201, None), (190, 200, None)):
        calls.clear()
        p = problem(n=n, d=d)
        assert len(list(path_dense.answers(p, grid(p, 20, 0.3), 1e-3))) == 20
        if sizes:
            assert (len(calls), calls[0][0]) == (1, d)
        else:
            assert calls[0][0] < d


@pytest.mark.parametrize(("first", "reach", "fall"), [(1, 0.2, 0), (1000, 0.2, 1), (300, 1.0, 1)])
def test_stretches_fall_as_far_as_their_sets_reach(first, reach, fall):
    """With no room for the columns that are wanted by the least factor, with much by the most."""
    p, tuning = problem(n=150, d=1000), replace(SetTuning(), first=first, reach=reach)
    alphas = grid(p, 200)
    W, _ = path_dense.Walk(p, 1e-6, alphas, tuning).stretch(alphas)
    assert alphas[0] / alphas[len(W) - 1] <= tuning.stretch[fall] < alphas[0] / alphas[len(W)]


def test_sets_stay_small_and_are_few(calls):
    p, t = problem(n=150, d=1000), SetTuning()
    alphas = grid(p, 100)
    assert len(list(path_dense.answers(p, alphas, 1e-6))) == 100
    assert max(size for size, _ in calls) <= 2 * max(t.first, path_dense.ROOMY * 150)
    assert calls[0][0] <= t.first
    assert len(calls) < 25


def test_a_set_drops_columns_when_it_is_large_and_stays_as_it_was():
    """G, q and the rows are those of the columns that stay, with means and weights."""
    p = problem(**WIDE, intercept=True, weighted=True)
    own, fresh = path_dense.GrowingSet(p), path_dense.GrowingSet(p)
    own.extend(np.arange(40))
    own.extend(np.array([70, 50, 90]))
    own.keep(np.array([3, 5, 40, 42]))
    fresh.extend(np.array([3, 5, 70, 90]))
    for name in ("ids", "rows", "G", "q"):
        np.testing.assert_allclose(getattr(own, name), getattr(fresh, name), atol=1e-14)
    X, s = p.samples.stored[:, fresh.ids], p.weights / p.n
    X, y = X - s @ X, p.y - s @ p.y
    np.testing.assert_allclose(own.G, X.T @ (s[:, None] * X), atol=1e-13)
    np.testing.assert_allclose(own.q, X.T @ (s * y), atol=1e-13)
    assert own.total == pytest.approx(float(s @ y**2))


@pytest.mark.parametrize("reach", [-3.0, 1.0])
def test_the_answers_do_not_hang_on_the_choice_of_columns(monkeypatch, reach, calls):
    """With too few of them what violates joins the set."""
    tuned(monkeypatch, reach=reach, first=5)
    p = problem(n=80, d=400)
    alphas = grid(p)
    answers = path(p, alphas, tol=1e-7)
    assert all(together(answers))
    is_certified(p, alphas, answers, 1e-7)


def test_what_violates_at_any_point_joins_the_set(calls):
    """All points of a stretch that are not good enough say what they lack."""
    p = problem(n=80, d=400)
    alphas, walk = grid(p, 10, 0.5), None
    walk = path_dense.Walk(p, 1e-9, alphas, replace(SetTuning(), reach=1.0, first=1))
    W, looks = walk.stretch(alphas)
    bad = np.flatnonzero(~looks.within(1e-9))
    assert bad.size > 1
    walk.go_on(alphas, W, looks, bad)
    lacks = (np.abs(looks.slopes[bad]) / alphas[bad][:, None]).max(axis=0) > 1 + 1e-9
    assert np.count_nonzero(lacks) > np.count_nonzero(
        np.abs(looks.slopes[bad[0]]) > alphas[bad[0]] * (1 + 1e-9)
    )
    assert (walk._score[lacks] > walk._alpha).all()


def test_a_set_that_grows_to_a_part_of_all_columns_becomes_all(calls):
    p = problem(n=320, d=300)
    noisy = ERM(p.samples.stored, np.random.default_rng(1).standard_normal(320), "squared", "l1")
    assert len(list(path_dense.answers(noisy, grid(noisy), 1e-4))) == 40
    sizes = [size for size, _ in calls]
    assert sizes[0] < 300
    assert sizes[-1] == 300
    assert not [s for s in sizes if SetTuning.part * s > 2 * 300 and s < 300]


def test_large_sets_are_left_to_runs(monkeypatch):
    tuned(monkeypatch, widest_stretch=20, first=10)
    p = problem(n=80, d=400)
    alphas = grid(p)
    answers = path(p, alphas, tol=1e-6)
    assert 3 < sum(together(answers)) < 40
    is_certified(p, alphas, answers, 1e-6)


@pytest.mark.parametrize("looks", [1, 3])
def test_an_interrupt_gives_back_what_there_is(monkeypatch, looks):
    """If there is nothing yet, the first alpha is solved, and no other."""
    seen, count = path_dense.look, []

    def interrupted(*args):
        count.append(0)
        if len(count) == looks:
            raise KeyboardInterrupt
        return seen(*args)

    monkeypatch.setattr(path_dense, "look", interrupted)
    p = problem(**WIDE)
    alphas = grid(p)
    answers = path(p, alphas, tol=1e-6)
    assert len(answers) == 1 if looks == 1 else 1 <= len(answers) < 40
    assert len(count) == looks
    is_certified(p, alphas[: len(answers)], answers, 1e-6)


def test_zeros_are_exact_and_those_of_a_cold_solve():
    for d in (30, 250):
        p = problem(n=200, d=d)
        alphas = grid(p, 12)
        for alpha, r in zip(alphas[1:], path(p, alphas, tol=1e-9)[1:], strict=True):
            alone = solve(p.with_alpha(float(alpha)), tol=1e-12, random_state=0)
            assert np.array_equal(r.w != 0, alone.w != 0)


def test_reruns_have_the_same_bits():
    p = problem(**WIDE)
    first, again = (path(p, grid(p), tol=1e-6) for _ in range(2))
    assert all(
        np.array_equal(r.w, q.w) and r.dual == q.dual for r, q in zip(first, again, strict=True)
    )


def test_certificates_are_made_in_parts(calls, monkeypatch):
    """So that the predictions for many alphas take no more room than X."""
    p, alphas = problem(n=40_000, d=4), np.geomspace(0.5, 0.05, 10)
    answers = path(p, alphas, tol=1e-6)
    assert all(together(answers))
    assert [part.size for _, part in calls] == [4, 4, 2]
    is_certified(p, alphas, answers, 1e-6)
    calls.clear()
    tuned(monkeypatch, stretch_room=5 * 40_000)
    assert all(together(path(p, alphas, tol=1e-6)))
    assert [part.size for _, part in calls] == [5, 5]


def test_what_is_known_of_a_gram_matrix_is_kept():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 100))
    p = ERM(X, X[:, 0] + rng.standard_normal(60), "squared", "l1", 0.1, intercept=True)
    own, fresh = path_dense.GrowingSet(p), path_dense.GrowingSet(p)
    own.extend(np.arange(20))
    assert own.G.shape == (20, 20)
    own.extend(np.array([50, 40, 60]))  # not asked for between
    own.keep(np.array([2, 7, 20, 22]))
    own.extend(np.array([90]))
    fresh.extend(np.array([2, 7, 50, 60, 90]))
    np.testing.assert_array_equal(own.ids, fresh.ids)
    np.testing.assert_allclose(own.G, fresh.G, atol=1e-13)
