"""SAG, SAGA's step, prox-SVRG and accelerated SDCA, step by step as their authors print them."""

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import SMOOTH, dense, feasible, problem

from apcg import ERM
from apcg.methods.literature.accelerated_sdca import AcceleratedSDCA
from apcg.methods.literature.sag import SAG
from apcg.methods.literature.stochastic import Stochastic
from apcg.methods.literature.svrg import SVRG
from apcg.methods.paper import reference

STEPS = 2100
every_loss = pytest.mark.parametrize("loss", SMOOTH)
stored = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
l2_or_net = pytest.mark.parametrize("penalty", ["l2", "elasticnet"])


class Sum:
    """An ERM problem as the reference forms see it: dense, one function for each sample."""

    def __init__(self, p):
        self.p, self.n, self.mu = p, p.n, p.strong_convexity
        self.X, self.s = dense(p), np.broadcast_to(p.weights, p.n)
        self.A = self.X.T * (p.y if p.loss.margin else 1.0)

    def value(self, i, w):
        return self.s[i] * self.p.loss.value(self.X[i] @ w, self.p.y[i])

    def gradient(self, i, w):
        return self.s[i] * self.p.loss.derivative(self.X[i] @ w, self.p.y[i]) * self.X[i]

    def prox(self, v, step):
        return self.p.g.prox(v, step * self.p.alpha)

    def grad_conjugate(self, v, kappa):
        a, b = self.p.alpha * self.p.g.a, self.p.alpha * self.p.g.b + kappa
        return np.sign(v) * np.maximum(np.abs(v) - a, 0) / b

    def ascend(self, i, x, m, q):
        """By the prox of phi*, in u = -(x + h)/s, without its label: m is a margin or residual."""
        s, m = self.s[i], m if self.p.loss.margin else m - self.p.y[i]
        u = self.p.loss.prox_conjugate(-x / s + m / (q * s), 1 / (q * s))
        return -s * u - x

    def gaps(self, m, x):
        y, s, phi = self.p.y, self.s, self.p.loss
        m = m if phi.margin else m - y
        inside = np.clip(x / s, *phi.domain)  # a rounding may be outside
        return s * (phi.value(m) + phi.conjugate(-inside)) + m * x


def largest(p):
    return float(np.max(p.weights * p.samples.squared_norms())) / p.loss.gamma


# ---- step by step -----------------------------------------------------------------------------


@pytest.mark.slow(but=10)
@every_loss
@stored
@pytest.mark.parametrize("search", [True, False], ids=["search", "fixed"])
@l2_or_net
def test_sag_and_saga_as_printed(loss, sparse, search, penalty):
    p = problem(loss, penalty, 3e-2, weighted=True, sparse=sparse)
    rng = np.random.default_rng(1)
    w0, order = 0.3 * rng.standard_normal(p.d), rng.integers(p.n, size=STEPS)
    form = reference.sag if penalty == "l2" else reference.saga
    L, worst, least = largest(p), 0.0, np.inf
    method = SAG(p, w0, search=search)
    expected = form(Sum(p), w0, L, order.tolist(), L if search else 0.0)
    for k, (w, at) in enumerate(expected):
        method.epoch(order[k : k + 1])
        if k % 7 in (0, 3):  # not after each: to look at w brings all of it up to date
            worst = max(worst, np.abs(method.w - w).max(), abs(method.L - at))
        least = min(least, at)
    assert worst <= 1e-10
    assert (least < 0.9 * L) == search


@pytest.mark.slow(but=5)
@every_loss
@stored
@l2_or_net
def test_svrg_as_printed(loss, sparse, penalty):
    p = problem(loss, penalty, 3e-2, weighted=True, sparse=sparse)
    rng = np.random.default_rng(1)
    w0, stages = 0.3 * rng.standard_normal(p.d), rng.integers(p.n, size=(30, 2 * p.n))
    method = SVRG(p, w0)
    expected = reference.svrg(Sum(p), w0, 0.1 / largest(p), stages.tolist())
    worst = 0.0
    for stage in stages:
        method.snapshot()
        for i in stage:
            method.epoch(np.array([i]))
            w = next(expected)
            if i % 3 == 0:
                worst = max(worst, np.abs(method.w - w).max())
    assert stages.size >= 2000
    assert worst <= 1e-10


@pytest.mark.slow(but=4)
@every_loss
@l2_or_net
def test_accelerated_sdca_as_printed(loss, penalty):
    p = problem(loss, penalty, 1e-3, weighted=True)
    assert p.condition_number > 10 * p.n
    x0 = 0.01 * feasible(p, np.random.default_rng(3))
    w0 = p.omega(x0)
    method = AcceleratedSDCA(p, w0, x0, p.gap(x0))
    sweeps = [np.random.default_rng(k).permutation(p.n) for k in range(60)]
    kappa = p.loss.gamma * largest(p) / (p.loss.gamma * p.n) - p.strong_convexity
    expected = reference.accelerated_sdca(Sum(p), w0, x0, kappa, p.gap(x0), sweeps)
    worst = 0.0
    for sweep in sweeps:
        for i in sweep:
            method.epoch(np.array([i]))
            w, x, t = next(expected)
            worst = max(worst, np.abs(method.inner - w).max(), np.abs(method.x - x).max())
            assert method.t == t
        z = p.samples.times(method.inner)
        if method.gap(z) <= method.precision:
            method.step(method.inner)
    assert len(sweeps) * p.n >= 2000
    assert method.t > 20
    assert worst <= 1e-10


@pytest.mark.parametrize("learns", [True, False])
def test_lazy_updates_that_change_the_sign(learns):
    """Features that are seldom drawn, with an L1 term: w_j goes through 0 between two visits."""
    rng = np.random.default_rng(0)
    n, d = 60, 40
    X = np.zeros((n, d))
    X[np.arange(n), rng.integers(d, size=n)] = rng.uniform(1, 3, n)
    y = 3 * rng.standard_normal(n)
    p = ERM(sp.csr_array(X), y, "squared", "elasticnet", 3e-2, l1_ratio=0.3)
    w0 = rng.standard_normal(d)
    method = Stochastic(p, w0, 0.0, share=1 / 3, learns=learns)
    method.snapshot()
    order = rng.integers(n, size=STEPS)
    through = Sum(p)
    table = np.array([through.gradient(i, w0) for i in range(n)])
    w, signs, crossings = w0.copy(), np.sign(w0), 0
    for k, i in enumerate(order):
        gradient = through.gradient(i, w)
        w = through.prox(w - (gradient - table[i] + table.mean(axis=0)) / (3 * largest(p)),
                         1 / (3 * largest(p)))  # fmt: skip
        if learns:
            table[i] = gradient
        crossings += np.count_nonzero(signs * np.sign(w) < 0)
        signs = np.where(w != 0, np.sign(w), signs)
        method.epoch(order[k : k + 1])
        if k % 500 == 499:
            np.testing.assert_allclose(method.w, w, rtol=0, atol=1e-12)
    assert crossings > 5
    assert method.folds < STEPS / 50


def test_the_scale_of_w_may_become_tiny():
    """Large lambda: w is folded before its scale underflows."""
    p = problem("squared", alpha=50.0)
    order = np.random.default_rng(0).integers(p.n, size=STEPS)
    method = SAG(p, np.ones(p.d))
    *_, (w, _) = reference.sag(Sum(p), np.ones(p.d), p.alpha, order.tolist(), largest(p))
    method.epoch(order)
    assert method.folds > 5
    np.testing.assert_allclose(method.w, w, rtol=0, atol=1e-12)
