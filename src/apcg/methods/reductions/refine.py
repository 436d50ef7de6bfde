"""Digits for an answer that was found in other coordinates: Newton's method on w, b and x together.

What an optimum is, with psi_i = y_i x_i (x_i for a loss of residuals), and z(x) the predictions
whose dual point is x:

    e = lambda w - X'psi/n = 0      e_b = -sum_i psi_i/n = 0      r = z(x) - X w - b = 0

x is not -s phi'(X w + b) here: where columns are large, the rounding of X w + b would be in it, and
X' would make it larger still. It is an unknown of its own, and a step puts right what e, e_b and r
say, all of them computed on X. With D = diag(s phi''/n), dz = X dw + db and any H that is near
X'D X + lambda I (in the coordinates, where it has a factor)

    H dq = -(e, e_b) + (X, 1)'D r      dpsi = n D (r - dz)

A loss of pieces (hinge family, Huber) has rows at rest: x_i is at a bound of phi*, and D_i = 0. A
row leaves when x_i has crossed a bound by more than rounding, and returns when its margin is on the
wrong side.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from ..._base.validation import Vector
from ..._base.weights import divisor
from ...certify.certificate import certify
from ...certify.points import Certificate, Point
from ...problems.erm import ERM
from ..base import Budget
from ..newton.stacked import Stacked

_EPS = float(np.finfo(float).eps)
#: Steps, at most; steps that bring nothing before it ends, without the tolerance and with it.
ROUNDS, PATIENCE = 30, (6, 2)
#: A margin is on the wrong side if it is so many roundings off; an x that crossed a bound, too.
WRONG, CROSSED = 64.0, 8.0
#: Interior points never rest: with kinks, a row does if it is within this part of the largest |x|
#: from a bound.
REST = 1e-8
#: phi'' of a loss with kinks, 1/FIRM at one: steps then come close to the kink, and soon to it.
FIRM = 1e-5
#: Where phi* is smooth up to its bounds, x goes at most this part of the way to one.
PART = 0.9


class Ways(Protocol):
    """The coordinates q, as `orthogonal.OrthogonalCoordinates` has them."""

    def w(self, q: Vector) -> tuple[Vector, float]:
        """w and b of q."""

    def z(self, q: Vector) -> Vector:
        """X w + b of q."""

    def gradient(self, by_w: Vector, by_b: float, by_z: Vector) -> Vector:
        """The gradient by q of a function of w, b and z."""


class Bends:
    """s phi''/n and r = z(x) - z of each row, and which rows are at rest.

    x  a dual point; a row that is next to a bound, or to a kink of phi*, is at rest there
    """

    def __init__(self, problem: ERM, x: Vector) -> None:
        p = self._problem = problem
        self._s = np.broadcast_to(p.weights, p.n_samples)
        self._sign = p.y if p.loss.margin else np.ones(1)
        self._noise = np.full(p.n_samples, math.inf)  # of x: at first each is in its place
        self._moves = np.ones(p.n_samples, dtype=bool)
        self.x = x
        if p.loss.kernel == "interval" and np.isfinite(self._ends).any():
            ends = np.array([end * self._s for end in self._ends if math.isfinite(end)])
            nearest = np.abs(x - ends).argmin(axis=0)
            end = np.take_along_axis(ends, nearest[None], axis=0)[0]
            near = 0.0 if p.loss.gamma > 0 else REST * float(np.abs(x).max())
            self._moves = np.abs(x - end) > near
            self.x = np.where(self._moves, x, end)

    @property
    def _ends(self) -> Vector:
        """Where x/s can rest, infinite bounds too."""
        loss = self._problem.loss
        return np.array([*loss.domain, 0.0] if loss.conjugate_kink else loss.domain)

    def at(self, z: Vector) -> tuple[Vector, Vector]:
        """D and r at the predictions z."""
        p, x, s = self._problem, self.x, self._s
        m, u = np.ascontiguousarray(p.loss.argument(z, p.y)), x / divisor(p.weights)
        r = p.loss.nearest_conjugate_slope(np.clip(u, *p.loss.domain), m) - m
        if p.loss.kernel != "interval":
            bend = s * p.loss.arrays.curvature(m) / p.n
            return bend, self._sign * np.where(np.isfinite(r), r, 0.0)
        k, epsilon, gamma, lower, upper = p.loss.theta
        stays = (x >= s * lower - self._noise) & (x <= s * upper + self._noise)
        if p.loss.conjugate_kink:
            stays &= x != 0
        wrong = (s > 0) & (np.abs(r) > WRONG * _EPS * (1 + np.abs(m)))
        self._moves = np.where(self._moves, stays, wrong)
        bend = np.where(self._moves, s / ((gamma or FIRM) * p.n), 0.0)
        return bend, self._sign * np.where(
            self._moves, k - gamma * u - epsilon * np.sign(u) - m, 0.0
        )

    def move(self, dpsi: Vector, size: Vector) -> None:
        """Take a step; dpsi is the difference of two numbers of that size."""
        p, x, s = self._problem, self.x, self._s
        new, (lower, upper) = x + self._sign * dpsi, p.loss.domain
        if p.loss.kernel == "interval":
            self._noise = CROSSED * _EPS * size
            new = np.where(self._moves, new, self.feasible)
            self.x = np.where(new * x < 0, 0.0, new) if p.loss.conjugate_kink else new
            return
        with np.errstate(invalid="ignore"):  # infinite bounds
            new = np.fmax(new, x - PART * (x - s * lower))
            self.x = np.fmin(new, x + PART * (s * upper - x))

    @property
    def feasible(self) -> Vector:
        """x without what has crossed a bound."""
        p = self._problem
        return np.asarray(p.loss.clip(self.x, p.y, p.weights))


class Refinement:
    """Steps from a pair, on X."""

    def __init__(self, problem: ERM, ways: Ways, hessian: Stacked) -> None:
        self._problem, self._ways, self._hessian = problem, ways, hessian

    def run(self, q: Vector, x: Vector, tol: float, budget: Budget) -> Certificate:
        """The best pair on the way from the point of q, and x."""
        p, ways = self._problem, self._ways
        strength = p.alpha * float(p.g.b[0])
        w, b = ways.w(q)
        bends, idle = Bends(p, x), 0
        best = certify(p, Point(w, bends.feasible, b))
        for _ in range(ROUNDS):
            if budget.expired or idle >= PATIENCE[best.relative <= tol]:
                break
            bend, r = bends.at(p.samples.times(w) + b)
            psi = p.signed(bends.x)
            e = strength * w - p.samples.adjoint(psi) / p.n
            e_b = -float(psi.sum()) / p.n
            dq = self._hessian.stacked(bend).solve(ways.gradient(-e, -e_b, bend * r))
            dz, (dw, db) = ways.z(dq), ways.w(dq)
            bends.move(p.n * bend * (r - dz), p.n * bend * (np.abs(r) + np.abs(dz)))
            w, b = w + dw, b + db
            found = certify(p, Point(w, bends.feasible, b))
            before, best = best.gap, better(best, found)
            idle = 0 if best.gap < 0.5 * before else idle + 1
        return best


def better(one: Certificate, other: Certificate) -> Certificate:
    """The lower P and the higher D of two."""
    low, high = (one, other) if one.primal <= other.primal else (other, one)
    if low.dual >= high.dual:
        return low
    return replace(low, x=high.x, dual=high.dual, exact=low.exact and high.exact)
