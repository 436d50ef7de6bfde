"""Accelerated proximal coordinate gradient (APCG): convex composite problems, f + Psi."""

from . import functions, penalties, theory
from .minimize import minimize
from .result import Result, Status, Trace

__version__ = "0.1.0"

__all__ = ["Result", "Status", "Trace", "functions", "minimize", "penalties", "theory"]
