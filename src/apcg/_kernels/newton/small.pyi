from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]

def newton(
    name: str,
    theta: _Vector,
    X: _Vector,
    border: bool,
    labels: _Vector,
    margin: bool,
    weights: _Vector,
    scale: float,
    ridge: _Vector,
    tol: float,
    least: float,
    polish: int,
    most: int,
    w: _Vector,
    x: _Vector,
) -> tuple[int, float, float]: ...
