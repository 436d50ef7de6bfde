"""APCG without full-dimensional vector operations: Algorithms 1 to 5, for f known to the kernels.

    minimize F(x) = sum_j h_j((A x)_j) + <c, x> + sum_i (sigma_i/2) x_i^2 + sum_i psi_i(x_i)

The paper gives the change of variables for gamma_0 = mu (Algorithm 4, Proposition 1). The same idea
with two scalars covers Algorithm 1 whole; `_kernels/paper/coordinate.pyx` has the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.memory import aligned_zeros
from ..._base.validation import Index, Mask, Vector
from ..._kernels.common.sequence import coefficients
from ..._kernels.paper import coordinate
from ...certify.points import Start
from ...data import views
from ...problems.composite import Composite
from ...problems.erm import ERM
from ...sequences import Sequence
from ..base import COMPILED_LOSS, ONE_OUTPUT, SEPARABLE, SMOOTH_FORM, Needs, Target
from .coordinate import CoordinateRun, Coordinates

#: Below this s the state is folded: u grows like 1/s, and with it the rounding error.
FOLD_AT = 1e-4


class APCG:
    """The state after k steps: z = v + t u, x = v + (t + s) u, p = A u, q = A v - shift."""

    def __init__(
        self, problem: Composite, x0: Vector, sequence: Sequence, fold_at: float = FOLD_AT
    ) -> None:
        f = problem.f
        largest = int(np.diff(problem.starts).max(initial=1))
        pq = aligned_zeros(f.columns.shape[1])
        pq[:, 1] = f.rows(x0)
        self.problem = problem
        self.state = coordinate.State(
            np.zeros(problem.N),
            x0.copy(),
            pq,
            np.empty(2 * largest),
            n=sequence.n,
            mu=sequence.mu,
            gamma=sequence.gamma0,
            fold_at=fold_at,
        )
        self._columns, self._model = f.columns.view(views.arrays), problem.model()

    def epoch(self, order: Index) -> None:
        """One step on each block of `order`."""
        coordinate.run(*self._columns, self._model, self.state, order)

    @property
    def mu(self) -> float:
        """The convexity parameter that the steps go by."""
        return float(self.state.mu)

    @property
    def x(self) -> Vector:
        """x^(k)"""
        return self.state.at(self.state.t + self.state.s)

    @property
    def z(self) -> Vector:
        """z^(k)"""
        return self.state.at(self.state.t)

    @property
    def y(self) -> Vector:
        """y^(k), where the next step takes its gradient."""
        s = self.state
        _, _, b, _ = coefficients(s.n, s.mu, s.gamma)
        return s.at(s.t + b * s.s)

    def refresh(self) -> None:
        """Compute p and q anew from u and v: rounding errors gather in them over many steps."""
        s, f = self.state, self.problem.f
        pq = np.asarray(s.pq)
        pq[:, 1] = f.rows(np.asarray(s.v))
        pq[:, 0] = f.rows(np.asarray(s.u))
        if f.shift is not None:
            pq[:, 0] += f.shift

    # ---- changes between steps ----------------------------------------------------------------

    def set_momentum(self, n: float, mu: float) -> None:
        """Go on as Algorithm 2 with 1/n the probability of a step's block, and this mu.

        No vector changes: x and z stay where they are.
        """
        self.state.n, self.state.mu, self.state.gamma = n, mu, mu

    def restart(self) -> None:
        """Forget the momentum: z = x."""
        self.state.restart()

    def shift(self, change: float) -> None:
        """Add `change` to the last row of A x less its shift, at every x: its shift has moved."""
        np.asarray(self.state.pq)[-1, 1] += change

    def place(self, which: Mask, values: Vector) -> None:
        """x_i = z_i = values_i for those coordinates."""
        f = self.problem.f
        u, v = np.asarray(self.state.u), np.asarray(self.state.v)
        move = np.flatnonzero(which & ((u != 0) | (v != values)))
        if not move.size:
            return
        change = np.zeros(v.size)
        for k, (array, to) in enumerate(((u, np.zeros(v.size)), (v, values))):
            change[move] = (to - array)[move]
            array[move] = to[move]
            np.asarray(self.state.pq)[:, k] += f.columns.adjoint(f.sign * change)

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x^(k) less the shift of h), as accumulated in p and q."""
        return self.state.rows(scale)


@dataclass(frozen=True)
class Algorithm5:
    """APCG on the dual of ERM: Algorithm 5 of the paper, with the mu of Theorem 2.

    With mu = 0 (a loss that is not smooth) it is the form of Algorithm 3. Where g is not strongly
    convex the same steps are taken on the primal. `mu` takes the place of the problem's own.
    """

    mu: float | None = None
    name: ClassVar[str] = "apcg"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SEPARABLE, SMOOTH_FORM)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> CoordinateRun:
        """Begin at x (or w, in the primal)."""
        coordinates = Coordinates(problem, at)
        mu = coordinates.mu if self.mu is None else self.mu
        sequence = Sequence.choose(max(coordinates.sampled.size, 1), mu, None)
        iterate = APCG(coordinates.form, coordinates.take_start(), sequence)
        return CoordinateRun(coordinates, iterate, sequence.mu, target, rng)
