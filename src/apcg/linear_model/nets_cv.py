"""`LassoCV`, `ElasticNetCV` and their multi-task forms: scikit-learn's search over our paths."""

from __future__ import annotations

from typing import Any

from ._sklearn import theirs
from .answers import Certified
from .nets import ElasticNet, Lasso, MultiTaskElasticNet, MultiTaskLasso
from .paths import enet_path, lasso_path


class _Search(Certified):
    """The estimator of the final fit, and what it knows."""

    _final: type

    def _get_estimator(self) -> Any:
        """A new estimator, which scikit-learn's `fit` trains with the best alpha."""
        self._best = self._final()
        return self._best

    @property
    def duality_gap_(self) -> Any:
        """How far the objective of the final fit may be from the optimum."""
        return self._best.duality_gap_

    @property
    def status_(self) -> Any:
        """Why the final fit stopped; `status_.code` for programs."""
        return self._best.status_

    @property
    def trace_(self) -> Any:
        """The record of the final fit."""
        return self._best.trace_


class LassoCV(_Search, theirs.LassoCV):
    """scikit-learn's `LassoCV` by the solvers of apcg; the final fit is certified.

    Parameters and attributes are those of `sklearn.linear_model.LassoCV`, and `duality_gap_`,
    `status_` and `trace_`. `precompute`, `selection` and `copy_X` have no influence on the answer.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> LassoCV().fit(X, y).status_.code
    'converged'
    """

    path = staticmethod(lasso_path)
    _final = Lasso


class ElasticNetCV(_Search, theirs.ElasticNetCV):
    """scikit-learn's `ElasticNetCV` by the solvers of apcg: see `LassoCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import ElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ElasticNetCV(l1_ratio=[0.5, 1]).fit(X, y).l1_ratio_ in (0.5, 1)
    True
    """

    path = staticmethod(enet_path)
    _final = ElasticNet


class MultiTaskElasticNetCV(_Search, theirs.MultiTaskElasticNetCV):
    """scikit-learn's `MultiTaskElasticNetCV` by the solvers of apcg: see `LassoCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.linear_model import MultiTaskElasticNetCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] + X[:, 2:4]
    >>> MultiTaskElasticNetCV(cv=3, l1_ratio=1).fit(X, Y).coef_.shape
    (2, 5)
    """

    path = staticmethod(enet_path)
    _final = MultiTaskElasticNet


class MultiTaskLassoCV(_Search, theirs.MultiTaskLassoCV):
    """scikit-learn's `MultiTaskLassoCV` by the solvers of apcg: see `LassoCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.linear_model import MultiTaskLassoCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] + X[:, 2:4]
    >>> MultiTaskLassoCV(cv=3).fit(X, Y).coef_.shape
    (2, 5)
    """

    path = staticmethod(lasso_path)
    _final = MultiTaskLasso
