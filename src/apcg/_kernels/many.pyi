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
