from typing import Any

import numpy as np
from numpy.typing import NDArray

_Matrix = NDArray[np.float64]

def dot(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], x: _Matrix, out: _Matrix
) -> None: ...
def dot_labels(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    labels: NDArray[np.int32],
    amounts: NDArray[np.float64],
    share: NDArray[np.float64],
    out: _Matrix,
) -> None: ...
def tdot(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], W: _Matrix, out: _Matrix
) -> None: ...
def count_features(indices: NDArray[Any], counts: NDArray[np.int32]) -> None: ...
def place_features(
    counts: NDArray[np.int32], least: int, place: NDArray[np.int32], order: NDArray[np.intp]
) -> int: ...
def split_features(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    place: NDArray[np.int32],
    shared: NDArray[Any],
    places: NDArray[Any],
    shared_ptr: NDArray[Any],
    own: NDArray[Any],
    features: NDArray[Any],
    own_ptr: NDArray[Any],
    squares: NDArray[np.float64],
) -> None: ...
