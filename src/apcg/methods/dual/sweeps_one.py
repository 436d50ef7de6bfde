"""One output: the state of the kernel in plain sweeps and in sweeps with momentum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._base.memory import aligned_zeros
from ..._base.validation import Index, Vector
from ..._kernels.dual import one_output as plain
from ..._kernels.dual import one_output_momentum as kernel
from ...certify.points import Point, Start
from .setup_one import SetupOne
from .visits import CLASSES, arranged

#: Rows in one piece of a kernel call, where all are in random order.
PIECE = 1024


class PlainOne:
    """Sweeps without momentum: a, w and b."""

    #: how far looks are apart, in sweeps
    pause = 0.0
    #: mu-hat: there is no momentum
    mu, restarts = 1.0, 0

    def __init__(self, setup: SetupOne, without: tuple[str, ...], at: Start) -> None:
        a, b = setup.start(at)
        eta = np.log(a) - np.log1p(-a) if setup.logistic else np.empty(0)
        self.setup, self.split = setup, "blocks" not in without
        self.factor = setup.tuning.calm
        self.state = plain.Plain(a, eta, *setup.kept(a, b))

    @property
    def a(self) -> Vector:
        """The dual point, in its domain."""
        return np.asarray(self.state.a)

    @property
    def w(self) -> Vector:
        """A x/(sigma n), as kept."""
        return self.setup.whole(np.asarray(self.state.w), self.state.b)

    @property
    def b(self) -> float:
        """The free intercept."""
        return 0.0 if self.setup.held else float(self.state.b)

    def accelerated(self, without: tuple[str, ...]) -> MomentumOne:
        """The state with momentum that goes on from here."""
        return MomentumOne(self, without)

    def schedule(self, keep: Index, rng: np.random.Generator) -> tuple[Index, tuple[Index, ...]]:
        """The rows in the order of the sweep's list, and its blocks: begin, end.

        Where n >> d neighbours are often alike, and steps on rows that are alike bring little.
        """
        if self.setup.tall:
            begin = np.arange(0, keep.size, PIECE)
            return rng.permutation(keep), (begin, np.minimum(begin + PIECE, keep.size))
        length = self.setup.block(keep.size, self.split)
        begin = length * rng.permutation(-(-keep.size // length))
        return keep.copy(), (begin, np.minimum(begin + length, keep.size))

    def call(self, listed: Index, blocks: tuple[Index, ...]) -> None:
        """Steps on the rows of these blocks."""
        setup = self.setup
        plain.plain_sweep(*setup.arrays, setup.rows, self.state, setup.tally, listed, *blocks)

    def estimate(self) -> float:
        """The gap: the sum of the parts of the rows, each at the w of its step."""
        return float(self.setup.tally.est) / self.setup.problem.n

    def calls(self, keep: Index, random: NDArray[np.uint32], shrink: bool) -> tuple[int, Vector]:
        """Sweeps over `keep`, one for each row of `random`: how many rows are left, estimates."""
        found = np.empty(len(random))
        setup = self.setup
        left = plain.plain_sweeps(
            *setup.arrays, setup.rows, self.state, setup.tally, keep, random, shrink, found
        )
        return left, found

    def after(self) -> None:
        """After a sweep: the centre of the intercept moves."""
        if self.setup.constant:
            self.state.b += self.setup.pull(self.a)

    def refresh(self) -> None:
        """Compute w anew from a."""
        np.asarray(self.state.w)[:], self.state.b = self.setup.kept(self.a, self.state.b)

    def point(self, first: bool) -> Point:
        """x and what goes with it; without v where the `first` look is likely to end the run.

        That takes a certificate from x alone, and two of them would be one too many.
        """
        return self.setup.point(self.a, None if first else self.w, self.b)


class MomentumOne:
    """Sweeps with momentum: u, v, p, q."""

    def __init__(self, plain: PlainOne, without: tuple[str, ...]) -> None:
        self.setup, self._split = plain.setup, plain.split
        setup, a = plain.setup, plain.a
        pq = aligned_zeros(setup.features)
        pq[:, 1] = plain.state.w
        guess = np.column_stack([plain.state.eta, a]) if setup.logistic else np.empty((0, 2))
        width = setup.high - setup.low
        near = setup.tuning.settle * (width if math.isfinite(width) else 1.0)
        self.state = kernel.Accelerated(
            np.column_stack([np.zeros(a.size), a]),
            pq,
            guess,
            qb=plain.state.b,
            settle=-1.0 if "settling" in without else near,
        )
        self._lengths = setup.problem.samples.lengths
        self._last = a.copy()

    # ---- the point ------------------------------------------------------------------------------

    @property
    def _x(self) -> Vector:
        """x, which momentum may have brought outside its domain by a little."""
        uv = np.asarray(self.state.uv)
        return np.asarray(uv[:, 1] + (0.5 * self.state.s) * uv[:, 0])

    def _inside(self, x: Vector) -> Vector:
        return np.clip(x, self.setup.low, self.setup.high)

    @property
    def a(self) -> Vector:
        """x in its domain."""
        return self._inside(self._x)

    @property
    def w(self) -> Vector:
        """A a/(sigma n), as kept; rows that were outside the domain are carried over."""
        pq = np.asarray(self.state.pq)
        w = self.setup.whole(pq[:, 1] + (0.5 * self.state.s) * pq[:, 0], self._b)
        x = self._x
        change = self._inside(x) - x
        return w + self.setup.w(change) if change.any() else np.asarray(w)

    @property
    def _b(self) -> float:
        return float(self.state.qb + 0.5 * self.state.s * self.state.pb)

    @property
    def b(self) -> float:
        """The free intercept."""
        return 0.0 if self.setup.held else self._b

    def point(self, first: bool) -> Point:
        """x and what goes with it."""
        return self.setup.point(self.a, self.w, self.b)

    # ---- a sweep --------------------------------------------------------------------------------

    def schedule(
        self, keep: Index, most: float, rng: np.random.Generator
    ) -> tuple[Index, tuple[Index, ...], int, int]:
        """The rows by class, the blocks (begin, end, visits, last round or not), steps, most."""
        exponents = np.empty(keep.size, dtype=np.intp)
        counts = np.zeros(CLASSES, dtype=np.intp)
        kernel.choose_visits(
            self.setup.rows,
            self.state,
            keep,
            self._lengths,
            self._last,
            np.empty(keep.size),
            exponents,
            most,
            counts,
        )
        each = 1 << np.arange(CLASSES)
        lengths = np.array(
            [
                self.setup.block(int(c), self._split, int(e))
                for c, e in zip(counts, each, strict=True)
            ]
        )
        listed, parts = arranged(keep, exponents, counts, lengths, rng)
        return listed, parts, int(counts @ each), int(each[np.flatnonzero(counts)[-1]])

    def set_pace(self, steps: int, root: float) -> None:
        """The steps of a sweep, and sqrt(mu-hat)."""
        self.state.N, self.state.root = steps, root

    def call(self, listed: Index, blocks: tuple[Index, ...]) -> None:
        """Steps on the rows of these blocks."""
        setup = self.setup
        kernel.accelerated_sweep(
            *setup.arrays, setup.rows, self.state, setup.tally, listed, *blocks
        )

    def estimate(self) -> float:
        """The gap: the sum of the parts of the rows, at the last visit of each."""
        return float(self.setup.tally.est) / self.setup.problem.n

    def come_inside(self, fold_at: float) -> None:
        """After a sweep: rewrite the same iterate with s = 1 if s is below this."""
        s = self.state.s
        if s < fold_at:
            np.asarray(self.state.uv)[:, 0] *= s
            np.asarray(self.state.pq)[:, 0] *= s
            self.state.pb *= s
            self.state.s = 1.0

    def value(self) -> float:
        """-D"""
        x = np.empty(self.setup.problem.n_samples)
        square, outside = kernel.dual_parts(self.setup.rows, self.state, x)
        if outside or self.setup.held:
            square = float(np.sum(self.w**2))
        return self.setup.cost(x) + 0.5 * self.setup.problem.strong_convexity * square

    def move_b(self, change: float) -> None:
        """Move the intercept."""
        self.state.qb += change

    def restart(self) -> None:
        """Forget the momentum: v = x, u = 0; x comes back into its domain, and w with it."""
        a, kept = self.a, self.setup.parts(self.w, self._b)
        uv, pq = np.asarray(self.state.uv), np.asarray(self.state.pq)
        uv[:, 0], uv[:, 1] = 0.0, a
        pq[:, 0], self.state.pb, self.state.s = 0.0, 0.0, 1.0
        pq[:, 1], self.state.qb = kept

    def refresh(self) -> None:
        """Compute p and q anew from u and v."""
        uv, pq = np.asarray(self.state.uv), np.asarray(self.state.pq)
        pq[:, 0], self.state.pb = self.setup.kept(uv[:, 0], self.state.pb)
        pq[:, 1], self.state.qb = self.setup.kept(uv[:, 1], self.state.qb)
