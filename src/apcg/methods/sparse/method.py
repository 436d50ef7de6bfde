"""The methods of working sets, in the primal: L1, elastic net, bounds and groups, a smooth loss.

    minimize P(w) = (1/n) sum_i s_i phi_i(A_i' w) + alpha sum_j (a_j |w_j| + (b_j/2) w_j^2)

A round takes the gradient, chooses the columns W that may move, and minimises a model of P over
them: for the squared loss P itself, for others its second order expansion, with a search along the
line. Few columns matter: those of the support, and those whose slope is near a_j.

With groups a |w_q|_2 is in the place of |w_j|, and groups in that of columns. With the softmax an
entry of W is in the place of a column, or a row of W in that of a group; its model has the whole
K x K matrix of second derivatives of each row.

The way to small alpha leads through larger ones, theta alpha with theta falling to 1: the sets stay
small, and each answer is a good start for the next.

An intercept is eliminated: the model's columns are centred by their means, weighted as the rows
are, and after each step b is the best there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...certify.points import Start
from ...data import Dense
from ...losses import Squared
from ...losses.per_output import Columns
from ...penalties.interval import Interval
from ...problems.erm import ERM
from ..base import (
    ALL_STORED,
    COMPILED_LOSS,
    MANY_OUTPUTS,
    ONE_OUTPUT,
    SEPARABLE,
    SMOOTH_LOSS,
    Need,
    Needs,
    Target,
)  # fmt: skip
from .columns.columns import ColumnsRun
from .dense.all_columns import AllColumnsRun
from .dense.chosen_columns import ChosenColumnsRun
from .dense.columns_float32 import ColumnsFloat32
from .groups.run import GroupRun
from .groups.squares import SquaresRun
from .parts import is_softmax
from .run import SparseRun
from .softmax.columns import ClassColumnsRun, ColumnsFirst
from .tuning import SetTuning

#: All columns are in the model if they are at most so many.
MOST_COLUMNS = 2000
#: Features of groups with an L2 part. It makes supports larger than n, and with many features "afg"
#: is faster than their Gram matrices (1.5 s to 6 s for 2,000 x 50,000; 58 ms to 24 ms for
#: 2,000 x 500).
RIDGED_MOST = 5000


def _has_l1(problem: ERM) -> bool:
    """Whether g has an L1 part on every entry of W, and no bounds."""
    g: Any = problem.g
    return isinstance(g, Interval) and g.is_unbounded and bool(g.a.min() > 0)


def _of_groups(problem: ERM) -> bool:
    g: Any = problem.g
    if not g.in_groups or g.last is not None:
        return False
    if g.ridge > 0 and problem.d > RIDGED_MOST:
        return False
    if problem.K == 1:
        return True
    loss = problem.loss
    return isinstance(loss, Columns) and isinstance(loss.loss, Squared)


def _of_rows(problem: ERM) -> bool:
    """Whether it is a softmax with a penalty on the rows of W, of a size for it."""
    g: Any = problem.g
    fits = not problem.samples.sparse or problem.n_samples * problem.d <= SetTuning.dense_room
    return is_softmax(problem) and g.in_groups and g.last is None and g.a > 0 and fits


OF_CLASSES = Need(
    'loss "multinomial"', is_softmax, lambda p: f"loss {p.loss.name!r} is another one"
)
L1_PART = Need(
    "a penalty with an L1 part on every entry of W, without bounds",
    _has_l1,
    lambda p: f"penalty {p.penalty} is not of that kind",
)
OF_GROUPS = Need(
    "a group lasso (with an L2 part up to 5,000 features), with K outputs over the rows of W and "
    "the squared loss",
    _of_groups,
    lambda p: f"penalty {p.penalty} or loss {p.loss.name!r} is not of that kind",
)
OF_ROWS = Need(
    f'{OF_GROUPS.what}, or loss "multinomial" with X dense or small',
    lambda p: OF_GROUPS.holds(p) or _of_rows(p),
    OF_GROUPS.has,
)


@dataclass(frozen=True)
class SetMethod:
    """What the methods share: a subclass has a name, and says which problems it is for."""

    tuning: SetTuning = SetTuning()
    #: no other method is there to go on where this one gets no further
    alone: bool = True
    #: after so many passes another one is predicted to be faster
    most: float = math.inf
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Any:
        """Begin at at.w, or at 0 with a large alpha; or go on with the run that was there."""
        run = at.run.resume(problem, target) if at.run else None
        if not isinstance(run, SparseRun):
            run = self._run(problem, at, target, rng)
        run.alone, run.most = self.alone, self.most
        return ColumnsFirst(run, target) if isinstance(run, ClassColumnsRun) else run

    def _run(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> SparseRun:
        """The run that is for such data, such a loss and such a penalty."""
        t, n, d = self.tuning, problem.n_samples, problem.d
        sparse = problem.samples.sparse
        if problem.g.in_groups:
            # 300 to 600 rows, 0.5 to 5 % of the entries: 0.2 to 0.9 of the time, once 1.1
            few = sparse and n <= t.few_rows and n * d <= t.dense_room
            dense = few or isinstance(problem.samples, Dense)
            loss = problem.loss if problem.K == 1 else getattr(problem.loss, "loss", None)
            plain = type(loss) is Squared and dense and problem.g.strong_convexity == 0
            return (SquaresRun if plain else GroupRun)(problem, at, target, t)
        if problem.K == 1:
            tall = min(t.tall, t.tall_float32) if ColumnsFloat32.fit(problem, t) else t.tall
            if d <= MOST_COLUMNS and n >= tall * d:
                return AllColumnsRun(problem, at, target, t, rng)
        if sparse and n > t.few_rows:
            return (ColumnsRun if problem.K == 1 else ClassColumnsRun)(problem, at, target, t)
        return ChosenColumnsRun(problem, at, target, t)


class WorkingSet(SetMethod):
    """The method "working_set"."""

    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, SEPARABLE, ALL_STORED)


class ClassSet(SetMethod):
    """The method "working_set" for K classes."""

    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, OF_CLASSES, L1_PART, ALL_STORED)


class GroupSet(SetMethod):
    """The method "group_set": the group lasso."""

    name: ClassVar[str] = "group_set"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, OF_GROUPS, ALL_STORED)


class OutputsGroupSet(SetMethod):
    """The method "group_set" for K outputs, whose groups are rows of W: the multi-task lasso."""

    name: ClassVar[str] = "group_set"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, SMOOTH_LOSS, OF_ROWS, ALL_STORED)
