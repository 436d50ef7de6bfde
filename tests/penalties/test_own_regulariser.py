"""A g of the user's in ERM: solved by "afg", certified by its conjugate, checked at the door."""

import math
import pickle
import re

import numpy as np
import pytest
from erm_problems import LOSSES, SMOOTH, data, dense

from apcg import ERM, functions, minimize, path, penalties, solve
from apcg.estimators import APCGRegressor

GROUPS = [np.array([0, 1, 2]), np.array([3, 6, 9]), np.array([4, 5, 7, 8]), np.array([10, 11])]
WEIGHTS = np.array([0.5, 1.5, 1.0, 0.8])


class GroupNorm:
    """sum_g c_g |w_g|_2 + (b/2)|w|^2"""

    def __init__(self, groups=GROUPS, c=WEIGHTS, b=0.0):
        self.groups, self.c, self.strong_convexity = groups, c, b

    def norms(self, w):
        return np.array([np.linalg.norm(w[g]) for g in self.groups])

    def shrunk(self, v, by):
        """Every group shortened by its own length, at most to zero."""
        w = np.zeros(v.size)
        for g, norm, c in zip(self.groups, self.norms(v), by * self.c, strict=True):
            if norm > c:
                w[g] = (1 - c / norm) * v[g]
        return w

    def value(self, w):
        return self.c @ self.norms(w) + self.strong_convexity / 2 * (w @ w)

    def prox(self, v, step):
        return self.shrunk(v, step) / (1 + step * self.strong_convexity)

    def conjugate(self, v):
        if self.strong_convexity == 0:
            return 0.0 if self.excess(v) <= 1 else math.inf
        return np.sum(np.maximum(self.norms(v) - self.c, 0) ** 2) / (2 * self.strong_convexity)

    def conjugate_gradient(self, v):
        return self.shrunk(v, 1.0) / self.strong_convexity

    def excess(self, v):
        return np.max(self.norms(v) / self.c)


def own(loss, b=0.0, alpha=0.05, weighted=False, **rest):
    X, y = data(loss, n=60, sparse=rest.pop("sparse", True))
    weights = np.random.default_rng(1).uniform(0, 2, 60) * (np.arange(60) > 2) if weighted else None
    return ERM(X, y, LOSSES[loss], GroupNorm(b=b), alpha, sample_weight=weights, **rest)


def check_conditions(p, r, tol):
    """The optimality conditions of P, from the data alone, group by group."""
    s = np.broadcast_to(p.weights, p.n_samples)
    slope = s * p.loss.derivative(dense(p) @ r.w + r.intercept, p.y) / p.n
    gradient = dense(p).T @ slope + p.alpha * p.g.strong_convexity * r.w
    zeros = 0
    for g, c in zip(GROUPS, WEIGHTS, strict=True):
        norm = np.linalg.norm(r.w[g])
        if norm > 1e-4:
            np.testing.assert_allclose(gradient[g], -p.alpha * c * r.w[g] / norm, atol=tol)
        else:
            zeros += 1
            assert np.linalg.norm(gradient[g]) <= p.alpha * c + tol
    if p.intercept:
        assert abs(slope.sum()) <= tol
    return zeros


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("b", [0.0, 0.3])
@pytest.mark.parametrize("loss", SMOOTH)
def test_it_is_solved_and_certified(loss, b, weighted, intercept):
    p = own(loss, b, weighted=weighted, intercept=intercept)
    r = solve(p, method="afg", tol=1e-8, max_epochs=50_000)
    assert r.converged
    assert r.gap <= 1e-8 * r.primal
    assert r.primal == pytest.approx(p.primal(r.w, r.intercept), rel=1e-14)
    assert r.dual == pytest.approx(p.dual(r.x), rel=1e-12)
    # P is 1/gamma-smooth in the predictions: a gap of 1e-8 is a residual of about its root
    check_conditions(p, r, 3e-4)
    # the certificate is true: no other point is below the dual value
    rng = np.random.default_rng(0)
    for step in 10 ** rng.uniform(-5, 0, 30):
        w = r.w + step * rng.standard_normal(12)
        assert p.primal(w, r.intercept) >= r.dual - 1e-14


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e3, 1e6])
def test_any_strength_of_strong_convexity(alpha):
    """The square is taken out of g by another step of its prox, which must stay below 1/mu."""
    steps = []

    class Seen(GroupNorm):
        def prox(self, v, step):
            steps.append(step)
            return super().prox(v, step)

    X, y = data("logistic")
    p = ERM(X, y, "logistic", Seen(c=1e-3 * WEIGHTS / alpha, b=1.0), alpha)
    steps.clear()
    r = solve(p, "afg", tol=1e-9, max_epochs=5000)
    assert r.converged
    assert len(steps) > 0
    assert min(steps) > 0
    # 1 - mu step is 1/2 at the least, so that the step of the prox of g is at most 1/mu: 1 here
    assert max(steps) <= 1 + 1e-12
    # P and D are strongly convex in w and omega(x): both are near the optimum
    rounding = 1e-15 * r.primal
    assert np.linalg.norm(r.w - p.omega(r.x)) <= 2 * math.sqrt(2 * (r.gap + rounding) / alpha)


@pytest.mark.parametrize("b", [0.0, 0.3])
def test_least_squares_agree_with_minimize_over_blocks(b):
    p = own("squared", b, alpha=0.9)
    r = solve(p, method="afg", tol=1e-9, max_epochs=50_000)
    f = functions.LeastSquares(dense(p) / np.sqrt(p.n), p.y / np.sqrt(p.n), sigma=p.alpha * b)
    m = minimize(
        f, penalties.GroupL2(p.alpha * WEIGHTS), blocks=GROUPS, tol=1e-10, max_epochs=100_000,
        random_state=0,
    )  # fmt: skip
    assert r.converged
    assert m.converged
    assert m.fun - 1e-12 <= r.primal <= m.fun + r.gap
    np.testing.assert_allclose(r.w, m.x, atol=1e-4)
    zeros = [np.linalg.norm(m.x[g]) < 1e-5 for g in GROUPS]
    assert zeros == [np.linalg.norm(r.w[g]) < 1e-5 for g in GROUPS]
    assert any(zeros)
    assert not all(zeros)
    check_conditions(p, r, 1e-4)


def test_strong_convexity_makes_a_dual_point_a_primal_one():
    p = own("logistic", 0.3)
    assert p.dual_form
    assert not p.separable
    r = solve(p, method="afg", tol=1e-10, max_epochs=50_000)
    np.testing.assert_allclose(p.omega(r.x), r.w, atol=1e-4)
    assert p.gap(r.x) <= 1e-8
    flat = own("logistic")
    assert not flat.dual_form
    with pytest.raises(ValueError, match="omega"):
        flat.omega(np.zeros(60))


def test_the_dual_point_is_scaled_into_the_domain():
    p = own("logistic", alpha=1e-3)
    z = p.predictions(np.zeros(12))
    for exact in (False, True):
        x, v = p.dual_point(z, exact=exact)
        assert 0.99 < p.g.excess(v) <= 1
        np.testing.assert_allclose(v, p.combine(x), atol=1e-12)
    assert math.isfinite(p.dual(p.dual_point(z, exact=True)[0]))
    raw = p.loss.duals(z, p.y, p.weights)
    assert p.dual(raw) == -math.inf


def test_a_conjugate_that_is_stricter_than_the_excess():
    """By a rounding the excess says inside, and the conjugate outside."""

    class Strict(GroupNorm):
        def conjugate(self, v):
            return 0.0 if np.all(self.norms(v) <= self.c * (1 - 1e-14)) else math.inf

    p = ERM(*data("logistic"), "logistic", Strict(), 0.01)
    v = np.zeros(12)
    v[0] = WEIGHTS[0]
    assert p.g.g.excess(v) == 1
    assert p.g.excess(v) > 1
    for w in (np.zeros(12), np.ones(12)):
        assert math.isfinite(p.dual(p.dual_point(p.predictions(w), exact=True)[0]))
    assert solve(p, "afg", tol=1e-8, max_epochs=5000).converged


def test_an_excess_that_never_ends():
    """The dual point of a g that is never content is 0, which is feasible."""

    class Stubborn(GroupNorm):
        calls = 0

        def excess(self, v):
            self.calls += 1
            return super().excess(v) if self.calls < 30 else 1.5

    p = ERM(*data("logistic"), "logistic", Stubborn(), 0.05)
    p.g.g.calls = 99
    x, v = p.dual_point(np.zeros(40), exact=True)
    assert not x.any()
    assert not v.any()


@pytest.mark.parametrize("b", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
def test_auto_takes_the_method_that_can(b, intercept):
    p = own("logistic", b, intercept=intercept)
    r = solve(p, tol=1e-8, max_epochs=5000)
    assert r.converged
    assert r.side == "primal"
    assert r.gap == pytest.approx(p.gap(r.x, r.w, r.intercept if intercept else None), abs=1e-14)


@pytest.mark.parametrize("b", [0.0, 0.3])
@pytest.mark.parametrize("method", ["adaptive", "apcg", "sdca"])
@pytest.mark.parametrize("intercept", [False, True])
def test_coordinate_methods_say_what_can_be_done(method, b, intercept):
    p = own("logistic", b, intercept=intercept)
    with pytest.raises(ValueError, match=r"a sum over features.*take one of 'auto', 'afg'"):
        solve(p, method)
    with pytest.raises(ValueError, match="penalty GroupNorm: coordinate methods"):
        _ = p.form
    with pytest.raises(ValueError, match='take method "afg"'):
        _ = p.L
    with pytest.raises(ValueError, match='take method "afg"'):
        _ = p.interval
    with pytest.raises(ValueError, match="needs penalty"):
        solve(p, "newton")
    if b > 0:
        with pytest.raises(ValueError, match='take method "afg"'):
            p.bordered()


def test_paths_labels_pickles_and_estimators():
    X, y = data("squared")
    p = ERM(X, y, "squared", GroupNorm(), 0.1)
    for alpha, r in zip([0.3, 0.1], path(p, [0.3, 0.1], "afg", tol=1e-8), strict=True):
        assert r.converged
        alone = solve(p.with_alpha(alpha), "afg", tol=1e-8)
        assert r.primal == pytest.approx(alone.primal, rel=2e-8)
    again = pickle.loads(pickle.dumps(p))
    assert again.primal(np.ones(12)) == p.primal(np.ones(12))
    assert solve(p.with_labels(-y), "afg").primal == pytest.approx(solve(p, "afg").primal, rel=1e-5)
    model = APCGRegressor("squared", penalty=GroupNorm(), alpha=0.1, method="afg", tol=1e-8)
    model.fit(X, y)
    r = solve(ERM(X, y, "squared", GroupNorm(), 0.1, intercept=True), "afg", tol=1e-8)
    np.testing.assert_allclose(model.coef_, r.w, atol=1e-3)


def test_it_cannot_write_to_what_it_gets_nor_keep_what_it_gave():
    class Writes(GroupNorm):
        def prox(self, v, step):
            v *= 0.5
            return v

    with pytest.raises(ValueError, match="read-only"):
        ERM(*data("squared"), "squared", Writes())

    class Keeps(GroupNorm):
        """Gives the same array every time."""

        out = np.empty(12)

        def prox(self, v, step):
            self.out[:] = super().prox(v, step)
            return self.out

    g = ERM(*data("squared"), "squared", Keeps(), 0.1).g
    v = np.linspace(1, 2, 12)
    first = g.prox(v, 0.1)
    before = first.copy()
    g.prox(2 * v, 0.1)
    np.testing.assert_array_equal(first, before)


class Bad(GroupNorm):
    """A group norm with some of its methods replaced."""

    def __init__(self, b=0.0, **methods):
        super().__init__(b=b)
        for name, method in methods.items():
            setattr(self, name, method)


@pytest.mark.parametrize(
    ("g", "kind", "text"),
    [
        (Bad(prox=None), TypeError, "Bad has no prox"),
        (Bad(excess=None), TypeError, "not strongly convex has the methods value, prox, conj"),
        (Bad(excess=None, conjugate=3), TypeError, "Bad has no conjugate, excess"),
        (Bad(b=1.0, conjugate_gradient=None), TypeError, "is strongly convex has the methods"),
        (Bad(b=-1.0), ValueError, "strong_convexity of penalty must be in [0, inf), got -1"),
        (Bad(b="1"), TypeError, "strong_convexity of penalty must be a number"),
        (Bad(value=lambda w: math.inf), ValueError, "must be finite at w = 0, got inf"),
        (Bad(value=lambda w: w), ValueError, "value(w) of penalty must give a number"),
        (Bad(value=lambda w: math.nan), ValueError, "value(w) of penalty must give a number"),
        (Bad(value=lambda w: None), ValueError, "must give a number, got None"),
        (Bad(conjugate=lambda v: math.inf), ValueError, "must be finite at v = 0, got inf"),
        (
            Bad(excess=lambda v: 2.0, conjugate=lambda v: 0.0),
            ValueError,
            "excess(v) of penalty must be at most 1 at v = 0",
        ),
        (Bad(prox=lambda v, step: v[:3]), ValueError, "array of shape (12,), got shape (3,)"),
        (Bad(prox=lambda v, step: None), ValueError, "array of shape (12,), got None"),
        (
            Bad(b=1.0, conjugate_gradient=lambda v: 0.0),
            ValueError,
            "conjugate_gradient(v) of penalty must give an array of shape (12,), got shape ()",
        ),
        # parts of different functions
        (Bad(prox=GroupNorm(c=2 * WEIGHTS).prox), ValueError, "do not belong to one function"),
        (Bad(prox=GroupNorm(c=WEIGHTS / 2).prox), ValueError, "do not belong to one function"),
        (Bad(value=GroupNorm(c=2 * WEIGHTS).value), ValueError, "g(w) + g*(u) must be <u, w>"),
        (Bad(b=1.0, conjugate=GroupNorm(b=2.0).conjugate), ValueError, "do not belong"),
        (Bad(prox=lambda v, step: v * np.nan), ValueError, "must give a number, got"),
        (Bad(conjugate=lambda v: 0.0), ValueError, "must be infinite where excess(v) is above 1"),
    ],
)
def test_a_g_that_cannot_be_used(g, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        ERM(*data("squared"), "squared", g)


def test_what_goes_with_it():
    X, y = data("logistic")
    with pytest.raises(ValueError, match="positive=True is for the penalties of apcg"):
        ERM(X, y, "logistic", GroupNorm(), positive=True)
    with pytest.raises(ValueError, match="not smooth, and with a penalty of your own, GroupNorm"):
        ERM(X, y, "hinge", GroupNorm(b=1.0))
    with pytest.raises(ValueError, match="Make an object of the class: GroupNorm"):
        ERM(X, y, "logistic", GroupNorm)
    p = ERM(X, y, "logistic", GroupNorm(), 0.1)
    with pytest.raises(ValueError, match="x0 must be within"):
        solve(ERM(X, y, "logistic", InBox(), 0.1), "afg", x0=np.full(12, 9.0))
    assert "penalty=GroupNorm" in repr(p)


class InBox:
    """The indicator of |w_j| <= 1: a g whose domain is not everything."""

    strong_convexity = 0.0

    def value(self, w):
        return 0.0 if np.all(np.abs(w) <= 1 + 1e-12) else math.inf

    def prox(self, v, step):
        return np.clip(v, -1, 1)

    def conjugate(self, v):
        return np.sum(np.abs(v))

    def excess(self, v):
        return 0.0


def test_a_box_of_ones_own_is_the_box():
    X, y = data("squared")
    r = solve(ERM(X, 3 * y, "squared", InBox(), 0.1), "afg", tol=1e-9, max_epochs=500)
    t = solve(ERM(X, 3 * y, "squared", penalties.Box(-1.0, 1.0), 0.1), tol=1e-9, max_epochs=5000)
    assert r.converged
    assert r.primal == pytest.approx(t.primal, rel=2e-9)
    assert np.count_nonzero(np.abs(r.w) > 1 - 1e-6) > 0
