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
def tdot(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    r: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def dot(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    x: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def squared_norms(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    weight: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def gram(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    weight: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int: ...
def neighbours(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    d: int,
    rows: NDArray[np.intp],
    out: NDArray[np.float64],
) -> bool: ...
def inner(v: NDArray[np.float64], w: NDArray[np.float64]) -> float: ...
