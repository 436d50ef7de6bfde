"""A fold of a search: its problems, a path of warm starts through all alphas, the scores."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from .._base.validation import Vector
from ..certify.points import Start
from ..certify.result import Solution
from ..problems.erm import ERM
from ..run.solve import solve
from . import by_sweeps, sparse
from .linear import Plan, start_at
from .progress import Task

#: The gap at which an alpha is scored first.
EARLY = 1e-2


@dataclass
class Fold:
    """The problems of a fold and its test part; then what came of them, by the number of alpha."""

    plan: Plan
    test: tuple[Any, Any]
    scored: dict[str, Any]  # goes to the scorer
    scorer: Any
    model: Any  # a copy of the estimator, to be scored; it scores itself if `scorer` is None
    rng: np.random.Generator
    options: dict[str, Any]
    answers: dict[int, Sequence[Solution | by_sweeps.SweptAnswer]] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    changes: dict[int, float] = field(default_factory=dict)
    passes: dict[int, int] = field(default_factory=dict)

    @property
    def by_sweeps(self) -> bool:
        """Whether it is a problem with K outputs, to be solved by sweeps over blocks."""
        return by_sweeps.applies(self.plan.problems[0], self.options["method"])

    def walk(self, grid: Vector, tol: float, task: Task) -> Fold:
        """Solve for all alphas to tol, from the largest to the smallest."""
        order = [int(k) for k in np.argsort(-grid, kind="stable")]
        for place, k in enumerate(order):
            alpha = float(grid[k])
            ahead = self._ahead(grid[order[max(0, place - 2) : place + 1]])
            known = [self.answers[j] for j in order[max(0, place - 2) : place]]
            starts = [
                _extrapolated(p.with_alpha(alpha), [answers[c] for answers in known], ahead)
                for c, p in enumerate(self.plan.problems)
            ]
            self._solve(k, alpha, starts, tol, -(-self.options["max_epochs"] // 4))
            task.subtask("alpha").end()
        task.end()
        return self

    def at_once(self, grid: Vector) -> bool:
        """Solve a sparse model for all alphas, and score them; whether all came to an end."""
        tol, passes = self.options["tol"], self.options["max_epochs"]
        found = []
        for problem in self.plan.problems:
            made = sparse.optima(problem, grid, tol, passes, self.rng)
            if made is None:
                return False
            found.append(made)
        spent = np.max([made[2] for made in found], axis=0)
        self.passes = {k: int(spent[k]) for k in range(grid.size)}
        if self.scorer is None and not is_classifier(self.model):
            W, b, _ = found[0]
            scores = self.model._scores(*self.test, W, b + self.plan.offset, **self.scored)
            self.scores = dict(enumerate(map(float, scores)))
        else:
            for k in range(grid.size):
                self.scores[k] = self._score(_picked(found, k))
        # the best is kept: Ctrl-C in a later fold gives it back
        best = int(np.argmax(np.nan_to_num([*self.scores.values()], nan=-np.inf)))
        self.answers[best] = _picked(found, best)
        return True

    def refine(self, grid: Vector, numbers: Any, tol: float) -> Fold:
        """Go on with some of the alphas, to a smaller tol."""
        for k in map(int, numbers):
            self._solve(k, float(grid[k]), self.answers[k], tol, self.options["max_epochs"])
        return self

    @staticmethod
    def _ahead(alphas: Vector) -> float:
        """How far the next alpha is from the last, in steps from the one before to the last."""
        if alphas.size < 3 or alphas[0] == alphas[1]:
            return 0.0
        return min(1.0, math.log(alphas[1] / alphas[2]) / math.log(alphas[0] / alphas[1]))

    def _solve(self, k: int, alpha: float, starts: Any, tol: float, passes: int) -> None:
        """Solve to a gap of tol, and to a tenth of that of the early point; score both."""
        if self.by_sweeps:
            self._sweep(k, alpha, starts[0], tol, passes)
            return
        early: dict[int, Any] = {}
        answers = []
        for c, (problem, start) in enumerate(zip(self.plan.problems, starts, strict=True)):

            def enough(found: Any, c: int = c) -> bool:
                known = c in early and early[c].gap <= EARLY * abs(early[c].primal)
                if not known and (found.epoch == 0 or 2 * found.epoch <= passes):
                    early[c] = found
                return bool(found.gap <= min(tol * abs(found.primal), 0.1 * early[c].gap))

            answers.append(
                solve(
                    problem.with_alpha(alpha),
                    x0=start,
                    random_state=self.rng,
                    callback=enough,
                    **self.options | {"max_epochs": passes},
                )
            )
        if any(r.status.code == "interrupted" for r in answers):
            raise KeyboardInterrupt
        self.answers[k] = answers
        self.passes[k] = self.passes.get(k, 0) + max(r.epochs for r in answers)
        first = self._score([early[c] for c in range(len(answers))])
        self.scores[k] = self._score(answers)
        self.changes[k] = abs(self.scores[k] - first)

    def _sweep(self, k: int, alpha: float, start: Any, tol: float, passes: int) -> None:
        """The same for K outputs, by estimated gaps."""
        problem = self.plan.problems[0].with_alpha(alpha)
        early, answer = by_sweeps.solve(problem, start, (10 * tol, tol), passes, self.rng)
        self.answers[k] = [answer]
        self.passes[k] = self.passes.get(k, 0) + answer.epochs
        self.scores[k] = self._score([answer])
        self.changes[k] = abs(self.scores[k] - self._score([early]))

    def _score(self, answers: Any) -> float:
        known = self.plan.describe(answers)
        self.model.__dict__.update(known)
        if self.scorer is not None:
            given = self.scorer(self.model, *self.test, **self.scored)
            if not isinstance(given, numbers.Real | np.number):
                raise TypeError(f"scoring must give a number, got {given!r}.")
            return float(given)
        W, b = np.atleast_2d(known["coef_"]), known["intercept_"]
        return float(self.model._scores(*self.test, W, b, **self.scored)[0])


class PathPoint(NamedTuple):
    """The answer for one alpha of a path that keeps no dual points."""

    w: Vector
    intercept: float
    x: None = None


def _picked(found: Sequence[Any], k: int) -> list[Any]:
    """The answers for alpha k, of problems that have W and b of all alphas each."""
    return [PathPoint(W[k].copy(), float(b[k])) for W, b, _ in found]


def _extrapolated(problem: ERM, known: Sequence[Any], ahead: float) -> Start | None:
    """Where to start for the next alpha: on the line through the last two dual points."""
    if not known:
        return None
    last, before = known[-1], known[0]
    if problem.K > 1:  # it is shrunk to what is best for this alpha where it is taken up
        return Start(last.x, last.w, last.intercept)
    w, b, x = (
        getattr(last, part) + ahead * (getattr(last, part) - getattr(before, part))
        for part in ("w", "intercept", "x")
    )
    return start_at(problem, w if problem.g.is_l2 else last.w, b, x)
