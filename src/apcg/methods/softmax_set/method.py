"""The method of working sets for the softmax: L1, elastic net and bounds on the entries of W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...data.linear_map import Sparse
from ...erm import ERM
from ...loss_outputs import SOFTMAX
from ...points import Start
from ..base import SEPARABLE, Need, Needs, Target
from ..working_set.tuning import Tuning
from .columns import ClassColumnsRun
from .entries import EntriesRun
from .run import ClassRun

OF_CLASSES = Need(
    'loss "multinomial"',
    lambda p: p.loss.kind == SOFTMAX,
    lambda p: f"loss {p.loss.name!r} is another one",
)


@dataclass(frozen=True)
class ClassSet:
    """The method "working_set" for K classes."""

    tuning: Tuning = Tuning()
    alone: bool = True
    name: ClassVar[str] = "working_set"
    needs: ClassVar[Needs] = (OF_CLASSES, SEPARABLE)
    side: ClassVar[str] = "primal"
    outputs: ClassVar[bool] = True

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Any:
        """Begin at at.w, or at 0 with a large alpha; or go on with the run that was there."""
        run = at.run
        if isinstance(run, ClassRun) and run.goes_on(problem, at.w):
            run = run.turn(problem, target)
        else:
            run = self._kind(problem)(problem, at, target, self.tuning)
        run.alone = self.alone
        return run

    def _kind(self, problem: ERM) -> type[ClassRun]:
        sparse = isinstance(problem.samples, Sparse) and problem.n_samples > self.tuning.few_rows
        return ClassColumnsRun if sparse else EntriesRun
