"""`APCGRegressor`: linear regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import losses
from .._base.types import Answer, Array, Bounds, MatrixLike, Seed, Stored
from .._base.validation import Vector, answers_other_names
from .._base.weights import mean
from ..data import check_sparse
from ..penalties import Penalty
from ..problems.erm import ERM
from .linear import FLOATS, Linear, Plan, checked_weights, find_loss
from .progress import Task, with_callbacks


class Regressor(RegressorMixin, Linear):
    """What `APCGRegressor` and its CV form share."""

    def _validated(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Stored, Vector, Vector | None]:
        """X, y and weights or None."""
        check_sparse(X, "X")  # before scikit-learn converts it
        samples, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, order="C", y_numeric=True,
            multi_output=True,
        )  # fmt: skip
        weights = checked_weights(sample_weight, samples)
        return samples, np.asarray(labels, dtype=np.float64), weights

    def _plan(
        self, X: Stored, y: Vector, weights: Vector | None, alpha: float, base: ERM | None = None
    ) -> Plan:
        """The problem; if there is an intercept, with the mean taken from y.

        That changes nothing but b, and costs <y, x> no digits where the mean is large.
        """
        loss = find_loss(
            self.loss, losses.names(margin=False), delta=self.delta, epsilon=self.epsilon
        )
        known = weights if weights is not None and weights.any() else None
        offset = mean(y, known) if self.fit_intercept else np.zeros(())
        two = y.ndim == 2

        def describe(answers: Sequence[Answer]) -> dict[str, Array]:
            (r,) = answers
            outputs = y.shape[1:] if two else (1,)
            return {
                "coef_": np.array(np.atleast_2d(r.w.T) if two else r.w),
                "intercept_": np.array(np.broadcast_to(r.intercept + offset, outputs)),
                "dual_coef_": np.array(np.atleast_2d(r.x.T) if two else r.x),
            }

        target = y - offset
        if two and y.shape[1] == 1:
            target = np.ascontiguousarray(target[:, 0])
        problem = self._problem(X, target, weights, loss, alpha, base)
        taken = offset if problem.K > 1 else float(np.ravel(offset)[0])
        return Plan([problem], ["regression"], describe, taken)

    def _scores(
        self, X: Stored, y: Vector, W: Array, b: Array, sample_weight: Vector | None = None
    ) -> Vector:
        """R^2, or minus the mean square, on valid data for each row of W and entry of b."""
        s = np.ones(y.size) if sample_weight is None else sample_weight
        off, spread = (X @ W.T + b) - y[:, None], y - (s @ y) / s.sum()
        if getattr(self, "scoring", None) == "neg_mean_squared_error":
            return np.asarray(-(s @ off**2) / s.sum())
        return np.asarray(1 - (s @ off**2) / (s @ spread**2))

    @staticmethod
    def _scored_by(scoring: object) -> bool:
        """Whether `_scores` has this score."""
        return scoring is None or scoring in ("r2", "neg_mean_squared_error")

    @staticmethod
    def _scorable(y: Vector, sample_weight: Vector | None = None) -> bool:
        """Whether `_scores` are numbers; for all else scikit-learn has rules and warnings."""
        kept = y if sample_weight is None else y[sample_weight > 0]
        return bool(y.ndim == 1 and kept.size > 1 and kept.min() < kept.max())

    def predict(self, X: MatrixLike) -> Vector:
        """The predictions X w + b.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        check_sparse(X, "X")
        samples = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        linear = safe_sparse_dot(samples, self.coef_.T, dense_output=True)
        if self.dual_coef_.ndim == 1:  # coef_ may be sparse, and then it has two dimensions
            linear = np.ravel(linear)
        z: Vector = linear + self.intercept_
        return z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class APCGRegressor(Regressor):
    """A linear regression, trained to a certified distance from the optimum.

    minimize  the mean of phi(r_i) + alpha g(w),  r_i = a_i' w + b - y_i

    The intercept b has no penalty. A y of several columns is solved at once, with a loss that is
    the sum over the outputs.

    Parameters
    ----------
    loss : str or object, default="squared"
        phi: "squared", r^2/2; "huber", r^2/2 up to |r| = delta and linear from there;
        "epsilon_insensitive", max(0, |r| - epsilon); "squared_epsilon_insensitive", its square;
        "pinball", the median (`losses.Pinball(q)` for another quantile). Or an
        object of `apcg.losses`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        g: (1/2)|w|^2, |w|_1, or l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2. Or an object of
        `apcg.penalties`. "epsilon_insensitive" with "l1" needs a y of one column.
    alpha : float, default=1e-4
        The weight of the penalty. It is the alpha of Lasso and ElasticNet, and that of Ridge over
        n_samples, or over the sum of the weights.
    l1_ratio : float, default=0.5
        For "elasticnet".
    positive : bool or (lower, upper), default=False
        Keep w >= 0, or within bounds, a number or one for each feature; the intercept is free.
    delta : float, default=1.35
        For "huber".
    epsilon : float, default=0.1
        For "epsilon_insensitive" and "squared_epsilon_insensitive".
    fit_intercept : bool, default=True
        Whether predictions have a constant b.
    tol : float, default=1e-6
        The relative duality gap to stop at: the objective is then within this of the optimum.
    max_epochs : int, default=1000
        Passes over the data. If tol is not reached by then, a ConvergenceWarning says so.
    method : str, default="auto"
        As in `apcg.solve`.
    warm_start : bool, default=False
        Begin where the last fit ended, if the features are as many.
    random_state : int, RandomState, Generator or None, default=None
        The order of the coordinates. An integer gives the same result every time.
    verbose : int, default=0
        1 says what "auto" chose and why, and shows a progress bar on a terminal.
    n_jobs : int, default=None
        Threads, as in `apcg.solve`.

    Attributes
    ----------
    coef_ : array of shape (n_features,), or (n_outputs, n_features) if y has columns
    intercept_ : array of shape (1,) or (n_outputs,)
    dual_coef_ : array of shape (n_samples,) or (n_outputs, n_samples)
        The dual point x that certifies the result; see docs/estimators.md.
    duality_gap_ : float
        The objective is at most this far from the optimum.
    n_iter_ : int
        Passes over the data.
    status_ : str
        Why it stopped; `status_.code` for programs.
    trace_ : `apcg.Trace`
        The record of the checks, with `to_pandas()` and `plot()`.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), if X has names for its columns

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg import APCGRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = APCGRegressor("huber", alpha=1e-5, random_state=0).fit(X, y)
    >>> model.status_.code
    'converged'
    """

    @answers_other_names
    def __init__(
        self,
        loss: str | losses.Loss = "squared",
        *,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        positive: bool | Bounds = False,
        delta: float = 1.35,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        warm_start: bool = False,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.delta = delta
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.method = method
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> APCGRegressor:
        """Train.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features, dense or sparse, float32 or float64. Not copied if it is CSR or
            C-ordered.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            A number for each sample, or a row of them.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative numbers; integers equal repetition of rows.

        Returns
        -------
        self
        """
        X, labels, weights = self._validated(X, y, sample_weight)
        plan = self._plan(X, labels, weights, self.alpha)
        self._finish(plan, self._starts(plan), Task.root(self, 1, X, y, weights))
        return self
