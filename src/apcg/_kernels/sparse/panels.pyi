import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Matrix = NDArray[np.float64]
_Panels = NDArray[np.float64]
_Index = NDArray[np.intp]

def adjoint(X: _Matrix, R: _Matrix, rest: _Matrix, out: _Matrix) -> None: ...
def times(X: _Matrix, some: _Index, W: _Matrix, out: _Matrix) -> None: ...
def pack(
    X: NDArray[np.float64] | NDArray[np.float32],
    column: _Index,
    mean: _Vector,
    root: _Vector,
    out: _Panels,
) -> None: ...
def gram(X: _Panels, some: _Index, scale: float, out: _Matrix) -> None: ...
def grams(X: _Panels, panel: _Index, at: _Index, scale: float, out: _Vector) -> None: ...
def largest(
    G: _Vector,
    panel: _Index,
    group: _Index,
    at: _Index,
    start: _Index,
    room: _Vector,
    out: _Vector,
) -> None: ...
def largest_of(G: _Matrix, start: _Index, room: _Vector, out: _Vector) -> None: ...
def sweeps(
    X: _Panels,
    G: _Vector,
    panel: _Index,
    group: _Index,
    at: _Index,
    start: _Index,
    bend: _Vector,
    a: _Vector,
    scale: float,
    R: _Matrix,
    W: _Matrix,
    room: _Vector,
    alive: NDArray[np.uint8],
    whole: bool,
    inner: int,
    part: float,
    target: float,
    enough: float,
    fine: float,
    least: float,
    far: _Vector,
) -> int: ...
def move(X: _Panels, D: _Matrix, room: _Vector, R: _Matrix) -> None: ...
def products(X: _Panels, R: _Matrix, scale: float, room: _Vector, out: _Matrix) -> None: ...
