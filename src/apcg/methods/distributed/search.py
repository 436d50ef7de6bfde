"""The minimum of P over a few directions, by messages of a few numbers.

c -> P(w + W c) has derivatives that are sums over rows of products with the predictions Z of the
directions W, which the shards keep. A look where c leads brings P and the gradient there.
"""

from __future__ import annotations

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from .sums import Sums

#: What the Hessian in c gets on its unit diagonal.
_JITTER = 1e-10
#: What it gets where steps bring nothing, and parts of a step to try.
_MORE, _SHORTER = (_JITTER, 1e-4, 1e-2, 1.0, 100.0), (1.0, 0.25, 0.06)
#: Curvature below this part of the largest is none.
_DEAD = 1e-30
#: Trials of a search, at most.
_TRIALS = 40
#: The slopes in c that are left of those there were: a search ends there.
_FLAT = 0.1
#: A fall of P below this part of it is rounding.
_ROUNDING = 1e-14


class LineSearch:
    """Directions W at the present point, and the model of P on them."""

    def __init__(self, sums: Sums, p: Table, steps: list[Table]) -> None:
        self.sums, q = sums, sums.problem
        ones = []
        if q.intercept:
            for k in range(q.K):
                one = np.zeros(q.shape)
                one[(-1, k) if q.K > 1 else -1] = 1.0
                ones.append(one)
        self.W = np.stack([p, *steps, *ones]).reshape(1 + len(steps) + len(ones), -1)
        self._ridge = np.broadcast_to(q.ridge, q.shape).reshape(-1)
        self._form = (self.W * self._ridge) @ self.W.T
        self._start = self.W @ (self._ridge * sums.w.reshape(-1))
        self.value, self.slope, self.bend = self._with_ridge(
            np.zeros(len(self.W)), *sums.sum("directions", p, len(steps))
        )
        sums.passes += 0.5

    def _with_ridge(
        self, c: Vector, total: float, slope: Vector, bend: Table
    ) -> tuple[float, Vector, Table]:
        n, w = self.sums.problem.n, self.sums.w.reshape(-1)
        flat = float(w @ (self._ridge * w))
        value = total / n + 0.5 * (flat + 2 * float(c @ self._start) + float(c @ self._form @ c))
        return value, slope / n + self._start + self._form @ c, bend / n + self._form

    def refresh(self, total: float, slope: Vector, bend: Table) -> None:
        """Begin again at the present point, with the same directions and what a probe found."""
        self._start = self.W @ (self._ridge * self.sums.w.reshape(-1))
        none = np.zeros(len(self.W))
        self.value, self.slope, self.bend = self._with_ridge(none, total, slope, bend)

    def newton(self, more: float = _JITTER) -> Vector:
        """A step of Newton's method in c; `more` is added to the unit diagonal of the Hessian."""
        square = np.diag(self.bend)
        bent = square > _DEAD * square.max()  # along others P is a line: they are left alone
        scale = np.sqrt(np.where(bent, square, 1.0))
        H = self.bend / np.outer(scale, scale) + more * np.eye(len(scale))
        H, r = H[np.ix_(bent, bent)], (self.slope / scale)[bent]
        c = np.zeros(len(scale))
        c[bent] = -np.linalg.lstsq(H, r, rcond=None)[0] / scale[bent]
        return c

    def find(self, flat: float = _FLAT) -> Vector:
        """c about the minimum, by damped steps of Newton's method and probes."""
        total, first = np.zeros(len(self.W)), 0.0
        for trial in range(_TRIALS):
            promised = -float(self.slope @ self.newton())
            first = first if trial else promised
            least = flat**2 * first if trial else 0.0
            if promised <= max(least, _ROUNDING * abs(self.value)):
                break
            step = self._damped(total)
            if step is None:
                break
            total = total + step
        return total

    def _damped(self, at: Vector) -> Vector | None:
        """A step that makes P fall: shorter ones, with ever more on the diagonal; None if none."""
        for more in _MORE:
            way = self.newton(more)
            for t in _SHORTER:
                found = self.at(at + t * way)
                promised = 1e-4 * t * float(self.slope @ way)
                if found[0] <= self.value + promised + _ROUNDING * abs(self.value):
                    self.value, self.slope, self.bend = found
                    return np.asarray(t * way)
        return None

    def at(self, c: Vector) -> tuple[float, Vector, Table]:
        """(value, slope, Hessian) of the smooth part of P at c: a message of a few numbers."""
        return self._with_ridge(c, *self.sums.sum("probe", c))

    def step(self, c: Vector) -> Table:
        """The step in w that c is."""
        return (c @ self.W).reshape(self.sums.w.shape)
