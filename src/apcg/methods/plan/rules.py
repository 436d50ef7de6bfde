"""The rules of `auto`: which method is the first, and why. The first rule that holds is taken.

To add a rule, put a `Rule` where it belongs in the order, and run `python tools/plan_table.py`:
that writes the table of docs/how-apcg-chooses.md. What a rule asks of a problem is in `case`, when
another method takes over is in `watch` and `run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...certify.points import Start
from ...problems.erm import ERM
from ..base import Method, unmet
from ..dual.method import DualSweeps
from ..dual.tuning import PARTS
from ..interior.general import InteriorK
from ..interior.interior import Interior
from ..interior.interior_l1 import InteriorL1
from ..newton.bounded import BoundedNewton
from ..newton.ids import NewtonIds
from ..newton.many_outputs import BlockNewton
from ..newton.newton import Newton
from ..paper import adaptive
from ..paper.adaptive import AdaptiveMethod
from ..paper.afg import AFGMethod
from ..reductions.least_squares import LeastSquaresMethod
from ..reductions.orthogonal import Orthogonal
from ..reductions.per_output import OneByOne
from ..reductions.row_space import Span
from ..reductions.scaled import Scaled
from ..sparse import ClassSet, GroupSet, OutputsGroupSet, WorkingSet
from .case import Case
from .watch import bends_evenly


@dataclass(frozen=True)
class Rule:
    """For which problems which method is the first.

    method  its name
    of      which problems, in words: a row of the table in docs/how-apcg-chooses.md
    when    whether a problem is one of them
    first   the method
    why     what a run says of it
    then    what else the table says: what may follow
    many    whether it is one for problems with K > 1 outputs; None: for all
    """

    method: str
    of: str
    when: Callable[[Case], bool]
    first: Callable[[Case], Method]
    why: str | Callable[[Case], str]
    then: str = ""
    many: bool | None = False

    def serves(self, problem: ERM) -> bool:
        """Whether it is one for so many outputs."""
        return self.many is None or self.many == (problem.K > 1)

    def reason(self, case: Case) -> str:
        """Why the method is taken."""
        return self.why if isinstance(self.why, str) else self.why(case)


def _working_set(case: Case) -> Method:
    """For a part of the time of interior points, where these are there for a loss with kinks."""
    return WorkingSet(alone=False, most=case.tuning.tried * case.interior_l1_passes)


def _span(case: Case) -> Method:
    """What solves the small problem.

    With about as many samples as unknowns, Newton's method may go round between the pieces of a
    loss whose phi'' jumps (squared hinge on alon, lambda 1e-6: 1.2 s in place of 17 ms).
    """
    loss = case.problem.loss
    solver: Method = case.plan
    if case.newton and bends_evenly(loss):
        solver = Newton()
    elif loss.gamma > 0 and case.fits(DualSweeps):
        solver = DualSweeps()
    passes = case.tuning.spent * case.problem.n_samples
    return Span(solver, most=passes if case.may("orthogonal") else math.inf)


def _sweeps(case: Case, *left_out: str) -> DualSweeps:
    parts = (*(idea for idea in PARTS if not case.may(idea)), *left_out)
    return DualSweeps(parts, case.outputs if case.problem.K > 1 else None)


def _adaptive(case: Case) -> Method:
    left_out = tuple(idea for idea in case.without if idea in adaptive.IDEAS)
    return AdaptiveMethod(left_out, case.adaptive)


def _why_adaptive(case: Case) -> str:
    need = unmet(DualSweeps, case.problem)
    return "the dual is left out" if need is None else f"dual needs {need.what}"


RULES = (
    Rule(
        "group_set",
        of="group lasso, smooth loss",
        when=lambda c: c.may("working_set") and c.of_norms and c.fits(GroupSet),
        first=lambda c: GroupSet(alone=False),
        why="the penalty makes groups of weights zero",
        then='"afg" if that gets no further',
    ),
    Rule(
        "afg",
        of="a penalty of your own that is no sum over features",
        when=lambda c: c.of_norms,
        first=lambda c: AFGMethod(),
        why="the penalty is no sum over features",
    ),
    Rule(
        "afg",
        of="a loss of your own",
        when=lambda c: not c.problem.loss.compiled,
        first=lambda c: AFGMethod(),
        why="the loss is known by its functions only",
    ),
    Rule(
        "least_squares",
        many=None,
        of="no penalty, squared loss",
        when=lambda c: c.fits(LeastSquaresMethod),
        first=lambda c: LeastSquaresMethod(),
        why="there is no penalty, and the loss is squared",
        then="the minimiser of least norm, by a singular value decomposition or LSMR",
    ),
    Rule(
        "newton",
        of="no penalty on some features, L2 or none on the others, smooth loss, at most 2,000 "
        "features, and no more than samples or few",
        when=lambda c: c.unpenalised and c.newton and c.affords_factors,
        first=lambda c: Newton(),
        why="there is no penalty on some features",
    ),
    Rule(
        "interior",
        of="no penalty on some features, L2 or none on the others, a loss made of lines",
        when=lambda c: c.unpenalised and c.problem.loss.gamma == 0 and c.fits(Interior),
        first=lambda c: Interior(),
        why="there is no penalty on some features, and the loss has kinks",
    ),
    Rule(
        "newton_bounds",
        of="bounds, with L2 or nothing else, smooth loss, at most 2,000 features",
        when=lambda c: c.may("newton") and c.problem.d <= c.tuning.widest and c.fits(BoundedNewton),
        first=lambda c: BoundedNewton(),
        why="there are bounds, and few features",
        then='"adaptive" if that gets no further',
    ),
    Rule(
        "orthogonal",
        of="L2, X so large, or alpha so small, that the rounding of X X' hides alpha",
        when=lambda c: c.may("orthogonal") and c.raw,
        first=lambda c: Orthogonal(),
        why="lambda is less than the rounding of X X'",
        then="in coordinates in which the columns of X are orthogonal; also where another method "
        "gets stuck",
    ),
    Rule(
        "newton_ids",
        of="L2, smooth loss, sparse X with ids (columns of which a row has one at most), at least "
        "200 features and no fewer samples, where that is predicted to take less time than dual "
        "sweeps and than a factor of all features",
        when=lambda c: c.ids,
        first=lambda c: NewtonIds(),
        why=lambda c: f"{c.shape}, some of them ids",
        then="one group of ids eliminated exactly, a small matrix for the rest, or its diagonal",
    ),
    Rule(
        "newton",
        of="L2, smooth loss, where the solve before on a path ended with it",
        when=lambda c: c.newton and c.at.side == "primal",
        first=lambda c: Newton(),
        why="the run before ended in the primal",
    ),
    Rule(
        "newton",
        of="L2, smooth loss, at least 10 samples a feature, at most 2,000 features, unless alpha "
        "is so large that a few sweeps are predicted to take less time",
        when=lambda c: c.newton and c.tall and not c.easy,
        first=lambda c: Newton(),
        why=lambda c: f"{c.shape}, so a factor costs little",
    ),
    Rule(
        "newton",
        of="L2, squared loss, rows so short that a Gram matrix is cheap",
        when=lambda c: c.newton and c.one_factor,
        first=lambda c: Newton(),
        why="the squared loss has one matrix, and it is cheap",
        then="one factor",
    ),
    Rule(
        "newton",
        of="L2, smooth loss, dense, at least 4 samples a feature (squared loss: no fewer samples "
        "than features), at most 2,000 features, where factors are predicted to take less time "
        "than dual sweeps",
        when=lambda c: c.newton and c.square,
        first=lambda c: Newton(),
        why=lambda c: c.shape,
    ),
    Rule(
        "working_set",
        of="L1, elastic net, with or without bounds, smooth loss",
        when=lambda c: c.zeros and c.fits(WorkingSet),
        first=_working_set,
        why="the penalty makes weights zero, and the loss is smooth",
        then='"adaptive" if that gets no further, or a step takes longer than the dual; of a loss '
        "with kinks (smoothed hinge, squared hinge, Huber), with at most 5,000 samples or "
        'features, "interior_l1" after a tenth of the time that it is predicted to take',
    ),
    Rule(
        "interior_l1",
        of="hinge or epsilon-insensitive loss with L1, or with elastic net where a matrix of the "
        "samples or of the features is cheap",
        when=lambda c: c.zeros and c.matrix_is_cheap,
        first=lambda c: InteriorL1(),
        why="the penalty makes weights zero, and the loss has kinks",
    ),
    Rule(
        "span",
        of="L2, dense, fewer samples than half the features, and not many of them",
        when=lambda c: c.may("span") and c.wide,
        first=_span,
        why=lambda c: f"only {c.shape}",
        then="the problem rewritten with one unknown a sample, solved by one of the other rows",
    ),
    Rule(
        "scaled",
        many=None,
        of="an L2 weight for each feature, all positive",
        when=lambda c: c.problem.g.b.size > 1 and c.fits(Scaled),
        first=lambda c: Scaled(c.plan),
        why="with its columns over the roots of the weights it has one weight",
        then="one of the rows for L2, on a copy of X",
    ),
    Rule(
        "interior",
        of="L2, hinge or epsilon-insensitive loss, at least 5 samples a feature, and few in all",
        when=lambda c: c.kinked and c.tiny,
        first=lambda c: Interior(),
        why=lambda c: f"{c.shape}, so few that the fewest steps count",
    ),
    Rule(
        "dual",
        of="the same, more samples",
        when=lambda c: c.kinked and c.may("dual") and c.fits(DualSweeps),
        first=lambda c: _sweeps(c, "momentum"),
        why=lambda c: f"{c.shape}, and the interior point method for what is slow",
        then='then "interior" on the samples that are left, or "smoothing" if next to all are left',
    ),
    Rule(
        "dual",
        of="L2 otherwise",
        when=lambda c: c.may("dual") and c.fits(DualSweeps),
        first=_sweeps,
        why=lambda c: c.shape,
        then='plain sweeps, then momentum; "newton" if the dual turns out to be slow',
    ),
    Rule(
        "adaptive",
        of="bounds alone, elastic net otherwise, L2 weights of very different size",
        when=lambda c: True,
        first=_adaptive,
        why=_why_adaptive,
    ),
    # ---- K outputs ------------------------------------------------------------------------------
    Rule(
        "newton",
        many=True,
        of="no penalty on some features, L2 or none on the others, smooth loss",
        when=lambda c: c.unpenalised and c.fits(BlockNewton),
        first=lambda c: BlockNewton(),
        why="there is no penalty on some features",
    ),
    Rule(
        "group_set",
        many=True,
        of="a penalty on rows of W, softmax or squared loss (the multi-task lasso)",
        when=lambda c: c.of_norms and c.fits(OutputsGroupSet) and not c.small_softmax_net,
        first=lambda c: OutputsGroupSet(),
        why="the penalty chooses rows of W",
        then='of a softmax "interior" where that is slow',
    ),
    Rule(
        "working_set",
        many=True,
        of="softmax with L1",
        when=lambda c: not c.swept and c.fits(ClassSet),
        first=lambda c: ClassSet(),
        why="the penalty chooses entries of W",
    ),
    Rule(
        "one_by_one",
        many=True,
        of="y of K columns with L1, or mostly L1; with L2, where the rounding of X X' hides alpha",
        when=lambda c: (
            c.may("one_by_one")
            and (not c.swept or c.mostly_l1 or c.raw_columns)
            and c.fits(OneByOne(c.plan))
        ),
        first=lambda c: OneByOne(c.plan),
        why="each output is a problem of its own",
        then="one of the rows for one output, for each column",
    ),
    Rule(
        "interior",
        many=True,
        of="L1, elastic net or groups with a loss that no row above takes: the multiclass hinge, "
        "smoothed or not; columns with groups; a small softmax with groups and L2",
        when=lambda c: c.may("newton") and not c.swept and c.interior_k,
        first=lambda c: InteriorK(),
        why="norms of W, with a loss that has kinks or no working sets of its own",
        then='"afg" if that gets no further',
    ),
    Rule(
        "afg",
        many=True,
        of="other penalties on W, and a loss or penalty of your own",
        when=lambda c: not c.swept and c.fits(AFGMethod),
        first=lambda c: AFGMethod(),
        why="no sweep over blocks knows this loss with this penalty",
    ),
    Rule(
        "newton",
        many=True,
        of="L2, squared loss, no more features than samples, or at most 200; softmax, "
        "dense X, at least 400 samples for each of at most 300 numbers of W (one class less than "
        "there are), or at most 100 of these",
        when=lambda c: c.newton_k,
        first=lambda c: BlockNewton(),
        why=lambda c: (
            f"{c.problem.n_samples:,} samples for {c.problem.d * c.problem.K:,} numbers of W"
        ),
        then="one factor for all outputs; of the softmax on samples first, then L-BFGS from the "
        "last factor; on a path also where it ended the solve before",
    ),
    Rule(
        "dual",
        many=True,
        of="L2 or elastic net otherwise",
        when=lambda c: True,
        first=_sweeps,
        why=lambda c: f"sweeps over blocks of {c.problem.K} outputs",
        then='if the dual turns out to be slow and W is small, "newton" for a smooth loss with L2, '
        '"interior" for all others, and where that goes round between the pieces of a loss',
    ),
)


def choose(problem: ERM, at: Start, tol: float, plan: Any) -> tuple[Method, str]:
    """The method of the first rule that holds, and why; `plan` says what is left out."""
    parts = plan.without, plan.tuning, plan.adaptive, plan.outputs
    case = Case(problem, at, tol, *parts, plan=plan)
    rule = next(rule for rule in RULES if rule.serves(problem) and rule.when(case))
    return rule.first(case), rule.reason(case)
