"""An interior point method for the hinge family and the epsilon-insensitive loss, for n >> d.

The losses are sums of pieces max(0, h - g z) of the predictions z = X w + b: one for the hinge (g
is the label, h = 1), two for |z - y| - epsilon (g = 1 and -1). Times n, with s_i the weights,

    minimize sum_i s_i xi_i + (lambda n/2) sum_j b_j w_j^2   subject to   xi >= h - g z, xi >= 0

has the optimality conditions, with 0 < a < s the dual variables, sigma the slack and mu -> 0,

    lambda n b w = X' g a      h - g z - c a - xi + sigma = 0      a sigma = mu      (s - a) xi = mu

with c = 0. The pinball loss is a hinge of the residual plus a line: x = a - (1 - q) s. A smooth
loss of the family has c = gamma/s. For the squared hinge, a has no upper bound and there is no xi.

Newton's method on them is one Cholesky factor of lambda n diag(b) + X' diag(1/theta) X a step, with
theta = sigma/a + xi/(s - a) + c: d x d, whatever n is. Mehrotra's predictor says how far mu can
fall, and corrects the step to second order. The number of steps, 15 to 60, hardly depends on
lambda, where coordinate descent needs more passes the smaller lambda is.

Some rows may be fixed: then the problem is solved for the x_i of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..._base.validation import Index, Vector
from ..._base.validation import Matrix as Table
from ..._kernels.interior import interior as kernel
from ...certify.points import Certificate, Point, Start
from ...data import views
from ...losses import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    Pinball,
    SmoothedHinge,
    SquaredHinge,
)
from ...problems.erm import ERM
from ...problems.objective import Objective
from ..base import ONE_OUTPUT, QUADRATIC_OR_NONE, Need, Needs, Target
from ..linalg import factor
from ..linalg.factor import Factor
from .pieces import InteriorPoints, Pieces, centred, step_length

PIECEWISE_LINEAR = Need(
    'loss "hinge" or "epsilon_insensitive"',
    lambda p: type(p.loss) in (Hinge, EpsilonInsensitive),
    lambda p: f"loss {p.loss.name!r} is neither",
)
#: Losses made of lines.
LINES = (Hinge, EpsilonInsensitive, Pinball)
IN_PIECES = Need(
    'a loss of the hinge family, "epsilon_insensitive" or "pinball"',
    lambda p: type(p.loss) in (Hinge, SmoothedHinge, SquaredHinge, EpsilonInsensitive, Pinball),
    lambda p: f"loss {p.loss.name!r} is another one",
)


#: A factor with a pivot below this, for a unit diagonal, is left to the steps that can repair it.
WEAK = 1e-14
#: The rows that are solved for can balance the others with this part of their range to spare.
INSIDE = 0.01


@dataclass(frozen=True)
class InteriorTuning:
    """The constants of the interior point method."""

    #: a step ends at this part of the way to the nearest bound (usual values are 0.9 to 0.999)
    part: float = 0.99
    #: rows with a weight 1/theta below this part of the greatest are left out of the factor: their
    #: dual variable is at a bound, and they bend nothing (from the prototypes)
    skip: float = 1e-10
    #: a look is asked for when the gap, as mu tells it, is this part of what is wanted
    enough: float = 0.5
    #: and the dual variables are balanced to this part of the gap, for a free intercept
    balance: float = 0.01
    #: smaller relative gaps are below rounding: mu would fall on, to 0
    finest: float = 1e-16
    #: a step that ends so near is none
    least_step: float = 1e-10
    #: on some of the rows it gives up after so many steps, of which 10 to 19 do: those left out are
    #: needed (raw counts, 4 % positives, an intercept: 1,000 passes brought nothing)
    most_steps: int = 40
    #: no factor is made of an intercept without curvature: so much, at least
    least_curvature: float = 1e-12


@dataclass(frozen=True)
class Interior:
    """The method "interior". A start is not used: a point near the bounds is a bad one."""

    tuning: InteriorTuning = InteriorTuning()
    name: ClassVar[str] = "interior"
    needs: ClassVar[Needs] = (ONE_OUTPUT, IN_PIECES, QUADRATIC_OR_NONE)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> InteriorRun:
        """Begin with all dual variables between their bounds, and w = 0."""
        return InteriorRun(problem, target, self.tuning)


class InnerRows:
    """The pieces of some rows, and a with what belongs to it in the kernel's memory."""

    def __init__(self, loss: Loss, y: Vector, s: Vector) -> None:
        self.pieces = own = Pieces.of(loss, y, s)
        self.a, sigma, xi = own.start()
        room = self.a.copy()  # u - a, which has more digits than the difference
        most = own.upper[0] if own.bounded else s
        self.at = kernel.Pieces(
            self.a.reshape(-1), room.reshape(-1), sigma.reshape(-1), xi.reshape(-1),
            np.zeros(y.size), own.g.reshape(-1), own.h.reshape(-1), most,
            np.empty((6, own.h.size)), own.bounded, loss.gamma,
        )  # fmt: skip

    def x(self) -> Vector:
        """The dual variables of the rows."""
        own = np.minimum(self.a, self.pieces.upper)  # by a rounding
        return np.asarray(own[0] + self.pieces.shift if len(own) == 1 else own[0] - own[1])

    def signed(self) -> Vector:
        """What each row of X counts in A x, but for the shift."""
        return np.ascontiguousarray((self.pieces.g * self.a).sum(axis=0))


class PieceSums(NamedTuple):
    """Of all pieces: their products a sigma and (s - a) xi, their losses, and rows that weigh."""

    products: float
    loss: float
    weighed: float


class InteriorRun(InteriorPoints):
    """The method at work: a, sigma and xi have one row for each piece of the loss.

    `free` are the rows whose x_i are solved for, and `x` a dual point with the others; without
    any it is all rows of positive weight.
    """

    def __init__(
        self,
        problem: ERM,
        target: Target,
        tuning: InteriorTuning | None = None,
        free: Index | None = None,
        x: Vector | None = None,
    ) -> None:
        super().__init__(target.tol)
        self._tuning, self._problem, self._steps = tuning or InteriorTuning(), problem, 0
        self._x = np.zeros(problem.n_samples) if x is None else x.copy()
        rows = Objective.of(problem)
        if free is not None and not _can_balance(problem, free, self._x):
            free = None
        if free is None and problem.weights.size > 1:
            free = np.flatnonzero(problem.weights)
        self._free, self._fixed = free, np.zeros(rows.size)
        if free is not None:
            self._x[free] = 0.0
            signed = problem.y * self._x if problem.loss.margin else self._x
            self._fixed = rows.X.adjoint(signed)
            rows = rows.sample(free, np.ones(free.size))
        self._rows, self._ridge = rows, problem.n * rows.ridge
        self._stored = rows.size - (rows.X.constant != 0)  # columns that are in arrays
        self._least = problem.n * rows.least_curvature(self._tuning.least_curvature / problem.n)
        self._begin()

    def _begin(self) -> None:
        """a in the middle, w = 0, and sigma and xi that fit."""
        rows = self._rows
        self._s = np.ascontiguousarray(np.broadcast_to(rows.weights, rows.n), dtype=np.float64)
        self._w = np.zeros(rows.size)
        self._rows_at = InnerRows(rows.loss, rows.y, self._s)
        self._at, shift = self._rows_at.at, self._rows_at.pieces.shift
        self._line = 0.0, np.zeros(rows.size)
        if shift.any():
            slope = rows.X.adjoint(shift)
            self._fixed = self._fixed + slope
            self._line = float(np.dot(shift, rows.y)), -slope
        self._weight, self._pull = np.empty(rows.n), np.empty(rows.n)
        self._short = self._computed_short()
        self._weigh()

    # ---- the protocol ---------------------------------------------------------------------------

    def point(self) -> Point:
        """w and x of all rows."""
        x = self._x.copy()
        x[slice(None) if self._free is None else self._free] = self._rows_at.x()
        w, b = self._rows.apart(self._w)
        return Point(w=w, x=x, b=b)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: aim lower, if it should have and can."""
        if self._passes():
            self.stuck = self.stuck or self._aim <= self._tuning.finest
            self._aim *= 0.1

    def _passes(self) -> bool:
        """Whether mu, and what is left of the other conditions, are small enough."""
        if not self._enough():
            return False
        self._short = self._computed_short()  # what is kept of it has rounding errors
        return self._enough()

    @property
    def relative(self) -> float:
        """The relative gap of the rows that are solved for, as mu and the residuals tell it."""
        value, gap = self._value_and_gap()
        return gap / value if value > 0 else math.inf

    def _value_and_gap(self) -> tuple[float, float]:
        value = self._sums.loss + 0.5 * float(np.dot(self._ridge, self._w * self._w))
        value += self._line[0] + float(np.dot(self._line[1], self._w))
        n = self._problem.n  # all here is times n
        return value, self._sums.products + n * self._rows.gap(self._short / n)

    def _enough(self) -> bool:
        value, gap = self._value_and_gap()
        wanted = max(self._aim, self._tuning.finest) * value
        if self._problem.intercept and abs(self._short[-1]) > self._tuning.balance * wanted:
            return False
        return gap <= self._tuning.enough * wanted

    def _weigh(self) -> None:
        """What a step begins with: the rows' weights 1/theta, and sums."""
        found = kernel.weigh(self._at, self._tuning.skip, self._weight, self._pull)
        most, self._sums = found[2], PieceSums(found[0], found[1], found[3])
        self.stuck = self.stuck or not math.isfinite(most)

    def _computed_short(self) -> Vector:
        """lambda n b w - X' g a, less the rows that are fixed."""
        signed = self._rows_at.signed()
        return self._ridge * self._w - self._rows.X.adjoint(signed) - self._fixed

    # ---- a step ---------------------------------------------------------------------------------

    def at_once(self) -> bool:
        """The whole run in one kernel call, on dense rows of few features; whether it arrived."""
        t, X, wanted = self._tuning, self._rows.X, max(self._aim, self._tuning.finest)
        assert not X.sparse
        steps = kernel.run(
            X.view(views.arrays)[0], self._problem.intercept, self._ridge, self._least,
            self._fixed, self._line[0], t.enough * wanted, t.balance * wanted, t.skip, t.part,
            t.least_step, WEAK, t.most_steps, self._at, self._w,
        )  # fmt: skip
        madds = X.gram_madds + factor.madds(len(self._w))
        self._cost += steps * (2.0 + madds / (2 * max(X.nnz, 1)))
        return steps > 0

    def _step(self) -> None:
        """Mehrotra's predictor and corrector."""
        rows, at, products = self._rows, self._at, self._sums.products
        made = self._factor()
        dw = made.solve(rows.X.adjoint(self._pull) - self._short)
        fastest, linear, square, pair = self._predict(dw)
        t = step_length(fastest, 1.0)
        if not products > 0:  # they underflow
            self.stuck = True
            return
        after = products + t * (linear + t * square)
        centre = centred(products, after, 2 * self._rows_at.a.size)
        dw = made.solve(pair[:, 0] + centre * pair[:, 1] - self._short)
        fastest, pull = self._correct(dw, centre)
        t = step_length(fastest, self._tuning.part)
        self._cost += 2.0
        self._steps += 1
        if self._x.any() and self._steps >= self._tuning.most_steps:
            self.stuck = True
        if not (t > self._tuning.least_step and np.isfinite(dw).all()):
            self.stuck = True
            return
        kernel.move(at, t)
        self._w = self._w + t * dw
        self._short = self._short + t * (self._ridge * dw - pull)
        self._weigh()

    def _predict(self, dw: Vector) -> tuple[float, float, float, Table]:
        """The predictor, part by part of X: how long a step may be, sums, and X' of two vectors."""
        fastest, linear, square, pair = 0.0, 0.0, 0.0, np.zeros((self._rows.size, 2))
        for own, part in self._rows.X.chunks():
            raw = *part.view(views.arrays), self._stored, part.constant
            found = kernel.predict(*raw, dw, self._at, own.start, own.stop, pair.reshape(-1))
            fastest = max(fastest, found[0])
            linear, square = linear + found[1], square + found[2]
        return fastest, linear, square, pair

    def _correct(self, dw: Vector, centre: float) -> tuple[float, Vector]:
        """The corrector's step, likewise: how long it may be, and X'g da."""
        fastest, pull = 0.0, np.zeros(self._rows.size)
        for own, part in self._rows.X.chunks():
            raw = *part.view(views.arrays), self._stored, part.constant
            found = kernel.correct(*raw, dw, centre, self._at, own.start, own.stop, pull)
            fastest = max(fastest, found)
        return fastest, pull

    def _factor(self) -> Factor:
        """Of lambda n diag(b) + X' diag(weight) X."""
        H = self._rows.X.gram(self._weight)
        H.ravel()[:: len(H) + 1] += self._least
        share = self._rows.X.gram_madds * self._sums.weighed / max(self._rows.n, 1)
        madds = share + factor.madds(len(H))
        self._cost += madds / (2 * max(self._problem.samples.nnz, 1))
        return Factor(H)


def _can_balance(problem: ERM, free: Index, x: Vector) -> bool:
    """Whether there is an interior point: x_i of these rows that balance those of the others.

    Without an intercept any row will do.
    """
    if not problem.intercept or free.size == 0:
        return free.size > 0
    y = problem.y if problem.loss.margin else np.ones(problem.n_samples)
    others = y * x
    others[free] = 0.0
    s = np.broadcast_to(problem.weights, problem.n_samples)[free]
    lower, upper = problem.loss.domain
    ends = np.stack([lower * s * y[free], upper * s * y[free]])
    low, high = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    spare = INSIDE * (high - low)
    return bool(low + spare <= -float(others.sum()) <= high - spare)
