"""`LinearSVC`, `LinearSVR`, and the problem of LIBLINEAR, whose intercept has a penalty.

    minimize  (1/2)|w|^2 + (1/2) v^2 + C sum_i s_i phi(y_i, a_i' w + v intercept_scaling)

which is that of `apcg.ERM` with one more feature, the constant `intercept_scaling`, and
alpha = 1/(C sum_i s_i); with L1 |w|_1 + |v| takes the place of the squares. That feature is stored
nowhere, unless X is small or the penalty is L1, whose methods go by stored columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import losses
from .._base.validation import Index, Vector, floats, is_sparse
from ..data.check import by_row
from ..estimators.linear import Plan
from ..problems.erm import ERM
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, dense_if_tiny, gap_for, iterations

#: A dense X of so many numbers, 8 MB, is copied to have one more column: what is made for rows of
#: few features (`run.small`) reads one array.
COPIED = 2**20

#: Names of losses: scikit-learn's, ours
LOSSES = {"logistic_regression": "logistic", "hinge": "hinge", "squared_hinge": "squared_hinge"}


class LinearSVC(Certified, theirs.LinearSVC):
    """scikit-learn's `LinearSVC` by the solvers of apcg, to a certified gap.

    The problem is LIBLINEAR's: the intercept is penalised as one more coefficient. For an intercept
    without penalty take `apcg.APCGClassifier`. `dual` has no influence on the answer.

    Parameters and attributes are those of `sklearn.svm.LinearSVC`, with these more.

    Attributes
    ----------
    duality_gap_ : float, or array of shape (n_classes,)
        How far the objective, over C sum_i s_i, may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from apcg.linear_model import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> [s.code for s in model.status_]
    ['converged', 'converged', 'converged']
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Train, as `sklearn.svm.LinearSVC.fit` does."""
        answers = Answers("liblinear")
        solver = partial(fit_liblinear, answers)
        private.rebound(theirs.LinearSVC.fit, _fit_liblinear=solver)(self, X, y, sample_weight)
        answers.keep(self)
        return self


class LinearSVR(Certified, theirs.LinearSVR):
    """scikit-learn's `LinearSVR` by the solvers of apcg, to a certified gap.

    The problem is LIBLINEAR's: the intercept is penalised as one more coefficient. For an intercept
    without penalty take `apcg.APCGRegressor`. `dual` has no influence on the answer. With
    epsilon < 0, which is another loss, scikit-learn's solver is called.

    Parameters and attributes are those of `sklearn.svm.LinearSVR`, with these more.

    Attributes
    ----------
    duality_gap_ : float
        How far the objective, over C sum_i s_i, may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> LinearSVR(epsilon=1.0).fit(X, y).status_.code
    'converged'
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Train, as `sklearn.svm.LinearSVR.fit` does."""
        answers = Answers("liblinear")
        solver = partial(fit_liblinear, answers)
        private.rebound(theirs.LinearSVR.fit, _fit_liblinear=solver)(self, X, y, sample_weight)
        answers.keep(self)
        return self


def fit_liblinear(
    answers: Answers,
    X: Any,
    y: Any,
    C: float,
    fit_intercept: bool,
    intercept_scaling: float,
    class_weight: Any,
    penalty: str,
    dual: bool,
    verbose: int,
    max_iter: int,
    tol: float,
    random_state: Any = None,
    multi_class: str = "ovr",
    loss: str = "logistic_regression",
    epsilon: float = 0.1,
    sample_weight: Any = None,
) -> tuple[Any, Any, Any]:
    """scikit-learn's `_fit_liblinear`: coefficients, intercepts, and passes of each problem."""
    regression = loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
    squared = loss == "squared_epsilon_insensitive"
    weights, total = private.sample_weights(sample_weight, X)
    target = None if regression else ClassTarget.of(y, class_weight, weights)
    private.liblinear_solver(multi_class, penalty, loss, dual)
    if regression and epsilon < 0:
        answers.not_ours("a loss with epsilon < 0")
        return tuple(
            private.their_liblinear(
                X, y, C, fit_intercept, intercept_scaling, class_weight, penalty, dual, verbose,
                max_iter, tol, random_state, multi_class, loss, epsilon, sample_weight,
            )
        )  # fmt: skip
    samples = _with_constant(X, intercept_scaling, penalty) if fit_intercept else X
    C = float(floats(C, "C"))
    if target is None:
        made = losses.SquaredEpsilonInsensitive if squared else losses.EpsilonInsensitive
        kind = made(epsilon)
        y = np.asarray(y, dtype=np.float64)
        problem = ERM(samples, y, kind, "l2", 1 / (C * total), sample_weight=weights)
        plan = Plan([problem], ["regression"], _attributes)
    else:
        joint = multi_class == "crammer_singer"
        plan = _joint(samples, target, C) if joint else _apart(samples, target, loss, penalty, C)
    found = answers.solve(plan, tol, max_iter, random_state, gap=gap_for(plan.problems[0]))
    coef = np.vstack([np.atleast_2d(r.w.T) for r in found])
    passes = np.array(iterations(found, max_iter), dtype=np.int32)
    if not fit_intercept:
        return coef, 0.0, passes
    return np.ascontiguousarray(coef[:, :-1]), intercept_scaling * coef[:, -1], passes


def _with_constant(X: Any, value: float, penalty: str) -> Any:
    """X with one more column that has this value everywhere."""
    X = dense_if_tiny(X)
    size, sparse = X.shape[0] * X.shape[1], is_sparse(X)
    if penalty != "l1" and (sparse or size > COPIED):
        return by_row(X, "X").bordered(value)
    if sparse:
        constant = sp.csr_matrix(np.full((X.shape[0], 1), value, dtype=X.dtype))
        return sp.hstack([X, constant], format="csr")
    return np.column_stack([X, np.full(X.shape[0], value, dtype=X.dtype)])


@dataclass(frozen=True)
class ClassTarget:
    """The class of each sample, by number, and the weights of samples and of classes, if any."""

    codes: Index
    K: int
    samples: Vector | None
    classes: Vector | None

    @classmethod
    def of(cls, y: Any, class_weight: Any, weights: Vector | None) -> ClassTarget:
        """From what LinearSVC was given."""
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {classes[0]!r}"
            )
        each = None
        if class_weight is not None:
            each = private.class_weights(class_weight, classes, y, weights)
        return cls(codes, len(classes), weights, each)

    def weights(self, of: Sequence[int]) -> tuple[Vector | None, float]:
        """The weights of the samples, times those of some classes; and the sum."""
        if self.classes is None:
            found = self.samples
        else:
            each = np.where(np.isin(np.arange(self.K), of), self.classes, 1.0)[self.codes]
            found = each if self.samples is None else each * self.samples
        return found, float(self.codes.size if found is None else found.sum())


def _joint(X: Any, target: ClassTarget, C: float) -> Plan:
    """The loss of Crammer and Singer: one problem over all classes."""
    weights, total = target.weights(range(target.K))
    loss = losses.MulticlassHinge(0.0, target.K)
    problem = ERM(X, target.codes, loss, "l2", 1 / (C * total), sample_weight=weights)
    return Plan([problem], ["all classes"], _attributes)


def _apart(X: Any, target: ClassTarget, loss: str, penalty: str, C: float) -> Plan:
    """One problem for two classes, else one against the rest for each.

    The weight of a class is that of its own samples in its own problem: LIBLINEAR gives the rest
    the weight 1.
    """
    positive = [1] if target.K == 2 else range(target.K)
    problems: list[ERM] = []
    for k in positive:
        weights, total = target.weights([0, 1] if target.K == 2 else [k])
        y, alpha = np.where(target.codes == k, 1.0, -1.0), 1 / (C * total)
        if problems:
            problems.append(problems[0].with_labels(y, weights).with_alpha(alpha))
        else:
            problems.append(ERM(X, y, LOSSES[loss], penalty, alpha, sample_weight=weights))
    names = [f"class {k}" for k in positive]
    return Plan(problems, names, _attributes, alike=target.classes is None)


def _attributes(answers: Sequence[Any]) -> dict[str, Any]:
    return {"coef_": np.vstack([np.atleast_2d(r.w.T) for r in answers])}
