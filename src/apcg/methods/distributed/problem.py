"""A problem whose rows are in shards: what is known of it, and checks of what was asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import losses
from ..._base import validation as check
from ..._base.validation import Matrix as Table
from ...engines import Engine
from ...losses.base import SIMPLEX, SOFTMAX
from ...penalties import registry
from ...penalties.base import Regulariser, shown
from ...problems import intercept as free
from ...problems.costs import RATES
from .shard import Job


@dataclass(frozen=True, eq=False)
class Sharded:
    """The problem: what all shards have together, and what the user asked for.

    rows, n, d, K   rows, those of positive weight, features, outputs
    nnz, madds      numbers stored, multiply-adds of a Gram matrix
    sparse          whether zeros are not stored
    mean_square     the mean of s_i |a_i|^2
    unit            what makes the weights sum to n
    """

    loss: Any
    g: Regulariser
    alpha: float
    intercept: bool
    K: int
    rows: int
    n: int
    d: int
    nnz: int
    madds: float
    sparse: bool
    mean_square: float
    unit: float
    classes: Any = None
    positive: int | None = None
    #: l1, bounds and all of the penalty, as they were asked for
    asked: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def constant(self) -> float:
        """The number in the border of X, 0 without an intercept."""
        own = self.alpha * self.g.strong_convexity * self.loss.gamma * self.n
        return free.constant(self.mean_square, own) if self.intercept else 0.0

    @property
    def blocks(self) -> float:
        """How many Gram matrices a Hessian takes."""
        return 1.0 if self.K == 1 else self.K * (self.K + 1) / 2

    @property
    def gram_passes(self) -> float:
        """What a Hessian costs, in passes: products with X and its transpose."""
        entry, number = (RATES.gram_entry, RATES.product_nonzero) if self.sparse else (
            RATES.gram_dense, RATES.step_dense)  # fmt: skip
        return max(1.0, self.blocks * entry * self.madds / (2 * number * max(self.nnz, 1)))

    @property
    def job(self) -> Job:
        """What a shard has to know."""
        return Job(self.loss, self.K, self.n, self.unit, self.constant, self.classes,
                   self.positive)  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """Of w, the intercept included."""
        rows = self.d + self.intercept
        return (rows,) if self.K == 1 else (rows, self.K)

    @cached_property
    def ridge(self) -> Table:
        """lambda b_j of the square in g, 0 for the intercept."""
        b = np.broadcast_to(self.g.b.reshape(-1), self.d)
        ridge = self.alpha * (np.append(b, 0.0) if self.intercept else b)
        return ridge if self.K == 1 else ridge[:, None]

    def split(self, w: Table) -> tuple[Table, Any]:
        """w without the intercept, and b."""
        if not self.intercept:
            return w, 0.0
        b = self.constant * w[-1]
        return w[:-1], float(b) if self.K == 1 else b - b.mean()

    def joined(self, w: Table, b: Any) -> Table:
        """w with the intercept in its last row."""
        if not self.intercept:
            return w
        own = np.broadcast_to(b, (1,) if self.K == 1 else (1, self.K)) / self.constant
        return np.concatenate([w, own])

    def value(self, total: float, w: Table) -> float:
        """P(w), from the sum of phi."""
        return total / self.n + self.alpha * self.g.value(w[: self.d])

    def dual(self, conjugate: float, v: Table) -> float:
        """D(x), from the sum of phi* and v."""
        return -conjugate / self.n - self.alpha * self.g.conjugate(v)


def sharded(
    engine: Engine, loss: Any = "smoothed_hinge", penalty: Any = "l2", alpha: float = 1e-4, *,
    l1_ratio: float = 0.5, positive: bool = False, intercept: bool = False, classes: Any = None,
    against: int | None = None,
) -> Sharded:  # fmt: skip
    """The problem of all rows that the shards of an engine have.

    classes  the labels that rows may have: row i is of class k if its label is classes[k]. A loss
             of margins has `against`, the class whose rows are 1 while all others are -1. None:
             labels are as they are, -1 and 1, or 0 to K - 1, or numbers.
    """
    shapes = engine.ask("shape")
    d = shapes[0][0]
    rows, n, weight, nnz, squares, madds = engine.ask_sum("sizes")
    if n == 0:
        raise ValueError("sample_weight is zero everywhere: at least one must be positive.")
    if not math.isfinite(squares):
        raise ValueError("X has rows whose squared norm overflows; scale its features.")
    found = losses.by_name(loss)
    K = _check_loss(found, engine, classes, against)
    number = check.number(alpha, "alpha", low=0.0)
    g = registry.of(penalty, l1_ratio, positive, d, K)
    _check_penalty(found, g, shown(penalty), number, K)
    if not isinstance(intercept, bool | np.bool_):
        raise TypeError(f"intercept must be True or False, got {intercept!r}.")
    unit = n / weight
    return Sharded(found, g, number, bool(intercept), K, rows, n, d, nnz, madds, shapes[0][1],
                   squares * unit / n, unit, classes, against,
                   {"penalty": penalty, "l1_ratio": l1_ratio, "positive": positive})  # fmt: skip


def labels_of(engine: Engine) -> np.ndarray:
    """All labels that there are, sorted."""
    each = [found for found in engine.ask("distinct") if len(found)]
    return np.unique(np.concatenate(each))


def _check_loss(loss: Any, engine: Engine, classes: Any, against: int | None) -> int:
    """How many outputs the loss has; an error if rows on several machines cannot have it."""
    if not loss.compiled:
        raise ValueError(
            f"loss {loss!r} is your own, by functions in Python, and rows on several machines take "
            "losses of apcg only, by name or object of apcg.losses."
        )
    if loss.kind in (SOFTMAX, SIMPLEX):
        if loss.gamma == 0:
            raise ValueError(
                f"loss {loss.name!r} is not smooth; on several machines take its smoothed form, "
                'losses.MulticlassHinge(gamma=1.0), or "multinomial".'
            )
        found = np.arange(len(classes)) if classes is not None else labels_of(engine)
        K = max(len(found), loss.n_classes or 0)
        if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
            raise ValueError(
                f"loss {loss.name!r} takes the labels 0..K-1, K at least 2, got {_listed(found)}."
            )
        return K
    if loss.margin and against is None:
        found = labels_of(engine)
        if not np.array_equal(found, [-1.0, 1.0]):
            raise ValueError(
                f"loss {loss.name!r} takes the labels -1 and 1, and both of them, got "
                f"{_listed(found)}; map your classes, for example da.where(y == positive, 1, -1)."
            )
    return 1


def _listed(found: Any) -> str:
    return ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")


def _check_penalty(loss: Any, g: Any, name: str, alpha: float, K: int) -> None:
    lone = 'take alpha > 0 with penalty "l2", "l1" or "elasticnet"'
    if alpha == 0 or not (g.separable or g.strong_convexity > 0) or g.leaves_free:
        raise ValueError(f"on several machines each feature needs a penalty of apcg; {lone}.")
    if g.is_quadratic:
        return
    if not g.separable or K > 1:
        raise ValueError(
            f'penalty {name} with {K} outputs is not solved on several machines; take "l2", or '
            'one output at a time (multi_class="ovr").'
        )
    if loss.gamma == 0:
        raise ValueError(
            f"loss {loss.name!r} is not smooth, and with penalty {name} that is not solved on "
            'several machines; take "smoothed_hinge", "squared_hinge" or "huber", or penalty "l2".'
        )
