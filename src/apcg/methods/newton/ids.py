"""The method "newton_ids": Newton's method for sparse X with ids, n >> d and d in the thousands.

One group of columns is eliminated exactly, the rest is a small dense matrix.

    H = X'diag(h) X + diag(ridge) = [D  G'; G  B],   D diagonal: a row has one id at most
    S = B - G D^-1 G',   H^-1 r:   f = S^-1 (r_F - G D^-1 r_E),   e = D^-1 (r_E - G'f)

The residual of a step by S is zero, and so is what it leaves in the gradient where phi is a
parabola: the gap, sum_j (grad P)_j^2/(2 ridge_j), is then about P - P*. A step by a diagonal
preconditioner leaves a residual on frequent columns, and a gap far above P - P*.

S is made anew from what changed: only rows whose h is another, only ids that have such a row. Where
it is too large, its diagonal serves, as a preconditioner of conjugate gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from ..._base.memory import vectors
from ..._base.validation import Vector
from ..._kernels.newton import ids as kernel
from ...certify.points import Point, Start
from ...data import Matrix
from ...data.matrix import Stored
from ...problems import costs
from ...problems.erm import ERM
from ...problems.objective import Objective
from ..base import (
    ALL_STORED,
    COMPILED_LOSS,
    ONE_OUTPUT,
    QUADRATIC_PENALTY,
    SMOOTH_LOSS,
    SPARSE_IN_MEMORY,
    Budget,
    Inside,
    Needs,
    Target,
)
from ..linalg import factor
from ..linalg.factor import Diagonal, Factor, Solver
from .hessian import Hessian
from .id_rows import IdRows, id_rows, split
from .newton import NewtonRun

# Nanoseconds on one core; movielens and generated ids.

#: A multiply-add of S and of its factor; a number of X in a product with H, and a row.
ENTRY, FACTOR, NUMBER, ROW = 0.5, 0.13, 0.9, 2.0
#: Steps with a diagonal preconditioner before S is made, and how far each goes.
FIRST, ROUGH = 2, 0.3
#: Conjugate gradients with an S of other h go on to this part of the residual.
FORCING = 0.03
#: S of another h is made anew if it would take more than this part of its cost in products, ...
STALE = 0.5
#: ... and from nothing if more than this part of its entries changes.
FRESH = 0.5
#: Iterations of a step, at most.
MOST_STEPS = 500
#: X sorted by its ids: ns for each number of it and for each row (4 to 9 and 20 to 30 on 12 sets).
IDS_NUMBER, IDS_ROW = 11.0, 25.0
#: Newton's method for ids: steps, each two products and an evaluation of the loss, ...
IDS_STEPS, IDS_STEPS_A_DIGIT = 5.0, 0.5
#: ... how often S is made (squared loss; logistic; with kinks), ...
IDS_MADE = (1.0, 1.5, 3.0)
#: ... or products of conjugate gradients with its diagonal, (1 + 0.45 sqrt(r)) times as many for
#: the r of `difficulty` (27 and 36 to 1e-3 and 1e-6 at r = 5, 81 and 115 at 250).
IDS_PRODUCTS, IDS_PRODUCTS_A_DIGIT, IDS_HARDER = 6.0, 1.5, 0.45


@dataclass(frozen=True)
class EliminationTuning:
    """When S is made."""

    #: S is made if it costs at most so many products with H, and has at most so many columns
    dear: float = 60.0
    widest: int = 4000


TUNING = EliminationTuning()


def one_product(X: Any) -> float:
    """ns of a product with H."""
    return float(NUMBER * X.nnz + ROW * X.shape[0])


def one_matrix(madds: float, others: int) -> float:
    """ns of an S with its factor."""
    return ENTRY * madds + FACTOR * factor.madds(others)


class Eliminated:
    """H for some h: D, G and a factor of S, or its diagonal."""

    def __init__(self, X: IdRows, ridge: Vector, dense: bool) -> None:
        self._X, self._ridge, self._dense = X, ridge, dense
        self._k = X.others if dense else 0
        self._factor: Factor | None = None
        k = self._k
        S, U = vectors((k * k, float), (k * k, float))
        self._S, self._U = S.reshape(k, k), U.reshape(k, k)
        self._clear()

    def _clear(self) -> None:
        X, ridge = self._X, self._ridge
        under, _, _ = X.under
        self.h = np.zeros(X.shape[0])
        self._active = np.zeros(X.ids, np.uint8)
        self._D, self._G = ridge[: X.ids].copy(), np.zeros(int(under[-1]))
        if self._dense:
            self._S[:] = 0.0
            np.fill_diagonal(self._S, ridge[X.ids :])
        else:
            self._S = ridge[X.ids :].copy()

    def update(self, h: Vector) -> float:
        """H for this h; what that cost, over the cost of an S from nothing."""
        X = self._X
        changed, total = kernel.touched(X.rows_of[0], h, self.h, X.under[0])
        if changed > FRESH * total and self.h.any():
            self._clear()
        kernel.build(
            *X.rows_of, *X.under, h, self.h, self._active, self._D, self._G, self._k,
            self._S.reshape(-1),
        )  # fmt: skip
        if self._dense and X.others:
            self._factor = Factor(self._S, self._U)
        elif not self._dense:  # rounding leaves a little less than the ridge
            self._S = np.maximum(self._S, self._ridge[X.ids :])
        return min(2 * changed, total) / max(total, 1.0)

    @property
    def weakest(self) -> float:
        """The least pivot of S, for a unit diagonal."""
        return 1.0 if self._factor is None else self._factor.weakest

    @property
    def jitter(self) -> float:
        """What was added to the unit diagonal of S."""
        return 0.0 if self._factor is None else self._factor.jitter

    def solve(self, r: Vector) -> Vector:
        """H^-1 r, or about that with the diagonal of S."""
        X = self._X
        under, columns, _ = X.under
        f, x = np.empty(X.others), np.empty(X.shape[1])
        kernel.eliminate(under, columns, self._D, self._G, r, f)
        if self._factor is not None:
            f = self._factor.solve(f)
        else:
            f /= self._S if not self._dense else 1.0
        kernel.restore(under, columns, self._D, self._G, r, f, x)
        return x


class Elimination(Hessian):
    """H of P on all rows of an X with ids."""

    def __init__(self, rows: Objective, tuning: EliminationTuning) -> None:
        super().__init__(rows)
        self._ids = cast(IdRows, rows.X)
        X = self._ids
        self.one, self.dear = one_product(X), one_matrix(X.gram_madds, X.others)
        self.dense = self.dear <= tuning.dear * self.one and X.others <= tuning.widest
        self._pieces = rows.loss.kinks.size > 0 or self._constant
        self._made: Eliminated | None = None
        self._steps, self._expected = 0, math.inf

    @property
    def is_cheap(self) -> bool:
        """Whether H never changes and S is all that is needed."""
        return self._constant and self.dense

    def draw(self, rng: np.random.Generator) -> None:
        """There is no sample."""

    def distrust(self) -> bool:
        """The last step failed: S is made anew next, if it was of another h."""
        news, self._expected = self._expected < math.inf, math.inf
        return news

    def factor_of(self, rows: Objective, bend: Vector) -> Eliminated:  # type: ignore[override]
        """H for this phi''."""
        made = self._made = self._made or Eliminated(self._ids, self._ridge, self.dense)
        share = made.update(np.ascontiguousarray(bend))
        self.cost += max(share * self.dear, self.one) / (2 * self.one) if self.dense else 0.5
        return made

    def solve(
        self, r: Vector, bend: Vector, enough: float, budget: Budget
    ) -> tuple[Vector, Vector]:
        """About H^-1 r, and X times it; a residual whose gap is `enough` will do."""
        X = self._rows.X
        self._steps += 1
        if self._steps <= FIRST and not self._constant:
            diagonal = Diagonal(X.column_squares(bend) + self._ridge)
            self.cost += 0.5
            return self._go(diagonal, r, bend, enough, ROUGH, budget)
        if self.dense and not self._serves(bend):
            made, self._expected = self.factor_of(self._rows, bend), 1.0
            if not made.jitter:
                way = made.solve(r)
                self.cost += 0.5
                return way, X.times(way)
        elif not self.dense:
            self.factor_of(self._rows, bend)
        assert self._made is not None
        return self._go(self._made, r, bend, enough, FORCING, budget)

    def _serves(self, bend: Vector) -> bool:
        """Whether S need not be made anew for this phi''."""
        if self._made is None or self._pieces:
            return False
        return self._expected * self.one <= STALE * self.dear

    def _go(
        self, made: Solver, r: Vector, bend: Vector, enough: float, forcing: float, budget: Budget
    ) -> tuple[Vector, Vector]:
        """H way = r by conjugate gradients."""
        found = self._iterate(made, r, bend, enough, budget, forcing, MOST_STEPS)
        self._expected = float(self.iterations)
        return found


@dataclass(frozen=True)
class NewtonIds:
    """The method "newton_ids"."""

    tuning: EliminationTuning = TUNING
    name: ClassVar[str] = "newton_ids"
    needs: ClassVar[Needs] = (
        ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, QUADRATIC_PENALTY, SPARSE_IN_MEMORY,
        ALL_STORED,
    )  # fmt: skip
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> IdsRun:
        """Begin at at.w (with at.b), or at zero."""
        return IdsRun(problem, at, target, rng, self.tuning)


class IdsRun(Inside):
    """Newton's method on the rows sorted by id; what it gives is in the order of X."""

    def __init__(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        tuning: EliminationTuning,
    ) -> None:
        self._X, rows = sorted_by_id(problem)
        d = problem.d
        w = None if at.w is None else at.w[self._X.features[:d]]
        start = Start(w=w, b=at.b)
        hessian = Elimination(rows, tuning)
        super().__init__(NewtonRun(problem, start, target, rng, hessian, rows))
        self._place = self._X.place[:d]

    def _out(self, found: Any) -> Point:
        if found.z is None:
            return Point(w=found.w[self._place], b=found.b)
        z = np.empty_like(found.z)
        z[self._X.order] = found.z
        return Point(w=found.w[self._place], b=found.b, z=z)


def columns_of(problem: ERM) -> Stored:
    """X in memory, with a border of ones for an intercept."""
    return cast(Stored, problem.samples.with_ones if problem.intercept else problem.samples)


def sorted_by_id(problem: ERM) -> tuple[IdRows, Objective]:
    """X with its rows sorted by id, and P on it."""
    made = columns_of(problem).view(id_rows)
    plain = Objective.of(problem)
    weights = plain.weights[made.order] if plain.weights.size > 1 else plain.weights
    rows = Objective(
        cast(Matrix, made), plain.y[made.order], weights, plain.scale, plain.loss,
        np.ascontiguousarray(plain.ridge[made.features]), free=plain.free,
    )  # fmt: skip
    return made, rows


def cost(problem: ERM, tol: float) -> float:
    """A run of Newton's method with ids eliminated; infinite if less than half the rows have one.

    The multiply-adds of S are known once the rows are sorted; before, they are bounded.
    """
    n, X = problem.n_samples, columns_of(problem)
    one = one_product(X)
    steps = 1.0 if problem.loss.eta == problem.loss.gamma else IDS_STEPS
    steps += IDS_STEPS_A_DIGIT * costs.digits(tol) if steps > 1 else 0.0
    work = (
        IDS_NUMBER * X.nnz
        + IDS_ROW * n
        + steps * (2 * (one + costs.RATES.call) + costs.RATES.loss * n)
    )
    made = X.view(split)
    others = X.shape[1] - made.ids
    S = one_matrix(costs.gram_entries(problem) + made.pairs_below(X), others)
    if TUNING.dear * one >= S and others <= TUNING.widest:
        kind = 0 if steps == 1 else 1 + (problem.loss.kinks.size > 0)
        return work + IDS_MADE[kind] * S
    if 2 * made.rows.sum() < n:
        return math.inf
    harder = 1 + IDS_HARDER * math.sqrt(costs.difficulty(problem))
    products = IDS_PRODUCTS + IDS_PRODUCTS_A_DIGIT * costs.digits(tol)
    return work + harder * products * one
