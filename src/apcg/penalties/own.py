"""A g of the user's: an object with a value, a prox and a conjugate."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.own import locked
from .._base.validation import Vector
from .base import NAMES, NOT_SEPARABLE, shown


class OwnRegulariser:
    """A g of the user's: it is asked for what it has, and what it gives is checked.

    g has value(w), prox(v, step), conjugate(v), infinite outside its domain, and
    `strong_convexity`, 0.0 if it is not there; if that is positive also conjugate_gradient(v), and
    if it is zero excess(v). w and v have the shape of W, (d,) or (d, K). What it gets it must not
    write to.
    """

    separable = in_groups = is_l2 = is_quadratic = is_free = leaves_free = splits_exactly = False
    soft = None
    #: whether there is one more feature at the end, without any penalty
    free = False

    def __init__(self, g: Any, d: int, K: int = 1) -> None:
        self.g, self.shape = g, (d,) if K == 1 else (d, K)
        self.strong_convexity = check.number(
            getattr(g, "strong_convexity", 0.0), "strong_convexity of penalty", low=0.0
        )
        wanted = ["value", "prox", "conjugate"]
        wanted += ["conjugate_gradient"] if self.strong_convexity > 0 else ["excess"]
        missing = [name for name in wanted if not callable(getattr(g, name, None))]
        if missing:
            kind = "strongly convex" if self.strong_convexity > 0 else "not strongly convex"
            raise TypeError(
                f"penalty must be one of {', '.join(map(repr, NAMES))}, an object of "
                f"apcg.penalties, or an object of your own; one that is {kind} has the methods "
                f"{', '.join(wanted)}, and {shown(g)} has no {', '.join(missing)}."
            )
        try:
            _check_own(self)
        except Exception as error:
            if K == 1:
                raise
            raise ValueError(
                f"with {K} outputs w is a matrix of shape ({d}, {K}), and penalty {shown(g)} must "
                f"be a function of that: {error}"
            ) from error

    @property
    def b(self) -> Vector:
        return np.array([self.strong_convexity])

    def extended(self, d: int, strength: float) -> OwnRegulariser:
        if strength != 0:
            raise ValueError(NOT_SEPARABLE)
        other = copy(self)
        other.free, other.strong_convexity = True, 0.0
        return other

    def value(self, w: Vector) -> float:
        return _number(self.g.value(self._given(w)), "value(w)")

    def prox(self, v: Vector, step: float) -> Vector:
        return self._prox(v, step, v)

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        # g - (mu/2)|w|^2 + |w - v|^2/(2 step) is g + r|w - v/r|^2/(2 step), up to a constant
        r = 1 - self.strong_convexity * step
        return self._prox(v / r, step / r, v)

    def _prox(self, v: Vector, step: float, free: Vector) -> Vector:
        made = _shaped(self.g.prox(self._given(v), step), self.shape, "prox(v, step)")
        return np.concatenate([made, free[-1:]]) if self.free else made

    def conjugate(self, v: Vector) -> float:
        return _number(self.g.conjugate(locked(v)), "conjugate(v)")

    def conjugate_gradient(self, v: Vector) -> Vector:
        made = self.g.conjugate_gradient(locked(v))
        return _shaped(made, self.shape, "conjugate_gradient(v)")

    def excess(self, v: Vector) -> float:
        if self.strong_convexity > 0:
            return 0.0
        times = _number(self.g.excess(locked(v)), "excess(v)")
        if times <= 1 and not math.isfinite(self.conjugate(v)):  # the two differ by a rounding
            return math.nextafter(1.0, 2.0)
        return times

    def clip(self, w: Vector) -> Vector:
        return w

    def contains(self, w: Vector) -> bool:
        return math.isfinite(self.value(w))

    def _given(self, w: Vector) -> Vector:
        return locked(w[:-1] if self.free else w)


def _number(given: Any, what: str) -> float:
    """What a function of the user's gave, if it is a number or infinite."""
    if np.ndim(given) != 0 or given is None or math.isnan(float(given)):
        raise ValueError(f"{what} of penalty must give a number, got {given!r}.")
    return float(given)


def _shaped(given: Any, shape: tuple[int, ...], what: str) -> Vector:
    """What a function of the user's gave, if it has the shape of w; a copy of it."""
    made = np.array(given, dtype=np.float64) if given is not None else None
    if made is None or made.shape != shape:
        got = "None" if made is None else f"shape {made.shape}"
        raise ValueError(f"{what} of penalty must give an array of shape {shape}, got {got}.")
    return made


#: The parts of a g of the user's must agree to this, relative to the sum of their sizes.
_AGREE = 1e-6


def _check_own(g: OwnRegulariser) -> None:
    """g(0) and g*(0) are finite, and value, prox and conjugate belong to one function.

    u = v - prox(v, 1) is a subgradient of g at w = prox(v, 1), so that g(w) + g*(u) = <u, w>. If
    that does not hold, a certificate would say nothing.
    """
    zero = np.zeros(g.shape)
    if not math.isfinite(at := g.value(zero)):
        raise ValueError(f"value(w) of penalty must be finite at w = 0, got {at}.")
    if not math.isfinite(at := g.conjugate(zero)):
        raise ValueError(
            f"conjugate(v) of penalty must be finite at v = 0, got {at}: it is -min g(w) there."
        )
    if g.strong_convexity > 0:
        g.conjugate_gradient(zero)
    elif g.excess(zero) > 1:
        raise ValueError("excess(v) of penalty must be at most 1 at v = 0, which is inside.")
    for size in (0.1, 1.0, 10.0):
        v = size * np.cos(np.arange(1.0, zero.size + 1)).reshape(g.shape)
        if g.excess(v) > 1.001 and math.isfinite(at := g.conjugate(v)):
            raise ValueError(
                f"conjugate(v) of penalty must be infinite where excess(v) is above 1, got {at:g}: "
                "dual points that are not feasible would count."
            )
        w = g.prox(v, 1.0)
        u = v - w
        times = g.excess(u)
        if 1 < times <= 1 + _AGREE:  # by a rounding
            u = u / (times * (1 + 1e-12))
        parts = g.value(w), g.conjugate(u), -float(np.vdot(u, w))
        agree = all(map(math.isfinite, parts))
        if agree:
            scale = math.fsum(map(abs, parts)) + float(np.vdot(u, u))
            agree = abs(math.fsum(parts)) <= _AGREE * scale
        if not agree:
            raise ValueError(
                "value, prox and conjugate of penalty do not belong to one function: for "
                f"w = prox(v, 1) and u = v - w, g(w) + g*(u) must be <u, w>; got {parts[0]:g} + "
                f"{parts[1]:g} and {-parts[2]:g}. (If value(w) is infinite there, let it be finite "
                "a few roundings outside the domain.)"
            )
