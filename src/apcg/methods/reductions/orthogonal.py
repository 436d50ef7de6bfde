"""X of any scale: the same problem in coordinates in which the columns are orthogonal.

Columns of very different sizes, or columns alike and a tiny lambda, are too much for X X' and X'X:
they have the squares of the singular values of X, and the rounding of the largest hides lambda. The
singular values themselves are right to eps times the largest. With the mean m of the rows (0
without an intercept)

    X - 1 m' = U diag(sigma) B'      w = B diag(a/sigma) q      X w + b = U diag(a) q + c

    minimize (1/n) sum_i s_i phi_i(U_i' diag(a) q + c) + (lambda/2) sum_k (a_k q_k/sigma_k)^2

with c = b + m'w, U and B with orthonormal columns, and a_k^2 = sigma_k^2/(sigma_k^2 + lambda gamma
n), so that every coordinate of q bends P alike. Newton's method solves that by QR factors (interior
points, if the loss has kinks). Whatever was rounded on the way is put right on X itself:

    e = lambda w - X'psi/n = 0      e_b = -sum_i psi_i/n = 0      r = z(x) - X w - b = 0

is what an optimum is, with psi_i = y_i x_i (x_i for a loss of residuals), and z(x) the predictions
whose dual point is x. There x is not -s phi'(X w + b): where columns are large, the rounding of
X w + b would be in it, and X' would make it larger still. It is an unknown of its own. With D =
diag(s phi''/n), dz = X dw + db and any H that is near X'D X + lambda I, a step is

    H dq = -(e, e_b) + (X, 1)'D r      dpsi = n D (r - dz)

A loss of pieces (hinge family, Huber) has rows at rest: x_i is at a bound of phi*, and D_i = 0. A
row leaves when x_i has crossed a bound by more than rounding, and returns when its margin is on the
wrong side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack, qr

from ..._base.validation import Matrix, Vector
from ..._base.weights import divisor
from ...certify.certificate import certify
from ...certify.points import Certificate, Point, Start
from ...data import Dense
from ...data.views import table
from ...penalties.interval import Interval
from ...problems.erm import ERM
from ...problems.objective import Objective
from ..base import (
    COMPILED_LOSS,
    L2_PENALTY,
    ONE_OUTPUT,
    Budget,
    Need,
    Needs,
    Stepping,
    Target,
    Work,
    unmet,
)
from ..interior.interior import Interior
from ..newton.hessian import Stacked
from ..newton.newton import NewtonRun

_EPS = float(np.finfo(float).eps)
#: Multiply-adds of the decomposition, and of a step of Newton's method, at most: some seconds, and
#: some tenths of one.
MOST, MOST_STEP = 5e9, 5e8
#: Multiply-adds of a decomposition that is cheap.
CHEAP = 1e8
#: A singular value counts if X has it to this part.
KNOWN_TO = 0.25
#: Passes of the small problem, at most: a step of Newton's method is two or three.
PATIENCE = 600
#: Looks at interior points.
LOOKS = 8
#: Steps on X, at most; steps that bring nothing before it ends, without the tolerance and with it.
ROUNDS, IDLE = 30, (6, 2)
#: A margin is on the wrong side if it is so many roundings off; an x that crossed a bound, too.
WRONG, CROSSED = 64.0, 8.0
#: Interior points never rest: with kinks, a row does if it is within this part of the largest |x|
#: from a bound.
REST = 1e-8
#: phi'' of a loss with kinks, 1/FIRM at one: steps then come close to the kink, and soon to it.
FIRM = 1e-5
#: Where phi* is smooth up to its bounds, x goes at most this part of the way to one.
PART = 0.9


#: q and x of the small problem
Answer = tuple[Vector, Vector]
Answers = Iterator[Answer]


def _affordable(problem: ERM) -> bool:
    n, d = problem.n_samples, problem.d
    r = min(n, d)
    constant = problem.loss.eta == problem.loss.gamma
    return r > 0 and n * d * r <= MOST and (constant or (n + r) * r * r <= MOST_STEP)


AFFORDABLE = Need(
    "an X with a singular value decomposition that is affordable",
    _affordable,
    lambda p: f"X is {p.n_samples:,} x {p.d:,}",
)
KNOWN = Need(
    'a smooth loss, "hinge" or "epsilon_insensitive"',
    lambda p: p.loss.gamma > 0 or unmet(Interior, p) is None,
    lambda p: f"loss {p.loss.name!r} is another one",
)


@dataclass(frozen=True)
class Orthogonal:
    """The method "orthogonal". It begins at zero, whatever start there is."""

    name: ClassVar[str] = "orthogonal"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, L2_PENALTY, KNOWN, AFFORDABLE)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> OrthogonalRun:
        """Begin with nothing: the first `advance` decomposes X."""
        return OrthogonalRun(problem, target, rng)


def is_cheap(problem: ERM) -> bool:
    """Whether digits of w are worth the decomposition: it takes some hundredths of a second."""
    n, d = problem.n_samples, problem.d
    return n * d * min(n, d) <= CHEAP


class OrthogonalCoordinates:
    """X - 1 m' = U diag(sigma) B', and the ways between w, b and q; c is the last entry of q."""

    def __init__(self, problem: ERM) -> None:
        X = problem.samples.view(table)
        n, d = X.shape
        self._free = problem.intercept
        self._mean: Vector = np.zeros(d)
        if self._free:
            share = np.broadcast_to(problem.weights, n) / problem.n
            self._mean = share @ X
        centred: Matrix = X - self._mean
        if d > n:
            B, R = qr(centred.T, mode="economic", check_finite=False)
            U, sigma, V = _decomposed(np.asarray(R.T, dtype=np.float64))
            B = B @ V
        else:
            U, sigma, B = _decomposed(centred)
        # of a singular value that is all rounding X knows nothing
        off = X @ B - self._mean @ B - U * sigma
        known = np.linalg.norm(off, axis=0) <= KNOWN_TO * sigma
        known &= sigma > 0
        sigma, self._B = sigma[known], np.ascontiguousarray(B[:, known])
        own = problem.strong_convexity * (problem.loss.gamma or 1.0) * problem.n
        #: the squared lengths a^2 of the columns of U diag(a)
        self.squares = sigma**2 / (sigma**2 + own)
        self.U = np.ascontiguousarray(U[:, known] * np.sqrt(self.squares))
        self._ratio = 1 / np.sqrt(sigma**2 + own)  # a/sigma
        g = Interval(np.zeros(1), problem.g.b * self._ratio**2, *np.array([[-np.inf], [np.inf]]))
        self.small = problem.altered(samples=Dense(self.U), d=sigma.size, g=g)

    def q(self, point: Point) -> Vector:
        """q of a point of the small problem."""
        assert point.w is not None
        return np.append(point.w, point.b) if self._free else point.w

    def w(self, q: Vector) -> tuple[Vector, float]:
        """w and b of q; or how they change with it."""
        w = self._B @ (self._ratio * q[: self._ratio.size])
        return w, float(q[-1] - self._mean @ w) if self._free else 0.0

    def z(self, q: Vector) -> Vector:
        """X w + b of q, or how they change."""
        r = self._ratio.size
        return np.asarray(self.U @ q[:r] + (q[r] if self._free else 0.0))

    def gradient(self, by_w: Vector, by_b: float, by_z: Vector) -> Vector:
        """The gradient by q of a function of w, b and z."""
        by_q = self._ratio * (self._B.T @ (by_w - by_b * self._mean)) + self.U.T @ by_z
        return np.append(by_q, by_b + by_z.sum()) if self._free else by_q


def _decomposed(A: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """U, sigma and V of A = U diag(sigma) V', of no more columns than rows, by Jacobi's method.

    With columns and rows of any scale it has the small singular values to more digits than methods
    that make A bidiagonal first.
    """
    sigma, U, V, work, _, info = lapack.dgejsv(A, joba=2, jobu=0, jobv=0)
    if info != 0:
        raise np.linalg.LinAlgError("Jacobi's method did not converge")
    return U, sigma * (work[0] / work[1]), V


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

    def __init__(self, problem: ERM, ways: OrthogonalCoordinates, hessian: Stacked) -> None:
        self._problem, self._ways, self._hessian = problem, ways, hessian

    def run(self, q: Vector, x: Vector, tol: float, budget: Budget) -> Certificate:
        """The best pair on the way from the point of q, and x."""
        p, ways = self._problem, self._ways
        strength = p.alpha * float(p.g.b[0])
        w, b = ways.w(q)
        bends, idle = Bends(p, x), 0
        best = certify(p, Point(w, bends.feasible, b))
        for _ in range(ROUNDS):
            if budget.expired or idle >= IDLE[best.relative <= tol]:
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


class OrthogonalRun(Stepping):
    """The method at work: the small problem, then what is left to be done on X."""

    def __init__(self, problem: ERM, target: Target, rng: np.random.Generator) -> None:
        self.problem, self._target, self._rng = problem, target, rng
        self._found: Certificate | None = None

    def advance(self, budget: Budget) -> Work:
        """All of it, once; where the time ends, as far as it got."""
        if self.stuck:
            return Work(0)
        p, nothing = self.problem, np.zeros(self.problem.d)
        ways = OrthogonalCoordinates(p)
        self._found = certify(p, Point(nothing, np.zeros(p.n_samples) if ways.small.d else None))
        if ways.small.d > 0:
            hessian = Stacked(Objective.of(ways.small), ways.U, ways.squares)
            inside = replace(budget, passes=PATIENCE, fixed=False)
            for q, x in self._answers(ways, hessian, inside):
                found = Refinement(p, ways, hessian).run(q, x, self._target.tol, budget)
                self._found = better(self._found, found)
                if self._found.relative <= self._target.tol or budget.expired:
                    break
        self.stuck = True
        return Work(min(p.n_samples, p.d))

    def _answers(self, ways: OrthogonalCoordinates, hessian: Stacked, budget: Budget) -> Answers:
        """By Newton's method, if the loss is smooth; by interior points, if it is in pieces."""
        if self.problem.loss.gamma > 0:
            yield self._by_newton(ways, hessian, budget)
        if unmet(Interior, ways.small) is None:
            yield from self._by_interior(ways, budget)

    def _by_newton(self, ways: OrthogonalCoordinates, hessian: Stacked, budget: Budget) -> Answer:
        """The answer to the small problem."""
        p, small = self.problem, ways.small
        run = NewtonRun(small, Start(), self._target, self._rng, hessian)
        spent = run.advance(budget).passes
        while not (run.passes() or run.report.stuck or budget.expired) and spent < PATIENCE:
            spent += run.advance(budget).passes
        q = ways.q(run.point())
        return q, p.loss.duals(ways.z(q), p.y, p.weights)

    def _by_interior(self, ways: OrthogonalCoordinates, budget: Budget) -> Answers:
        """Answers by interior points, each closer than the one before."""
        run = Interior().start(ways.small, Start(), self._target, self._rng)
        for _ in range(LOOKS):
            run.advance(budget)
            found = certify(ways.small, run.point().bare())
            yield ways.q(run.point()), found.x
            if run.report.stuck:
                break
            run.seen(found)

    def point(self) -> Point | Certificate:
        """The best pair found; w = 0 before that."""
        return self._found or Point(np.zeros(self.problem.d))
