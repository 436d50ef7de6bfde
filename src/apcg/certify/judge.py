"""The judge of `solve`: certifies what a method found, and says when only rounding is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .._base.validation import Vector
from ..problems.erm import ERM
from .certificate import certify, certify_again, certify_enough, rounding
from .points import Certificate, Point, Report

#: Gaps below 16 eps (|P| + |D|) are rounding noise.
FLOOR = 16 * np.finfo(float).eps
#: Below this relative gap, a gap that no longer falls is taken for rounding.
STALL = 1e-9
#: Without a penalty P may fall to zero: what is below this part of P(0) is nothing.
NOTHING = 1e-28
#: Where w separates the classes and P is below this part of P(0), nothing more is to be learnt.
FALLEN = 1e-4
#: A gap that has not fallen by a tenth for so many looks no longer falls.
PATIENCE = 20


@dataclass
class Check:
    """One look: the certificate, the stopping measure, the merit that ranks it, the trace columns.

    The values of the columns and the fields of the certificate are attributes of it too.
    """

    certificate: Any = field(repr=False)
    point: Vector = field(repr=False)  # finite, or the run ends
    measure: float  # converged when it is at most the target
    merit: float  # the smaller the better
    columns: dict[str, float | str]
    arrays: tuple[Vector, ...] = field(default=(), repr=False)  # read-only to the callback
    source: Any = field(default=None, repr=False)  # what the certificate can be computed from again
    side: str = ""
    measured: str = "relative gap"  # what the measure is
    exhausted: bool = False  # rounding errors are all that is left
    stuck: bool = False  # or the method gets no further for another reason
    endless: bool = False  # P has no minimum: it falls as w grows, and has fallen far enough
    separates: Callable[[], bool] = field(default=bool, repr=False)  # or not far enough
    epoch: int = 0
    seconds: float = 0.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        columns: dict[str, float | str] = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        name = "b" if name == "intercept" else name
        return getattr(self.__dict__.get("certificate"), name)

    def slim(self) -> None:
        """Keep what an answer needs, once everybody has seen the rest."""
        less = getattr(self.certificate, "without_predictions", None)
        self.certificate = self.certificate if less is None else less()
        self.separates = bool  # it knows the predictions too

    @property
    def finite(self) -> bool:
        """Whether it makes sense to go on from here."""
        return math.isfinite(self.merit) and bool(np.isfinite(self.point).all())


class Judged(Protocol):
    """What the judge asks of a run."""

    def point(self) -> Point | Certificate:
        """What to certify."""

    @property
    def report(self) -> Report:
        """What it says of itself."""


class Judge:
    """Looks at the points of a run."""

    def __init__(
        self, problem: ERM, run: Judged, tol: float, name: str = "", known: Point | None = None
    ) -> None:
        self.problem, self.run, self.tol, self.name = problem, run, tol, name
        self._known = known  # a pair to look at first: it may do as it is
        self._stall = Stall()

    def __call__(self) -> Check:
        """One look."""
        point = self._first() or _sound(self.problem, self.run.point())
        found = certify_enough(self.problem, point, self.tol)
        said = self.run.report
        exhausted = self._stall.saw(found, said.side, lambda: rounding(self.problem, found))
        if said.stuck and not exhausted:  # by rounding, or for another reason?
            scale = abs(found.primal) + abs(found.dual)
            exhausted = found.gap <= max(STALL * scale, 16 * rounding(self.problem, found))
        nothing = self._nothing(found)
        exhausted = exhausted or found.primal <= NOTHING * nothing
        if self._stall.drifted and not found.exact:
            # exact: tells the method to refresh
            found = certify_again(self.problem, point.bare(), found, self.tol)
        return Check(
            found,
            point=found.x,
            measure=found.relative,
            merit=found.gap if math.isfinite(found.gap) else math.inf,
            columns={
                "primal": found.primal,
                "dual": found.dual,
                "gap": found.gap,
                "mu": said.mu,
                "restarts": said.restarts,
                "method": said.at_work or self.name,
            },
            arrays=(found.x, found.w),
            source=point.bare(),
            side=said.side,
            exhausted=exhausted,
            stuck=said.stuck,
            endless=found.primal <= max(self.tol, FALLEN) * nothing and self._is_endless(found),
            separates=lambda: nothing > 0 and self._is_endless(found),
        )

    def _nothing(self, found: Certificate) -> float:
        """P(0), if there is no penalty at all; else -1, which no P is below."""
        p = self.problem
        if not getattr(p.g, "is_free", False) or not found.z.size:
            return -1.0
        return p.primal_from(np.zeros_like(found.w), np.zeros_like(found.z))

    def _is_endless(self, found: Certificate) -> bool:
        """Whether P has no minimum: t w is better the larger t is.

        Without any penalty that is so for the logistic loss, if w separates the classes.
        """
        p = self.problem
        return bool(p.loss.separates(found.z, p.y, p.weights))

    def _first(self) -> Certificate | None:
        """The certificate of the pair that is known, once, if it is within the tolerance."""
        if self._known is None:
            return None
        found, self._known = certify(self.problem, self._known), None
        return found if found.relative <= self.tol else None


def _sound(problem: ERM, point: Point | Certificate) -> Point | Certificate:
    """The point, or an error: the kernels do not look at the lengths of what a method gives."""
    if not isinstance(point, Point | Certificate):
        raise TypeError(f"point() of a method must give a Point, got {type(point).__name__}.")
    wanted = {"w": problem.d, "v": problem.d, "x": problem.n_samples, "z": problem.n_samples}
    for name, length in wanted.items():
        given = getattr(point, name, None)
        if given is None or (isinstance(point, Certificate) and name == "z"):
            continue  # a certificate may have been kept without its predictions
        if not isinstance(given, np.ndarray) or given.dtype != np.float64:
            raise TypeError(f"{name} of the point of a method must be an array of float64.")
        if given.shape != ((length,) if problem.K == 1 else (length, problem.K)):
            by = "" if problem.K == 1 else f", and {problem.K} columns"
            raise ValueError(
                f"{name} of the point of a method must have length {length}{by}, got shape "
                f"{given.shape}."
            )
    if np.shape(point.b) not in ((), (problem.K,)):
        raise ValueError(
            f"b of the point of a method must be {problem.K} numbers, got {point.b!r}."
        )
    return point


class Stall:
    """Whether the gap is rounding error: tiny, or small and not falling any more."""

    def __init__(self) -> None:
        self._begin()
        self._side = ""

    def _begin(self) -> None:
        self._best, self._best_at, self._looks, self._refreshed = math.inf, 0, 0, False
        self._last, self._rises = math.inf, 0
        #: Whether the sums of the method may have drifted: set once, when the gap is stuck.
        self.drifted = False

    def saw(
        self, found: Certificate, side: str, rounding: Callable[[], float] = lambda: 0.0
    ) -> bool:
        """Count a look; returns whether rounding is all that is left.

        `rounding` is asked only where the gap no longer falls.
        """
        if side != self._side:  # another method is at work
            self._begin()
            self._side = side
        self._looks += 1
        self._rises += found.gap >= self._last
        self._last = found.gap
        if found.gap < 0.9 * self._best:
            self._best, self._best_at, self._rises = found.gap, self._looks, 0
        scale = abs(found.primal) + abs(found.dual)
        since = self._looks - self._best_at
        stuck = since > max(PATIENCE, self._looks // 2)
        # Rounding goes up as often as down, or stays; what is only slow goes down.
        stalled = stuck and self._rises > since // 4
        self.drifted = stuck and not self._refreshed
        if self.drifted:
            self._refreshed, self._best_at, self._rises = True, self._looks, 0
            return False
        if found.gap <= FLOOR * scale or (stalled and found.gap <= STALL * scale):
            return True
        return stalled and found.gap <= 16 * rounding()
