"""What both sweeps of `lean` share: the constants, the problem as the kernel reads it, the start.

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
from ...certify.points import Start
from ...data import views
from ...problems.erm import ERM

#: What can be left out of the method, to see what it is worth.
PARTS = ("momentum", "visits", "shrinking", "settling", "blocks")


@dataclass(frozen=True)
class DualTuning:
    """The constants. Text is rcv1 and two more sets of documents; n >> d is a9a and covtype."""

    #: consecutive rows that are stepped on one after the other; 8 took 1.1 times longer on rcv1 ...
    block: int = 64
    #: ... but at most `fresh` over the mean cosine of neighbours: further rows would only
    #: repeat what is common to them (decision 7; 0.35 and 1 take 1.1 times as long on some text)
    fresh: float = 0.5
    #: pairs of neighbours for that mean: enough to tell 0.02 from 0.04
    pairs: int = 100
    #: the same where n >= `tall` d, where the order within blocks is random too: the same order in
    #: each sweep takes 1.6 times as many on covtype, and blocks of 8 twice the time of a sweep
    block_tall: int = 32
    tall: float = 5.0
    #: rows are short there, and one is fetched into the cache so many steps before its own
    ahead: int = 4
    #: but at least so many blocks: fewer would leave little to chance
    blocks: int = 64
    #: a look pays when the estimate is below so much of what is asked for ...
    calm: float = 0.7
    #: ... and after a sweep in which it fell by rho the gap is about rho^`late` of it: each row was
    #: seen before the sweep was over (on rcv1, smooth losses, 0.6 to 0.97; a9a 0.3 to 0.7)
    late: float = 0.5
    #: with momentum the estimate, taken at moving w, is too high, by 1.2 to 1.6 (rcv1, 48 runs: 64
    #: looks with 2, 50 with 1.4, 48 with less, in equal times; on news20 a look takes 2 passes)
    hasty: float = 1.3
    #: looks are at least 1 + `pause`/sqrt(mu-hat) sweeps apart
    pause: float = 0.1
    #: a failed look of more than this many times the estimate says that rows left out are missing
    missing: float = 1.5
    #: momentum starts when more than so many plain sweeps seem to be left (5 to 12 are as good) ...
    patience: float = 8.0
    #: ... seen first after this sweep, from the rate since the middle of the run
    earliest: int = 4
    #: mu-hat starts at half the rate, in these bounds; at 1 for logistic rows, which have no rate
    #: yet if they start next to 0 (lambda = 1e-8 to 1e-6, with these bounds and with 1: news20 3.7
    #: and 1.3 s, rcv1 0.41 and 0.25, another text 0.31 and 0.19; 1e-6 and 1e-7 as long; the hinge
    #: loss at 1e-8 takes 1.2 times as long with 1)
    first_mu: tuple[float, float] = (1 / 16, 1.0)
    #: with an intercept mu-hat stays above this: its centre moves at its own pace, which is not the
    #: rate that mu-hat follows (6 sparse hinge problems, 150 x 400: 103 to 395 passes; with 1e-2 66
    #: to 153, with 1e-4 72 to 1,000, without 4 not in 1,000; rcv1, 18 runs: with 1e-2 1.3 times the
    #: time, equal with the others)
    least_mu: float = 1e-3
    #: logistic: steps below this need no exp (the error of the series is its fourth power)
    series: float = 2e-3
    #: logistic: Newton's steps of a row end here, since w moves on anyway
    enough: float = 1e-2
    #: logistic: a row with q_i below this takes one step
    easy: float = 0.5
    #: logistic: rows start at 1/2 if the mean of q_i is below this, else next to 0
    steep: float = 2.0
    #: a row this near its bound, in units of the interval, is put there if the dual rises
    settle: float = 0.01
    #: intercept: c^2 over the mean of |a_i|^2, and over gamma lambda (of 0.003 to 1 the best)
    constant: float = 0.01
    constant_floor: float = 5.0
    #: rows are copied side by side when less than this part of them is left, ...
    gather: float = 0.3
    #: ... after so many sweeps
    gather_from: int = 8
    #: where n >> d: a copy of all rows takes as long as two or three sweeps, and halves the others
    gather_from_tall: int = 4
    #: the Python around a sweep takes 40 us: sweeps are made in one call, so many of them, ...
    burst: int = 32
    #: ... of at most so many numbers in all (digits, hinge: about 12 calls and not 25 to 50), ...
    short: int = 250_000
    #: ... once at most this part of the rows is left, or where there is no momentum to wait for
    few_left: float = 1 / 8
    #: P is guessed again after so many more passes, and so many times as many: over few rows a
    #: sweep takes less time than a guess (the second was not measured)
    guess: tuple[float, float] = (0.5, 1.25)
    #: multiply-adds of one call, so that time limits are heard
    call: int = 20_000_000


@dataclass(eq=False)
class Setup:
    """The problem as the kernel reads it."""

    problem: ERM
    tuning: DualTuning

    def __post_init__(self) -> None:
        p, t = self.problem, self.tuning
        self.logistic = p.loss.kernel == "logistic"
        self.low, self.high = p.loss.domain
        self.epsilon = 0.0 if self.logistic else float(p.loss.theta[1])
        self.k = 0.0 if self.logistic else float(p.loss.theta[0])
        #: where rows come to rest; logistic rows do nowhere
        bounded = math.isfinite(self.low) or math.isfinite(self.high)
        self.rests = not self.logistic and (bounded or self.epsilon > 0)
        self.arrays = p.samples.view(views.arrays)
        self.tall = p.n >= t.tall * p.d
        #: what the sweeps read, of the data or of a copy of the rows that are left: the numbers,
        #: their columns, and where each row starts and ends
        self.working = self.original = (*self.arrays[:2], self.arrays[2][:-1], self.arrays[2][1:])
        self._copied = p.n_samples
        self.scale = 1 / (p.strong_convexity * p.n)
        self.sign = p.y if p.loss.margin else np.ones(p.n_samples)
        norms = p.weights * p.squared_norms
        #: c^2 of the intercept's feature
        self.constant = 0.0
        if p.intercept:
            floor = t.constant_floor * p.loss.gamma * p.strong_convexity
            self.constant = max(t.constant * float(np.mean(norms)), floor) or 1.0
        with np.errstate(over="ignore"):
            self.q = self.scale * (norms + self.constant * p.weights)
        p.check_constants(self.q)
        # a row without numbers, of a loss that is not smooth: one step takes it to its bound
        self.L = np.maximum(self.q + p.loss.gamma, 1e-100)
        theta = (0.0, 0.0, p.loss.gamma, *p.loss.domain) if self.logistic else p.loss.theta
        self.rows = kernel.Rows(
            np.array(theta),
            p.y,
            p.weights,
            self.L,
            p.d,
            logistic=self.logistic,
            margin=p.loss.margin,
            scale=self.scale,
            border=self.constant * self.scale,
            series=t.series,
            enough=t.enough,
            easy=t.easy,
            ahead=t.ahead if self.tall else 1,
        )
        self.all = np.flatnonzero(np.broadcast_to(p.weights > 0, p.n_samples))
        #: the unit of work: nonzeros, and one for each row
        self.work = p.samples.nnz + p.n_samples

    # ---- rows side by side --------------------------------------------------------------------

    def gather(self, keep: Index, rng: np.random.Generator) -> Index:
        """The rows that are left, copied side by side if they are few of those read now.

        Scattered rows cost twice as much a step as rows side by side. Where n >> d they are copied
        at once, and in random order: neighbours in the data may be alike, and steps on rows that
        are alike bring little. Gives the rows in the order of the copy.
        """
        t, p = self.tuning, self.problem
        first = self.tall and self.working is self.original
        if self.arrays[2].size == 0 or not (first or keep.size < t.gather * self._copied):
            return keep
        keep = rng.permutation(keep) if self.tall else keep
        data, indices, indptr = p.samples.rows(keep).view(views.arrays)
        starts = np.zeros(p.n_samples, dtype=indptr.dtype)
        ends = starts.copy()
        starts[keep], ends[keep] = indptr[:-1], indptr[1:]
        self.working = (data, indices, starts, ends)
        self._copied = keep.size
        return keep

    def release(self) -> None:
        """Read the data itself again: there are rows that the copy lacks."""
        self.working, self._copied = self.original, self.problem.n_samples

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

    def imbalance(self, a: Vector) -> float:
        """sum_i y_i x_i, or sum_i x_i."""
        return float(matrix.inner(self.sign, self.x(a)))

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

    def resting(self, a: Vector, m: Vector, tally: kernel.Tally) -> Mask:
        """Which rows rest beyond the thresholds, at margins (residuals) m: as the kernel has it."""
        G = self.k - m - self.problem.loss.gamma * a
        right = np.where(a >= 0, G - self.epsilon, G + self.epsilon)
        left = np.where(a > 0, G - self.epsilon, G + self.epsilon)
        above = (a >= self.high) | (right <= (tally.low if math.isfinite(tally.low) else 0.0))
        below = (a <= self.low) | (left >= (tally.high if math.isfinite(tally.high) else 0.0))
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
        if not matrix.neighbours(*self.arrays, p.d, rows, products):  # columns are out of order
            X = p.samples.view(views.whole)
            products = X[rows].multiply(X[rows + 1]).sum(axis=1)
        common, square = float(np.mean(np.abs(products))), float(np.mean(p.squared_norms[rows]))
        return max(1, round(min(t.block, t.fresh * square / common))) if common > 0 else t.block
