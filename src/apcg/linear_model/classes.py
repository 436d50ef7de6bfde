"""The classes of a logistic regression: labels for the problem, coefficients from its answer.

A fold may have no sample of a class, and a class may have weight zero. With an intercept the best
one of such a class is minus infinity, and then its coefficients are zero: the problem is that of
the other classes, and the missing one gets an intercept far below theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import losses
from .._base.types import Array
from .._base.validation import Index, Vector
from ..certify.points import Start
from ..estimators.linear import start_at
from ..problems.erm import ERM
from .answers import dense_if_tiny

#: The intercept of a class without samples is so far below the others: a probability of 1e-13.
NEVER = 30.0


@dataclass(frozen=True)
class Classes:
    """K classes, and the numbers of those that have samples.

    Coefficients are as in scikit-learn: a row for each class, or a vector for two, the intercept
    last if there is one.
    """

    K: int
    there: Index
    intercept: bool

    @classmethod
    def of(cls, codes: Index, K: int, weights: Vector | None, intercept: bool) -> Classes:
        """Those of these samples."""
        there = np.arange(K)
        if intercept:
            there = np.flatnonzero(np.bincount(codes, weights, minlength=K) > 0)
        return cls(K, there, intercept)

    @property
    def alone(self) -> bool:
        """Whether there is nothing to tell apart."""
        return self.there.size == 1

    def problem(
        self, X: Any, codes: Index, weights: Vector | None, penalty: str, l1_ratio: float
    ) -> ERM:
        """The problem of the classes that have samples, for alpha = 1."""
        if self.K == 2:
            loss, labels = losses.by_name("logistic"), np.where(codes == 1, 1.0, -1.0)
        else:
            place = np.searchsorted(self.there, codes)
            labels = np.minimum(place, self.there.size - 1)  # of weight zero: any will do
            loss = losses.Multinomial(self.there.size)
        return ERM(
            dense_if_tiny(X), labels, loss, penalty, 1.0, sample_weight=weights, l1_ratio=l1_ratio,
            intercept=self.intercept,
        )  # fmt: skip

    def coefficients(self, w: Array, b: Any, d: int, free: bool = False) -> Array:
        """Those of all classes, from w and b of the problem.

        A number added to all intercepts of a softmax changes nothing; here they sum to zero. So do
        the coefficients of a feature without a penalty (`free`).
        """
        if self.K == 2:
            return np.append(w, b) if self.intercept else np.array(w)
        w = w - w.mean(axis=1, keepdims=True) if free else w
        made = np.zeros((self.K, d + self.intercept))
        made[self.there, :d] = w.T
        if self.intercept:
            made[:, -1] = np.min(b) - NEVER
            made[self.there, -1] = b
            made[:, -1] -= made[self.there, -1].mean()
        return made

    def constant(self, d: int) -> Array:
        """The coefficients where only one class has samples."""
        b = np.where(self.there == 1, NEVER, -NEVER) if self.K == 2 else np.zeros(1)
        return self.coefficients(np.zeros(d) if self.K == 2 else np.zeros((d, 1)), b, d)

    def start(self, problem: ERM, coef: Any) -> Start | None:
        """Where a warm start begins."""
        if coef is None:
            return None
        shape = (1 if self.K == 2 else self.K, problem.d + self.intercept)
        known = np.asarray(np.atleast_2d(coef), dtype=np.float64)
        if known.shape != shape:
            wanted = f"{shape[1:]} or {shape}" if self.K == 2 else f"{shape}"
            raise ValueError(
                f"Initialization coef is of shape {np.shape(coef)}, expected shape {wanted}"
            )
        if not np.isfinite(known).all():
            raise ValueError(
                "Floating-point under-/overflow: warm_start=True goes on from coefficients that "
                "are NaN or infinite. Set warm_start=False, or fit a new model."
            )
        if self.K == 2:
            b: Any = float(known[0, -1]) * self.intercept
            w = known[0, : problem.d].copy()
        else:
            w = np.ascontiguousarray(known[self.there, : problem.d].T)
            b = known[self.there, -1] if self.intercept else np.zeros(self.there.size)
        return start_at(problem, w, b)
