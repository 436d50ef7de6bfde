"""K outputs: what is infeasible is -inf, what is wrong is refused, what a user wrote is used."""

import dataclasses
import math

import numpy as np
import pytest

from apcg import ERM, losses, path, penalties, solve
from apcg._kernels.losses import outputs as kernels
from apcg.losses import registry
from apcg.losses.classes import ClassLoss
from apcg.losses.shift import imbalance
from apcg.methods.base import Point, Start, Target, Work
from apcg.methods.dual.method import begin
from apcg.methods.newton import many_outputs as newton_k
from apcg.methods.newton.many_outputs import BlockNewtonRun
from apcg.methods.newton.softmax import SoftmaxRun
from apcg.penalties.groups import GroupNorms

RNG = np.random.default_rng(0)
N, D, K = 18, 4, 3
X = RNG.standard_normal((N, D))
Y = np.arange(N) % K
TARGETS = RNG.standard_normal((N, K))
CLASSES = [losses.Multinomial(), losses.MulticlassHinge(), losses.MulticlassHinge(0.5)]


def erm(loss="multinomial", penalty="l2", y=Y, alpha=0.1, **options):
    return ERM(X, y, loss, penalty, alpha, **options)


def inside(problem):
    """A dual point with every pi_k positive."""
    pi = np.full((N, K), 0.2)
    pi[np.arange(N), Y] = 0.6
    return np.asarray(problem.weights[:, None] * (np.eye(K)[Y] - pi))


# ---- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", CLASSES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_simplex_has_no_room(loss, weighted):
    weights = RNG.uniform(0.5, 2.0, N) if weighted else None
    p = erm(loss, sample_weight=weights)
    x = inside(p)
    assert p.dual(x) > -math.inf
    s = np.broadcast_to(p.weights, N)[0]
    for row in ([1 + 1e-12, -1 - 1e-12, 0.0], [-1e-12, 1e-12, 0.0], [0.4, -0.2, -0.2 + 1e-12]):
        y = x.copy()
        y[0] = s * np.array(row)
        assert p.dual(y) == -math.inf
    y[0] = s * np.array([1.0, -1.0, 0.0])  # a vertex
    assert p.dual(y) > -math.inf


@pytest.mark.parametrize("loss", CLASSES, ids=repr)
def test_x_at_weight_zero(loss):
    p = erm(loss, sample_weight=np.r_[0.0, np.ones(N - 1)])
    x = inside(p)
    assert p.dual(x) > -math.inf
    x[0] = [1e-9, -1e-9, 0.0]
    assert p.dual(x) == -math.inf


@pytest.mark.parametrize("loss", CLASSES, ids=repr)
def test_the_balance_of_intercepts(loss):
    p = erm(loss, intercept=True)
    x = inside(p)
    assert np.abs(x.sum(axis=0)).max() < 1e-12
    assert p.dual(x) > -math.inf
    x[0, 0] += 1e-10
    x[0, 1] -= 1e-10
    assert p.dual(x) == -math.inf


@pytest.mark.parametrize("loss", CLASSES, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_balanced_is_feasible(loss, seed):
    """Of points with zeros too, where only a part of the flow between two classes is left."""
    rng = np.random.default_rng(seed)
    p = erm(loss, intercept=True, sample_weight=10 ** rng.uniform(-3, 0, N))
    pi = rng.dirichlet(np.full(K, 0.2), N) * (rng.random((N, K)) < 0.5)
    x = p.into_domain(p.weights[:, None] * (np.eye(K)[Y] - pi))
    for given in (x, np.where(Y[:, None] == 0, x, 0.0)):
        made = p.balance(given)
        assert imbalance(made) <= 1
        assert p.dual(made) > -math.inf


@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_feasible_whatever_the_predictions_are(gamma, seed):
    """Where z is large and gamma small, the projection on the simplex has few digits."""
    rng = np.random.default_rng(seed)
    z = 10 ** rng.uniform(0, 8, (N, 1)) * rng.standard_normal((N, K))
    loss, s = losses.MulticlassHinge(gamma), rng.uniform(0.1, 2.0, N)
    x = loss.duals(z, Y.astype(np.int32), s)
    assert math.isfinite(loss.conjugate_total(x, Y.astype(np.int32), s))


def test_probabilities_above_one_are_scaled():
    """By a rounding of their sum; pi_y = 1 - the others would be negative."""
    pi = np.array([[0.0, 0.5, 0.5 + 1e-13], [0.2, 0.3, 0.5]])
    x, y = np.zeros((2, 3)), np.zeros(2, np.int32)
    kernels.dual(pi, y, ONE, x)
    assert math.isfinite(losses.Multinomial().conjugate_total(x, y, ONE))
    np.testing.assert_allclose(x, [[1, -0.5, -0.5], [0.8, -0.3, -0.5]], atol=1e-12)


def test_a_group_penalty_has_no_room():
    g = GroupNorms(0.5, 0.0)
    v = np.zeros((D, K))
    v[1] = [0.3, 0.4, 0.0]
    assert g.conjugate(v) == 0.0
    assert g.conjugate(v * (1 + 1e-9)) == math.inf
    assert g.excess(v * 2) == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "group", "l1"])
@pytest.mark.parametrize("y", [Y, TARGETS], ids=["classes", "targets"])
def test_a_solution_can_be_gone_on_from(penalty, y):
    """With an intercept its b is an array."""
    p = erm("multinomial" if y is Y else "squared", penalty, y, alpha=0.02, intercept=True)
    first = solve(p, max_epochs=2, random_state=0)
    again = solve(p, x0=first, random_state=0)
    assert again.converged
    assert solve(p, x0=again).epochs <= 1
    along = path(p, [0.1, 0.05, 0.02], random_state=0)
    assert along[-1].primal == pytest.approx(again.primal, rel=2e-6)


# ---- Newton's method ----------------------------------------------------------------------------


def test_newton_goes_on_where_the_hessian_is_flat():
    """At W = 0 and far b all rows of the smoothed hinge loss are at a vertex: H is zero there."""
    p = erm(losses.MulticlassHinge(0.5), alpha=1e-4, intercept=True)
    run = BlockNewtonRun(p, np.zeros((D, K)), np.array([50.0, 0.0, -50.0]))
    for _ in range(60):
        run.advance(dataclasses.replace(_budget(), passes=1000))
        if run.stuck:
            break
    best = solve(p, "afg", tol=1e-9, max_epochs=20_000).primal
    found = run.point()
    assert p.primal(found.w, found.b) == pytest.approx(best, rel=1e-6)


def test_newton_without_a_factor_steps_by_products(monkeypatch):
    p = erm(losses.MulticlassHinge(0.5), alpha=1e-2)
    monkeypatch.setattr(newton_k, "MOST", 0)
    run = BlockNewtonRun(p, np.zeros((D, K)), np.zeros(K))
    before = p.primal(np.zeros((D, K)))
    run.advance(_budget())
    assert not run.stuck
    assert p.primal(run.point().w) < before


def _budget():
    from apcg.methods.base import Budget

    return Budget(1000)


@pytest.mark.parametrize("scale", [1e6, 1e8])
def test_newton_with_a_hessian_of_rounding(scale):
    """pi (1 - pi) of pi = 1 is below zero by a rounding, which a large X makes much of."""
    p = ERM(X * np.r_[scale, 1, 1, 1], Y, "multinomial", alpha=1e-5)
    r = solve(p, max_epochs=300, random_state=0)
    assert math.isfinite(r.gap)
    assert r.status.code in ("converged", "max_epochs") or r.gap <= 1e-6 * r.primal


def test_a_newton_run_that_is_stuck_is_replaced(monkeypatch):

    def nowhere(self, budget):
        self._idle = 2
        return Work(1)

    monkeypatch.setattr(SoftmaxRun, "advance", nowhere)
    p = erm(alpha=1e-3, intercept=True)
    start = solve(p, max_epochs=3, random_state=0)
    warm = dataclasses.replace(start, method="auto", side="primal")
    r = solve(p, x0=warm, random_state=0, max_epochs=5000)
    assert r.converged
    assert r.epochs < 1000  # at once, not when max_epochs is near
    assert len(r.trace.notes) > 1


def test_an_estimate_of_zero_tells_no_rate():
    p = erm("multiclass_hinge", alpha=1.0)
    run = begin(p, Start(), Target(1e-6), np.random.default_rng(0))
    for values in ([0.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5):
        run.estimates.values = values
        assert run.estimates.sweeps_left(run.sweeps, 1.0, 5) == (np.inf, 0.0)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "y"), [("multiclass_hinge", Y), ("hinge", np.sign(TARGETS))])
def test_a_loss_that_is_not_smooth_needs_a_penalty_without_bounds(loss, y):
    with pytest.raises(ValueError, match="is not smooth, and with K outputs it takes a penalty"):
        erm(loss, penalties.Box(-1.0, 1.0), y)


LABELS = np.array([0, 1], np.int32)
ONE = np.ones(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: losses.Multinomial().value(np.zeros((2, 3)), [5, -1]),
        lambda: losses.Multinomial().derivative(np.zeros((2, 3)), [3, 0]),
        lambda: losses.MulticlassHinge().conjugate(np.zeros((2, 3)), [-1, 0]),
        lambda: losses.Multinomial().prox_conjugate(np.zeros((2, 3)), 1.0, [7, 0]),
        lambda: losses.Multinomial().value(np.zeros((2, 3)), [0, 1, 2]),
        lambda: losses.Multinomial().value(np.zeros((2, 3)), [0.5, 1]),
        lambda: losses.Multinomial().value(np.zeros((2, 3, 4)), [0, 1]),
        lambda: losses.Multinomial().value(np.zeros((2, 3)), "ab"),
        lambda: kernels.clip(np.zeros((2, 3)), LABELS + 9, ONE, np.zeros((2, 3))),
        lambda: kernels.dual(np.zeros((2, 3)), LABELS - 9, ONE, np.zeros((2, 3))),
        lambda: kernels.dual_of(0, np.zeros((2, 3)), LABELS, 2.0, ONE, np.zeros((1, 3))),
        lambda: kernels.dual_of(0, np.zeros((2, 3)), LABELS, 2.0, ONE, np.zeros((2, 2))),
        lambda: kernels.total(0, np.zeros((2, 3)), LABELS, 2.0, np.ones(5)),
        lambda: kernels.total(0, np.zeros((2, 3)), LABELS, 2.0, np.ones(0)),
        lambda: kernels.total_conjugate(0, np.zeros((2, 3)), LABELS[:1], 2.0, ONE),
        lambda: kernels.values(0, np.zeros((2, 3)), LABELS, 2.0, np.zeros(1)),
        lambda: kernels.prox(0, np.zeros((2, 3)), ONE, LABELS, 2.0, np.zeros((2, 3))),
    ],
)
def test_labels_and_lengths_are_looked_at(call):
    with pytest.raises(ValueError, match=r"labels|rows|result"):
        call()


@pytest.mark.parametrize("b", ["a", [1.0, 2.0], math.nan, 1e101, [0, 0, 1j]])
def test_intercepts_of_a_start(b):
    p = erm(intercept=True)
    r = solve(p, random_state=0)
    with pytest.raises((ValueError, TypeError), match="b of x0 must"):
        solve(p, x0=dataclasses.replace(r, intercept=b))


class Still:
    """A method that gives one point."""

    name, needs, outputs, intercept = "still", (), True, True

    def __init__(self, point):
        self._point = point

    def start(self, problem, at, target, rng):
        return self

    def advance(self, budget):
        return Work(1)

    def point(self):
        return self._point

    def seen(self, certificate):
        pass


@pytest.mark.parametrize(
    "point",
    [
        Point(w=np.zeros(D)),
        Point(w=np.zeros((K, D))),
        Point(w=np.zeros((D, K)), x=np.zeros(N)),
        Point(w=np.zeros((D, K)), b=np.zeros(2)),
    ],
)
def test_points_of_a_method(point):
    with pytest.raises(ValueError, match="of the point of a method must"):
        solve(erm(intercept=True), Still(point), max_epochs=3)


def test_sums_of_a_method_are_not_believed():
    p = erm(intercept=True)
    x = np.eye(K)[Y] - 2.0  # far outside
    point = Point(w=np.zeros((D, K)), x=x, z=np.full((N, K), 99.0), v=np.zeros((D, K)))
    r = solve(p, Still(point), max_epochs=3)
    assert r.primal == pytest.approx(p.primal(r.w, r.intercept), rel=1e-14)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-14)


# ---- own losses ---------------------------------------------------------------------------------


class Softmax(losses.OutputsLoss):
    """As a user would write it."""

    name, gamma = "softmax_in_numpy", 2.0

    def value(self, z, y):
        top = z.max(axis=1)
        return top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - z[np.arange(len(z)), y]

    def derivative(self, z, y):
        pi = np.exp(z - z.max(axis=1)[:, None])
        pi /= pi.sum(axis=1)[:, None]
        pi[np.arange(len(z)), y] -= 1
        return pi

    def conjugate(self, u, y):
        pi = u.copy()
        pi[np.arange(len(u)), y] += 1
        outside = (np.abs(u.sum(axis=1)) > 1e-9) | (pi < -1e-12).any(axis=1)
        inner = np.where(pi > 0, pi * np.log(np.where(pi > 0, pi, 1.0)), 0.0).sum(axis=1)
        return np.where(outside, np.inf, inner)


def like(**members):
    return type("Mine", (Softmax,), members)()


def test_a_sound_one_is_used():
    r, known = solve(erm(Softmax()), tol=1e-9), solve(erm(), tol=1e-9)
    assert r.converged
    assert r.primal == pytest.approx(known.primal, rel=1e-8)
    assert losses.check(Softmax())
    assert losses.check(Softmax(), losses.Multinomial().value)
    assert losses.check(Softmax(), labels=[0, 1, 2, 1, 0])


def changed(loss, **members):
    vars(loss).update(members)
    return loss


WRONG = {
    "shapes": {"value": lambda s, z, y: np.zeros((len(z), 1))},
    "derivative against": {"derivative": lambda s, z, y: 1.1 * Softmax.derivative(s, z, y)},
    "conjugate at gradients": {"conjugate": lambda s, u, y: Softmax.conjugate(s, u, y) - 0.01},
}


@pytest.mark.parametrize("what", WRONG)
def test_parts_that_do_not_belong_together_are_refused_at_once(what):
    with pytest.raises(ValueError, match=what):
        erm(like(**WRONG[what]))


def flat(s, u, y):
    """Right at gradients of one size, too small between them."""
    made = Softmax.conjugate(s, u, y)
    return np.where(np.abs(u).max(axis=1) > 0.4, made, made - 5.0)


OFTEN_WRONG = {
    "value is convex": {"value": lambda s, z, y: np.cos(z).sum(axis=1)},
    "the gradient changes by at most 1/gamma": {"gamma": 50.0},
    "conjugate is no less": {"conjugate": flat},
    "conjugate against numerical maximisation": {
        "conjugate": lambda s, u, y: Softmax.conjugate(s, u, y) + (np.abs(u).max(axis=1) < 0.6)
    },
    "conjugate is infinite": {
        "conjugate": lambda s, u, y: np.nan_to_num(Softmax.conjugate(s, u, y), posinf=9.0)
    },
    "prox of the conjugate": {"prox_conjugate": lambda s, v, step, y: Softmax.derivative(s, v, y)},
    **WRONG,
}


@pytest.mark.parametrize("what", OFTEN_WRONG)
def test_every_comparison_can_fail(what):
    report = losses.check(like(**OFTEN_WRONG[what]))
    assert not report
    assert any(fault.startswith(what) for fault in report.faults), str(report)


def test_check_tells_whether_it_is_your_phi():
    report = losses.check("multinomial", lambda z, y: np.zeros(len(z)))
    assert report.faults[0].startswith("value as you wrote it")


@pytest.mark.parametrize("loss", [*CLASSES, losses.Multinomial(7), *map(losses.Columns, (
    losses.Hinge(), losses.Logistic(), losses.Squared(), losses.Huber(0.3),
    losses.EpsilonInsensitive()))], ids=repr)  # fmt: skip
def test_check_of_the_losses_there_are(loss):
    assert losses.check(loss), str(losses.check(loss))


@pytest.mark.parametrize("name", ["value", "derivative", "conjugate", "total", "duals",
                                  "conjugate_total", "clip", "prox_conjugate"])  # fmt: skip
@pytest.mark.parametrize("base", [losses.Multinomial, losses.MulticlassHinge])
def test_an_override_that_nobody_would_call(base, name):
    mine = type("Mine", (base,), {name: lambda *_: 0.0})()
    with pytest.raises(TypeError, match=f"has its own {name}"):
        erm(mine)
    changed = base()
    setattr(changed, name, lambda *_: 0.0)
    with pytest.raises(TypeError, match=f"has its own {name}"):
        erm(changed)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: like(kind=0), "kind and margin"),
        (lambda: like(margin=True), "kind and margin"),
        (lambda: like(gamma=0.0), "gamma > 0"),
        (lambda: like(gamma=math.inf), "gamma of Mine must be in"),
        (lambda: like(gamma="a"), "gamma of Mine must be a number"),
        (lambda: like(name=None), "must have a name"),
        (lambda: type("Mine", (ClassLoss,), {"name": "m", "kind": 0, "gamma": 2.0})(), "not open"),
        (lambda: type("Mine", (losses.Multinomial,), {"gamma": 9.0})(), "has its own gamma"),
        (lambda: type("Mine", (losses.MulticlassHinge,), {"kind": 0})(), "has its own kind"),
        (lambda: changed(losses.Multinomial(), gamma=9.0), "softmax has gamma"),
        (lambda: changed(losses.MulticlassHinge(), kind=0), "kind of MulticlassHinge must be 1"),
        (lambda: losses.Columns("squared"), "Columns takes a loss of one prediction"),
        (lambda: losses.Columns(losses.Multinomial()), "Columns takes a loss of one prediction"),
        (lambda: losses.StronglyConvex("multinomial", 1.0), "one of a single prediction"),
        (lambda: losses.Columns(type("Mine", (losses.Huber,), {"value": min})()), "its own value"),
    ],
)
def test_what_a_loss_may_not_say(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        erm(make())


@pytest.mark.parametrize("base", [losses.Multinomial, losses.Huber])
def test_a_registered_name_is_no_way_round(base, monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    losses.register(type("Mine", (base,), {"name": "mine", "value": lambda *_: 0.0}))
    with pytest.raises(TypeError, match="has its own value"):
        erm("mine")


def test_a_name_alone_makes_no_other_loss():
    mine = type("Mine", (losses.Multinomial,), {"name": "mine"})()
    assert solve(erm(mine)).converged


def test_a_problem_of_the_users():
    """A subclass may add to ERM, and change nothing that a certificate would not go by."""
    signs = np.where(Y > 0, 1, -1)
    more = type("More", (ERM,), {"note": lambda self: 1})
    assert solve(more(X, signs, "logistic")).converged
    with pytest.raises(TypeError, match="has its own primal"):
        type("Mine", (ERM,), {"primal": lambda *_: 0.0})(X, signs, "logistic")
    assert solve(more(X, Y, "multinomial")).converged
