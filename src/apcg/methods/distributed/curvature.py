"""phi'' on the rows of a shard, for one output and for classes.

one output   a number for each row
classes      weight_i (diag(p_i) - p_i p_i'), p_i >= 0 with sum 1, for each row
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from ..._kernels.newton import objective
from ...data import Stored
from ...losses.base import SOFTMAX


@dataclass(frozen=True, eq=False)
class Numbers:
    """phi'' of a loss of one prediction."""

    bend: Vector

    @classmethod
    def of(cls, loss: Any, z: Vector, y: Vector, s: Vector) -> Numbers:
        """At the predictions z."""
        at, slope, bend = np.empty((3, z.size))
        objective.evaluate(
            loss.kernel, np.array(loss.theta), z, z, 0.0, y, loss.margin, s, 1.0, at, slope, bend
        )
        return cls(bend)

    def form(self, Z: Table) -> Table:
        """Z' phi'' Z for the directions Z, (m, n)."""
        return np.asarray((Z * self.bend) @ Z.T)

    def gram(self, X: Stored) -> Table:
        """X' phi'' X, its upper triangle."""
        return X.gram(self.bend)


@dataclass(frozen=True, eq=False)
class Simplex:
    """phi'' of a loss over classes."""

    p: Table
    weight: Vector

    @classmethod
    def of(cls, loss: Any, z: Table, y: Any, s: Vector) -> Simplex:
        """At the predictions z."""
        each = np.broadcast_to(s, len(z))
        p = -loss.duals(z, y, np.ones(1))
        p[np.arange(len(z)), y] += 1.0
        if loss.kind == SOFTMAX:
            return cls(p, each)
        active = p > 0
        count = active.sum(axis=1)
        return cls(active / count[:, None], each * count / loss.gamma)

    def form(self, Z: Table) -> Table:
        """sum_i <Z_a,i, phi''_i Z_b,i> for the directions Z, (m, n, K)."""
        m, n, K = Z.shape
        means = np.einsum("mnk,nk->mn", Z, self.p)
        left = (Z * (self.p * self.weight[:, None])).reshape(m, n * K)
        return np.asarray(left @ Z.reshape(m, n * K).T - (means * self.weight) @ means.T)

    def gram(self, X: Stored) -> Table:
        """The Hessian in W, (d K, d K), entry j K + k for feature j and class k."""
        d, K = X.shape[1], self.p.shape[1]
        H = np.empty((d, K, d, K))
        for k in range(K):
            for m in range(k, K):
                bend = self.weight * self.p[:, k] * (1 - self.p[:, k] if k == m else self.p[:, m])
                upper = np.triu(X.gram(np.ascontiguousarray(bend)))
                block = upper + np.triu(upper, 1).T
                H[:, k, :, m] = H[:, m, :, k] = block if k == m else -block
        return H.reshape(d * K, d * K)
