"""`Ridge` and `RidgeClassifier`.

    minimize  sum_i s_i (a_i' w + b - y_i)^2 + alpha |w|^2

is twice the sum of the weights S times the problem of `apcg.ERM` with alpha/S.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._base.validation import Vector, floats, is_sparse
from .._base.weights import mean
from ..estimators.linear import Plan
from ..problems.erm import ERM
from . import _sklearn as private
from ._sklearn import theirs
from .answers import FEW, FINE, Answers, Certified, Gap

#: More digits cost nothing where the solution is direct: where X is dense, or has few features.
GAP = Gap(usual=1e-15)
#: max_iter=None
PASSES = 10_000
#: Solvers of scikit-learn that count iterations
COUNTED = ("sag", "saga", "lsqr")


class RidgeFit(private.BaseRidge):
    """`fit` on valid data. It comes after scikit-learn's class, whose `fit` calls this one."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train."""
        self.solver_ = _solver(self, is_sparse(X))
        answers = Answers()
        weights, total = private.sample_weights(sample_weight, X)
        alphas = alphas_of(self.alpha, 1 if y.ndim == 1 else y.shape[1])
        with np.errstate(over="ignore"):  # ERM refuses what overflows
            alphas = alphas / total
        _solve(self, X, y, weights, alphas, answers)
        answers.keep(self)
        return self


class Ridge(Certified, theirs.Ridge, RidgeFit):
    """scikit-learn's `Ridge` by the solvers of apcg, to a certified gap.

    `solver` and `copy_X` have no influence on the answer; what a solver of scikit-learn does not
    support is refused as there. Without a penalty (alpha=0) it is the solution of least norm.

    Parameters and attributes are those of `sklearn.linear_model.Ridge`, with these more.

    Attributes
    ----------
    duality_gap_ : float, or array of shape (n_targets,) if alpha has several values
        How far the objective, over 2 n_samples (or 2 times the sum of the weights), may be from
        the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ridge().fit(X, y).status_.code
    'converged'
    """


class RidgeClassifier(Certified, theirs.RidgeClassifier, RidgeFit):
    """scikit-learn's `RidgeClassifier` by the solvers of apcg, to a certified gap.

    See `Ridge`, of which it is the one of labels -1 and 1. Parameters and attributes are those of
    `sklearn.linear_model.RidgeClassifier`, and `duality_gap_`, `status_` and `trace_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from apcg.linear_model import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RidgeClassifier().fit(X, y).score(X, y) > 0.8
    True
    """


def _solver(model: Any, sparse: bool) -> str:
    """The name that scikit-learn would give to its solver, or its error."""
    solver: str = model.solver
    if solver == "lbfgs" and not model.positive:
        raise ValueError(
            "'lbfgs' solver can be used only when positive=True. Please use another solver."
        )
    if model.positive:
        if solver not in ("auto", "lbfgs"):
            raise ValueError(
                f"solver='{solver}' does not support positive fitting. Please set the solver to "
                "'auto' or 'lbfgs', or set `positive=False`"
            )
        return "lbfgs"
    if sparse and model.fit_intercept:
        if solver not in ("auto", "lsqr", "sag", "sparse_cg"):
            raise ValueError(
                f"solver='{solver}' does not support fitting the intercept on sparse data. Please "
                "set the solver to 'auto' or 'lsqr', 'sparse_cg', 'sag', 'lbfgs' or set "
                "`fit_intercept=False`"
            )
    elif sparse and solver == "svd":
        raise TypeError("SVD solver does not support sparse inputs currently")
    if solver != "auto":
        return solver
    return "sparse_cg" if sparse else "cholesky"


def alphas_of(alpha: Any, n_targets: int) -> Vector:
    """One alpha, or one for each target."""
    alphas = np.ravel(floats(alpha, "alpha"))
    if alphas.size not in (1, n_targets):
        raise ValueError(
            "Number of targets and number of penalties do not correspond: "
            f"{alphas.size} != {n_targets}"
        )
    return alphas[:1] if np.all(alphas == alphas[0]) else alphas


def _solve(
    model: Any, X: Any, y: Any, weights: Vector | None, alphas: Vector, answers: Answers
) -> None:
    """Solve for all targets at once, or for each if each has an alpha; set what was found."""
    plan = ridge_plan(model.fit_intercept, model.positive, X, y, weights, alphas)
    passes = PASSES if model.max_iter is None else model.max_iter
    gap = FINE if is_sparse(X) and X.shape[1] > FEW else GAP
    found = answers.solve(plan, model.tol, passes, model.random_state, gap=gap)
    for name, value in plan.describe(found).items():
        setattr(model, name, value)
    model.n_iter_ = None
    if model.solver_ in COUNTED:
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        model.n_iter_ = np.full(n_targets, max(r.epochs for r in found), dtype=np.int32)


def ridge_plan(
    intercept: bool, positive: bool, X: Any, y: Any, weights: Vector | None, alphas: Vector
) -> Plan:
    """The problem of all targets, or one for each if each has an alpha; the labels are centred."""
    target = np.asarray(y, dtype=np.float64)
    offset = mean(target, weights) if intercept else 0.0
    target = target - offset
    if y.ndim == 2 and (y.shape[1] == 1 or alphas.size > 1):
        columns = list(np.ascontiguousarray(target.T))
    else:
        columns = [target]
    some = float(alphas.max()) or 1.0
    first = ERM(
        X, columns[0], "squared", "l2", some, sample_weight=weights, positive=positive,
        intercept=intercept,
    )  # fmt: skip
    problems = [first.with_alpha(float(alphas[0]))]
    for column, alpha in zip(columns[1:], alphas[1:], strict=True):
        problems.append(first.with_labels(column, weights).with_alpha(float(alpha)))
    dtype = np.result_type(X.dtype, np.float32)  # RidgeClassifier is given integers as they are
    describe = partial(_attributes, offset, y.ndim, dtype, intercept)
    return Plan(problems, [f"target {k}" for k in range(len(problems))], describe)


def _attributes(
    offset: Any, dimensions: int, dtype: Any, fit_intercept: bool, answers: Sequence[Any]
) -> dict[str, Any]:
    """coef_ and intercept_, in the shapes that scikit-learn gives them."""
    coef = np.vstack([np.atleast_2d(r.w.T) for r in answers]).astype(dtype, copy=False)
    coef = coef[0] if len(coef) == 1 else np.ascontiguousarray(coef)
    if not fit_intercept:
        return {"coef_": coef, "intercept_": 0.0}
    b = np.hstack([np.atleast_1d(r.intercept) for r in answers]) + offset
    b = b.astype(dtype, copy=False)
    return {"coef_": coef, "intercept_": b if dimensions == 2 else b[0]}
