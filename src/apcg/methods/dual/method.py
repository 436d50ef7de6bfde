"""Sweeps over dual coordinates, for any number of outputs: the methods "dual", "sdca", "apcg"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..._base.validation import number
from ...certify.points import Start
from ...problems.erm import ERM
from ..base import (
    DUAL_BLOCKS,
    KNOWN_LOSS,
    L2_PENALTY,
    MANY_OUTPUTS,
    SMOOTH_LOSS,
    Need,
    Needs,
    Target,
    check_dual_start,
)
from .driver import DualRun
from .setup_k import SetupK
from .setup_one import SetupOne
from .sweeps_k import PlainK
from .sweeps_one import PlainOne
from .tuning import MANY, ONE, PARTS, TuningK, TuningOne


def _of_one(need: Need) -> Need:
    """The need, of problems with one output."""
    return replace(need, holds=lambda p: p.K > 1 or need.holds(p))


def _of_many(need: Need) -> Need:
    """The need, of problems with K outputs."""
    return replace(need, holds=lambda p: p.K == 1 or need.holds(p))


def begin(
    problem: ERM,
    at: Start,
    target: Target,
    rng: np.random.Generator,
    without: tuple[str, ...] = (),
    tuning: Any = None,
    **options: Any,
) -> DualRun:
    """Begin at x, or at what fits w, or at zero; `DualRun` has the options.

    `tuning` is a `TuningOne` or a `TuningK`, by the problem.
    """
    if at.x is not None:
        check_dual_start(problem, at.x)
    if problem.K > 1:
        plain: PlainOne | PlainK = PlainK(SetupK(problem, tuning or MANY), without, at)
    else:
        plain = PlainOne(SetupOne(problem, tuning or ONE), without, at)
    return DualRun(plain, without, target, rng, **options)


@dataclass(frozen=True)
class DualSweeps:
    """Dual coordinate sweeps, plain and with momentum; over blocks if there are K outputs.

    without  ideas to leave out: "momentum", "visits", "shrinking", "settling", and "blocks" of rows
    tuning   a `TuningOne` or a `TuningK`, by the problem; None: the usual one
    """

    without: tuple[str, ...] = ()
    tuning: TuningOne | TuningK | None = None
    name: ClassVar[str] = "dual"
    needs: ClassVar[Needs] = (_of_one(L2_PENALTY), _of_one(KNOWN_LOSS), _of_many(DUAL_BLOCKS))

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(PARTS))
        if unknown:
            raise ValueError(f"without: got {unknown}, expected some of {', '.join(PARTS)}.")

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        return begin(problem, at, target, rng, self.without, self.tuning)


@dataclass(frozen=True)
class BlockSDCA:
    """Exact maximisation over one block at a time, no momentum."""

    tuning: TuningK = MANY
    name: ClassVar[str] = "sdca"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, DUAL_BLOCKS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        without = ("momentum", "visits", "shrinking")
        return begin(problem, at, target, rng, without, self.tuning)


@dataclass(frozen=True)
class BlockAPCG:
    """Algorithm 5 over blocks, with the mu of Theorem 2 all along, or that which is given."""

    mu: float | None = None
    tuning: TuningK = MANY
    name: ClassVar[str] = "apcg"
    needs: ClassVar[Needs] = (MANY_OUTPUTS, DUAL_BLOCKS, SMOOTH_LOSS)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> DualRun:
        """Begin at x, or at what fits w, or at zero."""
        without = ("visits", "shrinking", "settling")
        mu = problem.mu if self.mu is None else number(self.mu, "mu", low=0.0, high=1.0)
        return begin(problem, at, target, rng, without, self.tuning, fixed_mu=mu)
