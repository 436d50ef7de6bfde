from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Bytes: TypeAlias = NDArray[np.uint8]
_Vector: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.int64]

def entry_size(wide: bool) -> int: ...
def pack(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    wide: bool,
    out: _Bytes,
    start: _Places,
    place: _Places,
    squares: _Vector,
    most: _Vector,
) -> None: ...
def products(
    entries: _Bytes, wide: bool, start: _Places, columns: _Places, u: _Vector, out: _Vector
) -> None: ...
def scaled(
    entries: _Bytes,
    wide: bool,
    start: _Places,
    ids: _Places,
    root: _Vector,
    out: _Bytes,
    starts: _Places,
    squares: _Vector,
    product: _Vector,
) -> None: ...
def gram_rows(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    place: _Places,
    first: int,
    bend: _Vector,
    positions: _Places,
    values: _Vector,
    out: NDArray[np.float64],
) -> None: ...

class Set:
    def __init__(
        self,
        entries: _Bytes,
        wide: bool,
        start: _Places,
        ids: _Places,
        squares: _Vector,
        mean: _Vector,
        e: _Vector,
        rows: int,
    ) -> None: ...
    def times(self, v: _Vector, u: _Vector) -> None: ...
    def sweep(
        self,
        positions: _Places,
        v: _Vector,
        r: _Vector,
        sigma: float,
        a: _Vector,
        b: _Vector,
        lower: _Vector,
        upper: _Vector,
    ) -> tuple[float, int, float]: ...
    def gradients(
        self,
        support: _Places,
        v: _Vector,
        r: _Vector,
        q: _Vector,
        step: _Vector,
        work: NDArray[np.float64],
        a: _Vector,
        b: _Vector,
        lower: _Vector,
        upper: _Vector,
        most: int,
        share: float,
        least: float,
    ) -> tuple[int, float]: ...
