"""The methods of working sets for K classes: entries of W, or its rows.

    minimize P(W) = (1/n) sum_i s_i (log sum_k exp(z_ik) - z_iy) + alpha g(W),   z = X W + b

A round takes the gradient, chooses the entries that may move, minimises a second order model of P
over them, with the whole K x K matrix of second derivatives of each row, and searches along the
line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ....certify.points import Certificate, Point, Start
from ....data import Sparse
from ....penalties.groups import GroupNorms
from ....penalties.interval import Interval
from ....problems.erm import ERM
from ...base import MANY_OUTPUTS, SMOOTH_LOSS, Budget, Need, Needs, Report, Run, Target, Work
from ..dense.chosen_columns import WideRun
from ..groups.method import OF_GROUPS, GroupSet
from ..groups.run import GroupRun
from ..parts import is_softmax
from ..run import STALL, SparseRun
from ..tuning import SetTuning
from .columns import ClassColumnsRun


def _has_l1(problem: ERM) -> bool:
    """Whether g has an L1 part on every entry of W, and no bounds."""
    g: Any = problem.g
    return isinstance(g, Interval) and g.is_unbounded and bool(g.a.min() > 0)


def _of_rows(problem: ERM) -> bool:
    """Whether it is a softmax with a penalty on the rows of W, of a size for it."""
    g: Any = problem.g
    sparse = isinstance(problem.samples, Sparse)
    fits = not sparse or problem.n_samples * problem.d <= SetTuning.dense_room
    return is_softmax(problem) and isinstance(g, GroupNorms) and g.last is None and g.a > 0 and fits


OF_CLASSES = Need(
    'loss "multinomial"', is_softmax, lambda p: f"loss {p.loss.name!r} is another one"
)
L1_PART = Need(
    "a penalty with an L1 part on every entry of W, without bounds",
    _has_l1,
    lambda p: f"penalty {p.penalty} is not of that kind",
)
OF_ROWS = Need(
    f'{OF_GROUPS.what}, or loss "multinomial" with X dense or small',
    lambda p: OF_GROUPS.holds(p) or _of_rows(p),
    OF_GROUPS.has,
)


@dataclass(frozen=True)
class ClassSet:
    """The method "working_set" for K classes."""

    tuning: SetTuning = SetTuning()
    alone: bool = True
    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, OF_CLASSES, L1_PART)
    side: ClassVar[str] = "primal"

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> SparseRun | ColumnsFirst:
        """Begin at at.w, or at 0 with a large alpha; or go on with the run that was there."""
        run = at.run.resume(problem, target) if at.run else None
        if not isinstance(run, SparseRun):
            sparse = isinstance(problem.samples, Sparse)
            many = sparse and problem.n_samples > self.tuning.few_rows
            kind = ClassColumnsRun if many else WideRun
            run = kind(problem, at, target, self.tuning)
        run.alone = self.alone
        return ColumnsFirst(run, target) if isinstance(run, ClassColumnsRun) else run


class ColumnsFirst(Run):
    """Rounds on sparse columns; where these hardly get on, sets by their matrices.

    Columns that are nearly alike take conjugate gradients more iterations than they have.
    """

    def __init__(self, run: ClassColumnsRun, target: Target) -> None:
        self._alone, run.alone = run.alone, False
        #: the run that is at work
        self.at_last: SparseRun = run
        self._target = target
        self.notes: list[str] = []

    @property
    def report(self) -> Report:
        """That of the run at work."""
        return replace(self.at_last.report, notes=self.notes)

    def point(self) -> Point | Certificate:
        """The answer of the run at work."""
        return self.at_last.point()

    def seen(self, certificate: Certificate) -> None:
        """Tell the run at work."""
        self.at_last.seen(certificate)

    def resume(self, problem: ERM, target: Target, w: Any = None) -> Run | None:
        """The run at work goes on by itself."""
        return self.at_last.resume(problem, target, w)

    def advance(self, budget: Budget) -> Work:
        """With the run at work, and with another one if it gets no further."""
        run = self.at_last
        work = run.advance(budget)
        if not (isinstance(run, ClassColumnsRun) and run.stuck and run.relative > STALL):
            return work
        if run.price() < math.inf:
            at = Start(w=run.losses.own(run.w), b=run.b.copy())
            self.at_last = WideRun(run.problem, at, self._target, run.tuning)
            self.at_last.alone = self._alone
            self.notes.append("working_set: by matrices, as rounds on columns hardly get on")
        elif self._alone:
            run.stuck = False
            return Work(max(budget.passes, work.passes))
        return work


@dataclass(frozen=True)
class OutputsGroupSet(GroupSet):
    """The method "group_set" for K outputs."""

    needs: ClassVar[Needs] = (MANY_OUTPUTS, SMOOTH_LOSS, OF_ROWS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Any:
        """As for one output; the softmax has a run of its own."""
        if not is_softmax(problem):
            return super().start(problem, at, target, rng)
        run = at.run.resume(problem, target) if at.run else None
        if not isinstance(run, GroupRun):
            run = GroupRun(problem, at, target, self.tuning)
        run.alone = self.alone
        return run
