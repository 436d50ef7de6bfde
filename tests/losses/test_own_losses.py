"""Losses, regularisers and a method from outside: one output and three, with and without b."""

import math

import numpy as np
import pytest

from apcg import ERM, losses, path, solve
from apcg.estimators import APCGRegressor
from apcg.losses.shift import imbalance
from apcg.methods.base import SMOOTH_LOSS, Point, Work

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
W = RNG.standard_normal((5, 3))
REAL = X @ W + RNG.exponential(1.0, (60, 3)) + 2
SIGNS = np.sign(REAL - np.median(REAL, axis=0))
WEIGHTS = np.where(np.arange(60) % 7 == 3, 0.0, RNG.uniform(0.3, 2.0, 60))


class Expectile(losses.OwnLoss):
    """q r^2 if r = z - y < 0, (1 - q) r^2 above."""

    name = "expectile"

    def __init__(self, q=0.8):
        self.q, self.gamma = q, 0.5 / max(q, 1 - q)

    def value(self, z, y):
        return np.where(z < y, self.q, 1 - self.q) * (z - y) ** 2

    def derivative(self, z, y):
        return 2 * np.where(z < y, self.q, 1 - self.q) * (z - y)

    def conjugate(self, u, y):
        return u * u / (4 * np.where(u < 0, self.q, 1 - self.q)) + u * y


class HandLogistic(losses.OwnLoss):
    """The logistic loss by hand; slopes reach the ends of the domain by rounding."""

    name, margin, gamma = "hand_logistic", True, 4.0

    def value(self, z, y):
        return np.logaddexp(0, -y * z)

    def derivative(self, z, y):
        return -y / (1 + np.exp(np.minimum(y * z, 700)))

    def conjugate(self, u, y):
        x = -u * y
        inside = np.clip(x, 1e-300, 1 - 1e-16)
        ends = np.where((x == 0) | (x == 1), 0.0, np.inf)
        entropy = inside * np.log(inside) + (1 - inside) * np.log1p(-inside)
        return np.where((x > 0) & (x < 1), entropy, ends)


class Distance(losses.OutputsLoss):
    """sqrt(1 + |z - y|^2) - 1, the distance between rows, smoothed; for any number of columns."""

    name, gamma = "distance", 1.0

    def check_labels(self, y, n, K=None):
        y = np.reshape(np.asarray(y, dtype=float), (n, -1))
        return y, y.shape[1]

    def value(self, z, y):
        return np.sqrt(1 + np.sum((z - y) ** 2, axis=1)) - 1

    def derivative(self, z, y):
        return (z - y) / np.sqrt(1 + np.sum((z - y) ** 2, axis=1))[:, None]

    def conjugate(self, u, y):
        square = np.sum(u * u, axis=1)
        root = 1 - np.sqrt(np.maximum(1 - square, 0))
        return np.where(square <= 1, root, np.inf) + np.sum(u * y, axis=1)


class HandSoftmax(losses.OutputsLoss):
    """The softmax by hand."""

    name, gamma = "hand_softmax", 2.0

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


class RowNorms:
    """c times the sum over features of the length of a row of W; |w_j| with one output."""

    def __init__(self, c=1.0, strong_convexity=0.0):
        self.c, self.strong_convexity = c, strong_convexity

    @staticmethod
    def norms(w):
        return np.sqrt(np.sum(w.reshape(len(w), -1) ** 2, axis=1))

    def value(self, w):
        return self.c * self.norms(w).sum() + self.strong_convexity / 2 * np.sum(w * w)

    def shrunk(self, v, by, over):
        """Every row shortened by so much, at most to zero, and divided."""
        keep = np.maximum(1 - by / np.maximum(self.norms(v), 1e-300), 0) / over
        return (v.reshape(len(v), -1) * keep[:, None]).reshape(v.shape)

    def prox(self, v, step):
        return self.shrunk(v, step * self.c, 1 + step * self.strong_convexity)

    def excess(self, v):
        return self.norms(v).max() / self.c

    def conjugate(self, v):
        if self.strong_convexity == 0:
            return 0.0 if self.excess(v) <= 1 else np.inf
        return np.sum(np.maximum(self.norms(v) - self.c, 0) ** 2) / (2 * self.strong_convexity)

    def conjugate_gradient(self, v):
        return self.shrunk(v, self.c, self.strong_convexity)


LOSSES = {"expectile": Expectile(), "hand_logistic": HandLogistic(), "distance": Distance()}


def labels(name, K):
    y = SIGNS if name == "hand_logistic" else REAL
    return y if K == 3 else y[:, 0]


def certified(p, r, tol):
    """The certificate of an answer, written out anew with the functions of the loss alone."""
    s = np.broadcast_to(p.weights, 60)
    z = X @ r.w + r.intercept
    columns = p.K > 1 or isinstance(p.loss, losses.OutputsLoss)
    z, x = (a.reshape(60, -1) if columns else a for a in (z, r.x))
    phi = p.loss.value(z, p.y)
    P = np.sum(s * phi) / p.n + p.alpha * p.g.value(r.w)
    sign = p.y if p.loss.margin else 1.0
    kept = s > 0
    each = np.where(kept, s, 1.0)
    u = -(sign * x) / (each[:, None] if columns else each)
    star = p.loss.conjugate(u, p.y)
    assert not x[~kept].any()
    v = X.T @ np.reshape(sign * x, r.x.shape) / (p.alpha * p.n)
    D = -np.sum((s * star)[kept]) / p.n - p.alpha * p.g.conjugate(v * (1 - 1e-13))  # a rounding
    if p.intercept:
        assert np.all(np.abs(np.sum(sign * x, axis=0)) <= 1e-12 * np.sum(np.abs(x), axis=0))
    assert r.primal == pytest.approx(P, rel=1e-12)
    assert r.dual == pytest.approx(D, rel=1e-12)
    assert -1e-12 * abs(P) <= P - D <= tol * abs(P)


@pytest.mark.slow(but=12)
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", RowNorms(0.5), RowNorms(0.5, 0.5)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_an_own_loss_is_solved_and_certified(name, K, intercept, penalty):
    for weights in (None, WEIGHTS):
        p = ERM(X, labels(name, K), LOSSES[name], penalty, alpha=0.02, sample_weight=weights,
                intercept=intercept)  # fmt: skip
        assert p.K == K
        r = solve(p, tol=1e-8, max_epochs=5000)
        assert r.converged, r.status
        assert r.w.shape == p.w_shape
        certified(p, r, 1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K", [1, 3])
def test_the_logistic_loss_by_hand_is_the_logistic_loss(K, intercept):
    for penalty in ("l2", "l1"):
        own, known = (solve(ERM(X, labels("hand_logistic", K), loss, penalty, alpha=0.02,
                                intercept=intercept), tol=1e-10, max_epochs=20_000)
                      for loss in (HandLogistic(), "logistic"))  # fmt: skip
        assert own.converged
        assert own.primal == pytest.approx(known.primal, rel=1e-9)
        np.testing.assert_allclose(own.w, known.w, atol=1e-4)
        np.testing.assert_allclose(own.intercept, known.intercept, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_softmax_by_hand_is_the_softmax(intercept):
    y = np.argmax(REAL, axis=1)
    own, known = (solve(ERM(X, y, loss, alpha=0.02, intercept=intercept), tol=1e-9,
                        max_epochs=5000) for loss in (HandSoftmax(), "multinomial"))  # fmt: skip
    assert own.converged
    assert own.primal == pytest.approx(known.primal, rel=1e-8)
    np.testing.assert_allclose(X @ own.w, X @ known.w, atol=1e-3)


def test_one_column_is_one_output_however_it_is_given():
    """A vector, a matrix of one column, the loss of columns: the same problem."""
    y = REAL[:, 0]
    plain = solve(ERM(X, y, Distance(), alpha=0.02, intercept=True), tol=1e-9)
    column = solve(ERM(X, y[:, None], Distance(), alpha=0.02, intercept=True), tol=1e-9)
    assert plain.w.shape == column.w.shape == (5,)
    np.testing.assert_array_equal(plain.w, column.w)
    one = ERM(X, y[:, None], losses.Columns(losses.Huber()), alpha=0.02)
    known = ERM(X, y, "huber", alpha=0.02)
    assert one.K == 1
    np.testing.assert_array_equal(solve(one, random_state=0).w, solve(known, random_state=0).w)


@pytest.mark.parametrize("K", [1, 3])
def test_paths_and_going_on(K):
    p = ERM(X, labels("expectile", K), Expectile(), "l1", alpha=0.02, intercept=True)
    answers = path(p, [0.5, 0.1, 0.02], tol=1e-7)
    assert all(r.converged for r in answers)
    assert solve(p, x0=answers[-1], tol=1e-7).epochs == 0
    assert math.isfinite(p.dual(answers[-1].x))
    other = p.with_labels(2 * labels("expectile", K))
    assert solve(other, x0=answers[-1], tol=1e-7).converged


def test_an_estimator_takes_an_own_loss():
    model = APCGRegressor(Expectile(), alpha=0.02, tol=1e-8).fit(X, REAL[:, 0])
    r = solve(ERM(X, REAL[:, 0], Expectile(), alpha=0.02, intercept=True), tol=1e-8)
    np.testing.assert_allclose(model.predict(X), X @ r.w + r.intercept, atol=1e-3)


def test_a_registered_name(monkeypatch):
    monkeypatch.setattr(losses.registry, "_REGISTERED", dict(losses.registry._REGISTERED))
    losses.register(Expectile)
    assert "expectile" in losses.names(margin=False)
    assert solve(ERM(X, REAL, "expectile", alpha=0.02)).converged


# ---- the intercept, by slopes alone -------------------------------------------------------------


@pytest.mark.parametrize("far", [0.0, 30.0, -1e3])
@pytest.mark.parametrize("name", LOSSES)
def test_the_best_intercept_of_an_own_loss(name, far):
    for K in (1, 3):
        p = ERM(X, labels(name, K), LOSSES[name], alpha=0.02, intercept=True)
        z = X @ RNG.standard_normal((5, K))
        z = z[:, 0] if K == 1 else z
        b = p.best_intercept(z, far)
        best = p.loss_total(z + b)
        for change in np.vstack([np.eye(K), -np.eye(K)]):
            for size in (1.0, 1e-3):
                moved = size * change if K > 1 else size * float(change[0])
                assert best <= p.loss_total(z + b + moved) * (1 + 1e-12)


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_slopes_off_the_best_intercept_are_brought_into_balance(name, K):
    """By a mean of slopes: feasible, and nearer to the optimum the nearer z is."""
    p = ERM(X, labels(name, K), LOSSES[name], alpha=0.02, intercept=True, sample_weight=WEIGHTS)
    r = solve(p, tol=1e-10, max_epochs=5000)
    z = X @ r.w + r.intercept
    gaps = []
    for off in (0.3, 0.01, 1e-4):
        x, v = p.dual_pair(z + off, exact=True)
        assert imbalance(p.signed(x)) <= 1
        gaps.append(r.primal - p.dual_from(x, v))
        assert gaps[-1] < math.inf
    assert gaps[2] < 1e-6 * r.primal
    rounding = 1e-12 * r.primal
    assert gaps[2] - rounding <= gaps[1] <= gaps[0] + rounding


@pytest.mark.parametrize("K", [1, 3])
def test_a_point_of_a_user_is_brought_into_balance(K):
    p = ERM(X, labels("expectile", K), Expectile(), alpha=0.02, intercept=True)
    x = p.balance(RNG.uniform(-1, 1, p.x_shape))
    assert imbalance(x) <= 1
    assert math.isfinite(p.dual(x))
    q = ERM(X, labels("hand_logistic", K), HandLogistic(), alpha=0.02, intercept=True)
    edge = np.where(RNG.random(q.x_shape) < 0.5, 1.0, 0.2)  # at the end of the domain
    x = q.balance(edge)
    assert imbalance(q.signed(x)) <= 1
    assert math.isfinite(q.dual(x))


# ---- what does not fit --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["apcg", "sdca", "adaptive", "newton", "dual", "working_set",
                                    "interior", "span", "sag", "svrg"])  # fmt: skip
def test_methods_that_need_compiled_code_name_both_sides(method):
    p = ERM(X, REAL[:, 0], Expectile(), alpha=0.02)
    with pytest.raises(ValueError, match=rf"method '{method}' needs .*loss 'expectile'.*'afg'"):
        solve(p, method)
    assert p.loss.compiled is False


@pytest.mark.parametrize("K", [1, 3])
def test_what_is_for_known_losses_says_so(K):
    p = ERM(X, labels("expectile", K), Expectile(), alpha=0.02)
    for name in ("refine", "pdgbound"):
        with pytest.raises(ValueError, match=f"{name} is for problems with one output and a loss"):
            getattr(p, name)(np.zeros(p.x_shape))
    with pytest.raises(ValueError, match="one output and losses of apcg's"):
        _ = p.form


@pytest.mark.parametrize(
    ("members", "error", "words"),
    [
        ({"value": lambda s, z, y: 0.0}, ValueError, "value of loss .* shape"),
        ({"derivative": lambda s, z, y: z[:-1]}, ValueError, "derivative of loss .* shape"),
        ({"derivative": lambda s, z, y: 3.0 * (z - y)}, ValueError, "derivative against"),
        ({"conjugate": lambda s, u, y: 0.0 * u}, ValueError, "conjugate at gradients"),
        ({"gamma": 0.0}, TypeError, "gamma > 0"),
        ({"gamma": math.nan}, ValueError, "gamma of Mine"),
        ({"name": 3}, TypeError, "must have a name"),
        ({"compiled": True}, TypeError, "would not call what you wrote"),
        ({"kind": 2}, TypeError, "would not call what you wrote"),
    ],
)
@pytest.mark.parametrize("K", [1, 3])
def test_own_losses_that_are_none(members, error, words, K):
    mine = type("Mine", (Expectile,), members)()
    vars(mine).update({k: v for k, v in members.items() if k == "gamma"})
    with pytest.raises(error, match=words):
        ERM(X, labels("expectile", K), mine)


def test_parts_that_are_missing_are_named():
    class Half(losses.OwnLoss):
        name, gamma = "half", 1.0

        def value(self, z, y):
            return 0.5 * (z - y) ** 2

    for use in (lambda: ERM(X, REAL[:, 0], Half()), lambda: losses.check(Half())):
        with pytest.raises(TypeError, match=r"and no derivative, conjugate"):
            use()


def test_functions_in_a_loss_of_numbers_say_where_to_go():
    mine = type("Mine", (losses.Huber,), {"value": lambda self, z, y=None: z * z})()
    with pytest.raises(TypeError, match=r"Mine has its own value.*losses\.OwnLoss"):
        ERM(X, REAL[:, 0], mine)


def test_what_a_loss_is_given_it_cannot_change():
    class Greedy(Expectile):
        def value(self, z, y):
            z += 1.0
            return super().value(z, y)

    with pytest.raises(ValueError, match="read-only"):
        solve(ERM(X, REAL[:, 0], Greedy()))


def test_a_regulariser_that_takes_vectors_only_is_refused_for_matrices():
    class Sorted(RowNorms):
        def value(self, w):
            return float(w @ np.ones(5))  # of (5, 3) it is a vector

    with pytest.raises(ValueError, match=r"with 3 outputs w is a matrix of shape \(5, 3\).*Sorted"):
        ERM(X, REAL, "squared", Sorted())


# ---- a method -----------------------------------------------------------------------------------


class BarzilaiBorwein:
    """Gradient steps of the length <s, s>/<s, t>, s the last move and t the change of slopes."""

    name = "barzilai_borwein"
    needs = (SMOOTH_LOSS,)
    side, outputs, intercept = "primal", True, True

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.seen_as = problem.unpenalised() if problem.intercept else problem
        self.problem, self.w = problem, np.zeros(self.seen_as.w_shape)
        self.last, self.step = None, 1e-3
        return self

    def slope(self):
        p = self.seen_as
        x = p.loss.duals(p.samples.times(self.w), p.y, p.weights)
        return p.alpha * p.g.b * self.w - p.samples.adjoint(p.signed(x)) / p.n

    def advance(self, budget):
        for _ in range(budget.passes):
            slope = self.slope()
            if self.last is not None:
                moved, turned = self.w - self.last[0], slope - self.last[1]
                if np.vdot(moved, turned) > 0:
                    self.step = np.vdot(moved, moved) / np.vdot(moved, turned)
            self.last = self.w, slope
            self.w = self.w - self.step * slope
        return Work(budget.passes)

    def point(self):
        if not self.problem.intercept:
            return Point(w=self.w)
        b = self.w[-1]
        return Point(w=np.ascontiguousarray(self.w[:-1]), b=b if np.ndim(b) else float(b))

    def seen(self, certificate):
        pass


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("name", [*LOSSES, "squared", "huber"])
def test_an_own_method_with_own_and_other_losses(name, K, intercept):
    p = ERM(X, labels(name, K), LOSSES.get(name, name), alpha=0.1, intercept=intercept)
    r = solve(p, BarzilaiBorwein, tol=1e-6, check_every=5, max_epochs=500)
    assert r.converged, r.status
    assert r.primal == pytest.approx(solve(p, tol=1e-8).primal, rel=2e-6)
