from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

SOUND: int
BROKEN: int
NOT_FINITE: int
REPEATED: int
UNSORTED: int

def inspect_csr(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    columns: int,
    seen: NDArray[np.intp],
    norms: NDArray[np.float64],
) -> tuple[int, int]: ...
def inspect_dense(data: _Values, norms: NDArray[np.float64]) -> int: ...
def within(indices: _Indices, indptr: _Indices, columns: int) -> bool: ...
def times(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    constant: float,
    w: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def adjoint(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    constant: float,
    r: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def gram_times(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    constant: float,
    s: NDArray[np.float64],
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def column_squares(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    s: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def gram(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    constant: float,
    s: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def squared_norms(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    weight: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def neighbours(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    rows: NDArray[np.intp],
    out: NDArray[np.float64],
) -> bool: ...
def inner(v: NDArray[np.float64], w: NDArray[np.float64]) -> float: ...
def add(y: NDArray[np.float64], a: float, x: NDArray[np.float64]) -> None: ...
