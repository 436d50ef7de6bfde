"""Working sets: L1, elastic net, bounds and groups with a smooth loss."""

from .dense import path_dense, path_one_gram
from .gram import GramModel
from .method import ClassSet, GroupSet, OutputsGroupSet, WorkingSet
from .penalty import ScaledPenalty
from .run import SparseRun
from .tuning import SetTuning

__all__ = [
    "ClassSet",
    "GramModel",
    "GroupSet",
    "OutputsGroupSet",
    "ScaledPenalty",
    "SetTuning",
    "SparseRun",
    "WorkingSet",
    "path_dense",
    "path_one_gram",
]
