"""Accelerated proximal coordinate gradient (APCG): convex composite problems, regularised ERM."""

from importlib.metadata import version as _version
from typing import Any as _Any

from . import datasets, functions, losses, penalties, theory
from ._minimize import minimize
from ._path import path
from ._solve import solve
from .erm import ERM
from .result import Result, Solution, Status, Trace

__version__ = _version("apcg")

#: Resolved when they are asked for: they import scikit-learn, which takes its time.
_ESTIMATORS = ("APCGClassifier", "APCGClassifierCV", "APCGRegressor", "APCGRegressorCV")

__all__ = [
    "ERM",
    "APCGClassifier",
    "APCGClassifierCV",
    "APCGRegressor",
    "APCGRegressorCV",
    "Result",
    "Solution",
    "Status",
    "Trace",
    "datasets",
    "functions",
    "losses",
    "minimize",
    "path",
    "penalties",
    "solve",
    "theory",
]


def __getattr__(name: str) -> _Any:
    if name in _ESTIMATORS:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'apcg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS})
