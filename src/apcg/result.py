"""What `solve` and `minimize` give back; the classes live in `apcg.certify.result`."""

from .certify.result import Result, Solution, Status, Trace

__all__ = ["Result", "Solution", "Status", "Trace"]
