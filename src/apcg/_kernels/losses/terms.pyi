from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

KINDS: dict[str, int]

class Outer:
    def __init__(
        self,
        name: str,
        weight: ArrayLike = (1.0,),
        sign: ArrayLike = (1.0,),
        theta: ArrayLike = ((0.0,),),
        *,
        addresses: tuple[int, int] | None = None,
        owner: object = None,
    ) -> None: ...
    def value(self, t: NDArray[np.float64]) -> float: ...
    def derivative(self, t: NDArray[np.float64]) -> NDArray[np.float64]: ...

class Psi:
    def __init__(
        self,
        name: str,
        theta: NDArray[np.float64] | Sequence[Sequence[float]] = ((0.0,),),
        *,
        weight: float = 1.0,
        scale: ArrayLike = (1.0,),
        gamma: float = 0.0,
        moved: float = 0.0,
        addresses: tuple[int, int] | None = None,
        owner: object = None,
    ) -> None: ...
    @property
    def is_block(self) -> bool: ...
    def value(self, x: NDArray[np.float64], index: NDArray[np.intp] | None = None) -> float: ...
    def contains(self, x: NDArray[np.float64]) -> bool: ...
    def prox(
        self,
        v: NDArray[np.float64],
        step: NDArray[np.float64],
        index: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]: ...
    def value_of_blocks(self, x: NDArray[np.float64], starts: NDArray[np.intp]) -> float: ...
    def prox_of_blocks(
        self, v: NDArray[np.float64], step: NDArray[np.float64], starts: NDArray[np.intp]
    ) -> None: ...
