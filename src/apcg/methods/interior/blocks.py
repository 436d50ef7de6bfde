"""The penalty as interior points see it: blocks of W with norms, weights with bounds, and L2.

    lambda n (sum_B a_B |W_B| + (beta/2) |W|^2),    lower <= W <= upper

The blocks are entries of W (L1), its rows (groups of K outputs), or sets of features (groups of one
output). `NormBlocks` has all of them, `Bounds` those that are not norms; `cones` has the norms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from ...problems.erm import ERM
from .cones import Cones, Pairs
from .systems_k import Bend


class NormBlocks:
    """All blocks at once. W, r and steps are (d, K)."""

    def __init__(self, problem: ERM, first: float, near: Vector) -> None:
        """W = 0, or so near to its bounds; all products are about `first`."""
        g: Any = problem.g
        self._shape = d, K = problem.d, problem.K
        scale = problem.alpha * problem.n
        #: of each block the place of its entries in W, and one after the end in place of none
        self._parts: list[tuple[Index, Any]] = []
        self.W = np.zeros((d, K))
        if not problem.separable:
            self.ridge = np.full((d, 1), scale * g.ridge)
            where = np.arange(d * K).reshape(d, K) if g.of_rows else _padded(g)
            a = scale * np.broadcast_to(g.a, len(where))
            on = np.flatnonzero(a > 0)
            if on.size:
                self._parts.append((where[on], Cones(a[on], where.shape[1], first)))
            return
        a, b, lower, upper = (np.broadcast_to(p.reshape(-1), d) for p in g._parts)
        self.ridge = scale * b[:, None]
        bounded = np.isfinite(lower) | np.isfinite(upper)
        on = np.flatnonzero((a > 0) & ~bounded)
        if on.size:
            where = (K * on[:, None] + np.arange(K)).reshape(-1, 1)
            self._parts.append((where, Cones(scale * np.repeat(a[on], K), 1, first)))
        at = np.flatnonzero(bounded)
        if at.size:
            made = Bounds(scale * a[at], lower[at], upper[at], first, near[at])
            self.W[at, 0] = made.start
            self._parts.append((at[:, None], made))

    def _taken(self, W: Matrix, where: Index) -> Matrix:
        return np.append(W.reshape(-1), 0.0)[where]

    def _put(self, each: Any) -> Matrix:
        """Numbers of the blocks where they belong in W."""
        flat = np.zeros(self._shape[0] * self._shape[1] + 1)
        for (where, _), values in zip(self._parts, each, strict=True):
            flat[where] = values
        return flat[:-1].reshape(self._shape)

    @property
    def count(self) -> int:
        """Of how many numbers `products` is the sum."""
        return sum(cone.count for _, cone in self._parts)

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return math.fsum(cone.products for _, cone in self._parts)

    @property
    def omega(self) -> Matrix:
        """Minus the slope of the norms and the bounds."""
        return self._put([cone.omega for _, cone in self._parts])

    @property
    def moving(self) -> Matrix:
        """For each entry of W, whether it is not zero at the optimum, as far as is seen."""
        return 1 - self._put([1 - cone.moving for _, cone in self._parts])

    def weigh(self) -> None:
        """What a step begins with."""
        for _, cone in self._parts:
            cone.weigh()

    @property
    def bend(self) -> Bend:
        """C of the penalty."""
        c, of_rows, blocks = np.repeat(self.ridge, self._shape[1], axis=1), None, None
        for where, cone in self._parts:
            bend, v = cone.bend
            if v.shape[1] == 1:
                c += self._only(where, (bend * (1 - v[:, 0] ** 2))[:, None])
                continue
            c += self._only(where, np.repeat(bend[:, None], v.shape[1], axis=1))
            u = np.sqrt(bend)[:, None] * v
            if self._shape[1] > 1:
                of_rows = self._only(where, u)
                continue
            blocks = np.zeros((self._shape[0] + 1, len(u)))
            blocks[where, np.arange(len(u))[:, None]] = u
            blocks = blocks[:-1]
        return Bend(c, of_rows, blocks)

    def _only(self, where: Index, values: Matrix) -> Matrix:
        flat = np.zeros(self._shape[0] * self._shape[1] + 1)
        flat[where] = values
        return flat[:-1].reshape(self._shape)

    def push(self, centre: float, second: Any) -> Matrix:
        """What a step to products of `centre` adds to r."""
        each = []
        for (_, cone), own in zip(self._parts, second or [0.0] * len(self._parts), strict=True):
            aim = cone.aim(centre, own)
            bend, v = cone.bend
            each.append(bend[:, None] * (aim - v * np.sum(v * aim, axis=1, keepdims=True)))
        return self._put(each)

    def second(self, dW: Matrix) -> list[Any]:
        """The products of the changes that a predictor makes."""
        return [cone.second(self._taken(dW, where)) for where, cone in self._parts]

    def direct(self, dW: Matrix) -> None:
        """Take this change of W as the next."""
        for where, cone in self._parts:
            cone.direct(self._taken(dW, where))

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        return max((cone.fastest for _, cone in self._parts), default=0.0)

    def after(self, t: float) -> float:
        """`products` after a step t."""
        return math.fsum(cone.after(t) for _, cone in self._parts)

    def move(self, t: float) -> None:
        """Step."""
        for _, cone in self._parts:
            cone.move(t)


def _padded(g: Any) -> Index:
    """The features of each group, and d where a group has fewer than the largest."""
    sizes, d = np.diff(g.starts), g.members.size
    where = np.full((sizes.size, int(sizes.max())), d)
    where[
        np.repeat(np.arange(sizes.size), sizes), np.arange(d) - np.repeat(g.starts[:-1], sizes)
    ] = g.members
    return where


#: 1 for a lower bound, -1 for an upper one.
_SIGN = np.array([[1.0], [-1.0]])


class Bounds(Pairs):
    """Weights with bounds: rho >= 0 for each bound, rho times the distance from it = mu.

    `slope` is that of the penalty away from zero: bounds leave one side only.
    """

    def __init__(
        self, slope: Vector, lower: Vector, upper: Vector, first: float, near: Vector
    ) -> None:
        on = np.isfinite([lower, upper])
        inside = np.minimum(near, 0.25 * (upper - lower))
        self.start = np.where(on[0], lower + inside, upper - inside)
        gap = np.where(on, np.stack([self.start - lower, upper - self.start]), 1.0)
        super().__init__(gap, first / gap, on)
        self._slope = np.where(lower >= 0, slope, -slope)

    @property
    def omega(self) -> Matrix:
        """Minus the slope."""
        return np.asarray(((_SIGN * self.b).sum(axis=0) - self._slope)[:, None])

    @property
    def moving(self) -> Matrix:
        """1 where w is not at a bound, as far as is seen."""
        at = self.b * self.a.max() > self.a * max(float(self.b.max()), 1e-300)
        return np.asarray(1.0 - at.any(axis=0)[:, None])

    def weigh(self) -> None:
        """How stiff the bounds are at the present point."""
        self._c = self.over(self.b).sum(axis=0)

    @property
    def bend(self) -> tuple[Vector, Matrix]:
        """c and v as those of the cones: v = 0"""
        return self._c, np.zeros((self._c.size, 1))

    def aim(self, centre: float, second: Any = 0.0) -> Matrix:
        """The same, as a change of w."""
        aim = super().aim(centre, second)
        return np.asarray(((_SIGN * aim).sum(axis=0) / self._c)[:, None])

    def direct(self, du: Matrix) -> None:
        """Take this change of w as the next."""
        super().direct(np.where(self._on, _SIGN * du[:, 0], 0.0))

    def second(self, du: Matrix) -> Matrix:
        """The products of the changes that a predictor makes."""
        self.direct(du)
        return self.second_order
