"""Working sets: L1, elastic net and bounds with a smooth loss."""

from .method import WorkingSet
from .tuning import Tuning

__all__ = ["Tuning", "WorkingSet"]
