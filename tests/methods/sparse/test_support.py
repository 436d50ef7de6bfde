"""Conjugate gradients on a support by rows, and with a factor: against plain linear algebra."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.data import Sparse
from apcg.methods.base import Target
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.columns import support_rows as by_rows
from apcg.methods.sparse.columns.columns import ColumnsRun
from apcg.methods.sparse.columns.support_rows import Faces, Preconditioner, Support, Turn

RNG_SEED = 3


def columns(n=80, d=12, size=1.0):
    rng = np.random.default_rng(RNG_SEED)
    X = size * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    S = sp.csr_matrix(X)
    return X, Sparse(S.data, S.indices, S.indptr, d), rng


FREE = (np.full(1, -np.inf), np.full(1, np.inf))


def gram(rows, bend, share=0.0):
    """A'diag(bend)A by the positions of a support."""
    made, most = rows.gram(bend, share)
    made *= most * rows.largest**2
    return np.triu(made) + np.triu(made, 1).T


def factor_of(rows, bend, b, mean):
    """As `Faces` makes it; b and mean by the columns of X."""
    made, most = rows.gram(bend, 0.0)
    mean = mean[rows.ids] / (rows.largest * math.sqrt(most)) if mean.size else mean
    return Preconditioner(rows.ids, made, b[rows.ids] / (rows.largest**2 * most), mean)


@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("b", [0.0, 0.5])
def test_the_step_solves_the_system_of_any_support_among_the_columns(factored, centred, b, size):
    X, samples, rng = columns(size=size)
    ids, bend = np.array([0, 2, 3, 5, 6, 8, 9, 11]), rng.uniform(0.5, 2, 80)
    rows = Support(samples, ids)
    mean = X.T @ bend / math.sqrt(bend.sum()) if centred else np.empty(0)
    ridge = np.full(12, b * size**2)
    factor = factor_of(rows, bend, ridge, mean) if factored else None
    names, S = np.arange(12), np.array([2, 5, 6, 9])
    G = X.T @ (bend[:, None] * X) - (np.outer(mean, mean) if centred else 0.0)
    left, part = rng.standard_normal(4), mean[S] if centred else mean
    squares = G.diagonal()[S]
    turn = Turn(rows, factor, names, bend, (10, 20))
    step, _, remains = turn.solve(S, left, squares, ridge[S], part, FREE, 30, 1e-9, 0.0)
    assert (G[np.ix_(S, S)] + np.diag(ridge[S])) @ step == pytest.approx(left, abs=1e-4)
    assert remains <= 1e-8
    if factored:  # and with a factor nearly at once
        assert turn.solve(S, left, squares, ridge[S], part, FREE, 2, 0.0, 0.0)[2] < 1e-3
    enough = 2 * np.abs(left).max()
    assert turn.solve(S, left, squares, ridge[S], part, FREE, 30, 0.0, enough)[1] == 0


@pytest.mark.parametrize("near", [4, 1 << 16])
def test_positions_of_any_size_give_the_same_products(near, monkeypatch):
    monkeypatch.setattr(by_rows, "_NEAR", near)
    X, samples, rng = columns()
    bend, rows = rng.uniform(0.5, 2, 80), Support(samples, np.arange(12))
    G = X.T @ (bend[:, None] * X)
    assert gram(rows, bend) == pytest.approx(G[np.ix_(rows.ids, rows.ids)], abs=1e-3)
    left, turn = rng.standard_normal(12), Turn(rows, None, np.arange(12), bend, (10, 20))
    args = np.arange(12), left, G.diagonal(), np.zeros(12), np.empty(0), FREE
    assert G @ turn.solve(*args, 60, 1e-9, 0.0)[0] == pytest.approx(left, abs=1e-4)


def test_frequent_columns_come_first_and_no_column_need_have_entries():
    X, samples, _ = columns()
    rows = Support(samples, np.arange(12))
    assert np.all(np.diff(np.count_nonzero(X, axis=0)[rows.ids]) <= 0)
    assert np.array_equal(Support(samples, np.arange(12), in_order=True).ids, np.arange(12))
    assert rows.covers(np.array([0, 11]))
    assert not Support(samples, np.array([0, 1])).covers(np.array([1, 2]))
    empty = sp.csr_matrix((80, 12))
    none = Support(Sparse(empty.data, empty.indices, empty.indptr, 12), np.arange(3))
    assert not gram(none, np.ones(80)).any()


def test_a_run_ends_where_it_leaves_its_room_but_is_looked_at_only_now_and_then():
    X, samples, rng = columns()
    left, G, S = rng.standard_normal(12), X.T @ X, np.arange(12)
    room = np.full(12, -1e-9), np.full(12, 1e-9)
    args = S, left, G.diagonal(), np.zeros(12), np.empty(0)
    for often, rarely in ((2, 2), (5, 5), (1, 11)):
        turn = Turn(Support(samples, S), None, S, np.ones(1), (often, rarely))
        _, done, remains = turn.solve(*args, room, 12, 1e-9, 0.0)
        if often == rarely:
            assert done == rarely
        else:  # a digit
            assert 1 < done < rarely
            assert remains <= 0.1
        assert turn.solve(*args, FREE, 12, 0.0, 0.0)[1] == 12


def test_a_factor_serves_with_columns_that_it_does_not_know():
    X, samples, rng = columns()
    bend, all_ids = np.ones(1), np.arange(12)
    factor = factor_of(Support(samples, np.arange(9)), bend, np.zeros(12), np.empty(0))
    left, G = rng.standard_normal(12), X.T @ X
    turn = Turn(Support(samples, all_ids), factor, all_ids, bend, (10, 20))
    args = all_ids, left, G.diagonal(), np.zeros(12), np.empty(0), FREE
    assert G @ turn.solve(*args, 40, 1e-9, 0.0)[0] == pytest.approx(left, abs=1e-4)


def test_rows_of_little_curvature_are_left_out_of_a_gram_matrix():
    X, samples, _ = columns()
    bend = np.where(np.arange(80) < 50, 1.0, 0.01)
    rows = Support(samples, np.arange(12))
    assert gram(rows, bend, 0.1) == pytest.approx(
        (X[:50].T @ X[:50])[:, rows.ids][rows.ids], abs=1e-4
    )


def turned(faces, digits, size=8):
    names = np.arange(12)
    return faces.turn(
        names, names[:size], lambda few: names[: 10 if few else 12], np.ones(1), np.zeros(1), digits
    )


def test_a_factor_is_made_where_it_is_predicted_to_pay_and_dropped_where_it_does_not_help():
    _, samples, _ = columns()
    kind = {"exact": True, "intercept": False}
    faces = Faces(samples, SetTuning(by_rows=math.inf), **kind)
    assert turned(faces, 1e3) is None  # no rate is known
    faces.learn(10, 10, 0.1, 0)
    assert turned(faces, 1e3) is None  # one run does not tell
    faces.learn(10, 10, 0.1, 0)
    assert turned(faces, 1.0) is None  # little is left to do
    assert turned(faces, 1e3) is not None
    assert faces.factor is not None
    faces.learn(5, 20, 1e-4, 0)
    assert faces.factor is not None
    faces.learn(20, 20, 0.5, 0)
    assert faces.factor is None
    wide = Faces(samples, SetTuning(by_rows=math.inf, widest=7), **kind)
    turned(wide, 1e3)
    for _ in range(2):
        wide.learn(10, 10, 0.1, 0)
    assert turned(wide, 1e3) is None


def test_a_factor_is_worth_more_where_other_models_follow():
    _, samples, _ = columns()
    made = []
    for exact in (True, False):
        faces = Faces(samples, SetTuning(by_rows=math.inf), exact=exact, intercept=False)
        turned(faces, 1e3)
        for _ in range(2):
            faces.learn(10, 10, 0.1, 0)
        made.append(next(d for d in np.geomspace(1, 1e3, 200) if turned(faces, d) is not None))
    assert made[0] > 1.05 * made[1]


def test_runs_are_long_once_the_support_is_settled():
    _, samples, _ = columns()
    faces = Faces(samples, SetTuning(), exact=True, intercept=False)
    turned(faces, 1e3)
    assert not faces.settled
    turned(faces, 1e3)
    assert faces.settled
    turned(faces, 1e3, 9)
    assert not faces.settled


def test_rows_are_gathered_once_a_support_is_nearly_known():
    _, samples, _ = columns()
    faces = Faces(samples, SetTuning(by_rows=0.1, factors=0), exact=True, intercept=False)
    assert turned(faces, 1e3) is None  # no rate is known
    faces.learn(10, 10, 0.1, 1)
    assert turned(faces, 1e3) is None  # too many were cut
    faces.learn(10, 10, 0.1, 0)
    assert turned(faces, 1e-9) is None  # it is nearly done
    assert turned(faces, 1e3) is not None
    assert faces.ready
    assert faces.factor is None
    rows = faces._rows
    assert turned(faces, 1e-9, 12) is not None  # what was next to it is there too
    assert faces._rows is rows
    faces.begin()
    assert not faces.ready
    assert turned(faces, 1e3) is None  # with another alpha it is not known


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"penalty": "elasticnet"}], ids=str)
@pytest.mark.parametrize("factors", [0, 5])
def test_answers_are_the_same_by_rows_and_with_factors(loss, options, factors):
    rng = np.random.default_rng(5)
    X = sp.random(300, 120, 0.1, format="csr", random_state=1)
    z = X @ rng.standard_normal(120) + 0.1 * rng.standard_normal(300)
    y = np.sign(z) if loss == "logistic" else z + 1.0
    problem = ERM(X, y, loss, alpha=1e-3, **{"penalty": "l1", **options})
    free = (0.0, (0.0, 0.0), 0.0, 0.0, 0.0)
    late = {"by_rows": 0.0, "few_cut": 1.0}
    tuning = SetTuning(few_rows=0, tall=np.inf, factors=factors, factor_costs=free, **late)
    ours = solve(problem, WorkingSet(tuning), tol=1e-8, random_state=0)
    plain = SetTuning(few_rows=0, tall=np.inf, by_rows=np.inf, factors=0)
    other = solve(problem, WorkingSet(plain), tol=1e-8, random_state=0)
    assert ours.gap <= 1e-8 * ours.primal
    assert ours.primal == pytest.approx(other.primal, rel=2e-8)


def test_a_model_is_solved_to_what_the_certificate_needs():
    """Of |v|_1 times the violation: nearly all with L1 and the squared loss, less for others."""
    rng = np.random.default_rng(7)
    X = sp.random(60, 30, 0.3, format="csr", random_state=2)
    y = np.sign(rng.standard_normal(60))
    shares = []
    for loss, penalty in (("squared", "l1"), ("squared", "elasticnet"), ("logistic", "l1")):
        problem = ERM(X, y, loss, penalty, 1e-3)
        run = ColumnsRun(problem, Start(), Target(1e-6), SetTuning())
        v = 100 * rng.standard_normal(30)
        shares.append(run._needed(1.0, v) * np.abs(v).sum() / (60 * 1e-6))
    assert 0.5 < shares[0] < 1
    assert max(shares[1:]) < 0.5


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_runs_by_rows_are_long_with_l1_and_have_fewer_sweeps_before_them(penalty):
    X = sp.random(60, 30, 0.3, format="csr", random_state=2)
    problem, tuning = ERM(X, np.ones(60), "squared", penalty, 1e-3), SetTuning()
    run, asked = ColumnsRun(problem, Start(), Target(1e-6), tuning), []

    class Model:
        support, done, left = np.arange(3), 1, 0.5

        def face(self, most, share, least, turn):
            asked.append((most, share))
            return 3, 0

    run._faces.turn = lambda *given: asked.append(given[-1]) or "a turn"
    run._faces.settled = True
    run._face(np.arange(30), Model(), np.ones(1), np.zeros(1), math.e**2, 1.0)
    ends = (1.0, tuning.residual) if penalty == "elasticnet" else (2.0, tuning.rest[0])
    assert asked == [pytest.approx(ends[0]), (tuning.long_run, ends[1])]
    assert run._more_sweeps == tuning.more_sweeps
    run._faces.ready = True
    assert run._more_sweeps == tuning.late_sweeps < tuning.more_sweeps
