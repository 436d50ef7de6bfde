import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Matrix = NDArray[np.float64]
_Labels = NDArray[np.int32]

def evaluate(
    z: _Matrix,
    way: _Matrix,
    t: float,
    y: _Labels,
    weights: _Vector,
    scale: float,
    at: _Matrix,
    slope: _Matrix,
    pi: _Matrix,
) -> float: ...
