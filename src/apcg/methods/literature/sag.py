"""SAG: the stochastic average gradient method, on the primal of ERM.

Schmidt, Le Roux and Bach, "Minimizing finite sums with the stochastic average gradient", Math.
Program. 162 (2017), Algorithm 1 with the changes of their section 4. For L2, with mu = lambda,

    minimize (1/n) sum_i f_i(w) + (mu/2)|w|^2,   f_i(w) = s_i phi_i(a_i' w)

    draw i;   G <- G + (f_i'(w) - t_i) a_i,   t_i <- f_i'(w);   w <- (1 - alpha mu) w - (alpha/m) G

where f_i' is the derivative in a_i' w, t_i its value when i was last drawn, G = sum_i t_i a_i, and
m the number of samples drawn so far. The step is alpha = 1/(L + mu). L begins at
max_i s_i|a_i|^2/gamma, and is doubled until

    f_i(w - f_i'(w) a_i/L) <= f_i(w) - (f_i'(w)|a_i|)^2/(2 L),

which takes no product with the data. After a step that tested it, it falls by the n-th root of 2.
(The authors let it fall after every step, and do not test where the gradient is below 1e-4. Then
it falls without end once all gradients are that small.)

With an L1 term the step is that of SAGA (Defazio, Bach and Lacoste-Julien, NIPS 2014), which is
unbiased and has a proximal form,

    w <- prox(w - alpha ((f_i'(w) - t_i) a_i + G/n)),   alpha = 1/(3 L),

with the same table and the same search for L.

Samples are drawn with replacement, whatever `sampling` says: in a fixed order, or in permutations,
the old gradients in G act as a delay that makes steps of 1/L unstable. An intercept is one more
feature, the same for all samples and without penalty.

The table is a dual point, x_i = -t_i (times y_i for a loss of margins), with A x = -G. It is
certified with w: that takes one product with the data less than the x of w, and is often better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Point, Start
from ...problems.erm import ERM
from ..base import ALL_STORED, COMPILED_LOSS, ONE_OUTPUT, SMOOTH_LOSS, Budget, Needs, Target
from .stochastic import ELASTIC_NET, Stochastic, StochasticRun, first_point

#: SAGA's step is 1/(3 L): the value of its authors.
SAGA_SHARE = 1 / 3
#: A mean loss so many times P at the start says that the steps are too long.
DIVERGED = 4.0


class SAG(Stochastic):
    """w, the table of derivatives and their sum; SAGA's step if g has an L1 term."""

    def __init__(self, problem: ERM, w: Vector, b: float = 0.0, *, search: bool = True) -> None:
        biased = not problem.interval.a.any()
        share = 1.0 if biased else SAGA_SHARE
        super().__init__(problem, w, b, share=share, biased=biased, search=search)


@dataclass(frozen=True)
class StochasticAverageGradient:
    """SAG for L2, SAGA for elastic net. Without `search`, L is that of the largest sample."""

    search: bool = True
    name: ClassVar[str] = "sag"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, ELASTIC_NET, ALL_STORED)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SAGRun:
        """Begin at w with an empty table; a w that was given gets its table in a first pass."""
        w, b = first_point(problem, at)
        return SAGRun(problem, SAG(problem, w, b, search=self.search), w, b, rng)


class SAGRun(StochasticRun):
    """Passes of SAG. If the losses grow, it begins anew with a larger L."""

    def __init__(
        self, problem: ERM, iterate: Stochastic, w: Vector, b: float, rng: np.random.Generator
    ) -> None:
        super().__init__(problem, iterate, "uniform", rng)
        self._first = w, b
        self._warm = bool(w.any())
        z = problem.samples.times(w) + b if self._warm else np.full(problem.n_samples, b)
        self._most = DIVERGED * problem.primal_from(w, z)
        if problem.interval.a.any():
            self.notes.append("an L1 term: the step is that of SAGA")

    def point(self) -> Point:
        """w, and the x of the table once all samples were seen: A x is G, and known."""
        p, known = self.problem, self.iterate.dual
        if known is None:
            return super().point()
        x, Ax = known
        return Point(w=self.iterate.w, x=x, b=self.iterate.b, v=Ax / (p.alpha * p.n))

    def _pass(self, budget: Budget) -> bool:
        if self._warm:
            self._warm = False
            self.iterate.snapshot()
            return not budget.expired
        finished = super()._pass(budget)
        mean = self.iterate.take_losses() / self._sweep.steps
        if not mean <= self._most and math.isfinite(self._most):
            longest = 4 * self.iterate.L
            self.iterate.back_to(*self._first, least=longest)
            self.restarts += 1
            self.notes.append(f"the losses grew: from the start again, with L = {longest:.3g}")
        return finished
