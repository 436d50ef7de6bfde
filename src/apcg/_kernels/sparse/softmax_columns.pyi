from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Bytes: TypeAlias = NDArray[np.uint8]
_Vector: TypeAlias = NDArray[np.float64]
_Matrix: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.int64]

def slopes(
    entries: _Bytes,
    wide: bool,
    start: _Places,
    ids: _Places,
    u: _Matrix,
    out: _Matrix,
    top: _Vector,
) -> None: ...
def add(
    entries: _Bytes,
    wide: bool,
    start: _Places,
    ids: _Places,
    classes: _Places,
    v: _Vector,
    out: _Matrix,
) -> None: ...

class Model:
    def __init__(
        self,
        entries: _Bytes,
        wide: bool,
        start: _Places,
        ids: _Places,
        classes: _Places,
        state: _Matrix,
        rows: _Matrix,
    ) -> None: ...
    def bends(self, h: _Vector) -> None: ...
    def sweep(
        self,
        positions: _Places,
        v: _Vector,
        h: _Vector,
        a: _Vector,
        b: _Vector,
        lower: _Vector,
        upper: _Vector,
    ) -> tuple[float, int]: ...
    def left(self, T: _Matrix) -> None: ...
    def along(self, T: _Matrix, t: float, room: _Vector) -> None: ...
    def gradients(
        self,
        support: _Places,
        v: _Vector,
        h: _Vector,
        ones: _Vector,
        a: _Vector,
        b: _Vector,
        lower: _Vector,
        upper: _Vector,
        T: _Matrix,
        step: _Vector,
        work: _Matrix,
        room: _Vector,
        most: int,
        share: float,
    ) -> int: ...
