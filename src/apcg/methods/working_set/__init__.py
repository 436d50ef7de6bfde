"""Working sets: L1, elastic net and bounds with a smooth loss."""

from . import stretches, whole
from .gram import GramModel
from .method import WorkingSet
from .penalty import ScaledPenalty
from .run import SparseRun
from .tuning import Tuning

__all__ = ["GramModel", "ScaledPenalty", "SparseRun", "Tuning", "WorkingSet", "stretches", "whole"]
