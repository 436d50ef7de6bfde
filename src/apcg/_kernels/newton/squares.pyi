from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]

def ridge(
    X: _Vector,
    border: bool,
    y: _Vector,
    weights: _Vector,
    scale: float,
    gamma: float,
    ridges: _Vector,
    tol: float,
    least: float,
    polish: int,
    most: int,
    w: _Vector,
    x: _Vector,
) -> tuple[int, float, float]: ...
def lasso(
    X: _Vector,
    border: bool,
    y: _Vector,
    weights: _Vector,
    scale: float,
    gamma: float,
    soft: _Vector,
    ridge: _Vector,
    tol: float,
    most: int,
    w: _Vector,
    x: _Vector,
) -> tuple[int, float, float]: ...
