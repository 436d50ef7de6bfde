"""Ctrl-C in `fit`: what is solved by then is kept, and the rest is given back as it stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.utils.parallel import Parallel, delayed

from .._base.validation import Vector
from ..certify.certificate import certify_start
from ..certify.points import Report, Start
from ..certify.result import Solution, Status, answer
from ..data import threads
from ..problems.erm import ERM

Result = TypeVar("Result")


def in_threads(calls: Sequence[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """What the calls return; without threads if one is all there are, for a pool costs time."""
    if threads.count(n_jobs) == 1 or effective_n_jobs(n_jobs) == 1:
        return [call() for call in calls]
    run = Parallel(n_jobs=n_jobs, require="sharedmem")
    with threads.one_in_blas():
        return list(run(delayed(call)() for call in calls))


def solved(
    calls: Sequence[Callable[[], Solution]],
    spare: Callable[[int], Solution],
    n_jobs: int | None,
) -> list[Solution]:
    """The solutions that the calls return; after Ctrl-C `spare(k)` for those that have none.

    No thread raises KeyboardInterrupt: joblib would wait for it for ever.
    """
    found: dict[int, Solution] = {}
    pressed: list[int] = []

    def one(k: int) -> None:
        if pressed:
            return
        try:
            found[k] = calls[k]()
        except KeyboardInterrupt:
            pressed.append(k)
            return
        if found[k].status.code == "interrupted":
            pressed.append(k)

    try:
        in_threads([partial(one, k) for k in range(len(calls))], n_jobs)
    except KeyboardInterrupt:  # heard while it waits for threads
        pressed.append(-1)
    for k in set(range(len(calls))) - found.keys():
        found[k] = spare(k)
    return list(map(found.__getitem__, range(len(calls))))


def unsolved(problem: ERM, at: Start | None, options: dict[str, Any], passes: int = 0) -> Solution:
    """The answer of a solve that Ctrl-C came before: where it would have begun, certified."""
    with np.errstate(all="ignore"):
        c = certify_start(problem, at or Start())
    name, side = str(options["method"]), "dual" if problem.dual_form else "primal"
    status = Status.of("interrupted", passes, c.relative, options["tol"])
    return answer(c, status, Report(side=side, at_work=name), name, passes, 0.0)


def search_so_far(model: Any, folds: Sequence[Any], plan: Any, grid: Vector) -> None:
    """What a search knows when Ctrl-C ends it, as its attributes: nothing, if no alpha has a score.

    The alpha is the best of those that most folds have scored; a score that is not known is NaN.
    The coefficients are those of one fold, with their certificate for all samples.
    """
    count, each = grid.size, len(plan.problems)
    scores = np.array([[f.scores.get(k, math.nan) for f in folds] for k in range(count)])
    if np.isnan(scores).all():
        return
    known = (~np.isnan(scores)).sum(axis=1)
    best = int(np.argmax(np.where(known == known.max(), np.nansum(scores, axis=1), -math.inf)))
    model.alphas_, model.scores_ = grid, scores
    model.n_iter_path_ = np.array([[f.passes.get(k, 0) for f in folds] for k in range(count)])
    model.alpha_, model.best_score_ = float(grid[best]), float(np.nanmean(scores[best]))
    made = sorted(
        ((k != best, found) for f in folds for k, found in f.answers.items() if len(found) == each),
        key=lambda pair: pair[0],
    )
    starts = [Start(w=a.w, b=a.intercept) for a in made[0][1]] if made else [None] * each
    plan.problems = [p.with_alpha(model.alpha_) for p in plan.problems]
    options = model._options()
    found = [unsolved(p, at, options) for p, at in zip(plan.problems, starts, strict=True)]
    model._keep(plan, found)
