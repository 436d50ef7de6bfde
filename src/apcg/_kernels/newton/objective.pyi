from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]

def evaluate(
    name: str,
    theta: _Vector,
    z: _Vector,
    way: _Vector,
    t: float,
    labels: _Vector,
    margin: bool,
    weights: _Vector,
    scale: float,
    at: _Vector,
    slope: _Vector,
    bend: _Vector,
) -> tuple[float, float, float]: ...
def cholesky(A: _Vector, least: float) -> bool: ...
def scaled(H: _Vector, jitter: float, scale: _Vector, out: _Vector) -> None: ...
def cholesky_solve(U: _Vector, scale: _Vector, r: _Vector, x: _Vector) -> None: ...
