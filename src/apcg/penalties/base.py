"""What ERM, the methods and the certificates ask of the regulariser g, whatever K is.

With one output w is a vector of d numbers; with K > 1 it is a matrix of d rows and K columns.
If g is strongly convex, g* is smooth and the dual can be solved. Coordinate methods also need g to
be a sum over features (`separable`), which a g of the user's is not known to be.
"""

from __future__ import annotations

from typing import Any, Protocol

from .._base.validation import Vector

#: The names of penalties, and those that are for K > 1 outputs only: of the rows of W.
NAMES = ("l2", "l1", "elasticnet")
GROUPS = ("group", "group_elasticnet")

NOT_SEPARABLE = (
    "coordinate methods step on one feature or sample at a time, and of a penalty of your own only "
    'the prox of the whole is known; take method "afg".'
)


class Regulariser(Protocol):
    """What ERM, the methods and the certificates ask of g."""

    @property
    def separable(self) -> bool:
        """Whether g is a sum over features that the kernels know: coordinate methods need it."""

    @property
    def in_groups(self) -> bool:
        """Whether g is a sum of norms of groups of features, or of the rows of W."""

    @property
    def strong_convexity(self) -> float:
        """The largest mu known with g - (mu/2)|w|^2 convex."""

    @property
    def is_l2(self) -> bool:
        """Whether g(w) = (b/2)|w|^2, so that g* is a square too."""

    @property
    def is_quadratic(self) -> bool:
        """Whether g(w) = sum_j (b_j/2) w_j^2, without L1 and bounds."""

    @property
    def soft(self) -> tuple[float, float] | None:
        """(a, b) if g is the same a|w| + (b/2)w^2 for all entries of w, b > 0; else None."""

    @property
    def leaves_free(self) -> bool:
        """Whether some feature has no penalty and no bound on one side: g* is infinite but at 0."""

    @property
    def is_free(self) -> bool:
        """Whether no feature has a penalty or bounds, but for the box of the certificate."""

    @property
    def b(self) -> Vector:
        """b of the square sum_j (b_j/2) w_j^2 that g can be split into, and the rest of g.

        It multiplies w as it is: one number, one for each feature, or a column of those.
        """

    @property
    def splits_exactly(self) -> bool:
        """Whether `prox_without_square` takes every step, or only steps below 1/max(b)."""

    def value(self, w: Vector) -> float:
        """g(w), infinite outside its domain."""

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin_w g(w) + |w - v|^2/(2 step)"""

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        """The prox of g(w) - sum_j (b_j/2) w_j^2, what is left of g when f has its square."""

    def conjugate(self, v: Vector) -> float:
        """`g*(v) = max_w <v, w> - g(w)`, infinite outside its domain."""

    def conjugate_gradient(self, v: Vector) -> Vector:
        """A maximiser of `<v, w> - g(w)`: the gradient of g* at v if g is strongly convex."""

    def excess(self, v: Vector) -> float:
        """How many times v is outside the domain of g*: v/excess is inside; at most 1 inside."""

    def clip(self, w: Vector) -> Vector:
        """The point of the domain of g nearest to w, as far as that is known."""

    def contains(self, w: Vector) -> bool:
        """Whether g(w) is finite."""

    def extended(self, d: int, strength: float) -> Regulariser:
        """With one more feature after the d there are, whose penalty is (strength/2)w^2."""


def shown(penalty: Any) -> str:
    """What to call a penalty in messages: its name, its repr, or its class if it has no repr."""
    if isinstance(penalty, str):
        return penalty
    own: Any = type(penalty).__repr__
    return type(penalty).__name__ if own is object.__repr__ else repr(penalty)
