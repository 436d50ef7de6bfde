"""H^-1 by orthogonal factors: for a ridge that the rounding of X'X would hide.

    H = X' diag(phi'') X + diag(ridge) = M'M,   M = [sqrt(phi'') X; sqrt(ridge)] = Q R

R is found without M'M. Its rounding is that of M, so that a ridge counts down to eps^2 |X|^2, where
a Cholesky factor of H has lost it at eps |X|^2. It costs some four times as much.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from ..._base.validation import Matrix, Vector
from ...problems.objective import Objective
from ..base import Budget
from ..linalg.factor import Diagonal, Solver
from .hessian import Hessian

_EPS = float(np.finfo(float).eps)


class StackedFactor:
    """H = S R'R S with S diagonal, so that M S^-1 has columns of length 1.

    A last entry of `ridge` without a column of X is that of an intercept.
    """

    def __init__(self, X: Matrix, ridge: Vector, bend: Vector, least: float) -> None:
        (n, d), size = X.shape, ridge.size
        root = np.sqrt(bend)
        M = np.zeros((n + size, size))
        np.multiply(root[:, None], X, out=M[:n, :d])
        if size > d:  # an intercept
            M[:n, d] = root
            ridge = np.append(ridge[:d], max(_EPS**2 * float(bend.sum()), _EPS**4 * least))
            ridge[d] = ridge[d] if bend.any() else least
        M[n:].flat[:: size + 1] = np.sqrt(ridge)
        self._scale = np.sqrt(np.einsum("ij,ij->j", M, M))
        M /= self._scale
        self._R: Matrix = np.asarray(np.linalg.qr(M, mode="r"))

    def solve(self, r: Vector) -> Vector:
        """H^-1 r"""
        half = solve_triangular(self._R, r / self._scale, trans="T", check_finite=False)
        return np.asarray(solve_triangular(self._R, half, check_finite=False) / self._scale)


class Stacked(Hessian):
    """H without a sample, by one such factor a step.

    X        as an array
    squares  the squared lengths of its columns, which are orthogonal to each other and, with an
             intercept, to the ones
    """

    is_cheap = False

    def __init__(self, rows: Objective, X: Matrix, squares: Vector) -> None:
        super().__init__(rows)
        self._X, self._squares = X, squares

    def draw(self, rng: np.random.Generator) -> None:
        """There is no sample."""

    def distrust(self) -> bool:
        """Nothing is to be had that is more exact."""
        return False

    def solve(
        self, r: Vector, bend: Vector, enough: float, budget: Budget
    ) -> tuple[Vector, Vector]:
        """H^-1 r, and X times it."""
        way = self.stacked(bend).solve(r)
        return way, self._rows.X.times(way)

    def stacked(self, bend: Vector) -> Solver:
        """H for this phi'': of orthogonal columns, and one phi'' for all rows, it is diagonal."""
        rows = self._rows
        self.cost += 1.0
        if not (bend.size and bend.min() == bend.max() > 0):
            return StackedFactor(self._X, rows.ridge, bend, self.least)
        diagonal = rows.ridge.copy()
        diagonal[: rows.d] += bend[0] * self._squares
        diagonal[rows.d :] = rows.n * bend[0]
        return Diagonal(diagonal)
