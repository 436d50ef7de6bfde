"""Small dense problems, which `solve` does in one kernel call: the same answers, certified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apcg import ERM, penalties, solve
from apcg.certify.certificate import certify
from apcg.certify.points import Point
from apcg.methods.plan.plan import Auto
from apcg.run import small
from apcg.run.loop import Options

LOSSES = ("squared", "huber", "logistic", "squared_hinge", "smoothed_hinge")
KINKED, REAL = ("hinge", "epsilon_insensitive"), ("squared", "huber", "epsilon_insensitive")


def problem(seed=0, n=100, d=10, loss="logistic", penalty="l2", alpha=0.01, weighted=False, **more):
    """Columns of different scales, both classes with weight."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-1, 2, d)
    t = X[:, 0] / np.abs(X[:, 0]).max() + 0.3 * rng.standard_normal(n)
    y = t if loss in REAL else np.where(t > np.median(t), 1.0, -1.0)
    weights = 0.5 + rng.integers(0, 3, n) if weighted else None
    return ERM(X, y, loss, penalty, alpha, sample_weight=weights, **more)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(LOSSES), st.floats(-6, 0), st.booleans(), st.booleans(),
    st.sampled_from((1e-3, 1e-6, 1e-9, 1e-12)),
)  # fmt: skip
def test_l2_is_that_of_the_plan(seed, loss, power, weighted, intercept, tol):
    """The same optimum as by the usual way; P, D and the gradient computed again."""
    more = {"alpha": 10.0**power, "weighted": weighted, "intercept": intercept}
    check(problem(seed, loss=loss, **more), tol)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(("l1", "elasticnet")), st.floats(-4, 0), st.booleans(),
    st.booleans(), st.sampled_from((1e-3, 1e-6, 1e-9)),
)  # fmt: skip
def test_l1_is_that_of_the_plan(seed, penalty, power, weighted, intercept, tol):
    more = {"alpha": 10.0**power, "weighted": weighted, "intercept": intercept}
    check(problem(seed, loss="squared", penalty=penalty, **more), tol)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(("l2", "l1")), st.floats(-6, 0), st.booleans(),
    st.sampled_from(((2_345, True), (14_000, False))), st.sampled_from((1e-3, 1e-9)),
)  # fmt: skip
def test_the_squared_loss_on_more_rows(seed, penalty, power, intercept, shape, tol):
    """Over blocks of rows that do not divide n; the larger without weights, by BLAS."""
    n, weighted = shape
    more = {"penalty": penalty, "alpha": 10.0**power, "intercept": intercept, "weighted": weighted}
    p = problem(seed, n=n, d=5, loss="squared", **more)
    assert taken(p)
    check(p, tol)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(LOSSES[1:]), st.floats(-7, 0), st.booleans(),
    st.booleans(), st.sampled_from((1e-3, 1e-6, 1e-10, 1e-12)),
)  # fmt: skip
def test_newton_from_samples(seed, loss, power, weighted, intercept, tol):
    """Two samples of the rows, then a factor of one that is not H."""
    more = {"alpha": 10.0**power, "weighted": weighted, "intercept": intercept}
    p = problem(seed, n=3_001, d=5, loss=loss, **more)
    assert taken(p)
    check(p, tol)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_samples_that_mislead(loss):
    """Each row of a sample is far from all others and says the opposite, or has no weight."""
    p = problem(n=3_000, d=5, loss=loss, alpha=1e-3, intercept=True)
    X, y, weights = p.samples.times(np.eye(5)[0])[:, None] * np.ones(5), p.y.copy(), np.ones(3_000)
    X += np.random.default_rng(1).standard_normal(X.shape)
    drawn = np.arange(0, 3_000, 3_000 // small._samples(3_000, 6)[-1])
    odd = drawn[drawn % (3_000 // small._samples(3_000, 6)[0]) > 0]
    y[odd], X[odd], weights[drawn[::2]] = -y[odd], 30 * X[odd], 0.0
    for s in (None, weights):
        made = ERM(X, y, loss, "l2", 1e-3, intercept=True, sample_weight=s)
        assert taken(made)
        check(made, 1e-10)


def test_many_rows_need_few_matrices():
    """H of all rows costs eight passes here; a sample's does for nearly all steps."""
    for loss in ("logistic", "squared_hinge", "huber"):
        p = problem(n=20_000, d=48, loss=loss, alpha=1e-4, intercept=True)
        assert solve(p, tol=1e-10, random_state=0).epochs < 20


@pytest.mark.parametrize("intercept", [False, True])
def test_a_gap_from_sums_alone_is_no_less_than_that_of_the_rows(intercept):
    """Columns of 1e4 and a target far from zero, whose rounding the sums do not see."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 8)) * 10.0 ** np.linspace(-2, 4, 8) + 3.0
    p = ERM(X, 1e3 + rng.standard_normal(4_000), "squared", "l2", 1e-2, intercept=intercept)
    r = solve(p, tol=1e-3)
    assert taken(p, tol=1e-3)
    wide = [np.asarray(a, dtype=np.longdouble) for a in (X, p.y, r.x, r.w)]
    A, y, x, w = wide
    g = A.T @ x / len(A) - p.alpha * w  # the gap at x is that of the slopes, and of x - (y - z)
    gap = float(g @ g / (2 * p.alpha) + np.mean((x - (y - A @ w - r.intercept)) ** 2) / 2)
    assert gap <= r.gap <= 1e-3 * r.primal


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(-4, -1), st.booleans(), st.sampled_from((1e-6, 1e-10)))
def test_a_softmax_is_that_of_the_plan(seed, power, intercept, tol):
    p = softmax(seed, 10.0**power, intercept)
    r, usual = solve(p, tol=tol, random_state=0), solve(p, Auto(), tol=tol, random_state=0)
    assert taken(p, tol=tol)
    assert p.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-12)
    assert p.primal(r.w, r.intercept) - p.dual(r.x) <= tol * r.primal * (1 + 1e-6) + 1e-14
    assert r.primal == pytest.approx(usual.primal, rel=2 * tol, abs=1e-14)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(KINKED), st.floats(-4, -1),
    st.booleans(), st.booleans(), st.sampled_from((1e-4, 1e-8)),
)  # fmt: skip
def test_losses_with_kinks_are_those_of_the_plan(seed, loss, power, weighted, intercept, tol):
    more = {"alpha": 10.0**power, "weighted": weighted, "intercept": intercept}
    check(problem(seed, loss=loss, **more), tol)


def softmax(seed=0, alpha=0.01, intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 4))
    y = np.argmax(X[:, :3] + rng.gumbel(size=(90, 3)), axis=1)
    return ERM(X, y, "multinomial", "l2", alpha, intercept=intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(40, 5), (2500, 70)])
def test_columns_are_those_of_least_squares(shape, weighted, intercept):
    """Ridge regression is least squares with rows for the penalty: all digits of W and b."""
    rng, (n, d), alpha = np.random.default_rng(3), shape, 0.01
    X, Y = rng.standard_normal(shape) + 1, rng.standard_normal((n, 3))
    s = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    weights = s if weighted else None
    p = ERM(X, Y, "squared", "l2", alpha, sample_weight=weights, intercept=intercept)
    assert small.is_small(p)
    r, root = solve(p, tol=1e-15), np.sqrt(s / s.sum())[:, None]
    A = np.hstack([root * X, root]) if intercept else root * X
    A = np.vstack([A, np.sqrt(alpha) * np.eye(d, A.shape[1])])
    wanted = np.linalg.lstsq(A, np.vstack([root * Y, np.zeros((d, 3))]))[0]
    np.testing.assert_allclose(r.w, wanted[:d], rtol=1e-9, atol=1e-12)
    if intercept:
        np.testing.assert_allclose(r.intercept, wanted[d], rtol=1e-9)
    assert r.status.code in ("converged", "precision")
    assert r.gap <= 1e-14 * r.primal


def check(p, tol):
    r, usual = solve(p, tol=tol, random_state=0), solve(p, Auto(), tol=tol, random_state=0)
    b = r.intercept if p.intercept else 0.0
    assert p.primal(r.w, b) == pytest.approx(r.primal, rel=1e-12)
    assert p.dual(r.x) == pytest.approx(r.dual, rel=1e-11, abs=1e-14)
    assert r.converged == usual.converged
    assert r.primal - p.dual(r.x) <= tol * r.primal * (1 + 1e-9) + 1e-14
    assert r.primal == pytest.approx(usual.primal, rel=2 * tol, abs=1e-14)
    assert r.method == "auto"
    assert r.trace.columns == usual.trace.columns
    assert r.trace.notes
    assert r.epochs >= 1


def taken(p, **options):
    return small.solve_small(p, Options(**options)) is not None


def test_which_problems_are_solved_here():
    assert taken(problem())
    assert taken(problem(loss="squared", penalty="l1"))
    assert taken(problem(loss="squared", penalty="elasticnet", intercept=True))
    assert taken(problem(n=5_000, loss="squared"))
    assert taken(problem(n=2_000))
    assert taken(problem(n=2_000, d=100))
    assert taken(softmax())
    assert taken(problem(loss="hinge"))
    assert taken(rows_alike())
    assert taken(rows_alike(penalty="group_elasticnet", intercept=True))
    assert not taken(rows_alike(n=20))
    for other in (
        problem(n=200_000, d=60),
        problem(n=2_000, d=70, loss="squared_hinge"),
        problem(n=15),
        problem(loss="hinge", n=1_900, d=50),
        problem(penalty="l1"),
        problem(penalty=penalties.Box(0.0, 1.0)),
        problem(positive=True),
        problem(alpha=0.0),
    ):
        assert not taken(other)


def test_who_watches_sees_the_usual_way():
    p, seen = problem(), []
    for options in ({"check_every": 1}, {"verbose": 1}, {"time_limit": 9.0}, {"max_epochs": 5}):
        assert not taken(p, **options)
    r = solve(p, callback=lambda check: seen.append(check.gap), random_state=0)
    assert r.converged
    assert len(seen) == len(r.trace)


def test_what_a_factor_cannot_do_goes_the_usual_way():
    """Columns that are alike to 1e-9 and next to no ridge."""
    p = problem(loss="squared", alpha=1e-14)
    X = np.hstack([p.samples.times(np.eye(10)[0])[:, None]] * 2)
    X[:, 1] *= 1 + 1e-9 * np.random.default_rng(1).standard_normal(100)
    p = ERM(X, p.y, "squared", "l2", 1e-14)
    assert not taken(p)
    assert solve(p, random_state=0).converged


def test_columns_of_y_that_a_factor_cannot_tell_apart_go_the_usual_way():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((100, 2)), 2, axis=1)
    X[:, 1] += 1e-6 * rng.standard_normal(100)
    Y = rng.standard_normal((100, 3))
    assert taken(ERM(X[:, ::2], Y, "squared", "l2", 1e-12))
    assert not taken(ERM(X[:, :2], Y, "squared", "l2", 1e-12))


def test_an_answer_that_is_worse_than_zero_is_none(monkeypatch):
    """However small its gap is."""
    p = problem(loss="squared", alpha=1e9)
    r = solve(p, tol=1e-12, random_state=0)

    def worse(p, X, tol):
        return certify(p, Point(-1e-3 * r.w, r.x)), 1, "newton: a point beyond 0"

    monkeypatch.setattr(small, "_newton", worse)
    assert worse(p, None, 0)[0].relative <= 1e-6
    assert not taken(p)


def test_a_constant_answer_is_not_worse_than_zero():
    """lambda so large that w is next to nothing."""
    for penalty in ("l2", "l1", "elasticnet"):
        p = problem(loss="squared", penalty=penalty, alpha=1e6, intercept=True)
        r = solve(p, random_state=0)
        assert r.converged
        zero = p.primal(np.zeros(10), p.best_intercept(np.zeros(100)))
        assert r.primal <= zero * (1 + 1e-15)


def test_seeds_that_are_none_are_refused():
    with pytest.raises(ValueError, match="random_state"):
        solve(problem(), random_state=-1)
    with pytest.raises(TypeError, match="random_state"):
        solve(problem(), random_state="one")


def test_squares_of_slopes_that_underflow_are_no_proof():
    """g^2 is zero, and g^2/(2 ridge) is far above P."""
    y = 1e-107 * np.random.default_rng(0).standard_normal(30)
    X = 1e-64 * np.random.default_rng(1).standard_normal((30, 3))
    p = ERM(X, y, "squared", "l2", 4.7e-172)
    try:
        r = solve(p, random_state=0)
    except ValueError:
        return
    v = X.astype(np.longdouble).T @ r.x.astype(np.longdouble) / np.longdouble(p.alpha * 30)
    x = r.x.astype(np.longdouble)
    D = np.mean(x * y - x * x / 2) - np.longdouble(p.alpha) * np.sum(v * v) / 2
    assert not r.converged or r.primal * (1 - 2e-6) <= D


def wide(seed=0, loss="logistic", alpha=0.01, intercept=False, weighted=False, n=30, d=80):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    t = X[:, 0] + 0.3 * rng.standard_normal(n)
    y = t if loss in REAL else np.where(t > np.median(t), 1.0, -1.0)
    weights = rng.integers(1, 4, n) if weighted else None
    return ERM(X, y, loss, "l2", alpha, intercept=intercept, sample_weight=weights)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from((*LOSSES, *KINKED)), st.floats(-6, 0),
    st.booleans(), st.booleans(), st.sampled_from((1e-3, 1e-8)),
)  # fmt: skip
def test_few_rows_with_many_features_are_those_of_the_plan(
    seed, loss, power, weighted, intercept, tol
):
    check(wide(seed, loss, 10.0**power, intercept, weighted), tol)


def test_which_wide_problems_are_taken():
    for loss in ("squared", "logistic", "squared_hinge", *KINKED):
        assert taken(wide(loss=loss))
        assert solve(wide(loss=loss)).side == "dual"  # a path goes on in the dual
    assert not taken(wide(), tol=1e-12)  # all digits of w
    assert not taken(wide(loss="huber"))  # Newton's method may go round between its pieces
    assert not small.is_small(wide(n=30, d=50))
    p = wide(alpha=1e-12)
    hidden = ERM(1e4 * p.samples.stored, p.y, "logistic", "l2", 1e-12)
    assert not small.is_small(hidden)  # the rounding of X X' hides alpha
    assert np.isfinite(solve(hidden).primal)


def rows_alike(seed=0, K=2, penalty="group", alpha=0.1, n=120, d=8, **more):
    """K targets of columns that are correlated, far from zero and of different scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.1 * rng.standard_normal((d, d)))
    X = X * 10.0 ** rng.integers(-1, 2, d) + 0.2
    Y = X[:, :3] @ rng.standard_normal((3, K)) + rng.standard_normal((n, K))
    return ERM(X, Y if K > 1 else Y[:, 0], "squared", penalty, alpha, **more)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(("group", "group_elasticnet")), st.floats(-3, 0),
    st.booleans(), st.booleans(), st.sampled_from((1e-4, 1e-8)),
)  # fmt: skip
def test_norms_of_rows_are_those_of_the_plan(seed, penalty, power, weighted, intercept, tol):
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 120) if weighted else None
    p = rows_alike(seed, 2, penalty, 10.0**power, sample_weight=weights, intercept=intercept)
    r, usual = solve(p, tol=tol, random_state=0), solve(p, Auto(), tol=tol, random_state=0)
    assert p.primal(r.w, r.intercept) == pytest.approx(r.primal, rel=1e-12)
    assert r.primal - p.dual(r.x) <= tol * r.primal * (1 + 1e-9) + 1e-14
    assert r.primal == pytest.approx(usual.primal, rel=2 * tol, abs=1e-14)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from((1, 3)), st.booleans(), st.sampled_from((1e-5, 1e-9)))
def test_a_path_by_moments_is_that_of_single_answers(seed, K, ridged, tol):
    """Every gap is at least the true one, which a finer answer of the usual way shows."""
    penalty = ("l1", "elasticnet") if K == 1 else ("group", "group_elasticnet")
    p, alphas = rows_alike(seed, K, penalty[ridged]), np.geomspace(10, 0.01, 12)
    found = small.path_small(p, alphas, tol)
    assert len(found) == alphas.size
    for alpha, r in zip(alphas, found, strict=True):
        at = p.with_alpha(float(alpha))
        fine = solve(at, Auto(), tol=1e-12, random_state=0)
        assert at.primal(r.w) - fine.primal <= r.gap
        assert r.gap <= max(tol, small.ENOUGH) * at.primal(r.w) * (1 + 1e-9)


def test_a_path_that_rounding_hides_is_not_by_moments():
    """A target that is fitted to its last digits: the moments show nothing of what is left."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 5))
    p = ERM(X, X @ np.ones(5) + 1e-9 * rng.standard_normal(100), "squared", "l1", 1.0)
    alphas = np.array([1e-1, 1e-16])
    assert len(small.path_small(p, alphas, 1e-9)) == 1


@pytest.mark.parametrize("loss", ["huber", "smoothed_hinge", "squared_hinge", "logistic"])
def test_x_is_feasible_to_the_last_bit(loss):
    """Rows at the edge of the domain: -s phi'(z) may be outside by a rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((84, 5))
        y = X[:, 0] + 3 * rng.standard_normal(84)
        p = ERM(X, y if loss == "huber" else np.where(y > 0, 1.0, -1.0), loss, "l2", 1e-2)
        r = solve(p)
        assert p.dual(r.x) == pytest.approx(r.dual, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_samples_that_weigh_nothing(seed):
    """Rows of a first sample may have no weight: nothing is known of H then."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6000, 5))
    y = np.where(X[:, 0] + rng.standard_normal(6000) > 0, 1.0, -1.0)
    weights = rng.uniform(0.5, 1.5, 6000)
    for rows in small._samples(6000, 5):
        weights[:: 6000 // rows] = 0.0
    p = ERM(X, y, "logistic", alpha=1e-3, sample_weight=weights)
    found, usual = solve(p), solve(p, time_limit=60)
    assert found.converged
    assert found.epochs <= solve(ERM(X, y, "logistic", alpha=1e-3)).epochs + 20
    assert found.primal == pytest.approx(usual.primal, rel=2e-6)
