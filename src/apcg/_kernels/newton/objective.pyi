from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
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
def margins(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    border: bool,
    w: _Vector,
    out: _Vector,
) -> None: ...
def gradient(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    border: bool,
    slope: _Vector,
    out: _Vector,
) -> None: ...
def product(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    border: bool,
    bend: _Vector,
    p: _Vector,
    q: _Vector,
    out: _Vector,
    last: float,
    total_q: _Vector,
) -> None: ...
def column_squares(
    data: _Values, indices: _Indices, indptr: _Indices, d: int, weights: _Vector, out: _Vector
) -> None: ...
def gram(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    border: bool,
    weight: _Vector,
    out: _Vector,
) -> int: ...
def cholesky(A: _Vector, least: float) -> bool: ...
def scaled(H: _Vector, scale: _Vector) -> None: ...
def cholesky_solve(U: _Vector, scale: _Vector, r: _Vector, x: _Vector) -> None: ...
