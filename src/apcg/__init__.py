"""Accelerated proximal coordinate gradient (APCG): convex composite problems, regularised ERM."""

from importlib import import_module as _import
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from . import datasets, functions, losses, penalties, theory
    from ._minimize import minimize
    from ._path import path
    from ._solve import solve
    from .erm import ERM
    from .estimators import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV
    from .result import Result, Solution, Status, Trace

__version__ = _version("apcg")

#: Where each name is. It is imported when it is asked for: the command can then be interrupted
#: while NumPy, SciPy and scikit-learn load, and nobody waits for what is not used.
_HOME = {
    "ERM": "erm",
    "APCGClassifier": "estimators",
    "APCGClassifierCV": "estimators",
    "APCGRegressor": "estimators",
    "APCGRegressorCV": "estimators",
    "Result": "result",
    "Solution": "result",
    "Status": "result",
    "Trace": "result",
    "minimize": "_minimize",
    "path": "_path",
    "solve": "_solve",
}
_MODULES = ("datasets", "functions", "losses", "penalties", "theory")

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
    if name in _MODULES:
        return _import(f"{__name__}.{name}")
    if name in _HOME:
        found = globals()[name] = getattr(_import(f"{__name__}.{_HOME[name]}"), name)
        return found
    raise AttributeError(f"module 'apcg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
