"""Psi(x) = sum_i psi_i(x_i): value, prox and strong convexity.

Every penalty here is one of two functions with parameters, and a penalty of your own is a third:

    interval   a|x| + (b/2)x^2 on [lower, upper]          of a coordinate
    ball       a|x|_2 on the ball |x|_2 <= radius         of a block
    Custom     scalar functions of yours at compiled speed, of a coordinate

An object of your own with `value(x_i, i)` and `prox(v, step, i)`, and if it likes
`strong_convexity`, serves as well (`OwnPenalty`); it runs in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation as validate
from .._base.own import refuse_overrides
from .._base.types import Block
from .._base.validation import Index, Vector
from .._kernels.losses.terms import Psi

#: What a subclass may say; the compiled code reads the parameters, or what `_make` makes.
_SAYS = frozenset(("_parameters", "_make", "kind", "size", "is_block"))


def refuse_ignored(psi: Penalty) -> None:
    """Refuse a subclass of the user's whose value or prox the compiled code would not call."""
    refuse_overrides(
        psi,
        Penalty,
        _SAYS,
        "Write an object that is not derived from it, with value(x_i, i) and prox(v, step, i) (or, "
        "for ERM, over all of w: value, prox and conjugate), or take penalties.Custom.",
    )


class OwnPenalty(Protocol):
    """What `minimize` asks of a psi of your own. It may have `strong_convexity` as well.

    x_i and v are numbers if blocks are coordinates, else arrays of the block's entries.
    """

    def value(self, x_i: Block, i: int, /) -> float:
        """psi_i(x_i)"""

    def prox(self, v: Block, step: float, i: int, /) -> Block:
        """argmin psi_i(x_i) + |x_i - v|^2/(2 step)"""


class Penalty(ABC):
    """A psi the kernels know. A subclass makes `terms` and says how strongly convex it is.

    Examples
    --------
    >>> from apcg import penalties
    >>> isinstance(penalties.L1(0.1), penalties.Penalty), penalties.L2(0.1).strong_convexity
    (True, 0.1)
    """

    #: Whether psi_i takes a block as a whole, or each coordinate by itself.
    is_block = False

    def __init__(self) -> None:
        self._terms = self._make()

    @abstractmethod
    def _make(self) -> Psi:
        """The compiled function with its parameters."""

    @property
    def terms(self) -> Psi:
        """The compiled function and its parameters."""
        return self._terms

    @property
    def size(self) -> int | None:
        """How many coordinates (or blocks) the parameters are for; None if for any number."""
        return None

    @property
    def strong_convexity(self) -> float | Vector:
        """mu_Psi: Psi - (mu_Psi/2)|x|^2 is convex; a number, or one for each coordinate."""
        return 0.0

    #: Whether `without_strong_convexity` has a prox for every step, or only for steps < 1/mu_Psi.
    splits_exactly = True

    def without_strong_convexity(self) -> Penalty:
        """Psi-tilde of section 2.2, up to an affine function: Psi - (mu_Psi/2)|x|^2."""
        return self

    def value(self, x: ArrayLike, i: int | None = None) -> float:
        """psi_i(x). Without i: the sum over all coordinates of x (or psi of the one block x)."""
        x = np.atleast_1d(np.asarray(x, dtype=np.float64))
        return self.terms.value(np.ascontiguousarray(x), self._index(x.size, i))

    def prox(self, v: ArrayLike, step: ArrayLike, i: int | None = None) -> float | Vector:
        """argmin_x psi_i(x) + |x - v|^2/(2 step), of the shape of v; without i, of all coordinates.

        step is a number, or without i one number for each coordinate.
        """
        array = np.asarray(v, dtype=np.float64)
        steps = np.atleast_1d(np.asarray(step, dtype=np.float64))
        if not (np.all(steps > 0) and np.all(np.isfinite(steps))):
            raise ValueError(f"step must be positive and finite, got {step!r}.")
        flat = np.ascontiguousarray(array.reshape(-1))
        if steps.size not in (1, 1 if self.is_block else flat.size):
            raise ValueError(f"step must be a number or {flat.size} of them, got {steps.size}.")
        out = self.terms.prox(flat, steps, self._index(flat.size, i))
        return float(out[0]) if array.ndim == 0 else out.reshape(array.shape)

    def _index(self, size: int, i: int | None) -> Index:
        """Which parameters the kernels take for each entry: they do not look at the bounds."""
        known = self.size
        if i is not None:
            if known is not None and not 0 <= i < known:
                raise IndexError(
                    f"i must be in 0..{known - 1}, the penalty is for {known}; got {i}."
                )
            return np.full(1 if self.is_block else size, i, dtype=np.intp)
        wanted = 1 if self.is_block else size
        if known not in (None, wanted):
            what = "blocks: say which one, i" if self.is_block else f"coordinates, got {size}"
            raise ValueError(f"the penalty is for {known} {what}.")
        return np.arange(wanted, dtype=np.intp)

    def __repr__(self) -> str:
        def show(v: object) -> str:
            return f"array of {v.size}" if isinstance(v, np.ndarray) else repr(v)

        own = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return f"{type(self).__name__}({', '.join(f'{k}={show(v)}' for k, v in own.items())})"

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in vars(self).items() if k != "_terms"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._terms = self._make()


#: The parameters of the two compiled functions.
Two = tuple[float | Vector, float | Vector]
Four = tuple[float | Vector, float | Vector, float | Vector, float | Vector]


class _Parametric(Penalty):
    """One of the compiled functions with parameters, each a number or a vector."""

    kind: str

    @abstractmethod
    def _parameters(self) -> tuple[float | Vector, ...]:
        """The parameters of the compiled function, in its order."""

    def _make(self) -> Psi:
        columns = [np.atleast_1d(c) for c in self._parameters()]
        return Psi(self.kind, np.column_stack(np.broadcast_arrays(*columns)).astype(float))

    @property
    def size(self) -> int | None:
        return max((np.size(p) for p in self._parameters() if np.ndim(p)), default=None)


class _Interval(_Parametric):
    """psi_i(x) = a_i|x| + (b_i/2) x^2 on [lower_i, upper_i]; parameters (a, b, lower, upper)."""

    kind = "interval"

    @abstractmethod
    def _parameters(self) -> Four:
        """a, b, lower, upper"""

    @property
    def strong_convexity(self) -> float | Vector:
        return self._parameters()[1]


def _weight(value: ArrayLike, name: str) -> float | Vector:
    """A non-negative number, or a vector of them."""
    if np.ndim(value) == 0:
        return validate.number(value, name, low=0.0)
    weights = validate.vector(value, None, name).copy()
    if weights.size == 0:
        raise ValueError(f"{name} is empty: give a number, or one number for each coordinate.")
    if weights.min() < 0:
        raise ValueError(f"{name} must not be negative, got {weights.min():g} among its entries.")
    return weights


class Zero(_Interval):
    """psi = 0.

    Examples
    --------
    >>> from apcg.penalties import Zero
    >>> psi = Zero()
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (3.0, 0.25)
    """

    def _parameters(self) -> Four:
        return 0.0, 0.0, -np.inf, np.inf


class L1(_Interval):
    """psi_i(x) = alpha_i |x|; alpha a number or a vector.

    Examples
    --------
    >>> from apcg.penalties import L1
    >>> psi = L1(0.5)
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (2.5, 0.0)
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = _weight(alpha, "alpha")
        super().__init__()

    def _parameters(self) -> Four:
        return self.alpha, 0.0, -np.inf, np.inf


class L2(_Interval):
    """psi_i(x) = (alpha_i/2) x^2; alpha a number or a vector.

    Examples
    --------
    >>> from apcg.penalties import L2
    >>> psi = L2(1.0)
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (1.5, 0.125)
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = _weight(alpha, "alpha")
        super().__init__()

    def _parameters(self) -> Four:
        return 0.0, self.alpha, -np.inf, np.inf

    def without_strong_convexity(self) -> Penalty:
        return Zero()


class ElasticNet(_Interval):
    """psi_i(x) = alpha (l1_ratio |x| + (1 - l1_ratio)/2 x^2).

    Examples
    --------
    >>> from apcg.penalties import ElasticNet
    >>> psi = ElasticNet(1.0, l1_ratio=0.5)
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (1.6666666666666667, 0.0)
    """

    def __init__(self, alpha: ArrayLike, l1_ratio: float = 0.5) -> None:
        self.alpha = _weight(alpha, "alpha")
        self.l1_ratio = validate.number(l1_ratio, "l1_ratio", low=0.0, high=1.0)
        super().__init__()

    def _parameters(self) -> Four:
        return self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio), -np.inf, np.inf

    def without_strong_convexity(self) -> Penalty:
        return L1(self.alpha * self.l1_ratio)


class Box(_Interval):
    """psi_i = the indicator of [lower_i, upper_i]; each a number or a vector, infinite allowed.

    Examples
    --------
    >>> from apcg.penalties import Box
    >>> psi = Box(0.0, 1.0)
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (1.0, 0.25)
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        self.lower = _bound(lower, "lower")
        self.upper = _bound(upper, "upper")
        if np.ndim(lower) and np.ndim(upper) and np.size(lower) != np.size(upper):
            raise ValueError(
                f"lower and upper differ in length: {np.size(lower)} and {np.size(upper)}."
            )
        empty = np.flatnonzero(np.atleast_1d(np.asarray(self.lower) > self.upper))
        if empty.size:
            k = int(empty[0])
            low, high = (np.atleast_1d(v) for v in (self.lower, self.upper))
            raise ValueError(
                f"lower must not exceed upper; got lower = {low[k % low.size]:g} > upper = "
                f"{high[k % high.size]:g} (entry {k}, the first of {empty.size})."
            )
        super().__init__()

    def _parameters(self) -> Four:
        return 0.0, 0.0, self.lower, self.upper


def _bound(value: ArrayLike | None, name: str) -> float | Vector:
    wrong = np.inf if name == "lower" else -np.inf
    if value is None:
        raise TypeError(
            f"{name} must be a number or a vector, got None; for no bound give {-wrong}."
        )
    bounds = validate.to_array(value, name).astype(np.float64)
    if bounds.ndim > 1 or bounds.size == 0:
        raise ValueError(f"{name} must be a number or a vector, got shape {bounds.shape}.")
    if np.isnan(bounds).any() or (bounds == wrong).any():
        raise ValueError(f"{name} must not hold NaN or {wrong}; for no bound give {-wrong}.")
    return float(bounds) if bounds.ndim == 0 else bounds


class NonNegative(_Interval):
    """psi = the indicator of x >= 0.

    Examples
    --------
    >>> from apcg.penalties import NonNegative
    >>> psi = NonNegative()
    >>> psi.prox(3.0, 1.0, 0), psi.prox(0.25, 1.0, 0)
    (3.0, 0.25)
    """

    def _parameters(self) -> Four:
        return 0.0, 0.0, 0.0, np.inf


class _Ball(_Parametric):
    """psi_i(x) = a_i|x|_2 on |x|_2 <= radius_i, for blocks x."""

    kind = "ball"
    is_block = True

    @abstractmethod
    def _parameters(self) -> Two:
        """a, radius"""


class GroupL2(_Ball):
    """psi_i(x) = alpha_i |x|_2 for a block x; alpha a number, or one for each block.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.penalties import GroupL2
    >>> GroupL2(1.0).prox(np.array([3.0, 4.0]), 1.0, 0)
    array([2.4, 3.2])
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = _weight(alpha, "alpha")
        super().__init__()

    def _parameters(self) -> Two:
        return self.alpha, np.inf


class GroupLasso:
    """g(w) = sum_q weight_q |w_q|_2 over groups of features, for `ERM`.

    groups is a list of sizes of consecutive groups, or of arrays of features; each feature is in
    one of them. weights is a positive number, or one for each group.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, penalties, solve
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> g = penalties.GroupLasso([2, 2])  # features 0, 1 and features 2, 3
    >>> r = solve(ERM(X, X[:, 0], "squared", g, alpha=0.1))
    >>> (r.w != 0).tolist()
    [True, True, False, False]
    """

    def __init__(self, groups: Any, weights: ArrayLike = 1.0) -> None:
        self.groups, self.weights = groups, _weight(weights, "weights")

    def __repr__(self) -> str:
        return f"GroupLasso({len(self.groups)} groups)"


class L2Ball(_Ball):
    """psi_i = the indicator of |x|_2 <= radius_i for a block x; radius a number or one a block.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.penalties import L2Ball
    >>> L2Ball(1.0).prox(np.array([3.0, 4.0]), 1.0, 0)
    array([0.6, 0.8])
    """

    def __init__(self, radius: ArrayLike) -> None:
        self.radius = _weight(radius, "radius")
        super().__init__()

    def _parameters(self) -> Two:
        return 0.0, self.radius
