"""Working sets of groups for the squared loss on dense data: what is left of y is kept.

With weights s and the best intercept taken out, the problem is plain least squares: rows times
sqrt(s_i), columns and targets less their means. R = Y - X W there, and

    x = s r,   P = |R|^2/(2 n) + alpha g(W),   D(t x) = (t <Y, R> - t^2 |R|^2/2)/n

for every t at which t x is feasible. `group_panels` brings P down on a set.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from .._validation import Matrix, Vector
from ..data.linear_map import Dense
from ..erm import ERM
from ..points import Certificate, Point, Start
from .base import Budget, Target
from .group_model import GroupModel, GroupPenalty
from .group_panels import TUNING, Panels, Source
from .group_products import columns_times, rows_times
from .group_run import GroupRun
from .working_set.fit import Seen
from .working_set.run import SparseRun

_EPS = float(np.finfo(float).eps)
_NONE = np.empty(0)


class _Squares:
    """What a run asks of its losses."""

    constant = True


class SquaresRun(GroupRun):
    """The method at work."""

    tall_at = TUNING.tall_at

    def _prepare(self, problem: ERM, at: Start) -> None:
        self.penalty, self.losses = GroupPenalty.of(problem), _Squares()  # type: ignore[assignment]
        K, n, s = problem.K, problem.n_samples, problem.weights
        shape = (problem.d,) if K == 1 else (problem.d, K)
        self.w = np.zeros(shape) if at.w is None else at.w[self._members]
        self._root = np.sqrt(s) if s.size > 1 else _NONE
        y, X = problem.y.reshape(n, K), problem.samples
        self._mean, self._centre = _NONE, np.zeros(K)
        if problem.intercept:
            each = np.array(np.broadcast_to(s, n)) / float(s.sum() if s.size > 1 else n)
            self._mean, self._centre = X.dot(each), each @ y
            y = y - self._centre
        self._Y = np.zeros((n, K if K == 1 else -(-K // 4) * 4))
        self._Y[:, :K] = y if s.size == 1 else y * self._root[:, None]
        self._R = self._Y.copy()
        self._sizes = np.diff(self.penalty.starts)
        self._single = int(self._sizes.max()) == 1
        self._panels: Panels | None = None
        self._share = 1.0
        self.b = 0.0 if K == 1 else np.zeros(K)
        self._length = math.sqrt(float(X.squared_norms().sum()))

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        if self.w.any():
            self._look_again()
        self.descend()
        if self.theta > 1:
            self.theta = self.fallen(self._most) if not self.w.any() else 1.0

    def _look_again(self) -> None:
        """R anew, from w alone."""
        W = self._own(self.w).reshape(self.problem.d, self._K)
        z = self._times(W[:, 0] if self._K == 1 else W).reshape(-1, self._K)
        if self.problem.intercept:
            z = z - self._mean @ W
        if self._root.size:
            z = z * self._root[:, None]
        self._R = self._Y.copy()
        self._R[:, : self._K] -= z
        self._panels = None
        self.cost += 0.5

    def _balance(self) -> None:
        """R at the best intercept: where columns have large means, rounding has moved it off."""
        if not self.problem.intercept:
            return
        R, n = self._R, self.problem.n_samples
        if self._root.size:
            R -= np.outer(self._root, (self._root @ R) / float(self._root @ self._root))
        else:
            R -= R.sum(axis=0) / n

    def _times(self, w: Any) -> Any:
        """X w, from w alone."""
        return rows_times(cast("Dense", self.problem.samples), w)

    def _x(self) -> Any:
        x = self._R[:, : self._K]
        x = x * self._root[:, None] if self._root.size else x
        return x[:, 0] if self._K == 1 else x

    def descend(self) -> None:
        """`slope` anew, by a pass over the data."""
        self._balance()
        x, samples = self._x(), cast("Dense", self.problem.samples)
        slope = columns_times(samples, x) / self.problem.n
        self.slope = slope if self._single and self._K > 1 else slope[self._members]
        self._scores = self.penalty.norms(self.slope) / self.penalty.a
        self._most = float(self._scores.max(initial=0.0))
        R, n = self._R, self.problem.n
        self._rr, self._yr = float(np.vdot(R, R)), float(np.vdot(self._Y, R))
        self._xx = float(np.vdot(x, x)) if self._root.size else self._rr
        self.seen_at = Seen(_NONE, 0.5 * self._rr / n, _NONE, _NONE)
        self._norms = self.penalty.norms(self.w)
        self.cost += 0.5

    def seen(self, certificate: Certificate) -> None:
        if self.seen_at is not None:
            self._look_again()
            self.descend()

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        super().turn(problem, target)
        if self.seen_at is not None:
            self._scores = self.penalty.norms(self.slope) / self.penalty.a
            self._most = float(self._scores.max(initial=0.0))
        self._panels, self.turned = None, False
        return self

    # ---- the gap --------------------------------------------------------------------------------

    @property
    def _rounding(self) -> float:
        """What rounding can make of |v_q|/a_q, in whatever order sums are made: see `whole`.

        Once here, and once more where a sum is taken again, or x balanced.
        """
        p = self.problem
        length = self._length * math.sqrt(self._xx)
        return 2 * (p.n_samples + 8) * _EPS * length / (p.n * float(self.penalty.a.min()))

    def _gap_at(self, theta: float) -> tuple[float, float]:
        n, room = self.problem.n, self._rounding
        value = self.at.value + theta * float(self.penalty.a @ self._norms)
        most = self._most / theta + (room if room <= 0.1 * self._tol else self.slack * self._most)
        share = self._yr / self._rr if self._rr > 0 else 1.0
        share = min(share, 1 / most) if most > 0 else share
        self._share = share
        return value - (share * self._yr - 0.5 * share * share * self._rr) / n, value

    def point(self) -> Point | Certificate:
        p = self.problem
        w = self._own(self.w)
        if self.seen_at is None:  # a look at where it begins
            return Point(w, None, self.b)
        x: Any = self._share * self._x()
        if self._rounding > 0.1 * self._tol or self.theta > 1:
            b = self._centre - self._mean @ w if p.intercept else self.b
            return Point(w, x, float(b[0]) if p.intercept and self._K == 1 else b)
        z = self._times(w)
        b = self.b
        if p.intercept:
            y, s = p.y.reshape(-1, self._K), np.broadcast_to(p.weights, p.n_samples)
            total = float(s.sum())
            b = s @ (y - z.reshape(-1, self._K)) / total
            b = b + s @ (y - (z.reshape(-1, self._K) + b)) / total
            b = float(b[0]) if self._K == 1 else b
            z = z + b
            if p._imbalance(x) > 1:
                x = x - (s * (x.sum(axis=0) / total) if self._K == 1
                         else np.outer(s, x.sum(axis=0) / total))  # fmt: skip
            if p._imbalance(x) > 1:
                return Point(w, x, b)
        zero = np.zeros_like(w)
        return Certificate(w, x, b, z, p.primal_from(w, z), p.dual_from(x, zero), True)

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        self._renew()
        made = self._panels
        assert made is not None
        t, share = self.tuning, self.tuning.enough * self._tol
        fine, least = math.sqrt(share), share * abs(value)
        made.a = self.theta * self.penalty.a[self._chosen]
        if self._tall:
            wanted = (fine, least, fine, least)
        else:
            first = float(self._scores.max()) / self.theta
            wanted = (t.exact * max(first - 1, 0.0), max(t.inner * gap, least), fine, least)
        before = made.work
        made.solve(wanted, self._model)
        self.cost += (made.work - before) / (
            2.0 * self._K * self.problem.d * self.problem.n_samples
        )
        new = made.weights
        new = new[:, 0] if self._K == 1 else new
        moved = not np.array_equal(self.w[self._places], new)
        self.w[self._places] = new
        if moved:
            self.descend()
        return moved

    def _renew(self) -> None:
        """The panels of the groups to work on: those there were, and more if others violate."""
        more = self._more()
        if not more.size:
            return
        known = self._panels
        starts = self.penalty.starts
        places = (
            more if self._single
            else np.concatenate([np.arange(starts[q], starts[q + 1]) for q in more])
        )  # fmt: skip
        if known is not None:
            self._chosen = np.concatenate([self._chosen, more])
            self._places = np.concatenate([self._places, places])
        else:
            self._chosen, self._places = more, places
        a, W = self.penalty.a[self._chosen], self.w[self._places].reshape(-1, self._K)
        columns, sizes = self._members[places], self._sizes[more]
        if known is not None:
            known.extend(columns, sizes, a, W)
        else:
            p = self.problem
            source = Source(p.samples.stored, self._mean, self._root, 1 / p.n)
            self._panels = Panels(source, columns, sizes, a, W, self._R)
        self.cost += 0.5 * columns.size / self.problem.d

    def _more(self) -> Any:
        """Groups that are to come into the set, the most violated ones if there are many.

        They are in that order, so that what stays zero is in panels of its own.
        """
        score, count = self._scores / self.theta, self._scores.size
        score[self._norms > 0] = np.inf
        support = int(np.count_nonzero(self._norms))
        if self._panels is not None:
            score[self._chosen] = 0.0
        out = int(np.count_nonzero(score > 1))
        if out == 0 and self._panels is not None:
            return np.empty(0, np.intp)
        most = out
        if not self._tall:
            columns = max(self.tuning.first, TUNING.share * self.problem.d)
            most = min(out, max(support, int(columns * count / self.problem.d)))
        size = min(max(most, 1), count)
        return np.argsort(-score, kind="stable")[:size]

    def _model(
        self, G: Matrix, g: Matrix, W: Matrix, starts: Any, bend: Vector, a: Vector, wanted: Any
    ) -> Matrix:
        model = GroupModel(G, g, W, GroupPenalty(a, starts), self.tuning, bend)
        model.solve(*wanted)
        return model.v
