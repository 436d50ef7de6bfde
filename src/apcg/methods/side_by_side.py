"""Problems of one output over the same X, side by side: one class against the rest, for each class.

The first sweeps read X once for all K problems: they are plain sweeps over blocks, whose columns
have nothing to do with each other but the order of the rows and how often each is visited. Each
column has a certificate of its own. Those that are not within the tolerance when it seems that the
sum of them is, or when too many plain sweeps are left, go on by themselves from there, with the
momentum, the shrinking and the switch to other methods that `auto` has for one output.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._validation import Matrix, Vector
from ..certificate import Certificate
from ..erm import ERM
from ..erm_outputs import Outputs, side_by_side
from ..points import Start
from ..regulariser import Interval
from ..result import Solution, Status, Trace
from .base import Budget, Target
from .blocks import BlockRun
from .blocks_plan import DUAL_BLOCKS
from .blocks_setup import DEFAULTS, Setup
from .lean import Lean
from .plan import Auto

#: What is asked of the sum of the gaps, in units of what is asked of each.
SHARE = 0.5
#: Fewer problems than this are solved one by one.
FEWEST = 3


@dataclass
class Together:
    """What the sweeps found: a certificate for each problem, the passes, the seconds."""

    found: list[Certificate]
    passes: int
    seconds: float

    def solution(self, k: int, tol: float) -> Solution | None:
        """The answer of problem k, if it is within the tolerance."""
        c = self.found[k]
        if not c.relative <= tol:
            return None
        trace = Trace("epoch", "seconds", "primal", "dual", "gap", "mu", "restarts", "method")
        trace.append(
            epoch=self.passes, seconds=self.seconds, primal=c.primal, dual=c.dual, gap=c.gap,
            mu=1.0, restarts=0, method="sdca",
        )  # fmt: skip
        trace.notes = [f"{len(self.found)} problems side by side"]
        status = Status.of("converged", self.passes, c.relative, tol)
        return Solution(
            c.w, c.x, c.primal, c.dual, status, self.passes, self.seconds, trace, "auto", "dual",
            1.0, c.b,
        )  # fmt: skip

    def start(self, k: int) -> Start:
        """Where problem k goes on."""
        return Start(x=self.found[k].x, b=self.found[k].b)


def pays(problems: Sequence[ERM]) -> bool:
    """Whether there are problems enough, and each would be solved by dual sweeps with momentum.

    With many samples for each feature other methods take over, and one problem at a time is faster.
    """
    first = problems[0]
    if len(problems) < FEWEST or not isinstance(first.g, Interval):
        return False
    method, _ = Auto().first(first, Start())
    return (
        isinstance(method, Lean)
        and "momentum" not in method.without
        and DUAL_BLOCKS.holds(side_by_side(problems))
    )


def sweep(
    problems: Sequence[ERM], tol: float, max_passes: int, rng: np.random.Generator
) -> Together:
    """Plain sweeps for all problems at once."""
    began = time.perf_counter()
    joint = side_by_side(problems)
    setup = Setup(joint, DEFAULTS)
    without = ("momentum", "shrinking")
    run = BlockRun(setup, without, Start(), Target(SHARE * tol, max_passes), rng)
    run.impatient = True
    passes = run.advance(Budget(max_passes, False, None)).passes
    x = setup.x(run.sweeps.blocks)
    found = certify(problems, joint, x, run.sweeps.b)
    return Together(found, passes, time.perf_counter() - began)


def certify(problems: Sequence[ERM], joint: Outputs, x: Matrix, b: Vector) -> list[Certificate]:
    """The certificates of the columns of x, exact, with products for all of them at once."""
    v = joint._combine(x)
    w = joint.g.conjugate_gradient(v)
    z = _columns(joint.samples.tdot(w))
    w, found = _columns(w), []
    each = _columns(x)
    if joint.intercept:
        b = np.array([p._best_intercept(z[k], b[k]) for k, p in enumerate(problems)])
        z = z + b[:, None]
        each = np.array([p._balance(each[k]) for k, p in enumerate(problems)])
        v = joint._combine(np.ascontiguousarray(each.T))
    v = _columns(v)
    for k, p in enumerate(problems):
        P, D = p.primal_from(w[k], z[k]), p.dual_from(each[k], v[k])
        found.append(Certificate(w[k], each[k], float(b[k]), z[k], P, D, exact=True))
    return found


def _columns(a: Matrix) -> Matrix:
    """The columns one after the other."""
    return np.ascontiguousarray(a.T)
