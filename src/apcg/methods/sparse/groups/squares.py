"""Working sets of groups for the squared loss on dense or small data: what is left of y is kept.

With weights s and the best intercept taken out, the problem is plain least squares: rows times
sqrt(s_i), columns and targets less their means. R = Y - X W there, and

    x = s r,   P = |R|^2/(2 n) + alpha g(W),   D(t x) = (t <Y, R> - t^2 |R|^2/2)/n

for every t at which t x is feasible. `panels` brings P down on a set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ....certify.certificate import stated
from ....certify.points import Certificate, Point, Start
from ....data import Dense, views
from ....problems.erm import ERM
from ...base import Budget, Target
from ..losses_at import Evaluated
from ..run import SparseRun
from ..state import placed
from ..tuning import SetTuning
from .gram import GramSet
from .model import GroupModel, GroupPenalty
from .panels import TUNING, Panels, PanelSource, gram_first
from .run import GroupRun, GroupsChosen

_EPS = float(np.finfo(float).eps)
_NONE = np.empty(0)


class Targets:
    """The targets with the best intercept taken out, and what takes it out.

    Y       the targets less their means, rows times root
    root    sqrt(s_i), or empty
    each    the part of each row in a mean; empty without an intercept
    mean    the means of the columns, or empty
    length  the norm of X; not below 1e-140, in case that squares underflow
    """

    def __init__(self, problem: ERM) -> None:
        n, s, X = problem.n_samples, problem.weights, problem.samples
        y = problem.y.reshape(n, problem.K)
        self.root = np.sqrt(s) if s.size > 1 else _NONE
        self.each, self.mean, self.centre, self.Y = _NONE, _NONE, np.zeros(problem.K), y
        if problem.intercept:
            self.each = s / float(s.sum()) if s.size > 1 else np.full(n, 1 / n)
            self.mean, self.centre = X.adjoint(self.each), self.each @ y
            self.Y = y - self.centre
        if s.size > 1:
            self.Y = self.Y * self.root[:, None]
        self.length = max(math.sqrt(float(X.squared_norms().sum())), 1e-140)

    def left(self, R: Matrix, z: Any) -> Left:
        """What is left of the targets where the predictions are z, from y - z; and the best b."""
        b = None
        if self.each.size:
            b = self.each @ R
            R -= b
        if self.root.size:
            R *= self.root[:, None]
        return Left(self.balanced(R), z, b)

    def balanced(self, R: Matrix) -> Matrix:
        """R at the best intercept: where columns have large means, rounding has moved it off."""
        if self.each.size and self.root.size:
            R -= np.outer(self.root, (self.root @ R) / float(self.root @ self.root))
        elif self.each.size:
            R -= self.each @ R
        return R

    def dual(self, R: Matrix) -> Any:
        """x of R."""
        x = R * self.root[:, None] if self.root.size else R
        return x[:, 0] if R.shape[1] == 1 else x


@dataclass(frozen=True, eq=False)
class Left:
    """R = Y - X W, and z = X w with its best b if R was computed from w alone."""

    R: Matrix
    z: Any = None
    b: Any = None


@dataclass(frozen=True, eq=False)
class SquareSums:
    """<R, R>, <Y, R>, <x, x>, the norms of groups of w, and those of slopes over a_q."""

    rr: float
    yr: float
    xx: float
    norms: Vector
    scores: Vector

    @property
    def most(self) -> float:
        """The largest score."""
        return float(self.scores.max(initial=0.0))


class SquaresRun(GroupRun):
    """The method at work."""

    tall_at = TUNING.tall_at

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        """Sparse data is copied to a dense array."""
        self._given, own = problem.samples, problem
        if self._given.sparse:
            own = problem.altered(samples=Dense(self._given.view(views.table)))
        super().__init__(own, at, target, tuning)
        self.now(b=0.0 if problem.K == 1 else np.zeros(problem.K))
        self._targets = Targets(own)
        self._left = Left(self._targets.Y)  # of w = 0
        self._sums: Any = None
        self._share = 1.0  # x is so many times that of R

    def goes_on(self, problem: ERM, w: Any = None) -> bool:
        return problem.samples is self._given and super().goes_on(self._on_own(problem), w)

    def _on_own(self, problem: ERM) -> ERM:
        """A problem on the data as given, on the data of the run."""
        if self._given is self.problem.samples:
            return problem
        return problem.altered(samples=self.problem.samples)

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        zero = not self.w.any()
        if not zero:
            self._look_again()
        self.descend()
        if self.theta > 1:
            self.theta = self.fallen(self._sums.most) if zero else 1.0

    def _look_again(self) -> None:
        """R anew, from w alone, with the best b."""
        p = self.problem
        z = p.samples.times(self.losses.own(self.w))
        self._left = self._targets.left((p.y - z).reshape(-1, p.K), z)
        if self._set is not None and not self._set.block.by_gram:  # it had the R there was
            self._set = None
        self.cost += 0.5

    def descend(self, near: Vector | None = None) -> None:
        """`descent` anew, by a pass over the data."""
        R, Y, n = self._left.R, self._targets.Y, self.problem.n
        x, zero = self._targets.dual(R), R is Y
        descent = self.problem.samples.adjoint(x) / n
        if self.losses.members is not None:
            descent = descent[self.losses.members]
        rr = float(np.vdot(R, R))
        yr = rr if zero else float(np.vdot(Y, R))
        xx = float(np.vdot(x, x)) if self._targets.root.size else rr
        scores = self.penalty.norms(descent) / self.penalty.a
        norms = np.zeros_like(scores) if zero else self.penalty.norms(self.w)
        self._sums = SquareSums(rr, yr, xx, norms, scores)
        self.now(descent=descent, seen=Evaluated(_NONE, 0.5 * rr / n, _NONE, _NONE))
        self.cost += 0.5

    def seen(self, certificate: Certificate) -> None:
        if self.begun:
            self._look_again()
            self.descend()

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        super().turn(self._on_own(problem), target)
        scores = self.penalty.norms(self.descent) / self.penalty.a
        self._sums = replace(self._sums, scores=scores)
        if self._set is not None and not self._set.block.by_gram:
            self._set = None
        self.turned = False
        return self

    # ---- the gap --------------------------------------------------------------------------------

    @property
    def _rounding(self) -> float:
        """What rounding can make of |v_q|/a_q, in whatever order sums are made.

        Once here, and once more where a sum is taken again, or x balanced.
        """
        p, a = self.problem, self.penalty.a
        least = p.n * float(a.min() if p.K == 1 else a[0])  # of rows all are the same
        unit = 2 * (p.n_samples + 8) * _EPS * self._targets.length / least
        return unit * math.sqrt(max(self._sums.xx, 1e-280))

    def _gap_here(self) -> tuple[float, float]:
        n, room, sums, theta = self.problem.n, self._rounding, self._sums, self.theta
        value = self.at.value + theta * float(self.penalty.a @ sums.norms)
        most = sums.most / theta + (room if room <= 0.1 * self._tol else self.slack * sums.most)
        share = sums.yr / sums.rr if sums.rr > 0 else 1.0
        if most > 0:  # it is negative where <Y, R> is: a start far beyond Y
            share = max(min(share, 1 / most), -1 / most)
        self._share = share
        return value - (share * sums.yr - 0.5 * share * share * sums.rr) / n, value

    def point(self) -> Point | Certificate:
        p, own, targets = self.problem, self.losses.own, self._targets
        w, one = own(self.w), p.K == 1
        if not self.begun:  # a look at where it begins
            return Point(w, None, self.b)
        x: Any = self._share * targets.dual(self._left.R)
        if self._rounding > 0.1 * self._tol:
            b = targets.centre - targets.mean @ w if p.intercept else self.b
            return Point(w, x, float(b[0]) if p.intercept and one else b)
        z, b = self._left.z, self._left.b if p.intercept else self.b
        if z is None:
            z = p.samples.times(w)
            b = targets.each @ (p.y - z).reshape(-1, p.K) if p.intercept else b
        if p.intercept:
            z, b = z + (b[0] if one else b), float(b[0]) if one else b
            if p.imbalance(x) > 1:
                x = x - (targets.each if one else targets.each[:, None]) * x.sum(axis=0)
                if p.imbalance(x) > 1:
                    return Point(w, x, b)
        if p.g.excess(own(self.descent) * (self._share / p.alpha)) > 1:
            return Point(w, x, b)
        # x is feasible, so that g* is 0 as it is at v = 0
        dual = p.dual_from(x, np.zeros_like(w)) if one else -p.conjugate_total(x) / p.n
        return stated(w, x, b, z, p.primal_from(w, z), dual)

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        self._choose()
        made, places = self._set.block, self._set.places
        made.a = self.penalty.times(self.theta).a[self._set.groups]
        before, old = made.work, self.w[places]
        if made.by_gram:
            made.begin_at(self.descent[places], old)
        made.solve(self._until(gap, value), self._model)
        p = self.problem
        self.cost += (made.work - before) / (2.0 * p.K * p.d * p.n_samples)
        new = made.weights.reshape(old.shape)
        if not np.isfinite(new).all():  # squares overflow, or a Gram matrix underflows
            self._set = None
            self._look_again()
            self.descend()
            return False
        if not (old != new).any():
            return False
        self.now(w=placed(self.w, places, new))
        if made.by_gram:
            self._look_again()
        else:
            self._left = Left(self._targets.balanced(made.R[:, : p.K]))
        self.descend()
        return True

    def _until(self, gap: float, value: float) -> tuple[float, float, float, float]:
        """How well to solve on a set: as in `wanted`, with violations relative to a_q."""
        t, share = self.tuning, self.tuning.enough * self._tol
        fine, least = math.sqrt(share), share * abs(value)
        if self._tall:
            return fine, least, fine, least
        first = max(self._sums.most / self.theta - 1, 0.0)
        return t.exact * first, max(t.inner * gap, least), fine, least

    def _choose(self) -> None:
        """The set of groups to work on: those there were, and more if others violate."""
        more = self._more()
        if not more.size:
            return
        known, p, penalty = self._set, self.problem, self.penalty
        size = penalty.places(more).size
        by_gram = known is None and self._tall and gram_first(p.n_samples, size, p.K)
        by_gram = by_gram or (known is not None and known.block.by_gram)
        # panels have what violates most first, so that what stays zero is in panels of its own
        more = more if by_gram else more[np.argsort(-self._sums.scores[more], kind="stable")]
        places, sizes = penalty.places(more), np.diff(penalty.starts)[more]
        columns = places if self.losses.members is None else self.losses.members[places]
        chosen = more if known is None else np.concatenate([known.groups, more])
        places = places if known is None else np.concatenate([known.places, places])
        a, W = penalty.a[chosen], self.w[places].reshape(-1, p.K)
        if known is not None:
            block = known.block
            block.extend(columns, sizes, a, W)
        else:
            block = self._made(columns, sizes, a, W, by_gram)
        self._set = GroupsChosen(chosen, places, block)
        self.cost += 0.5 * columns.size / p.d

    def _made(
        self, columns: Index, sizes: Index, a: Vector, W: Matrix, by_gram: bool
    ) -> GramSet | Panels:
        p, targets = self.problem, self._targets
        source = PanelSource(p.samples.view(views.whole), targets.mean, targets.root, 1 / p.n)
        if by_gram:
            return GramSet(source, columns, sizes, a)
        return Panels(source, columns, sizes, a, W, self._left.R)

    def _more(self) -> Index:
        """Groups that are to come into the set, the most violated ones if there are many."""
        scores, inside = self._sums.scores, self._sums.norms > 0
        wanted = inside | (scores > self.theta)
        if self._set is not None:
            wanted[self._set.groups] = False
        more = np.flatnonzero(wanted)
        if self._set is None and not more.size:
            return np.array([int(np.argmax(scores))])
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
        score = np.where(inside, np.inf, scores)[more]
        return more[np.argsort(-score, kind="stable")[:most]]

    def _model(
        self, G: Matrix, g: Matrix, W: Matrix, starts: Any, bend: Vector, a: Vector, wanted: Any
    ) -> Matrix:
        model = GroupModel(G, g, W, GroupPenalty(a, starts), self.tuning, bend)
        model.solve(*wanted)
        return model.v
