"""The squared loss with an L2 part by sweeps over the columns, without their Gram matrix."""

from dataclasses import replace

import numpy as np
import pytest

from apcg import ERM, path, solve
from apcg._kernels.sparse import lasso
from apcg.methods.sparse import ScaledPenalty, SetTuning
from apcg.methods.sparse.blocks import DenseColumns
from apcg.methods.sparse.dense import chosen_columns, path_dense, rows_sweep

UNIT = ScaledPenalty(*(np.array([v]) for v in (1.0, 1.0, -np.inf, np.inf)))


def rows(m, n, alike=0.0, seed=0):
    """Rows A_j, of which parts are the same, and t."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) + alike * rng.standard_normal(n)
    return A, A[: min(5, m)].sum(axis=0) + 0.3 * rng.standard_normal(n)


def row_path(A, t, alphas, unit=UNIT, share=1e-10, most=10**6, w=None):
    """The answers, and r at the last one."""
    m, n = A.shape
    w = np.zeros(m) if w is None else w.copy()
    r, out = t - w @ A, np.full((len(alphas), m), np.nan)
    room = np.empty(10 * m + 2 * n + 56)
    alphas = np.asarray(alphas, float)
    done = lasso.row_path(
        A, 1 / n, r, w, *unit.parts, alphas, 1e-9, share, most, room, out
    )  # fmt: skip
    return out[:done], r


def values(A, t, w, alpha, unit=UNIT):
    """P, and P - D at x = r."""
    n = t.size
    r, on = t - w @ A, ScaledPenalty(alpha * unit.a, alpha * unit.b, unit.lower, unit.upper)
    primal = 0.5 * (r @ r) / n + on.value(w)
    return primal, primal - (t @ r - 0.5 * r @ r) / n + on.conjugate(A @ r / n)


@pytest.mark.parametrize("m", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("n", [1, 3, 4, 21])
def test_all_answers_are_at_rest(m, n):
    """Whatever is left over of panels of eight rows, and of vectors of four numbers."""
    A, t = rows(m, n)
    each = ScaledPenalty(np.linspace(0.5, 2.0, m), np.linspace(0.3, 1.0, m), *UNIT.parts[2:])
    for unit in (UNIT, each):
        top = np.max(np.abs(A @ t) / n / unit.a)
        alphas = top * np.geomspace(1.1, 0.1, 6)
        W, r = row_path(A, t, alphas, unit)
        assert len(W) == 6
        np.testing.assert_allclose(r, t - W[-1] @ A, atol=1e-12)
        assert not W[0].any()
        for alpha, w in zip(alphas, W, strict=True):
            primal, gap = values(A, t, w, alpha, unit)
            assert gap <= 1e-9 * primal


#: columns so much alike that sweeps are slow, and come to an end
SLOW = {"m": 120, "n": 40, "alike": 0.3}
LITTLE = replace(UNIT, b=np.array([1e-2]))


def test_sweeps_are_given_up_where_they_are_slow():
    A, t = rows(**SLOW)
    assert len(row_path(A, t, [0.03], LITTLE, 1e-6, most=5)[0]) == 0
    assert len(row_path(A, t, [0.03], LITTLE, 1e-6)[0]) == 1
    assert len(row_path(*rows(120, 40), [1.0], share=1e-6, most=5)[0]) == 1


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_slow_sweeps_do_not_end_before_the_gap_is_small(share):
    """What a sweep meets is then much less than what it leaves."""
    for seed in range(5):
        A, t = rows(**SLOW, seed=seed)
        primal, gap = values(A, t, row_path(A, t, [0.03], LITTLE, share)[0][0], 0.03, LITTLE)
        assert gap <= 5 * share * primal


def one_sweep(A, t, w, alpha):
    w, n = w.copy(), t.size
    for j, row in enumerate(A):
        h = row @ row / n
        u = h * w[j] + row @ (t - w @ A) / n
        w[j] = np.sign(u) * max(abs(u) - alpha, 0.0) / (h + alpha)
    return w


def test_a_path_goes_on_where_the_last_two_answers_point():
    """With a share of 1 an alpha gets one sweep."""
    alphas = [1.0, 0.9, 0.81]
    for seed in range(5):
        A, t = rows(60, 30, seed=seed)
        best = values(A, t, row_path(A, t, alphas)[0][2], 0.81)[0]
        W = row_path(A, t, alphas, share=1.0)[0]
        alone = values(A, t, one_sweep(A, t, W[1], 0.81), 0.81)[0]
        assert values(A, t, W[2], 0.81)[0] - best < 0.7 * (alone - best)


def test_but_not_far_beyond_them():
    """Two alphas that differ by a rounding point anywhere."""
    A, t = rows(60, 30)
    W, r = row_path(A, t, [1.0, 1.0 - 1e-12, 0.1])
    np.testing.assert_allclose(r, t - W[2] @ A, atol=1e-12)


def problem(n=60, d=300, *, alike=0.0, ratio=0.5, **options):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d)) + alike * rng.standard_normal((n, 1))
    y = 30 * (X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(n)) + 2.0
    penalty = {"penalty": "elasticnet", "l1_ratio": ratio} if ratio < 1 else {"penalty": "l1"}
    return ERM(X, y, "squared", **penalty, **options)


def grid(p, count=30, least=1e-2):
    top = np.abs(p.samples.adjoint(p.weights * (p.y - p.intercept * p.y.mean()))).max() / p.n
    return top / p.interval.a.min() * np.geomspace(1.0, least, count)


def is_certified(p, alphas, answers, tol):
    for alpha, r in zip(alphas, answers, strict=True):
        at = p.with_alpha(float(alpha))
        assert r.converged
        assert at.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-13)
        assert at.dual(r.x) == pytest.approx(r.dual, rel=1e-13)
        assert r.gap <= tol * r.primal


@pytest.fixture
def calls(monkeypatch):
    """Of all that is swept: how many columns, and whether it came to an end."""
    made, inner = [], rows_sweep.swept

    def watched(A, scale, r, w, unit, alphas, *args):
        found = inner(A, scale, r, w, unit, alphas, *args)
        made.append((A.shape[0], len(found) == alphas.size))
        return found

    monkeypatch.setattr(path_dense, "swept", watched)
    monkeypatch.setattr(chosen_columns, "swept", watched)
    return made


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_wide_sets_of_a_path_are_swept(calls, intercept, weighted, tol):
    weights = np.random.default_rng(0).integers(0, 4, 60) * 1.0 if weighted else None
    p = problem(intercept=intercept, sample_weight=weights)
    alphas = grid(p)
    answers = path(p, alphas, tol=tol)
    is_certified(p, alphas, answers, tol)
    assert all("many of them" in r.trace.notes[0] for r in answers)
    assert calls
    assert min(size for size, _ in calls) > 60
    alone = solve(p.with_alpha(float(alphas[20])), tol=1e-10, random_state=0)
    assert answers[20].dual * (1 - 1e-12) <= alone.primal <= answers[20].primal * (1 + 1e-10)


def test_no_limit_of_newton_steps_is_one_for_sweeps(calls, monkeypatch):
    monkeypatch.setattr(path_dense, "SetTuning", lambda: replace(SetTuning(), widest_stretch=100))
    p = problem()
    assert all("many of them" in r.trace.notes[0] for r in path(p, grid(p), tol=1e-4))
    assert max(size for size, _ in calls) > 100


def test_without_an_l2_part_nothing_is_swept(calls):
    p = problem(ratio=1.0)
    is_certified(p, grid(p), path(p, grid(p), tol=1e-6), 1e-6)
    assert solve(p.with_alpha(float(grid(p)[-1])), tol=1e-6).converged
    assert not calls


def test_where_sweeps_are_slow_a_path_goes_on_with_gram_matrices(calls):
    p = problem(n=40, d=400, alike=1.0, ratio=0.99)
    alphas = grid(p)
    answers = path(p, alphas, tol=1e-8)
    is_certified(p, alphas, answers, 1e-8)
    assert all("many of them" in r.trace.notes[0] for r in answers)
    assert [ended for _, ended in calls] == [True] * (len(calls) - 1) + [False]


def test_also_if_there_is_no_answer_by_sweeps_at_all(monkeypatch):
    monkeypatch.setattr(path_dense, "swept", lambda A, *_: np.empty((0, len(A))))
    p = problem()
    answers = path(p, grid(p), tol=1e-6)
    is_certified(p, grid(p), answers, 1e-6)
    assert all("many of them" in r.trace.notes[0] for r in answers)
    monkeypatch.setattr(path_dense, "SetTuning", lambda: replace(SetTuning(), widest_stretch=100))
    answers = path(p, grid(p), tol=1e-6)
    is_certified(p, grid(p), answers, 1e-6)
    assert not all("many of them" in r.trace.notes[0] for r in answers)


def test_a_gram_matrix_pays_the_sooner_the_smaller_it_is():
    t = SetTuning()
    whole = rows_sweep.most_sweeps(1000, 200, 1, t)
    assert 10 < rows_sweep.most_sweeps(1000, 200, 1, t, 300) < whole / 10
    assert rows_sweep.most_sweeps(1000, 200, 10, t) < whole
    assert rows_sweep.most_sweeps(1000, 200, 1, replace(t, row_number=1.0)) < whole / 5


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("part", [0.1, 0.01])
def test_a_cold_solve_makes_no_gram_matrix(monkeypatch, calls, intercept, weighted, part):
    weights = np.random.default_rng(0).integers(1, 4, 60) * 1.0 if weighted else None
    p = problem(intercept=intercept, sample_weight=weights)
    p = p.with_alpha(float(grid(p)[0] * part))
    monkeypatch.setattr(DenseColumns, "gram", lambda *_, **__: pytest.fail("it was made"))
    r = solve(p, tol=1e-7)
    is_certified(p, [p.alpha], [r], 1e-7)
    assert calls[0][0] == SetTuning.first


def test_once_sweeps_were_enough_a_set_has_all_that_violates(calls):
    p = problem(d=1000)
    assert solve(p.with_alpha(float(grid(p)[0] * 1e-2)), tol=1e-6).converged
    assert calls[0] == (SetTuning.first, True)
    assert calls[1][0] > 3 * SetTuning.first


def test_a_cold_solve_where_sweeps_are_slow_does(calls):
    p = problem(n=50, d=400, alike=2.0, ratio=0.9)
    p = p.with_alpha(float(grid(p)[0] * 1e-2))
    r = solve(p, tol=1e-8)
    is_certified(p, [p.alpha], [r], 1e-8)
    assert [ended for _, ended in calls] == [True] * (len(calls) - 1) + [False]


def test_a_cold_solve_with_weights_of_zero_does():
    p = problem(sample_weight=np.arange(60.0) % 3)
    p = p.with_alpha(float(grid(p)[0] * 1e-1))
    is_certified(p, [p.alpha], [solve(p, tol=1e-7)], 1e-7)


def test_what_is_known_of_a_gram_matrix_is_kept():
    p = problem(intercept=True)
    own, fresh = path_dense.GrowingSet(p), path_dense.GrowingSet(p)
    own.extend(np.arange(20))
    assert own.G.shape == (20, 20)
    own.extend(np.array([50, 40, 60]))  # not asked for between
    own.keep(np.array([2, 7, 20, 22]))
    own.extend(np.array([90]))
    fresh.extend(np.array([2, 7, 50, 60, 90]))
    np.testing.assert_array_equal(own.ids, fresh.ids)
    np.testing.assert_allclose(own.G, fresh.G, atol=1e-13)
