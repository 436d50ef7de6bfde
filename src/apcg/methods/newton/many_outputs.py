"""Newton's method for K outputs, with a Cholesky factor where samples are many and d K is small.

    P(W) = (1/n) sum_i s_i phi_i(W'a_i) + (lambda/2) sum_jk b_j W_jk^2

The Hessian of phi_i is diag(u_i) - v_i v_i', of K x K numbers:

    softmax                      u = v = p, the probabilities
    smoothed Crammer-Singer      u = t/gamma, v = t/sqrt(gamma |t|_1), t = 1 where pi > 0
    a sum over outputs           u = phi'', v = 0: K problems, one factor if phi'' is constant

A factor costs n (dK)^2/2 multiply-adds and (dK)^3/6, so `auto` takes it for the few problems where
the dual, with many more samples than features, would take more sweeps than that is worth. Where it
would be too large, method "newton" finds its steps by conjugate gradients, one pass an iteration,
to an accuracy that grows as the gradient falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from ..._base.validation import Matrix, Vector
from ...certify.points import Point, Start
from ...data import views
from ...losses.base import SOFTMAX
from ...problems.erm import ERM
from ..base import (
    KNOWN_LOSS_OF_K,
    MANY_OUTPUTS,
    QUADRATIC_OR_NONE,
    SMOOTH_LOSS,
    Budget,
    Needs,
    Run,
    Stepping,
    Target,
    Work,
    check_dual_start,
)
from ..linalg.conjugate_gradients import steps
from ..linalg.factor import Factor
from . import softmax

# When it is taken. Nanoseconds are those of `costs`, of dense BLAS.

#: Unknowns, at most; features whose matrix is cheap with any number of samples; numbers of X as a
#: dense array, at most.
MOST, FEW, ROOM = 1500, 200, 4e6
#: Steps of a run.
STEPS = 10.0
#: A multiply-add of the Hessian and of its factor; a step besides.
ENTRY, FACTOR, STEP = 0.3, 0.15, 300_000.0
#: A number of a pass of the dual, times K; a row; a sweep besides.
NUMBER, ROW, SWEEP = 1.2, 500.0, 150_000.0
#: Armijo's share of the slope.
SHARE = 1e-4
#: A step moves predictions by at most so many times their size, or by so much.
LONGEST = 100.0
#: Conjugate gradients: the residual of the first step over the gradient, iterations of a step.
ROUGH, ITERATIONS = 0.25, 500
#: A slope that can change P by less than this part of it is rounding.
_ROUNDING = 1e-13
#: The least curvature of an intercept, over the largest there is: H may be zero along one.
_FLAT = 1e-13


def applies(problem: ERM) -> bool:
    """Whether it is for this problem: quadratic penalty, a smooth loss that it knows, small."""
    if softmax.applies(problem):
        return True
    known = problem.loss.kind is not None and problem.loss.gamma > 0
    if not (known and problem.g.is_quadratic):
        return False
    unknowns = (problem.d + 1) * (1 if problem.loss.by_output else problem.K)
    return unknowns <= MOST and problem.n_samples * (problem.d + 1) <= ROOM


def at_once(problem: ERM) -> bool:
    """Whether no sweeps come first: phi'' is constant, or a softmax with few numbers of W."""
    return one_step(problem) or softmax.at_once(problem)


def one_step(problem: ERM) -> bool:
    """Whether one step is all there is: phi'' is constant, and one factor serves all outputs."""
    loss = problem.loss
    constant = loss.by_output and loss.eta == loss.gamma
    return bool(constant and applies(problem) and problem.d <= max(problem.n, FEW))


def cost(problem: ERM) -> float:
    """Nanoseconds of a run."""
    if softmax.applies(problem):
        return softmax.cost(problem)
    n, D, K = problem.n_samples, problem.d + problem.intercept, problem.K
    pairs, unknowns = K * (K + 1) / 2, D * K
    if problem.loss.by_output:
        pairs, unknowns = K, D
    entries = ENTRY * n * D**2 * pairs + FACTOR * unknowns**3 / 3
    return STEPS * (entries + STEP)


def sweep_cost(problem: ERM) -> float:
    """Nanoseconds of a pass of the dual, without momentum."""
    numbers = 2 * NUMBER * problem.samples.nnz * problem.K
    return numbers + ROW * problem.n_samples + SWEEP


@dataclass(frozen=True)
class BlockNewton:
    """Newton's method on the primal of a problem with K outputs."""

    name: ClassVar[str] = "newton"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, SMOOTH_LOSS, QUADRATIC_OR_NONE, KNOWN_LOSS_OF_K)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin at w, or at what fits x, or at zero."""
        p, w = problem, at.w
        if at.x is not None:
            check_dual_start(p, at.x)
        if w is None and at.x is not None and p.dual_form:
            w = p.omega(at.x)
        b = p.check_b(0.0 if at.b is None else at.b)
        if softmax.applies(p):
            return softmax.SoftmaxRun(p, w, b, target, rng)
        return BlockNewtonRun(p, np.zeros((p.d, p.K)) if w is None else w, b)


class BlockNewtonRun(Stepping):
    """Damped steps from W, with the intercepts as a last row that has no penalty."""

    def __init__(self, problem: ERM, w: Matrix, b: Vector) -> None:
        self.problem = problem
        self.seen_as = problem.unpenalised() if problem.intercept else problem
        self._map = self.seen_as.samples
        self._factors = applies(problem)
        if self._factors:
            self._X = self._map.view(views.table)
        self._W = np.vstack([w, b[None]]) if problem.intercept else np.array(w)
        ridge = problem.alpha * np.broadcast_to(self.seen_as.g.b, (self._W.shape[0], 1))
        self._ridge = np.array(ridge, dtype=np.float64)
        self._z = self._times(self._W)
        self._value = self._primal(self._W, self._z)
        self._first = 0.0
        self._passes = 1

    def _times(self, W: Matrix) -> Matrix:
        """X W"""
        return np.asarray(self._X @ W if self._factors else self._map.times(W))

    def _adjoint(self, r: Matrix) -> Matrix:
        """X' r"""
        return np.asarray(self._X.T @ r if self._factors else self._map.adjoint(r))

    def _primal(self, W: Matrix, z: Matrix) -> float:
        p = self.problem
        return p.loss_total(np.ascontiguousarray(z)) / p.n + 0.5 * float(np.sum(self._ridge * W**2))

    def advance(self, budget: Budget) -> Work:
        """One step; counted as the passes that it costs."""
        p = self.problem
        x = p.signed(p.loss.duals(self._z, p.y, p.weights))
        gradient = -self._adjoint(x) / p.n + self._ridge * self._W
        moved = self._factors and self._step(gradient, self._solve(gradient, x))
        if not moved:  # without a factor, or where H has no curvature along some intercept
            moved = self._step(gradient, self._solve_by_products(gradient, x))
        self.stuck = not moved
        if not self._factors:
            return Work(min(self._passes, budget.passes))
        per = cost(p) / STEPS / sweep_cost(p)
        return Work(max(1, min(round(per), budget.passes)))

    def _step(self, gradient: Matrix, against: Matrix) -> bool:
        """Go against this as far as P falls well, by halves; whether it falls at all."""
        slope = -float(np.vdot(gradient, against))
        if not slope < 0:
            return False
        dz = self._times(against)
        # where H is nearly singular, 1 is far too long
        size, reach = float(np.abs(dz).max(initial=0)), 1 + float(np.abs(self._z).max(initial=0))
        step = min(1.0, LONGEST * reach / size) if size > 0 else 1.0
        if -slope <= _ROUNDING * abs(self._value):  # P cannot tell: the gradient has to
            return self._follow(gradient, step * against)
        shortest, value = 1e-10 * step, math.inf
        while step > shortest:  # not if it is zero, or not a number
            W = self._W - step * against
            value = self._primal(W, self._z - step * dz)
            if value <= self._value + SHARE * step * slope:
                break
            step /= 2
        if not value < self._value:
            return False
        self._W, self._z, self._value = W, self._times(W), value
        return True

    def _follow(self, gradient: Matrix, against: Matrix) -> bool:
        """A step that is kept if it makes the gradient smaller by half."""
        p = self.problem
        W = self._W - against
        z = self._times(W)
        x = p.signed(p.loss.duals(z, p.y, p.weights))
        after = -self._adjoint(x) / p.n + self._ridge * W
        if not np.linalg.norm(after) <= 0.5 * np.linalg.norm(gradient):
            return False
        self._W, self._z, self._value = W, z, self._primal(W, z)
        return True

    def _bend(self, x: Matrix) -> tuple[Matrix, Matrix | None]:
        """u and v of the Hessians of phi_i, times s_i and sqrt(s_i), over n and its root."""
        p, loss = self.problem, self.problem.loss
        s = np.broadcast_to(p.weights, p.n_samples)[:, None] / p.n
        if loss.by_output:
            m = loss.loss.argument(self._z, p.y)
            bend = loss.loss.arrays.curvature(np.ascontiguousarray(m).reshape(-1))
            return s * bend.reshape(m.shape), None
        pi = -x / np.where(p.weights > 0, p.weights, 1.0)[:, None]
        pi[np.arange(p.n_samples), p.y] += 1.0
        if loss.kind == SOFTMAX:
            return s * pi, np.sqrt(s) * pi
        active = (pi > 0) / math.sqrt(loss.gamma)
        count = np.maximum((pi > 0).sum(axis=1, keepdims=True), 1)
        return s * active**2, np.sqrt(s / count) * active

    def _solve(self, gradient: Matrix, x: Matrix) -> Matrix:
        """H^-1 gradient; a factor adds a little where H is flat, as along equal intercepts."""
        X, D, K = self._X, self._X.shape[1], self.problem.K
        u, v = self._bend(x)
        if v is None:
            count = 1 if one_step(self.problem) else K
            factors = [self._factor(X.T @ (u[:, k, None] * X)) for k in range(count)]
            each = [factors[k % count].solve(gradient[:, k].copy()) for k in range(K)]
            return np.column_stack(each)
        H = np.empty((K * D, K * D))
        for k in range(K):
            for m in range(k, K):
                weight = -v[:, k] * v[:, m]
                if m == k:  # not below zero by a rounding, which a large X would show
                    weight = np.maximum(weight + u[:, k], 0.0)
                H[k * D : (k + 1) * D, m * D : (m + 1) * D] = X.T @ (weight[:, None] * X)
        return self._factor(H).solve(gradient.T.reshape(-1)).reshape(K, D).T

    def _factor(self, H: Matrix) -> Factor:
        """Of H without its ridge, the upper triangle."""
        own = H.diagonal() + np.resize(self._ridge[:, 0], len(H))
        np.fill_diagonal(H, np.maximum(own, _FLAT * own.max()))
        return Factor(H)

    def _solve_by_products(self, gradient: Matrix, x: Matrix) -> Matrix:
        """H^-1 gradient by conjugate gradients, to sqrt(|gradient|) of that of the start."""
        u, v = self._bend(x)

        def times(way: Matrix) -> Matrix:
            z = self._times(way)
            bent = u * z if v is None else u * z - v * np.sum(v * z, axis=1, keepdims=True)
            self._passes += 1
            return np.asarray(self._adjoint(bent) + self._ridge * way)

        size = float(np.linalg.norm(gradient))
        self._first = self._first or size
        aim = size * min(ROUGH, math.sqrt(size / self._first)) if size > 0 else 0.0
        found, self._passes = np.zeros_like(gradient), 2
        path = steps(times, np.copy, gradient.copy())
        for step, way, _, square in islice(path, ITERATIONS):
            found += step * way
            if math.sqrt(square) <= aim:
                break
        return found if found.any() else gradient

    def point(self) -> Point:
        """The present answer."""
        own, b = (self._W[:-1], self._W[-1].copy()) if self.problem.intercept else (self._W, 0.0)
        w = self.problem.g.clip(own)
        return Point(w=w.copy(), b=b, z=self._z if np.array_equal(w, own) else None)
