"""Norms of groups: g(w) = sum_q a_q |w_q|_2 + (b/2)|w|^2.

The groups are sets of features (one output), or the rows of W: a feature is in or out for all K
outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Index, Vector

_NONE = np.empty(0, np.intp)


class GroupNorms:
    """g by the weights a, one for each group, or one number for all rows of W.

    Group q has the features members[starts[q]:starts[q + 1]]; both are empty if the groups are the
    rows of W. `last` is the strength of one more row of W, or feature, after the `rows` there are:
    an intercept's, with the penalty (last/2)|.|^2 and not in any group.
    """

    separable = is_l2 = is_quadratic = is_free = False
    in_groups = splits_exactly = True
    soft = None

    def __init__(
        self, a: Any, ridge: float = 0.0, members: Index = _NONE, starts: Index = _NONE
    ) -> None:
        self.a, self.ridge, self.members, self.starts = a, ridge, members, starts
        #: the group of each feature
        self.group_of = np.empty(members.size, np.intp)
        self.group_of[members] = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        self.last: float | None = None
        self.rows = 0

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
        return cls(a, 0.0, members, starts)

    def extended(self, d: int, strength: float) -> GroupNorms:
        other = copy(self)
        other.last, other.rows = strength, d
        return other

    @property
    def of_rows(self) -> bool:
        """Whether the groups are the rows of W."""
        return self.members.size == 0

    @property
    def strong_convexity(self) -> float:
        return self.ridge if self.last is None else min(self.ridge, self.last)

    @property
    def b(self) -> Vector:
        if self.last is None or self.ridge == self.last:
            return np.array([self.ridge])
        return np.append(np.full(self.rows, self.ridge), self.last)[:, None]

    @property
    def leaves_free(self) -> bool:
        return self.of_rows and self.a == 0 and self.ridge == 0

    def norms(self, w: Vector) -> Vector:
        """|w_q| for each group."""
        w = w if self.last is None else w[:-1]
        if self.of_rows:
            return safe_norms(lambda v: np.einsum("jk,jk->j", v, v), w)
        return safe_norms(lambda v: np.bincount(self.group_of, v * v, self.a.size), w)

    def value(self, w: Vector) -> float:
        norms = self.norms(w)
        total = self.a * float(norms.sum()) if self.of_rows else float(self.a @ norms)
        if self.ridge:  # 0 times a square that overflows would be nan
            total += 0.5 * self.ridge * float(norms @ norms)
        return total + (0.5 * self.last * float(np.vdot(w[-1], w[-1])) if self.last else 0.0)

    def prox(self, v: Vector, step: float) -> Vector:
        return self.prox_without_square(v, step) / (1 + step * self.b)

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        norms = self.norms(v)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # 0/0 if a is 0
            keep = np.where(norms > 0, np.maximum(1 - step * self.a / norms, 0.0), 0.0)
        return self._scaled(keep, v)

    def _scaled(self, each: Vector, v: Vector) -> Vector:
        """Each group of v times its number; the last row as it is."""
        own = v if self.last is None else v[:-1]
        scaled = (each[:, None] if self.of_rows else each[self.group_of]) * own
        return scaled if self.last is None else np.concatenate([scaled, v[-1:]])

    def conjugate(self, v: Vector) -> float:
        if self.ridge == 0:
            return 0.0 if self.excess(v) <= 1 else math.inf
        over = np.maximum(self.norms(v) - self.a, 0.0)
        return 0.5 * float(over @ over) / self.ridge

    def conjugate_gradient(self, v: Vector) -> Vector:
        if self.ridge == 0:
            raise ValueError("a sum of norms is not strongly convex: its g* has no gradient.")
        norms = self.norms(v)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            keep = np.where(norms > self.a, (1 - self.a / norms) / self.ridge, 0.0)
        return self._scaled(keep, v)

    def excess(self, v: Vector) -> float:
        return 0.0 if self.ridge > 0 else float(np.max(self.norms(v) / self.a, initial=0.0))

    def clip(self, w: Vector) -> Vector:
        return w

    def contains(self, w: Vector) -> bool:
        return True


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
