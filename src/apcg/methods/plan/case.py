"""What the rules of the plan ask of a problem: how tall, wide, easy or raw it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...certify.points import Start
from ...losses.base import SOFTMAX
from ...problems import costs
from ...problems.erm import ERM
from ..base import DUAL_BLOCKS, L2_PENALTY, unmet
from ..dual.method import DualSweeps
from ..dual.tuning import MANY, TuningK
from ..interior import general as interior_k
from ..interior.general import InteriorK
from ..interior.interior_l1 import InteriorL1
from ..linalg import factor
from ..newton import ids
from ..newton import many_outputs as newton_k
from ..newton.ids import NewtonIds
from ..newton.newton import Newton
from ..paper.adaptive.tuning import AdaptiveTuning
from ..reductions.orthogonal import Orthogonal
from ..reductions.per_output import OneByOne
from ..reductions.row_space import Span
from .watch import PlanTuning, bends_evenly, interior_applies

#: Nanoseconds of a run of interior points that is over at once.
SMALL = 2e8

#: From this part of lambda on that rounding makes up, sweeps over blocks leave too few digits of w.
ROUNDED = 1e-7


@dataclass(frozen=True)
class Case:
    """A problem, where its run begins, what is asked for, and what the plan may take."""

    problem: ERM
    at: Start
    tol: float = 1e-6
    without: tuple[str, ...] = ()
    tuning: PlanTuning = PlanTuning()
    adaptive: AdaptiveTuning = AdaptiveTuning()
    outputs: TuningK = MANY
    #: the plan itself, for methods that ask it for a part of the problem
    plan: Any = None

    def may(self, idea: str) -> bool:
        """Whether the plan may take a method or an idea."""
        return idea not in self.without

    def fits(self, method: Any) -> bool:
        """Whether the problem has all that a method, or a class of methods, needs."""
        return unmet(method, self.problem) is None

    @property
    def shape(self) -> str:
        """The samples and the unknowns, in words."""
        p = self.problem
        unknowns = f"{p.d:,} features" if p.K == 1 else f"{p.d * p.K:,} numbers of W"
        return f"{p.n_samples:,} samples for {unknowns}"

    @property
    def constant(self) -> bool:
        """Whether phi'' is constant: the squared loss."""
        return bool(self.problem.loss.eta == self.problem.loss.gamma)

    @cached_property
    def newton(self) -> bool:
        """Whether Newton's method for one output fits."""
        return self.may("newton") and self.fits(Newton)

    @property
    def unpenalised(self) -> bool:
        """Whether features have no penalty and no bounds but the box of the certificate."""
        return self.problem.reach > 0

    @property
    def affords_factors(self) -> bool:
        """Whether a factor of all features is worth its time: on wide X, if it is 15 passes."""
        p = self.problem
        cheap = factor.madds(p.d) <= 15 * 2 * p.samples.nnz
        return p.d <= self.tuning.widest and (p.d <= p.n or cheap)

    @property
    def tall(self) -> bool:
        """Whether the samples are many more than the features, which are few."""
        p, t = self.problem, self.tuning
        return p.d <= t.widest and p.n >= t.tall * p.d

    @property
    def one_factor(self) -> bool:
        """Whether one matrix, which is cheap, gives the answer: the squared loss, few features."""
        p, t = self.problem, self.tuning
        entries = costs.gram_entries(p) + p.d**3 / 6
        return self.constant and p.d <= t.widest and entries <= t.gram * p.samples.nnz

    @property
    def square(self) -> bool:
        """Whether dense samples are a few for each feature, and factors take less time than sweeps.

        With fewer than 4 for each feature most losses are next to zero, and few sweeps do.
        """
        p, t = self.problem, self.tuning
        enough = p.d if self.constant else t.square * p.d
        if not costs.is_dense(p) or p.d > t.widest or p.n_samples < enough:
            return False
        swept = self.at.is_cold and self.may("dual") and self.fits(DualSweeps)
        return not swept or costs.newton_whole(p) < costs.sweeps(p, self.tol)

    @property
    def easy(self) -> bool:
        """Whether lambda is so large that a few dual sweeps take less time than Newton's method."""
        p = self.problem
        if not (self.at.is_cold and self.may("dual") and self.fits(DualSweeps)):
            return False
        if self.constant or (p.intercept and self.tol < self.tuning.easy_free):
            return False
        return costs.easy_sweeps(p, self.tol) < costs.newton(p, self.tol)

    @property
    def ids(self) -> bool:
        """Whether Newton's method with ids eliminated is predicted to take the least time."""
        p, t = self.problem, self.tuning
        if not self.may("newton") or not t.ids <= p.d <= p.n_samples or not self.fits(NewtonIds):
            return False
        others = [math.inf]
        if self.may("dual") and self.fits(DualSweeps):
            others.append(costs.sweeps(p, self.tol))
        if self.newton and self.one_factor:
            others.append(costs.newton_step(p))
        elif self.newton and self.tall:
            others.append(costs.newton(p, self.tol))
        return ids.cost(p, self.tol) < min(others)

    @property
    def raw(self) -> bool:
        """Whether X is so large that X X' cannot show lambda.

        With many samples and phi'' without jumps Newton's method is tried first: X'X scaled to a
        unit diagonal may do, and where it does not, it gets stuck soon.
        """
        p = self.problem
        if not (p.loss.compiled and L2_PENALTY.holds(p)):
            return False
        counts = p.n_samples < p.d or not bends_evenly(p.loss)
        hides = counts and costs.hidden(p) >= self.tuning.hidden
        return hides and self.fits(Orthogonal)

    @property
    def raw_columns(self) -> bool:
        """Whether y has columns, each a problem of its own, and the rounding of X X' counts."""
        p = self.problem
        hides = p.n_samples < p.d and costs.hidden(p) >= ROUNDED
        return p.loss.by_output and hides and self.fits(OneByOne(Orthogonal()))

    @property
    def of_norms(self) -> bool:
        """Whether the penalty is no sum over features: norms of groups, or one of the user's."""
        return not self.problem.g.separable

    @property
    def zeros(self) -> bool:
        """Whether the penalty makes weights zero. Bounds alone make none to gain by."""
        g: Any = self.problem.g
        return self.may("working_set") and bool(g.a.any())

    @cached_property
    def interior_l1(self) -> float:
        """What interior points for an L1 part take, in ns; infinite if they do not fit."""
        return costs.interior_l1(self.problem) if self.fits(InteriorL1) else math.inf

    @property
    def interior_l1_passes(self) -> float:
        """The same in passes of working sets."""
        return self.interior_l1 / max(costs.working_set_pass(self.problem), 1.0)

    @property
    def matrix_is_cheap(self) -> bool:
        """Whether these points take less than many sweeps, or there is no dual to sweep in."""
        p = self.problem
        if self.interior_l1 == math.inf:
            return False
        sweeps = self.tuning.interior_l1 * (costs.lean_sweep(p) + costs.RATES.call)
        return self.interior_l1 <= sweeps or not p.dual_form

    @property
    def wide(self) -> bool:
        """Whether the samples are few, dense and long."""
        p, t = self.problem, self.tuning
        passes = costs.inner_products(p) / costs.dense_sweep(p)
        few = p.d >= t.wide * p.n_samples and passes <= t.span[0 if self.constant else 1]
        return few and all(need.holds(p) for need in Span.needs)

    @property
    def kinked(self) -> bool:
        """Whether interior points are there for what is slow: a loss with kinks, many samples."""
        p, t = self.problem, self.tuning
        return self.may("newton") and p.n >= t.interior_tall * p.d and interior_applies(p, t)

    @property
    def tiny(self) -> bool:
        """Whether a run of interior points takes next to no time."""
        rows = np.arange(self.problem.n_samples)
        return costs.interior(self.problem, rows) <= self.tuning.tiny

    # ---- K outputs ------------------------------------------------------------------------------

    @cached_property
    def swept(self) -> bool:
        """Whether the sweeps over blocks of K outputs know the loss and the penalty."""
        return DUAL_BLOCKS.holds(self.problem)

    @property
    def mostly_l1(self) -> bool:
        """Whether a smooth problem has L1 enough for working sets to be faster than dual sweeps.

        Squared loss, 200 x 1,000 with 20 outputs: 0.08 of the time of the sweeps with l1_ratio =
        0.9, 0.5 with 0.5; 2,000 x 100 with 0.1: 1.4 times.
        """
        soft = self.problem.g.soft
        return soft is not None and self.problem.loss.gamma > 0 and bool(soft[0] >= soft[1])

    @property
    def interior_k(self) -> bool:
        """Whether interior points are affordable, or the only ones for a loss with kinks."""
        p = self.problem
        return interior_k.applies(p) or (p.loss.gamma == 0 and self.fits(InteriorK))

    @property
    def small_softmax_net(self) -> bool:
        """Whether it is a softmax with norms of rows and L2 that interior points solve at once.

        On 14 x 9 with 3 classes, alpha 1e-6: 0.03 s of CPU, and sets of groups 16 s for 400 passes.
        """
        p = self.problem
        kind = p.loss.kind == SOFTMAX and p.dual_form and not p.g.separable
        return bool(kind and interior_k.applies(p) and interior_k.cost(p) < SMALL)

    @property
    def newton_k(self) -> bool:
        """Whether Newton's method for K outputs is first: one step does, or it ended a run."""
        if not self.may("newton") or not newton_k.applies(self.problem):
            return False
        ended_so = self.at.side == "primal" and self.at.w is not None
        return ended_so or newton_k.at_once(self.problem)
