from typing import Any

import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Matrix = NDArray[np.float64]
_Index = NDArray[np.intp]

class Blocks:
    kind: int
    features: int
    K: int
    size: int
    gamma: float
    scale: float
    border: float
    threshold: float
    factor: float
    enough: float
    def __init__(
        self,
        kind: int,
        features: int,
        K: int,
        labels: NDArray[np.int32],
        targets: _Matrix,
        weights: _Vector,
        q: _Vector,
        theta: _Vector,
        *,
        margin: bool,
        gamma: float,
        scale: float,
        border: float = ...,
        threshold: float = ...,
        factor: float = ...,
        enough: float = ...,
        alone: _Vector,
        far: NDArray[np.int32],
    ) -> None: ...

class Count:
    est: float
    high: float
    work: int
    solved: int
    rescued: int
    def __init__(self) -> None: ...
    def begin(self) -> None: ...
    def open(self) -> None: ...

class PlainState:
    x: _Matrix
    theta: _Matrix
    W: _Matrix
    room: _Matrix
    b: _Vector
    moved: _Vector
    part: _Vector
    def __init__(
        self,
        x: _Matrix,
        theta: _Matrix,
        W: _Matrix,
        b: _Vector,
        moved: _Vector,
        part: _Vector,
        room: _Matrix,
    ) -> None: ...

def plain_sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    blocks: Blocks,
    state: PlainState,
    count: Count,
    keep: _Index,
    visits: _Index,
    bounds: _Index,
) -> None: ...
