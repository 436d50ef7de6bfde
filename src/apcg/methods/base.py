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
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._base.validation import Vector
from ..certify.points import Certificate, Point, Report, Start
from ..problems.erm import ERM

__all__ = [
    "REFRESH",
    "Budget",
    "Certificate",
    "Method",
    "Need",
    "Needs",
    "OwnRun",
    "Point",
    "Report",
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
class Budget:
    """How far a method may go before the next look.

    passes    at most so many passes over the data (a method that works in larger units finishes
              the unit that it is in)
    fixed     the user chose the distance between looks: a method that does not steer by looks uses
              all of `passes`; otherwise it returns when it wants to be looked at
    deadline  a value of time.perf_counter() after which it returns as soon as it can
    sweeps    a method that sweeps returns after at most so many sweeps, so that the plan can read
              its estimate; None is no limit
    """

    passes: int
    fixed: bool = False
    deadline: float | None = None
    sweeps: int | None = None

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() > self.deadline


@dataclass(frozen=True)
class Work:
    """What an `advance` took, in whole passes over the data."""

    passes: int


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


class Run:
    """A method at work on a problem: what every run has. `adopted` makes one of a user's object."""

    def advance(self, budget: Budget) -> Work:
        """Go on until a look can pay, or the budget is spent."""
        raise NotImplementedError

    def point(self) -> Point | Certificate:
        """What to certify; a certificate if the method has computed one itself."""
        raise NotImplementedError

    def seen(self, certificate: Certificate) -> None:
        """What the look found.

        An `exact` certificate that did not end the run says that the sums the method keeps may
        have drifted: compute them anew.
        """

    @property
    def report(self) -> Report:
        """What it says of itself, for the record and for the plan that steers it."""
        return Report()

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """A point that may be better in some way: exact zeros, more digits; None: there is none.

        Called once after the run, with what was found. The point is taken if its gap is as good.
        """
        return None

    def resume(self, problem: ERM, target: Target, w: Vector | None = None) -> Run | None:
        """The run that goes on with another alpha: itself, or one that is faster from there on.

        None if it cannot: because more than alpha differs, or it is not at w, if that is given.
        """
        return None


class Stepping(Run):
    """A run whose work comes in parts of a pass, and that may get stuck."""

    #: whether no step leads anywhere any more, because rounding has won
    stuck = False
    #: passes that were reported
    _counted = 0

    @property
    def report(self) -> Report:
        """Whether it is stuck."""
        return Report(stuck=self.stuck)

    def _since(self, cost: float, least: int = 0) -> Work:
        """The work since the last time, of `cost` passes in all."""
        passes = max(math.ceil(cost) - self._counted, least)
        self._counted += passes
        return Work(passes)


class Inside(Run):
    """A run that another one makes in other coordinates.

    `_out` says what a point there is here; `_in` what a certificate of here is there.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def _out(self, found: Point | Certificate) -> Point:
        raise NotImplementedError

    def _in(self, certificate: Certificate) -> Certificate:
        return certificate

    @property
    def report(self) -> Report:
        """That of the run within."""
        return self._run.report

    def advance(self, budget: Budget) -> Work:
        """As the run within does."""
        return self._run.advance(budget)

    def point(self) -> Point:
        """That of the run within, in the coordinates of the problem."""
        return self._out(self._run.point())

    def seen(self, certificate: Certificate) -> None:
        """Tell the run within."""
        self._run.seen(self._in(certificate))

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What the run within has to add."""
        found = self._run.finish(self._in(certificate), converged)
        return None if found is None else self._out(found)


class OwnRun(Run):
    """A user's run of any class: it has advance, point and seen, and maybe more.

    `report` may be a `Report`, or some of its fields may be attributes of the run; and it may have
    `finish`.
    """

    def __init__(self, given: Any) -> None:
        self._given = given

    def advance(self, budget: Budget) -> Work:
        """As the user's run does."""
        made: Work = self._given.advance(budget)
        return made

    def point(self) -> Point | Certificate:
        """As the user's run has it."""
        made: Point = self._given.point()
        return made

    def seen(self, certificate: Certificate) -> None:
        """Tell the user's run."""
        self._given.seen(certificate)

    @property
    def report(self) -> Report:
        """What the user's run says, in whatever form."""
        said = getattr(self._given, "report", None)
        if said is None:
            names = [field.name for field in fields(Report) if hasattr(self._given, field.name)]
            return Report(**{name: getattr(self._given, name) for name in names})
        if not isinstance(said, Report):
            raise TypeError(f"report of a run must be a Report, got {type(said).__name__}.")
        return said

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What the user's run has to add, if anything."""
        finish = getattr(self._given, "finish", None)
        made: Point | None = None if finish is None else finish(certificate, converged)
        return made


@dataclass(frozen=True)
class Need:
    """One thing that a method needs of a problem.

    what   the need, in words: "a smooth loss"
    holds  whether a problem has it
    has    what the problem has instead, in words: "loss 'hinge' is not smooth"
    """

    what: str
    holds: Callable[[Any], bool]
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


def _of_another_penalty(problem: ERM) -> str:
    return f"penalty {problem.penalty} is not of that kind"


# What methods ask for. Needs that only one method has are beside it.
ONE_OUTPUT = Need("one output", lambda p: p.K == 1, lambda p: f"there are {p.K}")
MANY_OUTPUTS = Need("many outputs", lambda p: p.K > 1, lambda p: f"there is {p.K}")
NO_INTERCEPT = Need(
    "a problem without an intercept", lambda p: not p.intercept, lambda p: "this one has one"
)
OWN_OUTPUT = replace(
    ONE_OUTPUT, what="one output (if it takes W of shape (d, K), give it `outputs = True`)"
)
OWN_INTERCEPT = replace(
    NO_INTERCEPT,
    what="a problem without an intercept (if its points have their b, give it `intercept = True`)",
)
IN_MEMORY = Need("X in memory", lambda p: p.samples.in_memory, lambda p: "this one comes in parts")
IN_PARTS = Need(
    "an X that comes in parts",
    lambda p: not p.samples.in_memory,
    lambda p: "this one is in memory",
)
SPARSE_IN_MEMORY = Need(
    "sparse X in memory",
    lambda p: p.samples.sparse and p.samples.in_memory,
    lambda p: "X is dense or read in parts",
)
ALL_STORED = Need(
    "an X whose columns are all stored",
    lambda p: not p.samples.constant,
    lambda p: "the last column of this one is a number",
)
DENSE_IN_MEMORY = Need(
    "dense X in memory",
    lambda p: not p.samples.sparse and p.samples.in_memory and p.d > 0,
    lambda p: f"X is {p.samples!r}",
)
SEPARABLE = Need(
    "a penalty that is a sum over features",
    lambda p: p.g.separable,
    lambda p: f"penalty {p.penalty} is not one",
)
STRONGLY_CONVEX = Need(
    'a strongly convex penalty ("l2", "elasticnet")',
    lambda p: p.dual_form,
    lambda p: f"penalty {p.penalty} is not",
)
QUADRATIC_PENALTY = Need(
    'penalty "l2", without L1 and bounds',
    lambda p: p.dual_form and p.g.is_quadratic,
    _of_another_penalty,
)
L2_PENALTY = Need(
    'penalty "l2", the same for all features',
    lambda p: p.dual_form and p.g.is_l2,
    _of_another_penalty,
)
QUADRATIC_OR_NONE = Need(
    'penalty "l2" or none, without L1 and bounds',
    lambda p: p.g.is_quadratic,
    _of_another_penalty,
)
NO_PENALTY = Need(
    "no penalty, and no bounds",
    lambda p: p.g.is_free,
    lambda p: f"penalty {p.penalty} is one",
)
BOUNDS = Need(
    "a penalty of bounds, with L2 or nothing else",
    lambda p: p.g.separable and not p.g.a.any() and not p.g.is_quadratic,
    _of_another_penalty,
)
L1_EVERYWHERE = Need(
    "a penalty with an L1 part for each feature, and no bounds but w >= 0",
    lambda p: p.g.separable and p.g.splits,
    lambda p: f"penalty {p.penalty} is not one",
)
COMPILED_LOSS = Need(
    "a loss that the compiled code knows",
    lambda p: p.loss.compiled,
    lambda p: f"loss {p.loss.name!r} is your own, by functions in Python",
)
KNOWN_LOSS = Need(
    "a loss of the interval family, or the logistic one",
    lambda p: p.loss.kernel in ("interval", "logistic"),
    lambda p: f"loss {p.loss.name!r} is neither",
)
KNOWN_LOSS_OF_K = Need(
    "a loss whose second derivatives it knows",
    lambda p: p.loss.kind is not None,
    lambda p: f"loss {p.loss.name!r} is your own",
)
SQUARED_LOSS = Need(
    'loss "squared"',
    lambda p: p.loss.compiled and p.loss.name == "squared",
    lambda p: f"loss {p.loss.name!r} is another",
)
LOSS_IN_PIECES = Need(
    "a loss with kinks, made of lines and parabolas",
    lambda p: p.loss.in_pieces,
    lambda p: f"loss {p.loss.name!r} is not one",
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
SMOOTH_OR_SEPARABLE = Need(
    "a smooth loss, or a penalty that is a sum over features",
    lambda p: p.K > 1 or p.g.separable or p.loss.gamma > 0,
    lambda p: f"loss {p.loss.name!r} is not smooth and penalty {p.penalty} is no such sum",
)
DUAL_BLOCKS = Need(
    'penalty "l2" or "elasticnet", the same for all entries of W, and a loss that the sweeps know',
    lambda p: p.loss.kind is not None and p.g.soft is not None,
    lambda p: f"penalty {p.penalty} or loss {p.loss.name!r} is not of that kind",
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


def needs_of(method: Any) -> Needs:
    """What a method needs; one of a user's has to say that it takes outputs, or an intercept."""
    if method.start.__module__.startswith("apcg."):
        own: Needs = method.needs
        return own
    takes = ((OWN_OUTPUT, "outputs"), (OWN_INTERCEPT, "intercept"))
    return (*(need for need, name in takes if not getattr(method, name, False)), *method.needs)


def unmet(method: Any, problem: ERM) -> Need | None:
    """The first need of a method, or of a class of methods, that the problem does not meet."""
    return next((need for need in needs_of(method) if not need.holds(problem)), None)


def met(method: Method, problem: ERM) -> float:
    """How many needs come before that one, to compare methods by; infinite if all are met."""
    failing = (k for k, need in enumerate(needs_of(method)) if not need.holds(problem))
    return next(failing, math.inf)
