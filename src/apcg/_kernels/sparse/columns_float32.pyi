from typing import Any

import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Floats = NDArray[np.float32]

LANES: int

def pack(X: NDArray[Any], out: _Floats) -> None: ...
def sweeps(
    X: _Floats,
    labels: _Floats,
    weights: _Floats,
    columns: NDArray[np.intp],
    a: _Vector,
    b: _Vector,
    lower: _Vector,
    upper: _Vector,
    floor: float,
    count: int,
    squared: bool,
    intercept: bool,
    h: _Vector,
    w: _Vector,
    shift: _Vector,
    room: _Floats,
) -> int: ...
