"""The softmax at predictions z: the mean loss, slopes, probabilities; the best intercepts.

Entry j K + k of w is that of feature j and class k. Predictions, slopes and dual points are
vectors with the K numbers of a row one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._base.validation import Matrix, Vector
from ...._kernels.losses import softmax
from ....losses.shift import imbalance
from ..losses_at import Evaluated, Losses

#: Newton's steps for the intercepts, and halvings of one
_STEPS, _HALVINGS = 30, 20


@dataclass(frozen=True, eq=False)
class ClassBend:
    """The curvatures of a model: probabilities, and what is added to each."""

    pi: Vector
    floor: float


class ClassLosses(Losses):
    """(1/n) sum_i s_i phi_i(z_i); w is a vector, and `bend` of `Evaluated` is pi."""

    constant = False
    #: every class has columns of its own
    outputs = 1
    members = None
    #: the most curvature there is, of a row with weight 1
    most_bend = 0.5

    def __init__(self, problem: Any) -> None:
        self.problem, self.K = problem, problem.K
        self.each = np.broadcast_to(problem.weights, problem.n_samples) / problem.n

    # ---- shapes ---------------------------------------------------------------------------------

    def start(self, w: Any, b: Any) -> tuple[Vector, Vector]:
        """w and b of a run from those of a problem, or zeros and the b that is best there."""
        p, given = self.problem, w is not None
        b = np.zeros(self.K) if b is None else np.array(b, float)
        if given:
            return np.array(w).reshape(-1), b
        if p.intercept and not b.any():
            share = np.bincount(p.y, self.each, minlength=self.K)
            b = np.log(share) - np.log(share).mean()
        return np.zeros(p.d * self.K), b

    def own(self, w: Vector) -> Matrix:
        """A copy of w by feature and class."""
        return np.array(self.rows(w))

    def predict(self, w: Vector, b: Vector) -> Vector:
        """X W + b"""
        return super().predict(self.rows(w), b)

    def descent(self, slope: Vector) -> Vector:
        """As a vector."""
        return np.asarray(super().descent(slope)).reshape(-1)

    def v_of(self, x: Vector, s: float) -> tuple[Matrix, Vector]:
        """The second one as a vector."""
        v, descent = super().v_of(x, s)
        return v, descent.reshape(-1)

    # ---- losses ---------------------------------------------------------------------------------

    def along(self, z: Vector, way: Vector, t: float) -> Evaluated:
        """At z + t way."""
        p, rows = self.problem, self.rows
        at, slope, pi = (np.empty(z.size) for _ in range(3))
        value = softmax.evaluate(
            rows(z), rows(way), t, p.y, p.weights, 1 / p.n, rows(at), rows(slope), rows(pi)
        )
        return Evaluated(at, value, slope, pi)

    def bend(self, seen: Evaluated, floor: float, steeper: Vector | None) -> ClassBend:
        """The curvatures of a model: a part of the most there is is added."""
        return ClassBend(seen.bend, floor * self.most_bend)

    @staticmethod
    def secant(seen: Evaluated, new: Evaluated, way: Vector) -> Vector | None:
        """Not for the softmax, whose curvatures are smooth."""
        return None

    def bend_of_intercepts(self, pi: Matrix, floor: float = 0.0) -> Matrix:
        """Second derivatives by b: regular, although predictions may all change alike."""
        total = self.each @ pi
        H = np.diag(total + floor * float(self.each.sum())) - pi.T @ (self.each[:, None] * pi)
        scale = float(np.trace(H)) / self.K or 1.0
        H += scale * (np.full((self.K, self.K), 1 / self.K) + 1e-14 * np.eye(self.K))
        return np.asarray(H)

    def settle(self, seen: Evaluated) -> tuple[Evaluated, Vector]:
        """The same W with the intercepts that are best, and how much they changed."""
        moved = np.zeros(self.K)
        ones = np.ones((self.problem.n_samples, 1))
        for _ in range(_STEPS):
            if imbalance(self.rows(seen.slope)) <= 0.5:
                break
            slope = self.rows(seen.slope).sum(axis=0)
            way = -np.linalg.solve(self.bend_of_intercepts(self.rows(seen.bend)), slope)
            way -= way.mean()
            t, far = 1.0, (ones * way).reshape(-1)
            for _ in range(_HALVINGS):
                trial = self.along(seen.z, far, t)
                if trial.value <= seen.value + 1e-15 * abs(seen.value):
                    break
                t *= 0.5
            else:
                break
            nearer = np.abs(self.rows(trial.slope).sum(axis=0)).max() < np.abs(slope).max()
            if not (nearer or trial.value < seen.value):
                break
            seen, moved = trial, moved + t * way
        return seen, moved

    def dual_of(self, slope: Vector) -> Vector:
        """The dual point x of these slopes."""
        return np.asarray(-self.problem.n * slope)

    def dual_value(self, x: Vector) -> float:
        """D(x) without its part of g*."""
        return -float(self.problem.conjugate_total(self.rows(x))) / float(self.problem.n)
