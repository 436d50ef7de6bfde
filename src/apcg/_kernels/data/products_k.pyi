from typing import Any

import numpy as np
from numpy.typing import NDArray

_Matrix = NDArray[np.float64]

def adjoint(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    x: _Matrix,
    out: _Matrix,
    far: NDArray[np.int32] | None = ...,
) -> None: ...
def adjoint_labels(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    labels: NDArray[np.int32],
    amounts: NDArray[np.float64],
    share: NDArray[np.float64],
    out: _Matrix,
) -> None: ...
def times(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    W: _Matrix,
    out: _Matrix,
    far: NDArray[np.int32] | None = ...,
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
    near: int,
    shared: NDArray[Any],
    places: NDArray[Any],
    shared_ptr: NDArray[Any],
    far: NDArray[np.int32],
    own: NDArray[Any],
    features: NDArray[Any],
    own_ptr: NDArray[Any],
    squares: NDArray[np.float64],
    room: NDArray[Any],
    room_places: NDArray[Any],
) -> None: ...
def spread_features(
    rows: _Matrix,
    order: NDArray[np.intp],
    own: NDArray[Any],
    features: NDArray[Any],
    own_ptr: NDArray[Any],
    x: _Matrix,
    out: _Matrix,
) -> None: ...
