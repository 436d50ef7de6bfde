"""K outputs: the problem as the kernel reads it, values.

The state a_i of a row is a block of K numbers, padded to a multiple of four: pi_i for a loss over
classes, x_i/s_i for a sum over outputs (`_kernels/dual/many_outputs.pyx`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._base.validation import Index, Mask, Matrix, Vector
from ..._kernels.data import products_k
from ..._kernels.dual import many_outputs as kernel
from ..._kernels.losses import outputs
from ...certify.certificate import Certificate, stated
from ...certify.points import Point
from ...data import views
from ...data.compact import Compact
from ...data.products_k import padded, with_pads, zeros
from ...losses.base import COLUMNS, SIMPLEX, SOFTMAX
from ...problems.erm import ERM
from ...problems.forms import check_constants
from .tuning import TuningK
from .visits import CLASSES, arranged


@dataclass(eq=False)
class SetupK:
    """The problem as the kernel reads it."""

    problem: ERM
    tuning: TuningK
    #: mu-hat of the first sweep with momentum, if it does not follow from the rate
    first_mu = None

    def __post_init__(self) -> None:
        p, t = self.problem, self.tuning
        self.kind: int = p.loss.kind
        self.simplex = self.kind in (SOFTMAX, SIMPLEX)
        self.K, self.size = p.K, padded(p.K)
        assert p.g.soft is not None
        a, b = p.g.soft
        #: the constant last feature of X, whose W_d the kernel sees as b = held W_d; 0: none
        #: whether looks take D from the W that plain sweeps keep (`sweeps_k.LookK`)
        self.held = p.samples.constant
        self.quick_looks = a == 0 and not (p.intercept or self.held) and self.kind != COLUMNS
        #: the weight of each row
        self.s = np.broadcast_to(p.weights, p.n_samples)
        #: the data as the sweeps read it, and how many rows W has there
        self.arrays, self.features = p.samples.view(views.arrays), p.d - (self.held != 0)
        self.compact: Compact | None = None
        if p.samples.sparse and 8 * p.d * self.size > t.large:
            self.compact = p.samples.view(views.compact, a == 0)
            self.arrays, self.features = self.compact.shared, self.compact.order.size
        #: how many of the last numbers of each row have rows of W that are far away
        self.far = None if self.compact is None else self.compact.far
        self.b = b
        self.threshold = a if a > 0 else -1.0
        #: W, or V for an elastic net, is A x times this
        self.scale = 1 / (p.alpha * p.n * (1.0 if a > 0 else b))
        self.factor = 1 / b if a > 0 else 1.0
        norms = np.broadcast_to(p.weights * p.squared_norms, p.n_samples)
        #: c^2 of the feature of free intercepts
        self.constant = 0.0
        if p.intercept:
            own = p.strong_convexity * p.loss.gamma * p.n
            self.constant = max(t.constant * float(np.mean(norms)), own) or 1.0
        step = 1 / (p.strong_convexity * p.n)
        with np.errstate(over="ignore"):
            self.q = step * (norms + self.constant * p.weights)
        check_constants(self.q, p.alpha)
        #: how far rows move is measured in these units
        self.lengths = np.sqrt(p.weights * (self.q + p.loss.gamma))
        self.alone = np.empty(0)
        if self.compact is not None and a == 0:
            self.alone = self.scale * p.weights * self.compact.squares
        self.border = (self.constant or self.held**2) * step
        self.blocks = self._blocks()
        self.all = np.flatnonzero(np.broadcast_to(p.weights > 0, p.n_samples))
        #: what a sweep goes by and what it finds
        self.tally = kernel.Count()
        #: the unit of work: nonzeros, and one for each row; multiply-adds of a sweep
        self.work = self.arrays[0].size + p.n_samples
        self.madds = self.work * self.K

    def _blocks(self) -> kernel.Blocks:
        p = self.problem
        margin = p.loss.by_output and bool(p.loss.loss.margin)
        none = np.empty((0, self.size))
        return kernel.Blocks(
            self.kind,
            self.features,
            p.K,
            p.y if self.simplex else np.empty(0, dtype=np.int32),
            none if self.simplex else with_pads(p.y, self.size),
            p.weights,
            self.q,
            np.empty(0) if self.simplex else np.array(p.loss.loss.theta, dtype=np.float64),
            margin=margin,
            gamma=p.loss.gamma,
            scale=self.scale,
            border=self.border,
            threshold=self.threshold,
            factor=self.factor,
            enough=self.tuning.enough_root,
            alone=self.alone,
            far=np.empty(0, np.int32) if self.far is None else self.far,
        )

    def sweep(
        self, keep: Index, moved: Vector, most: float, rng: np.random.Generator
    ) -> tuple[Index, Index, Index]:
        """The rows of a sweep in order, their visits, and whether one is the last of its row.

        Visits are how far a row has moved, over the mean of that: a power of two, at most `most`.
        """
        lengths = self.problem.samples.lengths[keep]
        mean = float(moved @ lengths) / float(lengths.sum())
        exponents = np.zeros(moved.size, dtype=np.intp)
        if most >= 2 and 0 < mean < math.inf:
            exponents = np.log2(np.clip(moved / mean, 1.0, most)).astype(np.intp)
        counts = np.bincount(exponents, minlength=CLASSES)
        single = np.ones(CLASSES, dtype=np.intp)
        listed, (begin, _, visits, last) = arranged(keep, exponents, counts, single, rng)
        return listed[begin], visits, last

    # ---- points -------------------------------------------------------------------------------

    def no_rows(self) -> Matrix:
        """The W of x = 0."""
        return zeros(self.features, self.size)

    def block_of(self, x: Matrix) -> Matrix:
        """The blocks of the dual point x of the paper."""
        p = self.problem
        s = np.where(p.weights > 0, p.weights, 1.0)[:, None]
        blocks = np.zeros((p.n_samples, self.size))
        blocks[:, : p.K] = x / s
        if self.simplex:
            blocks[:, : p.K] *= -1.0
            blocks[np.arange(p.n_samples), p.y] += 1.0
            np.maximum(blocks, 0.0, out=blocks)
        return blocks

    def x(self, blocks: Matrix) -> Matrix:
        """The dual point of the paper, in its domain."""
        p = self.problem
        own = np.ascontiguousarray(blocks[:, : p.K])
        if not self.simplex:
            return np.asarray(p.weights[:, None] * own)
        x = np.empty_like(own)
        s = p.weights
        outputs.dual(own, p.y, s, x)
        return x

    def imbalance(self, blocks: Matrix) -> Vector:
        """sum_i x_i, which is zero at the optimum with intercepts."""
        p = self.problem
        own = blocks[:, : p.K]
        return np.asarray(self.mass - self.s @ own if self.simplex else self.s @ p.signed(own))

    def pull(self, blocks: Matrix, share: float = 1.0) -> Vector:
        """By how much x pulls b from its proximal centre: (c^2/(sigma n)) sum_i x_i."""
        return np.asarray(share * self.border * self.imbalance(blocks))

    def pull_of(self, x: Matrix) -> Vector:
        """The same, for the dual point x of the paper."""
        return np.asarray(self.border * self.problem.signed(x).sum(axis=0))

    @cached_property
    def mass(self) -> Vector:
        """The sum of the weights of each class."""
        p = self.problem
        return np.bincount(p.y, self.s, minlength=p.K).astype(np.float64)

    def rows(self, x: Matrix) -> Matrix:
        """A x times `scale`, padded, by a pass over the data (over the rows that are not zero)."""
        p = self.problem
        x = with_pads(p.signed(x), self.size)
        out = self.no_rows()
        products_k.adjoint(*self.arrays, self.scale * x, out, self.far)
        return out

    def expand(self, rows: Matrix, x: Matrix) -> Matrix:
        """A x times `scale` with all features, given x and the rows that are kept; a copy."""
        p = self.problem
        W = np.array(rows[:, : p.K], order="C")
        if self.compact is not None:
            W = self.compact.expand(rows, self.scale * p.signed(x))
        return np.vstack([W, self.pull_of(x) / self.held]) if self.held else W

    def primal(self, rows: Matrix, x: Matrix) -> Matrix:
        """W of the problem, given x and the rows that are kept; a copy."""
        v = self.expand(rows, x)
        return self.problem.g.conjugate_gradient(v) if self.threshold > 0 else v

    def predictions(self, rows: Matrix, x: Matrix) -> Matrix:
        """X W of the rows that are kept, and of those that follow from x; not for L1."""
        p = self.problem
        z = np.empty((p.n_samples, self.size))
        products_k.times(*self.arrays, rows, z, self.far)
        z = np.ascontiguousarray(z[:, : p.K])
        if self.alone.size:
            z += self._alone_each[:, None] * p.signed(x)
        return z + self.pull_of(x) if self.held else z

    @cached_property
    def _alone_each(self) -> Vector:
        """`scale` times the sums of squares of the features that a row has alone."""
        return self.alone / np.where(self.problem.weights > 0, self.problem.weights, 1.0)

    def products(self, x: Matrix) -> tuple[Matrix, Matrix]:
        """W and the predictions X W, from x alone, in the order of the sweeps; not for L1."""
        kept = self.rows(x)
        return self.expand(kept, x), self.predictions(kept, x)

    def certificate(self, x: Matrix, b: Vector) -> Certificate:
        """The exact one of x, as `certify` has it."""
        p = self.problem
        w, z = self.products(x)
        v, best = w, 0.0
        if p.intercept:
            best = p.best_shift(z, b)
            x, z = p.balanced(x), z + best
            v = self.expand(self.rows(x), x)
        P, D = p.primal_from(w, z), p.dual_from(x, v if self.b == 1 else v * self.b)
        return stated(w, x, best, z, P, D)

    def point(self, blocks: Matrix, W: Matrix | None, b: Vector) -> Point | Certificate:
        """What is certified: x, b, and v if W is given; the certificate itself for a compact X."""
        x = self.x(blocks)
        if self.alone.size:
            return self.certificate(x, b)
        if W is None:
            return Point(x=x, b=b)
        v = self.expand(W, x)
        return Point(x=x, v=v if self.threshold > 0 or self.b == 1 else v * self.b, b=b)

    # ---- rows that rest -----------------------------------------------------------------------

    def set_thresholds(self, gap: float, primal: float) -> None:
        """How far above the others a vertex must be for its row to be dropped in the next sweep.

        |W - W*|^2 <= 2 gap/sigma bounds by how much the slopes of a row differ from those at the
        optimum: 2 sqrt(q_i n gap). A part of that does, since W - W* is along few of the a_i.
        """
        self.tally.open()
        if gap <= self.tuning.drop_from * primal:
            self.tally.high = self.tuning.drop * math.sqrt(gap * self.problem.n)

    def resting(self, blocks: Matrix, z: Matrix, rows: Index) -> Mask:
        """Which of these rows are at a vertex by more than the threshold, as the kernel has it."""
        p = self.problem
        pi, A = blocks[rows, : p.K], z[rows] + 1.0
        A[np.arange(rows.size), p.y[rows]] += p.loss.gamma - 1.0
        at = np.arange(rows.size), pi.argmax(axis=1)
        own = A[at] - p.loss.gamma
        A[at] = -math.inf
        high = self.tally.high
        bound = np.sqrt(self.q[rows]) * (high if math.isfinite(high) else 0.0)
        return np.asarray((pi[at] == 1.0) & (own - A.max(axis=1) > bound))

    # ---- values -------------------------------------------------------------------------------

    def primal_at_zero(self) -> float:
        """P(0), which is no less than P at the optimum."""
        p = self.problem
        if self.simplex:
            return float(p.loss.value(np.zeros((1, p.K)), p.y[:1])[0])
        return p.primal_from(np.zeros((p.d, p.K)), np.zeros((p.n_samples, p.K)))

    def cost(self, blocks: Matrix) -> float:
        """(1/n) sum_i s_i phi_i*(-x_i/s_i)"""
        p = self.problem
        if self.kind == SOFTMAX:
            return float(outputs.entropies(blocks, p.weights)) / p.n
        return p.conjugate_total(self.x(blocks)) / p.n

    def dual(self, blocks: Matrix, W: Matrix) -> float:
        """D, without what intercepts ask for."""
        return -self.cost(blocks) - self.square_cost(self.square(W, blocks))

    def square(self, W: Matrix, blocks: Matrix, s: float = 0.0) -> float:
        """The sum of squares of A x times `scale`, after the threshold; W as kept.

        With momentum W has p and q, and s is that of q + s p/2.
        """
        two = W.shape[1] > self.size
        shared = outputs.square(W, two, s, self.threshold)
        return float(shared + self.squares_alone(blocks).sum())

    def square_of(self, rows: Matrix, x: Matrix | None = None) -> float:
        """The same, for L2, of any x and its rows, in the place of blocks; or of the rows alone."""
        total = float(outputs.square(rows, False, 0.0, -1.0))
        if self.held and x is not None:
            total += float(np.sum(self.pull_of(x) ** 2)) / self.held**2
        if self.alone.size and x is not None:
            total += self.scale * float(self._alone_each @ np.einsum("ik,ik->i", x, x))
        return total

    def squares_alone(self, blocks: Matrix) -> Vector:
        """The sums of squares, by columns, of rows that W lacks."""
        p = self.problem
        own = self.pull(blocks) ** 2 / self.held**2 if self.held else np.zeros(p.K)
        if not self.alone.size:
            return own
        x = blocks[:, : p.K] ** 2
        if self.simplex:
            at = np.arange(p.n_samples), p.y
            x[at] = (1 - blocks[at]) ** 2
        return np.asarray(own + (self.scale * p.weights * self.alone) @ x)

    def square_cost(self, square: float) -> float:
        """lambda g*(V), from the sum of squares of what is kept, after the threshold."""
        p = self.problem
        return 0.5 * p.alpha * (square / self.b if self.threshold > 0 else square * self.b)
