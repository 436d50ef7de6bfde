from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]
_Index: TypeAlias = NDArray[np.int64]
_Place: TypeAlias = NDArray[np.int32]
_Bytes: TypeAlias = NDArray[np.uint8]

def counts(
    indices: NDArray[Any], indptr: NDArray[Any], count: _Index, following: _Index
) -> bool: ...
def widest(following: _Index) -> tuple[int, int]: ...
def independent(
    rows: NDArray[Any], start: NDArray[Any], order: _Index, taken: _Bytes, chosen: _Bytes
) -> None: ...
def id_of_rows(
    indices: NDArray[Any], indptr: NDArray[Any], place: _Place, ids: int, key: _Place
) -> None: ...
def sort_rows(
    key: _Place,
    indptr: NDArray[Any],
    longest: int,
    room: _Index,
    first: _Index,
    by_length: _Index,
    order: _Index,
) -> None: ...
def copy_rows(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: _Index,
    place: _Place,
    ids: int,
    border: bool,
    last: int,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
) -> None: ...
def pattern(
    first: _Index,
    start: _Index,
    column: _Place,
    bits: NDArray[np.uint64],
    rank: _Place,
    under: _Index,
    columns: _Place,
    slot: _Place,
) -> None: ...
def times(
    first: _Index,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
    w: _Vector,
    out: _Vector,
) -> None: ...
def adjoint(
    first: _Index,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
    r: _Vector,
    out: _Vector,
) -> None: ...
def gram_times(
    first: _Index,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
    h: _Vector,
    p: _Vector,
    q: _Vector,
    out: _Vector,
) -> None: ...
def squares(
    first: _Index,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
    h: _Vector,
    out: _Vector,
) -> None: ...
def touched(first: _Index, new: _Vector, old: _Vector, under: _Index) -> tuple[float, float]: ...
def build(
    first: _Index,
    own: _Vector,
    start: _Index,
    column: _Place,
    value: _Vector,
    under: _Index,
    columns: _Place,
    slot: _Place,
    new: _Vector,
    old: _Vector,
    active: _Bytes,
    D: _Vector,
    G: _Vector,
    k: int,
    S: _Vector,
) -> None: ...
def eliminate(
    under: _Index, columns: _Place, D: _Vector, G: _Vector, r: _Vector, rest: _Vector
) -> None: ...
def restore(
    under: _Index,
    columns: _Place,
    D: _Vector,
    G: _Vector,
    r: _Vector,
    f: _Vector,
    x: _Vector,
) -> None: ...
