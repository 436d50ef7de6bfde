"""Accelerated proximal coordinate gradient (APCG): convex composite problems, regularised ERM."""

from importlib import import_module as _import
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from . import datasets, functions, linear_model, losses, penalties, theory
    from .certify.result import Result, Solution, Status, Trace
    from .estimators import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV
    from .patch import patch_sklearn, unpatch_sklearn
    from .problems.erm import ERM
    from .run.minimize import minimize
    from .run.path import path
    from .run.solve import solve

__version__ = _version("apcg")

#: Where each name is. It is imported when it is asked for: the command can then be interrupted
#: while NumPy, SciPy and scikit-learn load, and nobody waits for what is not used.
_HOME = {
    "ERM": "problems.erm",
    "APCGClassifier": "estimators",
    "APCGClassifierCV": "estimators",
    "APCGRegressor": "estimators",
    "APCGRegressorCV": "estimators",
    "Result": "certify.result",
    "Solution": "certify.result",
    "Status": "certify.result",
    "Trace": "certify.result",
    "minimize": "run.minimize",
    "patch_sklearn": "patch",
    "path": "run.path",
    "solve": "run.solve",
    "unpatch_sklearn": "patch",
}
_MODULES = ("datasets", "functions", "linear_model", "losses", "penalties", "theory")

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
    "linear_model",
    "losses",
    "minimize",
    "patch_sklearn",
    "path",
    "penalties",
    "solve",
    "theory",
    "unpatch_sklearn",
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
