from typing import Any

import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]

class Pieces:
    n: int
    pieces: int
    bounded: bool
    gamma: float
    def __init__(
        self,
        a: _Vector,
        room: _Vector,
        sigma: _Vector,
        xi: _Vector,
        z: _Vector,
        g: _Vector,
        h: _Vector,
        s: _Vector,
        spare: NDArray[np.float64],
        bounded: bool = ...,
        gamma: float = ...,
    ) -> None: ...

def weigh(
    at: Pieces, skip: float, weight: _Vector, pull: _Vector
) -> tuple[float, float, float, int]: ...
def predict(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    d: int,
    constant: float,
    dw: _Vector,
    at: Pieces,
    begin: int,
    end: int,
    pair: _Vector,
) -> tuple[float, float, float]: ...
def correct(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    d: int,
    constant: float,
    dw: _Vector,
    centre: float,
    at: Pieces,
    begin: int,
    end: int,
    pull: _Vector,
) -> float: ...
def move(at: Pieces, t: float) -> None: ...
