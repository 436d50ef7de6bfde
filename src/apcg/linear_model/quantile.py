"""`QuantileRegressor`: the pinball loss, by interior points in place of a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .. import losses
from .._base.validation import is_sparse
from ..estimators.linear import Plan
from ..problems.erm import ERM
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, Gap

#: There is no tol: the answer is that of a linear program, to about its digits.
GAP = Gap(usual=1e-9, least=1e-9)
#: Interior points take 10 to 60 steps; a factor of theirs counts as several passes.
PASSES = 10_000


class QuantileRegressor(Certified, theirs.QuantileRegressor):
    """scikit-learn's `QuantileRegressor` by the solvers of apcg, to a certified gap.

    `solver` and `solver_options` have no influence on the answer; what a solver of scikit-learn
    does not support is refused as there. Where several weights are optimal, these need not be the
    vertex that the simplex method ends at.

    Parameters and attributes are those of `sklearn.linear_model.QuantileRegressor`, and
    these.

    Attributes
    ----------
    duality_gap_ : float
        How far the objective may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import QuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> QuantileRegressor(quantile=0.8, alpha=0.01).fit(X, y).status_.code
    'converged'
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuantileRegressor:
        """Train, as `sklearn.linear_model.QuantileRegressor.fit` does."""
        X, y = validate_data(
            self, X, y, accept_sparse=["csc", "csr", "coo"], y_numeric=True, multi_output=False
        )
        _check_solver(self.solver, is_sparse(X))
        answers = Answers()
        weights, _ = private.sample_weights(sample_weight, X)
        y = np.asarray(y, dtype=np.float64)
        problem = ERM(
            X, y, losses.Pinball(self.quantile), "l1", self.alpha, sample_weight=weights,
            intercept=self.fit_intercept,
        )  # fmt: skip
        plan = Plan([problem], ["regression"], lambda found: {})
        (found,) = answers.solve(plan, 1e-4, PASSES, gap=GAP)
        self.coef_ = found.w
        self.intercept_ = np.float64(found.intercept) if self.fit_intercept else 0.0
        self.n_iter_ = max(found.epochs, 1)
        answers.keep(self)
        return self


def _check_solver(solver: str, sparse: bool) -> None:
    """scikit-learn's errors about its solvers."""
    if solver == "interior-point":
        raise ValueError(f"Solver {solver} is not anymore available in SciPy >= 1.11.0.")
    if sparse and solver not in ("highs", "highs-ds", "highs-ipm"):
        raise ValueError(
            f"Solver {solver} does not support sparse X. Use solver 'highs' for example."
        )
