"""Matrices: how they are stored and multiplied with, and the check of what a user gave.

`by_row` and `by_coordinate` turn a user's matrix into a `Matrix`, without a copy if they can.
"""

from .check import by_coordinate, by_row, check_sparse
from .chunked import Chunked
from .dense import Dense
from .matrix import Arrays, Matrix, Stored
from .sparse import Sparse

__all__ = [
    "Arrays",
    "Chunked",
    "Dense",
    "Matrix",
    "Sparse",
    "Stored",
    "by_coordinate",
    "by_row",
    "check_sparse",
]
