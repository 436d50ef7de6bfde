"""H of Newton's method: its factor, of a sample or of all rows, and H^-1 times a vector.

    H = (1/n) sum_i s_i phi_i''(A_i' w) A_i A_i' + lambda diag(b)

A factor R of the sample's H preconditions conjugate gradients on H: one pass over the data a step,
and few steps, because the sample's H is nearly that of all rows. Where it is not, H is factored.

`Stacked` is for a ridge that the rounding of X'X would hide, without X'X:

    H = M'M,   M = [sqrt(phi'') X; sqrt(ridge)] = Q R

The rounding of R is that of M, so that a ridge counts down to eps^2 |X|^2, where a Cholesky factor
of H has lost it at eps |X|^2. It costs some four times as much.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from ..._base.validation import Index, Matrix, Vector
from ..._kernels.data.matrix import add
from ...problems import costs
from ...problems.objective import Objective
from ..base import Budget
from ..linalg import factor
from ..linalg.conjugate_gradients import steps
from ..linalg.factor import Diagonal, Factor, Solver

_EPS = float(np.finfo(float).eps)

# The constants of Newton's method. "Flat" are those whose change changed the time by less than the
# noise, over 32 problems: a9a and covtype (100,000 rows), logistic and squared hinge, lambda from
# 1e-3 to 1e-8, gaps of 1e-3 and 1e-6. Times are nanoseconds on one core, on the same data,
# cal_housing and dense Gaussian rows.

#: The sample has so many rows for each feature: H of it is then within a factor of 2 or so; ...
ROWS_PER_FEATURE = 10.0
#: ... at least this part of the rows (0.05 takes 1.1 times as long), and so many, ...
SHARE, LEAST_ROWS = 0.1, 1000
#: ... and at most this part: with more, a factor of all rows costs little more.
MOST = 0.25
#: P is also watched on other rows, so many for each of the sample, and steps on the sample end when
#: it rises there: with a tiny lambda the optimum of the sample is not for others (decision 8).
HELD_OUT = 0.5
#: Conjugate gradients stop at this part of the first residual, in the preconditioner's norm (0.01
#: takes 1.06 times as long; 0.03 to 0.3: flat).
FORCING = 0.1
#: Squared loss: solved by one factor if that costs at most so many passes (sparse, from prototypes;
#: dense: 4,000 x 1,000 takes 0.3 to 0.4 of the time without it, 10,000 x 1,000 0.5 to 1.0, 8,000 x
#: 2,000 0.2 to 0.6, 20,000 x 1,000 0.7 to 1.2).
DIRECT = 30.0, 100.0
#: A factor of all rows is made anew if phi'' has changed by more than this part; with kinks at each
#: step (dense, 900 x 150 to 3,000 x 200, squared hinge: 0.5 to 0.9 of the time; logistic: 1.0 to
#: 1.16 times as long if it is too).
STALE = 0.1
#: Steps on the sample, and on one whose factor costs more than so many passes over all rows
#: (sparse, dense): one on these is then as cheap (2,000 x 300: without 1.1 to 1.6 times the time).
SAMPLE_STEPS, DEAR = (12, 2), (3.0, 1.4)
#: Conjugate gradients end after so many steps whatever a factor costs: rounding has won.
MOST_STEPS = 200
#: Without a penalty there may be no curvature, where every phi'' is zero: so much over gamma, at
#: least, times a column's square.
LEAST_CURVATURE = 1e-12
#: ns of a multiply-add of a Gram matrix of sparse rows (dense: `costs.dense_gram`), for each number
#: of X in a fused pass (sparse, dense), and for each row.
GRAM, NUMBER, ROW = 0.85, (1.25, 0.6), 4.0


class Hessian:
    """H of P on all rows, for any phi'' of them, and the factor that is at hand.

    cost  passes over the data so far: a product with H is one, and a factor its multiply-adds over
          those of a pass
    """

    def __init__(self, rows: Objective, least_curvature: float = LEAST_CURVATURE) -> None:
        self._rows = rows
        self._prices = _Prices(rows)
        # H of a free intercept may be zero; P itself has no such term
        self._ridge = rows.least_curvature(least_curvature / (rows.loss.gamma or 1.0))
        self._constant = rows.loss.eta == rows.loss.gamma
        self._sample: tuple[Index, Vector] | None = None
        self._factor: Factor | None = None
        self._factored: Vector | None = None  # phi'' of all rows in the factor; None: the sample's
        self._exact = False
        self.sample: Objective | None = None
        self._held_out: tuple[Index, float] = np.empty(0, dtype=np.intp), 1.0
        #: steps of conjugate gradients that the last solve took
        self.cost, self.iterations = 0.0, 0

    @property
    def is_cheap(self) -> bool:
        """Whether H never changes and a factor of it is all that is needed."""
        cheap = self._prices.exact <= DIRECT[self._prices.kind] * self._prices.one
        return self._constant and (cheap or self.is_whole)

    @property
    def least(self) -> float:
        """The least curvature of a free intercept."""
        return float(self._ridge[-1])

    @property
    def is_whole(self) -> bool:
        """Whether the rows are too few for a sample: H of all of them is factored."""
        size, n = self._sample_size()
        return size > 0.5 * n

    def _sample_size(self) -> tuple[float, int]:
        """How many rows a sample has, and of how many it is drawn."""
        rows = self._rows
        n = rows.n if rows.weights.size == 1 else int(np.count_nonzero(rows.weights))
        if not rows.X.in_memory:  # nor would a sample be
            return float(n), n
        size = max(min(ROWS_PER_FEATURE * rows.size, MOST * n), SHARE * n, LEAST_ROWS)
        return float(size), n

    def draw(self, rng: np.random.Generator) -> None:
        """Choose the sample; without one, of few rows, H of all rows is factored.

        A row is drawn by its leverage: few rows have a rare feature, and no sample without them
        knows how H bends there.
        """
        rows = self._rows
        size, n = self._sample_size()
        if size > 0.5 * n:
            self._exact = True
            return
        chance = np.full(rows.n, size / n)
        if (
            rows.X.largest() ** 2 > size * rows.loss.gamma * rows.least_ridge
        ):  # else the ridge bends more
            score = rows.leverage()
            chance = np.minimum(0.5 * chance + (0.5 * size / max(score.sum(), 1e-300)) * score, 1.0)
            self.cost += 1.0
        if rows.weights.size > 1:
            chance[rows.weights == 0] = 0.0
        draw = rng.random(rows.n)
        index = np.flatnonzero(draw < chance)
        self.sample = rows.sample(index, chance[index])
        share = HELD_OUT * size / n
        others = (draw >= chance) & (draw < chance + share) & (chance > 0)
        self._held_out = np.flatnonzero(others), share
        self._sample = index, 1 / chance[index]

    def held_out(self) -> Objective:
        """Other rows than the sample's, to see whether what is learnt there holds elsewhere."""
        index, share = self._held_out
        return self._rows.sample(index, np.full(index.size, share))

    @property
    def sample_steps(self) -> int:
        """How many steps on the sample are worth their factors: it may be separable."""
        assert self.sample is not None
        most = DEAR[not self._rows.X.sparse]
        return SAMPLE_STEPS[self._prices.factor(self.sample) > most * self._prices.one]

    def factor_of(self, rows: Objective, bend: Vector) -> Factor:
        """The factor of H on these rows, for this phi''; it is then the one at hand."""
        H = rows.X.gram(bend)
        H.ravel()[:: rows.size + 1] += self._ridge
        self._factor = made = Factor(H)
        self._exact = self._exact or rows is self._rows
        self._factored = bend.copy() if rows is self._rows else None
        share = rows.X.gram_madds * np.count_nonzero(bend) / max(rows.n, 1)
        self.cost += (share + factor.madds(rows.size)) / (2 * max(self._rows.X.nnz, 1))
        return made

    def distrust(self) -> bool:
        """The last step failed: a factor of all rows is made next; whether that is any news."""
        news, self._exact, self._factored = not self._exact, True, None
        return news

    def solve(
        self, r: Vector, bend: Vector, enough: float, budget: Budget
    ) -> tuple[Vector, Vector]:
        """About H^-1 r, and X times it; a residual whose gap is `enough` will do."""
        fresh, made = self._refresh(bend, budget)
        if fresh and not made.jitter:
            way = made.solve(r)
            self.cost += 0.5
            return way, self._rows.X.times(way)
        limit = min(max(self._prices.steps, 1.0), MOST_STEPS)
        return self._iterate(made, r, bend, enough, budget, FORCING, limit)

    def _refresh(self, bend: Vector, budget: Budget) -> tuple[bool, Factor]:
        """The factor that a step begins with; and whether it is one of H itself."""
        old = self._factor
        if old is not None and (budget.expired or self._serves(bend)):
            return False, old
        if self._exact:
            return True, self.factor_of(self._rows, bend)
        assert self._sample is not None
        assert self.sample is not None
        index, times = self._sample
        return False, self.factor_of(self.sample, bend[index] * times)

    def _serves(self, bend: Vector) -> bool:
        """Whether the factor at hand need not be made anew for this phi''."""
        if not self._exact:
            return True
        even = self._constant or (self._prices.steps > 2 and not self._rows.loss.kinks.size)
        if self._factored is None or not even:
            return False
        change = float(np.abs(bend - self._factored).sum())
        return bool(change <= STALE * float(self._factored.sum()))

    def _iterate(
        self,
        made: Solver,
        r: Vector,
        bend: Vector,
        enough: float,
        budget: Budget,
        forcing: float,
        limit: float,
    ) -> tuple[Vector, Vector]:
        """H way = r by conjugate gradients, to this part of the residual.

        After `limit` steps, as many as a factor costs, what was made is no good.
        """
        rows, count = self._rows, 0
        way, (q, dz) = np.zeros(rows.size), self._vectors
        dz[:] = 0.0

        def times(p: Vector) -> Vector:
            self.cost += 1.0
            return rows.X.gram_times(bend, p, q) + self._ridge * p

        r = r.copy()
        first = math.inf
        for step, p, before, after in steps(times, made.solve, r):
            count += 1
            first = before if count == 1 else first
            way += step * p
            add(dz, step, q)
            if after <= forcing**2 * first or rows.gap(r) <= enough or budget.expired:
                break
            if count >= limit:
                self.distrust()
                break
        self.iterations = count
        return way, dz

    @cached_property
    def _vectors(self) -> tuple[Vector, Vector]:
        """Room for X p and X way."""
        return np.empty(self._rows.n), np.empty(self._rows.n)


class _Prices:
    """What a pass and a factor of all rows cost, in ns."""

    def __init__(self, rows: Objective) -> None:
        self.kind = int(not rows.X.sparse)
        self._factor = costs.cholesky(rows.size)
        self.one = NUMBER[self.kind] * rows.X.nnz + ROW * rows.n
        self.exact = self.factor(rows)
        #: steps of conjugate gradients that cost as much as a factor
        self.steps = self.exact / self.one

    def factor(self, rows: Objective) -> float:
        """What a factor of these rows costs."""
        dense = costs.dense_gram(rows.n, rows.size)
        return (dense if self.kind else GRAM * rows.X.gram_madds) + self._factor


class StackedFactor:
    """H = S R'R S with S diagonal, so that M S^-1 has columns of length 1.

    A last entry of `ridge` without a column of X is that of an intercept.
    """

    def __init__(self, X: Matrix, ridge: Vector, bend: Vector, least: float) -> None:
        (n, d), size = X.shape, ridge.size
        root = np.sqrt(bend)
        M = np.zeros((n + size, size))
        np.multiply(root[:, None], X, out=M[:n, :d])
        if size > d:  # an intercept
            M[:n, d] = root
            ridge = np.append(ridge[:d], max(_EPS**2 * float(bend.sum()), _EPS**4 * least))
            ridge[d] = ridge[d] if bend.any() else least
        M[n:].flat[:: size + 1] = np.sqrt(ridge)
        self._scale = np.sqrt(np.einsum("ij,ij->j", M, M))
        M /= self._scale
        self._R: Matrix = np.asarray(np.linalg.qr(M, mode="r"))

    def solve(self, r: Vector) -> Vector:
        """H^-1 r"""
        half = solve_triangular(self._R, r / self._scale, trans="T", check_finite=False)
        return np.asarray(solve_triangular(self._R, half, check_finite=False) / self._scale)


class Stacked(Hessian):
    """H without a sample, by one such factor a step.

    X        as an array
    squares  the squared lengths of its columns, which are orthogonal to each other and, with an
             intercept, to the ones
    """

    is_cheap = False

    def __init__(self, rows: Objective, X: Matrix, squares: Vector) -> None:
        super().__init__(rows)
        self._X, self._squares = X, squares

    def draw(self, rng: np.random.Generator) -> None:
        """There is no sample."""

    def distrust(self) -> bool:
        """Nothing is to be had that is more exact."""
        return False

    def solve(
        self, r: Vector, bend: Vector, enough: float, budget: Budget
    ) -> tuple[Vector, Vector]:
        """H^-1 r, and X times it."""
        way = self.stacked(bend).solve(r)
        return way, self._rows.X.times(way)

    def stacked(self, bend: Vector) -> Solver:
        """H for this phi'': of orthogonal columns, and one phi'' for all rows, it is diagonal."""
        rows = self._rows
        self.cost += 1.0
        if not (bend.size and bend.min() == bend.max() > 0):
            return StackedFactor(self._X, rows.ridge, bend, self.least)
        diagonal = rows.ridge.copy()
        diagonal[: rows.d] += bend[0] * self._squares
        diagonal[rows.d :] = rows.n * bend[0]
        return Diagonal(diagonal)
