"""APCG without full-dimensional vector operations: Algorithms 1 to 4, for f known to the kernels.

    minimize F(x) = sum_j h_j((A x)_j) + <c, x> + sum_i (sigma_i/2) x_i^2 + sum_i psi_i(x_i)

The paper gives the change of variables for gamma_0 = mu (Algorithm 4, Proposition 1). The same idea
with two scalars covers Algorithm 1 whole; `_kernels/coordinate.pyx` has the step.
"""

from __future__ import annotations

import numpy as np

from .._kernels import coordinate
from .._kernels.sequence import coefficients
from .._validation import Index, Vector
from ..problem import Composite
from ..sequences import Sequence

#: Below this s the state is folded: u grows like 1/s, and with it the rounding error.
FOLD_AT = 1e-4


class APCG:
    """The state after k steps: z = v + t u, x = v + (t + s) u, p = A u, q = A v - shift."""

    def __init__(
        self, problem: Composite, x0: Vector, sequence: Sequence, fold_at: float = FOLD_AT
    ) -> None:
        f = problem.f
        largest = int(np.diff(problem.starts).max(initial=1))
        pq = _aligned_zeros(f.columns.n_rows)
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
        self._columns, self._model = f.columns.arrays, problem.model()

    def epoch(self, order: Index) -> int:
        """One step on each block of `order`."""
        coordinate.run(*self._columns, self._model, self.state, order)
        return 1

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

    def shift(self, change: float) -> None:
        """The last row of A x less its shift grows by so much, at every x: its shift has moved."""
        np.asarray(self.state.pq)[-1, 1] += change

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x^(k) less the shift of h), as accumulated in p and q."""
        return self.state.rows(scale)


def _aligned_zeros(rows: int) -> np.ndarray:
    """A (rows, 2) array of zeros that starts at a multiple of 16 bytes, for the kernel's pairs."""
    room = np.zeros(2 * rows + 1)
    skip = room.ctypes.data % 16 // 8
    return room[skip : skip + 2 * rows].reshape(rows, 2)
