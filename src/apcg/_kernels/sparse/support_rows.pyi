from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Vector: TypeAlias = NDArray[np.float64]
_Short: TypeAlias = NDArray[np.float32]
_Positions: TypeAlias = NDArray[np.uint16] | NDArray[np.int32]

def lengths(
    indices: _Indices, indptr: _Indices, place: NDArray[np.int32], out: NDArray[np.int64]
) -> None: ...
def gather(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    place: NDArray[np.int32],
    scale: float,
    order: NDArray[np.int64],
    start: NDArray[np.int64],
    positions: _Positions,
    values: _Short,
) -> None: ...

class Rows:
    def __init__(self, start: NDArray[np.int64], positions: _Positions, values: _Short) -> None: ...
    def step(
        self,
        bend: _Short,
        at: NDArray[np.int64],
        scale: float,
        b: _Vector,
        mean: _Vector,
        z: _Vector,
        size: float,
        turn: float,
        state: _Vector,
        p: _Short,
        out: _Short,
    ) -> float: ...
