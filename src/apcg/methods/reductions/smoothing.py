"""Smoothing for the hinge and epsilon-insensitive losses, for n >> d and data that is noisy.

phi_gamma is the loss with phi_gamma* = phi* + (gamma/2)x^2. Its slope differs from that of phi only
within gamma of a kink, and Newton's method minimises P_gamma in a few passes, started on a sample
of the rows (`newton`). Its pair of points is a pair for P itself: with x_i = -s_i phi_gamma'(z_i)
and t_i = x_i/s_i, for the hinge loss

    P(w) - D(x) = P_gamma(w) - D_gamma(x) + (gamma/n) sum_i s_i t_i(1 - t_i)

The sum is over the rows within gamma of the kink, about a share of them that is proportional to
gamma. So the gap is of second order in gamma: 0.05 gives a few parts in 1000.

gamma falls in stages. Then the rows far from every kink are at a bound of their x_i, and stay
there: the interior point method solves for the others, few as they are. A look over all rows says
whether that was right. If not, more rows are taken: those a little farther away, and those that
came to the other side of a kink (rows with a rare feature that no other row held in place).

Where the dual sweeps drop nearly all rows at once (few errors, P next to nothing) they are faster.
With many errors they drop next to none, and smoothing takes a half to a quarter of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Vector
from ...certify.points import Certificate, Point, Start
from ...losses import Loss
from ...problems.erm import ERM
from ..base import ONE_OUTPUT, QUADRATIC_PENALTY, Budget, Needs, Report, Run, Target, Work
from ..interior.interior import PIECEWISE_LINEAR, InteriorRun
from ..newton.newton import Newton, NewtonRun


@dataclass(frozen=True)
class SmoothingTuning:
    """When to go on (docs/decisions/0013-smoothing.md has the figures)."""

    #: gamma of the stages; the unit is 1 for margins, the mean loss at w = 0 for residuals
    gammas: tuple[float, ...] = (0.3, 0.05, 0.01)
    #: the gap of a stage is this times its gamma, relative to P (0.1 and 0.3: 1.03 and 1.25 times
    #: the time, because the rows kept are then the wrong ones)
    stage: float = 0.03
    #: below this relative gap the rows near a kink are few and known (1e-2: 1.1 times the time)
    enough: float = 4e-3
    #: "near" is so many gammas (10: 1.1 times the time); and so much more after a look that failed
    near: float = 5.0
    wider: float = 2.0
    #: but at least so many rows for each feature: about as many as features are at a kink
    least: int = 2


class Smoothed(Loss):
    """phi with (gamma/2)x^2 added to its conjugate."""

    name = "smoothed"

    def __init__(self, loss: Loss, gamma: float) -> None:
        self.loss, self.gamma, self.margin, self.domain = loss, gamma, loss.margin, loss.domain

    @property
    def theta(self) -> tuple[float, ...]:
        k, epsilon, _, lower, upper = self.loss.theta
        return k, epsilon, self.gamma, lower, upper


@dataclass(frozen=True)
class Smoothing:
    """The method "smoothing". Of a start only w and b are used."""

    tuning: SmoothingTuning = SmoothingTuning()
    name: ClassVar[str] = "smoothing"
    needs: ClassVar[Needs] = (ONE_OUTPUT, PIECEWISE_LINEAR, QUADRATIC_PENALTY)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> SmoothingRun:
        """Begin with the first gamma."""
        return SmoothingRun(problem, at, target, rng, self.tuning)


class SmoothingRun(Run):
    """The stages: Newton's method at each gamma, then the interior point method."""

    def __init__(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        tuning: SmoothingTuning,
    ) -> None:
        self._problem, self._target, self._rng, self._tuning = problem, target, rng, tuning
        at_zero = problem.loss_total(np.zeros(problem.n_samples)) / problem.n
        self._unit = 1.0 if problem.loss.margin else max(at_zero, 1e-300)
        self._left = list(tuning.gammas)
        self._width = 0.0
        #: the least relative gap that was seen, X w + b there, and the x of rows far from a kink
        self._least, self._z = math.inf, np.zeros(problem.n_samples)
        self._x = self._z
        #: rows that were left out, and came to the other side of a kink
        self._crossed = np.zeros(problem.n_samples, dtype=bool)
        self._interior: InteriorRun | None = None
        self._stage(Start(w=at.w, b=at.b))

    @property
    def report(self) -> Report:
        """Whether no step leads anywhere any more."""
        return Report(stuck=self._interior is not None and self._interior.report.stuck)

    def _stage(self, at: Start) -> None:
        """The next gamma."""
        share = self._left.pop(0)
        self._gamma = share * self._unit
        smooth = Smoothed(self._problem.loss, self._gamma)
        target = Target(self._tuning.stage * share, self._target.max_passes)
        self._smooth = self._problem.altered(loss=smooth)
        self._newton: NewtonRun = Newton().start(self._smooth, at, target, self._rng)

    def advance(self, budget: Budget) -> Work:
        """To the end of a stage: a look tells how good it is for P itself."""
        return (self._interior or self._newton).advance(budget)

    def point(self) -> Point:
        """w of the stage, and the x of the smoothed loss, or the interior point."""
        if self._interior is not None:
            return self._interior.point()
        p, found = self._smooth, self._newton.point()
        assert found.w is not None
        z = p.samples.times(found.w) + found.b
        return Point(w=found.w, x=p.loss.duals(z, p.y, p.weights), b=found.b)

    def seen(self, certificate: Certificate) -> None:
        """Go on to the next gamma, to the interior points, or to more rows.

        Rows are chosen at the best point seen: a wrong choice of rows leads far away.
        """
        if certificate.relative <= self._least:
            self._least, self._z = certificate.relative, certificate.z
        if self._interior is not None:
            self._interior.seen(certificate)
            if certificate.relative > 2 * self._interior.relative:  # the rows left out are to blame
                self._width *= self._tuning.wider
                self._crossed |= self._sides(certificate.z) != self._x
                self._take_rows()
        elif self._left and certificate.relative > self._tuning.enough:
            free = certificate.b if self._problem.intercept else None
            self._stage(Start(w=certificate.w, b=free))
        else:
            self._width = self._tuning.near * self._gamma
            self._take_rows()

    def _take_rows(self) -> None:
        """The interior point method on the rows near a kink; the others stay where they are."""
        p, z = self._problem, self._z
        m = p.loss.argument(z, p.y)
        far = np.min([np.abs(m - kink) for kink in p.loss.kinks], axis=0)
        if p.weights.size > 1:
            far[p.weights == 0] = np.inf
        least = min(self._tuning.least * (p.d + 1), p.n)  # w has d directions to hold
        self._width = max(self._width, float(np.partition(far, least - 1)[least - 1]))
        self._x = self._sides(z)
        free = np.flatnonzero((far <= self._width) | (self._crossed & np.isfinite(far)))
        self._interior = InteriorRun(p, self._target, free=free, x=self._x)

    def _sides(self, z: Vector) -> Vector:
        """x of each row by the side of the kink that it is on."""
        p = self._problem
        return np.asarray(p.loss.duals(z, p.y, p.weights))
