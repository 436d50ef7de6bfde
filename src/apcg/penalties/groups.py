"""The regulariser of the group lasso: g(w) = sum_q a_q |w_q|_2 over groups of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Index, Vector


class GroupNorms:
    """g for d features, with the groups by `members` and `starts`; a last feature may be free.

    Group q has the features members[starts[q]:starts[q + 1]].
    """

    separable = is_l2 = is_quadratic = leaves_free = False
    splits_exactly = True
    strong_convexity = 0.0

    def __init__(self, members: Index, starts: Index, a: Vector, free: bool = False) -> None:
        self.members, self.starts, self.a, self.free = members, starts, a, free
        sizes = np.diff(starts)
        #: the group of each feature
        self.group_of = np.empty(members.size, np.intp)
        self.group_of[members] = np.repeat(np.arange(sizes.size), sizes)

    @classmethod
    def of(cls, penalty: Any, d: int) -> GroupNorms:
        """From a `penalties.GroupLasso`."""
        members, starts = check.partition(penalty.groups, d, "groups", "feature")
        count = starts.size - 1
        if np.size(penalty.weights) not in (1, count):
            raise ValueError(f"weights must be a number or {count} of them, one for each group.")
        a = np.array(np.broadcast_to(penalty.weights, count), dtype=np.float64)
        if not a.min() > 0:
            raise ValueError("weights of a group lasso must be positive.")
        return cls(members, starts, a)

    @property
    def b(self) -> Vector:
        return np.zeros(1)

    def norms(self, w: Vector) -> Vector:
        """|w_q| for each group."""
        of = self.group_of
        return safe_norms(lambda v: np.bincount(of, _squared(v)[: of.size], self.a.size), w)

    def value(self, w: Vector) -> float:
        return float(self.a @ self.norms(w))

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin_w g(w) + |w - v|^2/(2 step)"""
        norms = self.norms(v)
        with np.errstate(divide="ignore", over="ignore"):
            keep = np.where(norms > 0, np.maximum(1 - step * self.a / norms, 0.0), 0.0)
        made = keep[self.group_of] * v[: self.group_of.size]
        return np.append(made, v[-1]) if self.free else made

    prox_without_square = prox

    def conjugate(self, v: Vector) -> float:
        return 0.0 if self.excess(v) <= 1 else math.inf

    def conjugate_gradient(self, v: Vector) -> Vector:
        """g* has none."""
        raise ValueError("the group lasso is not strongly convex: its conjugate has no gradient.")

    def excess(self, v: Vector) -> float:
        return float(np.max(self.norms(v) / self.a, initial=0.0))

    def clip(self, w: Vector) -> Vector:
        return w

    def contains(self, w: Vector) -> bool:
        return True

    def extended(self, d: int, strength: float) -> GroupNorms:
        """With one more feature without any penalty."""
        return GroupNorms(self.members, self.starts, self.a, free=True)


#: A sum of squares within these has lost no digit to squares that underflow or overflow.
_LEAST, _MOST = 1e-280, 1e300
#: What numbers are multiplied by if theirs is below: no square of such a number is out of range.
_UP = 2.0**700


def safe_norms(sums: Callable[[Any], Any], w: Any) -> Vector:
    """The roots of `sums(w)`, sums of squares by groups; w may be as small or large as it likes.

    Tiny and huge ones are scaled before they are squared: a norm that underflows to zero would be
    within any bound.
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = sums(w)
        found = np.sqrt(squares)
        for off, scale in ((squares < _LEAST, _UP), (squares > _MOST, 1 / _UP)):
            if off.any():
                found[off] = np.sqrt(sums(w * scale)[off]) / scale
    return np.asarray(found)


def _squared(w: Vector) -> Vector:
    return w * w
