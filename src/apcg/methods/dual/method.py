"""The method "dual", and the run of it for any number of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...certify.points import Start
from ...problems.erm import ERM
from ...problems.outputs import Outputs
from ..base import ONE_OUTPUT, Need, Needs, Target, check_dual_start
from .driver import DualRun
from .setup_k import SetupK
from .setup_one import SetupOne
from .sweeps_k import PlainK
from .sweeps_one import PlainOne
from .tuning import MANY, ONE, PARTS, TuningK, TuningOne

L2_PENALTY = Need(
    'penalty "l2", the same for all features',
    lambda p: bool(p.dual_form and p.g.is_l2),
    lambda p: f"penalty {p.penalty} is not of that kind",
)
KNOWN_LOSS = Need(
    "a loss of the interval family, or the logistic one",
    lambda p: p.loss.kernel in ("interval", "logistic"),
    lambda p: f"loss {p.loss.name!r} is neither",
)


def begin(
    problem: ERM,
    at: Start,
    target: Target,
    rng: np.random.Generator,
    without: tuple[str, ...] = (),
    tuning: TuningOne | TuningK | None = None,
    **options: Any,
) -> DualRun:
    """Begin at x, or at what fits w, or at zero; `DualRun` has the options."""
    if at.x is not None:
        check_dual_start(problem, at.x)
    if isinstance(problem, Outputs):
        many = tuning if isinstance(tuning, TuningK) else MANY
        plain: PlainOne | PlainK = PlainK(SetupK(problem, many), without, at)
    else:
        one = tuning if isinstance(tuning, TuningOne) else ONE
        plain = PlainOne(SetupOne(problem, one), without, at)
    return DualRun(plain, without, target, rng, **options)


@dataclass(frozen=True)
class DualSweeps:
    """Dual coordinate sweeps, plain and with momentum.

    without  ideas to leave out: "momentum", "visits", "shrinking", "settling", "blocks"
    """

    without: tuple[str, ...] = ()
    tuning: TuningOne = ONE
    name: ClassVar[str] = "dual"
    needs: ClassVar[Needs] = (ONE_OUTPUT, L2_PENALTY, KNOWN_LOSS)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(PARTS))
        if unknown:
            raise ValueError(f"without: got {unknown}, expected some of {', '.join(PARTS)}.")

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        return begin(problem, at, target, rng, self.without, self.tuning)
