"""`LogisticRegression` and its CV form: two classes or the softmax; L2, L1 and elastic net."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel

from .._base.validation import Vector, floats
from ..certify.result import Solution
from ..estimators.linear import Plan
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Certified, gap_for, iterations
from .classes import Classes
from .passes import Passes
from .svm import fit_liblinear

#: Where LIBLINEAR's problem is searched for C, one of its iterations is a step of Newton's method
#: with products of its own: so many passes. Folds that end early would be compared by where they
#: are, and so would those whose last digits are missing: the gap is a little below that of a fit.
ITERATION, CLOSER = 20, 0.9


class LogisticRegression(Certified, theirs.LogisticRegression):
    """scikit-learn's `LogisticRegression` by the solvers of apcg, to a certified gap.

    `solver` and `dual` have no influence on the answer but one: solver="liblinear" is LIBLINEAR's
    problem, in which the intercept is penalised as one more coefficient. What a solver of
    scikit-learn does not support is refused as there. Where the classes are separable and there is
    no penalty (C=inf) there is no minimum, and `status_.code` is "no_minimum".

    Parameters and attributes are those of `sklearn.linear_model.LogisticRegression`, and
    these.

    Attributes
    ----------
    duality_gap_ : float
        How far the objective, the mean loss + the penalty over C n_samples (or C times the sum of
        the weights), may be from the optimum.
    status_, trace_ : Status and Trace
        As in `apcg.APCGClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from apcg.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.status_.code, model.duality_gap_ < 1e-6
    ('converged', True)
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Train, as `sklearn.linear_model.LogisticRegression.fit` does."""
        answers = Answers(self.solver)
        fit = theirs.LogisticRegression.fit
        names = {
            "_logistic_regression_path": partial(logistic_path, answers=answers),
            "_fit_liblinear": partial(fit_liblinear, answers),
        }
        private.rebound(fit, **names, **_in_threads(fit))(self, X, y, sample_weight)
        answers.keep(self)
        return self


class LogisticRegressionCV(Certified, theirs.LogisticRegressionCV):
    """scikit-learn's `LogisticRegressionCV` by the solvers of apcg.

    The folds are solved for all Cs at once, each certified; `duality_gap_`, `status_` and `trace_`
    are of the final fit. With refit=False there is none, and no certificate. As to `solver`, see
    `LogisticRegression`.

    Parameters and attributes are those of `sklearn.linear_model.LogisticRegressionCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from apcg.linear_model import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     Cs=[0.1, 1, 10], l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
    ... )
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    @private.validated_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Train, as `sklearn.linear_model.LogisticRegressionCV.fit` does."""
        answers = Answers(self.solver)
        fit = theirs.LogisticRegressionCV.fit
        names = {
            "_logistic_regression_path": partial(logistic_path, answers=answers),
            "_log_reg_scoring_path": scoring_path,
        }
        private.rebound(fit, **names, **_in_threads(fit))(self, X, y, sample_weight, **params)
        answers.keep(self)
        return self


def _threads(*, n_jobs: Any, verbose: Any, prefer: str) -> Any:
    return Parallel(n_jobs=n_jobs, verbose=verbose, prefer="threads")


def _in_threads(function: Any) -> dict[str, Any]:
    """A name to rebind if `function` runs jobs in processes: the kernels let threads run."""
    return {"Parallel": _threads} if private.uses(function, "Parallel") else {}


def logistic_path(
    X: Any,
    y: Any,
    *,
    Cs: Any,
    answers: Answers | None = None,
    classes: Any = None,
    pos_class: Any = None,
    multi_class: str = "",
    **told: Any,
) -> tuple[Any, Any, Any]:
    """scikit-learn's `_logistic_regression_path`: coefficients, Cs, and passes for each C.

    Up to scikit-learn 1.7 it has `pos_class`, the class that multi_class="ovr" sets against the
    rest, in the place of `classes`.
    """
    told = private.LOGISTIC_DEFAULTS | told | {"y": y}
    answers = Answers(told["solver"]) if answers is None else answers
    Cs = np.logspace(-4, 4, Cs) if isinstance(Cs, Integral) else floats(Cs, "C")
    old = classes is None
    known = np.unique(y) if old else np.asarray(classes)
    odd = multi_class == "multinomial" and known.size == 2
    if odd:
        answers.not_ours("a softmax over two classes")
        one = {"pos_class": pos_class, "multi_class": multi_class}
        told |= {"X": X, "Cs": Cs} | (one if old else {"classes": classes})
        return tuple(private.their_logistic_path(**told))
    positive = known[1] if known.size == 2 else pos_class
    liblinear = told["solver"] == "liblinear"
    if liblinear and positive is None:
        raise ValueError(
            "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). "
            "Either use another solver or wrap the estimator in a OneVsRestClassifier to keep "
            "applying a one-versus-rest scheme."
        )
    weights, total = _weights(X, y, known, positive, multi_class, told)
    if liblinear:
        return _by_liblinear(X, y == positive, weights, Cs, answers, told)
    codes = np.searchsorted(known, y) if positive is None else (y == positive).astype(np.intp)
    K = known.size if positive is None else 2
    each = Classes.of(codes, K, weights, told["fit_intercept"])
    if each.alone:
        coefs, passes = [each.constant(X.shape[1])] * len(Cs), [1] * len(Cs)
    else:
        with np.errstate(over="ignore"):  # ERM refuses what overflows
            alphas = 1 / (Cs * total)
        found = _solve(X, codes, each, weights, alphas, answers, told)
        coefs = [
            each.coefficients(r.w, r.intercept, X.shape[1], free=bool(np.isinf(C)))
            for r, C in zip(found, Cs, strict=True)
        ]
        passes = iterations(found, told["max_iter"])
    return np.array(coefs, dtype=X.dtype), Cs, np.array(passes, dtype=np.int32)


def _by_liblinear(
    X: Any, y: Any, weights: Vector | None, Cs: Vector, answers: Answers, told: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """The same for LIBLINEAR's problem, in LogisticRegressionCV; classes are in the weights."""
    names = ("fit_intercept", "intercept_scaling", "penalty", "dual", "verbose",
             "random_state")  # fmt: skip
    given = {name: told[name] for name in names} | {"class_weight": None, "sample_weight": weights}
    given |= {"max_iter": ITERATION * told["max_iter"], "tol": CLOSER * told["tol"]}
    found = [fit_liblinear(answers, X, y, C, **given) for C in Cs]
    coefs = [np.append(w, b) if told["fit_intercept"] else w.ravel() for w, b, _ in found]
    passes = [-(-int(n[0]) // ITERATION) for *_, n in found]
    return np.array(coefs), Cs, np.array(passes, dtype=np.int32)


def _weights(
    X: Any, y: Any, classes: Any, positive: Any, multi_class: str, told: dict[str, Any]
) -> tuple[Vector | None, float]:
    """The weights of the samples times those of their classes, and the sum."""
    weights, total = private.sample_weights(told["sample_weight"], X)
    class_weight = told["class_weight"]
    if class_weight is None:
        return weights, total
    if multi_class == "ovr" and not isinstance(class_weight, dict):
        classes, y = np.array([False, True]), y == positive  # "balanced" is of these two
    each = private.class_weights(class_weight, classes, y, weights)[np.searchsorted(classes, y)]
    weights = each if weights is None else each * weights
    return weights, float(weights.sum())


def _solve(
    X: Any,
    codes: Any,
    classes: Classes,
    weights: Vector | None,
    alphas: Vector,
    answers: Answers,
    told: dict[str, Any],
) -> list[Solution]:
    """The answers for each alpha."""
    ratio = {"l2": 0.0, "l1": 1.0}.get(told["penalty"], told["l1_ratio"])
    penalty = {0.0: "l2", 1.0: "l1"}.get(ratio, "elasticnet")
    problem = classes.problem(X, codes, weights, penalty, ratio)
    how, gap = (told["tol"], told["max_iter"], told["random_state"]), gap_for(problem)
    if alphas.size > 1 and alphas.min() > 0:
        return answers.path(problem, alphas, *how, gap)
    if alphas.size > 1:  # some without a penalty
        each = [Plan([problem.with_alpha(float(a))], ["C"], lambda found: {}) for a in alphas]
        return [answers.solve(plan, *how, gap=gap)[0] for plan in each]
    problem = problem.with_alpha(float(alphas[0]))
    plan = Plan([problem], ["logistic regression"], lambda found: {})
    start = classes.start(problem, told["coef"])
    return answers.solve(plan, *how, [start], gap, _watch(X, told, classes))


def _watch(X: Any, told: dict[str, Any], classes: Classes) -> Passes | None:
    """What tells the callbacks of the estimator, if it has any."""
    context, estimator = told.get("callback_ctx"), told.get("estimator")
    if context is None or not hasattr(estimator, "_skl_callbacks"):
        return None
    weights = told["sample_weight"]
    metadata = None if weights is None else {"sample_weight": weights}

    def describe(found: Any) -> dict[str, Any]:
        made = np.atleast_2d(classes.coefficients(found.w, found.intercept, X.shape[1]))
        b = made[:, -1] if classes.intercept else np.zeros(len(made))
        return {"coef_": made[:, : X.shape[1]], "intercept_": b}

    known = {"X": X, "y": told["y"], "metadata": metadata}
    return Passes(context, estimator, known, describe, max(told["max_iter"], 1))


_scoring = private.rebound(private.their_scoring_path, _logistic_regression_path=logistic_path)


def scoring_path(*args: Any, **kwargs: Any) -> Any:
    """What LogisticRegressionCV does in a fold. Worker processes find it here by its name."""
    return _scoring(*args, **kwargs)
