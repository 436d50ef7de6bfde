"""`APCGClassifierCV` and `APCGRegressorCV`: alpha by cross-validation, along warm-started paths."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
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
from sklearn.utils.parallel import Parallel, delayed

from .. import _validation as check
from .._validation import Vector
from ..result import Solution
from ..solve import solve
from .classifier import Classifier
from .linear import Linear, Plan
from .progress import Task, with_callbacks
from .regressor import Regressor


@dataclass
class _Fold:
    """The problems of a fold and its test part; then what came of them, in order of the grid."""

    plan: Plan
    X: Any
    y: Any
    scored: dict[str, Any]  # goes to the scorer
    scores: Any = None
    answers: list[list[Solution]] = field(default_factory=list)

    @property
    def passes(self) -> list[int]:
        """For each alpha; of more than one problem, the most."""
        return [max(r.epochs for r in answers) for answers in self.answers]


class Search(Linear):
    """The search: one path of alphas in each fold, then a fit with the best.

    A held-out sample has weight zero in its fold, so that all folds share X.
    """

    def _grid(self) -> Vector:
        if isinstance(self.alphas, int | np.integer) and not isinstance(self.alphas, bool):
            return np.logspace(0, -7, check.integer(self.alphas, "alphas", low=1))
        grid = check.vector(self.alphas, None, "alphas")
        if grid.size == 0 or grid.min() <= 0:
            raise ValueError(f"alphas must be positive numbers, got {self.alphas!r}.")
        return grid

    def _search(
        self, X: Any, y: Any, target: tuple[Any, ...], weights: Any, params: dict[str, Any]
    ) -> None:
        """Cross-validate over the alphas, and fit with the best; `target` is for `_plan`."""
        grid = self._grid()
        cv = check_cv(self._folds(y), y, classifier=is_classifier(self))
        scorer = check_scoring(self, scoring=self.scoring)
        split, scored = self._routed(scorer, weights, params)
        plan = self._plan(X, *target, weights, float(grid[0]))
        plan.share()
        parts = list(cv.split(X, y, **split))
        task = Task.root(self, len(parts) + len(plan.problems), X, y, weights)
        seeds = check.generator(self.random_state).integers(2**31, size=len(parts))
        tasks = [task.subtask(f"fold {k}", grid.size) for k in range(len(parts))]
        folds: list[_Fold] = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._path)(
                self._fold(X, y, target, weights, part, plan, scored), grid, scorer, int(seed), t
            )
            for part, seed, t in zip(parts, seeds, tasks, strict=True)
        )
        self.alphas_ = grid
        self.scores_ = np.array([fold.scores for fold in folds]).T
        self.n_iter_path_ = np.array([fold.passes for fold in folds]).T
        best = int(np.argmax(np.mean(self.scores_, axis=1)))
        self.alpha_, self.best_score_ = float(grid[best]), float(np.mean(self.scores_[best]))
        plan.problems = [p.with_alpha(self.alpha_) for p in plan.problems]
        before = [r for fold in folds for answers in fold.answers for r in answers]
        # from zero, so that it is the same as a fit with this alpha
        self._finish(plan, [None] * len(plan.problems), task, before)

    def _fold(
        self,
        X: Any,
        y: Any,
        target: tuple[Any, ...],
        weights: Any,
        part: tuple[Any, Any],
        whole: Plan,
        scored: dict[str, Any],
    ) -> _Fold:
        """The problems of a fold: the whole data, with weight zero for what is held out."""
        train, test = part
        kept = np.zeros(X.shape[0])
        kept[train] = 1.0 if weights is None else weights[train]
        base = whole.problems[0]
        plan = self._plan(X, *self._part(target, train), kept, base.alpha, base)
        scored = {k: v if v is None else _safe_indexing(v, test) for k, v in scored.items()}
        return _Fold(plan, _safe_indexing(X, test), _safe_indexing(y, test), scored)

    def _path(self, fold: _Fold, grid: Vector, scorer: Any, seed: int, task: Task) -> _Fold:
        """Solve and score for all alphas, from the largest to the smallest."""
        model, rng = copy(self), np.random.default_rng(seed)
        fold.scores, fold.answers = np.empty(grid.size), [[]] * grid.size
        last: list[Any] = [None] * len(fold.plan.problems)
        for k in np.argsort(-grid, kind="stable"):
            last = [
                solve(p.with_alpha(float(grid[k])), x0=x0, random_state=rng, **self._options())
                for p, x0 in zip(fold.plan.problems, last, strict=True)
            ]
            if any(r.status.code == "interrupted" for r in last):
                raise KeyboardInterrupt
            fold.answers[k] = last
            model.__dict__.update(fold.plan.describe(last))
            fold.scores[k] = scorer(model, fold.X, fold.y, **fold.scored)
            task.subtask("alpha").end()
        task.end()
        return fold

    def _part(self, target: tuple[Any, ...], train: Any) -> tuple[Any, ...]:
        """What `_plan` takes for a fold with these samples."""
        return target

    def _folds(self, y: Any) -> Any:
        """`cv`, or 5 for None; fewer if a class has not as many samples."""
        if self.cv is not None:
            return self.cv
        least = np.unique(y, return_counts=True)[1].min() if is_classifier(self) else len(y)
        return int(max(2, min(5, least)))

    def _routed(
        self, scorer: Any, weights: Vector | None, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the splitter, and what to the scorer: without routing, the weights."""
        _raise_for_params(params, self, "fit")
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weights, **params)
            return dict(routed.splitter.split), dict(routed.scorer.score)
        own = getattr(scorer, "_accept_sample_weight", None)
        accepts = own() if own else "sample_weight" in signature(scorer).parameters
        return {}, {"sample_weight": weights} if accepts and weights is not None else {}

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
                scorer=check_scoring(self, scoring=self.scoring),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        )


class APCGClassifierCV(Search, Classifier):
    """`APCGClassifier` with alpha chosen by cross-validation, along a warm-started path per fold.

    Parameters
    ----------
    loss, penalty, l1_ratio, gamma, fit_intercept, tol, max_epochs, method, class_weight,
    random_state, verbose : as in `APCGClassifier`
    alphas : int or array of floats, default=15
        The alphas to try; a number is so many from 1 to 1e-7, in equal ratios.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None is 5, stratified, or fewer if a class has
        fewer samples.
    scoring : str, callable or None, default=None
        What to maximise; None is the accuracy.
    n_jobs : int, default=None
        Threads for the folds. The result is the same.

    Attributes
    ----------
    alpha_ : float
        The best alpha; the first in `alphas` if several are.
    alphas_ : array of shape (n_alphas,)
    scores_ : array of shape (n_alphas, n_folds)
    best_score_ : float
        The mean over the folds for `alpha_`.
    n_iter_path_ : array of shape (n_alphas, n_folds)
        Passes over the data in the folds.
    classes_, coef_, intercept_, dual_coef_, duality_gap_, n_iter_, status_, trace_, n_features_in_,
    feature_names_in_ : as in `APCGClassifier`, of the fit with all samples and `alpha_`

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from apcg import APCGClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = APCGClassifierCV("logistic", alphas=[1, 1e-2, 1e-4], random_state=0)
    >>> model.fit(scale(X), y).alpha_
    0.01
    """

    def __init__(
        self,
        loss: Any = "smoothed_hinge",
        *,
        penalty: Any = "l2",
        alphas: Any = 15,
        l1_ratio: float = 0.5,
        gamma: float = 1.0,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_epochs = max_epochs
        self.method = method
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> APCGClassifierCV:
        """Choose alpha and train.

        Parameters
        ----------
        X, y, sample_weight : as in `APCGClassifier`
        **params : for the splitter and the scorer, by scikit-learn's metadata routing

        Returns
        -------
        self
        """
        X, classes, codes, weights = self._validated(X, y, sample_weight)
        self._search(X, classes[codes], (classes, codes), weights, params)
        return self

    def _part(self, target: tuple[Any, ...], train: Any) -> tuple[Any, ...]:
        """The classes that are in the fold; others have weight zero there, and any code."""
        classes, codes = target
        present = np.unique(codes[train])
        within = np.minimum(np.searchsorted(present, codes), len(present) - 1)
        return classes[present], within


class APCGRegressorCV(Search, Regressor):
    """`APCGRegressor` with alpha chosen by cross-validation, along a warm-started path per fold.

    Parameters
    ----------
    loss, penalty, l1_ratio, delta, epsilon, fit_intercept, tol, max_epochs, method, random_state,
    verbose : as in `APCGRegressor`
    alphas : int or array of floats, default=15
        The alphas to try; a number is so many from 1 to 1e-7, in equal ratios.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None is 5.
    scoring : str, callable or None, default=None
        What to maximise; None is R^2.
    n_jobs : int, default=None
        Threads for the folds. The result is the same.

    Attributes
    ----------
    alpha_ : float
        The best alpha; the first in `alphas` if several are.
    alphas_ : array of shape (n_alphas,)
    scores_ : array of shape (n_alphas, n_folds)
    best_score_ : float
        The mean over the folds for `alpha_`.
    n_iter_path_ : array of shape (n_alphas, n_folds)
        Passes over the data in the folds.
    coef_, intercept_, dual_coef_, duality_gap_, n_iter_, status_, trace_, n_features_in_,
    feature_names_in_ : as in `APCGRegressor`, of the fit with all samples and `alpha_`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg import APCGRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = APCGRegressorCV(alphas=[1e-2, 1e-4], random_state=0).fit(X, y)
    >>> model.alpha_
    0.0001
    """

    def __init__(
        self,
        loss: Any = "squared",
        *,
        penalty: Any = "l2",
        alphas: Any = 15,
        l1_ratio: float = 0.5,
        delta: float = 1.35,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.delta = delta
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_epochs = max_epochs
        self.method = method
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> APCGRegressorCV:
        """Choose alpha and train.

        Parameters
        ----------
        X, y, sample_weight : as in `APCGRegressor`
        **params : for the splitter and the scorer, by scikit-learn's metadata routing

        Returns
        -------
        self
        """
        X, labels, weights = self._validated(X, y, sample_weight)
        self._search(X, labels, (labels,), weights, params)
        return self
