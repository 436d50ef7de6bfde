"""Working sets: L1, elastic net and bounds with a smooth loss."""

from .method import WorkingSet
from .run import SparseRun
from .tuning import Tuning

__all__ = ["SparseRun", "Tuning", "WorkingSet"]
