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

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ..points import Certificate, Point, Start

if TYPE_CHECKING:
    from ..erm import ERM


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


@dataclass(frozen=True)
class Budget:
    """How far a method may go before the next look.

    passes    at most so many passes over the data (a method that works in larger units finishes
              the unit that it is in)
    fixed     the user chose the distance between looks: a method that does not steer by looks uses
              all of `passes`; otherwise it returns when it wants to be looked at
    deadline  a value of time.perf_counter() after which it returns as soon as it can
    """

    passes: int
    fixed: bool = False
    deadline: float | None = None

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() > self.deadline


@dataclass(frozen=True)
class Work:
    """What an `advance` took, in whole passes over the data."""

    passes: int


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

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> Run:
        """Begin at a point."""


SMOOTH_LOSS = Need(
    "a smooth loss",
    lambda p: p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth",
)
QUADRATIC_PENALTY = Need(
    "a penalty without L1 and bounds, like \"l2\"",
    lambda p: p.dual_form and p.g.is_quadratic,
    lambda p: f"penalty {p.penalty} is not of that kind",
)
