import numpy as np
from numpy.typing import NDArray

def fill(
    slope: NDArray[np.float64], bend: NDArray[np.float64], rows: NDArray[np.float64]
) -> None: ...
def steps(
    entries: NDArray[np.uint8],
    wide: bool,
    start: NDArray[np.int64],
    ids: NDArray[np.int64],
    squares: NDArray[np.float64],
    far: NDArray[np.float64],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    total: float,
    sigma: float,
    most: float,
    first: int,
    v: NDArray[np.float64],
    met: NDArray[np.float64],
    slopes: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> tuple[int, float]: ...
