from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .coordinate import Model

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

def run_plain(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    model: Model,
    x: NDArray[np.float64],
    r: NDArray[np.float64],
    order: NDArray[np.intp],
) -> None: ...
