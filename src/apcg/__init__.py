"""Accelerated proximal coordinate gradient (APCG): convex composite problems, regularised ERM."""

from importlib.metadata import version as _version

from . import datasets, functions, losses, penalties, theory
from .erm import ERM
from .minimize import minimize
from .path import path
from .result import Result, Solution, Status, Trace
from .solve import solve

__version__ = _version("apcg")

__all__ = [
    "ERM",
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
