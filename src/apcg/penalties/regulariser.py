"""The regulariser g of ERM: what methods and certificates ask of it, and two that answer.

    Interval   g(w) = sum_j a_j|w_j| + (b_j/2) w_j^2   on [lower_j, upper_j]
    Own        an object of the user's with a value, a prox and a conjugate

`Interval` covers L2, L1, elastic net, w >= 0 and weights and bounds for each feature. It calls the
functions that the kernels step with, so that the value reported and the step taken cannot disagree.
If g is strongly convex, g* is smooth and the dual can be solved; coordinate methods also need g to
be a sum over features (`separable`), which `Own` is not known to be.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from .._base import validation as check
from .._base.validation import Vector
from .._kernels.data.matrix import inner
from .._kernels.losses.terms import Outer, Psi
from . import ElasticNet, GroupLasso, Penalty, refuse_ignored
from .groups import GroupNorms

NAMES = ("l2", "l1", "elasticnet")


class Regulariser(Protocol):
    """What ERM, the methods and the certificates ask of g."""

    @property
    def separable(self) -> bool:
        """Whether g is a sum over features that the kernels know: coordinate methods need it."""

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
    def leaves_free(self) -> bool:
        """Whether some feature has no penalty and no bound on one side: g* is infinite but at 0."""

    @property
    def b(self) -> Vector:
        """b of the square sum_j (b_j/2) w_j^2 that g can be split into, and the rest of g."""

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
        """g*(v) = max_w <v, w> - g(w), infinite outside its domain."""

    def conjugate_gradient(self, v: Vector) -> Vector:
        """A maximiser of <v, w> - g(w): the gradient of g* at v if g is strongly convex."""

    def excess(self, v: Vector) -> float:
        """How many times v is outside the domain of g*: v/excess is inside; at most 1 inside."""

    def clip(self, w: Vector) -> Vector:
        """The point of the domain of g nearest to w, as far as that is known."""

    def contains(self, w: Vector) -> bool:
        """Whether g(w) is finite."""

    def extended(self, d: int, strength: float) -> Regulariser:
        """With one more feature after the d there are, whose penalty is (strength/2)w^2."""


def of(penalty: Any, l1_ratio: float, positive: bool, d: int) -> Regulariser:
    """g from a name, an object of `apcg.penalties` or an object of the user's, for d features."""
    ratio = check.number(l1_ratio, "l1_ratio", low=0.0, high=1.0)
    if not isinstance(positive, bool | np.bool_):
        raise TypeError(f"positive must be True or False, got {positive!r}.")
    if isinstance(penalty, str | type):
        penalty = _named(check.choice(penalty, "penalty", NAMES), ratio)
    if isinstance(penalty, Penalty):
        return Interval.of(penalty, positive, d)
    if isinstance(penalty, GroupLasso) and not positive:
        return GroupNorms.of(penalty, d)
    if positive:
        raise ValueError(
            f"positive=True is for the penalties of apcg, got {shown(penalty)}; write w >= 0 into "
            "the value, prox and conjugate of your own."
        )
    return Own(penalty, d)


@lru_cache(maxsize=64)
def _named(name: str, ratio: float) -> Penalty:
    """The penalty of that name; it never changes."""
    return ElasticNet(1.0, {"l2": 0.0, "l1": 1.0, "elasticnet": ratio}[name])


def shown(penalty: Any) -> str:
    """What to call a penalty in messages: its name, its repr, or its class if it has no repr."""
    if isinstance(penalty, str):
        return penalty
    own: Any = type(penalty).__repr__
    return type(penalty).__name__ if own is object.__repr__ else repr(penalty)


@dataclass(frozen=True, eq=False)
class Interval:
    """g by its four parameters; each has one entry for all features, or one for each."""

    a: Vector
    b: Vector
    lower: Vector
    upper: Vector

    separable = splits_exactly = True

    @classmethod
    def of(cls, penalty: Penalty, positive: bool, d: int) -> Interval:
        """From an object of `apcg.penalties`, for d features."""
        refuse_ignored(penalty)
        if not hasattr(penalty, "_parameters") or penalty.is_block:
            what = "is of blocks" if penalty.is_block else "has no conjugate that is known"
            raise TypeError(
                f"penalty must be of coordinates (L1, L2, ElasticNet, ...), got {penalty!r}, which "
                f"{what}. Write a g of your own over all of w instead (for groups: over the groups "
                "you give it): an object with value(w), prox(v, step), conjugate(v) and excess(v)."
            )
        if penalty.size not in (None, d):
            raise ValueError(f"penalty has parameters for {penalty.size} features, but X has {d}.")
        parts = (np.atleast_1d(np.asarray(p, np.float64)) for p in penalty._parameters())
        a, b, lower, upper = parts
        if positive:
            lower = np.maximum(lower, 0.0)
            if np.any(lower > upper):
                raise ValueError("positive=True leaves nothing of the bounds of the penalty.")
        return cls(a, b, lower, upper)

    def extended(self, d: int, strength: float) -> Interval:
        if self.is_l2 and strength == self.b[0]:
            return self
        own = (0.0, strength, -math.inf, math.inf)
        parts = (self.a, self.b, self.lower, self.upper)
        return Interval(
            *(np.append(np.broadcast_to(p, d), e) for p, e in zip(parts, own, strict=True))
        )

    @property
    def strong_convexity(self) -> float:
        return float(self.b.min())

    @cached_property
    def is_l2(self) -> bool:
        return bool(self.b.size == 1 and self.b[0] > 0 and self.is_quadratic)

    @cached_property
    def is_quadratic(self) -> bool:
        return self.is_unbounded and not self.a.any()

    @cached_property
    def is_unbounded(self) -> bool:
        """Whether there are no bounds."""
        return not (np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @cached_property
    def _plain(self) -> bool:
        """Whether it is a |w_j| + (b/2) w_j^2, the same for all features."""
        return self.is_unbounded and self.a.size == self.b.size == 1

    @property
    def theta(self) -> np.ndarray:
        """The parameters as the kernels read them."""
        return np.column_stack(np.broadcast_arrays(self.a, self.b, self.lower, self.upper))

    @cached_property
    def _terms(self) -> tuple[Psi, Psi, Outer]:
        """g, g without its square, and g*, as the kernels have them."""
        theta = self.theta
        rest = Psi("interval", theta * [1.0, 0.0, 1.0, 1.0])
        return Psi("interval", theta), rest, Outer("support", theta=theta)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_terms"}  # made again when needed

    @property
    def splits(self) -> bool:
        """Whether each feature has an L1 part, and there are no bounds, or w >= 0 for all."""
        free, positive = (bool(np.all(self.lower == low)) for low in (-np.inf, 0.0))
        return (free or positive) and bool(self.a.min() > 0 and np.all(self.upper == np.inf))

    @property
    def leaves_free(self) -> bool:
        unbounded = (self.lower == -np.inf) | (self.upper == np.inf)
        return bool(np.any((self.a == 0) & (self.b == 0) & unbounded))

    def clip(self, w: Vector) -> Vector:
        """The point of [lower, upper] nearest to w."""
        return np.clip(w, self.lower, self.upper)

    def contains(self, w: Vector) -> bool:
        """Whether w is within the bounds."""
        return bool(self._terms[0].contains(w))

    def value(self, w: Vector) -> float:
        if self.is_l2:
            return 0.5 * float(self.b[0]) * float(inner(w, w))
        if self._plain:
            total = float(self.a[0] * np.abs(w).sum())
            return total + (0.5 * float(self.b[0] * inner(w, w)) if self.b[0] else 0.0)
        return float(self._terms[0].value(w))

    def prox(self, v: Vector, step: float) -> Vector:
        return np.asarray(self._terms[0].prox(v, np.array([step])))

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        return np.asarray(self._terms[1].prox(v, np.array([step])))

    def excess(self, v: Vector) -> float:
        if self.strong_convexity > 0:  # g* is finite everywhere
            return 0.0
        if self._plain and self.a[0] > 0:
            return float(np.max(np.abs(v), initial=0.0) / self.a[0])
        bound = np.where((self.b == 0) & (self.upper == np.inf), v, 0.0)
        bound = np.maximum(bound, np.where((self.b == 0) & (self.lower == -np.inf), -v, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(bound > 0, bound / self.a, 0.0), initial=0.0))

    def conjugate(self, v: Vector) -> float:
        if self.is_l2:
            return 0.5 * float(inner(v, v)) / float(self.b[0])
        if self.is_unbounded and not self.b.any():
            return 0.0 if bool(np.all(np.abs(v) <= self.a)) else math.inf
        return float(self._terms[2].value(v))

    def conjugate_gradient(self, v: Vector) -> Vector:
        if self.is_l2:
            return v if self.b[0] == 1 else v / self.b[0]
        return np.asarray(self._terms[2].derivative(v))


class Own:
    """A g of the user's: it is asked for what it has, and what it gives is checked.

    g has value(w), prox(v, step), conjugate(v), infinite outside its domain, and
    `strong_convexity`, 0.0 if it is not there; if that is positive also conjugate_gradient(v), and
    if it is zero excess(v). What it gets it must not write to.
    """

    separable = is_l2 = is_quadratic = leaves_free = splits_exactly = False
    #: whether there is one more feature at the end, without any penalty
    free = False

    def __init__(self, g: Any, d: int) -> None:
        self.g, self.d = g, d
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
        _check_own(self)

    @property
    def b(self) -> Vector:
        return np.array([self.strong_convexity])

    def extended(self, d: int, strength: float) -> Own:
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
        made = _vector(self.g.prox(self._given(v), step), self.d, "prox(v, step)")
        return np.append(made, free[-1]) if self.free else made

    def conjugate(self, v: Vector) -> float:
        return _number(self.g.conjugate(_locked(v)), "conjugate(v)")

    def conjugate_gradient(self, v: Vector) -> Vector:
        return _vector(self.g.conjugate_gradient(_locked(v)), self.d, "conjugate_gradient(v)")

    def excess(self, v: Vector) -> float:
        if self.strong_convexity > 0:
            return 0.0
        times = _number(self.g.excess(_locked(v)), "excess(v)")
        if times <= 1 and not math.isfinite(self.conjugate(v)):  # the two differ by a rounding
            return math.nextafter(1.0, 2.0)
        return times

    def clip(self, w: Vector) -> Vector:
        return w

    def contains(self, w: Vector) -> bool:
        return math.isfinite(self.value(w))

    def _given(self, w: Vector) -> Vector:
        return _locked(w[:-1] if self.free else w)


NOT_SEPARABLE = (
    "coordinate methods step on one feature or sample at a time, and of a penalty of your own only "
    'the prox of the whole is known; take method "afg".'
)


def _locked(array: Vector) -> Vector:
    """The same numbers, which a function of the user's cannot change."""
    view = array.view()
    view.flags.writeable = False
    return view


def _number(given: Any, what: str) -> float:
    """What a function of the user's gave, if it is a number or infinite."""
    if np.ndim(given) != 0 or given is None or math.isnan(float(given)):
        raise ValueError(f"{what} of penalty must give a number, got {given!r}.")
    return float(given)


def _vector(given: Any, d: int, what: str) -> Vector:
    """What a function of the user's gave, if it has one entry for each feature; a copy of it."""
    made = np.array(given, dtype=np.float64) if given is not None else None
    if made is None or made.shape != (d,):
        got = "None" if made is None else f"shape {made.shape}"
        raise ValueError(f"{what} of penalty must give an array of shape ({d},), got {got}.")
    return made


#: The parts of a g of the user's must agree to this, relative to the sum of their sizes.
_AGREE = 1e-6


def _check_own(g: Own) -> None:
    """g(0) and g*(0) are finite, and value, prox and conjugate belong to one function.

    u = v - prox(v, 1) is a subgradient of g at w = prox(v, 1), so that g(w) + g*(u) = <u, w>. If
    that does not hold, a certificate would say nothing.
    """
    zero = np.zeros(g.d)
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
        v = size * np.cos(np.arange(1.0, g.d + 1))
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
        parts = g.value(w), g.conjugate(u), -float(u @ w)
        agree = all(map(math.isfinite, parts))
        if agree:
            scale = math.fsum(map(abs, parts)) + float(u @ u)
            agree = abs(math.fsum(parts)) <= _AGREE * scale
        if not agree:
            raise ValueError(
                "value, prox and conjugate of penalty do not belong to one function: for "
                f"w = prox(v, 1) and u = v - w, g(w) + g*(u) must be <u, w>; got {parts[0]:g} + "
                f"{parts[1]:g} and {-parts[2]:g}. (If value(w) is infinite there, let it be finite "
                "a few roundings outside the domain.)"
            )
