"""Few samples with many features: the same problem in the span of the samples.

With g = L2 the optimal w is a combination of the samples, w = X'c. Nothing but the inner products
K = X X' of the samples matters then. Let K = L L', with L of n rows and r <= n columns (r is the
rank of K). L has the inner products of X, so

    minimize (1/n) sum_i s_i phi_i(L_i'v) + (lambda b/2)|v|^2

is the same problem in r <= n unknowns: X w = L v and |w| = |v| at its optimum. The dual is the same
function of x. A pass over L costs n r and not n d, and a matrix of r x r can be factored.

    x of the small problem is x of the large one;   w = X'c with L'c = v

What is found is certified on X itself. K has rounding errors; where they matter, the look fails
and the run says that it is stuck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack, solve_triangular

from ..._base.validation import Vector
from ...certify.certificate import certify_enough
from ...certify.points import Certificate, Point, Start
from ...data import Dense, Matrix
from ...problems.erm import ERM
from ..base import (
    COMPILED_LOSS,
    DENSE_IN_MEMORY,
    L2_PENALTY,
    ONE_OUTPUT,
    Budget,
    Method,
    Needs,
    Report,
    Run,
    Stepping,
    Target,
    Work,
)


@dataclass(frozen=True)
class Span:
    """The method "span": the small problem is made, and solved by `solver`.

    patience  how often the gap of X may be larger than that of L before the run is stuck
    most      passes over X, at most; then it is stuck
    """

    solver: Method
    patience: int = 2
    most: float = math.inf
    name: ClassVar[str] = "span"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, L2_PENALTY, DENSE_IN_MEMORY)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SpanRun:
        """Begin at x, or at zero."""
        return SpanRun(problem, at, target, rng, self)


class Basis:
    """K = L L' of the rows of X, and the way from v back to w."""

    def __init__(self, X: Matrix) -> None:
        K = X.row_gram()
        # pivots, because K may have a lower rank: of centred columns it has
        found, pivots, rank, _ = lapack.dpstrf(K, lower=1, overwrite_a=1)
        self._X, self._first = X, pivots[:rank] - 1
        self._lower = found[:rank, :rank]
        self.L = np.zeros((len(K), rank))
        self.L[pivots - 1] = np.tril(found)[:, :rank]

    def w(self, v: Vector) -> Vector:
        """w = X'c with c on as many rows as L has columns, and X w = L v."""
        c = np.zeros(self._X.shape[0])
        c[self._first] = solve_triangular(self._lower, v, trans="T", lower=True)
        return self._X.adjoint(c)


class SpanRun(Stepping):
    """A method at work on L, in the place of X."""

    def __init__(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        method: Span,
    ) -> None:
        self.problem, self._patience = problem, method.patience
        self._basis = Basis(problem.samples)
        self._small = problem.altered(samples=Dense(self._basis.L), d=self._basis.L.shape[1])
        start = Start(x=at.x, b=at.b)
        if at.x is not None:
            start = replace(start, w=self._small.omega(at.x))
        self._aim = target.tol
        #: a pass over L, and what K took, in passes over X
        self._pass = self._small.d / problem.d
        self._cost = problem.n_samples / 4
        self._most = method.most
        most = math.ceil(target.max_passes / max(self._pass, 1e-9))
        inside = replace(target, max_passes=most)
        self._run: Run = method.solver.start(self._small, start, inside, rng)
        self.stuck = self._small.d == 0
        self._passed = False

    @property
    def report(self) -> Report:
        """Whether it gets no further: the method within does not, or K lacks digits."""
        lacks = self._run.report.lacks_digits
        return Report("dual", stuck=self.stuck, lacks_digits=lacks)

    def advance(self, budget: Budget) -> Work:
        """Solve the small problem until its gap passes."""
        most = min(self._cost + budget.passes, self._most)
        self._passed = False
        while not (self.stuck or self._passed or budget.expired) and self._cost < most:
            passes = max(1, math.ceil((most - self._cost) / self._pass))
            work = self._run.advance(replace(budget, passes=passes, fixed=False))
            self._cost += max(work.passes, 1) * self._pass
            found = certify_enough(self._small, self._run.point(), self._aim)
            self._passed = found.relative <= self._aim
            if not self._passed:
                self._run.seen(found)
                self.stuck = self._run.report.stuck
        self.stuck = self.stuck or (self._cost >= self._most and not self._passed)
        return self._since(self._cost)

    def point(self) -> Point:
        """The point of the small problem, on X: w is made from v, x is that of its predictions.

        (w = A x/(lambda n), which is cheaper, has fewer digits: where x is a small difference of
        large numbers, and where the gap of that w is far larger than that of v.)
        """
        found, small = self._run.point(), self._small
        if found.w is None:
            return Point(x=found.x, b=found.b)
        x = found.x
        if x is None:
            x = small.loss.duals(small.samples.times(found.w) + found.b, small.y, small.weights)
        return Point(w=self._basis.w(found.w), x=x, b=found.b)

    def seen(self, certificate: Certificate) -> None:
        """If the look should have passed, K lacks digits: aim lower, a few times."""
        if self._passed:
            self._patience -= 1
            self.stuck = self._patience < 0
            self._aim *= 0.1
