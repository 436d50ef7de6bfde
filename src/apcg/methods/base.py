"""What `solve` asks of a method, and what it gives it.

A method owns its inner loop. It runs until a look at its answer can pay, and is told what the look
found:

    run = method.start(problem, at, target, rng)
    while not certified:
        run.advance(budget)                 # sweeps, steps, whatever it does
        certificate = certify(run.point())  # the loop: the method does not judge itself
        run.seen(certificate)               # steer by it

A `Method` is a recipe: a name, what it needs, parameters. `start` gives a `Run`, which holds the
state. One class may be both: `start` is then a class method that makes the object. To add a method,
write such a class in a file of its own and register it (`methods.registry.register`); or pass it to
`solve(problem, method=...)` as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from .._base.budget import Budget, Work
from .._base.validation import Vector
from ..certify.points import Certificate, Point, Start
from ..problems.erm import ERM

__all__ = [
    "QUADRATIC_PENALTY",
    "REFRESH",
    "SEPARABLE",
    "SMOOTH_FORM",
    "SMOOTH_LOSS",
    "Budget",
    "Certificate",
    "Method",
    "Need",
    "Needs",
    "Point",
    "Run",
    "Start",
    "Target",
    "Work",
    "check_dual_start",
    "unmet",
]

#: Sums that a method keeps are computed anew after so many passes: rounding errors gather in them.
#: It costs one or two products with X, beside two to four a pass.
REFRESH = 64


@dataclass(frozen=True)
class Target:
    """What the user asked for.

    tol         the relative gap to reach
    max_passes  passes over the data that may be spent in all
    sampling    "permutation" (each coordinate once a sweep) or "uniform"
    """

    tol: float = 1e-6
    max_passes: int = 1000
    sampling: str = "permutation"


class Run(Protocol):
    """A method at work on a problem."""

    def advance(self, budget: Budget) -> Work:
        """Go on until a look can pay, or the budget is spent."""

    def point(self) -> Point | Certificate:
        """What to certify; a certificate if the method has computed one itself."""

    def seen(self, certificate: Certificate) -> None:
        """What the look found.

        An `exact` certificate that did not end the run says that the sums the method keeps may
        have drifted: compute them anew.

        A run may have more, for what is recorded: `mu` and `restarts`, `side` ("dual" or "primal",
        what it is at work on), `at_work` (of a plan: the name of the method at work), `notes` (what
        was chosen and why: a list of sentences that grows, and that `verbose` shows),
        `knows_its_gap`, true if it returns at once from a start that is good enough, so that nobody
        else has to look at it, and `stuck`, true once it cannot get any further, which ends the
        run. And it may have `finish(certificate, converged)`: called once after the run, with what
        was found. It returns a `Point` that may be better in some way (exact zeros, more digits),
        or None; the point is taken if its gap is as good.

        For paths a run may have `turn(problem, target)`, which gives the run that goes on with
        another alpha (itself, or one that is faster from there on), and `goes_on(problem, w)`:
        whether it can, because nothing else differs and it is at w.
        """


@dataclass(frozen=True)
class Need:
    """One thing that a method needs of a problem.

    what   the need, in words: "a smooth loss"
    holds  whether a problem has it
    has    what the problem has instead, in words: "loss 'hinge' is not smooth"
    """

    what: str
    holds: Callable[[ERM], bool]
    has: Callable[[ERM], str]


Needs = tuple[Need, ...]


@runtime_checkable
class Method(Protocol):
    """A recipe for solving an ERM problem."""

    @property
    def name(self) -> str:
        """What it is called in `solve`, results and tables."""

    @property
    def needs(self) -> Needs:
        """What the problem must have."""

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin at a point."""


SEPARABLE = Need(
    "a penalty that is a sum over features",
    lambda p: p.separable,
    lambda p: f"penalty {p.penalty} is not one",
)
SMOOTH_LOSS = Need(
    "a smooth loss",
    lambda p: p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth",
)
SMOOTH_FORM = Need(
    "a smooth loss or a strongly convex penalty",
    lambda p: p.dual_form or p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth and penalty {p.penalty} not strongly convex",
)
QUADRATIC_PENALTY = Need(
    'penalty "l2", without L1 and bounds',
    lambda p: p.dual_form and p.g.is_quadratic,
    lambda p: f"penalty {p.penalty} is not of that kind",
)


def check_dual_start(problem: ERM, x: Vector) -> Vector:
    """x0 as a dual point, or an error that says what it must be."""
    x = problem.check_x(x, "x0")
    if not math.isfinite(problem.conjugate_total(x)):
        raise ValueError(
            "x0 must be dual feasible: phi* is infinite at it. Dual variables of loss "
            f"{problem.loss.name!r} are in {problem.loss.domain}, times their weights."
        )
    return x


def unmet(method: Method, problem: ERM) -> Need | None:
    """The first need of the method that the problem does not meet."""
    return next((need for need in method.needs if not need.holds(problem)), None)
