"""A psi of your own, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation as validate
from .._base.compile import Function, ProxFunction, pointer
from .._base.validation import Vector
from .._kernels.losses.terms import Psi
from .psi import Penalty


class Custom(Penalty):
    """Your own psi_i(x) at compiled speed, from scalar functions.

    value(x, a) and prox(v, step, a) are plain functions of numbers (compiled by numba) or
    `scipy.LowLevelCallable`s `double (double, double *)` and `double (double, double, double *)`.
    a is data[i], the coordinate's own number; without `data` it is 0. The prox is
    argmin_x psi_i(x) + (x - v)^2/(2 step), and value is infinite outside the domain.

    Examples
    --------
    >>> from apcg.penalties import Custom
    >>> value, prox = lambda x, a: a * x * x / 2, lambda v, step, a: v / (1 + step * a)
    >>> psi = Custom(value, prox, data=[1.0, 3.0])  # compiled by numba
    >>> psi.prox(2.0, 1.0, 0), psi.prox(2.0, 1.0, 1)
    (1.0, 0.5)
    """

    splits_exactly = False

    def __init__(
        self,
        value: Function,
        prox: ProxFunction,
        data: ArrayLike | None = None,
        strong_convexity: float = 0.0,
    ) -> None:
        self.data = None if data is None else validate.vector(data, None, "data").copy()
        self._functions = value, prox
        self._mu = validate.number(strong_convexity, "strong_convexity", low=0.0)
        self._moved = 0.0
        super().__init__()

    def _make(self) -> Psi:
        if not hasattr(self, "_compiled"):
            own_value, own_prox = self._functions
            self._compiled = pointer(own_value, 1, "value"), pointer(own_prox, 2, "prox")
        (value, value_owner), (prox, prox_owner) = self._compiled
        theta = np.zeros((1, 1)) if self.data is None else self.data[:, None]
        return Psi(
            "custom",
            theta,
            moved=self._moved,
            addresses=(value, prox),
            owner=(value_owner, prox_owner),
        )

    @property
    def size(self) -> int | None:
        return None if self.data is None else self.data.size

    @property
    def strong_convexity(self) -> float | Vector:
        return self._mu

    def without_strong_convexity(self) -> Penalty:
        moved = object.__new__(Custom)
        moved.__dict__.update(self.__dict__)  # with the machine code
        moved._mu, moved._moved = 0.0, self._moved + self._mu
        moved._terms = moved._make()
        return moved

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        state.pop("_compiled", None)  # addresses are good in this process only
        return state
