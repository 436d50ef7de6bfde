"""What has to stay positive in interior points: numbers with multipliers, and norms of blocks of W.

`Pairs` are numbers a > 0 and b > 0 with a b = mu, half lines. `Cones` are second order cones, with
the scaling of Nesterov-Todd.

A block u of W has the penalty a|u|. With t >= |u| and the multipliers (tau, omega), tau = a:

    |omega| <= tau       t tau + u'omega = mu       t omega + tau u = 0

A block of one entry has |u|, so that L1 is of the same form. A step changes omega by
domega = Q (aim - du), where Q = (1 - 2 v v'/(1 + 2|v|^2))/beta^2 for each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.validation import Matrix, Vector

#: Blocks (m, 1 + size), the first column that of t or tau.
Blocks = Any
#: A multiplier that is this part of its bound below it is inside.
_INSIDE = 1e-4


class Pairs:
    """Numbers a > 0 and their multipliers b > 0, with products a b that are to become mu.

    on   where a has a bound at 0; elsewhere it is free, and b is 0
    """

    def __init__(self, a: Matrix, b: Matrix, on: Any) -> None:
        self._on = np.broadcast_to(on, a.shape)
        self.a, self.b = a, np.where(self._on, b, 0.0)
        self.count = int(self._on.sum())

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return float(np.vdot(self.a, self.b))

    def over(self, x: Matrix) -> Matrix:
        """x/a, 0 where a is free."""
        return np.divide(x, self.a, out=np.zeros(self.a.shape), where=self._on)

    def aim(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        self._aim = centre - self.a * self.b - second
        return self.over(self._aim)

    def direct(self, da: Matrix) -> None:
        """Take this change of a as the next."""
        self._da, self._db = da, self.over(self._aim - self.b * da)

    @property
    def second_order(self) -> Matrix:
        """The products of the changes that a predictor makes."""
        return np.asarray(self._da * self._db)

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        if not self.count:
            return 0.0
        on = self._on
        ways = (-self._da[on] / self.a[on], -self._db[on] / self.b[on])
        return max(float(way.max()) for way in ways)

    def after(self, t: float) -> float:
        """`products` after a step t."""
        return float(np.vdot(self.a + t * self._da, self.b + t * self._db))

    def move(self, t: float) -> None:
        """Step."""
        self.a, self.b = self.a + t * self._da, self.b + t * self._db


class Cones:
    """t, u, tau and omega of blocks, one a row."""

    def __init__(self, a: Vector, size: int, first: float) -> None:
        """u = omega = 0, and products t tau of `first`."""
        self._s, self._z = np.zeros((a.size, 1 + size)), np.zeros((a.size, 1 + size))
        self._z[:, 0] = a
        self._s[:, 0] = first / a
        self.count = a.size

    @property
    def u(self) -> Matrix:
        """The blocks."""
        return self._s[:, 1:]

    @property
    def omega(self) -> Matrix:
        """Their multipliers: minus the slope of the penalty."""
        return self._z[:, 1:]

    @property
    def moving(self) -> Matrix:
        """For each entry of the blocks, 1 if it is not zero at the optimum, as far as is seen."""
        on = np.linalg.norm(self.omega, axis=1) > (1 - _INSIDE) * self._z[:, 0]
        return np.repeat(on[:, None], self.u.shape[1], axis=1).astype(float)

    @property
    def products(self) -> float:
        """The sum of what has to become zero."""
        return float(np.vdot(self._s, self._z))

    def weigh(self) -> None:
        """The scaling at the present point."""
        size_s, size_z = _root(self._s), _root(self._z)
        s, z = self._s / size_s, self._z / size_z
        gamma = np.sqrt((1 + _inner(s, z)) / 2)
        w = (s + _turned(z)) / (2 * gamma)
        w[:, 0] = np.sqrt(1 + np.sum(w[:, 1:] ** 2, axis=1))
        self._beta = np.sqrt(size_s / size_z)
        self._v, self._w = w.copy(), w
        self._v[:, 0] += 1
        self._v /= np.sqrt(2 * (w[:, :1] + 1))
        self._l = self._times(self._z)

    @property
    def bend(self) -> tuple[Vector, Matrix]:
        """c and v with Q = c (1 - v v') for each block, |v| < 1."""
        v = self._w[:, 1:]
        return 1 / self._beta[:, 0] ** 2, v * np.sqrt(2 / (1 + 2 * np.sum(v * v, axis=1)))[:, None]

    def _times(self, x: Blocks) -> Blocks:
        """The scaling times x: beta (2 v v' - J)"""
        return self._beta * (2 * self._v * _inner(self._v, x) - _turned(x))

    def _over(self, x: Blocks) -> Blocks:
        """Its inverse times x."""
        v = _turned(self._v)
        return (2 * v * _inner(v, x) - _turned(x)) / self._beta

    def aim(self, centre: float, second: Any = 0.0) -> Matrix:
        """What a step aims at: products of `centre`, less the second order of the predictor."""
        rest = -_product(self._l, self._l) - second
        rest[:, 0] += centre
        self._h = self._times(_divided(self._l, rest))
        return np.asarray(self._h[:, 1:])

    def direct(self, du: Matrix) -> Matrix:
        """Take this change of the blocks as the next; what omega changes by."""
        # omega and t change so that tau stays: the first row of W^-2 (h - ds) is zero
        w, away = self._w, self._h[:, 1:] - du
        along = np.sum(w[:, 1:] * away, axis=1, keepdims=True)
        first = 2 * w[:, :1] * along / (2 * w[:, :1] ** 2 - 1)
        self._ds = np.hstack([self._h[:, :1] - first, du])
        norm = 1 + 2 * np.sum(w[:, 1:] ** 2, axis=1, keepdims=True)
        self._dz = np.zeros_like(self._ds)
        self._dz[:, 1:] = (away - 2 * w[:, 1:] * along / norm) / self._beta**2
        return self._dz[:, 1:]

    def second(self, du: Matrix) -> Blocks:
        """The products of the changes that a predictor makes, in the scaled space."""
        self.direct(du)
        return _product(self._over(self._ds), self._times(self._dz))

    @property
    def fastest(self) -> float:
        """The inverse of the longest step."""
        return max(
            _fastest(self._l, self._over(self._ds)), _fastest(self._l, self._times(self._dz))
        )

    def after(self, t: float) -> float:
        """`products` after a step t."""
        return float(np.vdot(self._s + t * self._ds, self._z + t * self._dz))

    def move(self, t: float) -> None:
        """Step."""
        self._s, self._z = self._s + t * self._ds, self._z + t * self._dz


def _inner(x: Blocks, y: Blocks) -> Blocks:
    return np.sum(x * y, axis=1, keepdims=True)


def _turned(x: Blocks) -> Blocks:
    """J x: all but the first with the other sign."""
    made = -x
    made[:, 0] = x[:, 0]
    return made


def _root(x: Blocks) -> Blocks:
    """sqrt(x_0^2 - |x_1|^2), without squares that overflow."""
    norm = np.sqrt(np.sum((x[:, 1:] / x[:, :1]) ** 2, axis=1, keepdims=True))
    return x[:, :1] * np.sqrt((1 - norm) * (1 + norm))


def _product(x: Blocks, y: Blocks) -> Blocks:
    """(x'y, x_0 y_1 + y_0 x_1)"""
    made = x[:, :1] * y + y[:, :1] * x
    made[:, :1] = _inner(x, y)
    return made


def _divided(x: Blocks, r: Blocks) -> Blocks:
    """y with x o y = r"""
    root = _root(x)
    first = _inner(_turned(x) / root, r / root)
    made = (r - first * x) / x[:, :1]
    made[:, :1] = first
    return made


def _fastest(x: Blocks, dx: Blocks) -> float:
    """The inverse of the longest t with x + t dx in all cones."""
    root = _root(x)
    u = x / root
    first = _inner(_turned(u), dx)
    rest = dx[:, 1:] - (first + dx[:, :1]) / (u[:, :1] + 1) * u[:, 1:]
    norm = np.sqrt(np.sum(rest * rest, axis=1, keepdims=True))
    return float(((norm - first) / root).max(initial=0.0))
