"""ERM with K outputs: values against NumPy, answers against independent solvers."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs_problems import LAYOUTS, LOSSES, MARGINS, SMOOTH, data, problem
from quick import examples
from scipy.special import logsumexp

from apcg import ERM, losses, path, solve
from apcg.certify.points import Start
from apcg.losses import MulticlassHinge, Multinomial


def primal(p, X, w, b=0.0):
    """P(W, b), written out."""
    z = X @ w + b
    value = float(np.broadcast_to(p.weights, len(z)) @ p.loss.value(z, p.y)) / p.n
    a, square = p.g.soft or (1.0, 0.0)
    return value + p.alpha * (a * np.abs(w).sum() + square / 2 * np.sum(w**2))


def dual(p, X, x):
    """D(x), written out, for L2 and the elastic net."""
    s = np.broadcast_to(p.weights, len(x))
    signed = p.y * x if p.y.ndim == 2 and p.loss.loss.margin else x
    kept = s > 0
    value = s[kept] @ p.loss.conjugate(-signed[kept] / s[kept, None], p.y[kept])
    a, b = p.g.soft
    v = X.T @ signed / (p.alpha * p.n)
    return -value / p.n - p.alpha * np.sum(np.maximum(np.abs(v) - a, 0) ** 2) / (2 * b)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_those_of_numpy(loss, penalty):
    p = problem(loss, penalty, weighted=True)
    X = p.samples.stored
    w = np.random.default_rng(1).standard_normal((p.d, p.K))
    assert p.primal(w) == pytest.approx(primal(p, X, w), rel=1e-13)
    x, v = p.dual_point(X @ w)
    x, v = x * (1 - 1e-12), v * (1 - 1e-12)  # inside: NumPy knows nothing of rounding at a bound
    assert p.dual(x) == pytest.approx(dual(p, X, x), rel=1e-12)
    assert p.dual_from(x, v) == pytest.approx(p.dual(x), rel=1e-12)
    assert p.gap(x, w) >= 0
    assert p.gap(x) >= 0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_certifies(loss, penalty, weighted, intercept):
    p = problem(loss, penalty, weighted=weighted, intercept=intercept)
    hard = loss in ("crammer_singer", "epsilon")
    tol = 1e-4 if hard and intercept else 1e-8
    r = solve(p, tol=tol, random_state=0, max_epochs=20000)
    assert r.converged, r.status
    X = p.samples.stored
    assert r.primal == pytest.approx(primal(p, X, r.w, r.intercept), rel=1e-12)
    inside = r.x * (1 - 1e-12)  # NumPy knows nothing of rounding at a bound
    assert r.dual == pytest.approx(dual(p, X, inside), rel=1e-9)
    assert r.gap <= tol * abs(r.primal)
    if intercept:
        signed = p.y * r.x if loss in MARGINS else r.x
        assert np.abs(signed.sum(axis=0)).max() <= 1e-11 * np.abs(r.x).sum()


@pytest.mark.slow(but=20)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", ["auto", "sdca", "apcg", "afg", "newton"])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "huber", "logistic"])
def test_methods_and_layouts_agree(loss, method, layout):
    p = problem(loss, alpha=0.05, layout=layout)
    exact = solve(problem(loss, alpha=0.05), tol=1e-12, random_state=0, max_epochs=20000)
    r = solve(p, method, tol=1e-9, random_state=1, max_epochs=20000)
    assert r.converged, r.status
    close = 1e-6 if layout == "float32" else 1e-9  # X itself differs by 1e-7
    assert r.primal == pytest.approx(exact.primal, rel=close)
    assert r.method == method


@pytest.mark.parametrize("K", [2, 3, 4, 7, 8, 9, 33, 50])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "squared"])
def test_any_number_of_outputs(loss, K):
    p = problem(loss, n=120, K=K, alpha=1e-2, layout="csr")
    r = solve(p, tol=1e-9, random_state=0, max_epochs=20000)
    assert r.converged, r.status
    assert r.w.shape == (p.d, K)
    assert r.x.shape == (120, K)
    other = solve(p, "afg", tol=1e-9, max_epochs=20000)
    assert np.abs(r.w - other.w).max() <= 1e-3 * np.abs(r.w).max()


@pytest.mark.parametrize(("multi", "binary", "alpha"), [
    (Multinomial(), "logistic", 0.03),
    (MulticlassHinge(0.3), losses.SmoothedHinge(0.6), 0.03),
    (MulticlassHinge(), "hinge", 0.03),
])  # fmt: skip
def test_two_classes_are_the_binary_problem(multi, binary, alpha):
    """With W = (-w/2, w/2) the square halves: lambda is twice that of the binary problem."""
    X, y = data("softmax", K=2)
    r = solve(ERM(X, y, multi, "l2", 2 * alpha), tol=1e-9, random_state=0, max_epochs=20000)
    one = solve(ERM(X, 2.0 * y - 1, binary, "l2", alpha), tol=1e-10, random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(one.primal, rel=3e-9)
    assert np.allclose(r.w[:, 1] - r.w[:, 0], one.w, atol=1e-3)


def test_many_outputs_of_a_sum_are_as_many_problems():
    p = problem("squared", n=30, d=50, K=3, alpha=1e-3)
    r = solve(p, tol=1e-11, random_state=0, max_epochs=20000)
    for k in range(3):
        one = solve(ERM(p.samples.stored, p.y[:, k], "squared", "l2", 1e-3), tol=1e-11)
        assert np.allclose(r.w[:, k], one.w, atol=1e-4)


def test_integer_weights_are_repetitions():
    X, y = data("softmax")
    times = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = ERM(np.repeat(X, times, axis=0), np.repeat(y, times), Multinomial(5), alpha=0.02)
    weighted = ERM(X, y, Multinomial(5), alpha=0.02, sample_weight=times)
    a, b = (solve(p, tol=1e-11, random_state=0) for p in (repeated, weighted))
    assert a.primal == pytest.approx(b.primal, rel=1e-10)
    assert np.allclose(a.w, b.w, atol=1e-4)
    assert not b.x[times == 0].any()


@pytest.mark.parametrize("loss", ["softmax", "smoothed", "crammer_singer"])
def test_a_class_that_is_absent(loss):
    X, y = data(loss)
    y[y == 3] = 2
    p = ERM(X, y, type(LOSSES[loss])(n_classes=6), alpha=0.05)
    r = solve(p, tol=1e-6, random_state=0, max_epochs=20000)
    assert r.converged
    assert p.K == 6
    with pytest.raises(ValueError, match="no sample of class 3"):
        ERM(X, y, type(LOSSES[loss])(n_classes=6), alpha=0.05, intercept=True)


@pytest.mark.parametrize("loss", ["softmax", "smoothed"])
def test_rows_of_w_and_intercepts_sum_to_zero(loss):
    r = solve(problem(loss, intercept=True), tol=1e-10, random_state=0, max_epochs=20000)
    assert np.abs(r.w.sum(axis=1)).max() <= 1e-12 * np.abs(r.w).sum()
    assert abs(r.intercept.sum()) <= 1e-12 * np.abs(r.intercept).sum()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["digits", "iris", "wine"])
def test_the_objective_is_that_of_scikit_learn(name, intercept):
    import sklearn.datasets
    from sklearn.linear_model import LogisticRegression

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    X = X / np.abs(X).max(axis=0).clip(1e-9)
    alpha = 1e-3
    p = ERM(X, y, "multinomial", alpha=alpha, intercept=intercept)
    r = solve(p, tol=1e-9, random_state=0)
    peer = LogisticRegression(C=1 / (alpha * len(y)), fit_intercept=intercept, tol=1e-9,
                              solver="newton-cg", max_iter=1000).fit(X, y)  # fmt: skip
    assert r.converged
    theirs = p.primal(peer.coef_.T.copy(), peer.intercept_ if intercept else 0.0)
    assert theirs * (1 - 1e-6) <= r.primal <= theirs * (1 + 1e-8)  # theirs ends at a gradient


def test_huge_logits_and_empty_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * 1e3
    X[3] = 0.0
    y = rng.integers(0, 4, 40)
    for loss in (Multinomial(4), MulticlassHinge(0.5, 4)):
        r = solve(ERM(X, y, loss, alpha=1.0), tol=1e-6, random_state=0, max_epochs=20000)
        assert r.converged, r.status


@examples(40)
@given(st.integers(0, 10**6))
def test_certificates_of_random_problems_hold(seed):
    """The gap is never negative beyond rounding, and never below the true distance."""
    rng = np.random.default_rng(seed)
    n, d, K = (int(k) for k in rng.integers(2, [30, 12, 7]))
    loss = [
        Multinomial(K),
        MulticlassHinge(0.0, K),
        MulticlassHinge(float(rng.uniform(0.01, 3)), K),
    ]
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    y = rng.integers(0, K, n)
    y[0], y[1] = 0, K - 1
    weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.7) + (np.arange(n) < 2)
    p = ERM(X, y, loss[rng.integers(3)], rng.choice(["l2", "elasticnet"]),
            10.0 ** rng.uniform(-4, 1), sample_weight=weights)  # fmt: skip
    early = solve(p, tol=1e-2, max_epochs=10, random_state=0)
    late = solve(p, tol=1e-9, max_epochs=3000, random_state=0)
    scale = 1e-13 * (abs(late.primal) + abs(early.primal) + 1)
    for r in (early, late):
        assert r.gap >= -scale
        assert p.primal(r.w) - p.dual(r.x) == pytest.approx(r.gap, abs=scale)
        assert r.dual <= late.primal + scale
        assert early.primal >= late.dual - scale


def test_the_same_seed_gives_the_same_bits():
    p = problem("softmax", alpha=1e-4, layout="csr", n=200)
    a, b = (solve(p, tol=1e-8, random_state=7) for _ in range(2))
    assert np.array_equal(a.w, b.w)
    assert np.array_equal(a.x, b.x)


@pytest.mark.parametrize("loss", ["softmax", "smoothed", "huber"])
def test_warm_starts_and_paths(loss):
    p = problem(loss, alpha=1e-3, n=150)
    r = solve(p, tol=1e-8, random_state=0, max_epochs=20000)
    assert solve(p, x0=r, tol=1e-7, random_state=0).epochs == 0
    near = p.with_alpha(1.1e-3)
    warm, cold = (solve(near, tol=1e-6, x0=x0, random_state=0) for x0 in (r, None))
    assert warm.converged
    assert cold.converged
    if loss == "softmax":
        assert warm.epochs <= cold.epochs
    assert solve(near, x0=r.x, tol=1e-6, random_state=0).converged
    assert solve(near, x0=Start(w=r.w), tol=1e-6, random_state=0).converged
    answers = path(p, [1e-1, 1e-2, 1e-3], tol=1e-6, random_state=0)
    assert all(q.converged for q in answers)


def test_pickles_and_shares():
    p = problem("softmax")
    again = pickle.loads(pickle.dumps(p))
    w = np.ones((p.d, p.K))
    assert again.primal(w) == p.primal(w)
    other = p.with_labels(np.roll(p.y, 1))
    assert other.samples is p.samples
    assert other.K == p.K
    assert "5 outputs" in repr(p)


class Quadratic(losses.OutputsLoss):
    """|z - e|^2/2, e the unit vector of the label: a loss of the user's."""

    name = "brier"
    gamma = 1.0

    def value(self, z, y):
        return 0.5 * np.sum(self.derivative(z, y) ** 2, axis=1)

    def derivative(self, z, y):
        return z - np.eye(z.shape[1])[y]

    def conjugate(self, u, y):
        return np.sum(0.5 * u**2 + u * np.eye(u.shape[1])[y], axis=1)


def test_a_loss_of_the_users_is_solved_in_the_primal():
    X, y = data("softmax")
    p = ERM(X, y, Quadratic(), alpha=0.1)
    r = solve(p, tol=1e-9, max_epochs=5000)
    assert r.converged
    A = X.T @ X / p.n + 0.1 * np.eye(p.d)
    assert np.allclose(r.w, np.linalg.solve(A, X.T @ np.eye(p.K)[y] / p.n), atol=1e-4)


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"y": [0, 1, 2, -1]}, ValueError, "0..K-1, got -1"),
    ({"y": [0, 1, 2, 0.5]}, ValueError, "0..K-1, got 0.5"),
    ({"y": ["a", "b", "c", "a"]}, TypeError, "return_inverse"),
    ({"y": [1, 1, 1, 1]}, ValueError, "only one class"),
    ({"y": [0, 1, 2, 99]}, ValueError, "only 4 samples"),
    ({"loss": Multinomial(2)}, ValueError, "there are 2 classes"),
    ({"penalty": "l3"}, ValueError, "group_elasticnet"),
    ({"y": np.ones((3, 2)), "loss": "squared"}, ValueError, r"\(4, K\)"),
    ({"y": np.zeros((4, 2)), "loss": "hinge"}, ValueError, "-1 and 1"),
])  # fmt: skip
def test_what_is_wrong_is_said(change, error, words):
    given = {"X": np.eye(4), "y": [0, 1, 2, 0], "loss": "multinomial"} | change
    with pytest.raises(error, match=words):
        ERM(**given)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
def test_newton_by_factors_and_by_products(monkeypatch, loss, intercept):
    """Both certify; the second for problems with too many unknowns for a factor."""
    from apcg.methods.newton import many_outputs as newton_k

    p = problem(loss, alpha=1e-3, intercept=intercept, weighted=True, layout="csr")
    one = solve(p, "newton", tol=1e-8, max_epochs=5000)
    monkeypatch.setattr(newton_k, "applies", lambda *_: False)
    two = solve(p, "newton", tol=1e-8, max_epochs=5000)
    assert one.converged, one.status
    assert two.converged, two.status
    assert two.epochs > one.epochs
    assert one.primal == pytest.approx(two.primal, rel=2e-8)


def test_methods_that_do_not_fit_say_so():
    p = problem("crammer_singer")
    with pytest.raises(ValueError, match="smooth"):
        solve(p, "afg")
    with pytest.raises(ValueError, match="smooth"):
        solve(p, "newton")
    with pytest.raises(ValueError, match="needs one output, and there are 5"):
        solve(p, "adaptive")
    with pytest.raises(ValueError, match="shape"):
        solve(p, x0=np.zeros(3))
    with pytest.raises(ValueError, match="dual feasible"):
        solve(p, x0=np.ones((p.n, p.K)))
    assert math.isinf(p.dual(np.ones((p.n, p.K))))


def test_logsumexp_of_the_gap_is_exact_at_rounding_level():
    """P of the softmax at huge margins is tiny and still relative to itself right."""
    X = np.diag([800.0, 30.0])
    p = ERM(X, [0, 1], "multinomial", alpha=1e-3)
    w = np.array([[1.0, 0.0], [0.0, 1.0]])
    expected = np.mean([logsumexp([800.0, 0]) - 800, logsumexp([0, 30.0]) - 30])
    assert p.primal(w) - 1e-3 == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("share", [0.3, 0.05])
def test_the_multi_task_lasso_is_that_of_scikit_learn(share, intercept):
    from sklearn.linear_model import MultiTaskLasso

    X, Y = data("squared", n=80, d=30, K=4)
    centred = Y - Y.mean(axis=0) if intercept else Y
    alpha = share * np.linalg.norm(X.T @ centred, axis=1).max() / len(Y)
    r = solve(ERM(X, Y, "squared", "group", alpha, intercept=intercept), tol=1e-9, max_epochs=10**5)
    assert r.converged, r.status
    peer = MultiTaskLasso(alpha, fit_intercept=intercept, tol=1e-12, max_iter=10**5).fit(X, Y)
    assert np.abs(r.w - peer.coef_.T).max() <= 1e-4 * np.abs(r.w).max()
    assert np.array_equal(r.w.any(axis=1), peer.coef_.any(axis=0))


@pytest.mark.parametrize("penalty", ["l1", "group", "group_elasticnet"])
@pytest.mark.parametrize("loss", ["softmax", "smoothed", "squared"])
def test_penalties_solved_in_the_primal_certify(loss, penalty):
    p = problem(loss, penalty, alpha=0.02, weighted=True, intercept=True)
    r = solve(p, tol=1e-7, max_epochs=10**5)
    assert r.converged, r.status
    assert p.primal(r.w, r.intercept) - p.dual(r.x) == pytest.approx(r.gap, abs=1e-12)
    if penalty == "group":
        used = r.w.any(axis=1)
        assert np.all(r.w[used] != 0)


@given(st.integers(0, 10**6))
def test_a_group_penalty_and_its_conjugate_belong_together(seed):
    """Moreau: v = prox(v) + u with g(w) + g*(u) = <u, w>, and excess says what is outside."""
    from apcg.penalties.groups import GroupNorms

    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.1, 2), rng.choice([0.0, 0.7])
    g, v = GroupNorms(a, b), 2 * rng.standard_normal((6, 3))
    w = g.prox(v, 1.0)
    u = v - w
    if b == 0 and g.excess(u) > 1:
        assert g.excess(u) <= 1 + 1e-12
        u = u / (g.excess(u) * (1 + 1e-12))
    assert g.value(w) + g.conjugate(u) == pytest.approx(float(np.vdot(u, w)), abs=1e-10)
    if b > 0:
        assert np.allclose(g.conjugate_gradient(u), w, atol=1e-12)
    else:
        assert g.conjugate(u * 1.01 + 1e-9 * a) == np.inf or not w.any()


def test_crammer_singer_is_that_of_liblinear():
    """scikit-learn's LinearSVC is LIBLINEAR -s 4 here; its W is never better than our bound."""
    from sklearn.datasets import load_iris
    from sklearn.svm import LinearSVC

    X, y = load_iris(return_X_y=True)
    X, alpha = X / X.max(axis=0), 1e-2
    p = ERM(X, y, "multiclass_hinge", alpha=alpha)
    r = solve(p, tol=1e-7, random_state=0, max_epochs=20000)
    assert r.converged
    peer = LinearSVC(C=1 / (alpha * len(y)), multi_class="crammer_singer", tol=1e-8,
                     fit_intercept=False, max_iter=10**6, random_state=0).fit(X, y)  # fmt: skip
    theirs = p.primal(peer.coef_.T.copy())
    assert r.dual <= theirs
    assert theirs == pytest.approx(r.primal, rel=1e-6)
