"""The sweeps over blocks with momentum: APCG that finds its own mu, on uneven samples of the rows.

It is `lean_momentum` with a block of K numbers in the place of each; that file has the ideas.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ..._kernels.dual import many_outputs_momentum as kernel
from ..._kernels.dual.many_outputs import Count, PlainState
from ...data.products_k import with_pads
from ...losses.outputs import LOGISTIC, SOFTMAX
from ..paper.adaptive.rate import Rate, RateTuning
from .many_outputs_setup import Setup
from .one_output_momentum import FLOOR, FOLD_AT, HIGHEST, MOVE, UNEVEN

_RATE = RateTuning(fewest=1)
#: Below this, u and p are noise that only makes subnormal numbers.
_DUST = 1e-100
_NO_ROWS = np.zeros((1, 1))


class Momentum:
    """Sweeps with momentum: u, v, p, q, mu-hat and the visits r."""

    #: Fewer rows than this tell no rate, and alpha is at most one over it.
    FEWEST = 20

    def __init__(
        self,
        setup: Setup,
        without: tuple[str, ...],
        plain: PlainState,
        mu: float,
        *,
        fixed: bool = False,
    ) -> None:
        p = setup.problem
        self.setup, self.without, self.fixed = setup, without, fixed
        self.factor = setup.tuning.hasty
        x, size = np.array(plain.x), setup.size
        pq = np.zeros((setup.features, 2 * size))
        pq[:, size:] = plain.W
        softmax = setup.kind == SOFTMAX
        self.state = kernel.MomentumState(
            np.zeros_like(x),
            x,
            x.copy() if softmax else _NO_ROWS,
            np.array(plain.theta) if setup.kind in (SOFTMAX, LOGISTIC) else _NO_ROWS,
            pq,
            np.zeros(size),
            np.array(plain.b),
            np.zeros((7, size)),
            settle=-1.0 if "settling" in without else setup.tuning.settle,
        )
        self.highest = 1
        self._L = np.sqrt(p.weights * (setup.q + p.loss.gamma))
        self._now, self._last = x.copy(), np.zeros_like(x)
        self._moved = np.zeros(p.n_samples)
        #: the b of the proximal centre
        self.centre = np.array(plain.b)[: p.K] - self._pull(x)
        self.rate = Rate(mu, p.mu, self._value(), _RATE)

    # ---- the point ------------------------------------------------------------------------------

    def _look(self) -> None:
        """x, brought into its domain, and how far each row has moved since the last time."""
        last, self._now = self._now, self._last
        self._last = last
        kernel.take_inside(
            *self.setup.arrays, self.setup.blocks, self.state, last, self._now, self._moved
        )

    @property
    def blocks(self) -> Matrix:
        """The blocks, in their domain."""
        return self._now

    @property
    def W(self) -> Matrix:
        """A x times the scale."""
        size, half = self.setup.size, 0.5 * self.state.s
        pq = np.asarray(self.state.pq)
        return np.asarray(pq[:, size:] + half * pq[:, :size])

    @property
    def b(self) -> Vector:
        """The intercepts."""
        b = np.asarray(self.state.qb) + 0.5 * self.state.s * np.asarray(self.state.pb)
        return np.asarray(b[: self.setup.K])

    @property
    def mu(self) -> float:
        """mu-hat"""
        return self.rate.mu

    @property
    def pause(self) -> float:
        """Looks are so many sweeps apart."""
        return self.setup.tuning.pause / math.sqrt(self.rate.mu)

    # ---- a sweep --------------------------------------------------------------------------------

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, ...]:
        """The rows of the sweep in order, their visits, and whether one is the last of its row."""
        moved = (self._moved * self._L)[keep]
        order, visits, last = self.setup.sweep(keep, moved, self._most_visits(keep), rng)
        self.highest = int(visits.max())
        self.state.N = order.size
        # with few rows alpha would be near 1, and s near 0
        self.state.root = min(math.sqrt(self.rate.mu), order.size / self.FEWEST)
        return order, visits, last

    def _most_visits(self, keep: Index) -> float:
        """1 where there is nothing to gain from uneven visits."""
        mu = self.rate.mu
        if self.fixed or "visits" in self.without or keep.size < self.FEWEST:
            return 1.0
        if mu <= FLOOR * self.rate.least:
            return 1.0
        return min(HIGHEST, UNEVEN / math.sqrt(mu))

    def call(self, rows: tuple[Index, ...], count: Count) -> None:
        """Steps on these rows."""
        order, visits, last = rows
        bounds = np.empty((order.size, 2), dtype=np.intp)
        kernel.momentum_sweep(
            *self.setup.working, self.setup.blocks, self.state, count, order, visits, last, bounds
        )

    def estimate(self, count: Count) -> float:
        """The gap: the sum of the parts of the rows at the last visit of each."""
        return count.est / self.setup.problem.n

    def after(self) -> None:
        """After a sweep: mu-hat, the centre of the intercepts."""
        if self.state.s < FOLD_AT:
            self._fold()
        self._look()
        window_ends = self.rate.left(1) == 1
        self.rate.stepped(1)
        if window_ends:
            if self.fixed:
                self.rate.forget(self._value())
            elif self.rate.saw(self._value(), 1, self.highest):
                self._restart()
        if self.setup.constant:
            self._move_centre()

    # ---- values and sums ------------------------------------------------------------------------

    def _value(self) -> float:
        """F = -D, with the proximal term of the intercepts."""
        p, setup = self.setup.problem, self.setup
        square = setup.square(self.state.pq, self._now, self.state.s)
        value = setup.cost(self._now) + setup.square_cost(square)
        if setup.constant:
            b = self.centre + self._pull(self._now)
            change = float(b @ b) - float(self.centre @ self.centre)
            value += p.strong_convexity / (2 * setup.constant) * change
        return value

    def _pull(self, blocks: Matrix) -> Vector:
        """b less that of the centre: (c^2/(sigma n)) sum_i x_i."""
        p = self.setup.problem
        if not self.setup.constant:
            return np.zeros(p.K)
        return np.asarray(self.setup.blocks.border * self.setup.imbalance(blocks))

    def _move_centre(self) -> None:
        """The centre moves towards b, and b by as much; F jumps, which is no part of its rate."""
        off = self.setup.imbalance(self._now)
        share = min(1.0, MOVE * math.sqrt(self.rate.mu))
        change = share * self.setup.blocks.border * off
        np.asarray(self.state.qb)[: self.setup.K] += change
        self.centre = self.centre + change
        self.rate.shift(float(change @ off) / self.setup.problem.n)

    def _fold(self) -> None:
        """Rewrite the same iterate with s = 1."""
        s = self.state.s
        for array in (np.asarray(self.state.u), np.asarray(self.state.pq)[:, : self.setup.size]):
            array *= s
            array[np.abs(array) < _DUST] = 0.0
        np.asarray(self.state.pb)[:] *= s
        self.state.s = 1.0

    def _restart(self) -> None:
        """Forget the momentum: v = x, u = 0."""
        W, b, size = self.W, self.b, self.setup.size
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
