from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Vector: TypeAlias = NDArray[np.float64]

class Rule:
    def __init__(
        self,
        loss: str,
        theta: Any,
        labels: _Vector,
        weights: _Vector,
        norms: _Vector,
        *,
        margin: bool,
        n: int,
        mu: float,
        most: float,
        border: float = ...,
        share: float = ...,
        biased: bool = ...,
        learns: bool = ...,
        search: bool = ...,
    ) -> None: ...

class Memory:
    def __init__(
        self,
        cells: NDArray[np.float64],
        table: _Vector,
        history: _Vector,
        *,
        L: float,
        least: float,
        b: float = ...,
        b_slope: float = ...,
        seen: int = ...,
    ) -> None: ...
    scale: float
    h: float
    L: float
    least: float
    b: float
    b_slope: float
    losses: float
    seen: int
    used: int
    folds: int
    def fold(self) -> None: ...

def run_stochastic(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    rule: Rule,
    memory: Memory,
    order: NDArray[np.intp],
) -> None: ...
