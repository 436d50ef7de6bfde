"""Newton's method for the softmax on dense rows of few features, many of them.

    P(W) = (1/n) sum_i s_i phi_i(W'a_i) + (1/2) sum_jk ridge_j W_jk^2

1. Damped steps with a Cholesky factor on a sample of the rows, then on a larger one. Rows of large
   leverage are in each: no sample without them knows how P bends there.
2. L-BFGS on all rows, with the factor of the sample in the place of its first matrix: unit steps,
   one fused pass each (P, probabilities, gradient).
3. Where the gap falls too slowly for that, the Hessian of all rows is factored, and 2 goes on from
   it. With few rows that is where it begins.

The stop needs no dual point: with x_i = s_i (e - pi_i) Fenchel's equality makes the gap
sum_jk G_jk^2/(2 ridge_j), G the gradient. With an intercept that holds at the b that is best for W.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Matrix, Vector
from ...certify.certificate import certify_at_slopes
from ...certify.points import Certificate, Point
from ...losses.base import SOFTMAX
from ...losses.shift import imbalance
from ...problems.erm import ERM
from ..base import Budget, Report, Stepping, Target, Work
from .softmax_rows import LimitedMemory, SoftmaxPoint, SoftmaxRows, rows_of

#: unknowns, at most
MOST = 1500
#: at once if W has so many numbers to choose, or this many with so many rows for each
FEW = 100
SOME = 300
TALL = 400.0
#: rows of the samples for each number that W is free to choose; each at most this part of all
SAMPLES = (25.0, 100.0)
LARGEST = 0.25
#: a row is heavy if its leverage is so many times the mean; at most this part of the rows is
#: (without: 30 in place of 16.5 ms on diamonds, 1/n)
HEAVY = 5.0
HEAVY_MOST = 0.02
#: one row in so many gives the covariance that leverages are of; it gets this ridge
THIN = 8
LITTLE = 1e-4
#: a stage on a sample ends after a whole step that promises less than this part of P, and at
#: least so many steps (one on the last: 37 ms in place of 9); at most so many
ROUGH = 1e-2
LEAST_STEPS = 2
MOST_STEPS = 15
#: pairs that L-BFGS remembers
MEMORY = 10
#: the Hessian of all rows is made if the gap falls by less than this factor a step, or if more than
#: so many steps are left, with that many more for each number of W over PER_STEP: its cost
SLOW = 0.5
PATIENT = 2.5
PER_STEP = 25.0
#: or after so many steps that are not whole ones: the pairs know where P bends, the factor not
SHORT = 3
SHORT_SOME = 2
#: Armijo's part of the slope, and the least step
SHARE = 1e-4
SHORTEST = 1e-8
#: ns of a multiply-add of a pass and of the Hessian, of an exp, of a step besides
NUMBER = 0.1
ENTRY = 0.05
EXPONENTIAL = 6.0
STEP = 100_000.0


#: A slope that can change P by less than this part of it is rounding.
_ROUNDING = 1e-13


def applies(problem: ERM) -> bool:
    """Whether it is for this problem: softmax, a ridge on each feature, X dense, in memory."""
    X, unknowns = problem.samples, (problem.d + problem.intercept) * problem.K
    known = problem.loss.kind == SOFTMAX and problem.g.is_quadratic and problem.dual_form
    stored = X.in_memory and not X.sparse and not X.constant
    return bool(known and stored and unknowns <= MOST)


def at_once(problem: ERM) -> bool:
    """Whether sweeps over blocks would take longer: many rows for each number of W, or few of W."""
    free = (problem.d + problem.intercept) * (problem.K - 1)
    few = free <= FEW or (free <= SOME and problem.n >= TALL * free)
    return few and applies(problem)


def cost(problem: ERM) -> float:
    """Nanoseconds of a run."""
    n, D, K = problem.n_samples, problem.d + problem.intercept, problem.K
    one = n * K * (2 * NUMBER * D + EXPONENTIAL)
    free = D * (K - 1)
    shares = [min(size * free / n, LARGEST) for size in SAMPLES]
    factors = 1.0 + 4 * sum(shares) if n * LARGEST > SAMPLES[0] * free else 8.0
    hessian = ENTRY * n * D**2 / 2 * K * (K - 1) / 2 + 0.15 * (D * K) ** 3 / 6
    return 6 * one + factors * hessian + 15 * STEP


class SoftmaxRun(Stepping):
    """Newton's method at work on the rows of a problem."""

    def __init__(
        self,
        problem: ERM,
        w: Matrix | None,
        b: Vector,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self._rng = problem, rng
        self._aim, self._rows, self._cold = target.tol, rows_of(problem), w is None
        W = np.zeros((problem.d, problem.K)) if w is None else w
        self._W = np.vstack([W, b[None]]) if problem.intercept else np.array(W)
        self._now: SoftmaxPoint | None = None
        self._memory: LimitedMemory | None = None
        self._whole = False  # whether the factor is one of all rows, and fresh
        self._settled = not problem.intercept  # whether b is best
        self._short = 0  # steps since then that were not whole
        self._idle, self._cost = 0, 0.0

    # ---- the protocol ---------------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Go on until the gap is predicted to pass, or the budget is spent, or rounding has won."""
        first, moved = self._cost, False
        if self._now is None:
            self._begin(budget)
            moved = self._cold
        while not budget.expired:
            if self._cost - first >= budget.passes and moved:
                break
            if not budget.fixed and self._passes():
                break
            moved = True
            if not self._step():
                self._idle += 1
                break
            self._idle = 0
        return self._since(self._cost)

    @property
    def report(self) -> Report:
        """It is stuck if steps bring nothing: rounding has won."""
        return Report(knows_its_gap=True, stuck=self._idle > 1)

    def point(self) -> Point | Certificate:
        """The iterate; with its certificate, if b is best."""
        d = self.problem.d
        if self._now is None:
            b = self._W[d] if self.problem.intercept else 0.0
            return Point(w=self._W[:d].copy(), b=b)
        at = self._at
        w, b = at.W[:d].copy(), at.W[d].copy() if self.problem.intercept else 0.0
        if not self._settled:
            return Point(w=w, b=b)
        gap = self._rows.gap(at.gradient)
        return certify_at_slopes(self.problem, w, b, at.x.copy(), at.value, gap)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: aim lower, if it should have."""
        if self._now is not None and self._passes():
            self._aim = 0.1 * min(self._aim, max(certificate.relative, 0.0))

    # ---- the start ------------------------------------------------------------------------------

    def _begin(self, budget: Budget) -> None:
        """Steps on samples, from W = 0; from a W that is given, a factor only.

        b = 0 too: where all pi are equal P bends most, and the first step is not too long.
        """
        rows, samples = self._rows, self._samples()
        for sample in samples if self._cold else samples[-1:]:
            if not budget.expired:
                self._on_sample(sample, budget)
        self._arrive(rows.at(self._W))
        if self._memory is None:
            self._refactor()

    def _samples(self) -> list[SoftmaxRows]:
        """Of growing size, each with the heavy rows; none if the rows are few."""
        rows = self._rows
        free, n = rows.D * (self.problem.K - 1), rows.count
        sizes = [int(size * free) for size in SAMPLES if size * free <= LARGEST * n]
        if not sizes:
            return []
        score, draw = rows.leverages(THIN, LITTLE), self._rng.random(n)
        self._cost += 1.0
        if score is None:
            return []
        most = max(int(HEAVY_MOST * n), 1)
        heavy = score > max(HEAVY, np.partition(score, -most)[-most])
        made = []
        for size in sizes:
            chance = (0.5 * size / n) * (1.0 + score)
            chance[heavy] = 1.0
            index = np.flatnonzero(draw < chance)
            made.append(rows.sample(index, np.minimum(chance[index], 1.0)))
        return made

    def _on_sample(self, rows: SoftmaxRows, budget: Budget) -> None:
        """Damped steps of Newton's method; the factor of the last is kept."""
        share = rows.count / self._rows.count
        at, memory, short = rows.at(self._W), None, 0
        for step in range(MOST_STEPS):
            if memory is None:
                self._memory = memory = LimitedMemory(rows.factor(at.x), MEMORY)
                self._cost += share * (1 + self._hessian_passes)
                short = 0
            if budget.expired or not self._cold:
                break
            way = -memory.solve(at.gradient)
            slope = float(np.vdot(at.gradient, way))
            new, whole = self._search(rows, at, way, slope)
            if new is None:
                break
            memory.add(new.W - at.W, new.gradient - at.gradient)
            at, short = new, 0 if whole else short + 1
            if whole and step + 1 >= LEAST_STEPS and -0.5 * slope <= ROUGH * at.value:
                break
            if whole or short > SHORT_SOME:
                memory = None
        self._W = at.W

    # ---- a step ---------------------------------------------------------------------------------

    def _step(self) -> bool:
        """One step; False if it brought nothing, that is if rounding has won."""
        rows, at, memory = self._rows, self._at, self._memory
        assert memory is not None
        before = rows.gap(at.gradient)
        if not self._settled and before <= self._aim * abs(at.value):
            return self._settle()
        way = -memory.solve(at.gradient)
        slope = float(np.vdot(at.gradient, way))
        new, whole = self._search(rows, at, way, slope) if slope < 0 else (None, False)
        if new is None:
            return self._refactor()
        memory.add(new.W - at.W, new.gradient - at.gradient)
        self._arrive(new, at)
        fresh, self._whole = self._whole, False
        gap = rows.gap(new.gradient)
        self._short = 0 if whole else self._short + 1
        slow = self._is_slow(before, gap) if whole else self._short > SHORT
        if gap > self._aim * abs(new.value) and slow:
            self._refactor()
        fell = new.value < at.value * (1 - 1e-13) or gap < 0.9 * before
        return fell or not (fresh and whole)

    def _is_slow(self, before: float, gap: float) -> bool:
        """Whether the Hessian of all rows is worth its time, by how the gap fell."""
        if gap <= 0:  # as rounding may have it
            return False
        if not gap < SLOW * before:
            return True
        left = math.log(max(gap / (max(self._aim, 1e-15) * abs(self._at.value)), 1.0))
        patience = PATIENT + self._at.W.size / PER_STEP
        return left / math.log(before / gap) > patience

    def _refactor(self) -> bool:
        """The Hessian of all rows is factored here; False if it was already."""
        if self._whole:
            return False
        self._memory = LimitedMemory(self._rows.factor(self._at.x), MEMORY)
        self._whole, self._short = True, 0
        self._cost += self._hessian_passes
        return True

    def _search(
        self, rows: SoftmaxRows, at: SoftmaxPoint, way: Matrix, slope: float
    ) -> tuple[SoftmaxPoint | None, bool]:
        """A point along `way` where P has fallen; and whether it is the whole step."""
        t = 1.0
        slack = _ROUNDING * abs(at.value) if -slope <= _ROUNDING * abs(at.value) else 0.0
        while t > SHORTEST:
            new = rows.at(at.W + t * way)
            self._cost += rows.count / self._rows.count
            if new.value <= at.value + SHARE * t * slope + slack:
                return new, t == 1.0
            rows.free(new)
            after = float(np.vdot(new.gradient, way))  # the slope is about linear in t
            part = slope / (slope - after) if after > 0 else 0.5
            t *= min(max(part, 0.1), 0.5)
        return None, False

    def _settle(self) -> bool:
        """To the b that is best for W: the gap is that of the gradient only there."""
        rows, at = self._rows, self._at
        for _ in range(20):
            W = at.W.copy()
            W[-1] += rows.best_shift(at)
            new = rows.at(W)
            self._cost += 1.0
            self._arrive(new, at)
            at = new
            if imbalance(at.x) <= 1:
                self._settled = True
                return True
        return False

    def _arrive(self, new: SoftmaxPoint, old: SoftmaxPoint | None = None) -> None:
        self._now, self._settled = new, not self.problem.intercept
        if old is not None:
            self._rows.free(old)
        else:
            self._cost += 1.0

    @property
    def _at(self) -> SoftmaxPoint:
        assert self._now is not None
        return self._now

    @property
    def _hessian_passes(self) -> float:
        """What a Hessian costs, in passes of its rows."""
        return float(self._W.size / (4 * PATIENT))

    def _passes(self) -> bool:
        """Whether the gap passes."""
        gap = self._rows.gap(self._at.gradient)
        return self._settled and gap <= self._aim * abs(self._at.value)
