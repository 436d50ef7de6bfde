"""K outputs: the state of the kernel in plain sweeps and in sweeps with momentum.

A row has a block of K dual numbers. A plain sweep steps on each row r_i times: most on rows that
moved most in the last sweep. Each step is an ascent, whatever the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ..._kernels.dual import many_outputs as plain
from ..._kernels.dual import many_outputs_momentum as kernel
from ...certify.certificate import stated
from ...certify.points import Certificate, Point, Start
from ...data.products_k import with_pads
from ...losses.base import LOGISTIC, SOFTMAX
from .setup_k import SetupK
from .start_k import start

#: Below this, u and p are noise that only makes subnormal numbers.
_DUST = 1e-100
#: A bound on rounding errors that is below this, relative to P, changes nothing.
_ROUNDING = 1e-15
_EPS = float(np.finfo(float).eps)
_NO_ROWS = np.zeros((1, 1))


def _inner(x: Matrix, z: Matrix) -> float:
    """<x, z>, as a sum of sums over rows, which loses fewer digits than one long sum."""
    return float(np.einsum("ik,ik->i", x, z).sum())


def error_bound(setup: SetupK, steps: int, first: float) -> float:
    """A bound on |W - V| after so many steps; `first` is the sum of squares of the W of the start.

    A step on row i adds eps (|W_i| + (K + 8) |a_i h_i'|) at most, W_i the rows of W that it changes
    and h_i its change: K + 8 for the roundings of h_i and of pi_i, whose sum is 1 to K eps.
    Computing the W of a start is n such steps. |h_i| <= 2 scale s_i. And D rises, so that
    (sigma/2)|V|^2 <= P(0) - D <= P(0) + (sigma/2) first + gamma all along: phi* is at most gamma.
    """
    p = setup.problem
    sigma = p.alpha * setup.b
    most = 2 * (setup.primal_at_zero() + p.loss.gamma) / sigma + first
    row = float(np.sqrt(np.max(setup.q * setup.s, initial=0.0) * setup.scale))  # scale s_i |a_i|
    return _EPS * (steps + p.n_samples) * (2 * math.sqrt(most) + 2 * (p.K + 8) * row)


@dataclass(eq=False)
class LookK:
    """x and its W, and the values there, for g = L2 without an intercept.

    The sweeps keep W, which is V = scale A x up to rounding. A certificate needs P at some point,
    for which W will do, and |V|^2 for D. With the predictions z = X W

        |V|^2 = 2 <V, W> - |W|^2 + |V - W|^2,    <V, W> = scale sum_i <x_i, z_i>

    so D takes no product with X of its own. The last term is what rounding did, squared, and a
    bound on it is small enough.
    """

    setup: SetupK
    x: Matrix
    #: W as kept, from which and from x its other rows follow
    W: Matrix
    z: Matrix
    #: a bound on |V - W|
    error: float
    primal: float
    dual: float

    @classmethod
    def at(cls, setup: SetupK, blocks: Matrix, W: Matrix, error: float) -> LookK:
        """One product with X, for z."""
        p, x = setup.problem, setup.x(blocks)
        z = setup.predictions(W, x)
        square, conjugate = setup.square_of(W, x), p.conjugate_total(x) / p.n
        half = 0.5 * p.alpha * setup.b
        V = 2 * setup.scale * _inner(p.signed(x), z) - square + error**2
        P, D = p.loss_total(z) / p.n + half * square, -conjugate - half * V
        return cls(setup, x, W, z, error, P, D)

    @property
    def charge(self) -> float:
        """What D is lower for the bound on |V - W|."""
        return 0.5 * self.setup.problem.alpha * self.setup.b * self.error**2

    def certificate(self) -> Certificate:
        """The pair with its values."""
        w, b = self.setup.expand(self.W, self.x), np.zeros(self.setup.K)
        return stated(w, self.x, b, self.z, self.primal, self.dual)


class PlainK:
    """Sweeps without momentum: the blocks, W and b."""

    #: how far looks are apart, in sweeps
    pause = 0.0
    #: mu-hat: there is no momentum
    mu, restarts = 1.0, 0

    def __init__(self, setup: SetupK, without: tuple[str, ...], at: Start) -> None:
        self.setup = setup
        self._most = 1.0 if "visits" in without else setup.tuning.most_visits
        self.factor = setup.tuning.calm
        #: sweeps to come in which all rows are visited once
        self._even = setup.tuning.even if at.is_cold else 1
        x, b, W = start(setup, at)
        theta = np.empty((1, 1))
        if setup.kind == SOFTMAX:
            theta = np.maximum(x, 1e-150)
            np.log(theta, out=theta)
        elif setup.kind == LOGISTIC:
            theta = np.log(np.maximum(x, 1e-150)) - np.log(np.maximum(1 - x, 1e-150))
        intercepts = np.zeros(setup.size)
        intercepts[: setup.K] = setup.pull(x) if setup.held else b
        moved, part, room = np.zeros(x.shape[0]), np.zeros(x.shape[0]), np.zeros((4, setup.size))
        self.state = plain.PlainState(x, theta, W, intercepts, moved, part, room)
        #: steps since W was computed, and its sum of squares then
        self.steps, self.first = 0, setup.square_of(W)

    @property
    def a(self) -> Matrix:
        """The blocks, in their domain."""
        return np.asarray(self.state.x)

    @property
    def w(self) -> Matrix:
        """A x times the scale, as kept."""
        return np.asarray(self.state.W)

    @property
    def b(self) -> Vector:
        """The free intercepts."""
        return np.array(self.state.b)[: self.setup.K] * (not self.setup.held)

    def accelerated(self, without: tuple[str, ...]) -> MomentumK:
        """The state with momentum that goes on from here."""
        return MomentumK(self, without)

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, tuple[Index, ...]]:
        """The rows in the order of the sweep, and their visits."""
        moved = np.asarray(self.state.moved)
        far = (np.sqrt(moved) * self.setup.lengths)[keep]
        most = 1.0 if self._even else self._most
        self._even = max(self._even - 1, 0)
        order, visits, _ = self.setup.sweep(keep, far, most, rng)
        moved[keep] = 0.0
        return order, (order, visits)

    def call(self, listed: Index, rows: tuple[Index, ...]) -> None:
        """Steps on these rows."""
        order, visits = rows
        bounds = np.empty((order.size, 2), dtype=np.intp)
        setup = self.setup
        plain.plain_sweep(
            *setup.arrays, setup.blocks, self.state, setup.tally, order, visits, bounds
        )
        self.steps += order.size

    def estimate(self) -> float:
        """The gap: the sum of the parts of the rows, each when it was seen last."""
        return float(np.dot(self.setup.s, self.state.part)) / self.setup.problem.n

    def after(self) -> None:
        """After a sweep: the centre of the intercepts moves."""
        if self.setup.constant:
            np.asarray(self.state.b)[: self.setup.K] += self.setup.pull(self.a)

    def refresh(self) -> None:
        """Compute W anew from the blocks."""
        np.asarray(self.state.W)[:] = self.setup.rows(self.setup.x(self.a))
        if self.setup.held:
            np.asarray(self.state.b)[: self.setup.K] = self.setup.pull(self.a)
        self.steps = 0

    def look(self) -> LookK:
        """The values at the blocks and W as kept; for L2 without intercepts."""
        error = error_bound(self.setup, self.steps, self.first)
        return LookK.at(self.setup, self.a, self.w, error)

    def point(self, first: bool) -> Point | Certificate:
        """x and what goes with it; without v where the `first` look is likely to end the run.

        That takes a certificate from x alone, and two of them would be one too many. Where W as
        kept gives the certificate, it is that.
        """
        if not self.setup.quick_looks:
            return self.setup.point(self.a, None if first else self.w, self.b)
        look = self.look()
        if not look.charge <= _ROUNDING * abs(look.primal):
            return self.setup.certificate(look.x, self.b)
        return look.certificate()


class MomentumK:
    """Sweeps with momentum: u, v, p, q."""

    def __init__(self, plain: PlainK, without: tuple[str, ...]) -> None:
        setup, state = plain.setup, plain.state
        self.setup = setup
        x, size = np.array(state.x), setup.size
        pq = np.zeros((setup.features, 2 * size))
        pq[:, size:] = state.W
        self.state = kernel.MomentumState(
            np.zeros_like(x),
            x,
            x.copy() if setup.kind == SOFTMAX else _NO_ROWS,
            np.array(state.theta) if setup.kind in (SOFTMAX, LOGISTIC) else _NO_ROWS,
            pq,
            np.zeros(size),
            np.array(state.b),
            np.zeros((7, size)),
            settle=-1.0 if "settling" in without else setup.tuning.settle,
        )
        self._now, self._last = x.copy(), np.zeros_like(x)
        self._moved = np.zeros(setup.problem.n_samples)

    # ---- the point ------------------------------------------------------------------------------

    @property
    def a(self) -> Matrix:
        """The blocks after the last sweep, in their domain."""
        return self._now

    @property
    def w(self) -> Matrix:
        """A x times the scale."""
        size, half = self.setup.size, 0.5 * self.state.s
        pq = np.asarray(self.state.pq)
        return np.asarray(pq[:, size:] + half * pq[:, :size])

    @property
    def b(self) -> Vector:
        """The free intercepts."""
        return self._b * (not self.setup.held)

    @property
    def _b(self) -> Vector:
        b = np.asarray(self.state.qb) + 0.5 * self.state.s * np.asarray(self.state.pb)
        return np.asarray(b[: self.setup.K])

    def point(self, first: bool) -> Point | Certificate:
        """x and what goes with it; without v where the `first` look is likely to end the run."""
        return self.setup.point(self.a, None if first else self.w, self.b)

    # ---- a sweep --------------------------------------------------------------------------------

    def schedule(
        self, keep: Index, most: float, rng: np.random.Generator
    ) -> tuple[Index, tuple[Index, ...], int, int]:
        """The rows in order, these with their visits and the last of each, steps, most visits."""
        moved = (self._moved * self.setup.lengths)[keep]
        order, visits, last = self.setup.sweep(keep, moved, most, rng)
        return order, (order, visits, last), order.size, int(visits.max())

    def set_pace(self, steps: int, root: float) -> None:
        """The steps of a sweep, and sqrt(mu-hat)."""
        self.state.N, self.state.root = steps, root

    def call(self, listed: Index, rows: tuple[Index, ...]) -> None:
        """Steps on these rows."""
        order, visits, last = rows
        bounds = np.empty((order.size, 2), dtype=np.intp)
        setup = self.setup
        kernel.momentum_sweep(
            *setup.arrays, setup.blocks, self.state, setup.tally, order, visits, last, bounds
        )

    def estimate(self) -> float:
        """The gap: the sum of the parts of the rows at the last visit of each."""
        return self.setup.tally.est / self.setup.problem.n

    def come_inside(self, fold_at: float) -> None:
        """After a sweep: x comes into its domain; before, s = 1 again if it is below `fold_at`."""
        s, setup = self.state.s, self.setup
        if s < fold_at:
            for array in (np.asarray(self.state.u), np.asarray(self.state.pq)[:, : setup.size]):
                array *= s
                array[np.abs(array) < _DUST] = 0.0
            np.asarray(self.state.pb)[:] *= s
            self.state.s = 1.0
        last, self._now = self._now, self._last
        self._last = last
        kernel.take_inside(*setup.arrays, setup.blocks, self.state, last, self._now, self._moved)

    def value(self) -> float:
        """-D"""
        setup = self.setup
        square = setup.square(np.asarray(self.state.pq), self._now, self.state.s)
        return setup.cost(self._now) + setup.square_cost(square)

    def move_b(self, change: Vector) -> None:
        """Move the intercepts."""
        np.asarray(self.state.qb)[: self.setup.K] += change

    def restart(self) -> None:
        """Forget the momentum: v = x, u = 0."""
        W, b, size = self.w, self._b, self.setup.size
        u, v, pq = (np.asarray(a) for a in (self.state.u, self.state.v, self.state.pq))
        u[:] = 0.0
        v[:] = self._now
        pq[:, :size] = 0.0
        pq[:, size:] = W
        np.asarray(self.state.qb)[: self.setup.K], np.asarray(self.state.pb)[:] = b, 0.0
        self.state.s = 1.0

    def refresh(self) -> None:
        """Compute p and q anew from u and v."""
        setup, p = self.setup, self.setup.problem
        pq, size = np.asarray(self.state.pq), self.setup.size
        sign = -1.0 if setup.simplex else 1.0
        s = sign * p.weights[:, None]
        for k, part in enumerate((self.state.u, self.state.v)):
            x = s * np.asarray(part)[:, : p.K]
            if k == 1 and setup.simplex:  # x = s (e - v)
                x[np.arange(p.n_samples), p.y] += p.weights
            pq[:, k * size : (k + 1) * size] = with_pads(setup.rows(x), size)
            if setup.held:
                np.asarray((self.state.pb, self.state.qb)[k])[: p.K] = setup.pull_of(x)
