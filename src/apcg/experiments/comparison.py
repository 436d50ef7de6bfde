"""Several methods on one problem: passes and seconds to given gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from ..certify.result import Solution
from ..methods.base import SMOOTH_FORM
from ..problems.erm import ERM
from ..run.solve import solve

#: Relative duality gaps whose passes are reported.
GAPS = (1e-3, 1e-6, 1e-9)


class Row(TypedDict):
    """What a method did with a problem; `passes` and `seconds` to each gap, None if not reached."""

    alpha: float
    method: str
    passes: dict[str, float | None]
    seconds: dict[str, float | None]
    primal: float
    dual: float
    gap: float
    epochs: int
    status: str


@dataclass
class Runs:
    """Each method twice: looked at after every pass, for passes, and as it likes, for seconds."""

    looked: dict[str, Solution] = field(default_factory=dict)
    timed: dict[str, Solution] = field(default_factory=dict)


def run_twice(
    problem: ERM,
    methods: Iterable[str],
    *,
    passes: int,
    tol: float = min(GAPS),
    seed: int | None = 0,
    verbose: int = 0,
) -> tuple[Runs, bool]:
    """(answers, whether it was interrupted): the looks are not in the seconds, nor in the passes.

    A look may cost more than a pass; a run that is timed looks as rarely as `solve` does by itself.
    """
    runs = Runs()
    for check_every, found in ((1, runs.looked), (None, runs.timed)):
        answers, interrupted = run(
            problem,
            methods,
            passes=passes,
            tol=tol,
            seed=seed,
            verbose=verbose,
            check_every=check_every,
        )
        found.update(answers)
        if interrupted:
            return runs, True
    return runs, False


def run(
    problem: ERM,
    methods: Iterable[str],
    *,
    passes: int,
    tol: float,
    seed: int | None = 0,
    callback: Callable[[object], object] | None = None,
    verbose: int = 0,
    check_every: int | None = 1,
) -> tuple[dict[str, Solution], bool]:
    """(answers, whether it was interrupted): each method from zero with the same seed.

    By default the gap is checked every pass. Ctrl-C ends it, with what there is.
    """
    found: dict[str, Solution] = {}
    if problem.separable and problem.K == 1 and SMOOTH_FORM.holds(problem):
        _ = problem.form  # all share it, and the first should not pay for it
    for method in methods:
        try:
            found[method] = solve(
                problem,
                method,
                tol=tol,
                max_epochs=passes,
                check_every=check_every,
                random_state=seed,
                callback=callback,
                verbose=verbose,
            )
        except KeyboardInterrupt:  # before this method had anything
            return found, True
        if found[method].status.code == "interrupted":
            return found, True
    return found, False


def refusals(problem: ERM, methods: Iterable[str]) -> dict[str, str]:
    """The methods that do not apply to the problem, and why, in words."""
    found = {}
    for method in methods:
        try:
            solve(problem, method, max_epochs=0)
        except ValueError as error:
            found[method] = str(error)
    return found


def cost(solution: Solution, gap: float) -> tuple[float, float] | None:
    """(passes, seconds) to this gap, relative to P; None if it was not reached."""
    trace = solution.trace
    reached = np.flatnonzero(trace["gap"] <= gap * np.abs(trace["primal"]))
    if not reached.size:
        return None
    return float(trace["epoch"][reached[0]]), float(trace["seconds"][reached[0]])


def summary(problem: ERM, runs: Runs) -> list[Row]:
    """A row for each method, for tables and JSON."""
    rows: list[Row] = []
    for method, r in runs.looked.items():
        costs = {f"{gap:g}": cost(r, gap) for gap in GAPS}
        timed = runs.timed.get(method)
        clock = {f"{gap:g}": cost(timed, gap) if timed else None for gap in GAPS}
        rows.append(
            {
                "alpha": problem.alpha,
                "method": method,
                "passes": {g: c[0] if c else None for g, c in costs.items()},
                "seconds": {g: c[1] if c else None for g, c in clock.items()},
                "primal": r.primal,
                "dual": r.dual,
                "gap": r.gap,
                "epochs": r.epochs,
                "status": r.status.code,
            }
        )
    return rows
