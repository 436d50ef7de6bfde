"""Interior points with an L1 part: answers, zeros, equations, and when `auto` takes them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from scipy.optimize import linprog

from apcg import ERM, APCGClassifier, losses, solve
from apcg.certify.certificate import certify
from apcg.certify.points import Start
from apcg.cli.info import auto_takes
from apcg.data import by_row
from apcg.methods.base import Budget, Target, unmet
from apcg.methods.interior.interior_l1 import InteriorL1, InteriorL1Run, InteriorL1Tuning, _moved
from apcg.methods.interior.kkt import KKTTuning, Saddle
from apcg.methods.interior.pieces import Pieces
from apcg.methods.plan.plan import Auto
from apcg.penalties import Box, ElasticNet
from apcg.problems import costs


class Flipped(losses.Loss):
    """max(0, 1 + m) and the like: dual variables in [-1, 0]."""

    name, margin, domain = "flipped", True, (-1.0, 0.0)

    @property
    def theta(self):
        return -1.0, 0.0, self.gamma, *self.domain


class Uneven(losses.Loss):
    """Dual variables in [-0.5, 2], with a kink of phi* at 0 and a square."""

    name, margin, gamma, domain = "uneven", False, 0.3, (-0.5, 2.0)

    @property
    def theta(self):
        return 0.0, 0.2, self.gamma, *self.domain


LOSSES = [
    losses.Hinge(), losses.SmoothedHinge(), losses.SmoothedHinge(0.01), losses.SquaredHinge(),
    losses.Huber(), losses.EpsilonInsensitive(0.1), losses.SquaredEpsilonInsensitive(0.1), Uneven(),
]  # fmt: skip


def data(n, d, seed=0, margin=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X[:, : min(d, 5)].sum(axis=1) + rng.standard_normal(n)
    return X, np.where(z > 0, 1.0, -1.0) if margin else z


def by_linear_program(X, y, loss, alpha, *, intercept, s=None):
    """P* and w by HiGHS: variables w+, w-, b+, b-, xi."""
    n, d = X.shape
    s = np.ones(n) if s is None else s * n / s.sum()
    free, one = float(intercept) * np.ones((n, 1)), np.eye(n)
    c = np.concatenate([np.full(2 * d, alpha), [0, 0], s / n])
    if loss.margin:
        Z = y[:, None] * X
        A, b = np.hstack([-Z, Z, -y[:, None] * free, y[:, None] * free, -one]), -np.ones(n)
    else:
        epsilon = loss.theta[1]
        A = np.vstack(
            [
                np.hstack([-X, X, -free, free, -one]),
                np.hstack([X, -X, free, -free, -one]),
            ]
        )
        b = np.concatenate([epsilon - y, epsilon + y])
    found = linprog(c, A, b, method="highs")
    return found.fun, found.x[:d] - found.x[d : 2 * d]


@pytest.mark.parametrize(
    ("loss", "shape", "alpha", "intercept"),
    [
        (loss, shape, alpha, intercept)
        for loss in (losses.Hinge(), losses.EpsilonInsensitive(0.1))
        for shape, alpha in (((60, 15), 0.02), ((30, 80), 0.05), ((40, 40), 1e-3))
        for intercept in (False, True)
    ],
)
def test_l1_is_a_linear_program(loss, shape, alpha, intercept):
    X, y = data(*shape, margin=loss.margin)
    best, w = by_linear_program(X, y, loss, alpha, intercept=intercept)
    r = solve(ERM(X, y, loss, "l1", alpha, intercept=intercept), tol=1e-8)
    assert r.converged
    assert r.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= r.primal <= best * (1 + 2e-8)
    assert np.array_equal(r.w != 0, np.abs(w) > 1e-9)  # the zeros are exact


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_its_dual_points_are_feasible(loss):
    """A certificate could be made from w alone: x must be as good without that."""
    X, y = data(25, 60, margin=loss.margin)
    p = ERM(X, y, loss, "l1", 0.1)
    run = InteriorL1().start(p, Start(), Target(1e-8, 1000), np.random.default_rng(0))
    for _ in range(30):
        run.advance(Budget(1))
        point = run.point()
        assert p.g.excess(p.v_of(point.x)) <= 1
    assert p.primal(point.w) - p.dual(point.x) <= 1e-6 * p.primal(point.w)


def test_weights_and_rows_without_weight():
    X, y = data(50, 12)
    s = np.arange(50) % 4 + 0.0
    best, _ = by_linear_program(
        X[s > 0], y[s > 0], losses.Hinge(), 0.02, intercept=True, s=s[s > 0]
    )
    r = solve(ERM(X, y, "hinge", "l1", 0.02, sample_weight=s, intercept=True), tol=1e-8)
    assert r.converged
    assert r.primal == pytest.approx(best, rel=1e-7)
    assert not r.x[s == 0].any()


@pytest.mark.slow(but=14)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("shape", [(80, 10), (25, 60)])
@pytest.mark.parametrize(("ratio", "positive"), [(1.0, False), (0.5, False), (0.9, True)])
def test_every_loss_to_a_tight_gap(loss, shape, ratio, positive):
    X, y = data(*shape, margin=loss.margin)
    for alpha, intercept in itertools.product((0.1, 1e-3, 1e-6), (False, True)):
        p = ERM(X, y, loss, ElasticNet(1.0, ratio), alpha, positive=positive, intercept=intercept)
        r = solve(p, "interior_l1", tol=1e-9, max_epochs=100_000)
        assert r.converged or r.status.code == "precision"
        assert r.primal == p.primal(r.w, r.intercept)
        assert r.dual == p.dual(r.x)
        assert not positive or r.w.min() >= 0


def test_every_kind_of_storage_has_the_same_answer():
    X, y = data(40, 12)
    X[np.abs(X) < 1] = 0.0
    tall = [X, X.astype(np.float32), sp.csr_array(X), sp.csc_matrix(X)]
    for some in (tall, [M[:8] for M in tall]):
        found = [
            solve(ERM(M, y[: M.shape[0]], "hinge", "l1", 0.03), tol=1e-8).primal
            for M in (sp.csr_array(M) if sp.issparse(M) else M for M in some)
        ]
        assert np.ptp(found) < 1e-6


def test_dual_variables_from_the_upper_end():
    X, y = data(40, 6)
    p = ERM(X, y, Flipped(), "l1", 0.02)
    mirrored = ERM(-X, y, "hinge", "l1", 0.02)
    r, other = solve(p, tol=1e-8), solve(mirrored, tol=1e-8)
    assert r.converged
    assert r.primal == pytest.approx(other.primal, rel=1e-7)


@given(
    loss=st.sampled_from(LOSSES),
    z=st.floats(-4, 4),
    y=st.sampled_from([-1.0, 1.0]),
    s=st.floats(0.1, 5),
)
@examples(200)
def test_pieces_are_the_loss(loss, z, y, s):
    """s phi(z) is the largest value of the pieces' h a - (c/2)a^2 - g z a, with the shift."""
    pieces = Pieces.of(loss, np.array([y]), np.array([s]))
    total = 0.0
    for g, h, upper in zip(pieces.g[:, 0], pieces.h[:, 0], pieces.upper[:, 0], strict=True):
        slope, c = h - g * z, float(pieces.c[0])
        a = upper * (slope > 0) if c == 0 else np.clip(slope / c, 0.0, upper)
        total += slope * a - 0.5 * c * a * a
    shift = float(pieces.shift[0])  # y x at a = 0, for a loss of margins
    k, _, gamma, *_ = loss.theta
    x = shift * y if loss.margin else shift
    total += (k if loss.margin else y + k) * x - 0.5 * gamma * x * x / s - shift * z
    assert total == pytest.approx(s * loss.value(z, y), abs=1e-9)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("intercept", [False, True])
def test_equations_are_solved(shape, intercept):
    """To rounding, though R and 1/W are next to nothing for some."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape)
    n, d = shape
    R, W = 10.0 ** rng.uniform(-9, 4, d), 10.0 ** rng.uniform(-4, 9, n)
    R[8:], W[8:] = np.maximum(R[8:], 1.0), np.minimum(W[8:], 1.0)
    r, f, total = rng.standard_normal(d), rng.standard_normal(n), 0.5 * intercept
    dw, e, db = Saddle(by_row(X, "X"), R, W, KKTTuning(), intercept=intercept).solve(r, f, total)
    assert np.abs(R * dw - X.T @ e - r).max() <= 1e-9 * np.abs(r).max()
    assert np.abs(X @ dw + db + e / W - f).max() <= 1e-9 * np.abs(f).max()
    assert not intercept or e.sum() == pytest.approx(total, abs=1e-7 * np.abs(e).max())


def test_the_better_of_two_formulas():
    """Where theta is tiny, the sum has digits that the difference has lost; elsewhere not."""
    g, theta = np.array([[1.0, 1.0]]), np.array([[1e-12, 1e12]])
    exact = np.array([[0.25, 3e-13]])
    q = theta * exact + 1.0  # by = -1
    q[0, 0] = 1.0 + 2.5e-13  # what is left of it in double precision
    total = exact[0] + np.array([0.0, 1e-17])
    found = _moved(g, q, theta, -np.ones(2), total)
    assert found[0, 0] == 0.25
    assert found[0, 1] == pytest.approx(3e-13, rel=1e-9)


@pytest.mark.parametrize("drop", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_a_column_that_was_left_out_comes_back(drop, penalty):
    """All that is left out too early is taken again, and the answer is that of all columns."""
    X, y = data(30, 60)
    hasty = InteriorL1(InteriorL1Tuning(drop=(drop, 0.0), fewer=1.0))
    p = ERM(X, y, "smoothed_hinge", penalty, 0.01)
    r = solve(p, hasty, tol=1e-8, max_epochs=100_000)
    assert r.converged
    assert r.primal == pytest.approx(solve(p, "interior_l1", tol=1e-8).primal, rel=1e-7)


def test_columns_are_left_out():
    X, y = data(30, 400)
    run = InteriorL1Run(ERM(X, y, "hinge", "l1", 0.05), Target(1e-8))
    for _ in range(12):
        run._step()
    assert run._set.ids.size < 100


def test_none_is_left_out_while_the_gap_is_large():
    X, y = data(30, 400)
    tuning = InteriorL1Tuning(drop=(0.5, 0.0), fewer=1.0)
    run = InteriorL1Run(ERM(X, y, "hinge", "l1", 0.05), Target(1e-8), tuning)
    sizes = []
    for _ in range(12):
        early = run._at.products > 0.1 * run._value(run.w, run._at.loss)
        run._step()
        sizes.append((early, run._set.ids.size))
    assert {size for early, size in sizes if early} == {400}
    assert min(size for early, size in sizes if not early) < 400


def test_a_column_that_came_back_stays():
    """Else the same ones are left out again and again."""
    p = ERM(*many(), "hinge", "l1", 6e-3)
    run = InteriorL1Run(p, Target(1e-8), InteriorL1Tuning(first=10, drop=(0.2, 0.0), fewer=1.0))
    for _ in range(60):
        if run._passes():
            run.seen(certify(p, run.point()))
        else:
            run._step()
        assert np.isin(np.flatnonzero(run._back), run._set.ids).all()
    assert run._grown > 0
    assert run._back.any()


def test_working_sets_that_go_round_are_left():
    """`auto` gives them a part of the predicted time of interior points."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 1000)), np.sign(rng.standard_normal(300))
    p = ERM(X, y, "squared_hinge", "l1", 1e-4)
    r = solve(p, tol=1e-6)
    assert r.converged
    first, why = Auto().first(p, Start())
    assert first.name == "working_set"
    assert "zero" in why
    passes = costs.interior_l1(p) / costs.working_set_pass(p)
    assert 0 < first.most < 0.5 * passes
    assert r.epochs < 0.7 * passes + 200


def test_what_auto_begins_with():
    X, y = data(60, 20)
    name = lambda *args, **options: Auto().first(ERM(X, y, *args, **options), Start())[0].name  # noqa: E731
    assert name("hinge", "l1", 1e-3) == "interior_l1"
    assert name("hinge", "elasticnet", 1e-3) == "interior_l1"
    assert name("hinge", "l2", 1e-3) != "interior_l1"
    text = sp.random_array((3000, 4000), density=0.005, random_state=np.random.default_rng(0))
    labels = np.where(np.arange(3000) % 2, 1.0, -1.0)
    long = ERM(sp.csr_array(text), labels, "hinge", "elasticnet", 1e-3)
    assert Auto().first(long, Start())[0].name == "adaptive"  # a matrix of 3,000 rows is dear


def many(n=900, d=800, seed=2, few=6):
    """So many samples and features that it begins with some of the columns."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.02, random_state=rng, data_sampler=rng.standard_normal)
    z = X @ np.where(np.arange(d) < few, 3.0, 0.0) + 0.1 * rng.standard_normal(n)
    return sp.csr_array(X), np.where(z > 0, 1.0, -1.0)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("intercept", [False, True])
def test_sets_of_columns_have_the_answer_of_all(intercept):
    X, y = many()
    p = ERM(X, y, "hinge", "l1", 6e-3, intercept=intercept)
    run = InteriorL1Run(p, Target(1e-8))
    assert run._set.ids.size == InteriorL1Tuning().first
    some, every = (
        solve(p, InteriorL1(InteriorL1Tuning(whole=whole)), tol=1e-8, max_epochs=10**6)
        for whole in (500, 10**6)
    )
    assert some.converged
    assert every.converged
    assert some.primal == pytest.approx(every.primal, rel=1e-7)
    assert some.epochs < every.epochs
    np.testing.assert_array_equal(some.w != 0, every.w != 0)


@pytest.mark.parametrize("first", [1, 5])
def test_a_set_takes_in_what_violates(first):
    X, y = many()
    p = ERM(X, y, "hinge", "l1", 3e-3)
    best = solve(p, tol=1e-8, max_epochs=10**6).primal
    r = solve(p, InteriorL1(InteriorL1Tuning(first=first)), tol=1e-8, max_epochs=10**6)
    assert r.converged
    assert r.primal == pytest.approx(best, rel=1e-7)


def test_a_set_that_is_too_large_is_not_solved(monkeypatch):
    """It would take too much memory: the run says that it is stuck, and certifies what it has."""
    monkeypatch.setattr("apcg.methods.interior.interior_l1.LARGEST", 20)
    X, y = many()
    p = ERM(X, y, "hinge", "l1", 1e-3)
    r = solve(p, InteriorL1(InteriorL1Tuning(first=10)), tol=1e-8, max_epochs=10**6)
    assert r.status.code == "stuck"
    assert r.dual <= r.primal
    assert auto_takes(p)["method"] == "interior_l1"


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("logistic", "l1"), ("hinge", "l2"), ("squared", "l1"), ("smoothed_hinge", Box(-1, 1))],
)  # fmt: skip
def test_needs(loss, penalty):
    X, y = data(10, 2)
    assert unmet(InteriorL1(), ERM(X, y, loss, penalty, 0.1)) is not None


def test_estimators_say_which_methods_there_are():
    X, _ = data(30, 4)
    three = np.arange(30) % 3
    model = APCGClassifier("hinge", penalty="l1", method="sdca")
    for labels in (three, three > 0):
        with pytest.raises(ValueError, match="take one of 'auto', 'interior', 'interior_l1'"):
            model.fit(X, labels)


def test_estimators_take_it():
    X, y = data(80, 30)
    labels = np.where(y > 0, "yes", "no")
    model = APCGClassifier("hinge", penalty="l1", alpha=0.02).fit(X, labels)
    best, w = by_linear_program(X, y, losses.Hinge(), 0.02, intercept=True)
    assert model.duality_gap_ <= 1e-6 * best * 1.01
    assert np.array_equal(model.coef_[0] != 0, np.abs(w) > 1e-9)
    three = np.where(X[:, 0] > 0.7, "a", np.where(X[:, 1] > 0, "b", "c"))
    assert APCGClassifier("hinge", penalty="l1", alpha=0.02).fit(X, three).score(X, three) > 0.7
