"""The method for the group lasso, and for the multi-task lasso, whose groups are rows of W.

`group_squares` is at work for the squared loss on dense data and small sparse data, `group_run` for
all else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....certify.points import Start
from ....data import Dense, Sparse
from ....losses import Squared
from ....losses.per_output import Columns
from ....penalties.groups import GroupNorms
from ....problems.erm import ERM
from ...base import COMPILED_LOSS, ONE_OUTPUT, SMOOTH_LOSS, Need, Needs, Target
from ..tuning import SetTuning
from .run import GroupRun
from .squares import SquaresRun

#: Features with an L2 part. It makes supports larger than n, and with many features "afg" is faster
#: than their Gram matrices (1.5 s to 6 s for 2,000 x 50,000; 58 ms to 24 ms for 2,000 x 500).
RIDGED_MOST = 5000


def _knows(problem: ERM) -> bool:
    g = problem.g
    if not isinstance(g, GroupNorms) or g.last is not None:
        return False
    if g.ridge > 0 and problem.d > RIDGED_MOST:
        return False
    if problem.K == 1:
        return True
    loss = problem.loss
    return isinstance(loss, Columns) and isinstance(loss.loss, Squared)


OF_GROUPS = Need(
    "a group lasso (with an L2 part up to 5,000 features), with K outputs over the rows of W and "
    "the squared loss",
    _knows,
    lambda p: f"penalty {p.penalty} or loss {p.loss.name!r} is not of that kind",
)


def _run_for(problem: ERM, tuning: SetTuning) -> type[GroupRun]:
    loss = problem.loss if problem.K == 1 else getattr(problem.loss, "loss", None)
    n, room = problem.n_samples, problem.n_samples * problem.d <= tuning.dense_room
    # 300 to 600 rows, 0.5 to 5 % of the entries: 0.2 to 0.9 of the time of sparse data, once 1.1
    few = isinstance(problem.samples, Sparse) and n <= tuning.few_rows and room
    dense = few or isinstance(problem.samples, Dense)
    plain = type(loss) is Squared and dense and problem.g.strong_convexity == 0
    return SquaresRun if plain else GroupRun


@dataclass(frozen=True)
class GroupSet:
    """The method "group_set"."""

    tuning: SetTuning = SetTuning()
    alone: bool = True
    name: ClassVar[str] = "group_set"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, OF_GROUPS)
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> GroupRun:
        """Begin at at.w, or at 0 with a large alpha; or go on with the run that was there."""
        run = at.run.resume(problem, target) if at.run else None
        if not isinstance(run, GroupRun):
            run = _run_for(problem, self.tuning)(problem, at, target, self.tuning)
        run.alone = self.alone
        return run
