"""The losses at predictions z: their sum, slopes and curvatures; the best intercept.

They also know the shapes: predictions and dual points are vectors, with the outputs of a row one
after the other, and w may be in the order of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.data.matrix import inner
from ..._kernels.newton import objective
from ...problems.erm import ERM

#: b is best when the slope in b is this part of the sum of its terms' sizes.
_BALANCE = 1e-13


@dataclass(eq=False)
class Evaluated:
    """Predictions z with the mean loss, and s_i phi_i'/n and s_i phi_i''/n."""

    z: Vector
    value: float
    slope: Vector
    bend: Vector


class Losses:
    """(1/n) sum_i s_i phi_i(z_i); entry j of w is of feature members[j], if that is given."""

    def __init__(self, problem: ERM, members: Index | None = None) -> None:
        self.problem, self.loss, self.K = problem, problem.loss, problem.K
        self.members = members
        #: how many outputs a column of X has
        self.outputs = problem.K
        self.y, self.weights = problem.y, problem.weights
        if problem.K > 1:  # a sum over outputs; those of a row follow one another
            self.loss, self.y = problem.loss.loss, problem.y.reshape(-1)
            if problem.weights.size > 1:
                self.weights = np.repeat(problem.weights, problem.K)
        loss = self.loss
        self._theta = np.array(loss.theta)
        #: phi'' is constant: the squared loss
        self.constant = loss.eta == loss.gamma
        self.most_bend = 1 / (loss.gamma * problem.n)

    def at(self, z: Vector) -> Evaluated:
        """At predictions z."""
        return self.along(z, z, 0.0)

    def along(self, z: Vector, way: Vector, t: float) -> Evaluated:
        """At z + t way."""
        loss = self.loss
        at, slope, bend = (np.empty(z.size) for _ in range(3))
        value, _, _ = objective.evaluate(
            loss.kernel, self._theta, z, way, t, self.y, loss.margin, self.weights,
            1 / self.problem.n, at, slope, bend,
        )  # fmt: skip
        return Evaluated(at, value, slope, bend)

    # ---- shapes ---------------------------------------------------------------------------------

    def start(self, w: Any, b: Any) -> tuple[Any, Any]:
        """w and b of a run from those of a problem, or zeros."""
        p, K = self.problem, self.K
        if w is None:
            w = np.zeros(p.d) if K == 1 else np.zeros((p.d, K))
        else:
            w = w.copy() if self.members is None else w[self.members]
        if K == 1:
            return w, float(b or 0.0)
        return w, np.zeros(K) if b is None else np.array(b, float)

    def rows(self, flat: Vector) -> Any:
        """A number for each row, or K of them."""
        return flat if self.K == 1 else flat.reshape(-1, self.K)

    def own(self, w: Any) -> Any:
        """A copy of w by feature."""
        if self.members is None:
            return w.copy()
        made = np.empty_like(w)
        made[self.members] = w
        return made

    def _ordered(self, v: Any) -> Any:
        return v if self.members is None else v[self.members]

    def predict(self, w: Any, b: Any) -> Vector:
        """X w + b"""
        w = w if self.members is None else self.own(w)
        return np.asarray(self.problem.samples.times(w) + b).reshape(-1)

    def spread(self, b: Any) -> Vector:
        """The predictions of w = 0."""
        return np.tile(np.atleast_1d(np.asarray(b, float)), self.problem.n_samples)

    def shifted(self, z: Any, b: Any) -> Vector:
        """Predictions z, a number or K of them for each row, with b added."""
        return np.asarray(z + b).reshape(-1)

    def descent(self, slope: Vector) -> Any:
        """Minus the gradient by w of losses with these slopes."""
        return self._ordered(-self.problem.samples.adjoint(self.rows(slope)))

    def v_of(self, x: Vector, s: float) -> tuple[Any, Any]:
        """v of the dual point x, and with it minus the gradient where x is s times that of w."""
        v = self.problem.v_of(self.rows(x))
        return v, self._ordered(v * (self.problem.alpha / s))

    # ---- curvatures -----------------------------------------------------------------------------

    def bend(self, seen: Evaluated, floor: float, steeper: Vector | None) -> Any:
        """The curvatures of a model: not below a part of the most there is, nor `steeper`."""
        if self.constant:
            return seen.bend
        bend = np.maximum(seen.bend, floor * self.most_bend * self.problem.weights)
        return np.asarray(bend if steeper is None else np.maximum(bend, steeper))

    @staticmethod
    def secant(seen: Evaluated, new: Evaluated, way: Vector) -> Vector | None:
        """The curvature of each row on average along a step that went too far.

        A loss with a kink in its slope, or a tail, has more of it further on.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            along = (new.slope - seen.slope) / way
        return np.where(np.isfinite(along), along, 0.0)

    # ---- the best intercept ---------------------------------------------------------------------

    def settle(self, seen: Evaluated) -> tuple[Evaluated, Any]:
        """The same w with the intercept that is best, and how much it changed."""
        if self.constant:  # squares: the first step is the last, up to rounding
            off = self.rows(seen.slope).sum(axis=0) / self.rows(seen.bend).sum(axis=0)
            return self.at(seen.z - self.spread(off)), -off
        if abs(float(seen.slope.sum())) <= _BALANCE * float(np.abs(seen.slope).sum()):
            return seen, 0.0
        moved = self.problem.best_shift(seen.z)
        return self.along(seen.z, np.ones(seen.z.size), moved), moved

    def dual_of(self, slope: Vector) -> Vector:
        """The dual point x of these slopes."""
        x = -self.problem.n * slope
        return np.asarray(self.y * x if self.loss.margin else x)

    def dual_value(self, x: Vector) -> float:
        """D(x) without its part of g*."""
        total = -float(self.loss.arrays.total_conjugate(x, self.weights))
        if not self.loss.margin:
            total += inner(self.y, x)
        return total / self.problem.n
