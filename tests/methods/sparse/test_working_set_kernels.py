"""The inner loops of the method of working sets, against plain linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg._kernels.sparse import columns, lasso
from apcg.data.columns import Packed
from apcg.methods.sparse import SetTuning
from apcg.methods.sparse.columns.support_cg import ColumnModel
from apcg.methods.sparse.gram import GramModel
from apcg.methods.sparse.penalty import ScaledPenalty

INF = np.inf


def penalty(a, b=0.0, lower=-INF, upper=INF):
    return ScaledPenalty(*(np.atleast_1d(np.asarray(v, float)) for v in (a, b, lower, upper)))


def least_squares(seed=0, n=30, d=8):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    return A, A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)


def value(A, t, v, p):
    return 0.5 * np.sum((t - A @ v) ** 2) + p.value(v)


def at_rest(A, t, v, p):
    return p.violations(v, A.T @ (t - A @ v)).max()


PENALTIES = {
    "l1": penalty(2.0),
    "each": penalty(np.linspace(0.5, 4.0, 8)),
    "elastic": penalty(2.0, 0.7),
    "positive": penalty(2.0, 0.0, 0.0),
    "bounds": penalty(1.0, 0.0, np.full(8, -0.2), np.full(8, 0.3)),
    "above": penalty(1.0, 0.0, np.full(8, 0.1), np.full(8, 0.3)),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_sweeps_bring_a_gram_model_to_rest(name):
    A, t = least_squares()
    p, v = PENALTIES[name], PENALTIES[name].start(np.zeros(8))
    G, g = A.T @ A, A.T @ (t - A @ v)
    sweeps, worst = lasso.gram_sweeps(G, g, v, *p.parts, 2000, 1e-12, INF, 0.0, 0.0)
    assert sweeps < 2000
    assert worst <= 1e-12
    assert g == pytest.approx(A.T @ (t - A @ v), abs=1e-9)  # kept along
    assert at_rest(A, t, v, p) <= 1e-9


def test_sweeps_end_by_either_pair_of_bounds():
    A, t = least_squares()
    p = penalty(1.0)

    def run(*bounds):
        v = np.zeros(8)
        return (*lasso.gram_sweeps(A.T @ A, A.T @ t, v, *p.parts, 500, *bounds), np.abs(v).sum())

    sweeps, worst, size = run(1e-3, INF, 0.0, 0.0)
    assert worst <= 1e-3
    assert run(1e-3, 0.1 * worst * size, 0.0, 0.0)[0] > sweeps  # both are asked for
    assert run(0.0, 0.0, 1e-3, INF)[0] == sweeps
    assert run(0.0, 0.0, 1e-3, 0.1 * worst * size)[0] > sweeps


@pytest.mark.parametrize("name", PENALTIES)
def test_a_newton_step_is_exact_on_its_support_or_brings_the_objective_down(name):
    p = PENALTIES[name]
    whole = 0
    for seed in range(30):
        A, t = least_squares(seed)
        v = p.start(np.zeros(8))
        G, g = A.T @ A, A.T @ (t - A @ v)
        lasso.gram_sweeps(G, g, v, *p.parts, 1 + seed % 3, 0.0, 0.0, 0.0, 0.0)
        before, S = value(A, t, v, p), np.flatnonzero(p.free(v))
        room = np.empty((8, 8)), np.empty(8, np.intp), np.empty((4, 8))
        how = lasso.gram_newton(G, g, v, *p.parts, *room, np.array([1 << 40]))
        assert value(A, t, v, p) <= before + 1e-12
        assert g == pytest.approx(A.T @ (t - A @ v), abs=1e-9)
        assert np.all((v >= p.lower) & (v <= p.upper))
        assert (how == 0) == (S.size == 0)
        if how == 1:
            whole += 1
            assert p.on(S).violations(v[S], g[S]).max() <= 1e-9
    assert whole > 5 or name in ("bounds", "above")


def test_columns_that_are_alike_do_not_stop_a_newton_step():
    A, t = least_squares()
    A = np.hstack([A, A])
    p, v = penalty(0.5), np.full(16, 0.1)
    G, g = A.T @ A, A.T @ (t - A @ v)
    before = value(A, t, v, p)
    room = np.empty((16, 16)), np.empty(16, np.intp), np.empty((4, 16))
    assert lasso.gram_newton(G, g, v, *p.parts, *room, np.array([1 << 40])) > 0
    assert value(A, t, v, p) < before


def test_a_gram_model_is_solved_where_sweeps_alone_are_slow():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 1)) + 0.01 * rng.standard_normal((60, 12))  # nearly alike
    t = A @ rng.standard_normal(12) + rng.standard_normal(60)
    p, slow = penalty(1e-4), np.zeros(12)
    _, worst = lasso.gram_sweeps(A.T @ A, A.T @ t, slow, *p.parts, 900, 1e-12, INF, 0.0, 0.0)
    assert worst > 1e-6
    model = GramModel(A.T @ A, A.T @ t, np.zeros(12), p, SetTuning())
    model.solve(1e-10, INF, 0.0, 0.0)
    assert at_rest(A, t, model.v, p) <= 1e-7


# ---- sparse columns -----------------------------------------------------------------------------


def packed(A):
    S = sp.csr_matrix(A)
    return Packed.of((S.data, S.indices, S.indptr), A.shape[1])


def gram_path(G, q, total, alphas, p, w=None, fine=1e-9, share=1e-12, turns=(5, 5, 100)):
    """How many answers there are, they, and the last slopes."""
    m = q.size
    w = np.zeros(m) if w is None else w.copy()
    g, out = q - G @ w, np.full((len(alphas), m), np.nan)
    room = np.empty((m, m)), np.empty(m, np.intp), np.empty((8, m))
    alphas = np.asarray(alphas, float)
    done = lasso.gram_path(G, q, total, g, w, *p.parts, alphas, fine, share, *turns, *room, out)
    return done, out, g


@pytest.mark.parametrize("name", PENALTIES)
def test_a_path_on_a_gram_matrix_is_at_rest_at_each_alpha(name):
    A, t = least_squares()
    p, alphas = PENALTIES[name], [2.0, 1.0, 0.3, 0.1]
    done, W, g = gram_path(A.T @ A, A.T @ t, t @ t, alphas, p, p.start(np.zeros(8)))
    assert done == 4
    np.testing.assert_allclose(g, A.T @ (t - A @ W[-1]), atol=1e-11)
    for alpha, v in zip(alphas, W, strict=True):
        scaled = ScaledPenalty(alpha * p.a, alpha * p.b, p.lower, p.upper)
        assert at_rest(A, t, v, scaled) <= 1e-9 * alpha
        assert ((v >= p.lower) & (v <= p.upper)).all()


def test_a_path_ends_where_an_alpha_does_not_come_to_an_end():
    """By the violation relative to alpha, and by the gain relative to the value."""
    G, q, p = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.95]), penalty(1.0)
    alphas = [1.5, 0.5, 0.01]  # zero, one weight, two of columns that are alike
    done, W, _ = gram_path(G, q, 1.0, alphas, p, turns=(3, 0, 1))
    assert done == 2
    np.testing.assert_allclose(W[:2], [[0.0, 0.0], [0.5, 0.0]])
    assert np.isnan(W[2]).all()
    assert gram_path(G, q, 1.0, alphas, p, fine=100.0, share=1.0, turns=(3, 0, 1))[0] == 3
    assert gram_path(G, q, 1.0, alphas, p, fine=100.0, share=1e-12, turns=(3, 0, 1))[0] == 2
    # twice the value at 0 is `total`: with more of it a share is more
    assert gram_path(G, q, 1e12, alphas, p, fine=100.0, share=1e-12, turns=(3, 0, 1))[0] == 3


def test_a_path_goes_on_where_the_last_two_answers_point():
    """With a share of 1 an alpha gets one sweep: that leaves less than from the last answer."""
    p, alphas = penalty(1.0, 1.0), [1.0, 0.9, 0.81]
    at = penalty(0.81, 0.81)
    for seed in range(5):
        A, t = least_squares(seed, 30, 40)
        G, q = A.T @ A / 30, A.T @ t / 30
        given = {"p": p, "share": 1.0, "fine": INF, "turns": (100, 0, 1)}
        W = gram_path(G, q, t @ t / 30, alphas, **given)[1]
        alone, g = W[1].copy(), q - G @ W[1]
        lasso.gram_sweeps(G, g, alone, *at.parts, 1, 0.0, 0.0, 0.0, 0.0)
        best = gram_path(G, q, t @ t / 30, [0.81], p, turns=(10**4, 0, 1))[1][0]
        left = [0.5 * w @ G @ w - q @ w + at.value(w) for w in (W[2], alone, best)]
        assert left[0] - left[2] < 0.8 * (left[1] - left[2])


def test_but_not_far_beyond_them():
    """Two alphas that differ by a rounding point anywhere."""
    A, t = least_squares(0, 30, 40)
    _, W, g = gram_path(A.T @ A, A.T @ t, t @ t, [1.0, 1.0 - 1e-12, 0.1], penalty(1.0, 1.0))
    np.testing.assert_allclose(g, A.T @ (t - A @ W[2]), atol=1e-11)


def test_a_large_support_gets_as_many_sweeps_as_cost_a_factor():
    """60 of 60 columns: while ten are predicted to do. With 10 of 10 it is one, and not enough."""
    for size, ends in ((60, 1), (10, 0)):
        G, q = np.eye(size) + 1.0 / size, np.linspace(1.0, 2.0, size)
        given = {"fine": 1e-4, "share": 1.0, "turns": (1, 0, 1)}
        done = gram_path(G, q, 1.0, [0.1], penalty(1.0), np.ones(size), **given)[0]
        assert done == ends


def test_a_path_begins_with_newton_where_sweeps_were_not_enough_before():
    """No turn has Newton steps here, so the second alpha ends by that one alone."""
    G, q, p = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.98]), penalty([1.0, 0.5])
    near = np.linalg.solve(G, q - 0.1 * p.a) + 1e-6 * np.array([1.0, -1.0])
    given = {"fine": 1e-9, "share": 1e-9, "turns": (30, 0, 2)}
    done, W, _ = gram_path(G, q, 1.0, [0.1, 0.05], p, near, **given)
    assert done == 2
    np.testing.assert_allclose(W[1], np.linalg.solve(G, q - 0.05 * p.a), rtol=1e-6)
    assert gram_path(G, q, 1.0, [0.05], p, W[0], **given)[0] == 0  # the first: none was before
    assert gram_path(G, q, 1.0, [0.1], p, near, **given | {"turns": (30, 0, 1)})[0] == 0


@pytest.mark.parametrize("size", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_packed_columns_are_those_of_the_matrix(size, value_type, index_type):
    if value_type is np.float32 and size != 1.0:
        size = size**0.3
    A, t = least_squares(d=9)
    A[:, 4] = 0.0
    A *= size
    S = sp.csr_matrix(A.astype(value_type))
    arrays = S.data, S.indices.astype(index_type), S.indptr.astype(index_type)
    made, rel = Packed.of(arrays, 9), 1e-6
    assert made.columns.entries.size == S.nnz * columns.ENTRY
    out = made.dots(t)
    assert out == pytest.approx(A.T @ t, rel=rel, abs=1e-6 * size)
    assert np.array_equal(made.dots(t, np.array([1, 7])), out[[1, 7]])
    both = made.dots_with(np.array([2 * t, t]), np.array([1, 7]), np.array([1, 0]))
    assert both == pytest.approx([out[1], 2 * out[7]], rel=1e-12)
    assert made.most == pytest.approx(np.abs(A).max(0), rel=rel)
    ids, bend = np.array([8, 0, 4]), np.linspace(0.5, 2, 30)
    squares, sums = made.bends(ids, bend)
    assert squares == pytest.approx(bend @ (A[:, ids] * A[:, ids]), rel=rel)
    assert sums == pytest.approx(bend @ A[:, ids], rel=rel, abs=1e-6 * size)
    z, Z = np.ones(30), np.zeros((2, 30))
    made.add(ids, np.array([1.0, -2.0, 3.0]) / size, z)
    assert z == pytest.approx(1 + A[:, ids] @ [1.0, -2.0, 3.0] / size, abs=1e-5)
    made.add_to(np.array([8, 4]), np.array([1, 0]), np.array([1.0, 3.0]) / size, Z)
    assert Z[0] == pytest.approx(3 * A[:, 4] / size, abs=1e-5)
    assert Z[1] == pytest.approx(A[:, 8] / size, abs=1e-5)


def exact(A):
    """With values that float32 has."""
    return A.astype(np.float32).astype(float)


def column_model(A, t, p, v, *, centred=False, bend=None):
    """On the columns of A, from v."""
    D = np.ones(1) if bend is None else bend
    each, n, made = np.broadcast_to(D, len(A)).copy(), len(A), packed(A)
    r, ids = t - A @ v, np.arange(A.shape[1])
    r = each * (r - (each @ r / each.sum() if centred else 0.0))
    bends = made.bends(ids, each)
    return ColumnModel(made, ids, v, A.T @ r, p, D, n, bends, centred=centred)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_sweeps_and_gradients_bring_columns_to_rest(name, centred, weighted):
    A, t = least_squares()
    A, t, p = exact(A), t + 5.0, PENALTIES[name]
    begun, bend = p.start(np.zeros(8)), np.ones(30)
    if weighted:
        bend = np.linspace(0.0, 2.0, 30)
    model = column_model(A, t, p, begun, centred=centred, bend=bend if weighted else None)
    whole = A
    if centred:
        A, t = A - bend @ A / bend.sum(), t - bend @ t / bend.sum()
    for _ in range(60):
        model.positions = np.arange(8)
        model.sweep()
        model.face(20, 1e-12)
        assert model.u == pytest.approx(bend * (whole @ (model.v - begun)), abs=1e-9)
    assert model.way()[0] == pytest.approx(A @ (model.v - begun), abs=1e-9)
    root = np.sqrt(bend)
    assert at_rest(root[:, None] * A, root * t, model.v, p) <= 1e-8


def test_float32_moves_no_slope_that_a_model_begins_with():
    """At the minimiser nothing moves, although columns are rounded."""
    A, t = least_squares()
    p = penalty(1.0)
    G, g, v = A.T @ A, A.T @ t, np.zeros(8)
    lasso.gram_sweeps(G, g, v, *p.parts, 5000, 1e-14, INF, 0.0, 0.0)
    model = column_model(A, t, p, v)
    assert model.sweep() <= 1e-12
    assert packed(A).dots(t - A @ v) != pytest.approx(A.T @ (t - A @ v), abs=1e-12)


def test_gradients_solve_the_face_in_as_many_steps_as_it_has_columns():
    A, t = exact(least_squares()[0]), least_squares()[1]
    p, v = penalty(1e-3, 0.3), np.linalg.lstsq(*least_squares(), rcond=None)[0]
    model = column_model(A, t, p, v.copy())
    size, cut = model.face(8, 1e-14)
    assert (size, cut) == (8, 0)
    assert at_rest(A, t, model.v, p) <= 1e-10


def test_a_face_never_raises_the_objective():
    for seed in range(60):
        A, t = least_squares(seed)
        A[:, 1] = A[:, 0] + 1e-3 * A[:, 2]  # steps that cross zero and cannot be cut
        rng = np.random.default_rng(seed)
        p, v = penalty(rng.uniform(0.01, 3)), rng.standard_normal(8) * 10 ** rng.uniform(-3, 0)
        model = column_model(A, t, p, v.copy())
        before = value(A, t, v, p)
        model.face(30, 1e-10)
        assert value(A, t, model.v, p) <= before * (1 + 1e-12)
        assert model.u == pytest.approx(A @ (model.v - v), abs=1e-5)


def test_a_step_of_which_no_share_is_good_ends_where_the_first_column_is_cut():
    """One of two columns that are nearly alike would go far beyond zero, the other as far up."""
    for seed in range(40):
        A, t = least_squares(seed)
        A[:, 1] = A[:, 0] + 1e-5 * A[:, 2]
        A = exact(A)
        p, v = penalty(1e-6), np.full(8, 0.01)
        model = column_model(A, t, p, v)
        size, cut = model.face(30, 1e-12)
        fallen = value(A, t, v, p) - value(A, t, model.v, p)
        assert cut < size == 8
        assert fallen > 0


def test_a_sweep_keeps_what_is_not_zero_or_moved():
    A, t = least_squares()
    p = penalty(float(np.sort(np.abs(A.T @ t))[-3]))  # two move at most, at first
    model = column_model(A, t, p, np.zeros(8))
    worst = model.sweep()
    assert worst > 0
    assert set(np.flatnonzero(model.v)) <= set(model.positions)
    assert model.positions.size < 8
