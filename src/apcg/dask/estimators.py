"""`APCGClassifier` and `APCGRegressor` for dask collections: as those of apcg, on a cluster."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import estimators, losses
from .._base import validation as check
from ..certify.result import Solution
from ..estimators.linear import certificates, find_loss
from ..methods.distributed.problem import labels_of, sharded
from .chunks import as_array
from .problem import ERM, engine_for, limits_of, solved

#: Parameters of the estimators in memory that have a meaning here too.
_SHARED = ("loss", "penalty", "alpha", "l1_ratio", "positive", "fit_intercept", "tol", "max_epochs",
           "random_state", "verbose")  # fmt: skip


class _Distributed(BaseEstimator):
    """What both share: the solves, what is known afterwards, predictions chunk by chunk."""

    _local: Any
    _own: tuple[str, ...]

    def _solve_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[Solution], Any]:
        """The answer of each problem, and what was solved: classes and mode."""
        local = self._unfitted()
        options = {
            "penalty": self.penalty, "alpha": self.alpha, "l1_ratio": self.l1_ratio,
            "positive": self.positive, "intercept": self.fit_intercept,
        }  # fmt: skip
        limits = limits_of(self.tol, check.integer(self.max_epochs, "max_epochs", low=1))
        problem = ERM(X, y, sample_weight=sample_weight)
        where = self.client, self.shards, self.shuffle, self.random_state, self.timeout
        with engine_for(problem, *where) as (engine, seed):
            asked, about = self._problems(local, engine)
            problems = [sharded(engine, **each, **options) for each in asked]
            more = seed, self.shuffle, self.verbose
            return [solved(engine, made, limits, *more) for made in problems], about

    def _problems(self, local: Any, engine: Any) -> tuple[list[dict[str, Any]], Any]:
        raise NotImplementedError

    def _unfitted(self) -> Any:
        names = (*_SHARED, *self._own)
        return self._local(**{name: getattr(self, name) for name in names})

    def _keep(self, X: Any, answers: list[Solution]) -> None:
        for name, value in certificates(answers, "search").items():
            setattr(self, name, value)
        self.n_iter_ = max(r.epochs for r in answers)
        self.n_features_in_ = X.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        if any(r.status.code == "interrupted" for r in answers):
            raise KeyboardInterrupt  # the attributes are those of the best points so far
        missed = [r.status for r in answers if not r.converged]
        if missed:
            warnings.warn(f"{type(self).__name__}: {missed[0]}", ConvergenceWarning, stacklevel=3)

    def to_local(self) -> Any:
        """The estimator of apcg with this answer, for data in memory; its `dual_coef_` is empty."""
        check_is_fitted(self)
        local = self._unfitted()
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(local, name, value)
        local.dual_coef_ = np.empty(0) if self.coef_.ndim == 1 else np.empty((len(self.coef_), 0))
        return local

    def _lazily(self, name: str, X: Any, dtype: Any, columns: int = 0) -> Any:
        """A method of the local estimator on each chunk; at once if X is in memory."""
        local = self.to_local()
        if not (hasattr(X, "dask") or hasattr(X, "to_dask_array")):
            return getattr(local, name)(X)
        if hasattr(local, "feature_names_in_"):
            names = list(local.feature_names_in_)
            if hasattr(X, "columns") and list(X.columns) != names:
                raise ValueError(
                    f"X has the columns {list(X.columns)}, expected those of fit in their order, "
                    f"X[{names}]."
                )
            del local.feature_names_in_  # chunks are arrays, without names
        X = X.to_dask_array() if hasattr(X, "to_dask_array") else as_array(X, "X", 2)
        shape: dict[str, Any] = {"drop_axis": 1}
        if columns:
            shape = {"chunks": (X.chunks[0], (columns,))}
        meta = np.empty((0, columns) if columns else 0, dtype=dtype)
        return X.map_blocks(_Call(local, name), dtype=dtype, meta=meta, **shape)


class _Call:
    """A method of an estimator by name: a function that is pickled with the estimator."""

    def __init__(self, local: Any, name: str) -> None:
        self._local, self.__name__ = local, f"apcg-{name}"

    def __call__(self, X: Any) -> Any:
        return getattr(self._local, self.__name__.removeprefix("apcg-"))(X)


class APCGClassifier(_Distributed):
    """A linear classifier on a Dask cluster, trained to a certified distance from the optimum.

    Parameters
    ----------
    client : Client, optional
        The Dask client; None is the current one.
    shards, shuffle, timeout
        As in `apcg.dask.solve`.
    loss, penalty, alpha, l1_ratio, positive, gamma, multi_class, fit_intercept, tol, max_epochs
        As in `apcg.APCGClassifier`, as are random_state and verbose.

    Notes
    -----
    Attributes are those of `apcg.APCGClassifier`, without `dual_coef_`: x stays with the rows.
    """

    _local, _own = estimators.APCGClassifier, ("gamma", "multi_class")

    def __init__(
        self, loss: Any = "smoothed_hinge", *, penalty: Any = "l2", alpha: float = 1e-4,
        l1_ratio: float = 0.5, positive: bool = False, gamma: float = 1.0,
        multi_class: str = "auto", fit_intercept: bool = True, tol: float = 1e-6,
        max_epochs: int = 1000, random_state: Any = None, verbose: int = 0, client: Any = None,
        shards: int | None = None, shuffle: bool = True, timeout: float = 60.0,
    ) -> None:  # fmt: skip
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.gamma = gamma
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.verbose = verbose
        self.client = client
        self.shards = shards
        self.shuffle = shuffle
        self.timeout = timeout

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> APCGClassifier:
        """Train on dask arrays or dataframes with the same chunks of rows."""
        answers, (classes, mode) = self._solve_all(X, y, sample_weight)
        self.classes_, self.multi_class_ = classes, mode
        joint = answers[0].w.ndim == 2
        self.coef_ = np.array(answers[0].w.T if joint else [r.w for r in answers])
        b = answers[0].intercept if joint else [r.intercept for r in answers]
        self.intercept_ = np.array(np.broadcast_to(b, len(self.coef_)), dtype=float)
        self._keep(X, answers)
        return self

    def _problems(self, local: Any, engine: Any) -> tuple[list[dict[str, Any]], Any]:
        classes = labels_of(engine)
        if len(classes) < 2:
            raise ValueError(f"y has only one class ({classes[0]}): there is nothing to separate.")
        loss = find_loss(self.loss, losses.names(margin=True), gamma=self.gamma)
        joint = local._joint_loss(loss, len(classes))
        if joint is not None:
            mode = "multinomial" if isinstance(joint, losses.Multinomial) else "crammer_singer"
            return [{"loss": joint, "classes": classes}], (classes, mode)
        against = [1] if len(classes) == 2 else range(len(classes))
        made = [{"loss": loss, "classes": classes, "against": k} for k in against]
        return made, (classes, "ovr")

    def decision_function(self, X: Any) -> Any:
        """a' w + b for each row, and for each class if there are more than two: a dask array."""
        columns = len(self.coef_) if len(self.coef_) > 1 else 0
        return self._lazily("decision_function", X, np.float64, columns)

    def predict(self, X: Any) -> Any:
        """The class of each row: a dask array."""
        return self._lazily("predict", X, self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes, for loss="logistic": a dask array."""
        self.to_local().predict_proba  # noqa: B018 - an error says which loss has them
        return self._lazily("predict_proba", X, np.float64, len(self.classes_))

    def score(self, X: Any, y: Any) -> Any:
        """The accuracy: a dask number."""
        return (self.predict(X) == _values(y)).mean()


class APCGRegressor(_Distributed):
    """A linear regression on a Dask cluster, trained to a certified distance from the optimum.

    Parameters
    ----------
    client : Client, optional
        The Dask client; None is the current one.
    shards, shuffle, timeout
        As in `apcg.dask.solve`.
    loss, penalty, alpha, l1_ratio, positive, delta, epsilon, fit_intercept, tol, max_epochs
        As in `apcg.APCGRegressor`, as are random_state and verbose.

    Notes
    -----
    Attributes are those of `apcg.APCGRegressor`, without `dual_coef_`: x stays with the rows.
    """

    _local, _own = estimators.APCGRegressor, ("delta", "epsilon")

    def __init__(
        self, loss: Any = "squared", *, penalty: Any = "l2", alpha: float = 1e-4,
        l1_ratio: float = 0.5, positive: bool = False, delta: float = 1.35, epsilon: float = 0.1,
        fit_intercept: bool = True, tol: float = 1e-6, max_epochs: int = 1000,
        random_state: Any = None, verbose: int = 0, client: Any = None, shards: int | None = None,
        shuffle: bool = True, timeout: float = 60.0,
    ) -> None:  # fmt: skip
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
        self.random_state = random_state
        self.verbose = verbose
        self.client = client
        self.shards = shards
        self.shuffle = shuffle
        self.timeout = timeout

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> APCGRegressor:
        """Train on dask arrays or dataframes with the same chunks of rows."""
        (r,), _ = self._solve_all(X, y, sample_weight)
        self.coef_, self.intercept_ = r.w, np.atleast_1d(np.float64(r.intercept))
        self._keep(X, [r])
        return self

    def _problems(self, local: Any, engine: Any) -> tuple[list[dict[str, Any]], Any]:
        known = losses.names(margin=False)
        return [{"loss": find_loss(self.loss, known, delta=self.delta, epsilon=self.epsilon)}], None

    def predict(self, X: Any) -> Any:
        """a' w + b for each row: a dask array."""
        return self._lazily("predict", X, np.float64)

    def score(self, X: Any, y: Any) -> Any:
        """R^2: a dask number."""
        y = _values(y)
        return 1 - ((y - self.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def _values(y: Any) -> Any:
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y
