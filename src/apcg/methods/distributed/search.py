"""The minimum of P over a few directions, by messages of a few numbers.

c -> P(w + W c) has derivatives that are sums over rows of products with the predictions Z of the
directions W, which the shards keep. A look where c leads brings P and the gradient there.
"""

from __future__ import annotations

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from .sums import Sums

#: Added to the unit diagonal of the Hessian in c.
_JITTER = 1e-10
#: The same, tried in turn where a step along several directions brings nothing; trials along a
#: step, and along the last of these; bounds of the next trial, in parts of the one before.
_MORE, _SHORTER, _PART = (_JITTER, 1e-4, 1e-2, 1.0), (3, 12), (1e-6, 0.5)
#: Along one direction: a secant stays this part of the bracket away from both its ends.
_WITHIN = 0.01
#: Curvature below this part of the largest counts as none.
_DEAD = 1e-30
#: Trials of a search, at most.
_TRIALS = 40
#: A search ends when the slopes in c have fallen to this part.
_FLAT = 0.1
#: Damping: its value after the first step that was too short, and below which it is dropped; the
#: lengths of a step that count as short and as long.
_DAMPING, _SHORT, _LONG = (1e-6, 1e-9), 0.25, 0.9
#: A fall of P below this part of it is rounding.
_ROUNDING = 1e-14


class LineSearch:
    """Directions W at the present point, and the model of P on them.

    p, and the last steps and the intercept by itself if `steps` is not None.
    """

    def __init__(self, sums: Sums, p: Table, steps: list[Table] | None) -> None:
        self.sums, q = sums, sums.problem
        ones = []
        if q.intercept and steps is not None:
            for k in range(q.K):
                one = np.zeros(q.shape)
                one[(-1, k) if q.K > 1 else -1] = 1.0
                ones.append(one)
        every = [p, *(steps or []), *ones]
        self.W = np.stack(every).reshape(len(every), -1)
        self._ridge = np.broadcast_to(q.ridge, q.shape).reshape(-1)
        self._form = (self.W * self._ridge) @ self.W.T
        self._start = self.W @ (self._ridge * sums.w.reshape(-1))
        none = np.zeros(len(self.W))
        found = sums.sum("directions", p, None if steps is None else len(steps))
        self.value, self.slope, self.bend = self._with_ridge(none, *found)
        sums.passes += 0.5

    def _with_ridge(
        self, c: Vector, total: float, slope: Vector, bend: Table
    ) -> tuple[float, Vector, Table]:
        n, w = self.sums.problem.n, self.sums.w.reshape(-1)
        flat = float(w @ (self._ridge * w))
        value = total / n + 0.5 * (flat + 2 * float(c @ self._start) + float(c @ self._form @ c))
        return value, slope / n + self._start + self._form @ c, bend / n + self._form

    def again(self) -> LineSearch:
        """Begin again where `sums` is, with the same directions."""
        self._start = self.W @ (self._ridge * self.sums.w.reshape(-1))
        self.value, self.slope, self.bend = self.at(np.zeros(len(self.W)))
        return self

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
        if len(self.W) == 1:
            return np.array([self._along(flat)])
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

    def _along(self, flat: float) -> float:
        """The step along one direction: a bracket, then secants in it.

        By Newton's steps where they stay between, else by secants. An end that stays where it is
        counts half (Illinois): a secant alone may creep towards it.
        """
        t, (slope,), bend = 0.0, self.slope, float(self.bend[0, 0])
        first, low, high = -slope, (t, slope), (np.inf, np.inf)
        best, side = (self.value, t), 0
        for _ in range(_TRIALS):
            to = t - slope / bend if bend > 0 else low[0] + 1.0
            if abs(slope * (to - t)) <= _ROUNDING * abs(best[0]):
                break
            width = high[0] - low[0]
            if np.isfinite(width) and not low[0] < to < high[0]:
                part = -low[1] / (high[1] - low[1])
                to = low[0] + width * min(max(part, _WITHIN), 1 - _WITHIN)
            t = to
            self.value, (slope,), self.bend = self.at(np.array([t]))
            bend = float(self.bend[0, 0])
            best = min(best, (self.value, t))
            if abs(slope) <= flat * first and best[1] == t:
                break
            if slope > 0:
                low, high = (low[0], low[1] * (0.5 if side > 0 else 1.0)), (t, slope)
            else:
                low, high = (t, slope), (high[0], high[1] * (0.5 if side < 0 else 1.0))
            side = 1 if slope > 0 else -1
        return best[1]

    def _damped(self, at: Vector) -> Vector | None:
        """A step that makes P fall: to where its slope vanishes by the secant, with ever more on
        the diagonal; None if there is none.
        """
        for more in _MORE:
            way, t = self.newton(more), 1.0
            slope = float(self.slope @ way)
            for _ in range(_SHORTER[more == _MORE[-1]]):
                found = self.at(at + t * way)
                if found[0] <= self.value + 1e-4 * t * slope + _ROUNDING * abs(self.value):
                    self.value, self.slope, self.bend = found
                    return np.asarray(t * way)
                rise = float(found[1] @ way) - slope
                t *= min(max(-slope / rise, _PART[0]), _PART[1]) if rise > 0 else _PART[1]
        return None

    def at(self, c: Vector) -> tuple[float, Vector, Table]:
        """(value, slope, Hessian) of the smooth part of P at c: a message of a few numbers."""
        return self._with_ridge(c, *self.sums.sum("probe", c))

    def step(self, c: Vector) -> Table:
        """The step in w that c is."""
        return (c @ self.W).reshape(self.sums.w.shape)


class Damping:
    """What is added to the diagonal of a Hessian, of the most curvature that there can be.

    Nothing at first. Where a step has to be far shorter than the model says, ten times more; where
    it is as long, a tenth.
    """

    def __init__(self, sums: Sums) -> None:
        p, self._part = sums.problem, 0.0
        most = np.full(p.shape, p.mean_square / p.loss.gamma if p.loss.gamma else 1.0)
        if p.intercept:
            most[-1] *= p.constant**2 / (p.mean_square or 1.0)
        self._most = most.reshape(-1)

    @property
    def diagonal(self) -> Vector:
        """What to add."""
        return self._part * self._most

    def learn(self, t: float) -> None:
        """A step of t times what the model says was best."""
        if t < _SHORT:
            self._part = max(10 * self._part, _DAMPING[0])
        elif t > _LONG:
            self._part = self._part / 10 if self._part > _DAMPING[1] else 0.0
