from typing import Any

import numpy as np
from numpy.typing import NDArray

from .one_output import Rows, Tally

_Vector = NDArray[np.float64]
_Index = NDArray[np.intp]

class Accelerated:
    uv: NDArray[np.float64]
    pq: NDArray[np.float64]
    guess: NDArray[np.float64]
    pb: float
    qb: float
    s: float
    root: float
    N: float
    settle: float
    def __init__(
        self,
        uv: NDArray[np.float64],
        pq: NDArray[np.float64],
        guess: NDArray[np.float64],
        *,
        qb: float,
        settle: float,
    ) -> None: ...

def accelerated_sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    rows: Rows,
    state: Accelerated,
    tally: Tally,
    keep: _Index,
    begin: _Index,
    end: _Index,
    visits: _Index,
    last: _Index,
) -> None: ...
def choose_visits(
    rows: Rows,
    state: Accelerated,
    keep: _Index,
    lengths: _Vector,
    last: _Vector,
    moved: _Vector,
    exponents: _Index,
    most: float,
    counts: _Index,
) -> None: ...
def arrange(
    keep: _Index,
    exponents: _Index,
    counts: _Index,
    lengths: _Index,
    random: NDArray[np.uint32],
    listed: _Index,
    order: _Index,
    begin: _Index,
    end: _Index,
    visits: _Index,
    last: _Index,
) -> None: ...
def dual_parts(rows: Rows, state: Accelerated, x: _Vector) -> tuple[float, int]: ...
