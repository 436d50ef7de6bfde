"""`RidgeCV` and `RidgeClassifierCV`: leave-one-out by one eigendecomposition, folds by a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import validate_data

from .._base.types import Array
from .._base.validation import Vector, is_sparse
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, direct
from .ridge import GAP, Ridge, RidgeClassifier, alphas_of, ridge_plan

#: What a fitted model has of its certificate
CERTIFICATE = ("duality_gap_", "status_", "trace_")


class SearchFit(private.BaseRidgeCV):
    """`fit` of the CV forms, with our estimators. It comes after scikit-learn's class."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Train."""
        made: list[Any] = []

        def kept(kind: Callable[..., Any]) -> Callable[..., Any]:
            def make(*args: Any, **kwargs: Any) -> Any:
                made.append(kind(*args, **kwargs))
                return made[-1]

            return make

        names = {"Ridge": Ridge, "RidgeClassifier": RidgeClassifier,
                 "GridSearchCV": kept(GridSearchCV), "_RidgeGCV": kept(LeaveOneOut)}  # fmt: skip
        fit = private.rebound(private.BaseRidgeCV.fit, **names)
        fit(self, X, y, sample_weight, **params)
        best = getattr(made[0], "best_estimator_", made[0])
        for name in CERTIFICATE:
            setattr(self, name, getattr(best, name))
        return self


class RidgeCV(Certified, theirs.RidgeCV, SearchFit):
    """scikit-learn's `RidgeCV` by the solvers of apcg; the final fit is certified.

    With cv=None, leave-one-out, one eigendecomposition gives the errors for all alphas. `gcv_mode`
    has no influence on the answer. Parameters and attributes are those of
    `sklearn.linear_model.RidgeCV`, and `duality_gap_`, `status_` and `trace_` of the final fit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[0.1, 1.0]).fit(X, y)
    >>> model.alpha_, model.status_.code
    (0.1, 'converged')
    """


class RidgeClassifierCV(Certified, theirs.RidgeClassifierCV, SearchFit):
    """scikit-learn's `RidgeClassifierCV` by the solvers of apcg; the final fit is certified.

    See `RidgeCV`. Parameters and attributes are those of `sklearn.linear_model.RidgeClassifierCV`,
    and `duality_gap_`, `status_` and `trace_` of the final fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from apcg.linear_model import RidgeClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> RidgeClassifierCV(alphas=[0.1, 1.0]).fit(X, y).score(X, y) > 0.8
    True
    """


class LeaveOneOut(private.RidgeGCV):
    """What RidgeCV calls with cv=None: the best alpha by leave-one-out, and `Ridge` with that."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, score_params: Any = None) -> Any:
        """Train."""
        X, y = validate_data(
            self, X, y, accept_sparse=["csr", "csc", "coo"], dtype=[np.float64, np.float32],
            multi_output=True, y_numeric=True,
        )  # fmt: skip
        private.check_gcv_mode(X, self.gcv_mode)
        weights, total = private.sample_weights(sample_weight, X)
        errors = Errors(X, y, weights, self.fit_intercept)
        alphas = np.ravel(np.asarray(self.alphas, dtype=np.float64))
        known, scores = [], []
        for alpha in alphas:
            off = errors.at(alpha).reshape(y.shape)
            shown = errors.weighted(off) ** 2 if self.scoring is None else y - off
            known.append(shown.astype(X.dtype, copy=False))
            scores.append(self._scored(shown, y, score_params or {}))
        if self.store_cv_results:
            self.cv_results_ = np.stack(known, axis=-1)
        each = self.alpha_per_target and y.ndim == 2 and y.shape[1] > 1
        best = np.argmax(np.nan_to_num(scores, nan=-np.inf), axis=0 if each else None)
        if each:
            self.alpha_, self.best_score_ = alphas[best], np.max(scores, axis=0)
        else:
            self.alpha_, self.best_score_ = float(alphas[best]), scores[int(best)]
        self._solve(X, y, weights, alphas_of(self.alpha_, errors.c.shape[1]), total, errors)
        return self

    def _solve(
        self, X: Any, y: Any, weights: Vector | None, alphas: Vector, total: float, errors: Errors
    ) -> None:
        """Set the coefficients of these alphas, certified."""
        plan, coef = (
            ridge_plan(self.fit_intercept, False, X, y, weights, alphas / total),
            errors.coefficients(alphas),
        )
        columns = [coef] if plan.problems[0].K > 1 else list(np.ascontiguousarray(coef.T))
        answers = Answers()
        found = [
            direct(p, w, -errors.mean @ w, GAP.least)
            for p, w in zip(plan.problems, columns, strict=True)
        ]
        answers.take(plan.problems, found, GAP.least)
        answers.keep(self)
        for name, value in plan.describe(found).items():
            setattr(self, name, value)

    def _scored(self, shown: Array, y: Array, score_params: dict[str, Any]) -> Any:
        """The score of squared errors, or of predictions if there is a scorer."""
        if self.scoring is None:
            return self._score_without_scorer(shown)
        return self._score(
            predictions=shown, y=y, n_y=1 if y.ndim == 1 else y.shape[1], scorer=self.scoring,
            score_params=score_params,
        )  # fmt: skip


class Errors:
    """How far each sample is from its prediction by the others, for any alpha.

    Let A and c be the rows of X and y times the roots of the weights s, centred if there is an
    intercept. The residuals of ridge regression are r = c - A (A'A + alpha)^-1 A'c, and those
    without sample i, for i, are r_i/(1 - h_i), where h is the diagonal of A (A'A + alpha)^-1 A',
    and s_i/sum(s) more for the intercept.
    """

    def __init__(self, X: Any, y: Array, weights: Vector | None, intercept: bool) -> None:
        n, d = X.shape
        s = np.ones(n) if weights is None else weights
        self.total, self.root, self.intercept = float(s.sum()), np.sqrt(s)[:, None], intercept
        target = np.asarray(y, dtype=np.float64).reshape(n, -1)
        self.c = self.root * (target - (s @ target / self.total if intercept else 0.0))
        self.mean: Vector = s @ X / self.total if intercept else np.zeros(d)
        self.wide, self.sparse = n <= d, is_sparse(X)
        if self.sparse:  # not centred, which would make it dense: A is this - root mean'
            self.A = X.tocsr().astype(np.float64).multiply(self.root).tocsr()
        else:
            self.A = self.root * (np.asarray(X, dtype=np.float64) - self.mean)
        square = self._square()
        if self.wide and intercept:  # the root of s is a null vector; make it the last one
            square += (2 * np.trace(square) or 1.0) / self.total * (self.root * self.root.T)
        values, self.V = np.linalg.eigh(square)
        if self.wide and intercept:
            values, self.V = values[:-1], self.V[:, :-1]
        self.values = np.maximum(values, 0.0)[:, None]
        self.B = self.V if self.wide else self._times(self.V)
        self.squares, self.turned_c = self.B**2, self.B.T @ self.c

    def _square(self) -> Array:
        """AA' or A'A."""
        A = self.A
        made = A @ A.T if self.wide else A.T @ A
        if not self.sparse:
            return np.asarray(made)
        square: Array = made.toarray()
        if not self.wide:
            return square - self.total * np.outer(self.mean, self.mean)
        cross = (A @ self.mean)[:, None] * self.root.T
        flat = float(self.mean @ self.mean) * (self.root * self.root.T)
        found: Array = square - cross - cross.T + flat
        return found

    def _times(self, V: Array) -> Array:
        found: Array = self.A @ V
        return found - self.root * (self.mean @ V) if self.sparse else found

    def _adjoint(self, U: Array) -> Array:
        found: Array = self.A.T @ U
        return found - np.outer(self.mean, self.root[:, 0] @ U) if self.sparse else found

    def at(self, alpha: float) -> Array:
        """For this alpha, an array of shape (n_samples, n_targets)."""
        with np.errstate(all="ignore"):
            if self.wide:  # alpha (AA' + alpha)^-1 is 1 - A (A'A + alpha)^-1 A'
                part = alpha / (self.values + alpha)
                r, left = self.B @ (part * self.turned_c), self.squares @ part
            else:
                part = 1 / (self.values + alpha)
                r, left = self.c - self.B @ (part * self.turned_c), 1 - self.squares @ part
                left -= self.root**2 / self.total if self.intercept else 0.0
            off = r / (left * self.root)
        return np.where(self.root > 0, off, 0.0)

    def coefficients(self, alphas: Vector) -> Array:
        """Those of ridge regression, a column for each target; one alpha, or one for each."""
        made = self.V @ (self.turned_c / (self.values + alphas))
        return np.ascontiguousarray(self._adjoint(made) if self.wide else made)

    def weighted(self, off: Array) -> Array:
        """Errors times the roots of the weights."""
        found: Array = off * (self.root if off.ndim == 2 else self.root[:, 0])
        return found
