import numpy as np
from numpy.typing import ArrayLike, NDArray

class Loss:
    def __init__(self, name: str, theta: ArrayLike) -> None: ...
    def value(self, t: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def derivative(self, t: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def curvature(self, t: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def conjugate(self, x: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def total(
        self,
        t: NDArray[np.float64],
        labels: NDArray[np.float64],
        margin: bool,
        weights: NDArray[np.float64],
    ) -> float: ...
    def duals(
        self,
        t: NDArray[np.float64],
        labels: NDArray[np.float64],
        margin: bool,
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]: ...
    def total_conjugate(self, x: NDArray[np.float64], weights: NDArray[np.float64]) -> float: ...
    def gap_share(
        self,
        m: NDArray[np.float64],
        x: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]: ...
    def dual_prox(
        self,
        v: NDArray[np.float64],
        step: NDArray[np.float64],
        near: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]: ...
