import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]

def gram_sweeps(
    G: NDArray[np.float64],
    g: _Vector,
    w: _Vector,
    a: _Vector,
    b: _Vector,
    lower: _Vector,
    upper: _Vector,
    most: int,
    target: float,
    enough: float,
    fine: float,
    least: float,
) -> tuple[int, float]: ...
def gram_newton(
    G: NDArray[np.float64],
    g: _Vector,
    w: _Vector,
    a: _Vector,
    b: _Vector,
    lower: _Vector,
    upper: _Vector,
    matrix: NDArray[np.float64],
    support: NDArray[np.intp],
    vectors: NDArray[np.float64],
    failed: NDArray[np.intp],
) -> int: ...
def gram_path(
    G: NDArray[np.float64],
    q: _Vector,
    total: float,
    g: _Vector,
    w: _Vector,
    a: _Vector,
    b: _Vector,
    lower: _Vector,
    upper: _Vector,
    alphas: _Vector,
    fine: float,
    share: float,
    most: int,
    newtons: int,
    turns: int,
    matrix: NDArray[np.float64],
    support: NDArray[np.intp],
    vectors: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int: ...
def group_sweeps(
    G: NDArray[np.float64],
    g: NDArray[np.float64],
    w: NDArray[np.float64],
    start: NDArray[np.intp],
    bend: _Vector,
    a: _Vector,
    room: _Vector,
    most: int,
    target: float,
    enough: float,
    fine: float,
    least: float,
) -> tuple[int, float]: ...
