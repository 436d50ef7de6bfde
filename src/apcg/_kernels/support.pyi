from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Vector: TypeAlias = NDArray[np.float64]

def gather(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    place: NDArray[np.int32],
    start: NDArray[np.int64],
    positions: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None: ...
def times(
    start: NDArray[np.int64],
    positions: NDArray[np.int32],
    values: NDArray[np.float32],
    bend: _Vector,
    p: _Vector,
    out: _Vector,
) -> None: ...
def gram(
    start: NDArray[np.int64],
    positions: NDArray[np.int32],
    values: NDArray[np.float32],
    bend: _Vector,
    least: float,
    out: NDArray[np.float32],
) -> None: ...
