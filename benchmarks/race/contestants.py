"""What takes part in a race: a way to fit, and the tolerances it may be given.

Every contestant of a race minimises the same P(w, b), and the comments in `quadratic`, `sparse`,
`estimators` and `paths` say how its own parameters relate to lambda. A package that is not
installed is left out, and `left_out` says so.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from problems import Problem

#: Packages that may take part, by the names under which they are imported.
PACKAGES = ("apcg", "sklearn", "liblinear", "cyanure", "snapml", "skglm", "celer", "glum")
#: The name of our contestant in every race.
OURS = "apcg"
#: Ours without an intercept, beside it: what one costs. It is no peer.
OURS_WITHOUT = "apcg without intercept"
SEED = 0
#: More passes than anything here needs: tolerances decide.
MANY = 100_000

Fit = Callable[[Any, Any], Any]


def ladder(loose: float, tight: float) -> tuple[float, ...]:
    """Tolerances from loose to tight, five for two factors of ten."""
    count = round(2.5 * np.log10(loose / tight)) + 1
    return tuple(float(tol) for tol in np.geomspace(loose, tight, count))


#: "As it comes": the one tolerance of a contestant that keeps its default.
DEFAULT = (None,)


@dataclass(frozen=True)
class Contestant:
    """answer = fit(prepare(), tol), for a tol of the ladder.

    prepare  what is done once for the data, such as a format of its own; its time counts
    problem  the name of the problem that it solves, where a race has more than one
    """

    name: str
    fit: Fit
    tolerances: tuple[float | None, ...]
    prepare: Callable[[], Any] = field(default=lambda: None)
    problem: str = ""


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def left_out(wanted: tuple[str, ...]) -> list[str]:
    """The packages that are wanted and not installed."""
    return [package for package in wanted if not installed(package)]


def apcg(problem: Problem) -> list[Contestant]:
    """`solve` without intercept, the making of the problem included."""
    from apcg import ERM, solve

    p = problem

    def fit(_, tol):
        erm = ERM(p.X, p.y, p.loss, p.penalty, p.lam, l1_ratio=p.ratio)
        return solve(erm, tol=tol, max_epochs=MANY, random_state=SEED).w

    return [Contestant("apcg", fit, ladder(1.0, 1e-8))]


def certified(problem: Problem, limit: float, *, intercept: bool = False) -> float:
    """P at the end of a run of ours to a relative duality gap of 1e-10, or of `limit` seconds."""
    from apcg import ERM, solve

    p = problem
    erm = ERM(p.X, p.y, p.loss, p.penalty, p.lam, l1_ratio=p.ratio, intercept=intercept)
    r = solve(erm, tol=1e-10, max_epochs=10**6, time_limit=limit, random_state=SEED + 1)
    return p.value(r.w, r.intercept)


@dataclass(frozen=True)
class Event:
    """Contestants, and how their answers are judged.

    values   the objectives of an answer of a contestant: one, or one for each lambda of a path
    optimum  the least values known of the problem of that name, found in so many seconds; or None
    targets  how close to the least values an answer must be, relative to them; loose ones first
    """

    contestants: tuple[Contestant, ...]
    values: Callable[[Contestant, Any], list[float]]
    optimum: Callable[[str, float], list[float] | None]
    targets: tuple[float, ...] = (1e-3, 1e-6)


def without_intercept(problem: Problem, makers: dict, packages: tuple[str, ...]) -> Event:
    """All that solve this problem without intercept."""
    entered = apcg(problem) if "apcg" in packages else []
    for package, make in makers.items():
        if package == "scipy" or (package in packages and installed(package)):
            entered += make(problem)
    return Event(
        tuple(entered),
        lambda _, w: [problem.value(w)],
        lambda _, limit: [certified(problem, limit)],
    )
