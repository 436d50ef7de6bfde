"""The regulariser g of ERM with K outputs: a function of W, (d, K).

    Entries   g of one output, over all entries: L2, L1, elastic net, bounds
    Groups    sum_j a |W_j|_2 + (b/2)|W_j|^2 over rows: a feature is in or out for all outputs

Both have what `regulariser.Regulariser` asks for, with matrices in the place of vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Matrix
from . import regulariser
from .groups import safe_norms
from .regulariser import Interval

#: Names of penalties over the rows of W.
GROUPS = ("group", "group_elasticnet")


def of(penalty: Any, l1_ratio: float, positive: bool, d: int, K: int) -> Any:
    """g from a name or an object of `apcg.penalties`, for d features and K outputs."""
    if isinstance(penalty, str) and penalty in GROUPS:
        ratio = check.number(l1_ratio, "l1_ratio", low=0.0, high=1.0)
        if positive:
            raise ValueError(f"positive=True does not go with penalty {penalty!r}.")
        return Groups(*((1.0, 0.0) if penalty == "group" else (ratio, 1 - ratio)))
    if isinstance(penalty, str):
        check.choice(penalty, "penalty", (*regulariser.NAMES, *GROUPS))
    g = regulariser.of(penalty, l1_ratio, positive, d)
    if not isinstance(g, Interval):
        raise TypeError(
            "with K outputs, penalty must be a name or an object of apcg.penalties, got "
            f"{regulariser.shown(penalty)}."
        )
    return Entries(g, K)


class Entries:
    """An `Interval` g over all entries of W; parameters of a feature are for all its outputs."""

    splits_exactly = True

    def __init__(self, each: Interval, K: int) -> None:
        self.each, self.K = each, K
        parts = (each.a, each.b, each.lower, each.upper)
        self._flat = Interval(*(p if p.size == 1 else np.repeat(p, K) for p in parts))

    @property
    def separable(self) -> bool:
        return True

    @property
    def strong_convexity(self) -> float:
        return self.each.strong_convexity

    @property
    def is_l2(self) -> bool:
        return self.each.is_l2

    @property
    def is_quadratic(self) -> bool:
        return self.each.is_quadratic

    @property
    def leaves_free(self) -> bool:
        return self.each.leaves_free

    @property
    def b(self) -> Any:
        """One number, or one for each feature, in a column."""
        return self.each.b if self.each.b.size == 1 else self.each.b[:, None]

    @property
    def soft(self) -> tuple[float, float] | None:
        """(a, b) if g is the same a|w| + (b/2)w^2 for all entries, b > 0; else None."""
        g = self.each
        if g.a.size > 1 or g.b.size > 1 or g.b[0] <= 0:
            return None
        if np.isfinite(g.lower).any() or np.isfinite(g.upper).any():
            return None
        return float(g.a[0]), float(g.b[0])

    def value(self, W: Matrix) -> float:
        return self._flat.value(np.ascontiguousarray(W).reshape(-1))

    def prox(self, v: Matrix, step: float) -> Matrix:
        return self._flat.prox(v.reshape(-1), step).reshape(v.shape)

    def prox_without_square(self, v: Matrix, step: float) -> Matrix:
        return self._flat.prox_without_square(v.reshape(-1), step).reshape(v.shape)

    def conjugate(self, v: Matrix) -> float:
        return self._flat.conjugate(np.ascontiguousarray(v).reshape(-1))

    def conjugate_gradient(self, v: Matrix) -> Matrix:
        return self._flat.conjugate_gradient(np.ascontiguousarray(v).reshape(-1)).reshape(v.shape)

    def excess(self, v: Matrix) -> float:
        return self._flat.excess(v.reshape(-1))

    def clip(self, w: Matrix) -> Matrix:
        return self._flat.clip(w.reshape(-1)).reshape(w.shape)

    def contains(self, w: Matrix) -> bool:
        return self._flat.contains(np.ascontiguousarray(w).reshape(-1))

    def extended(self, d: int, strength: float) -> Entries:
        """With one more row of W, whose penalty is (strength/2)|.|^2."""
        return Entries(self.each.extended(d, strength), self.K)


class Groups:
    """g(W) = sum_j a|W_j| + (b/2)|W_j|^2 over rows j; a last row may be `free` of a."""

    separable = is_l2 = is_quadratic = False
    splits_exactly = True
    soft = None

    def __init__(self, a: float, b: float, free: float | None = None, rows: int = 0) -> None:
        """`free` is the strength of one more row, after so many, an intercept's."""
        self.a, self._b, self.free, self._rows = a, b, free, rows

    @property
    def strong_convexity(self) -> float:
        return self._b if self.free is None else min(self._b, self.free)

    @property
    def b(self) -> Any:
        if self.free is None:
            return np.array([self._b])
        return np.append(np.full(self._rows, self._b), self.free)[:, None]

    @property
    def leaves_free(self) -> bool:
        return self.a == 0 and self._b == 0

    def _parts(self, W: Matrix) -> tuple[Matrix, Any]:
        """The rows with a penalty, and their norms."""
        rows = W if self.free is None else W[:-1]
        return rows, safe_norms(lambda V: np.einsum("jk,jk->j", V, V), rows)

    def _with_last(self, rows: Matrix, last: Matrix) -> Matrix:
        return rows if self.free is None else np.vstack([rows, last])

    def value(self, W: Matrix) -> float:
        _, norms = self._parts(W)
        total = self.a * float(norms.sum())
        if self._b:  # 0 times a square that overflows would be nan
            total += 0.5 * self._b * float(norms @ norms)
        return total + (0.5 * self.free * float(W[-1] @ W[-1]) if self.free else 0.0)

    def prox(self, v: Matrix, step: float) -> Matrix:
        """argmin_W g(W) + |W - v|^2/(2 step)"""
        shrunk = self.prox_without_square(v, step)
        rows = shrunk if self.free is None else shrunk[:-1]
        return self._with_last(
            rows / (1 + step * self._b), shrunk[-1:] / (1 + step * (self.free or 0.0))
        )

    def prox_without_square(self, v: Matrix, step: float) -> Matrix:
        rows, norms = self._parts(v)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # 0/0 if a is 0
            keep = np.maximum(1 - step * self.a / norms, 0.0)
        return self._with_last(np.where(norms > 0, keep, 0.0)[:, None] * rows, v[-1:])

    def conjugate(self, v: Matrix) -> float:
        _, norms = self._parts(v)
        over = np.maximum(norms - self.a, 0.0)
        if self._b == 0:
            return 0.0 if not over.any() else np.inf
        return 0.5 * float(over @ over) / self._b

    def conjugate_gradient(self, v: Matrix) -> Matrix:
        rows, norms = self._parts(v)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            keep = np.where(norms > self.a, (1 - self.a / norms) / self._b, 0.0)
        return keep[:, None] * rows

    def excess(self, v: Matrix) -> float:
        if self._b > 0:
            return 0.0
        return float(self._parts(v)[1].max(initial=0.0)) / self.a

    def clip(self, w: Matrix) -> Matrix:
        return w

    def contains(self, w: Matrix) -> bool:
        return True

    def extended(self, d: int, strength: float) -> Groups:
        """With one more row of W, whose penalty is (strength/2)|.|^2."""
        return Groups(self.a, self._b, strength, d)
