"""Sweeps over dense columns in float32, and the runs that begin with them."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg._kernels.sparse import columns_float32
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.dense.all_columns import AllColumnsRun
from apcg.methods.sparse.dense.chosen_columns import ChosenColumnsRun
from apcg.methods.sparse.dense.columns_float32 import ColumnsFloat32

#: so few columns that these are for other data, were it not for the test
FEW = {"strip_columns": (20, 20)}


def data(loss="logistic", n=150, d=24, seed=0, alike=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] += alike * X[:, j - 1]
    z = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(n) + 0.3
    return X, (np.sign(z) if loss == "logistic" else z)


def top(X, y, loss):
    return np.abs(X.T @ (y / 2 if loss == "logistic" else y)).max() / len(y)


def violation(p, w, b=0.0):
    """The greatest violation over alpha, in float64, and the slope of b."""
    z = p.samples.stored @ w + b
    slope = p.weights * p.loss.derivative(z, p.y) / p.n
    g = p.interval
    way = -p.samples.stored.T @ slope - p.alpha * g.b * w
    a = np.broadcast_to(p.alpha * g.a, w.shape)
    up = np.where(w < 0, way + a, way - a)  # how much w may gain by rising, and by falling
    down = np.where(w > 0, a - way, -way - a)
    up, down = np.where(w < g.upper, up, 0.0), np.where(w > g.lower, down, 0.0)
    return max(up.max(), down.max(), 0.0) / p.alpha, abs(slope.sum())


PENALTIES = {
    "l1": {"penalty": "l1"},
    "elastic": {"penalty": "elasticnet"},
    "positive": {"penalty": "l1", "positive": True},
    "each": {"penalty": pen.L1(np.linspace(0.3, 2.0, 24))},
}


# ---- the kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (67, 19), (130, 40)])
def test_packed_columns_are_those_of_the_matrix(shape, dtype):
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    out = np.full(
        (shape[1], -(-shape[0] // columns_float32.LANES) * columns_float32.LANES),
        np.nan,
        np.float32,
    )
    columns_float32.pack(X, out)
    np.testing.assert_array_equal(out[:, : shape[0]], X.T.astype(np.float32))
    assert not out[:, shape[0] :].any()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n", [150, 1100])  # one part of a sum in float32, and several
def test_sweeps_bring_a_problem_to_rest(loss, name, intercept, n):
    X, y = data(loss, n)
    rng = np.random.default_rng(1)
    p = ERM(
        X, y, loss, alpha=0.02, intercept=intercept, sample_weight=rng.random(n),
        **PENALTIES[name],
    )  # fmt: skip
    run = WorkingSet().start(p, Start(), Target(), rng)
    run.begin(Budget(10, False))
    w = run.w.copy()
    b = ColumnsFloat32(p).sweep(np.arange(24), w, run.b, run.at, run.penalty, 0.0, 150)
    off, slope = violation(p, w, b)
    assert off < 1e-3
    assert slope < 1e-5 or not intercept
    assert (w == 0).any()
    assert (w != 0).any()


def test_only_the_columns_asked_for_move():
    X, y = data()
    p = ERM(X, y, "logistic", "l1", 1e-3)
    run = WorkingSet().start(p, Start(), Target(), np.random.default_rng(0))
    run.begin(Budget(10, False))
    w, W = np.zeros(24), np.array([3, 7, 8])
    ColumnsFloat32(p).sweep(W, w, 0.0, run.at, run.penalty, 0.0, 2)
    assert w[W].all()
    assert not np.delete(w, W).any()


@pytest.mark.parametrize("intercept", [False, True])
def test_a_step_that_goes_too_far_is_cut(intercept):
    n = 32
    y = np.where(np.arange(n) < 10, 1.0, -1.0).astype(np.float32)
    w, shift, room = np.zeros(1), np.zeros(1), np.zeros((4, n), np.float32)
    room[0] = -8.0  # where next to no curvature is left
    one = [np.array([v]) for v in (1e-3, 0.0, -np.inf, np.inf)]
    X, s = np.ones((1, n), np.float32), np.full(n, 1 / n, np.float32)
    before = np.logaddexp(0, 8.0 * y).mean()
    cuts = columns_float32.sweeps(
        X, y, s, np.zeros(1, np.intp), *one, 0.0, 1, False, intercept, np.full(1, -1.0), w, shift,
        room,
    )  # fmt: skip
    assert cuts > 0
    assert 0 < w[0] + shift[0] < 100  # 800 without
    z = -8.0 + w[0] + shift[0]
    assert np.allclose(room[0], z, rtol=1e-5)
    assert np.logaddexp(0, -y * z).mean() + 1e-3 * abs(w[0]) < before


# ---- where they are used ------------------------------------------------------------------------


def test_they_are_for_dense_data_with_no_fewer_rows_than_columns():
    t = SetTuning()

    def fit(X, loss="logistic"):
        y = np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0)
        return ColumnsFloat32.fit(ERM(X, y, loss, "l1", 0.1), t)

    X = np.random.default_rng(0).standard_normal((40, 40))
    assert fit(X)
    assert not fit(X, "squared")
    wide = np.ones((t.strip_columns[1], t.strip_columns[1]))
    assert fit(wide, "squared")
    assert not fit(wide[:, 1:], "squared")
    assert not fit(X, "huber")
    assert not fit(X, "squared_hinge")
    assert not fit(X[:39])
    assert fit(X[:, : t.strip_columns[0]])
    assert not fit(X[:, : t.strip_columns[0] - 1])
    assert not fit(sp.csr_matrix(X))
    small = dataclasses.replace(t, strip_room=1599)
    assert not ColumnsFloat32.fit(ERM(X, np.sign(X[:, 0]), "logistic", "l1", 0.1), small)


def test_the_shape_of_a_run_follows_from_whether_there_are_sweeps():
    rng = np.random.default_rng(0)

    def kind(n, loss):
        p = ERM(rng.random((n, 30)), np.arange(n) % 2 * 2.0 - 1, loss, "l1", 0.1)
        return type(WorkingSet().start(p, Start(), Target(), rng))

    assert kind(60, "logistic") is AllColumnsRun
    assert kind(59, "logistic") is ChosenColumnsRun
    assert kind(60, "huber") is ChosenColumnsRun
    assert kind(300, "huber") is AllColumnsRun


@pytest.mark.parametrize(
    ("columns", "n", "sampled"), [(20, 95, 0), (20, 96, 1), (99, 48, 1), (99, 47, 0)]
)
def test_a_sample_is_for_more_rows_where_there_are_sweeps(columns, n, sampled):
    X, y = data(n=n)
    p = ERM(X, y, "logistic", "l1", top(X, y, "logistic") / 10)
    tuning = SetTuning(
        rows_per_feature=1.0, share=0.0, least_rows=0, tall=1.0, strip_columns=(columns, 0)
    )
    run = WorkingSet(tuning).start(p, Start(), Target(1e-6), np.random.default_rng(0))
    assert type(run) is AllColumnsRun
    run.begin(Budget(10, False))
    assert run.w.any() == sampled


# ---- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize(
    "tuning", [{}, {"float32_grams": 0}, {"float32_costs": ((9e9, 9e9), 9e9, 0)}]
)
def test_the_answer_is_at_rest(loss, name, intercept, n, tuning):
    X, y = data(loss, n)
    weights = np.random.default_rng(1).random(n)
    p = ERM(
        X, y, loss, alpha=top(X, y, loss) / 20, intercept=intercept, sample_weight=weights,
        **PENALTIES[name],
    )  # fmt: skip
    r = solve(
        p, WorkingSet(SetTuning(**FEW, **tuning)), tol=1e-10, max_epochs=10**4, random_state=0
    )
    assert r.converged
    off, slope = violation(p, r.w, r.intercept)
    assert off < 1e-4
    assert slope < 1e-7 or not intercept


def test_a_loose_tolerance_needs_no_gram_matrix(monkeypatch):
    X, y = data(n=400, d=130, alike=0.0)
    monkeypatch.setattr(AllColumnsRun, "matrix_round", lambda *_: pytest.fail("not needed"))
    for loss, t in (("logistic", y), ("squared", X[:, :20] @ np.ones(20))):
        r = solve(ERM(X, t, loss, "l1", top(X, t, loss) / 10), tol=0.05, random_state=0)
        assert r.converged


def test_sweeps_that_raise_the_objective_are_taken_back(monkeypatch):
    X, y = data()
    p = ERM(X, y, "logistic", "l1", 0.01)
    for to in (50.0, np.nan, np.inf):

        def wild(self, W, w, b, *_, to=to):
            w[W] = to
            return 1.0

        monkeypatch.setattr(ColumnsFloat32, "sweep", wild)
        run = WorkingSet().start(p, Start(), Target(1e-8), np.random.default_rng(0))
        run.begin(Budget(10, False))
        before = run.w.copy(), run.at.value, run.descent.copy()
        value = run.at.value + run.penalty.value(run.w)
        assert not run._sweep(value)
        np.testing.assert_array_equal(run.w, before[0])
        np.testing.assert_array_equal(run.descent, before[2])
        assert (run.at.value, run.b) == (before[1], 0.0)
        r = solve(p, tol=1e-8, max_epochs=10**4, random_state=0)
        assert r.converged


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e22, 1e35])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_numbers_that_float32_does_not_have(scale, loss):
    X, y = data(loss)
    X = X * np.where(np.arange(24) % 2, scale, 1.0)
    g = pen.L1(np.where(np.arange(24) % 2, scale, 1.0))
    p = ERM(X, y, loss, g, top(X[:, ::2], y, loss) / 20)
    method = WorkingSet(SetTuning(**FEW))
    assert solve(p, method, tol=1e-7, max_epochs=10**4, random_state=0).converged


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("n", [40, 150])
def test_where_float32_is_too_coarse_gram_matrices_are_float64(loss, n):
    X, y = data(loss, n)
    X = 1 + 1e-3 * X  # of columns like these float32 has no inverse
    p = ERM(X, y, loss, "l1", 1e-7)
    r = solve(p, WorkingSet(SetTuning(**FEW)), tol=1e-7, max_epochs=10**4, random_state=0)
    assert r.converged


def test_there_are_so_many_gram_matrices_in_float32(monkeypatch):
    X, y = data(n=200, alike=0.99)
    made, gram = [], ColumnsFloat32.gram

    def counted(self, W, *rest):
        made.append(W.size)
        return gram(self, W, *rest)

    monkeypatch.setattr(ColumnsFloat32, "gram", counted)
    p = ERM(X, y, "logistic", "l1", top(X, y, "logistic") / 1000)
    for most in (0, 1):
        made.clear()
        method = WorkingSet(SetTuning(float32_grams=most, kept=(0.0, 0.0)))
        assert solve(p, method, tol=1e-9, max_epochs=10**4, random_state=0).converged
        assert len(made) == most


@pytest.mark.parametrize("centred", [False, True])
def test_a_gram_matrix_of_some_columns(centred):
    X, y = data(n=77)
    rng = np.random.default_rng(3)
    p, bend, W = ERM(X + 3, y, "logistic", "l1", 0.1), 1e-40 * rng.random(77), np.array([1, 5, 20])
    G, mean = ColumnsFloat32(p).gram(W, bend, centred)
    A = (X + 3)[:, W]
    if centred:
        np.testing.assert_allclose(mean, bend @ A / bend.sum(), rtol=1e-5)
        A = A - mean
    else:
        assert mean is None
    np.testing.assert_allclose(G, A.T @ (bend[:, None] * A), rtol=1e-4, atol=1e-46)


def test_a_path_gives_the_answers_of_single_problems():
    for loss in ("logistic", "squared"):
        X, y = data(loss)
        alphas = top(X, y, loss) / np.array([1.0, 3.0, 10.0, 100.0])
        p, method = ERM(X, y, loss, "l1", 1.0), WorkingSet(SetTuning(**FEW))
        for r, alpha in zip(
            path(p, alphas, method, tol=1e-9, max_epochs=10**4), alphas, strict=True
        ):
            assert r.converged
            assert violation(p.with_alpha(alpha), r.w)[0] < 1e-4


# ---- sweeps or a Gram matrix --------------------------------------------------------------------


def pays(columns=24, rate=0.5, gap=1e-2, tol=1e-3, left=0.1, loss="logistic", **tuning):
    """What a run decides: a round brought P down by `left`, and the round before by left/rate."""
    X, y = data(loss, n=600)
    p = ERM(X, y, loss, "l1", 1e-9)
    run = WorkingSet(SetTuning(**FEW, **tuning)).start(
        p, Start(), Target(tol), np.random.default_rng(0)
    )
    run.begin(Budget(10, False))
    run.now(w=np.where(np.arange(run.w.size) < columns, 1.0, run.w))
    run.penalty = run.penalty.times(1e12)  # so that only these are near to moving
    run.float32.fell = (left / rate, 1.0 + left, 1.0)
    return run._sweeps_pay(gap, 1.0)


def test_sweeps_go_on_where_few_are_left():
    costs = {"float32_costs": ((1.0, 1.0), 0.0, 1.0), "float32_sweeps": 4}
    # 24 columns: a round costs 96, a Gram matrix 576; two of them as much as 12 rounds
    assert pays(rate=0.5, gap=10e-3, **costs)  # 7 rounds
    assert not pays(rate=0.5, gap=100e-3, left=5e-4, **costs)  # 14
    assert not pays(rate=0.5, gap=10e-3, left=1e-5, **costs)  # and one Gram matrix is enough
    assert pays(rate=0.5, gap=7e-3, left=1e-5, **costs)  # 6
    assert not pays(rate=0.5, gap=10e-3, left=1e-5, columns=12, **costs)
    assert not pays(rate=0.9, gap=10e-3, left=1e-5, **costs)


def test_a_round_that_ends_it_is_a_whole_one():
    costs = {"float32_costs": ((1.0, 1.0), 0.0, 0.1), "float32_sweeps": 4}
    assert not pays(rate=1e-3, gap=1.1e-3, left=1e-5, **costs)  # a Gram matrix costs 58


def test_sweeps_go_on_far_out_while_they_bring_digits_for_less():
    costs = {"float32_costs": ((1.0, 1.0), 0.0, 1.0), "float32_sweeps": 4, "gap": 1e6, "tol": 1e-9}
    assert pays(rate=0.5, left=0.1, **costs)  # 0.3 digits a round, for which 173 are paid
    assert not pays(rate=0.8, left=0.1, **costs)  # 0.1
    assert not pays(rate=0.5, left=0.9e-3, **costs)  # near
    assert not pays(rate=0.5, left=0.1, loss="squared", **costs)  # one Gram matrix is all of it


def test_the_squared_loss_has_its_own_cost_and_one_gram_matrix():
    costs = {"float32_costs": ((9.0, 1.0), 0.0, 1.0), "float32_sweeps": 4, "loss": "squared"}
    assert pays(rate=0.5, gap=7e-3, **costs)  # 6 rounds
    assert not pays(rate=0.5, gap=10e-3, **costs)  # 7
    assert not pays(rate=0.5, gap=7e-3, **{**costs, "loss": "logistic"})


def test_sweeps_go_on_while_nothing_is_known_and_end_where_nothing_falls():
    X, y = data()
    p = ERM(X, y, "logistic", "l1", 0.01)
    run = WorkingSet().start(p, Start(), Target(1e-6), np.random.default_rng(0))
    run.begin(Budget(10, False))
    assert run._sweeps_pay(np.inf, 1.0)
    assert run._sweeps_pay(0.5, 0.9)
    assert run._sweeps_pay(0.5, 0.7)  # it falls faster
    assert not run._sweeps_pay(0.5, 0.7)


# ---- float32 or float64 -------------------------------------------------------------------------


def begun(X, y, loss="logistic"):
    p = ERM(X, y, loss, "l1", 1e-3)
    run = WorkingSet(SetTuning(**FEW)).start(p, Start(), Target(1e-6), np.random.default_rng(0))
    run.begin(Budget(10, False))
    run.float32.columns = ColumnsFloat32(p)
    return run


def test_a_gram_matrix_in_float32_by_which_nothing_moved_is_the_last():
    run = begun(*data())
    assert not run.widens()  # there was none
    assert run.narrow_gram(np.arange(24)) is not None
    assert run.widens()
    assert run.narrow_gram(np.arange(24)) is None
    assert not run.widens()


def test_a_gram_matrix_that_overflows_in_float32_is_none():
    X, y = data()
    assert begun(1e22 * X, y).narrow_gram(np.arange(24)) is None


def test_a_step_on_one_column_is_exact_however_often():
    X, y = data("squared")
    run, W, slope = begun(X, y, "squared"), np.array([2]), X[:, 2] @ y / 150
    best = (slope - 1e-3 * np.sign(slope)) / (X[:, 2] @ X[:, 2] / 150)
    for _ in range(2):  # the curvature is computed, and then known
        w = np.zeros(24)
        run.float32.columns.sweep(W, w, 0.0, run.at, run.penalty, 0.0, 1)
        assert w[2] == pytest.approx(best, rel=1e-4)
