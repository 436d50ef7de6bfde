"""Cross-validation over alphas: a path of warm starts in each fold, and a race between alphas.

All alphas are solved to a coarse gap first, PATH, in a quarter of the passes at most. Each is
scored twice: early, at a gap of EARLY (or after half of those passes), and at the end, at a tenth
of that gap or less. The difference is a margin for what the score may still change. An alpha stays
in the race while its score plus its margin reaches the highest score less margin. Those in the race
are solved further, until one is left or the tolerance is reached. A held-out sample has weight zero
in its fold, so that all folds share X.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from inspect import signature
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
from ..data import views
from ..problems.objective import Objective
from . import by_sweeps, ratios, ridge, sparse
from .fold import Fold
from .interrupted import in_threads, search_so_far, unsolved
from .linear import Linear, Plan
from .progress import Task

#: Gaps that alphas are solved to while they race; `fold.EARLY` comes before.
PATH, MIDDLE = 1e-3, 1e-4
#: More alphas than anybody can mean.
MOST_ALPHAS = 100_000


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
        grid, tried = self._grid(), ratios.copies(self)
        cv = check_cv(self._n_folds(y), y, classifier=is_classifier(self))
        scorer = None if self._scored_by(self.scoring) else self._scorer()
        split, scored = self._routed(scorer, weights, params)
        plans = [each._plan(X, *target, weights, float(grid[0])) for each in tried]
        parts = list(cv.split(X, y, **split))
        if not parts:
            raise ValueError(f"cv gives no split, got {self.cv!r}; give a number of folds, say 5.")
        _check_rows(parts, X.shape[0])
        steps = len(tried) * len(parts) + len(plans[0].problems)
        task = Task.root(self, steps, X, y, weights)
        alone = len(tried) == 1
        with ratios.kept_so_far(self, tried):
            best = [
                each._best(X, y, target, weights, plan, parts, grid, scored, scorer, task, alone)
                for each, plan in zip(tried, plans, strict=True)
            ]
        try:
            plan = self._choose(tried, best, grid, plans)
        except KeyboardInterrupt:  # there is no fit with this alpha: its problems at zero
            plan = self._choose(tried, best, grid, plans)
            self._keep(plan, [unsolved(p, None, self._options()) for p in plan.problems])
            raise
        # from zero, so that it is the same as a fit with this alpha
        self._finish(plan, [None] * len(plan.problems), task)

    def _choose(
        self, tried: list[Any], best: list[int], grid: Vector, plans: Sequence[Plan]
    ) -> Plan:
        """The plan of the search with the best score, with the alpha that it chose."""
        means = [_mean(each.scores_)[k] for each, k in zip(tried, best, strict=True)]
        first = int(np.argmax(means))
        self.alpha_ = float(grid[best[first]])
        self.best_score_ = float(np.mean(tried[first].scores_[best[first]]))
        ratios.keep(self, tried, tried[first], grid)
        plan = plans[first]
        plan.problems = [p.with_alpha(self.alpha_) for p in plan.problems]
        return plan

    def _best(
        self,
        X: Any,
        y: Any,
        target: tuple[Any, ...],
        weights: Any,
        plan: Plan,
        parts: list[Any],
        grid: Vector,
        scored: dict[str, Any],
        scorer: Any,
        task: Task,
        alone: bool,
    ) -> int:
        """The number of the best alpha for this l1_ratio, which is `alone` or one of many."""
        plan.share(self.method)
        best = None if task else self._ridge(plan, parts, y, weights, grid, scored)
        if best is not None:
            return best
        seeds = check.generator(self.random_state).integers(2**31, size=len(parts))
        folds = [
            self._fold(X, y, target, weights, part, plan, scored, scorer, int(seed))
            for part, seed in zip(parts, seeds, strict=True)
        ]
        try:
            best = None if task else self._at_once(folds, plan, grid)
            return self._race(folds, grid, task, alone) if best is None else best
        except KeyboardInterrupt:
            search_so_far(self, folds, plan, grid)
            raise

    def _at_once(self, folds: list[Fold], plan: Plan, grid: Vector) -> int | None:
        """The best alpha of a sparse model, by number, all solved to tol; None if one was not."""
        if self.method != "auto" or not sparse.applies(plan.problems):
            return None
        if not all(in_threads([partial(f.at_once, grid) for f in folds], self.n_jobs)):
            return None
        self.alphas_ = grid
        self.scores_, self.n_iter_path_ = _table(folds, "scores"), _table(folds, "passes")
        return int(np.argmax(_mean(self.scores_)))

    def _race(self, folds: list[Fold], grid: Vector, task: Task, alone: bool) -> int:
        """The number of the best alpha; solved to tol if it is to be compared with others."""
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
            if running.size == 1 and alone:
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
