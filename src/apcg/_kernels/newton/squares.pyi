from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]

def moments(
    X: _Vector,
    border: bool,
    y: _Vector,
    weights: _Vector,
    unit: float,
    H: _Vector,
    c: _Vector,
) -> None: ...
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
    gram: _Vector,
    c: _Vector,
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
    gram: _Vector,
    moment: _Vector,
    w: _Vector,
    x: _Vector,
) -> tuple[int, float, float]: ...
