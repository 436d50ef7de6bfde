"""Working sets of groups for the squared loss on dense or small data: what is left of y is kept.

With weights s and the best intercept taken out, the problem is plain least squares: rows times
sqrt(s_i), columns and targets less their means. R = Y - X W there, and

    x = s r,   P = |R|^2/(2 n) + alpha g(W),   D(t x) = (t <Y, R> - t^2 |R|^2/2)/n

for every t at which t x is feasible. `group_panels` brings P down on a set.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._base.validation import Matrix, Vector
from ....certify.certificate import stated
from ....certify.points import Certificate, Point, Start
from ....data import Dense, Sparse, views
from ....problems.erm import ERM
from ...base import Budget, Target
from ..losses_at import Seen
from ..run import SparseRun
from ..tuning import SetTuning
from .gram import GramSet
from .model import GroupModel, GroupPenalty
from .panels import TUNING, Panels, Source, gram_first
from .run import GroupRun

_EPS = float(np.finfo(float).eps)
_NONE = np.empty(0)


class _Squares:
    """What a run asks of its losses."""

    constant = True


class SquaresRun(GroupRun):
    """The method at work."""

    tall_at = TUNING.tall_at

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        """Sparse data is copied to a dense array."""
        self._given, own = problem.samples, problem
        if isinstance(self._given, Sparse):
            own = problem.altered(samples=Dense(self._given.view(views.table)))
        super().__init__(own, at, target, tuning)

    def goes_on(self, problem: ERM, w: Any = None) -> bool:
        return problem.samples is self._given and super().goes_on(self._on_own(problem), w)

    def _on_own(self, problem: ERM) -> ERM:
        """A problem on the data as given, on the data of the run."""
        if self._given is self.problem.samples:
            return problem
        return problem.altered(samples=self.problem.samples)

    def _prepare(self, problem: ERM, at: Start) -> None:
        self.losses = _Squares()  # type: ignore[assignment]
        K, n, s = problem.K, problem.n_samples, problem.weights
        shape = (problem.d,) if K == 1 else (problem.d, K)
        self.w = np.zeros(shape) if at.w is None else at.w[self._members]
        self._root = np.sqrt(s) if s.size > 1 else _NONE
        y, X = problem.y.reshape(n, K), problem.samples
        self._mean, self._centre = _NONE, np.zeros(K)
        self._Y = y
        if problem.intercept:  # the part of each row in a mean
            self._each = s / float(s.sum()) if s.size > 1 else np.full(n, 1 / n)
            self._mean, self._centre = X.adjoint(self._each), self._each @ y
            self._Y = y - self._centre
        if s.size > 1:
            self._Y = self._Y * self._root[:, None]
        self._R = self._Y  # of w = 0
        # not below this, in case that squares underflow; so in `_rounding`
        self._length = max(math.sqrt(float(X.squared_norms().sum())), 1e-140)
        self._penalise(problem)
        starts = self.penalty.starts
        self._sizes = starts[1:] - starts[:-1]
        self._single = starts.size == problem.d + 1
        self._set: Panels | GramSet | None = None
        self._z: Any = None  # X w, if it was computed from w alone
        self._share = 1.0
        self.b = 0.0 if K == 1 else np.zeros(K)

    def _penalise(self, problem: ERM) -> None:
        super()._penalise(problem)
        self._a = self.penalty.a[self._chosen]
        a = self.penalty.a
        least = problem.n * float(a.min() if problem.K == 1 else a[0])  # of rows all are the same
        self._unit = 2 * (problem.n_samples + 8) * _EPS * self._length / least

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        zero = not self.w.any()
        if not zero:
            self._look_again()
        self.descend()
        if self.theta > 1:
            self.theta = self.fallen(self._most) if zero else 1.0

    def _look_again(self) -> None:
        """R anew, from w alone, with the best b."""
        p, w = self.problem, self._own(self.w)
        self._z = self._times(w)
        R = (p.y - self._z).reshape(-1, self._K)
        if p.intercept:
            self._best_b = self._each @ R
            R -= self._best_b
        if self._root.size:
            R *= self._root[:, None]
        self._R = R
        self._balance()
        if isinstance(self._set, Panels):  # it had the R there was
            self._set = None
        self.cost += 0.5

    def _balance(self) -> None:
        """R at the best intercept: where columns have large means, rounding has moved it off."""
        if not self.problem.intercept:
            return
        R = self._R
        if self._root.size:
            R -= np.outer(self._root, (self._root @ R) / float(self._root @ self._root))
        else:
            R -= self._each @ R

    def _times(self, w: Any) -> Any:
        """X w, from w alone."""
        return self.problem.samples.times(w)

    def _x(self) -> Any:
        x = self._R * self._root[:, None] if self._root.size else self._R
        return x[:, 0] if self._K == 1 else x

    def descend(self) -> None:
        """`slope` anew, by a pass over the data."""
        x = self._x()
        slope = self.problem.samples.adjoint(x) / self.problem.n
        self.slope = slope if self._single and self._K > 1 else slope[self._members]
        self._scores = self.penalty.norms(self.slope) / self.penalty.a
        self._most = float(self._scores.max(initial=0.0))
        R, n = self._R, self.problem.n
        self._rr = float(np.vdot(R, R))
        self._yr = self._rr if R is self._Y else float(np.vdot(self._Y, R))
        self._xx = float(np.vdot(x, x)) if self._root.size else self._rr
        self.seen_at = Seen(_NONE, 0.5 * self._rr / n, _NONE, _NONE)
        first = R is self._Y  # w is zero
        self._norms = np.zeros_like(self._scores) if first else self.penalty.norms(self.w)
        self.cost += 0.5

    def seen(self, certificate: Certificate) -> None:
        if self.seen_at is not None:
            self._look_again()
            self.descend()

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        super().turn(self._on_own(problem), target)
        if self.seen_at is not None:
            self._scores = self.penalty.norms(self.slope) / self.penalty.a
            self._most = float(self._scores.max(initial=0.0))
        self._set = self._set if isinstance(self._set, GramSet) else None
        self.turned = False
        return self

    # ---- the gap --------------------------------------------------------------------------------

    @property
    def _rounding(self) -> float:
        """What rounding can make of |v_q|/a_q, in whatever order sums are made: see `whole`.

        Once here, and once more where a sum is taken again, or x balanced.
        """
        return self._unit * math.sqrt(max(self._xx, 1e-280))

    def _gap_at(self, theta: float) -> tuple[float, float]:
        n, room = self.problem.n, self._rounding
        value = self.at.value + theta * float(self.penalty.a @ self._norms)
        most = self._most / theta + (room if room <= 0.1 * self._tol else self.slack * self._most)
        share = self._yr / self._rr if self._rr > 0 else 1.0
        if most > 0:  # it is negative where <Y, R> is: a start far beyond Y
            share = max(min(share, 1 / most), -1 / most)
        self._share = share
        return value - (share * self._yr - 0.5 * share * share * self._rr) / n, value

    def point(self) -> Point | Certificate:
        p = self.problem
        w = self._own(self.w)
        if self.seen_at is None:  # a look at where it begins
            return Point(w, None, self.b)
        x: Any = self._share * self._x()
        if self._rounding > 0.1 * self._tol:
            b = self._centre - self._mean @ w if p.intercept else self.b
            return Point(w, x, float(b[0]) if p.intercept and self._K == 1 else b)
        known, b = self._z is not None, self.b
        z = self._z if known else self._times(w)
        if p.intercept:
            b = self._best_b if known else self._each @ (p.y - z).reshape(-1, self._K)
            z = z + (b[0] if self._K == 1 else b)
            if p.imbalance(x) > 1:
                x = x - (self._each if self._K == 1 else self._each[:, None]) * x.sum(axis=0)
                if p.imbalance(x) > 1:
                    return Point(w, x, float(b[0]) if self._K == 1 else b)
            b = float(b[0]) if self._K == 1 else b
        if p.g.excess(self._own(self.slope) * (self._share / p.alpha)) > 1:
            return Point(w, x, b)
        # x is feasible, so that g* is 0 as it is at v = 0
        dual = -p.conjugate_total(x) / p.n if self._K > 1 else p.dual_from(x, np.zeros_like(w))
        return stated(w, x, b, z, p.primal_from(w, z), dual)

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        self._renew()
        made = self._set
        assert made is not None
        t, share = self.tuning, self.tuning.enough * self._tol
        fine, least = math.sqrt(share), share * abs(value)
        made.a = self._a if self.theta == 1 else self.theta * self._a
        if self._tall:
            wanted = (fine, least, fine, least)
        else:
            first = float(self._scores.max()) / self.theta
            wanted = (t.exact * max(first - 1, 0.0), max(t.inner * gap, least), fine, least)
        before, old = made.work, self.w[self._places]
        if isinstance(made, GramSet):
            made.begin_at(self.slope[self._places], old)
        made.solve(wanted, self._model)
        self.cost += (made.work - before) / (
            2.0 * self._K * self.problem.d * self.problem.n_samples
        )
        new = made.weights.reshape(old.shape)
        if not np.isfinite(new).all():  # squares overflow, or a Gram matrix underflows
            self._set = None
            self._look_again()
            self.descend()
            return False
        if not (old != new).any():
            return False
        self.w[self._places], self._z = new, None
        if isinstance(made, GramSet):
            self._look_again()
        else:
            self._R = made.R[:, : self._K]
            self._balance()
        self.descend()
        return True

    def _renew(self) -> None:
        """The set of groups to work on: those there were, and more if others violate."""
        more = self._more()
        if not more.size:
            return
        known, p, starts = self._set, self.problem, self.penalty.starts
        size = more.size if self._single else int(self._sizes[more].sum())
        by_gram = isinstance(known, GramSet) or (
            known is None and self._tall and gram_first(p.n_samples, size, self._K)
        )
        # panels have what violates most first, so that what stays zero is in panels of its own
        more = more if by_gram else more[np.argsort(-self._scores[more], kind="stable")]
        places = more
        if not self._single:
            places = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in more])
        if known is None:
            self._chosen, self._places = more, places
        else:
            self._chosen = np.concatenate([self._chosen, more])
            self._places = np.concatenate([self._places, places])
        columns, sizes = self._members[places], self._sizes[more]
        self._a = a = self.penalty.a[self._chosen]
        source = Source(p.samples.view(views.whole), self._mean, self._root, 1 / p.n)
        if known is not None:
            known.extend(columns, sizes, a, self.w[self._places].reshape(-1, self._K))
        elif by_gram:
            self._set = GramSet(source, columns, sizes, a)
        else:
            W = self.w[self._places].reshape(-1, self._K)
            self._set = Panels(source, columns, sizes, a, W, self._R)
        self.cost += 0.5 * columns.size / self.problem.d

    def _more(self) -> Any:
        """Groups that are to come into the set, the most violated ones if there are many."""
        inside = self._norms > 0
        wanted = inside | (self._scores > self.theta)
        if self._set is not None:
            wanted[self._chosen] = False
        more = np.flatnonzero(wanted)
        if self._set is None and not more.size:
            return np.array([int(np.argmax(self._scores))])
        if self._tall:
            whole = self._set is None and more.size > TUNING.most * wanted.size
            return np.arange(wanted.size) if whole else more
        if not more.size:
            return more
        count, columns = inside.size, max(self.tuning.first, TUNING.share * self.problem.d)
        support = int(np.count_nonzero(inside))
        most = max(support, int(columns * count / self.problem.d), 1)
        if more.size <= most:
            return more
        score = np.where(inside, np.inf, self._scores)[more]
        return more[np.argsort(-score, kind="stable")[:most]]

    def _model(
        self, G: Matrix, g: Matrix, W: Matrix, starts: Any, bend: Vector, a: Vector, wanted: Any
    ) -> Matrix:
        model = GroupModel(G, g, W, GroupPenalty(a, starts), self.tuning, bend)
        model.solve(*wanted)
        return model.v
