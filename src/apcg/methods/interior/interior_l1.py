"""Interior points where the penalty has an L1 part and the loss has kinks.

The loss is made of pieces, w = sum of +-v with v >= 0, and all is times n:

    minimize sum_i s_i phi_i(z_i) + sum_j A_j |w_j| + (B_j/2) w_j^2,    z = X w + b

With 0 < a < u the dual variables of the pieces, and t = X'g a - B w, the optimality conditions are

    h - g z - c a - xi + sigma = 0      a sigma = mu      (u - a) xi = mu
    A -+ t - rho = 0                    v rho = mu

and mu -> 0. The unknowns of a step of Newton's method are dw, e = the sum of g da over the pieces
of each row, and db:

    R dw - X'e = r,    X dw + db + e/W = f,    sum_i e_i = total

with R = B + 1/(sum of v/rho) and W = the sum of 1/(sigma/a + xi/(u - a) + c) (`saddle` solves
them). Mehrotra's predictor says how far mu can fall.

The number of steps, 10 to 22, hardly depends on lambda or on the loss. Where working sets go round
between the pieces of a loss, this does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..._base.validation import Index, Vector
from ..._base.validation import Matrix as Table
from ...certify.points import Certificate, Point, Start
from ...data import Matrix
from ...problems.erm import ERM
from ..base import ALL_STORED, L1_EVERYWHERE, LOSS_IN_PIECES, ONE_OUTPUT, Needs, Target
from .general import MADD, pass_cost
from .kkt import KKTTuning, Saddle, size
from .pieces import InteriorPoints, Pieces, centred, step_length

#: Rows and columns of the largest matrix, 200 MB: a set that needs a larger one is not solved.
LARGEST = 5000


@dataclass(frozen=True)
class InteriorL1Tuning:
    """The constants of the method."""

    #: a step ends at this part of the way to the nearest bound (usual values are 0.9 to 0.999)
    part: float = 0.99
    #: how well the equations of a step are solved
    saddle: KKTTuning = field(default_factory=KKTTuning)
    #: a column is left out once its v is below this part of the largest, and rho above this part
    #: of A; if at most this part of the columns stays. With 1e-3 for the first, 4 of 18 problems of
    #: 1,000 x 500 and of 600 x 600 began anew, and 2,000 x 1,000 (hinge, alpha = 1e-3) took twice
    #: as long; 100 x 2,000 and 300 x 1,000 take 1.1 of the time with 1e-4
    drop: tuple[float, float] = (1e-4, 0.05)
    fewer: float = 0.8
    #: and once the products are this part of the value: before that v tells little
    near: float = 0.1
    #: if samples and features are both more than this, it begins with so many columns, to this gap,
    #: and takes in those that violate; all of them after so many times. (8,000 x 4,000 text, hinge:
    #: a step on all columns takes 0.8 s)
    whole: int = 500
    first: int = 200
    rough: float = 0.01
    growths: int = 30
    #: a look is asked for when the gap, as mu tells it, is this part of what is wanted
    enough: float = 0.5
    #: after the last look so many more steps are made at the most, until the zeros are known
    last_steps: int = 4
    #: smaller relative gaps are below rounding
    finest: float = 1e-15
    #: a step that ends so near is none
    least_step: float = 1e-10


@dataclass(frozen=True)
class InteriorL1:
    """The method "interior_l1". A start is not used: a point near the bounds is a bad one."""

    tuning: InteriorL1Tuning = InteriorL1Tuning()
    name: ClassVar[str] = "interior_l1"
    needs: ClassVar[Needs] = (ONE_OUTPUT, LOSS_IN_PIECES, L1_EVERYWHERE, ALL_STORED)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> InteriorL1Run:
        """Begin with all dual variables between their bounds, and w = 0."""
        return InteriorL1Run(problem, target, self.tuning)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The columns that are solved for: which, their numbers, and n alpha times a_j and b_j."""

    ids: Index
    X: Matrix
    A: Vector
    B: Vector

    def some(self, stays: Index) -> Chosen:
        """A part of them."""
        return Chosen(self.ids[stays], self.X.pick(stays), self.A[stays], self.B[stays])


@dataclass(frozen=True, eq=False)
class Here:
    """What a step begins with, computed from Y and S alone.

    z, t      the predictions, and X'g a - B w
    signed    the sum of g a over the pieces of each row, and of these over all rows
    products  the sum of Y S
    loss      of the predictions
    free      whether w = 0 and this b lose nothing: x = 0 proves that no other w does better
    """

    z: Vector
    t: Vector
    signed: Vector
    total: float
    products: float
    loss: float
    free: bool


class InteriorL1Run(InteriorPoints):
    """The method at work.

    Y, S   what is positive, and its factors: Y S = mu. Y has a, u - a and v one after the other
    w, b   the point
    """

    least_passes = 1

    def __init__(
        self, problem: ERM, target: Target, tuning: InteriorL1Tuning | None = None
    ) -> None:
        super().__init__(target.tol)
        self._problem, self._tuning = problem, tuning or InteriorL1Tuning()
        s = np.broadcast_to(problem.weights, problem.n_samples)
        self._kept = np.flatnonzero(s)
        X: Matrix = problem.samples
        self._whole = X = X if self._kept.size == s.size else X.rows(self._kept)
        y, s = problem.y[self._kept], np.asarray(s[self._kept], dtype=np.float64)
        self._pieces = Pieces.of(problem.loss, y, s)
        self._sign = np.array([[1.0], [-1.0]])[: 1 if problem.interval.lower[0] == 0 else 2]
        self._drops, self._grown = True, 0
        #: columns that came back, and are not left out again
        self._back = np.zeros(problem.d, dtype=bool)
        #: how far x exceeds its bound in each column, as part of that; 0 in those of the set
        self._over = np.zeros(problem.d)
        self._tol, every = target.tol, np.arange(problem.d)
        if min(X.shape) > self._tuning.whole:
            self._aim = max(self._tol, self._tuning.rough)
            every = self._first()
        self._begin(every)

    def _first(self) -> Index:
        """The columns with the steepest slopes at w = 0."""
        p, zero = self._problem, np.zeros(self._problem.n_samples)
        _, v = p.dual_pair(zero + (p.best_shift(zero) if p.intercept else 0.0), False)
        return np.sort(np.argsort(-self._slopes(v))[: self._tuning.first])

    def _slopes(self, v: Vector) -> Vector:
        """Of each column, over its bound."""
        return np.asarray((self._sign * v).max(axis=0) / self._problem.interval.a)

    def _begin(self, ids: Index) -> None:
        """a in the middle, w = 0 or next to it, and the rest so that all products are about 1."""
        pieces, problem, g = self._pieces, self._problem, self._problem.interval
        X = self._whole if ids.size == problem.d else self._whole.pick(ids)
        scale = problem.n * problem.alpha
        A, B = (scale * np.broadcast_to(part, problem.d)[ids] for part in (g.a, g.b))
        self._set = Chosen(ids, X, A, B)
        a, sigma, xi = pieces.start()
        rho = np.broadcast_to(A, (len(self._sign), ids.size))
        v = float(np.mean(a * sigma)) / rho
        if len(v) == 1:  # w >= 0 is not 0 then, and must not be far away
            v = v * min(1.0, size(pieces.h) / max(size(X.times(v[0])), 1e-300))
        parts = [(a, sigma), (pieces.upper - a, xi), (v, rho)]
        if not pieces.bounded:
            del parts[1]
        self._Y, self._S = (np.concatenate([np.ravel(pair[k]) for pair in parts]) for k in (0, 1))
        self.w, self.b = self._weights(), 0.0
        self._arrive()

    # ---- parts of Y and S -----------------------------------------------------------------------

    def _split(self, Y: Vector) -> tuple[Table, Table, Table]:
        """Its parts: of a, of u - a (nothing without a bound), of v."""
        shape, count = self._pieces.g.shape, self._pieces.g.size
        a, rest = Y[:count].reshape(shape), Y[count:]
        room = rest[: count if self._pieces.bounded else 0].reshape(-1, shape[1])
        return a, room, rest[room.size :].reshape(len(self._sign), -1)

    def _weights(self) -> Vector:
        return np.asarray((self._sign * self._split(self._Y)[2]).sum(axis=0))

    def _arrive(self) -> None:
        """What a step begins with, computed from Y and S alone."""
        pieces, own = self._pieces, self._set
        a, z = self._split(self._Y)[0], own.X.times(self.w) + self.b
        signed = (pieces.g * a).sum(axis=0) + pieces.shift
        t, products = own.X.adjoint(signed) - own.B * self.w, float(np.dot(self._Y, self._S))
        free = pieces.holds_zero and pieces.total(np.full(z.size, self.b)) == 0
        self._at = Here(z, t, signed, float(signed.sum()), products, pieces.total(z), free)
        self.stuck = self.stuck or not 0 < products < math.inf

    # ---- the protocol ---------------------------------------------------------------------------

    def _passes(self) -> bool:
        """Whether mu is small enough for the gap that is aimed at."""
        if self._at.free:
            return True
        wanted = max(self._aim, self._tuning.finest) * self._value(self.w, self._at.loss)
        return self._at.products <= self._tuning.enough * wanted

    def point(self) -> Point:
        """w with exact zeros, and x of all rows, balanced and scaled to be feasible."""
        p = self._problem
        x = np.zeros(p.n_samples)
        if self._at.free:
            return Point(w=np.zeros(p.d), x=x, b=self.b)
        x[self._kept] = self._at.signed
        x = p.loss.clip(p.signed(x), p.y, p.weights)
        if p.intercept:
            x = p.balanced(x)
        v = p.v_of(x)
        self._over = self._slopes(v) - 1
        self._over[self._set.ids] = 0.0
        for spare in (1e-14, 1e-12, 1e-10):  # for what rounding makes of its products with X
            self._cost += 0.5
            if (excess := p.g.excess(v)) <= 1:
                break
            x = x / (excess * (1 + spare))
            v = p.v_of(x)
        w, zeros = np.zeros(p.d), self._with_zeros()
        w[self._set.ids] = self.w if zeros is None else zeros
        return Point(w=w, x=x, b=self.b)

    def _with_zeros(self) -> Vector | None:
        """w, and 0 where v is small beside its rho; None if that brings P up to speak of."""
        v, rho = self._split(self._Y)[2], self._split(self._S)[2]
        most = float(np.abs(self.w).max(initial=0.0))
        some = np.where((v * self._set.A > most * rho).any(axis=0), self.w, 0.0)
        value = self._value(self.w, self._at.loss)
        room = self._tuning.enough * self._aim * abs(value)
        for w in (np.zeros_like(some), some):
            z = self._set.X.times(w) + self.b
            if self._value(w, self._pieces.total(z)) <= value + room:
                return w
        return None

    def _value(self, w: Vector, loss: float) -> float:
        """n P(w)"""
        return loss + float(np.dot(self._set.A, np.abs(w)) + 0.5 * np.dot(self._set.B, w * w))

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end it: aim lower, or begin anew if a column left out matters."""
        if not self._passes():
            return
        if self._over.max() > 0 and self._anew():
            return
        self.stuck = self.stuck or self._aim <= self._tuning.finest
        self._aim *= 0.1

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """The point after some more steps: which weights are zero is known later than P."""
        for _ in range(self._tuning.last_steps if converged and not self._at.free else 0):
            if not self._goes_on():
                return None
            if self._with_zeros() is not None:
                return self.point()
        return None

    def _anew(self) -> bool:
        """Begin again with columns that were left out, if any was: some, and in the end all."""
        ids, d, tuning = self._set.ids, self._problem.d, self._tuning
        if ids.size == d:
            return False
        worst = np.argsort(-self._over)[: max(tuning.first, ids.size)]
        more = worst[self._over[worst] > 0]
        self._grown += 1
        some = np.union1d(ids, more)
        if min(self._whole.shape) <= tuning.whole or not more.size or self._grown > tuning.growths:
            some = np.arange(d)
        if min(self._kept.size, some.size) > LARGEST:
            return False
        if some.size == d:
            self._drops, self._aim = False, self._tol
        else:
            self._aim, self._back[more] = max(self._tol, 0.1 * self._aim), True
        self._begin(some)
        return True

    # ---- a step ---------------------------------------------------------------------------------

    def _step(self) -> None:
        """Mehrotra's predictor and corrector."""
        Y, S, products = self._Y, self._S, self._at.products
        with np.errstate(all="ignore"):
            system, weights = self._system()
            zero = np.zeros(Y.size)
            _, _, dY, dS = self._direction(system, weights, zero)
            t = _length(Y, dY, S, dS, 1.0)
            centre = centred(products, float(np.dot(Y + t * dY, S + t * dS)), Y.size)
            dw, db, dY, dS = self._direction(system, weights, centre - dY * dS)
            t = _length(Y, dY, S, dS, self._tuning.part)
        if not (t > self._tuning.least_step and np.isfinite(dw).all()):
            self.stuck = not self._anew()
            return
        self._Y, self._S = Y + t * dY, S + t * dS
        self.b += t * db
        if self._drops and products <= self._tuning.near * self._value(self.w, self._at.loss):
            self._drop()
        self.w = self._weights()
        self._arrive()

    def _goes_on(self) -> bool:
        """A step, unless that leads nowhere."""
        if not self.stuck:
            self._step()
        return not self.stuck

    def _drop(self) -> None:
        """Leave out columns whose weight is next to nothing, and whose slope is far from A.

        They are zero at the optimum, as far as can be told. The steps that follow mend what that
        changes; the certificate is that of all columns.
        """
        v, rho = self._split(self._Y)[2], self._split(self._S)[2]
        small, far = self._tuning.drop
        most = float(v.max(initial=0.0))
        moves = ((v > small * most) | (rho < far * self._set.A)).any(axis=0)
        stays: Index = np.flatnonzero(moves | self._back[self._set.ids])
        if self._tuning.fewer * self._set.ids.size < stays.size or stays.size == 0:
            return  # a copy of the columns is not worth it
        self._Y, self._S = (
            np.concatenate(
                [Y[: Y.size - v.size], Y[Y.size - v.size :].reshape(v.shape)[:, stays].ravel()]
            )
            for Y in (self._Y, self._S)
        )
        self._set = self._set.some(stays)

    def _system(self) -> tuple[Saddle, tuple[Table, Vector]]:
        """The matrix of this step, theta, and by how much t moves w."""
        pieces, tuning = self._pieces, self._tuning
        a, room, v = self._split(self._Y)
        sigma, xi, rho = self._split(self._S)
        theta, soft = sigma / a + pieces.c, (v / rho).sum(axis=0)
        if room.size:
            theta = theta + xi / room
        W, R = (1 / theta).sum(axis=0), self._set.B + 1 / soft
        system = Saddle(self._set.X, R, W, tuning.saddle, intercept=self._problem.intercept)
        share = self._set.ids.size / self._problem.d
        self._cost += 6.0 * share + MADD * system.madds / pass_cost(self._problem)
        return system, (theta, soft)

    def _direction(
        self, system: Saddle, weights: tuple[Table, Vector], low: Vector
    ) -> tuple[Vector, float, Vector, Vector]:
        """dw, db, dY and dS with which Y S becomes `low`, to first order."""
        pieces, sign, A = self._pieces, self._sign, self._set.A
        a, room, v = self._split(self._Y)
        rho = self._split(self._S)[2]
        low_a, low_room, low_v = self._split(low)
        q = pieces.h - pieces.g * self._at.z - pieces.c * a + low_a / a
        if room.size:
            q = q - low_room / room
        theta, soft, t = *weights, self._at.t
        f = (pieces.g * q / theta).sum(axis=0) / system.W
        pull = (sign * (low_v - v * (A - sign * t)) / rho).sum(axis=0)
        dw, e, db = system.solve(pull / soft, f, -self._at.total)
        dz = self._set.X.times(dw) + db
        da = _moved(pieces.g, q, theta, -dz, e)
        dt = self._set.X.adjoint(e) - self._set.B * dw
        dv = _moved(sign, low_v / v - (A - sign * t), rho / v, dt, dw)
        dY = np.concatenate([np.ravel(part) for part in (da, -da if room.size else low_room, dv)])
        return dw, db, dY, (low - self._S * dY) / self._Y - self._S


def _moved(g: Table, q: Table, theta: Table, by: Vector, total: Vector) -> Table:
    """(q + g by)/theta, whose sum of products with g is `total`; from the one that rounds less.

    Where theta is large the quotient has all digits. Where it is small, q and g by are nearly
    equal, and `total` has more.
    """
    quotient = (q + g * by) / theta
    if len(g) == 1:
        shared = g * total
    else:
        both, rest = theta.sum(axis=0), q.sum(axis=0)
        shared = (rest + g * theta[::-1] * total) / both
    return np.where(np.abs(q) < theta * size(total), quotient, shared)


def _length(Y: Vector, dY: Vector, S: Vector, dS: Vector, part: float) -> float:
    """Of a step of Y and S."""
    return step_length(max(float((-dY / Y).max()), float((-dS / S).max())), part)
