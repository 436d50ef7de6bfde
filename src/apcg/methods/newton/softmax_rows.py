"""P of the softmax on dense rows: values, gradients, factors; and L-BFGS from a factor.

    P(W) = (1/n) sum_i s_i phi_i(W'a_i) + (1/2) sum_jk ridge_j W_jk^2

Intercepts are the last row of W: rows have a border of ones, and there is no ridge on it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.validation import Index, Matrix, Vector
from ..._kernels.newton import softmax_rows
from ...data import views
from ...problems.erm import ERM
from ..linalg.factor import Factor

_ALL = np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class SoftmaxPoint:
    """W with P(W), its gradient, and x = s (e - pi) of each row."""

    W: Matrix
    value: float
    gradient: Matrix
    x: Matrix


class SoftmaxRows:
    """P on all rows of X, or on some of them."""

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[np.int32],
        index: Index,
        weights: Vector,
        n: float,
        ridge: Matrix,
    ) -> None:
        self.X, self.y, self.index, self.weights = X, y, index, weights
        self.n, self.ridge = n, ridge
        self.D, self.count = len(ridge), index.size or len(X)
        self.border = bool(X.shape[1] < self.D)
        self._spare: Matrix | None = None

    def sample(self, index: Index, chance: Vector) -> SoftmaxRows:
        """P on rows that were drawn with these chances: its expectation is P on all rows."""
        weights = (self.weights[index] if self.weights.size > 1 else self.weights) / chance
        return SoftmaxRows(self.X, self.y, index, weights, self.n, self.ridge)

    def at(self, W: Matrix) -> SoftmaxPoint:
        """P and its gradient."""
        x = np.empty((self.count, W.shape[1])) if self._spare is None else self._spare
        self._spare, G = None, np.empty_like(W)
        total = softmax_rows.evaluate(
            self.X, self.border, self.index, self.y, self.weights, W, G, x
        )
        pull = self.ridge * W
        G /= self.n
        G += pull
        return SoftmaxPoint(W, total / self.n + 0.5 * float(np.vdot(pull, W)), G, x)

    def free(self, at: SoftmaxPoint) -> None:
        """The memory of `at` may be used again."""
        self._spare = at.x

    def factor(self, x: Matrix) -> Factor:
        """A factor of the Hessian at x = s (e - pi)."""
        K = x.shape[1]
        H = np.empty((self.D * K,) * 2)
        softmax_rows.hessian(self.X, self.border, self.index, self.y, self.weights, x, H)
        H /= self.n
        H.ravel()[:: len(H) + 1] += np.tile(self.ridge[:, 0], K)
        return Factor(H)

    def best_shift(self, at: SoftmaxPoint) -> Vector:
        """A step of Newton's method in the intercepts."""
        K = at.W.shape[1]
        H = np.empty((K, K))
        nothing = np.empty((len(self.X), 0), dtype=self.X.dtype)
        softmax_rows.hessian(nothing, True, self.index, self.y, self.weights, at.x, H)
        return Factor(H / self.n).solve(-at.gradient[-1])

    def leverages(self, thin: int, little: float) -> Vector | None:
        """a_i' C^-1 a_i over its mean, C the covariance: the say of each row in the Hessian.

        C is that of one row in `thin`, with this part of its diagonal added. None if C has no
        factor, which is not finite then.
        """
        s, some = np.broadcast_to(self.weights, self.count), self.X[::thin].astype(np.float64)
        if self.border:
            some = np.hstack([some, np.ones((len(some), 1))])
        C = some.T @ (s[::thin, None] * some)
        size = C.diagonal().copy()
        size[size == 0] = 1.0
        C.ravel()[:: self.D + 1] += little * size
        try:
            U = np.ascontiguousarray(np.linalg.cholesky(C).T)
        except np.linalg.LinAlgError:
            return None
        out = np.empty(self.count)
        softmax_rows.leverages(self.X, self.border, self.y, U, out)
        if self.weights.size > 1:
            out *= self.weights
        return np.asarray(out / out.mean())

    def gap(self, gradient: Matrix) -> float:
        """sum G^2/(2 ridge) over the features: the duality gap at such a W."""
        d = self.X.shape[1]
        return 0.5 * float(np.sum(np.square(gradient[:d]) / self.ridge[:d]))


def rows_of(problem: ERM) -> SoftmaxRows:
    """All rows of a problem."""
    ridge = problem.alpha * np.broadcast_to(problem.g.b, (problem.d, 1))
    if problem.intercept:
        ridge = np.vstack([ridge, [[0.0]]])
    X = problem.samples.view(views.whole)
    return SoftmaxRows(
        X, problem.y, _ALL, problem.weights, problem.n, np.array(ridge, dtype=np.float64)
    )


class LimitedMemory:
    """L-BFGS: about H^-1 times a vector, from a factor of some H and the steps since."""

    def __init__(self, factor: Factor, most: int) -> None:
        self._factor = factor
        self._pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=most)

    def add(self, step: Matrix, change: Matrix) -> None:
        """A step, and how the gradient changed by it."""
        s, y = step.T.reshape(-1), change.T.reshape(-1)
        curvature = float(np.dot(s, y))
        if curvature > 1e-300:
            self._pairs.append((s, y, curvature))

    def solve(self, gradient: Matrix) -> Matrix:
        """About H^-1 gradient."""
        q, used = gradient.T.reshape(-1).copy(), []
        for s, y, curvature in reversed(self._pairs):
            a = float(np.dot(s, q)) / curvature
            q -= a * y
            used.append(a)
        q = self._factor.solve(q)
        for (s, y, curvature), a in zip(self._pairs, reversed(used), strict=True):
            q += (a - float(np.dot(y, q)) / curvature) * s
        return np.ascontiguousarray(q.reshape(gradient.shape[::-1]).T)
