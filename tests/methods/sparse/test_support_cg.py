"""Conjugate gradients on a support by rows: against plain linear algebra."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.data import Sparse, views
from apcg.methods.base import Target
from apcg.methods.sparse import SetTuning, WorkingSet
from apcg.methods.sparse.columns import support_rows as by_rows
from apcg.methods.sparse.columns.columns import ColumnsRun
from apcg.methods.sparse.columns.support_cg import solve as solve_system
from apcg.methods.sparse.columns.support_rows import Faces, Support, Turn

RNG_SEED = 3


def columns(n=80, d=12, size=1.0):
    rng = np.random.default_rng(RNG_SEED)
    X = size * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    S = sp.csr_matrix(X)
    return X, Sparse(S.data, S.indices, S.indptr, d), rng


FREE = (np.full(1, -np.inf), np.full(1, np.inf))


def support(samples, ids):
    return Support(samples, ids, samples.view(views.columns))


@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("b", [0.0, 0.5])
def test_the_step_solves_the_system_of_any_support_among_the_columns(centred, b, size):
    X, samples, rng = columns(size=size)
    ids, bend = np.array([0, 2, 3, 5, 6, 8, 9, 11]), rng.uniform(0.5, 2, 80)
    rows = support(samples, ids)
    mean = X.T @ bend / math.sqrt(bend.sum()) if centred else np.empty(0)
    ridge = np.full(12, b * size**2)
    names, S = np.arange(12), np.array([2, 5, 6, 9])
    G = X.T @ (bend[:, None] * X) - (np.outer(mean, mean) if centred else 0.0)
    left, part = rng.standard_normal(4), mean[S] if centred else mean
    gram = Turn(rows, names, bend, (10, 20)).gram(S)

    def times(way):
        made = gram(way) + ridge[S] * way
        return made - part * (part @ way) if centred else made

    diagonal, enough = G.diagonal()[S] + ridge[S], 2 * np.abs(left).max()
    assert solve_system(times, diagonal, left.copy(), FREE, 30, 0.0, enough)[1] == 0
    step, _, remains = solve_system(times, diagonal, left.copy(), FREE, 30, 1e-9, 0.0)
    assert (G[np.ix_(S, S)] + np.diag(ridge[S])) @ step == pytest.approx(left, abs=1e-4)
    assert remains <= 1e-8


@pytest.mark.parametrize("near", [4, 1 << 16])
def test_positions_of_any_size_give_the_same_products(near, monkeypatch):
    monkeypatch.setattr(by_rows, "_NEAR", near)
    X, samples, rng = columns()
    bend, rows = rng.uniform(0.5, 2, 80), support(samples, np.arange(12))
    G = X.T @ (bend[:, None] * X)
    way, turn = rng.standard_normal(12), Turn(rows, np.arange(12), bend, (10, 20))
    assert turn.gram(np.arange(12))(way) == pytest.approx(G @ way, rel=1e-4, abs=1e-4)


def test_frequent_columns_come_first_and_no_column_need_have_entries():
    X, samples, _ = columns()
    rows = support(samples, np.arange(12))
    assert np.all(np.diff(np.count_nonzero(X, axis=0)[rows.ids]) <= 0)
    assert rows.covers(np.array([0, 11]))
    assert not support(samples, np.array([0, 1])).covers(np.array([1, 2]))
    empty = sp.csr_matrix((80, 12))
    none = support(Sparse(empty.data, empty.indices, empty.indptr, 12), np.arange(3))
    assert none.size == 3


def test_a_run_ends_where_it_leaves_its_room_but_is_looked_at_only_now_and_then():
    X, _, rng = columns()
    left, G = rng.standard_normal(12), X.T @ X
    room = np.full(12, -1e-9), np.full(12, 1e-9)

    def run(room, share, every):
        given = G.dot, G.diagonal(), left.copy(), room
        return solve_system(*given, 12, share, 0.0, every)

    for often, rarely in ((2, 2), (5, 5), (1, 11)):
        _, done, remains = run(room, 1e-9, (often, rarely))
        if often == rarely:
            assert done == rarely
        else:  # a digit
            assert 1 < done < rarely
            assert remains <= 0.1
        assert run(FREE, 0.0, (often, rarely))[1] == 12
    assert run(room, 1e-9, None)[1] > 11  # by columns it is not looked at


def turned(faces, digits, size=8):
    _, samples, _ = columns()
    names, packed = np.arange(12), samples.view(views.columns)
    nnz = float(np.diff(packed.start)[:size].sum())
    return faces.turn(names, names[:size], nnz, lambda ids: (names, packed), np.ones(1), digits)


def test_runs_are_long_once_the_support_is_settled():
    _, samples, _ = columns()
    faces = Faces(samples, SetTuning())
    turned(faces, 1e3)
    assert not faces.settled
    turned(faces, 1e3)
    assert faces.settled
    turned(faces, 1e3, 9)
    assert not faces.settled


def test_rows_are_gathered_once_a_support_is_nearly_known():
    _, samples, _ = columns()
    faces = Faces(samples, SetTuning(by_rows=0.1))
    assert turned(faces, 1e3) is None  # no rate is known
    faces.learn(10, 0.1, 1)
    assert turned(faces, 1e3) is None  # too many were cut
    faces.learn(10, 0.1, 0)
    assert turned(faces, 1e-9) is None  # it is nearly done
    assert turned(faces, 1e3) is not None
    assert faces.ready
    rows = faces._rows
    assert turned(faces, 1e-9, 12) is not None  # what was next to it is there too
    assert faces._rows is rows
    faces.begin()
    assert not faces.ready
    assert turned(faces, 1e3) is None  # with another alpha it is not known


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"penalty": "elasticnet"}], ids=str)
def test_answers_are_the_same_by_rows(loss, options):
    rng = np.random.default_rng(5)
    X = sp.random(300, 120, 0.1, format="csr", random_state=1)
    z = X @ rng.standard_normal(120) + 0.1 * rng.standard_normal(300)
    y = np.sign(z) if loss == "logistic" else z + 1.0
    problem = ERM(X, y, loss, alpha=1e-3, **{"penalty": "l1", **options})
    late = {"by_rows": 0.0, "few_cut": 1.0}
    tuning = SetTuning(few_rows=0, tall=np.inf, **late)
    ours = solve(problem, WorkingSet(tuning), tol=1e-8, random_state=0)
    plain = SetTuning(few_rows=0, tall=np.inf, by_rows=np.inf)
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
        shares.append(run._needed(1.0, v) * np.abs(v).sum() / 1e-6)
    assert 0.5 < shares[0] < 1
    assert max(shares[1:]) < 0.5


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_runs_by_rows_are_long_with_l1_and_have_fewer_sweeps_before_them(penalty):
    X = sp.random(60, 30, 0.3, format="csr", random_state=2)
    problem, tuning = ERM(X, np.ones(60), "squared", penalty, 1e-3), SetTuning()
    run, asked = ColumnsRun(problem, Start(), Target(1e-6), tuning), []

    class Model:
        support, done, left, cost = np.arange(3), 1, 0.5, np.ones(30)

        def face(self, most, share, least, turn):
            asked.append((most, share))
            return 3, 0

    run._faces.turn = lambda *given: asked.append(given[-1]) or "a turn"
    run._faces.settled = True
    run._face(np.arange(30), Model(), np.ones(1), math.e**2, 1.0)
    ends = (1.0, tuning.residual) if penalty == "elasticnet" else (2.0, tuning.rest[0])
    assert asked == [pytest.approx(ends[0]), (tuning.long_run, ends[1])]
    assert run._more_sweeps == tuning.more_sweeps
    run._faces.ready = True
    assert run._more_sweeps == tuning.late_sweeps < tuning.more_sweeps
