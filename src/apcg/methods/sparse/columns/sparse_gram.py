"""Rounds on working sets of sparse columns: for the paths of the squared loss.

From one alpha to the next few columns enter. Their products with those that are there take a pass
over the rows, and then sweeps and Newton steps cost next to nothing.
"""

from __future__ import annotations

from typing import Any

from ...._base.validation import Index, Vector
from ....certify.points import Start
from ....problems.erm import ERM
from ...base import Target
from ..blocks import Picked
from ..dense.chosen_columns import WideRun
from ..run import SparseRun


class PickedRun(WideRun):
    """As `WideRun`, on columns as they are stored."""

    picks = True

    @classmethod
    def after(cls, run: SparseRun, problem: ERM, target: Target) -> PickedRun:
        """To go on from where another run is, with another alpha."""
        made = cls(problem, Start(w=run.w, b=run.b), target, run.tuning)
        made.seen_at, made.slope, made.alone = run.seen_at, run.slope, run.alone
        made.turned = True
        return made

    def goes_on(self, problem: ERM, w: Vector | None = None) -> bool:
        """Not with a large set: a Newton step on it costs more than conjugate gradients."""
        few = self.block is None or self.block.W.size <= self.tuning.most_picked
        return few and super().goes_on(problem, w)

    def pick(self, W: Index) -> Any:
        return Picked(self.problem, W)
