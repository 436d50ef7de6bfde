from typing import Any

import numpy as np
from numpy.typing import NDArray

def evaluate(
    X: NDArray[Any],
    border: bool,
    index: NDArray[np.int64],
    y: NDArray[np.int32],
    weights: NDArray[np.float64],
    W: NDArray[np.float64],
    gradient: NDArray[np.float64],
    x: NDArray[np.float64],
) -> float: ...
def hessian(
    X: NDArray[Any],
    border: bool,
    index: NDArray[np.int64],
    y: NDArray[np.int32],
    weights: NDArray[np.float64],
    x: NDArray[np.float64],
    H: NDArray[np.float64],
) -> None: ...
def leverages(
    X: NDArray[Any],
    border: bool,
    y: NDArray[np.int32],
    U: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
