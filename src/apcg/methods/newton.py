"""Newton's method on the primal of ERM, for many more samples than features.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + (lambda/2) sum_j b_j w_j^2

    H = (1/n) sum_i s_i phi_i''(A_i' w) A_i A_i' + lambda diag(b)
    w+ = w - t H^-1 grad P(w),   t by a search along the line

Where phi' has kinks (the hinge family, Huber) phi'' is one of its generalised derivatives, and the
method is the semismooth one. Few features that are nearly collinear make every coordinate method
slow, whatever its momentum: a Cholesky factor does not see the difference.

The first steps are taken on a sample of the rows, with a factor of their H. On all rows H^-1 grad P
is found by conjugate gradients with the factor R of the sample's H as preconditioner: one pass over
the data an iteration, and few of them, because the sample's H is nearly that of all rows. Where it
is not, H of all rows is factored. X w is linear in t, so the search along the line takes no pass.

The stop needs no dual point: with x_i = -s_i phi_i'(A_i' w) Fenchel's equality makes the duality gap
sum_j (grad P)_j^2/(2 lambda b_j). With an intercept that holds at the b that is best for w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._validation import Index, Vector
from ..erm import ERM
from ..losses import Squared
from ..points import Certificate, Point, Start
from . import factor
from .base import QUADRATIC_PENALTY, SMOOTH_LOSS, Budget, Needs, Target, Work
from .factor import Factor
from .rows import At, Rows


@dataclass(frozen=True)
class Tuning:
    """The constants of Newton's method. Times are nanoseconds on one core, measured on a9a, covtype
    (100,000 rows), cal_housing and dense Gaussian rows of 60 to 500 features.
    """

    #: the sample has at least so many rows for each feature (3 to 30 make no difference on a9a)
    rows_per_feature: float = 10.0
    #: at least this part of the rows, and so many (from the prototypes: a step of it is then cheap)
    share: float = 0.05
    least_rows: int = 1000
    #: at most this part: with more, a factor of all rows costs little more
    most: float = 0.25
    #: the sample is solved until a step promises less than this part of P: its optimum is not ours
    rough: float = 0.1
    #: steps on the sample: it may be separable, and its optimum far out
    sample_steps: int = 12
    #: conjugate gradients stop at this part of the first residual, in the norm of the preconditioner
    forcing: float = 0.1
    #: or when the residual, the gradient to come, would pass with this part of the gap asked for
    enough: float = 0.25
    #: a search along the line ends at this part of the first slope
    flat: float = 0.5
    #: a step that overshoots is tried again with another phi'', so many times in all
    attempts: int = 3
    #: the start is scaled if that promises more than this part of P
    rescale: float = 0.05
    #: squared loss: solved by one factor if that costs at most so many passes
    direct: float = 30.0
    #: a factor of all rows is made anew if phi'' has changed by more than this part
    stale: float = 0.1
    #: the sample's factor is made anew at each step if it costs at most so many passes
    cheap: float = 0.5
    #: conjugate gradients end after so many steps whatever a factor costs: rounding has won
    most_steps: int = 200
    #: an intercept may have no curvature, where every phi'' is zero: so much over gamma, at least
    least_curvature: float = 1e-12
    #: ns of a multiply-add of a Gram matrix: sparse, dense
    gram: tuple[float, float] = (0.85, 0.13)
    #: ns of a multiply-add of a factor
    factor: float = 0.15
    #: ns for each number of X in a fused pass: sparse, dense
    number: tuple[float, float] = (1.25, 0.6)
    #: ns for each row in a pass
    row: float = 4.0


@dataclass(frozen=True)
class Newton:
    """The method "newton"."""

    tuning: Tuning = field(default_factory=Tuning)
    name: str = "newton"
    needs: Needs = (SMOOTH_LOSS, QUADRATIC_PENALTY)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> NewtonRun:
        """Begin at the best point on the line from 0 through at.w (with at.b)."""
        return NewtonRun(problem, at, target, rng, self.tuning)


class NewtonRun:
    """Newton's method at work: a point, a factor, and what it may cost."""

    def __init__(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator, tuning: Tuning
    ) -> None:
        self._tuning, self._start, self._rng = tuning, at, rng
        self._aim = target.tol
        self._all = Rows.of(problem)
        self._free = problem.intercept
        self._quadratic = isinstance(problem.loss, Squared)
        self._prices = _Prices(self._all, tuning)
        # H of a free intercept may be zero; P itself has no such term
        least = tuning.least_curvature / problem.loss.gamma
        self._ridge = np.where(self._all.ridge > 0, self._all.ridge, least)
        self._at: At | None = None
        self._gradient = np.empty(0)
        self._sample: tuple[Rows, Index, Vector] | None = None
        self._factor: Factor | None = None
        self._factored: Vector | None = None  # phi'' of all rows in the factor; None: the sample's
        self._exact = False
        self._cost, self._counted = 0.0, 0
        self._solved: Vector | None = None  # w by one factor, not yet looked at
        self._moved = False

    # ---- the protocol -----------------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Go on until the gap is predicted to pass, or the budget is spent, or rounding has won."""
        first = self._cost
        self._moved = False
        if self._at is None and self._solved is None:
            self._begin(budget)
        while not self._done(budget, self._cost - first):
            if self._solved is not None:
                self._restore(self._solved)
            if not self._step(budget):
                break
        passes = max(math.ceil(self._cost) - self._counted, 0)
        self._counted += passes
        return Work(passes)

    def point(self) -> Point:
        """The iterate, with its predictions unless a look is expected to be the last."""
        d = self._all.d
        if self._solved is not None:
            return Point(w=self._solved[:d], b=self._intercept(self._solved))
        assert self._at is not None
        w, b = self._at.w, self._intercept(self._at.w)
        z = None if self._passes() else self._at.z.copy()
        return Point(w=w[:d].copy(), b=b, z=z)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: aim lower, and compute the predictions anew."""
        if self._solved is not None or self._passes():
            self._restore(self._at.w if self._at is not None else self._solved)
            self._aim *= 0.1

    def _done(self, budget: Budget, spent: float) -> bool:
        if budget.expired or spent >= budget.passes:
            return self._moved or budget.expired
        if budget.fixed:
            return False
        return self._solved is not None or self._passes()

    def _passes(self) -> bool:
        return self._gap() <= self._aim * abs(self._at.value) if self._at is not None else False

    def _intercept(self, w: Vector) -> float:
        return float(w[-1]) if self._free else 0.0

    # ---- the start --------------------------------------------------------------------------------

    def _begin(self, budget: Budget) -> None:
        rows = self._all
        given = self._start.w
        w = np.zeros(rows.size)
        if given is not None:
            w[: rows.d] = given
        if self._free and self._start.b is not None:
            w[-1] = self._start.b
        if self._quadratic and self._prices.exact <= self._tuning.direct * self._prices.one:
            self._solve_directly(w)
            return
        self._choose_rows()
        if not w.any():
            w = self._on_sample(budget)
        self._restore(w)
        self._rescale()

    def _solve_directly(self, w: Vector) -> None:
        """Squared loss: P is a parabola, and one factor its minimum."""
        rows, weights = self._all, np.broadcast_to(self._all.weights, self._all.n)
        bend = rows.scale * weights / rows.loss.gamma
        self._make_factor(rows, bend)
        assert self._factor is not None
        self._factored, self._exact = bend, True
        target = rows.combine(bend * rows.y)
        w = self._factor.solve(target)
        self._cost += 1.0
        self._solved, self._moved = w, True

    def _choose_rows(self) -> None:
        """The sample. A row is drawn by its leverage: few rows have a rare feature, and no sample
        without them knows how H bends there.
        """
        rows, tuning = self._all, self._tuning
        n = rows.n if rows.weights.size == 1 else np.count_nonzero(rows.weights)
        size = max(
            min(tuning.rows_per_feature * rows.size, tuning.most * n),
            tuning.share * n,
            tuning.least_rows,
        )
        if size > 0.5 * n:
            self._exact = True
            return
        score = rows.leverage()
        chance = np.minimum(size * (0.5 / n + 0.5 * score / max(score.sum(), 1e-300)), 1.0)
        if rows.weights.size > 1:
            chance[rows.weights == 0] = 0.0
        index = np.flatnonzero(self._rng.random(rows.n) < chance)
        self._sample = rows.sample(index, chance[index]), index, 1 / chance[index]
        self._cost += 1.0

    def _on_sample(self, budget: Budget) -> Vector:
        """A few steps of Newton's method from w = 0 on the sample alone, and its best b."""
        rows = self._sample[0] if self._sample else self._all
        at = rows.at(np.zeros(rows.size), np.zeros(rows.n))
        if self._free:
            at = self._best_intercept(rows, at)
        if self._sample is None:
            return at.w
        rough = self._tuning.rough * min(1.0, rows.size * self._tuning.rows_per_feature / rows.n)
        for _ in range(self._tuning.sample_steps):
            if budget.expired:
                break
            gradient = rows.gradient(at)
            self._make_factor(rows, at.bend)
            assert self._factor is not None
            way = -self._factor.solve(gradient)
            slope = float(np.dot(gradient, way))
            if -0.5 * slope <= rough * at.value:
                break
            new = rows.move(at, way, rows.margins(way), slope, self._tuning.flat)
            self._cost += rows.nnz / max(self._all.nnz, 1)
            if new is None:
                break
            at = new
        return at.w

    def _rescale(self) -> None:
        """To the best point of the line from 0 through w, if that is far from w."""
        at, rows = self._at, self._all
        assert at is not None
        if not at.w.any():
            return
        slope = float(np.dot(self._gradient, at.w))
        bend = float(np.dot(at.bend, at.z * at.z) + np.dot(rows.ridge, at.w * at.w))
        if 0.5 * slope * slope <= self._tuning.rescale * bend * at.value:
            return
        w, z = at.w, at.z.copy()
        zero = rows.at(np.zeros(rows.size), np.zeros(rows.n))
        first = float(np.dot(zero.slope, z))
        new = rows.move(zero, w, z, first, self._tuning.flat) if first < 0 else zero
        self._arrive(new if new is not None else rows.at(np.zeros(rows.size), np.zeros(rows.n)))

    def _best_intercept(self, rows: Rows, at: At) -> At:
        """The same w with the b that is best for it, found on the stored predictions."""
        way, ones = np.zeros(rows.size), np.ones(rows.n)
        way[-1] = 1.0
        for _ in range(30):
            slope, bend = float(at.slope.sum()), float(at.bend.sum())
            if abs(slope) <= 1e-9 * float(np.abs(at.slope).sum()):
                break
            step = -slope / max(bend, self._ridge[-1])
            new = rows.move(at, step * way, step * ones, slope * step, self._tuning.flat)
            if new is None:
                return rows.at(at.w, at.z)
            at = new
        return at

    # ---- a step -----------------------------------------------------------------------------------

    def _step(self, budget: Budget) -> bool:
        """One step on all rows; False if it brought nothing, that is if rounding has won."""
        at, before = self._at, self._gap()
        assert at is not None
        rows, value, bend = self._all, at.value, at.bend
        for _ in range(self._tuning.attempts):
            way, dz = self._direction(bend, budget)
            slope = float(np.dot(self._gradient, way))
            whole = rows.trial(at, way, dz)
            other = rows.gentler(at, dz, whole, slope)
            if other is None or budget.expired:
                break
            bend = other
        self._moved = True
        new = rows.move(at, way, dz, slope, self._tuning.flat, whole) if slope < 0 else None
        if new is None:
            self._restore(at.w)
            fresh, self._exact = not self._exact, True
            self._factored = None
            return fresh
        self._arrive(new)
        if self._free:
            self._settle_intercept()
        return self._gap() < 0.9 * before or self._at_value < value * (1 - 1e-13)

    @property
    def _at_value(self) -> float:
        assert self._at is not None
        return self._at.value

    def _settle_intercept(self) -> None:
        """The gap is that of the gradient only at the best b: go there when all else would pass."""
        at, g = self._at, self._gradient[-1]
        assert at is not None
        bend = max(float(at.bend.sum()), self._ridge[-1])
        if self._gap() + 0.5 * g * g / bend > self._aim * abs(at.value) or g == 0:
            return
        self._arrive(self._best_intercept(self._all, at))

    def _direction(self, bend: Vector, budget: Budget) -> tuple[Vector, Vector]:
        """About -H^-1 grad P, and X times it; H with this phi''."""
        fresh = self._refresh(bend, budget)
        assert self._factor is not None
        if fresh and not self._factor.jitter:
            way = -self._factor.solve(self._gradient)
            self._cost += 0.5
            return way, self._all.margins(way)
        return self._conjugate_gradients(bend, budget)

    def _refresh(self, bend: Vector, budget: Budget) -> bool:
        """The factor that a step begins with; whether it is one of H itself."""
        rows, tuning = self._all, self._tuning
        if budget.expired and self._factor is not None:
            return False
        if self._exact:
            if self._factored is not None and (self._quadratic or self._prices.steps > 2):
                change = float(np.abs(bend - self._factored).sum())
                if change <= tuning.stale * float(self._factored.sum()):
                    return False
            self._make_factor(rows, bend)
            self._factored = bend.copy()
            return True
        assert self._sample is not None
        sample, index, times = self._sample
        if self._factor is None or self._prices.sample(sample) <= tuning.cheap * self._prices.one:
            self._make_factor(sample, bend[index] * times)
        return False

    def _make_factor(self, rows: Rows, bend: Vector) -> None:
        H = rows.gram(bend)
        H[np.diag_indices_from(H)] += self._ridge
        self._factor, self._factored = Factor(H), None
        share = rows.gram_madds * np.count_nonzero(bend) / max(rows.n, 1)
        self._cost += (share + factor.madds(rows.size)) / (2 * max(self._all.nnz, 1))

    def _conjugate_gradients(self, bend: Vector, budget: Budget) -> tuple[Vector, Vector]:
        """H way = -grad P to `forcing`; more steps than a factor costs, and it is made next time."""
        rows, tuning, factor = self._all, self._tuning, self._factor
        assert factor is not None
        assert self._at is not None
        way, (q, dz) = np.zeros(rows.size), self._vectors
        q[:] = dz[:] = 0.0
        r, step = -self._gradient, 0.0
        p = s = factor.solve(r)
        rs = first = float(np.dot(r, s))
        enough = tuning.enough * self._aim * abs(self._at.value)
        limit = min(max(self._prices.steps, 1.0), tuning.most_steps)
        for k in range(tuning.most_steps):
            Hp = rows.product(bend, p, q, self._ridge, step, dz)
            self._cost += 1.0
            curvature = float(np.dot(p, Hp))
            if not curvature > 0 or not math.isfinite(curvature):
                step = 0.0
                break
            step = rs / curvature
            way += step * p
            r -= step * Hp
            s = factor.solve(r)
            new = float(np.dot(r, s))
            if new <= tuning.forcing**2 * first or self._gap_of(r) <= enough or budget.expired:
                break
            if k + 1 >= limit:
                self._exact, self._factored = True, None
                break
            p = s + (new / rs) * p
            rs = new
        q *= step
        dz += q
        return way, dz

    @cached_property
    def _vectors(self) -> tuple[Vector, Vector]:
        """Room for X p and X way."""
        return np.empty(self._all.n), np.empty(self._all.n)

    # ---- where it is ------------------------------------------------------------------------------

    def _restore(self, w: Vector | None) -> None:
        """To w, with everything computed anew."""
        assert w is not None
        self._solved = None
        self._cost += 0.5
        self._arrive(self._all.at(w, self._all.margins(w)))

    def _arrive(self, at: At) -> None:
        self._at = at
        self._gradient = self._all.gradient(at)
        self._cost += 0.5

    def _gap(self) -> float:
        """P - D at the dual point of w, if b is the best for w; and what b may still bring."""
        assert self._at is not None
        gap = self._gap_of(self._gradient)
        return gap + abs(float(self._gradient[-1] * self._at.w[-1])) if self._free else gap

    def _gap_of(self, gradient: Vector) -> float:
        ridge = self._all.ridge
        if self._free:
            gradient, ridge = gradient[:-1], ridge[:-1]
        return 0.5 * float(np.dot(gradient, gradient / ridge))


class _Prices:
    """What a pass and a factor of all rows cost, in ns."""

    def __init__(self, rows: Rows, tuning: Tuning) -> None:
        self._tuning, self._kind = tuning, int(not rows.sparse)
        self._factor = tuning.factor * factor.madds(rows.size)
        self.one = tuning.number[self._kind] * rows.nnz + tuning.row * rows.n
        self.exact = self.sample(rows)
        #: steps of conjugate gradients that cost as much as a factor
        self.steps = self.exact / self.one

    def sample(self, rows: Rows) -> float:
        """What a factor of these rows costs."""
        return self._tuning.gram[self._kind] * rows.gram_madds + self._factor
