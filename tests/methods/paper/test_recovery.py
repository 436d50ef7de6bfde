"""Section 5.1 and the complexity results: Theorems 2, 3, 4, Lemma 4, Corollaries 1 and 2."""

import math

import numpy as np
import pytest
from erm_problems import LOSSES, SMOOTH, data, dense, feasible, problem

from apcg import ERM, losses, solve, theory
from apcg.methods.paper.apcg import APCG
from apcg.sequences import Sequence

weighted = pytest.mark.parametrize("weighted", [False, True])
smooth = pytest.mark.parametrize("loss", SMOOTH)
penalised = pytest.mark.parametrize("penalty", ["l2", "elasticnet"])


def optimum(p, method="apcg"):
    r = solve(p, method, tol=1e-13, max_epochs=50_000, random_state=0, check_every=50)
    assert r.gap <= 1e-11 * r.primal
    return r


def points(p, best, seed, count=15):
    """Dual points: random ones, and ones on the way to the optimum."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        share = rng.random() ** (k % 4)
        yield share * feasible(p, rng) + (1 - share) * best.x


@smooth
@weighted
@penalised
def test_lemma_4(loss, weighted, penalty):
    p = problem(loss, penalty, 5e-3, weighted=weighted)
    best = optimum(p)
    for x in points(p, best, 1):
        bound = p.pdgbound(x)
        assert p.gap(x) <= bound * (1 + 1e-9) + 1e-14
    # At the optimum a_i = A_i' w and the bound is zero. SDCA puts x_i at its bounds exactly; a
    # rounding away from a bound the subdifferential is one point, and the bound is not small.
    assert p.pdgbound(optimum(p, "sdca").x) <= 1e-9 * best.primal


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "huber"])
def test_lemma_4_takes_the_nearest_subgradient_at_bounds(loss):
    """Any other choice of a_i gives a larger bound; at a bound of the domain there is a choice."""
    p = problem(loss, alpha=5e-3)
    low, high = p.loss.domain
    rng = np.random.default_rng(0)
    x = np.where(rng.random(p.n) < 0.5, low, min(high, 1.0))
    z = p.predictions(p.omega(x))
    m = p.y * z if p.loss.margin else z - p.y
    inside = p.loss.nearest_conjugate_slope(x, np.zeros(p.n))
    other = np.sum((m - inside) ** 2) / (2 * p.n * p.loss.gamma)
    assert p.pdgbound(x) <= other * (1 + 1e-12)
    assert p.gap(x) <= p.pdgbound(x) * (1 + 1e-9)


@smooth
@weighted
@penalised
def test_theorem_4(loss, weighted, penalty):
    p = problem(loss, penalty, 5e-3, weighted=weighted)
    best = optimum(p)
    coefficient = theory.refined_gap_coefficient(p)
    for x in points(p, best, 2):
        T = p.refine(x)
        assert p.gap(T) <= coefficient * (best.dual - p.dual(x)) * (1 + 1e-9) + 1e-12
        assert p.dual(T) >= p.dual(x) - 1e-13  # a full proximal gradient step never descends


def test_refine_is_the_argmin_of_its_definition():
    for loss in SMOOTH:
        p = problem(loss, alpha=5e-3)
        rng = np.random.default_rng(3)
        x = feasible(p, rng)
        A = dense(p).T * (p.y if p.loss.margin else 1.0)
        gradient = A.T @ p.omega(x) / p.n
        L = p.spectral_norm**2 / (p.alpha * p.n**2)
        y = None if p.loss.margin else p.y

        def model(t, p=p, x=x, gradient=gradient, L=L, y=y):
            conjugate = np.sum(p.loss.conjugate(-t, y)) / p.n
            return gradient @ t + L / 2 * np.sum((t - x) ** 2) + conjugate

        T = p.refine(x)
        for _ in range(40):
            assert model(T) <= model(0.99 * T + 0.01 * feasible(p, rng)) + 1e-12


@weighted
def test_theorem_3_ridge(weighted):
    p = problem("squared", alpha=5e-3, weighted=weighted)
    best = optimum(p)
    coefficient = theory.gap_coefficient(p)
    assert coefficient > 1
    for x in points(p, best, 4):
        assert p.gap(x) <= coefficient * (best.dual - p.dual(x)) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge", "logistic", "huber"])
def test_theorem_3_with_the_small_strongly_convex_term(loss):
    """After Corollary 1: phi + t^2/(2 eta) has a finite coefficient and moves P by a little."""
    X, y = data(loss)
    eta = 1e4
    p = ERM(X, y, losses.StronglyConvex(LOSSES[loss], eta), "l2", 5e-3)
    best = optimum(p)
    coefficient = theory.gap_coefficient(p)
    assert math.isfinite(coefficient)
    for x in points(p, best, 5):
        assert p.gap(x) <= coefficient * (best.dual - p.dual(x)) * (1 + 1e-9) + 1e-12
    plain = ERM(X, y, LOSSES[loss], "l2", 5e-3)
    exact = optimum(plain)
    z = plain.predictions(exact.w) - (0 if plain.loss.margin else y)
    assert 0 <= best.primal - exact.primal <= np.mean(z**2) / (2 * eta) + 1e-10


@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic"])
def test_theorem_2(loss):
    """E D* - D(x^(k)) <= (1 - sqrt(mu)/n)^k C, for the mean over 300 seeds of uniform sampling."""
    p = problem(loss, alpha=2e-3, n=20, d=8)
    best = optimum(p)
    C = best.dual - p.dual(np.zeros(p.n)) + p.loss.gamma / (2 * p.n) * np.sum(best.x**2)
    assert theory.erm_constant(p) * (1 + 1e-12) >= C
    epochs, seeds = 25, 300
    short = np.empty((seeds, epochs))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        method = APCG(p.form, np.zeros(p.n), Sequence(p.n, p.mu, p.mu))
        for k in range(epochs):
            method.epoch(rng.integers(p.n, size=p.n))
            short[seed, k] = best.dual - p.dual(p.form.nearest(method.x))
    bound = (1 - math.sqrt(p.mu) / p.n) ** (p.n * np.arange(1, epochs + 1)) * C
    error = short.std(axis=0) / math.sqrt(seeds)
    assert np.all(short.mean(axis=0) <= bound + 4 * error)
    # and the promised number of passes keeps the promise
    epsilon = float(bound[-1])
    assert theory.promised_passes(p, epsilon, C=C) >= epochs


def test_promised_passes_are_the_formulas():
    p = problem("squared", alpha=1e-3)
    n, C, eps = p.n, 3.0, 1e-5
    kappa, norm = p.condition_number, p.spectral_norm**2
    root = 1 + math.sqrt(kappa / n)

    def promised(*which):
        return theory.promised_passes(p, eps, *which, C=C)

    assert promised() == pytest.approx(root * math.log(C / eps))
    third = (p.alpha * n + norm) / (p.alpha * n)
    assert promised("apcg", "gap") == pytest.approx(root * math.log(third * C / eps))
    fourth = 4 * norm / (p.alpha * n)
    assert promised("apcg", "refined") == pytest.approx(root * math.log(fourth * C / eps))
    assert promised("sdca") == pytest.approx((1 + kappa / n) * math.log(C / eps))
    assert promised("afg") == pytest.approx(math.sqrt(norm / (p.alpha * n)) * math.log(C / eps))
    assert promised("sdca", "gap") > promised("sdca")
    for method in ("apcg", "sdca", "afg", "sag", "svrg", "accelerated_sdca"):
        assert theory.promised_passes(problem("hinge"), eps, method) == math.inf
    assert theory.promised_passes(problem("logistic"), eps, "apcg", "gap") == math.inf
    assert promised("apcg") < promised("sdca")  # ill conditioned: kappa > n
    over_n = kappa / n
    C0 = (1.5 + 8 * (kappa + 1) / n) * C / 2  # C is twice P(0) - D(0)
    assert promised("sag") == pytest.approx(16 * (kappa + 1) / n * math.log(C0 / eps), rel=1e-3)
    stages = math.ceil(math.log(C / 2 / eps) / math.log(6 / 5))
    assert promised("svrg") == pytest.approx(stages * (1 + 100 * over_n))
    eta = math.sqrt(0.5 / (over_n - 0.5))
    outer = 1 + 2 / eta * math.log((1 + eta**-2) * C / 2 / eps)
    assert promised("accelerated_sdca") == pytest.approx(outer * 2 * math.log(over_n))
    easy = p.with_alpha(p.alpha * over_n / 9)
    assert theory.promised_passes(easy, eps, "accelerated_sdca", C=C) == pytest.approx(
        theory.promised_passes(easy, eps, "sdca", "gap", C=C), rel=1e-12
    )
    with pytest.raises(ValueError, match="Did you mean 'sdca'"):
        theory.promised_passes(p, eps, "sdka")
