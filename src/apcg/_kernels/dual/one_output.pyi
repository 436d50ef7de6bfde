from typing import Any

import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Index = NDArray[np.intp]

class Rows:
    def __init__(
        self,
        theta: _Vector,
        labels: _Vector,
        weights: _Vector,
        L: _Vector,
        features: int,
        *,
        logistic: bool,
        margin: bool,
        scale: float,
        border: float = ...,
        series: float = ...,
        enough: float = ...,
        easy: float = ...,
        ahead: int = ...,
        far: bool = ...,
    ) -> None: ...

class Tally:
    def __init__(self) -> None: ...
    low: float
    high: float
    least: float
    greatest: float
    est: float
    work: int
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def open(self) -> None: ...

class Plain:
    a: _Vector
    eta: _Vector
    w: _Vector
    b: float
    def __init__(self, a: _Vector, eta: _Vector, w: _Vector, b: float) -> None: ...

def plain_sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Rows,
    state: Plain,
    tally: Tally,
    keep: _Index,
    begin: _Index,
    end: _Index,
) -> None: ...
def plain_sweeps(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Rows,
    state: Plain,
    tally: Tally,
    keep: _Index,
    random: NDArray[np.uint32],
    shrink: bool,
    estimates: _Vector,
) -> int: ...
