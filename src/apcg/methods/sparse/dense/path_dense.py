"""The squared loss on dense data for all alphas of a path: a stretch of them on one set of columns.

A stretch takes the columns that its last alpha is likely to need, by their slopes at the alpha
before the stretch:

    |slope_j| >= a_j (alpha_last + reach (alpha_before - alpha_last))

(The strong rule of Tibshirani and others has reach = -1; a set is to be small, and may err.) All
its alphas are solved on the Gram matrix of the set in one call of a kernel. Then all are looked at
together (`certify_many`): one product with X finds what violates outside the set, and is all that
the certificates need. Points that are not good enough are solved again, with what violated in the
set.

With few columns the set has all of them, and there is one stretch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...._base.validation import Index, Mask, Matrix, Vector
from ...._kernels.sparse import lasso
from ....certify.certificate import Certificate, certify, stated
from ....certify.points import Point
from ....certify.scales import is_rounding
from ....data import Dense, views
from ....losses import Squared
from ....problems.erm import ERM
from ..gram import NEWTONS
from ..penalty import ScaledPenalty
from ..run import STALL
from ..tuning import SetTuning
from .certify_many import Looks, look

#: sweeps go on between Newton's steps while they are predicted to end within so many, or within
#: what a factor costs; 2, 10 and 20 took 1.0 to 1.1, 0.95 to 1.05 and 0.95 to 1.05 of the time on
#: one-hot rows and regressions
SWEEPS = 5
#: a set has up to so many times the support; 3 took 1.0 to 1.1 of the time
ROOMY = 2


class GrowingSet:
    """A set of columns X_j of X, with G = A A'/n and q = A t/n.

    The rows of A are sqrt(s)(X_j - its mean), and t = sqrt(s)(y - its mean). These means are
    weighted by s, and 0 without an intercept.

    ids    which columns
    rows   they, as rows, as they are in X
    total  t't/n
    """

    def __init__(self, problem: ERM) -> None:
        self._X, self._n, y, s = (
            problem.samples.view(views.whole),
            problem.n,
            problem.y,
            problem.weights,
        )
        self._root = np.sqrt(s) if s.size > 1 else None
        each = np.broadcast_to(s, y.shape)
        self._share = each / each.sum() if problem.intercept else None
        self._t = self._prepared(y[None])[0]
        self.total = float(self._t @ self._t) / self._n
        self.ids, self.rows = np.empty(0, np.intp), np.empty((0, y.size))
        self._A, self._G, self.q = self.rows, np.empty((0, 0)), np.empty(0)

    def _prepared(self, rows: Matrix) -> Matrix:
        """Less their means, and times sqrt(s)."""
        if self._share is not None:
            rows = rows - (rows @ self._share)[:, None]
        return rows if self._root is None else rows * self._root

    def keep(self, some: Index) -> None:
        """Only these, by their places in the set, in that order."""
        same, known = self._A is self.rows, some[some < len(self._G)]
        self.ids, self.rows, self.q = self.ids[some], self.rows[some], self.q[some]
        self._A = self.rows if same else self._A[some]
        self._G = self._G[np.ix_(known, known)]

    def extend(self, more: Index) -> None:
        """With more columns of X."""
        if self.ids.size == 0:
            whole = more.size == self._X.shape[1]
            self.ids, self.rows = more, self._X.T if whole else self._taken(more)
            self._A = self._prepared(self.rows)
            self.q = self._A @ self._t / self._n
            return
        rows = self._taken(more)
        A, same = self._prepared(rows), self._A is self.rows
        self.ids, self.rows = np.concatenate([self.ids, more]), np.concatenate([self.rows, rows])
        self._A = self.rows if same else np.concatenate([self._A, A])
        self.q = np.concatenate([self.q, A @ self._t / self._n])

    @property
    def G(self) -> Matrix:
        """Of all columns; what is not known of it is computed."""
        m = len(self._G)
        if m < self.ids.size:
            new, G = self._A @ self._A[m:].T, np.empty((self.ids.size,) * 2)
            new /= self._n
            G[:m, :m], G[:, m:], G[m:, :m] = self._G, new, new[:m].T
            self._G = G
        return self._G

    def _taken(self, some: Index) -> Matrix:
        return np.ascontiguousarray(self._X[:, some].T)


class Walk:
    """Where it is on the path: at the point w of the set, at alpha, with the slopes of all columns.

    score  |slope_j|/a_j; where the last points were not good enough, the largest of them
    """

    def __init__(self, problem: ERM, tol: float, alphas: Vector, tuning: SetTuning) -> None:
        g = problem.interval
        self._problem, self._tol, self._tuning = problem, tol, tuning
        self._unit = ScaledPenalty(g.a, g.b, g.lower, g.upper)
        self._set, self._w = GrowingSet(problem), np.zeros(0)
        none = self._unit.on(self._set.ids)
        start = look(problem, np.ones(1), np.zeros((1, 0)), self._set.rows, none)
        self._slope, self._score = start.slopes[0], self._scored(np.abs(start.slopes[0]))
        self._alpha = float(self._score.max(initial=0.0))
        grid, d = np.append(self._alpha, alphas), problem.d
        #: whether alpha falls by so much at once that there has to be a way between
        self.coarse = bool((grid[:-1] > tuning.stage[0] * grid[1:]).any())
        first, more = tuning.columns_for
        few = tuning.few_columns if self.coarse else tuning.at_once
        self.whole = d <= min(few, problem.n, first + more * alphas.size)

    def _scored(self, size: Vector) -> Vector:
        a = self._unit.a
        return size if a.size == 1 and a[0] == 1 else size / a

    @property
    def fits(self) -> bool:
        """Whether the set is not too large for Newton steps on it."""
        return self._set.ids.size <= self._tuning.widest_stretch

    def stretch(self, alphas: Vector) -> tuple[Matrix, Looks]:
        """The next of the alphas, as many as a set is good for, as far as they come to an end."""
        count = self._choose(alphas)
        W = self._solved(alphas[: count if self.fits else 0])
        on = self._unit.on(self._set.ids)
        return W, look(self._problem, alphas[: len(W)], W, self._set.rows, on)

    def found(self, w: Vector, looks: Looks, k: int) -> Certificate:
        """The point k of a stretch."""
        every = np.zeros(self._problem.d)
        every[self._set.ids] = w
        b, primal, dual = float(looks.b[k]), float(looks.primal[k]), float(looks.dual[k])
        return stated(every, looks.x[k], b, np.empty(0), primal, dual)

    def certified(self, alpha: float, found: Certificate) -> Certificate | None:
        """A point that came near, with a certificate of its own: it has no bounds on rounding."""
        problem = self._problem.with_alpha(alpha)
        with np.errstate(all="ignore"):
            alone = certify(problem, Point(found.w, None, found.b))
            fine = alone.relative <= self._tol or is_rounding(problem, alone)
        return alone if fine else None

    def go_on(self, alphas: Vector, W: Matrix, looks: Looks, bad: Index) -> None:
        """From the last point of a stretch, or from the first that was not good enough."""
        k = int(bad[0]) if bad.size else len(W) - 1
        self._alpha, self._w, self._slope = float(alphas[k]), W[k], looks.slopes[k]
        size = np.abs(self._slope)
        if bad.size > 1:
            share = self._alpha / alphas[bad]
            size = np.max(np.abs(looks.slopes[bad]) * share[:, None], axis=0)
        self._score = self._scored(size)

    def _choose(self, alphas: Vector) -> int:
        """A set for the next alphas, and for how many of them."""
        t, n, d = self._tuning, self._problem.n_samples, self._problem.d
        # so that predictions and slopes take no more room than X, or than a cache
        alphas = alphas[: min(max(d, t.stretch_room // n), max(n, t.stretch_room // d))]
        if self.whole or self._set.ids.size == d:
            self._take_all()
            return alphas.size
        support = self._set.ids[self._w != 0]
        room = max(t.first, ROOMY * support.size)
        least = float(np.partition(self._score, d - room)[d - room]) if room < d else 0.0
        near, far = (self._alpha / fall for fall in t.stretch)
        alphas = alphas[: max(1, int(np.count_nonzero(alphas >= far)))]
        cut = alphas + t.reach * np.maximum(self._alpha - alphas, 0.0)
        count = max(1, int(np.count_nonzero((cut >= least) | (alphas >= near))))
        wanted = self._score >= max(float(cut[count - 1]), least)
        wanted[support] = True
        if d <= min(t.few_columns, self._problem.n) and t.part * np.count_nonzero(wanted) > d:
            self._take_all()
            return alphas.size
        self._take(wanted, 2 * room)
        return count

    def _take(self, wanted: Mask, most: int) -> None:
        """A set with what is wanted; what it had stays, if it then has no more than `most`."""
        ids = self._set.ids
        new = wanted.copy()
        new[ids] = False
        more = np.flatnonzero(new)
        if ids.size + more.size > most:
            some = np.flatnonzero(wanted[ids])
            self._set.keep(some)
            self._w = self._w[some]
        if more.size:
            self._set.extend(more)
            self._w = np.concatenate([self._w, np.zeros(more.size)])

    def _take_all(self) -> None:
        d = self._problem.d
        if self._set.ids.size < d:
            w = np.zeros(d)
            w[self._set.ids] = self._w
            self._set, self._w = GrowingSet(self._problem), w
            self._set.extend(np.arange(d))

    def _solved(self, alphas: Vector) -> Matrix:
        """The answers on the set, a row each, as far as they came to an end."""
        t, own, on = self._tuning, self._set, self._unit.on(self._set.ids)
        return solved(
            own.G, own.q, own.total, self._slope[own.ids], self._w, on, alphas, self._tol, t
        )


def solved(
    G: Matrix, q: Vector, total: float, descent: Vector, w: Vector, unit: ScaledPenalty,
    alphas: Vector, tol: float, tuning: SetTuning,
) -> Matrix:  # fmt: skip
    """minimize (1/2) w'G w - q'w + alpha g(w) for one alpha after the other, to a gap of about tol.

    It begins at w, where descent = q - G w. The value at 0 is total/2. An answer that did not come
    to an end is the first that is missing in the rows.
    """
    m, share = w.size, tuning.enough * tol
    out = np.empty((alphas.size, m))
    room = np.empty((m, m)), np.empty(m, np.intp), np.empty((8, m))
    done = lasso.gram_path(
        G, q, total, descent.copy(), w.copy(), *unit.parts, alphas, unit.least * math.sqrt(share),
        share, SWEEPS, NEWTONS, tuning.turns, *room, out,
    )  # fmt: skip
    return out[:done]


def applies(problem: ERM) -> bool:
    """Whether it is the squared loss on dense data in double precision, with an L1 part for all."""
    X = problem.samples
    if problem.K > 1 or not problem.separable or not isinstance(problem.loss, Squared):
        return False
    if not isinstance(X, Dense) or X.view(views.whole).dtype != np.float64:
        return False
    on = ScaledPenalty.of(problem)
    return not on.bounded and bool(on.a.min() > 0) and (on.ridged or not on.b.any())


def answers(problem: ERM, grid: Vector, tol: float) -> Iterator[tuple[int, Certificate]]:
    """Places in the grid, from the largest alpha on, and the answers.

    Their gap is at most tol, or rounding. What is missing is not for here.
    """
    if not applies(problem):
        return
    tuning, tries = SetTuning(), 0
    todo = np.argsort(-grid, kind="stable")
    with np.errstate(all="ignore"):
        walk = Walk(problem, tol, grid[todo], tuning)
    while todo.size and (walk.whole or not walk.coarse):
        alphas = grid[todo]
        with np.errstate(all="ignore"):
            W, looks = walk.stretch(alphas)
            good = looks.within(tol)
        if not len(W) or not np.isfinite(looks.slopes).all():
            return
        for k in map(int, np.flatnonzero(good | looks.within(STALL))):
            found: Certificate | None = walk.found(W[k], looks, k)
            if found is not None and not good[k]:
                found = walk.certified(float(alphas[k]), found)
                good[k] = found is not None
            if found is not None:
                yield int(todo[k]), found
        left, bad = np.ones(todo.size, bool), np.flatnonzero(~good)
        walk.go_on(alphas, W, looks, bad)
        left[: len(W)] = ~good
        tries = 0 if good[0] else tries + 1
        if tries == tuning.tries:  # it is left out
            left[0], tries = False, 0
        todo = todo[left]
