"""The words that signatures share: what users give, what NumPy and SciPy hold.

`Any` is where nothing better is true: for a dtype that may be several, for the keys of a mapping by
labels, and for the entries of a block, which are a number or an array as the problem has blocks.
These have their names here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

#: An array of whatever dtype.
Array: TypeAlias = NDArray[Any]
#: A matrix of SciPy, in any format.
Sparse: TypeAlias = sp.sparray | sp.spmatrix
#: A matrix as users give it: nested lists, arrays, data frames, or sparse.
MatrixLike: TypeAlias = ArrayLike | Sparse
#: A matrix that has been looked at, as it is kept: an array, or sparse by rows.
Stored: TypeAlias = Array | sp.csr_array | sp.csr_matrix
#: A weight for each class, by its label, which may be of any type that labels are of.
ClassWeights: TypeAlias = Mapping[Any, float]
#: Bounds on w, the lower and the upper ones: a number, or one for each feature.
Bounds: TypeAlias = tuple[ArrayLike, ArrayLike]
#: What `random_state` may be.
Seed: TypeAlias = SupportsIndex | np.random.Generator | np.random.RandomState | None
#: x_i as an f or psi of the user's has it: a number if blocks are coordinates, else an array.
Block: TypeAlias = Any
#: A partition of the coordinates: the sizes of its blocks, or the coordinates of each.
Blocks: TypeAlias = Iterable[ArrayLike]


class Answer(Protocol):
    """A pair of points of an ERM problem: an answer, or what a run has so far."""

    @property
    def w(self) -> NDArray[np.float64]:
        """The primal point."""

    @property
    def x(self) -> NDArray[np.float64]:
        """The dual point."""

    @property
    def intercept(self) -> float:
        """What goes with w."""
