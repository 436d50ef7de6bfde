"""Cross-validation over alphas: a path of warm starts in each fold, and a race between alphas.

All alphas are solved to a coarse gap first, PATH, in a quarter of the passes at most. The score of
each is taken early, at a gap of EARLY (or after half of those passes), and at the end, at a tenth
of that gap or less; the difference is how much it may still change. An alpha is in the race while
its score plus that is not below the best score less that. Those in the race are solved further,
until one is left or the tolerance is reached. A held-out sample has weight zero in its fold, so
that all folds share X.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from .._base import validation as check
from .._base.validation import Vector
from ..certify.points import Start
from ..certify.result import Solution
from ..data import views
from ..problems.erm import ERM
from ..problems.objective import Objective
from ..run.solve import solve
from . import by_sweeps, ridge, sparse
from .interrupted import in_threads, search_so_far
from .linear import Linear, Plan, start_at
from .progress import Task

EARLY, PATH, MIDDLE = 1e-2, 1e-3, 1e-4
#: More alphas than anybody can mean.
MOST_ALPHAS = 100_000


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
    answers: dict[int, Sequence[Solution | by_sweeps.Answer]] = field(default_factory=dict)
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
        # one of them is kept, for who interrupts a later fold
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


def _picked(found: Sequence[Any], k: int) -> list[Any]:
    """The answers for alpha k, of problems that have W and b of all alphas each."""
    return [SimpleNamespace(w=W[k].copy(), intercept=float(b[k]), x=None) for W, b, _ in found]


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


class Search(Linear):
    """What the CV estimators share."""

    def _grid(self) -> Vector:
        if isinstance(self.alphas, int | np.integer) and not isinstance(self.alphas, bool):
            count = check.integer(self.alphas, "alphas", low=1)
            if count > MOST_ALPHAS:
                raise ValueError(f"alphas must be at most {MOST_ALPHAS:,} of them, got {count:,}.")
            return np.logspace(0, -6, count)
        grid = check.vector(self.alphas, None, "alphas")
        if grid.size == 0 or grid.min() <= 0:
            raise ValueError(f"alphas must be positive numbers, got {self.alphas!r}.")
        return grid

    def _search(
        self, X: Any, y: Any, target: tuple[Any, ...], weights: Any, params: dict[str, Any]
    ) -> None:
        """Cross-validate over the alphas, and fit with the best; `target` is for `_plan`."""
        grid = self._grid()
        cv = check_cv(self._n_folds(y), y, classifier=is_classifier(self))
        scorer = None if self._scored_by(self.scoring) else self._scorer()
        split, scored = self._routed(scorer, weights, params)
        plan = self._plan(X, *target, weights, float(grid[0]))
        plan.share(self.method)
        parts = list(cv.split(X, y, **split))
        if not parts:
            raise ValueError(f"cv gives no split, got {self.cv!r}; give a number of folds, say 5.")
        _check_rows(parts, X.shape[0])
        task = Task.root(self, len(parts) + len(plan.problems), X, y, weights)
        best = None if task else self._ridge(plan, parts, y, weights, grid, scored)
        if best is None:
            seeds = check.generator(self.random_state).integers(2**31, size=len(parts))
            folds = [
                self._fold(X, y, target, weights, part, plan, scored, scorer, int(seed))
                for part, seed in zip(parts, seeds, strict=True)
            ]
            try:
                best = None if task else self._at_once(folds, plan, grid)
                if best is None:
                    best = self._race(folds, grid, task)
            except KeyboardInterrupt:
                search_so_far(self, folds, plan, grid)
                raise
        self.alpha_, self.best_score_ = float(grid[best]), float(np.mean(self.scores_[best]))
        plan.problems = [p.with_alpha(self.alpha_) for p in plan.problems]
        # from zero, so that it is the same as a fit with this alpha
        self._finish(plan, [None] * len(plan.problems), task)

    def _at_once(self, folds: list[Fold], plan: Plan, grid: Vector) -> int | None:
        """The best alpha of a sparse model, by number, all solved to tol; None if one was not."""
        if self.method != "auto" or not sparse.applies(plan.problems):
            return None
        if not all(in_threads([partial(f.at_once, grid) for f in folds], self.n_jobs)):
            return None
        self.alphas_ = grid
        self.scores_, self.n_iter_path_ = _table(folds, "scores"), _table(folds, "passes")
        return int(np.argmax(_mean(self.scores_)))

    def _race(self, folds: list[Fold], grid: Vector, task: Task) -> int:
        """The number of the best alpha."""
        tol = self._options()["tol"]
        levels = [t for t in (PATH, MIDDLE) if t > tol] + [tol]
        if folds[0].by_sweeps:
            levels = [max(t, tol) for t in by_sweeps.LEVELS]
        tasks = [task.subtask(f"fold {k}", grid.size) for k in range(len(folds))]
        walks = [partial(f.walk, grid, levels[0], t) for f, t in zip(folds, tasks, strict=True)]
        folds = in_threads(walks, self.n_jobs)
        running = np.arange(grid.size)
        for level in levels[1:]:
            scores, changes = _table(folds, "scores"), _table(folds, "changes")
            mean, slack = _mean(scores), np.nan_to_num(changes.mean(axis=1))
            # within rounding, so that equal scores stay together
            running = np.flatnonzero(mean + slack >= np.max(mean - slack) - 1e-12)
            if running.size == 1:
                break
            folds = in_threads(
                [partial(f.refine, grid, running, level) for f in folds], self.n_jobs
            )
        self.alphas_ = grid
        self.scores_, self.n_iter_path_ = _table(folds, "scores"), _table(folds, "passes")
        return int(running[np.argmax(_mean(self.scores_[running]))])

    def _fold(
        self,
        X: Any,
        y: Any,
        target: tuple[Any, ...],
        weights: Any,
        part: tuple[Any, Any],
        whole: Plan,
        scored: dict[str, Any],
        scorer: Any,
        seed: int,
    ) -> Fold:
        """The problems of a fold: the whole data, with weight zero for what is held out."""
        train, test = part
        kept = np.zeros(X.shape[0])
        kept[train] = 1.0 if weights is None else weights[train]
        base = whole.problems[0]
        plan = self._plan(X, *self._part(target, train), kept, base.alpha, base)
        scored = {k: v if v is None else _safe_indexing(v, test) for k, v in scored.items()}
        held_out = X[test], y[test]
        rng = np.random.default_rng(seed)
        if scorer is None and not self._scores_itself(held_out[1], scored):
            scorer = self._scorer()
        return Fold(plan, held_out, scored, scorer, copy(self), rng, self._options())

    def _scores_itself(self, y: Any, scored: dict[str, Any]) -> bool:
        """Whether `_scores` will do: scikit-learn's scorers check everything again."""
        known = self._scored_by(self.scoring) and set(scored) <= {"sample_weight"}
        return bool(known and self._scorable(y, **scored))

    def _ridge(
        self, plan: Plan, parts: Any, y: Any, weights: Any, grid: Vector, scored: dict[str, Any]
    ) -> int | None:
        """The number of the best alpha of a ridge regression; None if it is not one."""
        if self.method != "auto" or not ridge.applies(plan.problems):
            return None
        if weights is not None and not all(weights[train].any() for train, _ in parts):
            return None
        tested = [{k: _safe_indexing(v, test) for k, v in scored.items()} for _, test in parts]
        if not all(
            self._scores_itself(y[test], t) for (_, test), t in zip(parts, tested, strict=True)
        ):
            return None
        X = plan.problems[0].samples
        rows = Objective.of(plan.problems[0])
        found = (ridge.optima(rows, train, weights, grid) for train, _ in parts)
        self.scores_ = np.transpose(
            [
                self._scores(X.rows(test).view(views.whole), y[test], W, b + plan.offset, **t)
                for (W, b), (_, test), t in zip(found, parts, tested, strict=True)
            ]
        )
        self.alphas_, self.n_iter_path_ = grid, np.ones(self.scores_.shape, dtype=int)
        return int(np.argmax(_mean(self.scores_)))

    def _part(self, target: tuple[Any, ...], train: Any) -> tuple[Any, ...]:
        """What `_plan` takes for a fold with these samples."""
        return target

    def _scorer(self) -> Any:
        # by name, and not the estimator's own score: that would route to this estimator again
        default = "accuracy" if is_classifier(self) else "r2"
        return check_scoring(self, scoring=default if self.scoring is None else self.scoring)

    def _n_folds(self, y: Any) -> Any:
        """`cv`, or 5 for None; fewer if a class has not as many samples."""
        if self.cv is not None:
            return self.cv
        least = np.unique(y, return_counts=True)[1].min() if is_classifier(self) else len(y)
        return int(max(2, min(5, least)))

    def _routed(
        self, scorer: Any, weights: Vector | None, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the splitter, and what to the scorer: without routing, the weights.

        `scorer` is None for the default, which takes weights.
        """
        _raise_for_params(params, self, "fit")
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params)
            return dict(routed.splitter.split), dict(routed.scorer.score)
        accepts = weights is not None
        if accepts and scorer is not None:
            own = getattr(scorer, "_accept_sample_weight", None)
            accepts = own() if own else "sample_weight" in signature(scorer).parameters
        return {}, {"sample_weight": weights} if accepts else {}

    def get_metadata_routing(self) -> Any:
        """Who gets what: this estimator, its splitter and its scorer."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(self.cv, classifier=is_classifier(self)),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
            .add(
                scorer=self._scorer(),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        )


def _check_rows(parts: Any, n: int) -> None:
    """Refuse splits with rows that X does not have."""
    for part in parts:
        for rows in part:
            try:
                np.arange(n)[rows]
            except IndexError as error:
                raise ValueError(
                    f"cv gives rows that X, with {n} of them, has not: {error}."
                ) from None


def _mean(scores: Any) -> Any:
    """Over the folds; a score that is not a number is the worst."""
    return np.nan_to_num(scores.mean(axis=1), nan=-np.inf)


def _table(folds: list[Fold], name: str) -> Any:
    """One row for each alpha, one column for each fold."""
    columns = [getattr(f, name) for f in folds]
    return np.array([[c[k] for c in columns] for k in range(len(columns[0]))])
