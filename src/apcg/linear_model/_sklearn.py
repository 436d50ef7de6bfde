"""What is taken from scikit-learn's private corners: all of it is here.

The classes of this package are scikit-learn's own with another solver. Where scikit-learn calls its
solver by a public name, or by a method, that is overridden. Where it calls a private function from
the middle of `fit`, its `fit` runs with that name bound to ours (`rebound`): parameters, checks and
deprecations then follow the installed version.

Tested with scikit-learn 1.8.0 and 1.9.1. Another version that lacks a name raises
ImportError, which says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import sklearn
from sklearn import linear_model as _linear_model
from sklearn import svm as _svm
from sklearn.base import _fit_context
from sklearn.linear_model import _base, _coordinate_descent, _logistic, _ridge
from sklearn.svm import _base as _liblinear
from sklearn.utils._param_validation import validate_params
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from .._base.validation import Vector

__all__ = [
    "LOGISTIC_DEFAULTS",
    "NAMES",
    "BaseRidge",
    "BaseRidgeCV",
    "RidgeGCV",
    "alpha_grid",
    "check_gcv_mode",
    "check_gram",
    "class_weights",
    "defaults_of",
    "liblinear_solver",
    "rebound",
    "sample_weights",
    "their_liblinear",
    "their_logistic_path",
    "their_scoring_path",
    "theirs",
    "uses",
    "validated_fit",
    "validated_like",
]


def _private(module: Any, name: str) -> Any:
    """A private name of scikit-learn, or an error that says what to do."""
    try:
        return getattr(module, name)
    except AttributeError:
        raise ImportError(
            f"apcg.linear_model needs {module.__name__}.{name}, and scikit-learn "
            f"{sklearn.__version__} has no such name. Take a version from 1.6 to 1.9, or "
            "apcg.APCGClassifier and apcg.APCGRegressor, which need no private names."
        ) from None


#: The public names that have a counterpart here, by their modules. (They are not private, but bound
#: here once: `apcg.patch_sklearn` puts ours in their places.)
NAMES = {
    _linear_model: (
        "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lasso", "LassoCV", "LogisticRegression",
        "LogisticRegressionCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso",
        "MultiTaskLassoCV", "QuantileRegressor", "Ridge", "RidgeCV", "RidgeClassifier",
        "RidgeClassifierCV", "enet_path", "lasso_path",
    ),
    _svm: ("LinearSVC", "LinearSVR"),
}  # fmt: skip
theirs: Any = ModuleType("theirs", "The classes and functions of scikit-learn that are in NAMES.")
for _module, _names in NAMES.items():
    for _name in _names:
        setattr(theirs, _name, getattr(_module, _name))

BaseRidge: Any = _private(_ridge, "_BaseRidge")
BaseRidgeCV: Any = _private(_ridge, "_BaseRidgeCV")
#: What RidgeCV calls for leave-one-out: its parameters and its scores
RidgeGCV: Any = _private(_ridge, "_RidgeGCV")
#: Warns of a gcv_mode that is not for these data
check_gcv_mode: Any = _private(_ridge, "_check_gcv_mode")
#: The solver of LogisticRegression: (X, y, ...) to coefficients, Cs and iterations
their_logistic_path: Any = _private(_logistic, "_logistic_regression_path")
#: What LogisticRegressionCV does in a fold
their_scoring_path: Any = _private(_logistic, "_log_reg_scoring_path")
#: The solver of LinearSVC and LinearSVR: (X, y, C, ...) to coefficients, intercepts and iterations
their_liblinear: Any = _private(_liblinear, "_fit_liblinear")
#: Raises ValueError for what LIBLINEAR does not have
liblinear_solver: Any = _private(_liblinear, "_get_liblinear_solver_type")
_pre_fit: Any = _private(_base, "_pre_fit")
_their_grid: Any = _private(_coordinate_descent, "_alpha_grid")
#: `fit` that checks the parameters of the estimator first
validated_fit: Any = _fit_context(prefer_skip_nested_validation=True)


def rebound(function: Callable[..., Any], **names: Any) -> Any:
    """The code of `function`, without decorators, with other values for global names it uses."""
    inner = inspect.unwrap(function)
    assert isinstance(inner, FunctionType)
    assert not inner.__kwdefaults__
    missing = set(names) - _globals_of(inner.__code__)
    if missing:
        raise ImportError(
            f"{inner.__qualname__} of scikit-learn {sklearn.__version__} does not use "
            f"{', '.join(sorted(missing))}: apcg.linear_model knows versions 1.6 to 1.9."
        )
    known = inner.__globals__ | names
    return FunctionType(
        inner.__code__, known, inner.__name__, inner.__defaults__, inner.__closure__
    )


def uses(function: Callable[..., Any], name: str) -> bool:
    """Whether the code of a function looks up this name."""
    return name in _globals_of(inspect.unwrap(function).__code__)


@cache
def _globals_of(code: CodeType) -> frozenset[str]:
    """The names that a function and those inside it look up."""
    inside = (_globals_of(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(code.co_names).union(*inside)


def validated_like(function: Callable[..., Any]) -> Any:
    """A decorator: parameters are checked as those of a public function of scikit-learn."""
    rules = getattr(function, "_skl_parameter_constraints", {})
    return validate_params(rules, prefer_skip_nested_validation=True)


def _accepts(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The default values of all parameters that have one."""
    taken = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in taken if p.default is not p.empty}


LOGISTIC_DEFAULTS = defaults_of(their_logistic_path)
_WEIGHTED_CLASSES = _accepts(compute_class_weight, "sample_weight")  # since 1.7
_SIGNED_GRID = _accepts(_their_grid, "positive")  # since 1.9


def class_weights(class_weight: Any, classes: Any, y: Any, sample_weight: Vector | None) -> Vector:
    """The weight of each class, as the installed version defines "balanced"."""
    known = {"sample_weight": sample_weight} if _WEIGHTED_CLASSES else {}
    found: Vector = compute_class_weight(class_weight, classes=classes, y=y, **known)
    return found


def sample_weights(given: Any, X: Any) -> tuple[Vector | None, float]:
    """The weights of the samples, None if all are the same; and their sum."""
    if given is None:
        return None, float(X.shape[0])
    weights: Vector = _check_sample_weight(given, X, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total == np.inf:
        raise ValueError("the sum of sample_weight overflows; divide the weights by the largest.")
    return (None if total > 0 and weights.min() == weights.max() else weights), total


def check_gram(X: Any, y: Any, gram: Any, fit_intercept: bool, check: bool) -> None:
    """scikit-learn's warning or error about a Gram matrix that does not fit X."""
    name = "check_gram" if _accepts(_pre_fit, "check_gram") else "check_input"
    _pre_fit(X, y, None, gram, fit_intercept=fit_intercept, copy=True, **{name: check})


def alpha_grid(X: Any, y: Any, *, positive: bool, **told: Any) -> Vector:
    """The alphas of a path, from the least one that makes all coefficients zero."""
    signed = {"positive": positive} if _SIGNED_GRID else {}
    grid: Vector = _their_grid(X, y, fit_intercept=False, **told, **signed)
    return grid
