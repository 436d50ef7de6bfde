"""`APCGClassifierCV` and `APCGRegressorCV`: alpha by cross-validation, along warm-started paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import losses
from .._base.types import Array, Bounds, ClassWeights, MatrixLike, Seed
from .._base.validation import Index, answers_other_names
from ..penalties import Penalty
from .classifier import Classifier
from .progress import with_callbacks
from .regressor import Regressor
from .search import Search

#: The rows of a fold: to train on, and held out.
Split: TypeAlias = tuple[Index, Index]
#: scorer(estimator, X, y), or the name of one of scikit-learn's.
Scoring: TypeAlias = Callable[..., float] | str


class Splitter(Protocol):
    """A splitter of scikit-learn."""

    def split(self, X: Array, y: Array, groups: ArrayLike | None = None) -> Iterable[Split]:
        """The folds."""


class APCGClassifierCV(Search, Classifier):
    """`APCGClassifier` with alpha chosen by cross-validation, along a warm-started path per fold.

    Parameters
    ----------
    loss, penalty, positive, gamma, multi_class, fit_intercept, tol, max_epochs, method,
    class_weight, random_state, verbose
        As in `APCGClassifier`.
    l1_ratio : float or list of floats, default=0.5
        For "elasticnet". From a list the best is chosen, together with alpha.
    alphas : int or array of floats, default=15
        The alphas to try; a number is so many from 1 to 1e-6, in equal ratios. An alpha means the
        same in each fold; a C of LogisticRegressionCV is 1/(alpha n) with the n of the fold.
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
    l1_ratio_ : float
        The best l1_ratio; with penalty "elasticnet" only.
    scores_ : array of shape (n_alphas, n_folds), or (n_ratios, n_alphas, n_folds) for a list
        An alpha that is clearly not the best is not solved to tol but to 1e-3 or 1e-4, or for a
        quarter of max_epochs; its scores are those of that solution. With a softmax all alphas are
        solved to an estimated relative gap of 1e-2 (or tol, if that is larger), and those that may
        be the best to 1e-3. Only the fit with `alpha_` is certified.
    best_score_ : float
        The mean over the folds for `alpha_` and `l1_ratio_`.
    n_iter_path_ : array of the same shape
        Passes over the data in the folds.
    classes_, multi_class_, coef_, intercept_, dual_coef_, duality_gap_, n_iter_, status_, trace_
        As in `APCGClassifier`, of the fit with all samples and `alpha_`.

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

    @answers_other_names
    def __init__(
        self,
        loss: str | losses.Loss = "smoothed_hinge",
        *,
        penalty: str | Penalty = "l2",
        alphas: ArrayLike = 15,
        l1_ratio: float | Sequence[float] = 0.5,
        positive: bool | Bounds = False,
        gamma: float = 1.0,
        multi_class: str = "auto",
        fit_intercept: bool = True,
        cv: int | Splitter | Iterable[Split] | None = None,
        scoring: Scoring | None = None,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        class_weight: ClassWeights | str | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.gamma = gamma
        self.multi_class = multi_class
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
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: object,
    ) -> APCGClassifierCV:
        """Choose alpha and train.

        Parameters
        ----------
        X, y, sample_weight
            As in `APCGClassifier`.
        **params : for the splitter and the scorer, by scikit-learn's metadata routing

        Returns
        -------
        self
        """
        X, classes, codes, weights = self._validated(X, y, sample_weight)
        self._search(X, classes[codes], (classes, codes), weights, params)
        return self

    def _part(self, target: tuple[Array, Index], train: Index) -> tuple[Array, Index]:
        """The classes that are in the fold; others have weight zero there, and any code."""
        classes, codes = target
        present = np.unique(codes[train])
        within = np.minimum(np.searchsorted(present, codes), len(present) - 1)
        return classes[present], within


class APCGRegressorCV(Search, Regressor):
    """`APCGRegressor` with alpha chosen by cross-validation, along a warm-started path per fold.

    Parameters
    ----------
    loss, penalty, positive, delta, epsilon, fit_intercept, tol, max_epochs, method, random_state,
    verbose : int
        As in `APCGRegressor`.
    l1_ratio : float or list of floats, default=0.5
        For "elasticnet". From a list the best is chosen, together with alpha.
    alphas : int or array of floats, default=15
        The alphas to try; a number is so many from 1 to 1e-6, in equal ratios.
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
    l1_ratio_ : float
        The best l1_ratio; with penalty "elasticnet" only.
    scores_ : array of shape (n_alphas, n_folds), or (n_ratios, n_alphas, n_folds) for a list
        An alpha that is clearly not the best is not solved to tol but to 1e-3 or 1e-4, or for a
        quarter of max_epochs; its scores are those of that solution. With several outputs all
        alphas may be solved to an estimated relative gap of 1e-2 (or tol, if that is larger), and
        those that may be the best to 1e-3. Only the fit with `alpha_` is certified.
    best_score_ : float
        The mean over the folds for `alpha_` and `l1_ratio_`.
    n_iter_path_ : array of the same shape
        Passes over the data in the folds.
    coef_, intercept_, dual_coef_, duality_gap_, n_iter_, status_, trace_
        As in `APCGRegressor`, of the fit with all samples and `alpha_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg import APCGRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = APCGRegressorCV(alphas=[1e-2, 1e-4], random_state=0).fit(X, y)
    >>> model.alpha_
    0.0001
    """

    @answers_other_names
    def __init__(
        self,
        loss: str | losses.Loss = "squared",
        *,
        penalty: str | Penalty = "l2",
        alphas: ArrayLike = 15,
        l1_ratio: float | Sequence[float] = 0.5,
        positive: bool | Bounds = False,
        delta: float = 1.35,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        cv: int | Splitter | Iterable[Split] | None = None,
        scoring: Scoring | None = None,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.l1_ratio = l1_ratio
        self.positive = positive
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
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: object,
    ) -> APCGRegressorCV:
        """Choose alpha and train.

        Parameters
        ----------
        X, y, sample_weight
            As in `APCGRegressor`.
        **params : for the splitter and the scorer, by scikit-learn's metadata routing

        Returns
        -------
        self
        """
        X, labels, weights = self._validated(X, y, sample_weight)
        self._search(X, labels, (labels,), weights, params)
        return self
