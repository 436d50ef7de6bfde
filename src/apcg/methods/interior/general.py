"""Interior points for any number of outputs, any loss that is known and any sum of norms and
squares.

    minimize sum_i s_i phi(W'a_i + b) + lambda n sum_B (a_B |W_B| + (beta/2) |W_B|^2)

The blocks W_B are the entries of W (L1, elastic net), its rows, or groups of features; a may be
zero (L2), and one output may have bounds. The optimality conditions of the rows are in `rows_k`,
those of the blocks in `cones` and `blocks`, and between them

    lambda n beta W + X'q - omega = 0          sum_i q_i = 0 with intercepts

with q = -x the slopes of the losses. A step is Newton's on all of them at once, with Mehrotra's
predictor and corrector, and one linear system (`systems_k`). Their number, 15 to 50, hardly depends
on alpha or on how X is scaled, where sweeps and gradients take more passes the smaller alpha is and
the more columns of X are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._base.validation import Matrix
from ...certify.certificate import SLACK, TRIALS, certify
from ...certify.points import Certificate, Point, Start
from ...data import views
from ...penalties.interval import Interval
from ...problems.erm import ERM
from ..base import IN_MEMORY, Need, Needs, Run, Target, unmet
from .blocks import NormBlocks
from .pieces import InteriorPoints, centred, step_length
from .rows_k import ClassRows, PieceRows
from .systems_k import ByFeatures, ByRows

#: of a loss without products of its own, those of the penalty stay above this part of the gap:
#: Newton's method brings a probability down to 1/e in a step, whatever they are. Of 20 problems 18
#: took 8 to 51 steps without this and two got stuck, one after 21,000; with it all take 7 to 43
LAG = 0.1
#: a step ends at this part of the way to the nearest bound
PART = 0.99
#: a step that ends so near is none; after so many steps without a better gap it is stuck
LEAST_STEP = 1e-9
PATIENCE = 12
#: numbers of X as a dense array, and of the matrix of a step, at most
ROOM = 4e6
LARGEST = 1e7
#: a step by rows that misses a row by this part of its terms: go on by features, which keep more
#: digits where entries of C are small. 60 problems of classes, all solved by rows, missed by 4e-4
SHORT = 1e-2
#: steps by rows are taken if those by features are so many times the work
MARGIN = 1.2
#: nanoseconds of a multiply-add of dense BLAS; of a step, for each number of W and z; besides
MADD = 0.07
NUMBER = 150.0
STEP = 1e6
#: steps of a run, as `auto` predicts
STEPS = 25
#: what slower methods leave of max_epochs: so many times the passes of a run, at least and where
#: that is less than the first of these shares of max_epochs; the second is the most
SPARE, SHARE = (1.2, 3.0), (0.7, 0.98)


def _has_norms(problem: ERM) -> bool:
    """Whether g is a sum of norms and squares, with bounds on the same side as its slope."""
    g: Any = problem.g
    if g.in_groups:
        return g.last is None and bool(np.min(g.a) + g.ridge > 0)
    if not isinstance(g, Interval) or g.boxed.any() or bool(np.any(g.lower >= g.upper)):
        return False
    if problem.K > 1 and not g.is_unbounded:
        return False
    bounded = np.isfinite(g.lower) | np.isfinite(g.upper)
    sided = (g.a == 0) | (g.lower >= 0) | (g.upper <= 0)
    return bool(np.all(np.where(bounded, sided, g.a + g.b > 0)))


NORMS = Need(
    "a penalty of L1, L2 and norms of groups, one of them for each feature (one output: or bounds)",
    _has_norms,
    lambda p: f"penalty {p.penalty} is not of that kind",
)
KNOWN_LOSS = Need(
    "a loss that the compiled code knows",
    lambda p: _is_known(p.loss),
    lambda p: f"loss {p.loss.name!r} is not one",
)


def _is_known(loss: Any) -> bool:
    """Whether it is over classes, the logistic one, or in pieces that are bounded all, or none."""
    if loss.margin is None and not loss.by_output:
        return loss.kind is not None
    one = loss.loss if loss.by_output else loss
    if one.kernel != "interval":
        return bool(one.kernel == "logistic")
    _, epsilon, _, lower, upper = one.theta
    return bool(epsilon == 0 or math.isfinite(lower) == math.isfinite(upper))


def applies(problem: ERM) -> bool:
    """Whether it is small enough for it, and for this problem."""
    n, D = problem.n_samples, problem.d + problem.intercept
    size = min(n, D)
    if n * D > ROOM or size * size * problem.K > LARGEST or unmet(InteriorK, problem) is not None:
        return False
    return _fits(problem, size)


def _fits(problem: ERM, size: int) -> bool:
    """Whether the matrix of a step by rows or by features is small enough: so many of these."""
    return size**2 * problem.K * (1 if _apart(problem) else problem.K) <= LARGEST


def _apart(problem: ERM) -> bool:
    """Whether each output has a matrix of its own."""
    return problem.separable and (problem.K == 1 or problem.loss.by_output)


def madds(problem: ERM) -> tuple[float, float]:
    """Multiply-adds of the matrix of a step and its factor, by features and by rows."""
    n, D, K = problem.n_samples, problem.d + problem.intercept, problem.K
    if _apart(problem):
        return K * (n * D * D / 2 + D**3 / 6), K * (n * n * D + n**3 / 6)
    columns = problem.loss.by_output or K == 1
    free = K if columns else K - 1
    features = n * D * D * (K if columns else K * free / 2) / 2 + (D * free) ** 3 / 6
    return features, n * n * D * free * (free + 1) / 2 + (n * free) ** 3 / 6


def _by_rows(problem: ERM) -> bool:
    by_features, by_rows = madds(problem)
    too_large = not _fits(problem, problem.d + problem.intercept)
    return too_large or MARGIN * by_rows < by_features


def step_cost(problem: ERM, *, by_rows: bool) -> float:
    """Nanoseconds of a step."""
    numbers = (problem.n_samples + problem.d) * problem.K
    return MADD * madds(problem)[by_rows] + NUMBER * numbers + STEP


def cost(problem: ERM) -> float:
    """Nanoseconds of a run."""
    return STEPS * step_cost(problem, by_rows=_by_rows(problem))


def pass_cost(problem: ERM) -> float:
    """Nanoseconds of a pass over the data, of which it has all numbers, forth and back."""
    n, d = problem.n_samples, problem.d
    return 2.4 * n * d * problem.K + 500.0 * n + 150_000.0


def kept(problem: ERM, target: Target) -> float:
    """Passes that slower methods leave for a run of this; infinite if max_epochs has too few."""
    if not applies(problem):
        return math.inf
    least, usual = (part * cost(problem) / pass_cost(problem) for part in SPARE)
    some, most = (part * target.max_passes for part in SHARE)
    return max(least, min(usual, some)) if least <= most else math.inf


@dataclass(frozen=True)
class InteriorK:
    """The method "interior" where no faster one is for the problem. A start is not used."""

    name: ClassVar[str] = "interior"
    needs: ClassVar[Needs] = (IN_MEMORY, KNOWN_LOSS, NORMS)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin in the middle of all bounds, with W = 0."""
        return InteriorKRun(problem, target)


class InteriorKRun(InteriorPoints):
    """The method at work."""

    least_passes = 1

    def __init__(self, problem: ERM, target: Target) -> None:
        super().__init__(target.tol)
        self._problem = problem
        s = np.broadcast_to(problem.weights, problem.n_samples)
        self._kept = np.flatnonzero(s > 0)
        seen = problem.samples.with_ones if problem.intercept else problem.samples
        self._X = np.ascontiguousarray(seen.view(views.table)[self._kept])
        K = problem.K
        by_class = K > 1 and not problem.loss.by_output
        self._rows: Any = (ClassRows if by_class else PieceRows)(problem, s, self._kept)
        first = self._rows.products / self._rows.count if self._rows.count else 1.0
        self._penalty = NormBlocks(problem, first, self._near())
        self._W, self._b = self._penalty.W, np.zeros(K)
        self._arrive()
        self._system = ByRows if _by_rows(problem) else ByFeatures
        by_rows = self._system is ByRows
        each = step_cost(problem, by_rows=by_rows) / pass_cost(problem)
        self._each, self._idle = each, 0
        self._best: Certificate | None = None
        self._gap = 0.0  # of all rows, at the last look

    def _near(self) -> Any:
        """Weights next to 0 for which z is of the size of y, each column with as much of it."""
        p, d = self._problem, self._problem.d
        sizes = np.abs(self._X[:, :d]).mean(axis=0)
        y = 1.0 if p.loss.margin is not False else float(np.abs(p.y).mean()) or 1.0
        return y / (d * np.where(sizes > 0, sizes, 1.0))

    # ---- the protocol ---------------------------------------------------------------------------

    def _passes(self) -> bool:
        """Whether the best pair is good enough."""
        return self._best is not None and self._best.relative <= self._aim

    def point(self) -> Point:
        """The best pair so far."""
        if self._best is None:
            return Point(w=self._shaped(self._W), b=self._shift)
        return self._best.bare()

    def _shaped(self, W: Matrix) -> Any:
        """W or x as the problem has it: with one output a vector."""
        return W.copy() if self._problem.K > 1 else W[:, 0].copy()

    @property
    def _shift(self) -> Any:
        return self._b.copy() if self._problem.K > 1 else float(self._b[0])

    def _look(self) -> None:
        """Certify the present pair; the best is kept."""
        w = self._problem.g.clip(self._shaped(self._W))  # a rounding beyond a bound
        found = certify(self._problem, Point(w, self._feasible(), self._shift))
        self._gap = found.gap * self._problem.n
        better = self._best is None or found.gap < self._best.gap
        self._idle = 0 if better else self._idle + 1
        if better:
            self._best = found
        self.stuck = self.stuck or self._idle > PATIENCE

    def _feasible(self) -> Matrix:
        """x of the slopes, balanced, and scaled until g* is finite."""
        p = self._problem
        x = np.zeros((p.n_samples, p.K))
        x[self._kept] = -self._rows.slope
        x = p.loss.clip(p.signed(self._shaped(x)), p.y, p.weights)
        if p.intercept and p.imbalance(x) > 1:
            x = p.balanced(x)
        for trial in range(TRIALS):  # a sum of products that is rounded may be outside again
            over = p.g.excess(p.v_of(x))
            if not over > 1:
                break
            x = x / (over * (1 + SLACK * 4**trial))
        return np.asarray(x)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """Blocks whose multipliers are inside the cone are zero."""
        if not self._penalty.count:
            return None
        w = certificate.w * self._shaped(self._penalty.moving)
        return Point(self._problem.g.clip(w), certificate.x, certificate.b)

    # ---- a step ---------------------------------------------------------------------------------

    def _step(self) -> None:
        """A step, and a look where it leads."""
        self._move()
        self._cost += self._each
        self._look()

    def _move(self) -> None:
        """Mehrotra's predictor and corrector."""
        rows, penalty = self._rows, self._penalty
        d = self._problem.d
        system = self._system(self._X, self._problem.intercept, rows, penalty.bend)
        slope = self._X.T @ rows.slope
        self._short = penalty.ridge * self._W + slope[:d] - penalty.omega
        self._short_b = slope[-1] if self._problem.intercept else np.zeros(self._problem.K)
        count, products = rows.count + penalty.count, rows.products + penalty.products
        centre, second = 0.0, (0.0, None)
        if count:
            second = self._way(system, 0.0, second, True)
            t = step_length(self._fastest(), 1.0)
            centre = centred(products, rows.after(t) + penalty.after(t), count)
            if not rows.count:  # products that are far below the gap bring nothing but rounding
                centre = max(centre, min(products, LAG * self._gap) / count)
        self._way(system, centre, second, False)
        if not system.short <= SHORT:  # or not a number: what is squared overflows
            self._by_features()
            return
        t = rows.shortened(step_length(self._fastest(), PART))
        if not (t > LEAST_STEP and np.isfinite(self._dW).all()):
            self._by_features()
            return
        rows.move(t)
        penalty.move(t)
        self._W, self._b = self._W + t * self._dW, self._b + t * self._db
        self._arrive()

    def _arrive(self) -> None:
        """What a step begins with."""
        self._rows.weigh(self._X[:, : self._problem.d] @ self._W + self._b)
        self._penalty.weigh()

    def _by_features(self) -> None:
        """Go on by features, unless that is what got stuck, or takes too much memory."""
        self.stuck = self._system is ByFeatures or not _fits(self._problem, self._X.shape[1])
        self._system, self._idle = ByFeatures, 0
        self._each = step_cost(self._problem, by_rows=False) / pass_cost(self._problem)

    def _way(self, system: Any, centre: float, second: Any, predicts: bool) -> Any:
        """The step to products of `centre`; of a predictor its second order."""
        rows, penalty = self._rows, self._penalty
        pull = rows.pull(centre, second[0])
        r = penalty.push(centre, second[1]) - self._short
        self._dW, self._db, dq = system.solve(r, -self._short_b, pull)
        dz = self._X[:, : len(r)] @ self._dW + self._db
        if predicts:
            return rows.second(dz, pull, dq), penalty.second(self._dW)
        rows.direct(dz, pull, dq)
        penalty.direct(self._dW)
        return None

    def _fastest(self) -> float:
        return float(max(self._rows.fastest, self._penalty.fastest))
