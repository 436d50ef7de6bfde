"""One output: the problem as the kernel reads it, the start, values.

In units of a_i = x_i/s_i, s_i the weight of row i, every row has the same loss and the same bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._base.validation import Index, Mask, Vector
from ..._kernels.data import matrix
from ..._kernels.dual import one_output as kernel
from ...certify.points import Point, Start
from ...data import views
from ...problems.erm import ERM
from ...problems.forms import check_constants
from .tuning import TuningOne


@dataclass(eq=False)
class SetupOne:
    """The problem as the kernel reads it."""

    problem: ERM
    tuning: TuningOne
    #: outputs, and whether looks take D from sums that the sweeps keep
    K = 1
    quick_looks = False

    def __post_init__(self) -> None:
        p, t = self.problem, self.tuning
        self.logistic = p.loss.kernel == "logistic"
        self.low, self.high = p.loss.domain
        self.epsilon = 0.0 if self.logistic else float(p.loss.theta[1])
        self.k = 0.0 if self.logistic else float(p.loss.theta[0])
        self.arrays = p.samples.view(views.arrays)
        self.tall = p.n >= t.tall * p.d
        self.scale = 1 / (p.strong_convexity * p.n)
        self.sign = p.y if p.loss.margin else np.ones(p.n_samples)
        norms = p.weights * p.squared_norms
        #: the constant last feature of X, whose w_d the kernel sees as b = held w_d; 0: none
        self.held = p.samples.constant
        #: c^2 of a free intercept's feature
        self.constant = 0.0
        if p.intercept:
            floor = t.constant_floor * p.loss.gamma * p.strong_convexity
            self.constant = max(t.constant * float(np.mean(norms)), floor) or 1.0
        self.border = (self.constant or self.held**2) * self.scale
        with np.errstate(over="ignore"):
            self.q = self.scale * (norms + self.constant * p.weights)
        check_constants(self.q, p.alpha)
        # a row without numbers, of a loss that is not smooth: one step takes it to its bound
        self.L = np.maximum(self.q + p.loss.gamma, 1e-100)
        theta = (0.0, 0.0, p.loss.gamma, *p.loss.domain) if self.logistic else p.loss.theta
        #: features that are stored
        self.features = p.d - (self.held != 0)
        self.rows = kernel.Rows(
            np.array(theta),
            p.y,
            p.weights,
            self.L,
            self.features,
            logistic=self.logistic,
            margin=p.loss.margin,
            scale=self.scale,
            border=self.border,
            single=t.single,
            enough=t.enough,
            easy=t.easy,
            ahead=4 if p.samples.nnz <= t.short_row * p.n_samples else 2,
            far=p.samples.sparse and p.d >= t.far,
        )
        self.all = np.flatnonzero(np.broadcast_to(p.weights > 0, p.n_samples))
        #: what a sweep goes by and what it finds
        self.tally = kernel.Tally()
        #: the unit of work: nonzeros, and one for each row; multiply-adds of a sweep
        self.work = self.madds = p.samples.nnz + p.n_samples
        #: mu-hat of the first sweep with momentum, if it does not follow from the rate
        self.first_mu = 1.0 if self.logistic else None

    # ---- points -------------------------------------------------------------------------------

    def start(self, at: Start) -> tuple[Vector, float]:
        """a and b to start from."""
        p = self.problem
        b = 0.0
        if p.intercept:
            b = at.b if at.b is not None else self._first_b()
        if at.x is not None:
            return self.inside(at.x / np.where(p.weights > 0, p.weights, 1.0)), b
        if at.w is not None:
            m = p.loss.argument(p.samples.times(at.w) + b, p.y)
            return self.inside(-p.loss.arrays.derivative(m)), b
        if self.logistic and p.intercept:  # the best b for w = 0 makes it balanced
            return 1 / (1 + np.exp(p.y * b)), b
        if self.logistic and float(np.mean(self.q)) < self.tuning.steep:
            return np.full(p.n_samples, 0.5), b
        return self.inside(np.zeros(p.n_samples)), b

    def _first_b(self) -> float:
        """The best constant prediction, or about that."""
        p = self.problem
        mean = float(np.mean(p.weights * p.y)) * p.n_samples / p.n
        if self.logistic:  # of weights that differ by more than rounding the mean may be 1
            mean = min(max(mean, -1 + 1e-9), 1 - 1e-9)
            return math.log1p(mean) - math.log1p(-mean)
        return mean

    def inside(self, a: Vector) -> Vector:
        """The nearest a in the domain; logistic a have finite logits."""
        if self.logistic:
            return np.clip(a, 1e-9, 1 - 1e-9)
        return np.clip(a, self.low, self.high)

    def x(self, a: Vector) -> Vector:
        """The dual point of the paper."""
        return np.asarray(self.problem.weights * a)

    def w(self, a: Vector) -> Vector:
        """A x/(sigma n), by a pass over the data (over the rows that are not zero)."""
        return self.problem.samples.adjoint(self.scale * self.sign * self.x(a))

    def kept(self, a: Vector, free: float = 0.0) -> tuple[Vector, float]:
        """What the kernel keeps: w of the features that are stored, and its b."""
        return self.parts(self.w(a) if a.any() else np.zeros(self.problem.d), free)

    def parts(self, w: Vector, free: float) -> tuple[Vector, float]:
        """The same, of this w of all features."""
        return w[: self.features], self.held * float(w[-1]) if self.held else free

    def whole(self, w: Vector, b: float) -> Vector:
        """w of all features, from what the kernel keeps."""
        return np.append(w, b / self.held) if self.held else w

    def primal(self, w: Vector, x: Vector) -> Vector:
        """w of the problem, given that of all features; a copy."""
        return w.copy()

    def imbalance(self, a: Vector) -> float:
        """sum_i y_i x_i, or sum_i x_i."""
        return float(matrix.inner(self.sign, self.x(a)))

    def pull(self, a: Vector, share: float = 1.0) -> float:
        """By how much x pulls b from its proximal centre: (c^2/(sigma n)) sum_i y_i x_i."""
        return share * (self.border * self.imbalance(a))

    def point(self, a: Vector, w: Vector | None, b: float) -> Point:
        """What is certified: x, b, and v if w is given."""
        return Point(x=self.x(a), v=None if w is None else w * float(self.problem.g.b[0]), b=b)

    # ---- values -------------------------------------------------------------------------------

    def primal_at_zero(self) -> float:
        """P(0), which is no less than P at the optimum."""
        p = self.problem
        if p.loss.margin:
            return float(p.loss.value(0.0))
        return p.primal_from(np.zeros(p.d), np.zeros(p.n_samples))

    def cost(self, x: Vector) -> float:
        """(1/n) sum_i s_i phi_i*(-x_i/s_i)"""
        p = self.problem
        total = p.loss.arrays.total_conjugate(x, p.weights)
        return float(total if p.loss.margin else total - matrix.inner(p.y, x)) / p.n

    def dual(self, a: Vector, w: Vector) -> float:
        """D, without what an intercept asks for."""
        square = matrix.inner(w, w)
        return -self.cost(self.x(a)) - 0.5 * self.problem.strong_convexity * float(square)

    def set_thresholds(self, gap: float, primal: float) -> None:
        """Beyond what a row at rest is dropped in the next sweep: what this one has found."""
        self.tally.end()

    def resting(self, a: Vector, z: Vector, rows: Index) -> Mask:
        """Which of these rows rest beyond the thresholds, by predictions: as the kernel has it."""
        p, a = self.problem, a[rows]
        G = self.k - p.loss.argument(z[rows], p.y[rows]) - p.loss.gamma * a
        right = np.where(a >= 0, G - self.epsilon, G + self.epsilon)
        left = np.where(a > 0, G - self.epsilon, G + self.epsilon)
        low, high = self.tally.low, self.tally.high
        above = (a >= self.high) | (right <= (low if math.isfinite(low) else 0.0))
        below = (a <= self.low) | (left >= (high if math.isfinite(high) else 0.0))
        return np.asarray(above & below)

    def block(self, size: int, split: bool, parts: int = 1) -> int:
        """The length of the blocks of `size` rows; single rows unless `split`."""
        t = self.tuning
        if not split or size < 2 * t.blocks:
            return 1
        length = t.block_tall if self.tall else self._longest_block
        return max(1, min(length // parts, size // t.blocks))

    @cached_property
    def _longest_block(self) -> int:
        """The most consecutive rows that are not too much alike."""
        t, p = self.tuning, self.problem
        rows = np.linspace(0, p.n_samples - 2, t.pairs).astype(np.intp)
        products = np.empty(t.pairs)
        if not matrix.neighbours(*self.arrays, self.features, rows, products):
            if self.held:  # columns are out of order
                return t.block
            X = p.samples.view(views.whole)
            products = X[rows].multiply(X[rows + 1]).sum(axis=1)
        common, square = (
            float(np.mean(np.abs(products + self.held**2))),
            float(np.mean(p.squared_norms[rows])),
        )
        return max(1, round(min(t.block, t.fresh * square / common))) if common > 0 else t.block
