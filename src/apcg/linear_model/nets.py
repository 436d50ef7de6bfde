"""`ElasticNet`, `Lasso` and their multi-task forms."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from .._base.validation import Vector
from .._base.weights import mean
from ..certify.points import Start
from ..estimators.linear import Plan, start_at
from ..problems.erm import ERM
from ..run.small import is_small
from . import _sklearn as private
from ._sklearn import theirs
from .answers import PASSES, Answers, Certified
from .paths import SMALL, enet_path, gap_of, penalty_of

FLOATS = [np.float64, np.float32]


class ElasticNet(Certified, theirs.ElasticNet):
    """scikit-learn's `ElasticNet` by the solvers of apcg, to a certified gap.

    `precompute`, `selection` and `copy_X` have no influence on the answer. Without a penalty
    (alpha=0) it is the solution of least norm.

    Parameters and attributes are those of `sklearn.linear_model.ElasticNet`, with these more.

    Attributes
    ----------
    duality_gap_ : float, or array of shape (n_targets,)
        `dual_gap_` by the name it has elsewhere in apcg.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ElasticNet(alpha=0.01).fit(X, y).status_.code
    'converged'
    """

    path = staticmethod(enet_path)

    @private.validated_fit
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True
    ) -> ElasticNet:
        """Train, as `sklearn.linear_model.ElasticNet.fit` does."""
        answers = Answers()
        if check_input:
            X, y = validate_data(
                self, X, y, accept_sparse=["csr", "csc"], dtype=FLOATS,
                accept_large_sparse=False, multi_output=True, y_numeric=True,
            )  # fmt: skip
            if not isinstance(y, np.ndarray) or y.dtype != X.dtype:  # a check more takes its time
                y = check_array(y, dtype=X.dtype.type, ensure_2d=False)
        if isinstance(self.precompute, np.ndarray):
            private.check_gram(X, y, self.precompute, self.fit_intercept, check_input)
        columns = [y] if y.ndim == 1 else list(y.T)
        _fit(self, X, y, columns, sample_weight, answers, self.positive)
        answers.keep(self)
        return self


class Lasso(ElasticNet, theirs.Lasso):
    """scikit-learn's `Lasso` by the solvers of apcg, to a certified gap: see `ElasticNet`.

    Parameters and attributes are those of `sklearn.linear_model.Lasso`, and `duality_gap_`,
    `status_` and `trace_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Lasso(alpha=0.1).fit(X, y).status_.code
    'converged'
    """


class MultiTaskElasticNet(Certified, theirs.MultiTaskElasticNet):
    """scikit-learn's `MultiTaskElasticNet` by the solvers of apcg, to a certified gap.

    See `ElasticNet`. Parameters and attributes are those of
    `sklearn.linear_model.MultiTaskElasticNet`, and `duality_gap_`, `status_` and `trace_`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.linear_model import MultiTaskElasticNet
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] + X[:, 2:4]
    >>> MultiTaskElasticNet(alpha=0.1, l1_ratio=1).fit(X, Y).coef_.shape
    (2, 5)
    """

    path = staticmethod(enet_path)

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultiTaskElasticNet:
        """Train, as `sklearn.linear_model.MultiTaskElasticNet.fit` does."""
        answers = Answers()
        check_X = {"accept_sparse": ["csr", "csc"], "dtype": FLOATS,
                   "accept_large_sparse": False}  # fmt: skip
        check_y = {"dtype": FLOATS, "ensure_2d": False}
        X, y = validate_data(self, X, y, validate_separately=(check_X, check_y))
        check_consistent_length(X, y)
        if y.ndim == 1:
            name = "ElasticNet" if hasattr(self, "l1_ratio") else "Lasso"
            raise ValueError(f"For mono-task outputs, use {name}")
        _fit(self, X, y, [y], sample_weight, answers)
        off = (y - mean(y)).reshape(-1)
        self.eps_ = self.tol * float(np.dot(off, off))
        answers.keep(self)
        return self


class MultiTaskLasso(MultiTaskElasticNet, theirs.MultiTaskLasso):
    """scikit-learn's `MultiTaskLasso` by the solvers of apcg, to a certified gap.

    See `ElasticNet`. Parameters and attributes are those of `sklearn.linear_model.MultiTaskLasso`,
    and `duality_gap_`, `status_` and `trace_`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.linear_model import MultiTaskLasso
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> Y = X[:, :2] + X[:, 2:4]
    >>> MultiTaskLasso(alpha=0.1).fit(X, Y).coef_.shape
    (2, 5)
    """


def _fit(
    model: Any,
    X: Any,
    y: Any,
    targets: Sequence[Any],
    sample_weight: Any,
    answers: Answers,
    positive: bool = False,
) -> None:
    """Solve for each target, a column or a y of several, and set what was found."""
    if isinstance(sample_weight, numbers.Number):
        sample_weight = None
    weights, _ = private.sample_weights(sample_weight, X)
    joint = len(targets) == 1 and y.ndim == 2 and y.shape[1] > 1
    columns, offsets = [], []
    for target in targets:
        column = np.asarray(target, dtype=np.float64)
        column = column if joint else column.ravel()
        offset = mean(column, weights) if model.fit_intercept else 0.0
        columns.append(np.ascontiguousarray(column - offset))
        offsets.append(offset)
    penalty = penalty_of(model.l1_ratio, y.shape[1] if joint else 1) if model.alpha else None
    first = ERM(
        X, columns[0], "squared", penalty, model.alpha, sample_weight=weights,
        l1_ratio=model.l1_ratio, positive=positive, intercept=model.fit_intercept,
    )  # fmt: skip
    problems = [first, *(first.with_labels(c, weights) for c in columns[1:])]
    describe = partial(_attributes, model, X, y, np.hstack(offsets), joint)
    plan = Plan(problems, [f"target {k}" for k in range(len(problems))], describe)
    starts = _starts(model, problems, offsets)
    cold = all(start is None for start in starts)
    gap = SMALL if cold and is_small(first) else gap_of(first)
    found = answers.solve(plan, model.tol, model.max_iter, model.random_state, starts, gap)
    for name, value in describe(found).items():
        setattr(model, name, value)
    most = PASSES if model.max_iter is None else model.max_iter
    passes = [min(r.epochs, most) for r in found]  # 0 after a warm start at the optimum
    # a gap of zero is one below the rounding of P
    gaps = np.array([max(r.gap, np.spacing(r.primal)) for r in found], dtype=X.dtype)
    one = len(found) == 1
    model.n_iter_, model.dual_gap_ = (passes[0], gaps[0]) if one else (passes, gaps)
    if isinstance(model, theirs.MultiTaskElasticNet):
        model.dual_gap_ = float(gaps[0])


def _starts(model: Any, problems: Sequence[ERM], offsets: Sequence[Any]) -> list[Start | None]:
    """Where warm starts begin."""
    last = getattr(model, "coef_", None) if model.warm_start else None
    if last is None:
        return [None] * len(problems)
    K = problems[0].K
    coef = np.asarray(np.atleast_2d(last), dtype=np.float64)
    if coef.shape != (K if K > 1 else len(problems), problems[0].d):
        raise ValueError(
            f"warm_start=True goes on from coef_ of shape {last.shape}, which is not that of these "
            "data; set warm_start=False, or fit a new model."
        )
    b = np.zeros(len(coef)) + getattr(model, "intercept_", 0.0)
    if K > 1:
        return [start_at(problems[0], np.ascontiguousarray(coef.T), b - offsets[0])]
    return [
        start_at(p, w.copy(), float(b_k - offset))
        for p, w, b_k, offset in zip(problems, coef, b, offsets, strict=True)
    ]


def _attributes(
    model: Any, X: Any, y: Any, offset: Vector, joint: bool, answers: Sequence[Any]
) -> dict[str, Any]:
    """coef_ and intercept_, in the shapes that scikit-learn gives them."""
    coef = np.vstack([np.atleast_2d(r.w.T) for r in answers]).astype(X.dtype, copy=False)
    multitask = isinstance(model, theirs.MultiTaskElasticNet)
    if len(coef) == 1 and not multitask:
        coef = coef[0]
    coef = np.asfortranarray(coef) if multitask else coef
    if not model.fit_intercept:
        return {"coef_": coef, "intercept_": 0.0}
    b = np.hstack([np.atleast_1d(r.intercept) for r in answers]) + offset
    b = b.astype(X.dtype, copy=False)
    return {"coef_": coef, "intercept_": b if y.ndim == 2 else b[0]}
