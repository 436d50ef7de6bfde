"""Points of an ERM problem: where a method starts, what it has found, what is known of it.

Shapes are those of the conventions in `erm`: w has one entry for each feature, x and z one for
each row of X, and b is a number; with K outputs they have K columns, and b has K numbers. z is
always X w + b, with the intercept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.validation import Index, Vector


@dataclass(frozen=True, eq=False)
class Start:
    """Where a method starts. What is None is chosen by the method: zero, or what fits the rest.

    x     a dual point
    w     a primal point
    b     its intercept
    mu    the momentum parameter that an adaptive method ended with
    side  "dual" or "primal": what the run that ended here was at work on
    run   that run, of the same data and another alpha: a method that can, goes on with it
    """

    x: Vector | None = None
    w: Vector | None = None
    b: Any = None
    mu: float | None = None
    side: str | None = None
    run: Any = None

    @property
    def is_cold(self) -> bool:
        """Whether no point is given."""
        return self.x is None and self.w is None


@dataclass(frozen=True, eq=False)
class Report:
    """What a run says of itself: to the record, and to the plan that steers it.

    side           "dual" or "primal": what it is at work on
    at_work        of a run that runs others, the name of the method at work
    mu             the momentum parameter; NaN if there is none
    restarts       how often it dropped its momentum, or began anew
    stuck          whether it cannot get any further, which ends the run
    lacks_digits   whether its w may have few digits, however small the gap is
    why            the reason for that, if there is one to tell
    exact          whether its w is the minimiser up to the rounding of one factor
    knows_its_gap  whether it returns at once from a start that is good enough
    estimates      whether it estimates its gap between looks
    estimate       the relative gap by that; None if a look is likely to pass, or nothing is known
    rows_left      the rows that it still steps on; None: all
    spent          nanoseconds by the table of costs; None if it does not count them
    notes          what was chosen and why: sentences, of which there may be more later
    """

    side: str = "primal"
    at_work: str = ""
    mu: float = math.nan
    restarts: int = 0
    stuck: bool = False
    lacks_digits: bool = False
    why: str = ""
    exact: bool = False
    knows_its_gap: bool = False
    estimates: bool = False
    estimate: float | None = None
    rows_left: Index | None = None
    spent: float | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Point:
    """What a method wants certified: a primal point w, a dual point x, or both.

    b  the intercept that goes with w; a guess will do
    z  X w + b, if the method has it
    v  A x/(lambda n), if the method has it

    z and v spare a pass over the data. They may have drifted, so a certificate that ends a run is
    computed without them, from w, x and b alone.
    """

    w: Vector | None = None
    x: Vector | None = None
    b: Any = 0.0
    z: Vector | None = None
    v: Vector | None = None

    def bare(self) -> Point:
        """The same point without the sums that the method kept."""
        return Point(self.w, self.x, self.b)


@dataclass(frozen=True, eq=False)
class Certificate:
    """A primal and a dual point with their values: the optimum is in [dual, primal].

    `exact` says that the values were computed from w, x and b alone, not from a method's sums.
    """

    w: Vector
    x: Vector
    b: Any
    z: Vector
    primal: float
    dual: float
    exact: bool = False

    @property
    def gap(self) -> float:
        """P(w) - D(x)"""
        return self.primal - self.dual

    @property
    def relative(self) -> float:
        """gap/|P(w)|"""
        if self.primal == 0:
            return 0.0 if self.gap <= 0 else math.inf
        return self.gap / abs(self.primal)

    @property
    def finite(self) -> bool:
        """Whether the gap is a number."""
        return math.isfinite(self.gap)

    def bare(self) -> Point:
        """The pair of points, to be certified anew."""
        return Point(self.w, self.x, self.b)

    def without_predictions(self) -> Certificate:
        """A copy without z, for keeping: it takes less memory, and z can be computed again."""
        return replace(self, z=np.empty(0))
