"""`HuberRegressor`: a robust regression that estimates its own scale sigma.

    minimize over w, b and sigma > 0   F = sum_i s_i (sigma + sigma H(r_i/sigma)) + alpha |w|^2

with r_i = a_i' w + b - y_i, and H(u) = u^2 up to |u| = epsilon and linear from there. For a given
sigma that is 2 S/sigma times the problem of `apcg.ERM` with the Huber loss of delta = epsilon sigma
and alpha sigma/S, where S is the sum of the weights s_i. The minimum over w and b is a convex
function of sigma with the slope S - sum_i s_i min(|r_i|/sigma, epsilon)^2, so that what is left is
to find the zero of an increasing function of one number.

The certificate is of the joint problem, by its dual

    maximize over t   D = - sum_i s_i t_i y_i - |sum_i s_i t_i a_i|^2/(4 alpha)
    such that         |t_i| <= 2 epsilon,   sum_i s_i t_i^2/4 <= S,   sum_i s_i t_i = 0 (for b)

whose point comes from that of ERM, which keeps all but the second; scaled down, that one too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .. import losses
from .._base.validation import Vector
from ..certify.result import Solution, Status
from ..estimators.linear import start_at
from ..problems.erm import ERM
from ..run.solve import solve
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, Gap, generator, iterations

#: A y beyond this has squares that overflow.
LARGEST = 1e150
#: What tol means, whose default is 1e-5 here; and the part of it for inner problems.
GAP, INNER = Gap(usual=1e-10, least=1e-12), 1e-3
#: Values of sigma to try; passes that an iteration of scikit-learn is worth, up to so many.
ROUNDS, STEP, ENOUGH = 60, 20, 1000
#: A scale below this part of the largest |y| is an exact fit: nothing is left to scale. So is one
#: below the second part where the gap does not close.
EXACT, NEARLY = 1e-9, 1e-3


class HuberRegressor(Certified, theirs.HuberRegressor):
    """scikit-learn's `HuberRegressor` by the solvers of apcg, to a certified gap.

    The scale is found with the coefficients, as in scikit-learn; for a Huber loss with a given
    delta take `apcg.APCGRegressor`. Without a penalty (alpha=0), and where the data are fitted
    exactly, scikit-learn's own solver is called, and there is no certificate. `max_iter` is the
    number of passes over the data for each value of the scale that is tried; up to 50, where a step
    of Newton's method takes more than one, it is 20 times as many.

    Parameters and attributes are those of `sklearn.linear_model.HuberRegressor`, with these more.

    Attributes
    ----------
    duality_gap_ : float
        How far the objective, over the sum of the weights, may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`; the trace is of the last scale.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import HuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> HuberRegressor().fit(X, y).status_.code
    'converged'
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HuberRegressor:
        """Train, as `sklearn.linear_model.HuberRegressor.fit` does."""
        answers = Answers()
        samples, labels = validate_data(
            self, X, y, accept_sparse=["csr"], y_numeric=True, dtype=[np.float64, np.float32]
        )
        found = None
        if self.alpha > 0 and self.max_iter > 0:
            found = _search(self, samples, np.asarray(labels, dtype=np.float64), sample_weight)
        if found is None:
            answers.not_ours("no penalty, no iterations or an exact fit")
            super().fit(X, y, sample_weight)
        else:
            answers.take([found.problem], [found.solution], found.tol)
            self.coef_, self.intercept_ = found.solution.w, found.solution.intercept
            self.scale_, self.n_iter_ = found.sigma, iterations([found.solution], self.max_iter)[0]
            off = np.abs(labels - samples @ self.coef_ - self.intercept_)
            self.outliers_ = off > self.scale_ * self.epsilon
        answers.keep(self)
        return self


@dataclass
class Found:
    """An answer to the joint problem, the problem of its scale, the relative gap asked for."""

    problem: ERM
    solution: Solution
    sigma: float
    tol: float


def _search(model: Any, X: Any, y: Vector, sample_weight: Any) -> Found | None:
    """The joint optimum; None if the data are fitted exactly."""
    weights, S = private.sample_weights(sample_weight, X)
    s = np.ones(y.size) if weights is None else weights
    offset = float(np.average(y, weights=weights)) if model.fit_intercept else 0.0
    y = y - offset
    if np.abs(y).max() > LARGEST:
        raise ValueError(f"the squares of y overflow: its largest is {np.abs(y).max():g}; scale y.")
    tol = GAP.of(model.tol)
    sigma = _best_scale(y, s, model.epsilon)
    problem = ERM(X, y, losses.Huber(1.0), "l2", 1.0, weights, intercept=model.fit_intercept)
    spent, zero = 0, ZeroSearch()
    passes = max(model.max_iter, min(STEP * model.max_iter, ENOUGH))
    warm = model.warm_start and hasattr(model, "coef_")
    last = (model.coef_.astype(np.float64), model.intercept_ - offset) if warm else None
    for _ in range(ROUNDS):
        if not sigma > EXACT * np.abs(y).max():
            return None
        delta, alpha = model.epsilon * sigma, model.alpha * sigma / S
        inner = problem.altered(loss=losses.Huber(delta), alpha=alpha)
        start = None if last is None else start_at(inner, *last)
        r = solve(inner, "auto", INNER * tol, passes, start, generator(None))
        spent += r.epochs
        off = np.abs(inner.samples.times(r.w) + r.intercept - y)
        best = _best_scale(off, s, model.epsilon)
        P = _objective(off, s, best, model) + model.alpha * float(r.w @ r.w)
        D = _dual(inner, r.x * (-2 * S / (sigma * inner.n)), y, s, S, model.alpha)
        r = replace(r, primal=P / S, dual=D / S, epochs=spent, intercept=r.intercept + offset)
        if r.gap <= tol * abs(r.primal) or r.status.code in ("max_epochs", "interrupted"):
            break
        sigma = zero.next(sigma, S - float(s @ np.minimum(off / sigma, model.epsilon) ** 2), best)
        last = r.w, r.intercept - offset
    code = r.status.code if not r.status.converged else "max_epochs"
    code = "converged" if r.gap <= tol * abs(r.primal) else code
    if code != "converged" and best <= NEARLY * np.abs(y).max():
        return None
    r.status = Status.of(code, spent, r.gap / abs(r.primal), tol)
    return Found(inner, r, best, tol)


def _best_scale(off: Vector, s: Vector, epsilon: float) -> float:
    """The sigma that is best for residuals of these sizes: sum_i s_i min(|r_i|/sigma, eps)^2 = S.

    Of the largest k residuals as the linear ones, sigma^2 = sum of the others' s r^2/(S - eps^2 sum
    of theirs' s): the k is the one for which just these k are above epsilon sigma.
    """
    order = np.argsort(off)
    sizes, weights = off[order], s[order]
    inside = np.append(0.0, np.cumsum(weights * sizes**2))
    outside = weights.sum() - np.append(0.0, np.cumsum(weights))
    room = weights.sum() - epsilon**2 * outside
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma = np.sqrt(np.where(room > 0, inside / room, np.inf))
    above = np.append(sizes, np.inf) > epsilon * sigma
    below = np.append(0.0, sizes) <= epsilon * sigma
    fits = np.flatnonzero(above & below & np.isfinite(sigma))
    return float(sigma[fits[-1]]) if fits.size else 0.0


def _objective(off: Vector, s: Vector, sigma: float, model: Any) -> float:
    """sum_i s_i (sigma + sigma H(r_i/sigma))"""
    u = off / sigma
    linear = 2 * model.epsilon * u - model.epsilon**2
    return float(sigma * (s @ (1 + np.where(u <= model.epsilon, u**2, linear))))


def _dual(problem: ERM, st: Vector, y: Vector, s: Vector, S: float, alpha: float) -> float:
    """D at the best multiple of t, given s_i t_i."""
    curved = float(np.sum(np.divide(st**2, 4 * s, where=s > 0, out=np.zeros_like(s))))
    most = math.sqrt(S / curved) if curved > S else 1.0
    linear, square = -float(st @ y), float(np.sum(problem.samples.adjoint(st) ** 2)) / (4 * alpha)
    c = min(most, linear / (2 * square)) if square > 0 else most
    return c * linear - c * c * square if c > 0 else 0.0


class ZeroSearch:
    """The zero of an increasing function of sigma: false position, halved where it is slow."""

    def __init__(self) -> None:
        self.low: tuple[float, float] | None = None
        self.high: tuple[float, float] | None = None

    def next(self, sigma: float, slope: float, guess: float) -> float:
        """Where to look next, after `slope` at sigma; `guess` while there is only one side."""
        last = self.low if slope < 0 else self.high
        if slope < 0:
            self.low = (sigma, slope)
        else:
            self.high = (sigma, slope)
        if self.low is None or self.high is None:
            return guess
        (a, f), (b, g) = self.low, self.high
        if last is not None:  # the other side has stayed: count it for half
            f, g = (f, g / 2) if slope < 0 else (f / 2, g)
            self.low, self.high = (a, f), (b, g)
        return (a * g - b * f) / (g - f)
