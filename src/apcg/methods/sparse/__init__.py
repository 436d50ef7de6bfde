"""Working sets: L1, elastic net and bounds with a smooth loss."""

from .dense import path_dense, path_one_gram
from .gram import GramModel
from .method import WorkingSet
from .penalty import ScaledPenalty
from .run import SparseRun
from .tuning import SetTuning

__all__ = [
    "GramModel",
    "ScaledPenalty",
    "SetTuning",
    "SparseRun",
    "WorkingSet",
    "path_dense",
    "path_one_gram",
]
