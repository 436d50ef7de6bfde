"""Data on disk: a folder of .npy files that is read part by part, so that it need not fit.

    header.json   what is in the folder, and checksums; it is written last
    data.npy      the numbers of X: those stored of a sparse one, or all, by rows
    indices.npy   the column of each number (int32), for a sparse X
    indptr.npy    where each row begins in data and indices (int64), for a sparse X
    norms.npy     the squared norm of each row
    y.npy         the label of each row, or the place of its word in the header; if there are labels

`Writer` makes such a folder, `OnDisk` opens one. docs/scale.md has the fields of the header.
"""

from .format import FolderError, Header, is_folder
from .reader import Mapped, OnDisk, samples_of
from .writer import Writer

__all__ = ["FolderError", "Header", "Mapped", "OnDisk", "Writer", "is_folder", "samples_of"]
