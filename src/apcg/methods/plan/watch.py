"""When `auto` leaves the dual: the gaps seen, what the rest takes, what another method would take.

A dual method pays for every sample, however few features the samples have in common; Newton's
method pays for pairs of features. Which is cheaper depends on the conditioning, and the gaps seen
tell that. At a relative gap r, and a rate of c = log(r_before/r) a pass over the last half of the
run or so, the dual still needs log(r/tol)/c passes. If Newton's method takes less time by the table
of `costs`, it takes over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.validation import Index
from ...losses.base import SIMPLEX, SOFTMAX
from ...problems import costs
from ...problems.erm import ERM
from ..base import Target, unmet
from ..interior import general
from ..interior.interior import Interior
from ..newton import many_outputs as newton_k
from ..newton.newton import Newton
from ..sparse import ClassSet

#: So many gaps, with that of the start, are too few for the rate of the later half.
EARLY = 3
#: K outputs: the rest of the dual must take so many times longer, once this share of the other
#: method's time is spent.
MARGIN, EARLIEST = 2.0, 0.5
#: K outputs: Newton's method may take so many times what it is predicted to take; sets of groups so
#: many times what interior points are: a round of theirs may take as long again.
ROUND, SETS = 2.0, 0.5
#: no factor affordable, but sets: sweeps have this share of max_epochs, if they seem to take all
#: (softmax, 129 x 146, 10 classes, l1_ratio 0.99: sets take 714 passes, sweeps 6 million by rate)
TRIED = 0.3


@dataclass(frozen=True)
class PlanTuning:
    """When Newton's method is taken (docs/decisions/0003-plan.md)."""

    #: Newton's method at once with so many samples for each feature: the dual, raced on a9a,
    #: covtype and one-hot data, was never better by more than noise and up to 3 times slower.
    tall: float = 10.0
    #: ... and at most so many features: a factor of more takes longer than dual sweeps do.
    widest: int = 2000
    #: Dense X: also with so many samples for each feature, if factors take less time than sweeps.
    square: float = 4.0
    #: With fewer, a run takes so many times the steps, while phi'' changes: 25 to 90 on 200 x 200.
    #: That counts where the dual is predicted to arrive.
    more_steps: float = 5.0
    #: A large lambda begins in the dual where few sweeps are predicted; with an intercept only for
    #: a tolerance of at least this: to 1e-6 it takes two to five times as many (decision 3).
    easy_free: float = 1e-4
    #: Squared loss: at once if one Gram matrix costs at most so many passes.
    gram: float = 30.0

    #: Sparse X with ids: at least so many features, and no more than samples. With 123 (a9a) a
    #: factor of all of them costs less than sorting the rows.
    ids: int = 200

    #: Dense samples, fewer than 1/`wide` of the features: in their span, ...
    wide: float = 2.0
    #: ... if their inner products cost at most so many passes (squared loss; other losses). A pass
    #: is n d numbers of `number` ns; a product of the n^2 d/2 takes `product` ns.
    span: tuple[float, float] = (100.0, 15.0)

    #: Fewer samples than features: in orthogonal coordinates at once, if the rounding of X X' is
    #: this part of lambda gamma n (decision 16). Below, X X' may do.
    hidden: float = 0.1
    #: The span of the samples is left for these coordinates after so many passes for each sample:
    #: the coordinates take about as long.
    spent: float = 1.25

    #: Steps of a whole run of Newton's method. 5 to 9 on a9a, covtype and one-hot data.
    steps: float = 7.0
    #: The rate is trusted once this share of Newton's cost is spent: an early one tells little.
    #: 0.1 left too early on 7 of 51 random problems, and took up to 3 times longer there.
    earliest: float = 0.5
    #: The rest of the dual must take so many times longer: Newton's steps may be twice as many, in
    #: smoothing too (covtype, 1e-4, to 1e-3: 140 ms in place of 80 without this).
    margin: float = 2.0
    #: With so many samples for each feature the interior point method takes the place of momentum.
    interior_tall: float = 5.0
    #: It needs at most so many features, ...
    interior_widest: int = 1000
    #: ... and this share of its cost spent before: without, it came too early (395 ms, not 83).
    interior_earliest: float = 0.3
    #: With fewer than two rows a feature it is not taken before so many passes: the rows that seem
    #: to rest are often the wrong ones, and without them it may not arrive (40 x 39, hinge,
    #: lambda = 1e-6, to 1e-8: not in 1,000 passes from the fourth on, 28 in all from the tenth).
    interior_settled: int = 10
    #: It is not taken while this part of what it saves by the last sweeps is more than they took,
    #: since they put many rows to rest: digits at 1/n, ten classes, took 25 ms without this, 24
    #: with 0.5 and 20 with 0.25 (decision 7).
    saved: float = 0.25
    #: It is the first choice if it is predicted to take at most so many ns. With 1 ms predicted it
    #: takes 0.6 of the time of sweeps first at lambda = 1e-3, and 0.3 to 1.2 at 0.1; with 3.4 ms
    #: 0.8 and 2.8 (hinge, 100 and 1,600 x 10 random numbers, to 1e-6).
    tiny: float = 4e6
    #: An L1 part and a loss that is not smooth: interior points at once if they are predicted to
    #: take no more time than so many passes of the dual. Hinge and epsilon-insensitive losses with
    #: l1_ratio 0.5 took 600 to over 1,000 passes there (100 x 2,000, diabetes at alpha = 1e-4).
    interior_l1: float = 300.0
    #: Smooth losses with kinks: working sets first, for this part of what interior points are
    #: predicted to take. 162 problems took 3.4 s with 0.1, 4.0 with 0.2 and 4.3 with 0.3
    #: (decision 15).
    tried: float = 0.1
    #: Smoothing takes its place while this share of the samples is still stepped on: the data is
    #: noisy. Where samples rest soon (3 % positives, one-hot) it took 3 times longer.
    crowded: float = 0.9
    #: A tolerance below this is not reached by either, and does not count in the prediction.
    finest: float = 1e-12
    #: The Hessian takes about the room of the data, at most: d^2 <= room + 2 nnz.
    room: float = 1e6
    #: Below this tolerance all digits of w are wanted: one more step of Newton's method ...
    tight: float = 1e-10
    #: ... if it costs no more than so many passes.
    affordable: float = 20.0


def interior_applies(problem: ERM, tuning: PlanTuning) -> bool:
    """Whether the interior point method is for this problem: a loss with kinks, few features.

    It knows smooth losses of the hinge family too, but Newton's method is there for these.
    """
    kinks = problem.loss.gamma == 0
    return kinks and problem.d <= tuning.interior_widest and unmet(Interior, problem) is None


def seconds(ns: float) -> str:
    """Nanoseconds of the table of costs, in words."""
    return f"{ns / 1e9:.2g} s" if ns >= 1e9 else f"{ns / 1e6:.2g} ms"


class Watch:
    """The gaps seen in the dual, and whether another method would take less time from here.

    For a smooth loss that is Newton's method. For the hinge and epsilon-insensitive losses it is
    the interior point method on the rows that are still stepped on.
    """

    def __init__(self, problem: ERM, target: Target, tuning: PlanTuning = PlanTuning()) -> None:
        self.problem, self._tuning, self._max = problem, tuning, target.max_passes
        self._tol = max(target.tol, tuning.finest)
        self._seen = [(0.0, 0.0)]  # ns and log of the relative gap, which is 1 at x = 0
        #: In words, what the last answer of `leave` was based on.
        self.why = ""
        self._pass = costs.lean_sweep(problem) + costs.RATES.call
        self._step = self._step_passes = math.inf
        small = problem.d**2 <= tuning.room + 2 * problem.samples.nnz
        if small and unmet(Newton, problem) is None:
            self._step = costs.newton_step(problem)
            self._step_passes = 1 + costs.in_passes(problem, costs.gram_entries(problem))
        self.interior = interior_applies(problem, tuning)
        #: whether the interior point method is for all samples, whichever seem to rest
        self.whole = self.interior and costs.rare(problem)
        even = problem.loss.eta == problem.loss.gamma
        self._few = problem.n < tuning.square * problem.d and not even
        self._factor_passes = 2 + costs.in_passes(problem, 0.0)
        tall = self.interior and problem.n >= tuning.tall * problem.d
        self._smoothing = costs.smoothing(problem) if tall else math.inf
        #: ns spent, and what the interior point method was predicted to cost, when last asked
        self._last = (0.0, 0.0)
        #: whether smoothing is predicted to be faster than the interior point method alone
        self.smooths = False
        self.sets = False  # as of `BlockWatch`

    @property
    def affordable(self) -> bool:
        """Whether a step of Newton's method costs no more than a few passes."""
        return self._step <= self._tuning.affordable * self._pass

    @property
    def newton_in_passes(self) -> float:
        """Passes that take as long as a run of Newton's method; infinite if it does not apply."""
        return self._tuning.steps * self._step / self._pass

    def leave(
        self, passes: int, gap: float, rows: Index | None = None, spent: float | None = None
    ) -> bool:
        """Whether to leave the dual, at a relative gap seen after so many passes.

        `rows` are those that are still stepped on, `spent` is what the passes took, in ns.
        """
        spent = passes * self._pass if spent is None else spent
        possible = self.interior if self._step == math.inf else True
        if not (possible and gap > self._tol):
            return False
        self._seen.append((spent, math.log(gap)))
        left = self._max - passes
        if self._step == math.inf:
            rows = self._all if rows is None or self.whole else rows
            cost = costs.interior(self.problem, rows, self._tol)
            falls = self._falls(spent, cost)
            crowded = rows.size >= self._tuning.crowded * self.problem.n
            self.smooths = crowded and self._smoothing < cost
            if not self.smooths and left < costs.INTERIOR_STEPS * self._factor_passes:
                return False  # max_epochs would end it in its first steps
            square = self.problem.n < 2 * self.problem.d
            if square and passes < self._tuning.interior_settled:
                return False
            if falls and not self.smooths:
                return False
            cost = self._smoothing if self.smooths else cost
            margin = self._tuning.margin if self.smooths else 1.0
            trusted = self._tuning.interior_earliest * cost
        else:
            steps = self._steps(gap)
            more = self._tuning.more_steps if self._few else 1.0
            jumps = more > 1 and self.problem.loss.kinks.size > 0
            if left < self._step_passes * steps * (self._tuning.margin if jumps else 1.0):
                return False  # max_epochs would end it, too
            cost = self._step * steps
            if self._time_left() <= left * self._pass:
                cost *= more
            trusted, margin = self._tuning.earliest * cost, self._tuning.margin
        if spent < trusted:
            return False
        rest, most = self._time_left(), left * self._pass
        self.why = self._compare(rest, most, cost)
        return min(rest, most) > margin * cost

    def _falls(self, spent: float, cost: float) -> bool:
        """Whether more sweeps would make interior points cheaper by more than they cost.

        They do that by rows that they put to rest.
        """
        (before, then), self._last = self._last, (spent, cost)
        return self._tuning.saved * (then - cost) > spent - before

    def _compare(self, rest: float, most: float, cost: float) -> str:
        """In words, what is left here and what the other method takes, in ns."""
        here = "not within max_epochs" if rest > most else f"{seconds(rest)} left"
        return f"{here} by the observed rate, {seconds(cost)} predicted"

    @property
    def _all(self) -> Index:
        return np.arange(self.problem.n_samples)

    def _steps(self, gap: float) -> float:
        """Steps to the tolerance: near the end each doubles the number of digits."""
        if self.problem.loss.eta == self.problem.loss.gamma:  # P is a parabola
            return 1.0
        most = self._tuning.steps
        if gap >= 1:
            return most
        return min(most, 2 + math.log2(1 + math.log(self._tol) / math.log(gap)))

    def _time_left(self) -> float:
        """By the rate of the later half, in ns; of all, while there is little to go by."""
        spent, gap = self._seen[-1]
        before = [seen for seen in self._seen if seen[0] <= spent / 2]
        then, start = before[0 if len(self._seen) <= EARLY else -1][::-1]
        if then <= gap:
            return math.inf
        return (gap - math.log(self._tol)) * (spent - start) / (then - gap)


class BlockWatch:
    """The same for sweeps over blocks of K outputs: the other method is one with factors.

    That is Newton's method for a smooth loss with L2, and interior points for all others; of a
    softmax with L1, where no factor is affordable, sets of entries of W, which come late.
    """

    why = "less time than what is left, by the observed rate"
    smooths = affordable = whole = False

    def __init__(self, problem: ERM, target: Target) -> None:
        self._target = target
        kept, name = general.kept(problem, target), factors(problem)
        #: whether sets of entries of W are what is left
        self.sets = name != "newton" and kept == math.inf and sets_at_last(problem)
        self.interior = name == "interior" and not self.sets
        self._cost, self._kept = math.inf, (1 - TRIED) * target.max_passes
        self._pass = newton_k.sweep_cost(problem)
        if not self.sets:
            self._cost = (general if self.interior else newton_k).cost(problem)
            self._kept = kept if kept < math.inf else 0.0
        if name == "newton":
            self._kept += ROUND * self._cost / self._pass
        self._gaps = [(0, math.inf)]

    def leave(
        self, passes: int, gap: float, rows: Index | None = None, spent: float | None = None
    ) -> bool:
        """Whether the dual, at the rate of the last half of the run, takes longer."""
        early = passes * self._pass < EARLIEST * self._cost
        room = self._target.max_passes - passes - self._kept
        known = passes == self._gaps[-1][0]
        if known or (early and room > 0) or not 0 < gap < math.inf:
            return False
        self._gaps.append((passes, gap))
        before = [seen for seen in self._gaps if seen[0] <= passes / 2][-1]
        if not gap < before[1] < math.inf:
            return before[1] < math.inf
        rate = math.log(before[1] / gap) / (passes - before[0])
        left = math.log(max(gap / max(self._target.tol, 1e-12), 1.0)) / rate
        late = room <= 0 and left > self._target.max_passes - passes
        return late or left * self._pass > MARGIN * self._cost


def sets_at_last(problem: ERM) -> bool:
    """Whether sets of entries of W are there for a softmax with an L1 part."""
    return problem.K > 1 and unmet(ClassSet, problem) is None


def factors(problem: ERM) -> str:
    """The method with factors that is for this problem of K outputs, or "".

    Newton's method may go round between the pieces of the smoothed multiclass hinge.
    """
    interior = general.applies(problem)
    if problem.dual_form and newton_k.applies(problem):
        pieces = problem.loss.kind == SIMPLEX and interior
        if not (pieces and general.cost(problem) < newton_k.cost(problem)):
            return "newton"
    return "interior" if interior else ""


def most_passes(problem: ERM, name: str) -> float:
    """Passes of a method for K outputs that may be slow, before interior points take over.

    Newton's method is slow where phi'' jumps, sets of groups of a softmax at small alphas.
    """
    loss, sweep = problem.loss, newton_k.sweep_cost(problem)
    if problem.K > 1 and name == "newton":
        jumps = loss.kind == SIMPLEX or (loss.by_output and not bends_evenly(loss))
        return ROUND * newton_k.cost(problem) / sweep if jumps else math.inf
    sets = problem.K > 1 and name == "group_set" and loss.kind == SOFTMAX
    return SETS * general.cost(problem) / sweep if sets else math.inf


def bends_evenly(loss: Any) -> bool:
    """Whether phi'' has no jumps: the squared and the logistic loss, in columns too."""
    one = loss.loss if loss.by_output else loss
    return bool(one.gamma > 0 and (one.eta == one.gamma or one.kinks.size == 0))
