import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Places = NDArray[np.int64]

def fill(slope: _Vector, bend: _Vector, rows: NDArray[np.float64]) -> None: ...
def steps(
    entries: NDArray[np.uint8],
    wide: bool,
    start: _Places,
    ids: _Places,
    far: _Vector,
    squares: _Vector,
    moved_most: float,
    first: int,
    v: _Vector,
    met: _Vector,
    seen: _Vector,
    rows: NDArray[np.float64],
    a: _Vector,
    b: _Vector,
    lower: _Vector,
    upper: _Vector,
) -> int: ...
