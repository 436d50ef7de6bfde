"""Sweeps with fresh slopes on sparse columns: the kernel, and the rules of the rounds."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, path, solve
from apcg import penalties as pen
from apcg._kernels.sparse import first_sweeps
from apcg.certify.certificate import certify
from apcg.certify.points import Start
from apcg.data.columns import Packed
from apcg.methods.base import Budget, Target
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.columns import first_sweeps as rounds
from apcg.methods.sparse.penalty import ScaledPenalty
from apcg.methods.sparse.state import Progress

INF = np.inf
FILL = first_sweeps.fill
COLUMNS = WorkingSet(SetTuning(few_rows=0, tall=INF))


def penalty(a, b=0.0, lower=-INF, upper=INF):
    return ScaledPenalty(*(np.atleast_1d(np.asarray(v, float)) for v in (a, b, lower, upper)))


PENALTIES = {
    "l1": penalty(0.3),
    "each": penalty(np.linspace(0.1, 1.0, 8)),
    "elastic": penalty(0.2, 0.7),
    "bounds": penalty(0.2, 0.0, np.full(8, -0.2), np.full(8, 0.3)),
}


class Model:
    """(1/2) sum_i bend_i (way_i - u_i/bend_i)^2 of 30 rows and 8 columns, at v."""

    def __init__(self, seed=0, wide=True, scale=1.0):
        rng = np.random.default_rng(seed)
        self.A = scale * rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.7)
        self.slope, self.bend = rng.standard_normal(30), rng.uniform(0.1, 1.0, 30)
        self.slope -= self.bend * self.slope.sum() / self.bend.sum()  # b is the best there is
        self.v = rng.standard_normal(8) * (rng.random(8) < 0.5)
        X = sp.csr_matrix(self.A)
        self.packed = Packed.of((X.data, X.indices, X.indptr), 8, double=wide)
        self.rows, self.met, self.slopes = np.empty((30, 2)), np.zeros(8), np.zeros(8)
        first_sweeps.fill(self.slope, self.bend, self.rows)

    def steps(self, p, ids, total=0.0, sigma=0.0, most=INF, first=0, far=INF):
        packed = self.packed
        v, met = self.v[ids], np.zeros(ids.size)
        end, sigma = first_sweeps.steps(
            packed.entries, packed.double, packed.start, ids, packed.squares,
            np.full(ids.size, float(far)), *p.on(ids).parts, total, sigma, most, first, v, met,
            self.slopes, self.rows,
        )  # fmt: skip
        self.v[ids], self.met[ids] = v, met
        return end, sigma


def plain(model, p, ids, total=0.0, far=INF):
    """The same steps by linear algebra: v, what was met and the shift of the intercept."""
    A, v = model.A.copy(), model.v.copy()
    u, bend = -model.slope.copy(), model.bend
    met, slopes = np.zeros(8), np.zeros(8)
    if total:
        A = A - (bend @ A) / total
    for j in ids:
        on = p.on(np.array([j]))
        h, slope = bend @ A[:, j] ** 2, A[:, j] @ u
        slopes[j] = slope
        grid = (h + on.b[0]) * v[j] + slope - on.b[0] * v[j]
        best = np.sign(grid) * max(abs(grid) - on.a[0], 0.0) / (h + on.b[0])
        best = np.clip(best, on.lower[0], on.upper[0])
        move = np.clip(best - v[j], -far, far)
        met[j] = abs(move) * (h + on.b[0])
        u -= bend * A[:, j] * move
        v[j] += move
    return v, met, slopes, A @ (v - model.v)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_steps_are_those_of_coordinate_descent(name, centred, wide):
    p, model, ids = PENALTIES[name], Model(wide=wide), np.array([3, 0, 7, 5, 1, 2, 6, 4])
    total = float(model.bend.sum()) if centred else 0.0
    v, met, slopes, way = plain(model, p, ids, total)
    end, shift = model.steps(p, ids, total)
    assert end == 8
    assert np.count_nonzero(met) > 3
    assert model.v == pytest.approx(v, abs=1e-5)
    assert model.met == pytest.approx(met, abs=1e-5)
    assert model.slopes == pytest.approx(slopes, abs=1e-5)
    assert model.rows[:, 1] + shift == pytest.approx(way, abs=1e-5)
    assert (shift != 0) == centred


def test_steps_end_where_rows_have_moved_enough_and_go_on_from_there():
    p, ids = PENALTIES["l1"], np.arange(8)
    whole, parts, v = Model(), Model(), Model().v
    whole.steps(p, ids)
    first, ends = 0, []
    while first < 8:
        first = parts.steps(p, ids, first=first, most=0.0)[0]
        ends.append(first)
    assert np.array_equal(whole.v, parts.v)
    moves = np.flatnonzero(whole.v != v) + 1
    assert np.array_equal(ends, np.union1d(moves, [8]))  # after each move
    assert 0 < parts.steps(p, ids, most=1e-9)[0] <= 8


def test_no_step_is_longer_than_it_may_be():
    p, ids = PENALTIES["l1"], np.arange(8)
    model, v = Model(), Model().v
    model.steps(p, ids, far=0.01)
    assert np.abs(model.v - v).max() == pytest.approx(0.01)
    assert model.v == pytest.approx(plain(Model(), p, ids, far=0.01)[0], abs=1e-6)


def test_what_float_cannot_square_does_not_move():
    model = Model(wide=False, scale=1e25)
    model.steps(PENALTIES["l1"], np.arange(8))
    assert np.isfinite(model.v).all()
    assert np.isfinite(model.rows[:, 1]).all()


# ---- rounds -------------------------------------------------------------------------------------


def words(seed=0, n=200, d=300, **options):
    """Rare and frequent columns, some of them nearly alike."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 1 / np.arange(1, d + 1) ** 0.5)
    X[:, 1] = X[:, 0] * (1 + 0.01 * rng.standard_normal(n))
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    options.setdefault("penalty", "l1")
    options.setdefault("loss", "logistic")
    p = ERM(sp.csr_matrix(X), y, alpha=1.0, **options)
    return p.with_alpha(np.abs(X.T @ y).max() / 2 / n / 300)


def begun(p, tol=1e-3, method=COLUMNS):
    run = method.start(p, Start(), Target(tol), np.random.default_rng(0))
    run.begin(Budget(1))
    return run


def value(run):
    return run.at.value + run.penalty.times(run.theta).value(run.w)


def staged(p, tol=1e-3, method=COLUMNS):
    """A run after its stages, at theta = 1 with slopes of one point."""
    run = begun(p, tol, method)
    while run.theta > 1 or run.first.rough:
        run.round(*run.gap())
    return run


@pytest.mark.parametrize(
    "options",
    [{}, {"intercept": True}, {"loss": "squared_hinge"}, {"loss": "huber", "intercept": True},
     {"penalty": "elasticnet"}, {"penalty": pen.L1(np.linspace(0.5, 2.0, 300))},
     {"sample_weight": np.arange(200.0) % 4}],
    ids=lambda o: "-".join(o) or "l1",
)  # fmt: skip
def test_stages_bring_p_down_and_end_near_the_optimum(options):
    p = words(**options)
    if options.get("loss") == "squared_hinge":
        p = p.with_alpha(10 * p.alpha)  # with less of it Newton's steps stall
    run, values = begun(p), []
    best = solve(p, COLUMNS, tol=1e-9, max_epochs=10**5).primal
    meet = run._meet

    def watched(W, penalty):
        before = run.at.value + penalty.value(run.w)
        met = meet(W, penalty)
        values.append(run.at.value + penalty.value(run.w) - before)
        return met

    run._meet = watched
    while run.theta > 1 or run.first.rough:
        run.round(*run.gap())
    assert max(values) <= 1e-12
    assert value(run) <= 1.3 * best < 0.9 * run.losses.at(np.zeros(200)).value
    X = p.samples.stored
    assert run.at.z == pytest.approx(X @ run.w + run.b, abs=1e-5)
    assert run.slope == pytest.approx(-(X.T @ run.at.slope), abs=1e-6)
    r = solve(p, COLUMNS, tol=1e-6, max_epochs=10**5)
    assert r.converged
    assert r.primal <= best * (1 + 1e-6)


def test_a_stage_takes_no_pass_for_slopes_alone_and_no_gap():
    run = begun(words())
    passes, descend = [], run.descend
    run.descend = lambda: (passes.append(run.theta), descend())
    thetas = []
    while run.theta > 1 or run.first.rough:
        assert run.gap()[0] == INF
        thetas.append(run.theta)
        run.round(*run.gap())
    assert len(thetas) > 3
    assert passes == [1.0]
    assert thetas[-1] == 1
    assert run.gap()[0] < INF


def test_rows_are_computed_anew_as_often_as_they_move(monkeypatch):
    counts = []
    for move in (0.0, 0.3, INF):
        filled = []
        monkeypatch.setattr(
            rounds.first_sweeps, "fill", lambda *a, filled=filled: (filled.append(1), FILL(*a))
        )
        run = begun(words(), method=WorkingSet(SetTuning(few_rows=0, tall=INF, fresh_move=move)))
        for _ in range(4):
            run.round(*run.gap())
        counts.append(len(filled))
    assert counts[2] == 4
    assert counts[0] > counts[1] > counts[2]


def test_all_columns_are_swept_in_order_and_those_that_violate_in_random_order():
    run = begun(words())
    orders, meet = [], run._meet
    run._meet = lambda W, penalty: (orders.append(W), meet(W, penalty))[1]
    while run.theta > 1 or run.first.rough:
        stage, near = run.theta > 1, 0.5 * run.theta * run.penalty.a
        near = np.flatnonzero((np.abs(run.slope) > near) | (run.w != 0))
        orders.clear()
        run.round(*run.gap())
        if stage:
            assert len(orders) == 1
            assert np.array_equal(orders[0], near)
    sweeps = run.tuning.fresh_sweeps
    assert np.array_equal(orders[0], np.arange(run.w.size))
    for W in orders[1:sweeps]:
        assert np.array_equal(W, np.sort(W))
        assert W.size < run.w.size
    assert sweeps < len(orders) <= sweeps + run.tuning.fresh_mends
    for W in orders[sweeps:]:
        assert np.unique(W).size == W.size
    assert not np.array_equal(orders[sweeps], np.sort(orders[sweeps]))
    sizes = [W.size for W in orders[sweeps:]]
    assert len(sizes) > 1
    assert all(np.diff(sizes) < 0)  # only what still violated by much
    assert np.array_equal(solve(words(), COLUMNS).w, solve(words(), COLUMNS).w)


def test_sweeps_end_once_no_column_violates_by_much():
    p = words()
    far = p.with_alpha(0.99 * p.alpha * 300)  # hardly a column moves
    run, sweeps = begun(far), []
    meet = run._meet
    run._meet = lambda W, penalty: (sweeps.append(run.theta), meet(W, penalty))[1]
    run.theta = 1.0
    run.first.rough = True
    run.round(*run.gap())
    assert len(sweeps) == 1 < run.tuning.fresh_sweeps
    assert run._few(run.gap()[0], value(run)).size == 0


def test_few_columns_are_those_that_violate_by_much():
    run = staged(words(), 1e-3)
    gap, P = run.gap()
    start, tuning = run._packed.start, run.tuning
    lengths = np.diff(start)
    S = np.flatnonzero(run.w)
    run.now(slope=run.penalty.a[0] * np.sign(run.w))  # at rest
    assert run._few(gap, P).size == 0
    one = S[np.argmin(lengths[S])]
    run.slope[one] *= 1 + 1.1 * tuning.fresh_much
    assert np.array_equal(run._few(gap, P), [one])
    run.slope[one] *= (1 + 0.9 * tuning.fresh_much) / (1 + 1.1 * tuning.fresh_much)
    assert run._few(gap, P).size == 0
    # not if they are many: the support itself
    run.now(slope=2 * run.penalty.a[0] * np.sign(run.w))
    assert run._few(gap, P).size == 0
    # what a large tol does not ask for is no violation
    run.now(slope=run.penalty.a[0] * np.sign(run.w))
    run.slope[one] *= 1 + 2 * tuning.fresh_much
    assert run._few(gap, P).size == 1
    run._tol = 10.0
    assert run._few(gap, P).size == 0


def test_few_columns_are_mended_while_that_brings_the_gap_down():
    run = staged(words(), 1e-3)
    kinds, newton, mend = [], run._newton, run._mend
    run._newton = lambda *a: (kinds.append("newton"), newton(*a))[1]
    run._mend = lambda W, much: (kinds.append("mend"), mend(W, much))[1]
    S = np.flatnonzero(run.w)
    one = S[np.argmin(np.diff(run._packed.start)[S])]
    run._few = lambda gap, P: (
        np.array([one])
        if gap <= run.tuning.fresh_pays * run.first.mended
        else np.empty(0, np.int64)
    )
    run.round(1.0, value(run))
    run.round(0.7, value(run))  # it helped
    run.round(0.6, value(run))  # it did not
    run.round(0.6, value(run))
    assert kinds == ["mend", "mend", "newton", "mend"]
    del run._few
    run.first.mended, pays = 1.0, run.tuning.fresh_pays
    run.now(slope=run.penalty.a[0] * np.sign(run.w))
    run.slope[one] *= 2
    assert run._few(0.99 * pays, value(run)).size == 1
    assert run._few(1.01 * pays, value(run)).size == 0


def test_a_round_of_mending_does_not_use_up_patience():
    run = staged(words(), 1e-3)
    run._progress = Progress(idle=5)
    run._few = lambda gap, P: np.flatnonzero(run.w)[:2]
    run.round(1.0, value(run))
    assert run._progress.idle == 4
    assert not run.first.rough
    X = run.problem.samples.stored
    some = slice(None) if run.kept is None else run.kept
    assert run.slope[some] == pytest.approx(-(X.T @ run.at.slope)[some], abs=1e-6)


def test_a_budget_may_end_it_between_stages():
    p = words()
    for passes in (1, 2, 3):
        run = COLUMNS.start(p, Start(), Target(1e-6), np.random.default_rng(0))
        run.advance(Budget(passes))
        c = certify(p, run.point())
        assert c.gap >= 0
        run.seen(c)
    # and a path goes on from slopes that are rough
    run = begun(p)
    while run.theta > 1:
        run.round(*run.gap())
    assert run.first.rough
    other = p.with_alpha(0.8 * p.alpha)
    run = run.turn(other, Target(1e-7))
    run.advance(Budget(10**4))
    assert not run.first.rough
    assert not run.first.on
    alone = solve(other, COLUMNS, tol=1e-9, max_epochs=10**5)
    assert certify(other, run.point()).primal == pytest.approx(alone.primal, rel=1e-6)


def test_sweeps_are_for_a_start_at_zero_and_losses_that_are_no_squares():
    p = words()
    assert begun(p).first.on
    w = solve(p, COLUMNS, tol=1e-2).w
    assert not COLUMNS.start(p, Start(w=w), Target(), np.random.default_rng(0)).first.on
    assert not begun(words(loss="squared")).first.on


def test_a_path_is_that_of_single_problems():
    p = words()
    alphas = p.alpha * np.array([100.0, 30.0, 3.0])
    for r, alpha in zip(path(p, alphas, tol=1e-7, max_epochs=10**5), alphas, strict=True):
        alone = solve(p.with_alpha(alpha), COLUMNS, tol=1e-9, max_epochs=10**5)
        assert r.converged
        assert r.primal == pytest.approx(alone.primal, rel=2e-7)


def test_a_step_that_is_cut_lowers_the_trust():
    run = staged(words())
    S, before = np.flatnonzero(run.w), run.pace.trust
    run.move = lambda *a: 0.5
    run._meet(S, run.penalty.times(0.5))
    assert run.pace.trust == max(run.tuning.trusts[0], before / 2) < before


def test_a_factor_waits_until_the_rate_of_conjugate_gradients_is_known():
    run = staged(words())
    faces, size = run._faces, np.count_nonzero(run.w)
    nnz = run._entries(np.flatnonzero(run.w))
    faces._rate = 1e-6  # hopeless without a factor
    asked = []
    for _ in range(3):
        asked.append(faces._pays(size, nnz, 10.0))
        faces.learn(5, 5, 0.999999, 0)
    assert asked == [k >= run.tuning.factor_runs for k in range(3)]
    assert asked == [False, False, True]
