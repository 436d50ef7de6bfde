"""L1, elastic net, bounds: working sets with summed gradients and Gram matrices.

The summed gradient says which features break the optimality conditions most. These and the support
are the working set; the shards sum their Gram matrix on it, the driver minimises the quadratic
model with the penalty there, and P is searched along the way to that minimum.
"""

from __future__ import annotations

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.losses.terms import Psi
from ...functions import Quadratic
from ...penalties.interval import Interval
from ...problems.composite import Composite, Terms
from ..paper.sdca import SDCA
from .search import Damping, LineSearch
from .sums import Sums

#: Features in a working set: twice the support, and at least so many.
_LEAST = 100
#: Sweeps over a model between looks at it, looks at most, and the change that ends them.
_SWEEPS, _LOOKS, _CHANGE = 10, 60, 1e-9
_ARMIJO, _ROUNDING = 1e-4, 1e-14


class SparseSteps:
    """Working sets, a model on each, a search, a look."""

    name = "working sets"
    unmixed = stuck = False

    def __init__(self, sums: Sums) -> None:
        p, self.sums, self._damping = sums.problem, sums, Damping(sums)
        if p.K > 1 or not isinstance(p.g, Interval):
            raise ValueError(
                f"with {p.K} outputs, or a penalty that is not a sum over features, rows on "
                'several machines take penalty "l2" only. Take that, or multi_class="ovr", which '
                "has one output at a time."
            )
        parts = (np.broadcast_to(q, p.d) for q in (p.g.a, p.g.lower, p.g.upper))
        a, lower, upper = parts
        free = np.zeros(1 if p.intercept else 0), np.full(1 if p.intercept else 0, np.inf)
        #: lambda a_j and bounds of each weight, those of the intercept last
        self._a = np.append(p.alpha * a, free[0])
        self._low, self._high = np.append(lower, -free[1]), np.append(upper, free[1])

    def forget(self) -> None:
        """Nothing is kept that the shards would have to know."""

    def _prox(self, v: Vector) -> Vector:
        soft = np.sign(v) * np.maximum(np.abs(v) - self._a, 0.0)
        return np.asarray(np.clip(soft, self._low, self._high))

    def _working_set(self) -> Index:
        """The support and the worst of the others; the intercept is not counted."""
        s, d = self.sums, self.sums.problem.d
        score = np.abs(s.w - self._prox(s.w - s.gradient))[:d]
        support = np.flatnonzero(s.w[:d])
        score[support] = np.inf
        size = min(d, max(2 * support.size, _LEAST))
        worst = np.argpartition(-score, size - 1)[:size] if size < d else np.arange(d)
        return np.sort(worst[score[worst] > 0])

    def step(self) -> None:
        """One iteration."""
        s, p = self.sums, self.sums.problem
        columns = self._working_set()
        H = np.asarray(s.sum("gram_of", columns, p.intercept)) / p.n
        s.grams += 1
        s.passes += 1
        if p.intercept:
            columns = np.append(columns, p.d)
        H = np.triu(H) + np.triu(H, 1).T
        H[np.diag_indices(len(H))] += p.ridge[columns] + self._damping.diagonal[columns]
        way = np.zeros(p.shape)
        way[columns] = self._minimum(H, columns) - s.w[columns]
        search = LineSearch(s, way, None)
        c = self._search(search, way)
        self._damping.learn(float(c[0]))
        s.look(c, c[0] * way)

    def _minimum(self, H: np.ndarray, columns: Index) -> Vector:
        """Of the model <g, u - w> + (u - w)'H(u - w)/2 + penalty on the working set."""
        s = self.sums
        w = s.w[columns]
        least = 1e-12 * float(H.diagonal().max(initial=0.0)) or 1.0
        H[np.diag_indices(len(H))] += least  # a column of zeros
        zero = np.zeros(columns.size)
        theta = np.column_stack([self._a[columns], zero, self._low[columns], self._high[columns]])
        form = Composite(Quadratic(H, s.gradient[columns] - H @ w), Terms(Psi("interval", theta)),
                         columns.size)  # fmt: skip
        run, order, u = SDCA(form, w), np.arange(columns.size, dtype=np.intp), w
        for _ in range(_LOOKS):
            before = run.x
            for _ in range(_SWEEPS):
                run.epoch(order)
            u = run.x
            face = self._on_face(H, s.gradient[columns] - H @ w, columns, u)
            if face is not None:
                return face
            if np.abs(u - before).max(initial=0.0) <= _CHANGE * np.abs(u).max(initial=0.0):
                break
        return u

    def _on_face(self, H: np.ndarray, c: Vector, columns: Index, u: Vector) -> Vector | None:
        """The minimum with the signs and bounds of u, if it has them and is optimal; else None."""
        low, high, a = self._low[columns], self._high[columns], self._a[columns]
        on = (u != 0) & (u > low) & (u < high) | (a == 0) & (u > low) & (u < high)
        if not on.any():
            return None
        sign, made = np.sign(u[on]), u.copy()
        rest = c[on] + a[on] * sign + H[np.ix_(on, ~on)] @ u[~on]
        made[on] = np.linalg.solve(H[np.ix_(on, on)], -rest)
        kept = np.all((np.sign(made[on]) == sign) | (a[on] == 0))
        if not (kept and np.all((made >= low) & (made <= high))):
            return None
        v = made - (H @ made + c)
        soft = np.sign(v) * np.maximum(np.abs(v) - a, 0.0)
        left = np.abs(made - np.clip(soft, low, high)).max()
        return made if left <= 1e-8 * np.abs(c).max() else None

    def _search(self, search: LineSearch, way: Vector) -> Vector:
        """How far: 1, or less until P falls by a part of what the model promises."""
        s, d = self.sums, self.sums.problem.d
        w, c = s.w[:d], np.zeros(len(search.W))

        def penalty(t: float) -> float:
            return float(self._a[:d] @ np.abs(w + t * way[:d]))

        start, t = penalty(0.0), 1.0
        promised = float(s.gradient @ way) + penalty(1.0) - start
        while t > 1e-8:
            c[0] = t
            value = search.at(c)[0] + penalty(t) - start
            slack = _ROUNDING * abs(search.value)
            if value <= search.value + _ARMIJO * t * promised + slack:
                break
            t *= 0.5
        return c
