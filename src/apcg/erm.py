"""`ERM`, which lives in `apcg.problems.erm`."""

from .problems.erm import ERM

__all__ = ["ERM"]
