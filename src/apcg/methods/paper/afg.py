"""AFG: Nesterov's accelerated full gradient method with a line search, on the primal of ERM.

    minimize P(w) = f(w) + Psi(w),   f(w) = (1/n) sum_i s_i phi_i(A_i' w) + the square of lambda g

Psi is lambda g without that square. It takes any g with a prox, a penalty of the user's too.

It is Algorithm 1 of the paper with one block (Nesterov's book, section 2.2), in which a line search
takes the place of the constant L: gamma and mu are here those of the book, not divided by L.

    L alpha^2 = (1 - alpha) gamma + alpha mu,   gamma+ = L alpha^2,   beta = alpha mu/gamma+
    y  = (alpha gamma z + gamma+ w)/(alpha gamma + gamma+)
    z+ = argmin_z (alpha L/2)|z - (1 - beta) z - beta y|^2 + <grad f(y), z> + Psi(z)
    w+ = y + alpha (z+ - (1 - beta) z - beta y)

If nothing is known of strong convexity, mu = 0, it begins anew from w+ when a step has gone against
the momentum, <y - w+, w+ - w> > 0 (O'Donoghue and Candes, Found. Comput. Math. 15, 2015): the rate
is then about that of the true mu. With an intercept, and for L1, mu is 0.

L is doubled until f(w+) <= f(y) + <grad f(y), w+ - y> + (L/2)|w+ - y|^2, and let fall after a step.
The predictions X y, X w+ are combinations of those of w and z, so a trial costs X' v and X z+: one
pass over the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Certificate, Point, Start
from ...problems import costs
from ...problems.erm import ERM
from ..base import SMOOTH_LOSS, Needs, Target
from .full import FullRun, Predicted, start_vector

#: After an accepted step L is multiplied by this, after a refused one by 2.
_EASE = 0.9
#: A look after every step if a pass takes longer than this, in nanoseconds: a look is cheaper.
EXPENSIVE = 4e6


class AFG:
    """The iterate w, the estimate point z, gamma and the present L."""

    def __init__(self, problem: ERM, w0: Vector) -> None:
        self.problem = problem
        self.mu = problem.strong_convexity
        start = Predicted(w0.copy(), problem.samples.times(w0))
        self.at, self._far = start, start
        # A lower bound of the Lipschitz constant of grad f: the line search doubles it as needed.
        squared = problem.weights * problem.samples.squared_norms()
        mean = float(np.mean(np.broadcast_to(squared, problem.n_samples)))
        self.L = mean / (problem.loss.gamma * problem.n) + self.mu or 1.0  # f may be constant
        # The step of the prox, 1/(alpha L), is at most 1/sqrt(mu L): with L >= 4 mu, half of what a
        # g that does not split exactly can take.
        self._least = self.mu * (1 + 1e-9 if problem.g.splits_exactly else 4.0)
        self.L = max(self.L, self._least)
        self.gamma = self.L

    def step(self) -> int:
        """One accepted step; returns the passes over the data that it took."""
        passes = 0
        while True:
            passes += 1
            alpha = self._alpha()
            gamma = self.L * alpha**2
            beta = alpha * self.mu / gamma
            share = alpha * self.gamma / (alpha * self.gamma + gamma)
            y = self.at.towards(self._far, share)
            centre = self._far.towards(y, beta)
            gradient, value = self._smooth(y)
            far = self._prox(centre.w - gradient / (alpha * self.L), 1 / (alpha * self.L))
            new = Predicted(y.w + alpha * (far.w - centre.w), y.z + alpha * (far.z - centre.z))
            if self._accept(y, new, gradient, value):
                break
            self.L *= 2
        restart = self.mu == 0 and float(np.vdot(y.w - new.w, new.w - self.at.w)) > 0
        self.at, self._far, self.gamma = new, far, gamma
        self.L = max(self.L * _EASE, self._least)
        if restart:
            self._far, self.gamma = new, self.L
        return passes

    def with_zeros(self, found: Certificate) -> Point:
        """w with zeros where a proximal gradient step from it has them: w is an average of such."""
        w, d = found.w, found.w.shape[0]
        if self.problem.d > d:
            w = np.concatenate([w, np.asarray(found.b)[None]])
        gradient, _ = self._smooth(Predicted(w, self.problem.samples.times(w)))
        step = self._prox(w - gradient / self.L, 1 / self.L).w
        put = np.where(step == 0, 0.0, w)[:d]
        return Point(w=put, x=found.x, b=found.b)

    def _alpha(self) -> float:
        d = self.gamma - self.mu
        return 2 * self.gamma / (d + math.hypot(d, 2 * math.sqrt(self.L) * math.sqrt(self.gamma)))

    def _smooth(self, y: Predicted) -> tuple[Vector, float]:
        """grad f and f at y."""
        p = self.problem
        slopes = -p.signed(p.loss.duals(y.z, p.y, p.weights))
        gradient = p.samples.adjoint(slopes) / p.n + p.alpha * p.g.b * y.w
        return gradient, self._value(y)

    def _value(self, y: Predicted) -> float:
        p = self.problem
        return float(p.loss_total(y.z) / p.n + 0.5 * p.alpha * np.sum(p.g.b * y.w**2))

    def _prox(self, v: Vector, step: float) -> Predicted:
        """The prox of Psi, which is lambda g without its square."""
        w = self.problem.g.prox_without_square(v, step * self.problem.alpha)
        return Predicted(w, self.problem.samples.times(w))

    def _accept(self, y: Predicted, new: Predicted, gradient: Vector, value: float) -> bool:
        move = new.w - y.w
        square = float(np.vdot(move, move))
        bound = value + float(np.vdot(gradient, move)) + 0.5 * self.L * square
        slack = 1e-14 * abs(value)  # what rounding may add to either side
        return self._value(new) <= bound + slack or square == 0 or not math.isfinite(bound)


@dataclass(frozen=True)
class AFGMethod:
    """AFG on the primal of ERM."""

    name: ClassVar[str] = "afg"
    needs: ClassVar[Needs] = (SMOOTH_LOSS,)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> FullRun:
        """Begin at w."""
        start = start_vector(problem, at)
        seen = problem.unpenalised() if problem.intercept else problem
        every = 1 if costs.sweep(problem) > EXPENSIVE else 5
        return FullRun(problem, AFG(seen, start), every, rng)
