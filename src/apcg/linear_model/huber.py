"""`HuberRegressor`: a robust regression that estimates its own scale sigma.

    minimize over w, b and sigma > 0   F = sum_i s_i (sigma + sigma H(r_i/sigma)) + alpha |w|^2

with r_i = a_i' w + b - y_i, and H(u) = u^2 up to |u| = epsilon and linear from there. F is convex
in all of them together. The best sigma of given residuals is a zero of a function of one number;
with that, F is a convex function of w and b, and Newton's method finds its minimum.

The certificate is of the joint problem, by its dual

    maximize over t   D = - sum_i s_i t_i y_i - |sum_i s_i t_i a_i|^2/(4 alpha)
    such that         |t_i| <= 2 epsilon,   sum_i s_i t_i^2/4 <= S,   sum_i s_i t_i = 0 (for b)

where S is the sum of the weights s_i. For a given sigma F is 2 S/sigma times the problem of
`apcg.ERM` with the Huber loss of delta = epsilon sigma and alpha sigma/S. The dual point is
that of ERM, which satisfies all constraints but the second; it is scaled down for that one. For
alpha = 0 the box of ERM takes the place of the square.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils.validation import validate_data

from .. import losses
from .._base.validation import Vector
from .._base.weights import mean
from ..certify.certificate import certify, stated
from ..certify.points import Certificate, Point, Report
from ..certify.result import Status, answer
from ..data import Dense, Matrix
from ..methods.linalg.factor import Factor
from ..methods.reductions.row_space import Basis
from ..problems.erm import ERM
from ..run.solve import solve
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, Gap

#: A y beyond this has squares that overflow.
LARGEST = 1e150
#: What tol means, whose default is 1e-5 here. The first look comes when a step promises LOOK times
#: the gap that is asked for; each look that fails multiplies that by LESS.
GAP, LOOK, LESS = Gap(usual=1e-10, least=1e-12), 1e-3, 1e-3
#: Up to so many numbers of w a step is by a factor, above by conjugate gradients: so many
#: iterations, or until the residual is this part of the gradient.
FACTORED, ITERATIONS, PART = 2000, 300, 1e-3
#: A step divides sigma by 10 at most, until it promises less than NEAR times F: where few residuals
#: are below the scale F is hardly smooth, and steps would be short.
LOWER, NEAR = 0.1, 0.01
#: A step that promises less than this part of F is rounding. Armijo's constant; the part of the
#: first slope along a step that counts as flat; trials at most.
ROUNDING, ARMIJO, FLAT, TRIALS = 1e-16, 1e-4, 0.2, 60
#: Below SMALL times the largest |y| a scale of zero is tried, once. It is the answer if its gap is
#: at most ALMOST, relative. Below EXACT times the largest |y| the scale is taken for zero.
SMALL, ALMOST, EXACT = 1e-6, 1e-6, 1e-12
#: scikit-learn's lower bound of the scale
LEAST = 10 * float(np.finfo(np.float64).eps)


class HuberRegressor(Certified, theirs.HuberRegressor):
    """scikit-learn's `HuberRegressor` by Newton's method, to a certified gap.

    The scale is found with the coefficients, as in scikit-learn; for a Huber loss with a given
    delta take `apcg.APCGRegressor`. Where the data are fitted exactly, scikit-learn's own solver is
    called, and there is no certificate. `max_iter` and `n_iter_` count steps of Newton's method.

    Parameters and attributes are those of `sklearn.linear_model.HuberRegressor`, with these more.

    Attributes
    ----------
    duality_gap_ : float
        How far the objective, over the sum of the weights, may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`; the trace has one line.

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
        answers, begun = Answers(), time.perf_counter()
        samples, labels = validate_data(
            self, X, y, accept_sparse=["csr"], y_numeric=True, dtype=[np.float64, np.float32]
        )
        labels = np.asarray(labels, dtype=np.float64)
        weights, _ = private.sample_weights(sample_weight, samples)
        offset = float(mean(labels, weights)) if self.fit_intercept else 0.0
        largest = np.abs(labels - offset).max()
        if largest > LARGEST:
            raise ValueError(f"the squares of y overflow: its largest is {largest:g}; scale y.")
        problem = ERM(samples, labels - offset, losses.Huber(1.0), "l2", self.alpha, weights,
                      intercept=self.fit_intercept)  # fmt: skip
        found = _solve(self, problem, weights, offset)
        if found is None:
            answers.not_ours("an exact fit")
            super().fit(X, y, sample_weight)
        else:
            tol, point = GAP.of(self.tol), found.certificate
            code = "converged" if point.relative <= tol else "precision"
            code = "max_epochs" if code == "precision" and not found.stuck else code
            status = Status.of(code, found.steps, point.relative, tol)
            said = Report("primal", at_work="newton")
            seconds = time.perf_counter() - begun
            made = answer(point, status, said, "newton", found.steps, seconds)
            answers.take([found.problem], [made], tol)
            self.coef_, self.intercept_ = point.w, 0.0
            if self.fit_intercept:
                self.intercept_ = np.float64(point.b + offset)
            self.scale_, self.n_iter_ = np.float64(found.sigma), found.steps
            self.outliers_ = np.abs(point.z - problem.y) > found.sigma * self.epsilon
        answers.keep(self)
        return self


class Found(NamedTuple):
    """An answer, the problem of its scale, steps, and whether it goes no further."""

    certificate: Certificate
    problem: ERM
    sigma: float
    steps: int
    stuck: bool


def _solve(model: Any, problem: ERM, weights: Vector | None, offset: float) -> Found | None:
    """The joint optimum; None if the data are fitted exactly."""
    s = np.ones(problem.n_samples) if weights is None else weights
    tol, largest = GAP.of(model.tol), np.abs(problem.y).max()
    warm = model.warm_start and hasattr(model, "coef_")
    span = not warm and problem.n_samples < min(problem.d, FACTORED)
    basis = Basis(problem.samples) if span else None
    samples = problem.samples if basis is None else Dense(basis.L)
    joint = Joint(samples, problem.y, s, model)
    w = np.zeros(joint.X.shape[1])
    if warm:
        w[: problem.d], w[problem.d :] = model.coef_, model.intercept_ - offset
    at = joint.at(w, joint.X.times(w))
    joint.floor = LOWER * at.sigma
    if not warm:
        joint.floor = math.sqrt(float(s @ (at.z - problem.y) ** 2) / float(s.sum()))
        at = joint.at(at.w, at.z)
    steps, aim, looked = 0, LOOK * tol, False
    while True:
        stuck = False
        while at.sigma > EXACT * largest and steps < model.max_iter:
            if not looked and at.sigma <= SMALL * largest:
                looked = True
                flat = _without_scale(model, problem, s, basis)
                if flat is not None:
                    return flat._replace(steps=steps)
            way, promised = joint.way(at)
            if at.sigma <= joint.floor and promised <= NEAR * at.value:
                joint.floor *= LOWER
                at = joint.at(at.w, at.z)
                continue
            new = joint.moved(at, way, promised) if promised > aim * at.value else None
            stuck = new is None and promised > aim * at.value
            if new is None:
                break
            at, steps = new, steps + 1
        if not at.sigma > EXACT * largest:
            return None
        own = at.w[: joint.d] if basis is None else basis.w(at.w[: joint.d])
        b = float(at.w[-1]) if model.fit_intercept else 0.0
        found = _certified(model, problem, Point(own, None, b), at.sigma, s)
        stuck = stuck or aim < ROUNDING
        if found.certificate.relative <= tol or stuck or steps >= model.max_iter:
            break
        aim *= LESS
    return found._replace(steps=steps, stuck=stuck)


def _without_scale(model: Any, problem: ERM, s: Vector, basis: Basis | None) -> Found | None:
    """The optimum if sigma goes to zero there, as it does where most of y is fitted exactly.

    F is 2 epsilon sum_i s_i |r_i| + alpha |w|^2 then, and its dual point may be one of F for any
    sigma: the certificate says so.
    """
    S, epsilon, tol = float(s.sum()), float(model.epsilon), GAP.of(model.tol)
    changes = {"alpha": model.alpha / (epsilon * S)} if model.alpha else {}
    flat = problem.altered(loss=losses.EpsilonInsensitive(0.0), **changes)
    basis = basis if model.alpha else None  # the box of alpha=0 is one of the features
    small = flat if basis is None else flat.altered(samples=Dense(basis.L), d=basis.L.shape[1])
    r = solve(small, tol=tol, random_state=0)
    w, b = r.w if basis is None else basis.w(r.w), r.intercept
    z = problem.samples.times(w) + b
    u = (z - problem.y) / LEAST
    F = total(u, np.clip(u, -epsilon, epsilon), LEAST, s) + model.alpha * float(w @ w)
    D = _dual(flat, r.x * (-2 * epsilon * S / flat.n), s, model.alpha)
    found = stated(w, r.x, b, z, F / S, D / S)
    return Found(found, flat, LEAST, 0, True) if found.relative <= ALMOST else None


@dataclass
class Residuals:
    """w and b, u = r/sigma with the best sigma, u cut at epsilon, and F."""

    w: Vector
    z: Vector
    u: Vector
    cut: Vector
    sigma: float
    value: float


class Joint:
    """F of w and b, the last entry of w if there is an intercept, at the best sigma for them."""

    def __init__(self, X: Matrix, y: Vector, s: Vector, model: Any) -> None:
        self.d = X.shape[1]
        self.X = X.with_ones if model.fit_intercept else X
        self.y, self.s, self.epsilon = y, s, float(model.epsilon)
        self.ridge = np.zeros(self.X.shape[1])
        self.ridge[: self.d] = 2 * model.alpha
        #: no smaller sigma for the time being
        self.floor = 0.0
        self._columns: Vector | None = None

    def at(self, w: Vector, z: Vector) -> Residuals:
        """The point w with the predictions z."""
        r = z - self.y
        sigma = max(best_scale(r, self.s, self.epsilon), self.floor)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = r / sigma
        cut = np.clip(u, -self.epsilon, self.epsilon)
        pull = self.ridge * w
        value = total(u, cut, sigma, self.s) + 0.5 * float(pull @ w)
        return Residuals(w, z, u, cut, sigma, value)

    def way(self, at: Residuals) -> tuple[Vector, float]:
        """Newton's step, and how fast F falls along it; sigma is taken out of the derivatives.

        With q = sum_i s_i u_i a_i over the residuals that are not cut, that is the matrix
        (2/sigma) (sum_i s_i a_i a_i' - q q'/sum_i s_i u_i^2) of these residuals, and the penalty's.
        """
        gradient = self.X.adjoint(2 * self.s * at.cut) + self.ridge * at.w
        inside = np.where(at.u == at.cut, self.s, 0.0)
        own = inside * at.u
        q, size, scale = self.X.adjoint(own), float(own @ at.u), 2 / at.sigma
        if at.sigma <= self.floor:
            q, size = np.zeros_like(q), 0.0
        if self.ridge.size > FACTORED:
            way = self._conjugate(at, gradient, inside, q, size)
            return way, -float(gradient @ way)
        H = self.X.gram(inside)
        H -= np.outer(q, q / size) if size > 0 else 0.0
        H *= scale
        H.ravel()[:: len(H) + 1] += self.ridge
        empty = ~(H.diagonal() > 0)
        H[empty, empty] = 1.0
        way = -Factor(H).solve(gradient)
        return way, -float(gradient @ way)

    def _conjugate(
        self, at: Residuals, gradient: Vector, inside: Vector, q: Vector, size: float
    ) -> Vector:
        """That step by conjugate gradients."""

        def times(p: Vector) -> Vector:
            along = self.X.adjoint(inside * self.X.times(p)) - q * (q @ p / size if size else 0.0)
            return (2 / at.sigma) * along + self.ridge * p

        if self._columns is None:
            self._columns = self.X.column_squares(self.s)
        diagonal = (2 / at.sigma) * self._columns + self.ridge
        divisor = np.where(diagonal > 0, diagonal, 1.0)
        shape = (q.size, q.size)
        way, _ = cg(
            LinearOperator(shape, times, dtype=float), -gradient, rtol=PART, maxiter=ITERATIONS,
            M=LinearOperator(shape, lambda p: p / divisor, dtype=float),
        )  # fmt: skip
        return np.asarray(way)

    def moved(self, at: Residuals, way: Vector, promised: float) -> Residuals | None:
        """The point after a step, or a part of it that F is nearly least at; None if F rises.

        F has kinks, nearly, where sigma is small: a step that crosses many of them is too long, and
        halves of it would be many.
        """
        dz, t, low, high = self.X.times(way), 1.0, (0.0, -promised), (1.0, 0.0)
        for _ in range(TRIALS):
            new = self.at(at.w + t * way, at.z + t * dz)
            slope = 2 * float((self.s * new.cut) @ dz) + float((self.ridge * new.w) @ way)
            fallen = new.value <= at.value - ARMIJO * t * promised
            if fallen and slope <= FLAT * promised:
                return new
            low, high = ((t, slope), high) if slope < 0 else (low, (t, slope))
            (a, f), (b, g) = low, high
            t = min(max((a * g - b * f) / (g - f), 0.9 * a + 0.1 * b), 0.1 * a + 0.9 * b)
        return new if fallen else None


def best_scale(r: Vector, s: Vector, epsilon: float) -> float:
    """The best sigma for these residuals: sum_i s_i min(|r_i|/sigma, epsilon)^2 = sum_i s_i.

    The left side is concave and piecewise linear in 1/sigma^2. Newton's method begins with no
    residual cut, from where it climbs to the zero in finitely many steps.
    """
    squares, S, linear = r * r, float(s.sum()), -1.0
    weighted, room = s * squares, S
    inside = float(weighted.sum())
    while inside > 0:
        u = room / inside
        cut = squares > epsilon**2 / u
        outside = float(s @ cut)
        if outside <= linear:
            return math.sqrt(1 / u)
        linear, room, inside = outside, S - epsilon**2 * outside, float(weighted @ ~cut)
    return 0.0


def total(u: Vector, cut: Vector, sigma: float, s: Vector) -> float:
    """sum_i s_i (sigma + sigma H(u_i))"""
    return sigma * float(s @ (1 + cut * (2 * u - cut)))


def _certified(model: Any, problem: ERM, point: Point, sigma: float, s: Vector) -> Found:
    """P and D of the joint problem, over the sum of the weights, at its best sigma."""
    S, epsilon = float(s.sum()), model.epsilon
    changes = {"alpha": model.alpha * sigma / S} if model.alpha else {}
    inner = problem.altered(loss=losses.Huber(epsilon * sigma), **changes)
    found = certify(inner, point)
    D = _dual(inner, found.x * (-2 * S / (sigma * inner.n)), s, model.alpha)
    r = found.z - problem.y
    sigma = best_scale(r, s, epsilon)
    cut = np.clip(r, -epsilon * sigma, epsilon * sigma) / sigma
    P = total(r / sigma, cut, sigma, s) + model.alpha * float(found.w @ found.w)
    made = stated(found.w, found.x, found.b, found.z, P / S, D / S)
    return Found(made, inner, sigma, 0, False)


def _dual(problem: ERM, st: Vector, s: Vector, alpha: float) -> float:
    """D at the best multiple of t, given s_i t_i."""
    curved, S = float(np.sum(np.divide(st**2, 4 * s, where=s > 0, out=np.zeros_like(s)))), s.sum()
    most = math.sqrt(S / curved) if curved > S else 1.0
    linear, v = -float(st @ problem.y), problem.samples.adjoint(st)
    if not alpha:
        assert problem.box is not None
        return max(most * (linear - float(problem.box @ np.abs(v))), 0.0)
    square = float(v @ v) / (4 * alpha)
    c = min(most, linear / (2 * square)) if square > 0 else most
    return c * linear - c * c * square if c > 0 else 0.0
