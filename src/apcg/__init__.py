"""Accelerated proximal coordinate gradient (APCG): convex composite problems, f + Psi."""

from importlib.metadata import version as _version

from . import functions, penalties, theory
from .minimize import minimize
from .result import Result, Status, Trace

__version__ = _version("apcg")

__all__ = ["Result", "Status", "Trace", "functions", "minimize", "penalties", "theory"]
