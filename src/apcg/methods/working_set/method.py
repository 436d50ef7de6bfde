"""The method of working sets: L1, elastic net, bounds, with a smooth loss, in the primal.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + alpha sum_j (a_j |w_j| + (b_j/2) w_j^2)

A round takes the gradient, chooses the columns W that may move, and minimises a model of P over
them: for the squared loss P itself, for others its second order expansion, with a search along the
line. Few columns matter: those of the support, and those whose slope is near a_j.

The way to small alpha leads through larger ones, theta alpha with theta falling to 1: the sets stay
small, and each answer is a good start for the next.

An intercept is eliminated: the model's columns are centred by their means, weighted as the rows
are, and after each step b is the best there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._validation import Index, Vector
from ...erm import ERM
from ...points import Certificate, Point, Start
from ..base import SEPARABLE, SMOOTH_LOSS, Budget, Needs, Target, Work
from .fit import Losses, Seen
from .gram import GramModel
from .penalty import Penalty
from .tuning import Tuning


@dataclass(frozen=True)
class WorkingSet:
    """The method "working_set"."""

    tuning: Tuning = Tuning()
    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (SMOOTH_LOSS, SEPARABLE)
    side: ClassVar[str] = "primal"

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> WorkingSetRun:
        """Begin at at.w, or at 0 with a large alpha."""
        return WorkingSetRun(problem, at, target, self.tuning)


class WorkingSetRun:
    """The method at work."""

    side = "primal"

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: Tuning) -> None:
        self.problem, self.tuning, self._tol = problem, tuning, target.tol
        self._penalty = Penalty.of(problem)
        self._losses = Losses(problem)
        self._w = self._penalty.start(problem.d) if at.w is None else problem.interval.clip(at.w)
        self._b = at.b or 0.0
        self._cold = at.w is None
        self._seen: Seen | None = None
        self._theta, self._floor = 1.0, tuning.floor
        self._size = tuning.first
        self._cost, self._counted = 0.0, 0
        self._slope = np.empty(0)
        self.stuck = False

    # ---- the protocol ---------------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Rounds until the gap is predicted to pass, or the budget is spent."""
        first = self._cost
        if self._seen is None:
            self._begin()
        while True:
            gap, value = self._gap()
            if self._theta == 1 and gap <= self._tol * abs(value):
                break
            if budget.expired or self._cost - first >= budget.passes:
                break
            if not self._round(gap, value):
                self.stuck = True
                break
        passes = max(math.ceil(self._cost) - self._counted, 1)
        self._counted += passes
        return Work(passes)

    def point(self) -> Point:
        """w, and x as near to it as is feasible."""
        return Point(w=self._w.copy(), x=self._dual, b=self._b)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: compute anew, and aim lower."""
        if certificate.relative <= self._tol or self._seen is None:
            return
        self._arrive(self._predict(self._w))

    # ---- where it is ----------------------------------------------------------------------------

    def _predict(self, w: Vector) -> Vector:
        self._cost += 0.5
        return self.problem.samples.tdot(w) + self._b

    def _begin(self) -> None:
        start = np.full(self.problem.n_samples, self._b) if not self._w.any() else None
        self._arrive(self._predict(self._w) if start is None else start)
        most = self._penalty.most(self._slope)
        if self._cold and not self._penalty.bounded:
            self._theta = max(1.0, most / self._falls)

    @property
    def _falls(self) -> float:
        return self.tuning.stage[not self._losses.constant]

    def _arrive(self, z: Vector, seen: Seen | None = None) -> None:
        """To predictions z: the losses there, at the best b, and minus their gradient."""
        seen = self._losses.at(z) if seen is None else seen
        if self.problem.intercept:
            seen, moved = self._losses.settle(seen)
            self._b += moved
        self._seen = seen
        self._slope = -self.problem.samples.dot(seen.slope)
        self._cost += 0.5

    def _gap(self) -> tuple[float, float]:
        """P - D and P at theta; theta falls where that is rough enough."""
        while True:
            gap, value = self._gap_at(self._theta)
            if self._theta == 1 or gap > self.tuning.rough * abs(value):
                return gap, value
            self._theta = max(1.0, self._theta / self._falls)

    def _gap_at(self, theta: float) -> tuple[float, float]:
        """With the better of two dual points: scaled to be feasible, or as it is if b_j > 0."""
        assert self._seen is not None
        penalty, losses = self._penalty.times(theta), self._losses
        value = self._seen.value + penalty.value(self._w)
        x = losses.dual_of(self._seen.slope)
        scale = 1 / max(1.0, penalty.most(self._slope) * (1 + 1e-12))
        if penalty.bounded or not penalty.least:
            self._dual = None
            g = self.problem.g
            v = self._slope / self.problem.alpha
            s = 1 / max(1.0, g.excess(v) * (1 + 1e-12))
            return value - losses.dual_value(s * x) + self.problem.alpha * g.conjugate(s * v), value
        best, self._dual = losses.dual_value(scale * x), scale * x
        if penalty.ridged:
            over = np.maximum(np.abs(self._slope) - penalty.a, 0.0)
            whole = losses.dual_value(x) - 0.5 * float(np.sum(over * over / penalty.b))
            if whole > best:
                best, self._dual = whole, x
        return value - best, value

    # ---- a round --------------------------------------------------------------------------------

    def _round(self, gap: float, value: float) -> bool:
        """Choose a set, and minimise over it; False if nothing moved."""
        W = self._choose()
        losses, penalty = self._losses, self._penalty.times(self._theta).on(W)
        X = self._columns(W)
        enough = max(self.tuning.inner * gap, self.tuning.enough * self._tol * abs(value))
        steps = 1 if losses.constant or self._theta > 1 else self.tuning.steps
        moved = False
        for k in range(steps):
            assert self._seen is not None
            slope = self._slope[W] if k == 0 else -(self._seen.slope @ X)
            if not self._step(W, X, slope, penalty, enough):
                break
            moved = True
        if moved:
            assert self._seen is not None
            self._slope = -self.problem.samples.dot(self._seen.slope)
            self._cost += 0.5
        return moved

    def _choose(self) -> Index:
        """The support and the columns that are nearest to entering it."""
        penalty = self._penalty.times(self._theta)
        with np.errstate(divide="ignore"):
            score = np.abs(self._slope) / penalty.a
        inside = (self._w != 0) | (penalty.a == 0)
        if penalty.bounded:
            inside |= penalty.violations(self._w, self._slope) > 0
        support = int(np.count_nonzero(inside))
        outside = int(np.count_nonzero(score[~inside] > 1))
        size = max(2 * support, support + min(outside, self._size), self.tuning.first)
        self._size = size = min(size, self.problem.d)
        score[inside] = np.inf
        if size == self.problem.d:
            return np.arange(size)
        return np.sort(np.argpartition(-score, size - 1)[:size])

    def _columns(self, W: Index) -> Vector:
        """X_W, dense."""
        X = self.problem.samples.stored
        made = X[:, W]
        self._cost += 0.5 * W.size / self.problem.d
        return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)

    def _step(self, W: Index, X: Vector, slope: Vector, penalty: Penalty, enough: float) -> bool:
        """Minimise a model over the columns X of W, and go there as far as P falls."""
        seen, losses, tuning = self._seen, self._losses, self.tuning
        assert seen is not None
        bend = seen.bend
        if not losses.constant:
            weights = np.broadcast_to(self.problem.weights, bend.shape)
            bend = np.maximum(bend, self._floor * losses.most_bend * weights)
        mean = None
        if self.problem.intercept:
            mean = bend @ X / float(bend.sum())
            X = X - mean
        A = np.sqrt(bend)[:, None] * X
        model = GramModel(A.T @ A, slope, self._w[W], penalty, tuning)
        self._cost += 0.25 * W.size**2 / self.problem.d
        start = penalty.violations(model.v, slope)
        target = 0.0 if losses.constant else tuning.forcing * float(start.max(initial=0.0))
        model.solve(target, enough)
        step = model.v - self._w[W]
        if not step.any():
            return False
        way = X @ step
        if mean is not None:
            way_b = -float(np.dot(mean, step))
        else:
            way_b = 0.0
        return self._move(W, model.v, step, way, way_b, penalty)

    def _move(
        self, W: Index, v: Vector, step: Vector, way: Vector, way_b: float, penalty: Penalty
    ) -> bool:
        """Along the line to v, as far as P falls by a part of what the model promises."""
        seen, losses, tuning = self._seen, self._losses, self.tuning
        assert seen is not None
        w, before = self._w[W], penalty.value(self._w[W])
        promised = float(np.dot(seen.slope, way)) + penalty.value(v) - before
        slack = 1e-14 * abs(seen.value)
        t, new_w = 1.0, v
        for _ in range(tuning.trials):
            new = losses.along(seen.z, way, t)[0]
            change = new.value + penalty.value(new_w) - seen.value - before
            if change <= tuning.armijo * t * promised + slack:
                break
            t *= 0.5
            new_w = w + t * step
        else:
            self._floor = min(1.0, 100 * self._floor)
            return False
        self._floor = (
            min(1.0, tuning.floor_up * self._floor) if t < 1 else tuning.floor_down * self._floor
        )
        self._w[W] = new_w
        self._b += t * way_b
        if self.problem.intercept and not losses.constant:
            new, moved = losses.settle(new)
            self._b += moved
        self._seen = new
        return True
