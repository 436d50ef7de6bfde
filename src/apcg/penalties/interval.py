"""g(w) = sum_j a_j|w_j| + (b_j/2) w_j^2 on [lower_j, upper_j]: a sum over features.

It covers L2, L1, elastic net, w >= 0 and weights and bounds for each feature. It calls the
functions that the kernels step with, so that the value reported and the step taken cannot disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._base.validation import Mask, Vector
from .._kernels.data.matrix import inner
from .._kernels.losses.terms import Outer, Psi
from .psi import Box, Penalty, refuse_ignored


@dataclass(frozen=True, eq=False)
class Interval:
    """g by its four parameters; each has one entry for all features, or one for each.

    With K > 1 outputs, parameters for each feature are columns, (d, 1): they are for all its
    outputs, and multiply W, (d, K), as they are.
    """

    a: Vector
    b: Vector
    lower: Vector
    upper: Vector
    #: how many outputs there are
    K: int = field(default=1, kw_only=True)
    #: features without a penalty, whose bounds are a box that is there for the certificate only
    boxed: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool), kw_only=True)

    separable = splits_exactly = True
    in_groups = False

    @classmethod
    def of(cls, penalty: Penalty, bounds: Box | None, d: int) -> Interval:
        """From an object of `apcg.penalties`, and bounds besides, for d features."""
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
        if bounds is not None:
            if bounds.size not in (None, d):
                raise ValueError(
                    f"positive has bounds for {bounds.size} features, but X has {d}; give one for "
                    "each, or a number for all."
                )
            lower, upper = np.maximum(lower, bounds.lower), np.minimum(upper, bounds.upper)
            if np.any(lower > upper):
                raise ValueError("positive leaves nothing of the bounds of the penalty.")
        return cls(a, b, lower, upper)

    @property
    def _parts(self) -> tuple[Vector, Vector, Vector, Vector]:
        return self.a, self.b, self.lower, self.upper

    def over(self, K: int) -> Interval:
        """The same g for W with K columns."""
        if K == self.K:
            return self
        parts = (p.reshape(-1) for p in self._parts)
        each = (p if p.size == 1 or K == 1 else p[:, None] for p in parts)
        return Interval(*each, K=K, boxed=self.boxed)

    @property
    def entries(self) -> Interval:
        """g as a function of the entries of W, one row after the other."""
        if self.K == 1:
            return self
        return Interval(*(p if p.size == 1 else np.repeat(p, self.K) for p in self._parts))

    def extended(self, d: int, strength: float) -> Interval:
        if self.is_l2 and strength == self.b[0]:
            return self
        own = (0.0, strength, -math.inf, math.inf)
        each = zip(self.over(1)._parts, own, strict=True)
        boxed = np.append(np.broadcast_to(self.boxed, d), False)
        parts = (np.append(np.broadcast_to(p, d), e) for p, e in each)
        return Interval(*parts, boxed=boxed).over(self.K)

    def in_box(self, size: Vector) -> Interval:
        """The same, with |w_j| <= size_j for the features that have no penalty and no bound."""
        d = size.size
        a, b, lower, upper = (np.array(np.broadcast_to(p, d)) for p in self.over(1)._parts)
        none = (a == 0) & (b == 0)
        boxed = none & (lower == -np.inf) & (upper == np.inf)
        lower = np.where(none & (lower == -np.inf), np.minimum(-size, upper), lower)
        upper = np.where(none & (upper == np.inf), np.maximum(size, lower), upper)
        return Interval(a, b, lower, upper, boxed=boxed).over(self.K)

    def without_penalty(self) -> Interval:
        """Its bounds alone."""
        none = np.zeros(1)
        return Interval(none, none, self.lower, self.upper, K=self.K)

    @cached_property
    def strong_convexity(self) -> float:
        return float(self.b.min())

    @cached_property
    def is_l2(self) -> bool:
        return bool(self.b.size == 1 and self.b[0] > 0 and self.is_quadratic)

    @cached_property
    def is_quadratic(self) -> bool:
        return not self.a.any() and (self.is_unbounded or self._bounds_are_box)

    @property
    def _bounds_are_box(self) -> bool:
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        return bool(np.all(self.boxed | ~bounded.reshape(-1)))

    @cached_property
    def is_free(self) -> bool:
        """Whether no feature has a penalty or bounds, but for the box."""
        return bool(self.boxed.all())

    def box(self, d: int) -> Vector | None:
        """The box |w_j| <= box_j of the d features that are boxed, infinite for others; or None."""
        if not self.boxed.any():
            return None
        return np.where(self.boxed, np.broadcast_to(self.upper.reshape(-1), d), np.inf)

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
        """The parameters as the kernels read them, one row for each entry of w, or one for all."""
        return np.column_stack(np.broadcast_arrays(*self.entries._parts))

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
    def soft(self) -> tuple[float, float] | None:
        """(a, b) if g is the same a|w| + (b/2)w^2 for all entries, b > 0; else None."""
        return (float(self.a[0]), float(self.b[0])) if self._plain and self.b[0] > 0 else None

    @cached_property
    def has_penalty(self) -> bool:
        """Whether any feature has one, bounds aside."""
        return bool(self.a.any() or self.b.any())

    @cached_property
    def leaves_free(self) -> bool:
        unbounded = (self.lower == -np.inf) | (self.upper == np.inf)
        return bool(np.any((self.a == 0) & (self.b == 0) & unbounded))

    def clip(self, w: Vector) -> Vector:
        """The point of [lower, upper] nearest to w."""
        return np.clip(w, self.lower, self.upper)

    def contains(self, w: Vector) -> bool:
        """Whether w is within the bounds."""
        return bool(self._terms[0].contains(_flat(w)))

    def value(self, w: Vector) -> float:
        w = _flat(w)
        if self.is_l2:
            return 0.5 * float(self.b[0]) * float(inner(w, w))
        if self._plain:
            total = float(self.a[0] * np.abs(w).sum())
            return total + (0.5 * float(self.b[0] * inner(w, w)) if self.b[0] else 0.0)
        return float(self._terms[0].value(w))

    def prox(self, v: Vector, step: float) -> Vector:
        return self._terms[0].prox(_flat(v), np.array([step])).reshape(v.shape)

    def prox_without_square(self, v: Vector, step: float) -> Vector:
        return self._terms[1].prox(_flat(v), np.array([step])).reshape(v.shape)

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
            v = _flat(v)
            return 0.5 * float(inner(v, v)) / float(self.b[0])
        if self.is_unbounded and not self.b.any():
            return 0.0 if bool(np.all(np.abs(v) <= self.a)) else math.inf
        return float(self._terms[2].value(_flat(v)))

    def conjugate_gradient(self, v: Vector) -> Vector:
        if self.is_l2:
            return v if self.b[0] == 1 else v / self.b[0]
        return self._terms[2].derivative(_flat(v)).reshape(v.shape)


def _flat(w: Vector) -> Vector:
    """The entries of w, one row after the other."""
    return w if w.ndim == 1 else np.ascontiguousarray(w).reshape(-1)
