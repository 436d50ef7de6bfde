from typing import Any

import numpy as np
from numpy.typing import NDArray

from .many_outputs import Blocks, Count

_Vector = NDArray[np.float64]
_Matrix = NDArray[np.float64]
_Index = NDArray[np.intp]

class MomentumState:
    u: _Matrix
    v: _Matrix
    near: _Matrix
    theta: _Matrix
    pq: _Matrix
    room: _Matrix
    pb: _Vector
    qb: _Vector
    s: float
    root: float
    N: float
    settle: float
    def __init__(
        self,
        u: _Matrix,
        v: _Matrix,
        near: _Matrix,
        theta: _Matrix,
        pq: _Matrix,
        pb: _Vector,
        qb: _Vector,
        room: _Matrix,
        *,
        settle: float,
    ) -> None: ...

def momentum_sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    blocks: Blocks,
    state: MomentumState,
    count: Count,
    keep: _Index,
    visits: _Index,
    last: _Index,
    bounds: _Index,
) -> None: ...
def take_inside(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    blocks: Blocks,
    state: MomentumState,
    last: _Matrix,
    out: _Matrix,
    moved: _Vector,
) -> None: ...
