"""The sweeps of `lean` with momentum: APCG that finds its own mu, on uneven samples of the rows.

`_kernels/dual/one_output_momentum.pyx` has the step. Row i has r_i of the N steps of a sweep, r_i
a power of two: most where x moved most in the last sweep, since what is slow in sparse data is
local. The proof of Theorem 1 goes through with mu the convexity of f in the norm
sum_i (L_i/r_i^2) x_i^2: larger by up to r^2 if the slow directions are all among rows with r_i = r.

mu-hat follows the rate at which F = -D falls. Where mu-hat is at most the convexity mu that the
problem has, the rate is about sqrt(mu-hat) a sweep; where it is larger, mu/sqrt(mu-hat). With S1
the fall of F in the last window of sweeps, S2 in the one before and c = log(S2/S1)/window,

    c well below sqrt(mu-hat)   mu-hat is too large, it falls towards c sqrt(mu-hat)
    c about sqrt(mu-hat)        momentum is the limit: after a while mu-hat is raised
    F has risen                 restart (z = x) with a larger mu-hat
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.dual import one_output_momentum as kernel
from ..._kernels.dual.one_output import Plain, Tally
from ..paper.adaptive.rate import Rate, RateTuning
from .one_output_setup import Setup

#: The rule for mu-hat is that of the adaptive method; here a window is whole sweeps, however short.
_RATE = RateTuning(fewest=1)
#: r_i is at most HIGHEST and UNEVEN/sqrt(mu-hat), and 1 if mu-hat is at most FLOOR times mu.
HIGHEST, UNEVEN, FLOOR = 16, 8.0, 2.0
CLASSES = 5
#: The centre of the intercept moves by MOVE sqrt(mu-hat) of the way, at most all of it.
MOVE = 2.0
#: Below this s the state is folded: u grows like 1/s, and with it the rounding error.
FOLD_AT = 1e-4


class Momentum:
    """Sweeps with momentum: u, v, p, q, mu-hat and the visits r."""

    #: Fewer rows than this tell no rate, and alpha is at most one over it.
    FEWEST = 20

    def __init__(self, setup: Setup, without: tuple[str, ...], plain: Plain, mu: float) -> None:
        p = setup.problem
        self.setup, self.without = setup, without
        self.split = "blocks" not in without
        self.factor = setup.tuning.hasty
        a = np.asarray(plain.a)
        pq = _aligned_zeros(p.d)
        pq[:, 1] = plain.w
        guess = np.column_stack([plain.eta, a]) if setup.logistic else np.empty((0, 2))
        width = setup.high - setup.low
        near = setup.tuning.settle * (width if math.isfinite(width) else 1.0)
        self.state = kernel.Accelerated(
            np.column_stack([np.zeros(a.size), a]),
            pq,
            guess,
            qb=plain.b,
            settle=-1.0 if "settling" in without else near,
        )
        #: b = c beta of the proximal centre
        self.centre = plain.b - self._pull(a)
        self.highest = 1
        self._lengths = p.samples.lengths
        self._last = a.copy()
        least = max(p.mu, setup.tuning.least_mu if setup.constant else 0.0)
        self.rate = Rate(mu, least, self._value(), _RATE)

    # ---- the point ------------------------------------------------------------------------------

    @property
    def _x(self) -> Vector:
        """x, which momentum may have brought outside its domain by a little."""
        uv = np.asarray(self.state.uv)
        return np.asarray(uv[:, 1] + (0.5 * self.state.s) * uv[:, 0])

    @property
    def a(self) -> Vector:
        """x in its domain."""
        return self._inside(self._x)

    def _inside(self, x: Vector) -> Vector:
        low, high = self.setup.low, self.setup.high
        return np.clip(x, low, high)

    @property
    def w(self) -> Vector:
        """A a/(sigma n), as kept; rows that were outside the domain are carried over."""
        pq = np.asarray(self.state.pq)
        w = pq[:, 1] + (0.5 * self.state.s) * pq[:, 0]
        x = self._x
        change = self._inside(x) - x
        return w + self.setup.w(change) if change.any() else np.asarray(w)

    @property
    def b(self) -> float:
        """The intercept."""
        return float(self.state.qb + 0.5 * self.state.s * self.state.pb)

    @property
    def mu(self) -> float:
        """mu-hat"""
        return self.rate.mu

    @property
    def pause(self) -> float:
        """Looks are so many sweeps apart."""
        return self.setup.tuning.pause / math.sqrt(self.rate.mu)

    # ---- a sweep --------------------------------------------------------------------------------

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, tuple[Index, ...]]:
        """The rows by class, and the blocks of the sweep: begin, end, visits, last round or not."""
        exponents = np.empty(keep.size, dtype=np.intp)
        counts = np.zeros(CLASSES, dtype=np.intp)
        room = np.empty(keep.size)
        kernel.choose_visits(
            self.setup.rows,
            self.state,
            keep,
            self._lengths,
            self._last,
            room,
            exponents,
            self._most_visits(keep),
            counts,
        )
        each = 1 << np.arange(CLASSES)
        steps = int(counts @ each)
        self.highest = int(each[np.flatnonzero(counts)[-1]])
        self.state.N = steps
        # with few rows alpha would be near 1, and s near 0
        self.state.root = min(math.sqrt(self.rate.mu), steps / self.FEWEST)
        lengths = np.array(
            [
                self.setup.block(int(c), self.split, int(e))
                for c, e in zip(counts, each, strict=True)
            ]
        )
        blocks = -(-counts // lengths)
        total = int(blocks @ each)
        listed = np.empty(keep.size, dtype=np.intp)
        columns = np.empty((4, total), dtype=np.intp)
        kernel.arrange(
            keep,
            exponents,
            counts,
            lengths,
            rng.integers(0, 1 << 32, size=total, dtype=np.uint32),
            listed,
            np.empty(int(blocks.sum()), dtype=np.intp),
            *columns,
        )
        return listed, tuple(columns)

    def call(self, keep: Index, tally: Tally, blocks: tuple[Index, ...]) -> None:
        """Steps on the rows of these blocks."""
        kernel.accelerated_sweep(
            *self.setup.working, self.setup.rows, self.state, tally, keep, *blocks
        )

    def after(self) -> None:
        """After a sweep: mu-hat, the centre of the intercept."""
        if self.state.s < FOLD_AT:
            self._fold()
        window_ends = self.rate.left(1) == 1
        self.rate.stepped(1)
        if window_ends and self.rate.saw(self._value(), 1, self.highest):
            self._restart()
        if self.setup.constant:
            self._move_centre()

    def _most_visits(self, keep: Index) -> float:
        """1 where there is nothing to gain from uneven visits."""
        mu = self.rate.mu
        if "visits" in self.without or keep.size < self.FEWEST or mu <= FLOOR * self.rate.least:
            return 1.0
        return min(HIGHEST, UNEVEN / math.sqrt(mu))

    # ---- values and sums ------------------------------------------------------------------------

    def _value(self) -> float:
        """F = -D, with the proximal term of the intercept."""
        p, x = self.setup.problem, np.empty(self.setup.problem.n_samples)
        square, outside = kernel.dual_parts(self.setup.rows, self.state, x)
        if outside:
            square = float(np.sum(self.w**2))
        value = self.setup.cost(x) + 0.5 * p.strong_convexity * square
        if self.setup.constant:
            b = self.centre + self._pull(self.a)
            change = (b - self.centre) * (b + self.centre)
            value += p.strong_convexity / (2 * self.setup.constant) * change
        return value

    def _pull(self, a: Vector) -> float:
        """b less that of the centre: (c^2/(sigma n)) sum_i y_i x_i."""
        if not self.setup.constant:
            return 0.0
        return self.setup.constant * self.setup.scale * self.setup.imbalance(a)

    def _move_centre(self) -> None:
        """The centre moves towards b, and b by as much; F jumps, which is no part of its rate.

        Where momentum takes many sweeps to answer, whole moves would make it swing: moves of
        sqrt(mu-hat) are not slower than momentum itself.
        """
        a = self.a
        change = min(1.0, MOVE * math.sqrt(self.rate.mu)) * self._pull(a)
        self.state.qb += change
        self.centre += change
        self.rate.shift(change * self.setup.imbalance(a) / self.setup.problem.n)

    def _fold(self) -> None:
        """Rewrite the same iterate with s = 1."""
        s = self.state.s
        np.asarray(self.state.uv)[:, 0] *= s
        np.asarray(self.state.pq)[:, 0] *= s
        self.state.pb *= s
        self.state.s = 1.0

    def _restart(self) -> None:
        """Forget the momentum: v = x, u = 0; x comes back into its domain, and w with it."""
        a, w, b = self.a, self.w, self.b
        self._place(a, w)
        self.state.qb, self.state.pb = b, 0.0

    def _place(self, a: Vector, w: Vector) -> None:
        uv, pq = np.asarray(self.state.uv), np.asarray(self.state.pq)
        uv[:, 0], uv[:, 1] = 0.0, a
        pq[:, 0], pq[:, 1] = 0.0, w
        self.state.s = 1.0

    def refresh(self) -> None:
        """Compute p and q anew from u and v."""
        uv, pq = np.asarray(self.state.uv), np.asarray(self.state.pq)
        for k in range(2):
            pq[:, k] = self.setup.w(uv[:, k])


def _aligned_zeros(rows: int) -> np.ndarray:
    """A (rows, 2) array of zeros that starts at a multiple of 16 bytes, for the kernel's pairs."""
    room = np.zeros(2 * rows + 1)
    skip = room.ctypes.data % 16 // 8
    return room[skip : skip + 2 * rows].reshape(rows, 2)
