"""Accelerated proximal coordinate gradient (APCG): convex composite problems, regularised ERM."""

from . import functions, losses, penalties, theory
from .erm import ERM
from .minimize import minimize
from .result import Result, Solution, Status, Trace
from .solve import solve

__version__ = "0.1.0"

__all__ = [
    "ERM",
    "Result",
    "Solution",
    "Status",
    "Trace",
    "functions",
    "losses",
    "minimize",
    "penalties",
    "solve",
    "theory",
]
