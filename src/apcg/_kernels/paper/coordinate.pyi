from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from ..losses.terms import Outer, Psi

_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

class Model:
    def __init__(
        self,
        outer: Outer,
        psi: Psi,
        c: NDArray[np.float64],
        sigma: NDArray[np.float64],
        sign: NDArray[np.float64],
        L: NDArray[np.float64],
        rows: int,
        members: NDArray[np.intp],
        starts: NDArray[np.intp],
        constant: float = 0.0,
    ) -> None: ...
    @property
    def outer(self) -> Outer: ...
    @property
    def psi(self) -> Psi: ...

class State:
    # Views of the arrays given: np.asarray(state.u) has the same memory.
    u: Buffer
    v: Buffer
    work: Buffer
    pq: Buffer
    s: float
    t: float
    gamma: float
    mu: float
    n: float
    fold_at: float
    folds: int
    def __init__(
        self,
        u: NDArray[np.float64],
        v: NDArray[np.float64],
        pq: NDArray[np.float64],
        work: NDArray[np.float64],
        *,
        n: float,
        mu: float,
        gamma: float,
        fold_at: float,
    ) -> None: ...
    def at(self, tau: float) -> NDArray[np.float64]: ...
    def rows(self, scale: float) -> NDArray[np.float64]: ...
    def fold(self) -> None: ...
    def restart(self) -> None: ...

def run(
    data: _Values,
    indices: _Indices,
    indptr: _Indices,
    model: Model,
    state: State,
    order: NDArray[np.intp],
) -> None: ...
