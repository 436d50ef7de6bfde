"""The smooth part f of `minimize`.

    f(x) = sum_j h_j((A x)_j) + <c, x> + (sigma/2)|x|^2

with h a square (`LeastSquares`), a logistic loss (`Logistic`) or your own (`LinearComposite` with
`Custom`), and `Quadratic`, given by its matrix or by a factor of it. An object of your own with
`value(x)`, `partial_gradient(i, x)` and `L` (one constant for each block) serves as well
(`OwnFunction`); it runs in Python. If it likes it has `mu`, its convexity parameter relative to
|.|_L.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ._base import validation as validate
from ._base.checks import CheckReport, function_report
from ._base.compile import Function, pointer
from ._base.own import refuse_overrides
from ._base.types import Block, Blocks, MatrixLike
from ._base.validation import Index, Vector
from ._kernels.losses.terms import Outer
from .data import Matrix, by_coordinate, by_row
from .data.spectra import check_quadratic, largest_eigenvalue, squared_spectral_norm

__all__ = ["Custom", "LeastSquares", "LinearComposite", "Logistic", "Quadratic", "check"]


def check(
    f: LinearComposite | OwnFunction, x: ArrayLike | None = None, blocks: Blocks | None = None
) -> CheckReport:
    """Compare value, partial gradients, L and mu of a function with one another, by brute force.

    Parameters
    ----------
    f : function
        A function of `apcg.functions`, or an object of your own.
    x : array, default=None
        A point to look around; None is zero, if f says how many coordinates it has.
    blocks : list, default=None
        As for `minimize`.

    Returns
    -------
    CheckReport
        True if all is well; `str` has a line for each comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions
    >>> bool(functions.check(functions.LeastSquares(np.eye(3), np.ones(3))))
    True
    """
    from .problems.composite import Composite

    N = getattr(f, "n_coordinates", None)
    if x is not None:
        around = validate.vector(x, N, "x").copy()
    elif N is not None:
        around = np.zeros(N)
    else:
        raise ValueError("x is needed: f does not say how many coordinates there are.")
    return function_report(Composite(f, None, around.size, blocks), around)


#: What a subclass of the user's may say.
_SAYS: frozenset[str] = frozenset()


def refuse_ignored(f: LinearComposite) -> None:
    """Refuse a subclass of the user's whose value or gradient the compiled code would not call."""
    refuse_overrides(
        f,
        LinearComposite,
        _SAYS,
        "Write an object that is not derived from it, with value(x), partial_gradient(i, x) and "
        "L, or take functions.Custom for h.",
    )


class OwnFunction(Protocol):
    """What `minimize` asks of an f of your own. It may have `mu` and `n_coordinates` as well.

    i is the number of a block. The entries of a block are a number if blocks are coordinates, else
    an array.
    """

    @property
    def L(self) -> ArrayLike | Callable[[], ArrayLike]:
        """The Lipschitz constants of the partial gradients: one for each block, or one for all."""

    def value(self, x: Vector, /) -> float:
        """f(x)"""

    def partial_gradient(self, i: int, x: Vector, /) -> Block:
        """The entries of the gradient in block i."""


class Outside(Protocol):
    """h of a `LinearComposite`, like `Custom`."""

    @property
    def smoothness(self) -> float:
        """A Lipschitz constant of every h_j'."""

    def outer(self, n_rows: int) -> Outer:
        """The compiled h for A with n_rows rows."""


class Custom:
    """Your own h_j(t) at compiled speed, from scalar functions.

    value(t, b) and derivative(t, b) are plain functions of numbers (compiled by numba) or
    `scipy.LowLevelCallable`s `double (double, double *)`. b is data[j], the row's own number;
    without `data` it is 0. `smoothness` is a Lipschitz constant of the derivative in t.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions
    >>> value, derivative = lambda t, b: (t - b) ** 2 / 2, lambda t, b: t - b
    >>> h = functions.Custom(value, derivative, 1.0, data=[1.0, 2.0])  # compiled by numba
    >>> f = functions.LinearComposite(np.eye(2), h)
    >>> float(f.value(np.zeros(2)))
    2.5
    """

    def __init__(
        self,
        value: Function,
        derivative: Function,
        smoothness: float,
        data: ArrayLike | None = None,
    ) -> None:
        self.smoothness = validate.number(smoothness, "smoothness", low=0.0, open_low=True)
        self.data = None if data is None else validate.vector(data, None, "data").copy()
        self._value, self._derivative = value, derivative

    def outer(self, n_rows: int) -> Outer:
        """The compiled h for A with n_rows rows."""
        if self.data is not None and self.data.size != n_rows:
            raise ValueError(
                f"data of h must have one entry for each row of A: {n_rows}, got {self.data.size}."
            )
        value, value_owner = pointer(self._value, 1, "value")
        derivative, derivative_owner = pointer(self._derivative, 1, "derivative")
        theta = np.zeros((1, 1)) if self.data is None else self.data[:, None]
        return Outer(
            "custom",
            theta=theta,
            addresses=(value, derivative),
            owner=(value_owner, derivative_owner),
        )


class LinearComposite:
    """`f(x) = sum_j h_j((A x)_j) + <c, x> + (sigma/2)|x|^2`, with h an object like `Custom`.

    A is dense or sparse, rows by coordinates; c is a vector; sigma a number >= 0 or a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions
    >>> isinstance(functions.LeastSquares(np.eye(2), [1.0, 2.0]), functions.LinearComposite)
    True
    """

    def __init__(
        self, A: MatrixLike, h: Outside, c: ArrayLike | None = None, sigma: ArrayLike = 0.0
    ) -> None:
        if not hasattr(h, "outer"):
            raise TypeError(
                f"h must be a functions.Custom (scalar value and derivative), got {h!r}."
            )
        self._h = h
        self._set(by_coordinate(A, "A"), h.smoothness, c=deepcopy(c), sigma=deepcopy(sigma))

    def _set(
        self,
        columns: Matrix,
        smoothness: float,
        *,
        shift: Vector | None = None,
        sign: Vector | None = None,
        c: ArrayLike | None = None,
        sigma: ArrayLike = 0.0,
    ) -> None:
        N = columns.shape[0]
        self.columns = columns
        self.outer = self._make()
        self.smoothness = smoothness  # of every h_j
        self.shift = shift  # q = A v - shift: h is a function of the residual
        self.sign = np.ones(1) if sign is None else sign  # A_i is sign_i times the stored column
        self.c = np.zeros(1) if c is None else validate.vector(c, N, "c", each="coordinate")
        self.sigma: Vector = np.atleast_1d(
            validate.number(sigma, "sigma", low=0.0)
            if np.ndim(sigma) == 0
            else validate.vector(sigma, N, "sigma", each="coordinate")
        )
        if self.sigma.min() < 0:
            raise ValueError(f"sigma must not be negative, got {self.sigma.min():g}.")

    def _make(self) -> Outer:
        """The compiled h. It holds addresses: it is made again where f is unpickled."""
        return self._h.outer(self.columns.shape[1])

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in vars(self).items() if k != "outer"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.outer = self._make()

    @property
    def n_coordinates(self) -> int:
        """N, the length of x."""
        return self.columns.shape[0]

    def rows(self, x: Vector) -> Vector:
        """A x less the shift of h: what p and q are made of."""
        r = self.columns.adjoint(x if self.sign.size == 1 else self.sign * x)
        return r if self.shift is None else r - self.shift

    def add_to_shift(self, row: int, change: float) -> None:
        """Move the shift of one row: h is then a function of A x less another number there."""
        if self.shift is None:
            self.shift = np.zeros(self.columns.shape[1])
        self.shift[row] += change

    def point(self, x: ArrayLike) -> Vector:
        """x as the kernels read it: they do not look at its length."""
        return validate.vector(x, self.n_coordinates, "x", finite=False)

    def value(self, x: ArrayLike) -> float:
        """f(x)"""
        x = self.point(x)
        return self.value_from(x, self.rows(x))

    def value_from(self, x: Vector, rows: Vector) -> float:
        """f(x), given rows = `self.rows(x)`."""
        validate.check_length(rows, self.columns.shape[1], "rows")
        return float(self.outer.value(rows) + self._extra_value(x))

    def gradient(self, x: ArrayLike) -> Vector:
        """The whole gradient of f at x."""
        x = self.point(x)
        slope = self.outer.derivative(self.rows(x))
        return self.sign * self.columns.times(slope) + self.c + self.sigma * x

    def partial_gradient(self, i: int | Index, x: ArrayLike) -> float | Vector:
        """The entries of the gradient at the coordinate (or coordinates) i."""
        x = self.point(x)
        i = np.asarray(i, dtype=np.intp)
        g = self.sign[self._at(self.sign, i)] * self._linear_part(np.atleast_1d(i), x)
        g = g + self.c[self._at(self.c, i)] + self.sigma[self._at(self.sigma, i)] * x[i]
        return float(g[0]) if i.ndim == 0 else g

    def lipschitz(self, members: Index | None = None, starts: Index | None = None) -> Vector:
        """L_i for each coordinate, or for each block of the partition."""
        if members is None or starts is None:
            with np.errstate(over="ignore"):  # an L_i that is not finite is found by who uses it
                return self.smoothness * self._diagonal() + self.sigma
        sigma = np.broadcast_to(self.sigma, self.n_coordinates)
        L: Vector = (self.smoothness * self._diagonal() + sigma)[members[starts[:-1]]]
        for i in np.flatnonzero(np.diff(starts) > 1):
            block = members[starts[i] : starts[i + 1]]
            L[i] = self._block_constant(block) + sigma[block].max()
        return L

    def _extra_value(self, x: Vector) -> float:
        return float(np.sum(self.c * x) + 0.5 * np.sum(self.sigma * x * x))

    def _linear_part(self, i: Index, x: Vector) -> Vector:
        return self.columns.rows(i).times(self.outer.derivative(self.rows(x)))

    def _diagonal(self) -> Vector:
        return self.columns.squared_norms()

    def _block_constant(self, members: Index) -> float:
        return self.smoothness * squared_spectral_norm(self.columns.rows(members))

    @staticmethod
    def _at(parameter: Vector, i: Index) -> Index:
        return i if parameter.size > 1 else np.zeros_like(i)

    def __repr__(self) -> str:
        rows, N = self.columns.shape[1], self.n_coordinates
        return f"{type(self).__name__}({rows} rows, {N} coordinates, {self.columns.nnz} stored)"


class LeastSquares(LinearComposite):
    """f(x) = (1/2)|A x - b|^2 + (sigma/2)|x|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.functions import LeastSquares
    >>> f = LeastSquares(np.array([[1.0, 0.0], [0.0, 2.0]]), [1.0, 2.0])
    >>> f.value(np.zeros(2)), f.partial_gradient(1, np.zeros(2))
    (2.5, -4.0)
    """

    def __init__(self, A: MatrixLike, b: ArrayLike, sigma: ArrayLike = 0.0) -> None:
        columns = by_coordinate(A, "A")
        shift = validate.vector(b, columns.shape[1], "b", each="row of A").copy()
        self._set(columns, 1.0, shift=shift, sigma=deepcopy(sigma))

    def _make(self) -> Outer:
        return Outer("square")


class Logistic(LinearComposite):
    """f(x) = sum_j log(1 + exp(-y_j (A x)_j)) + (sigma/2)|x|^2, with y_j = -1 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.functions import Logistic
    >>> round(Logistic(np.eye(2), [1, -1]).value(np.zeros(2)), 4)
    1.3863
    """

    def __init__(self, A: MatrixLike, y: ArrayLike, sigma: ArrayLike = 0.0) -> None:
        columns = by_coordinate(A, "A")
        labels = validate.vector(y, columns.shape[1], "y", each="row of A")
        if not np.isin(labels, (-1.0, 1.0)).all():
            found = ", ".join(f"{v:g}" for v in np.unique(labels)[:5])
            raise ValueError(
                f"y must hold the labels -1 and 1 only, got {found}; use "
                "np.where(y == positive, 1, -1), with the label that is to be 1."
            )
        self._labels = labels.copy()
        self._set(columns, 0.25, sigma=deepcopy(sigma))

    def _make(self) -> Outer:
        return Outer("logistic", sign=self._labels)


class Quadratic(LinearComposite):
    """`f(x) = (1/2)x'Qx + <c, x>`, given Q (symmetric, positive semidefinite) or B with Q = B'B.

    Quadratic(Q, c) keeps p = Qu and q = Qv and reads the gradient at i; Quadratic(c=c, factor=B)
    keeps p = Bu and q = Bv. Take whichever has fewer nonzeros.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions, minimize
    >>> f = functions.Quadratic(np.array([[2.0, 0.0], [0.0, 4.0]]), c=[-2.0, -4.0])
    >>> minimize(f, random_state=0).x.round(4)
    array([1., 1.])
    """

    def __init__(
        self,
        Q: MatrixLike | None = None,
        c: ArrayLike | None = None,
        *,
        factor: MatrixLike | None = None,
    ) -> None:
        if (Q is None) == (factor is None):
            raise ValueError("Give Q or factor (with Q = factor' factor), one of the two.")
        if factor is not None:
            self._set(by_coordinate(factor, "factor"), 1.0, c=deepcopy(c))
            return
        columns = by_row(Q, "Q")
        self._diagonal_of_Q = check_quadratic(columns)
        self._given_Q = True
        self._set(columns, 1.0, c=deepcopy(c))

    _given_Q = False

    def _make(self) -> Outer:
        return Outer("gram" if self._given_Q else "square")

    def value_from(self, x: Vector, rows: Vector) -> float:
        if not self._given_Q:
            return super().value_from(x, rows)
        return float(0.5 * x @ rows + self._extra_value(x))

    def gradient(self, x: ArrayLike) -> Vector:
        """The whole gradient of f at x."""
        x = self.point(x)
        return self.columns.adjoint(x) + self.c if self._given_Q else super().gradient(x)

    def _linear_part(self, i: Index, x: Vector) -> Vector:
        if not self._given_Q:
            return super()._linear_part(i, x)
        return self.columns.rows(i).times(x)

    def _diagonal(self) -> Vector:
        if not self._given_Q:
            return super()._diagonal()
        return self._diagonal_of_Q

    def _block_constant(self, members: Index) -> float:
        if not self._given_Q:
            return super()._block_constant(members)
        return largest_eigenvalue(self.columns.rows(members), members)
