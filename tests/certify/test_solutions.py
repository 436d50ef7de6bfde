"""Solutions agree with other people's solvers, or carry a certificate that this file computes."""

import numpy as np
import pytest
import scipy.sparse as sp
from cases import array, shuffled_blocks
from scipy.optimize import Bounds, lsq_linear, nnls
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import ElasticNet, Lasso

from apcg import functions, minimize, penalties

#: Both methods, and both choices of sampling.
METHODS = {
    "auto": {},
    "apcg": {"method": "apcg", "mu": 0.01},
    "apcg uniform": {"method": "apcg", "mu": 0.01, "sampling": "uniform"},
    "rpcg": {"method": "rpcg"},
}
TIGHT = {"tol": 1e-11, "max_epochs": 20_000, "random_state": 0}


def tall(seed=0):
    """100 samples of 30 features, some of them correlated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 30))
    X[:, 10:20] += X[:, :10]
    return X / 10, X[:, ::5] @ rng.standard_normal(6) / 10 + 0.3 * rng.standard_normal(100)


def genes(seed=0):
    """60 samples of 2,000 correlated features driven by 15 factors, as in gene expression."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 15)) @ rng.standard_normal((15, 2000)) / 3
    X += rng.standard_normal((60, 2000))
    X /= np.linalg.norm(X, axis=0)
    return X, 3 * X[:, ::250] @ rng.standard_normal(8) + 0.1 * rng.standard_normal(60)


def sparse(seed=0):
    """80 samples of 120 features with a tenth of the entries."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.standard_normal((80, 120)) * (rng.random((80, 120)) < 0.1))
    return X, X @ rng.standard_normal(120) + 0.1 * rng.standard_normal(80)


def sparse_genes(seed=0):
    X, b = genes(seed)
    return sp.csc_matrix(np.where(np.abs(X) > 0.15, X, 0.0)), b


DATA = {"tall": tall, "genes": genes, "sparse": sparse, "sparse genes": sparse_genes}


def solve(f, psi, method, x0=None, **options):
    found = minimize(f, psi, x0, **{**METHODS[method], **TIGHT, **options})
    assert found.converged, found.status
    return found


def alpha_for(A, b, share=0.1):
    return share * float(np.abs(A.T @ b).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", DATA)
def test_lasso_agrees_with_scikit_learn(data, method):
    A, b = DATA[data]()
    alpha = alpha_for(A, b)
    found = solve(functions.LeastSquares(A, b), penalties.L1(alpha), method)
    model = Lasso(alpha / len(b), fit_intercept=False, tol=1e-13, max_iter=10**6).fit(A, b)
    theirs = model.coef_
    fun = 0.5 * np.sum((A @ theirs - b) ** 2) + alpha * np.abs(theirs).sum()
    assert 0 < np.count_nonzero(theirs) < len(theirs)
    assert found.fun == pytest.approx(fun, rel=1e-9)
    np.testing.assert_allclose(found.x, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", [*METHODS, "mu moved from psi"])
@pytest.mark.parametrize("data", DATA)
def test_elastic_net_agrees_with_scikit_learn(data, method):
    A, b = DATA[data]()
    alpha, ratio = alpha_for(A, b), 0.6
    f, psi = functions.LeastSquares(A, b), penalties.ElasticNet(alpha, ratio)
    found = minimize(f, psi, **METHODS.get(method, {"method": "apcg"}), **TIGHT)
    assert found.converged
    model = ElasticNet(
        alpha / len(b), l1_ratio=ratio, fit_intercept=False, tol=1e-13, max_iter=10**6
    ).fit(A, b)
    w = model.coef_
    fun = 0.5 * np.sum((A @ w - b) ** 2)
    fun += alpha * (ratio * np.abs(w).sum() + (1 - ratio) / 2 * w @ w)
    assert found.fun == pytest.approx(fun, rel=1e-9)
    np.testing.assert_allclose(found.x, w, atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", DATA)
def test_nonnegative_least_squares_agrees_with_scipy(data, method):
    A, b = DATA[data]()
    found = solve(functions.LeastSquares(A, b), penalties.NonNegative(), method)
    w, norm = nnls(array(A), b)
    assert 0 < np.count_nonzero(w) < len(w)
    assert found.x.min() >= 0
    assert found.fun == pytest.approx(0.5 * norm**2, rel=1e-7, abs=1e-9)
    if len(w) < len(b):  # otherwise it need not be unique
        np.testing.assert_allclose(found.x, w, atol=1e-7, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["tall", "sparse"])
def test_bounded_least_squares_agrees_with_scipy(data, method):
    A, b = DATA[data]()
    N = A.shape[1]
    rng = np.random.default_rng(1)
    lower, upper = -0.5 * rng.random(N), np.where(rng.random(N) < 0.3, np.inf, 0.3)
    found = solve(functions.LeastSquares(A, b), penalties.Box(lower, upper), method)
    expected = lsq_linear(array(A), b, (lower, upper), method="bvls", tol=1e-14)
    assert found.fun == pytest.approx(expected.cost, rel=1e-8)
    assert np.all((found.x >= lower) & (found.x <= upper))
    at_bound = np.minimum(found.x - lower, upper - found.x) <= 1e-8
    assert 5 < at_bound.sum() < N


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", ["Q", "sparse Q", "factor", "sparse factor"])
def test_box_qp_agrees_with_scipy(given, method):
    B, _ = (sparse if "sparse" in given else tall)(2)
    N = B.shape[1]
    c = np.random.default_rng(3).standard_normal(N)
    Q = B.T @ B + 0.1 * (sp.eye(N) if sp.issparse(B) else np.eye(N))
    if given.endswith("factor"):
        stack = sp.vstack if sp.issparse(B) else np.vstack
        f = functions.Quadratic(c=c, factor=stack([B, np.sqrt(0.1) * np.eye(N)]))
    else:
        f = functions.Quadratic(Q, c)
    found = solve(f, penalties.Box(-1.0, 0.5), method)
    x, Q = found.x, array(Q)
    g = Q @ x + c
    # <g, x - s> for the worst s of the box bounds F(x) - F*.
    assert np.sum(np.maximum(g * (x + 1), g * (x - 0.5))) <= 1e-8
    theirs = scipy_minimize(
        lambda v: (0.5 * v @ (Q @ v) + c @ v, Q @ v + c),
        np.zeros(N),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.full(N, -1.0), np.full(N, 0.5)),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    assert found.fun == pytest.approx(theirs.fun, rel=1e-8)
    np.testing.assert_allclose(x, theirs.x, atol=1e-4, rtol=0)


def logistic_with_l1_by_scipy(A, y, alpha):
    """In x = p - q with p, q >= 0 it is smooth."""
    N = A.shape[1]

    def value(pq):
        margin = y * (A @ (pq[:N] - pq[N:]))
        g = A.T @ (-y / (1 + np.exp(margin)))
        return np.logaddexp(0, -margin).sum() + alpha * pq.sum(), np.hstack([g, -g]) + alpha

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 50_000, "maxfun": 10**6}
    bounds = Bounds(np.zeros(2 * N), np.full(2 * N, np.inf))
    return scipy_minimize(
        value, np.zeros(2 * N), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", DATA)
def test_sparse_logistic_regression(data, method):
    A, b = DATA[data]()
    y = np.where(b > np.median(b), 1.0, -1.0)
    alpha = alpha_for(A, 0.5 * y, 0.2)
    found = solve(functions.Logistic(A, y), penalties.L1(alpha), method, tol=1e-9)
    x = found.x
    g = A.T @ (-y / (1 + np.exp(y * (A @ x))))
    # Optimality: 0 is in g_i + alpha times the subdifferential of |x_i|.
    large = np.abs(x) > 1e-4
    assert 0 < large.sum() < len(x)
    np.testing.assert_allclose(g[large], -alpha * np.sign(x[large]), atol=1e-6)
    assert np.abs(g).max() <= alpha + 1e-6
    if len(x) < 1000:
        theirs = logistic_with_l1_by_scipy(A, y, alpha)
        assert found.fun == pytest.approx(theirs.fun, rel=1e-6)
        assert found.fun <= theirs.fun * (1 + 1e-8)


# ---- blocks --------------------------------------------------------------------------------------


def partition(N: int, kind: str):
    sizes = [1 + k % 5 for k in range(N)]
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), N)) + 1]
    sizes[-1] -= sum(sizes) - N
    return sizes if kind == "sizes" else shuffled_blocks(sizes, 4)


def as_index_arrays(blocks):
    if np.ndim(blocks[0]):
        return blocks
    return np.split(np.arange(sum(blocks)), np.cumsum(blocks)[:-1])


@pytest.mark.slow(but=8)
@pytest.mark.parametrize("kind", ["sizes", "index arrays"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", DATA)
def test_group_lasso_has_a_small_duality_gap(data, method, kind):
    A, b = DATA[data]()
    blocks = partition(A.shape[1], kind)
    groups = as_index_arrays(blocks)
    weights = np.sqrt([len(g) for g in groups])
    alpha = 0.15 * weights * max(np.linalg.norm(A.T[g] @ b) for g in groups)
    found = solve(
        functions.LeastSquares(A, b), penalties.GroupL2(alpha), method, blocks=blocks, tol=1e-10
    )
    x, r = found.x, b - A @ found.x
    correlation = np.array([np.linalg.norm(A.T[g] @ r) for g in groups])
    norms = np.array([np.linalg.norm(x[g]) for g in groups])
    # The conditions: |A_g' r| <= alpha_g, with A_g' r = alpha_g x_g/|x_g| where x_g is not 0.
    assert np.all(correlation <= alpha + 1e-6)
    large = np.flatnonzero(norms > 1e-4)
    assert 0 < large.size < len(groups)
    for k in large:
        g = groups[k]
        np.testing.assert_allclose(A.T[g] @ r, alpha[k] * x[g] / norms[k], atol=1e-5)
    # The dual of the problem is max |b|^2/2 - |b - theta|^2/2 over |A_g' theta| <= alpha_g.
    theta = r * min(1.0, np.min(alpha / np.maximum(correlation, 1e-300)))
    dual = 0.5 * b @ b - 0.5 * np.sum((b - theta) ** 2)
    primal = 0.5 * r @ r + alpha @ norms
    assert found.fun == pytest.approx(primal, rel=1e-12)
    assert -1e-12 <= primal - dual <= 1e-6 * primal


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["tall", "sparse"])
def test_least_squares_over_balls_meets_its_conditions(data, method):
    A, b = DATA[data]()
    blocks = partition(A.shape[1], "index arrays")
    radius = np.random.default_rng(5).uniform(0.1, 3.0, len(blocks))
    found = solve(
        functions.LeastSquares(A, b), penalties.L2Ball(radius), method, blocks=blocks, tol=1e-10
    )
    x, on_boundary = found.x, 0
    g = A.T @ (A @ x - b)
    gap = 0.0
    for group, r in zip(blocks, radius, strict=True):
        xg, gg = x[group], g[group]
        assert np.linalg.norm(xg) <= r * (1 + 1e-12)
        gap += gg @ xg + r * np.linalg.norm(gg)  # max of <g, x - s> over the ball: bounds F - F*
        if np.linalg.norm(xg) > r * (1 - 1e-9):  # -g = nu x with nu >= 0
            on_boundary += 1
            nu = -(gg @ xg) / r**2
            assert nu >= -1e-8
            np.testing.assert_allclose(gg, -nu * xg, atol=1e-6)
        else:
            np.testing.assert_allclose(gg, 0, atol=1e-6)
    assert 0 < on_boundary < len(blocks)
    assert -1e-12 <= gap <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_system(method):
    rng = np.random.default_rng(6)
    A = np.eye(40) + 0.1 * rng.standard_normal((40, 40))
    x = rng.standard_normal(40)
    found = solve(functions.LeastSquares(A, A @ x), None, method)
    np.testing.assert_allclose(found.x, x, atol=1e-8)


@pytest.mark.parametrize("data", DATA)
def test_algorithm_3_solves_a_lasso(data):
    A, b = DATA[data]()
    f, psi = functions.LeastSquares(A, b), penalties.L1(alpha_for(A, b))
    found = minimize(f, psi, method="apcg", max_epochs=10_000, random_state=0)
    assert found.converged, found.status
    assert found.mu == 0.0
    assert found.fun == pytest.approx(solve(f, psi, "rpcg").fun, rel=1e-5)


def test_methods_and_forms_agree_with_each_other():
    A, b = sparse()
    alpha = alpha_for(A, b)
    blocks = [[i] for i in range(A.shape[1])]
    runs = [
        solve(functions.LeastSquares(a, b), psi, method, **options)
        for a in (A, A.toarray(), A.astype(np.float32))
        for method in METHODS
        for psi, options in (
            (penalties.L1(alpha), {}),
            (penalties.GroupL2(alpha), {"blocks": blocks}),
        )
    ]
    for found in runs[1:12]:
        np.testing.assert_allclose(found.x, runs[0].x, atol=1e-7)
    for found in runs[12:]:  # the data itself is rounded to float32
        np.testing.assert_allclose(found.x, runs[0].x, atol=1e-5)
