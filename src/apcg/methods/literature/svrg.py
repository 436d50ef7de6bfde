"""Prox-SVRG: stochastic gradients with a snapshot to reduce their variance, on the primal of ERM.

Johnson and Zhang, NIPS 2013; Xiao and Zhang, SIAM J. Optim. 24 (2014), for the proximal form:

    minimize (1/n) sum_i f_i(w) + lambda g(w),   f_i(w) = s_i phi_i(a_i' w)

    a stage:   v = (1/n) sum_i f_i'(v_w) a_i at the snapshot v_w = w
               m times:   draw i;   w <- prox(w - eta ((f_i'(w) - f_i'(v_w)) a_i + v)),

where f_i' is the derivative in a_i' w and the prox that of eta lambda g. m = 2 n and eta = 0.1/L
with L = max_i s_i|a_i|^2/gamma are what the authors of the proximal form took in their experiments.
The next snapshot is the last w (option I of Johnson and Zhang, with which they made theirs; the
analysis of Xiao and Zhang is for the mean of the w of a stage).

The derivatives at the snapshot are kept, one number a sample. So a stage takes three passes: one
for the snapshot, two for the steps. At a snapshot z = X w and A x are known, with x of the table,
and a look costs no product. An intercept is one more feature, the same for all and without penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ..base import ALL_STORED, COMPILED_LOSS, ONE_OUTPUT, SMOOTH_LOSS, Budget, Needs, Target
from .stochastic import ELASTIC_NET, Stochastic, StochasticRun, first_point


class SVRG(Stochastic):
    """w, the derivatives at the snapshot and their sum."""

    def __init__(self, problem: ERM, w: Vector, b: float = 0.0, *, step: float = 0.1) -> None:
        super().__init__(problem, w, b, share=step, learns=False)


@dataclass(frozen=True)
class ProxSVRG:
    """Prox-SVRG with steps of `step`/L and `inner` passes of them to a snapshot."""

    step: float = 0.1
    inner: int = 2
    name: ClassVar[str] = "svrg"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, ELASTIC_NET, ALL_STORED)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SVRGRun:
        """Begin at w."""
        iterate = SVRG(problem, *first_point(problem, at), step=self.step)
        return SVRGRun(problem, iterate, self.inner, target.sampling, rng)


class SVRGRun(StochasticRun):
    """Stages, a pass at a time. Looks are wanted right after a snapshot, where they cost little."""

    iterate: SVRG

    def __init__(
        self,
        problem: ERM,
        iterate: SVRG,
        inner: int,
        sampling: str,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(problem, iterate, sampling, rng)
        self._inner = inner
        self._remaining = 0  # passes of steps to the next snapshot
        self._snapshot: Point | None = None

    def _until_look(self) -> int:
        stage = 1 + self._inner
        to_snapshot = self._remaining + 1
        rest = max(super()._until_look() - to_snapshot, 0)
        return to_snapshot + -(-rest // stage) * stage

    def _pass(self, budget: Budget) -> bool:
        self._snapshot = None
        if self._remaining:
            self._remaining -= 1
            return super()._pass(budget)
        p, w, b = self.problem, self.iterate.w, self.iterate.b
        z, x, Ax = self.iterate.snapshot()
        self._snapshot = Point(w, x, b, z, Ax / (p.alpha * p.n))
        self._remaining = self._inner
        return not budget.expired

    def point(self) -> Point:
        """The present answer; at a snapshot with its x and all sums."""
        return super().point() if self._snapshot is None else self._snapshot

    def seen(self, certificate: Certificate) -> None:
        """Nothing drifts: each snapshot computes all anew."""
