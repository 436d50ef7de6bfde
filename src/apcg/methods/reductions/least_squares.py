"""Least squares without a penalty: of all minimisers of |X w + b - y|, the one of least norm.

With an intercept it is the one of least |w| among those with the best b. A dense X is decomposed
(singular values that are rounding are cut), and the answer refined by its residuals: columns of
other scales need that. Of one that is too large for that LSMR finds the same point by products with
X, because it starts at zero and stays in its row space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import LinearOperator, lsmr

from ..._base.validation import Matrix, Vector
from ...certify.points import Certificate, Point, Start
from ...data.views import table
from ...problems.erm import ERM
from ..base import NO_PENALTY, SQUARED_LOSS, Budget, Needs, Stepping, Target, Work

#: Multiply-adds of a decomposition, and numbers of a dense copy of X, at most.
MOST, ROOM = 2e10, 5e7
#: How often an answer is refined by its residuals.
REFINED = 2
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LeastSquaresMethod:
    """The method "least_squares". It needs no start."""

    name: ClassVar[str] = "least_squares"
    needs: ClassVar[Needs] = (SQUARED_LOSS, NO_PENALTY)
    side: ClassVar[str] = "primal"

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> LeastSquaresRun:
        """Begin with nothing: the first `advance` solves it."""
        return LeastSquaresRun(problem)


class LeastSquaresRun(Stepping):
    """The method at work."""

    def __init__(self, problem: ERM) -> None:
        self.problem = problem
        self._w: Vector = np.zeros(problem.w_shape)

    def advance(self, budget: Budget) -> Work:
        """All of it, once."""
        if self.stuck:
            return Work(0)
        p = self.problem
        n, d = p.n_samples, p.d
        root = np.sqrt(np.broadcast_to(p.weights, n) / p.n)
        mean = p.samples.adjoint(root * root) if p.intercept else np.zeros(d)
        y = p.y - (root * root) @ p.y if p.intercept else p.y
        target = root * y if p.K == 1 else root[:, None] * y
        self.stuck = True
        if n * d <= ROOM and n * d * min(n, d) <= MOST:
            self._w = _decomposed(root[:, None] * (p.samples.view(table) - mean), target)
            return Work(min(n, d))
        made = [self._by_products(root, mean, column) for column in target.reshape(n, -1).T]
        self._w = np.column_stack([w for w, _ in made]).reshape(p.w_shape)
        return Work(sum(passes for _, passes in made))

    def _by_products(self, root: Vector, mean: Vector, target: Vector) -> tuple[Vector, int]:
        """By LSMR, and how many passes that took."""
        samples, d = self.problem.samples, self.problem.d

        def times(w: Vector) -> Vector:
            return np.asarray(root * (samples.times(w.reshape(-1)) - float(mean @ w.reshape(-1))))

        def adjoint(r: Vector) -> Vector:
            weighted = root * r.reshape(-1)
            return np.asarray(samples.adjoint(weighted) - mean * float(weighted.sum()))

        A = LinearOperator((root.size, d), matvec=times, rmatvec=adjoint, dtype=np.float64)
        found = lsmr(A, target, atol=1e-15, btol=1e-15, conlim=1e14, maxiter=10 * d + 100)
        return np.asarray(found[0]), int(found[2])

    def point(self) -> Point | Certificate:
        """The answer, as far as it is in the box; w = 0 before that."""
        w: Matrix = self.problem.g.clip(self._w)
        return Point(w=np.ascontiguousarray(w))


def _decomposed(X: Matrix, y: Matrix) -> Matrix:
    """The w of least norm among those of least |X w - y|, by the singular values of X."""
    U, sigma, V = svd(X, full_matrices=False, check_finite=False)
    known = sigma > _EPS * max(X.shape) * sigma.max(initial=0.0)
    U, V = U[:, known], V[known].T / sigma[known]
    w = V @ (U.T @ y)
    for _ in range(REFINED):
        w = w + V @ (U.T @ (y - X @ w))
    return np.asarray(w)
