"""Random ERM problems with K outputs for the fuzzer, with P and D by their definition in extended
precision: losses over classes, sums over outputs, penalties on entries and on rows of W.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from one_output import (
    EPS,
    LONG,
    TINY,
    Case,
    Phi,
    random_data,
    random_loss,
    random_penalty,
    random_weights,
    stored,
)

from apcg import losses


def projected(v):
    """The point of the simplex nearest to each row."""
    K = v.shape[1]
    v = v - v.max(axis=1, keepdims=True)  # so that 1 is no rounding beside huge v
    down = -np.sort(-v, axis=1)
    over = (np.cumsum(down, axis=1) - 1) / np.arange(1, K + 1)
    last = np.sum(down > over, axis=1) - 1
    return np.maximum(v - over[np.arange(len(v)), last][:, None], 0)


@dataclass
class Classes:
    """phi, its maximiser pi and phi* of a loss over classes; gamma is None for the softmax."""

    gamma: float | None

    def value(self, z, y):
        """phi(z), and pi"""
        at = np.arange(len(z))
        z = z - z[at, y][:, None]
        if self.gamma is None:
            top = z.max(axis=1, keepdims=True)
            e = np.exp(z - top)
            total = e.sum(axis=1, keepdims=True)
            return (top + np.log(total))[:, 0], e / total
        room = z + 1
        room[at, y] -= 1
        if self.gamma == 0:
            pi = np.zeros_like(z)
            pi[at, np.argmax(room, axis=1)] = 1
            return room.max(axis=1), pi
        e = np.zeros_like(z)
        e[at, y] = 1
        pi = projected(e + room / LONG(self.gamma))
        square = np.sum((pi - e) ** 2, axis=1)
        return np.sum(room * pi, axis=1) - LONG(self.gamma) / 2 * square, pi

    def steepest(self, z, y, off):
        """|pi - e|, and for the plain hinge loss 1 wherever a rounding may change the maximum."""
        at = np.arange(len(z))
        slope = self.value(z, y)[1]
        slope[at, y] -= 1
        if self.gamma == 0:
            room = z + 1
            room[at, y] -= 1
            near = room >= room.max(axis=1, keepdims=True) - 8 * EPS * off.max(axis=1)[:, None]
            return np.where(near | (slope != 0), 1, 0)
        return np.abs(slope)

    def conjugate(self, u, y):
        """phi*(-u) of u = e - pi, the sum of the sizes of its terms, and whether u is feasible."""
        at, K = np.arange(len(u)), u.shape[1]
        pi = -u
        pi[at, y] += 1
        slack = 4 * (K + 8) * EPS
        feasible = bool(np.all(pi >= -slack) and np.all(np.abs(u.sum(axis=1)) <= slack))
        pi = np.maximum(pi, 0)
        pi = pi / pi.sum(axis=1, keepdims=True)
        if self.gamma is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(pi > 0, pi * np.log(pi), 0)
            return terms.sum(axis=1), np.sum(np.abs(terms) + np.abs(pi), axis=1), feasible
        e = np.zeros_like(u)
        e[at, y] = 1
        square = LONG(self.gamma) / 2 * np.sum((pi - e) ** 2, axis=1)
        off = 1 - pi[at, y]
        return square - off, square + np.abs(off) + 1, feasible


@dataclass
class OutputsCase(Case):
    """A problem with K outputs; `phi` is Classes, or Phi of a sum over outputs."""

    def values(self, w, x, b, alpha):
        """P, D, and how far rounding may have moved either; D is None if x is not feasible."""
        A = (self.X.toarray() if sp.issparse(self.X) else self.X).astype(LONG)
        w, x, b = (np.asarray(v, dtype=LONG) for v in (w, x, b))
        y, alpha = np.asarray(self.y), LONG(alpha or 1)  # as of one output
        s, n = self.scaled_weights()
        classes = isinstance(self.phi, Classes)
        margin = not classes and self.loss.margin
        z = A @ w + b
        off = np.abs(A) @ np.abs(w) + np.abs(b)
        if classes:
            off = off + 1
            phi, _ = self.phi.value(z, y)
            slope = self.phi.steepest(z, y, off)
            bend = 1 if self.phi.gamma is None else 1 / LONG(self.phi.gamma or np.inf)
        else:
            y = y.astype(LONG)
            m = z * y if margin else z - y
            off = off + np.abs(y)
            phi, slope = self.phi.value(m).sum(axis=1), self.phi.steepest(m, off)
            bend = self._bend()
        at_w, sizes_w = self.penalty_at(w)
        P = np.sum(s * phi) / n + alpha * at_w
        room = np.abs(P) + np.sum(s[:, None] * slope * off) / n + alpha * sizes_w
        room_P = EPS * (room + EPS * np.sum(s[:, None] * off**2) / n * bend)

        D, room_D = self._dual(A, w, x, b, z, y, s, n, alpha, margin)
        return P, D, room_P + room_D + TINY

    def _dual(self, A, w, x, b, z, y, s, n, alpha, margin):
        u = np.divide(x, s[:, None], out=np.zeros_like(x), where=s[:, None] > 0)
        feasible = not np.any(x[s == 0] != 0)
        if isinstance(self.phi, Classes):
            conj, size, inside = self.phi.conjugate(u, y)
            off = np.abs(z - z[np.arange(len(y)), y][:, None]) + 1
        else:
            low, high = self.phi.domain
            slack = 8 * EPS
            inside = not np.any((u < low - slack * abs(low)) | (u > high + slack * abs(high)))
            conj, size = (v.sum(axis=1) for v in self.phi.conjugate(np.clip(u, low, high)))
            off = np.abs(z * y if margin else z - y)
        feasible &= inside
        total, sizes = np.sum(s * conj), np.sum(s * size)
        if not isinstance(self.phi, Classes) and not margin:
            total, sizes = total - np.sum(x * y), sizes + np.sum(np.abs(x * y))
        signed = y * x if margin else x
        most = np.abs(signed).sum(axis=0).max()
        if self.intercept:
            feasible &= bool(np.all(np.abs(signed.sum(axis=0)) <= 100 * EPS * most))
        v = A.T @ signed / (alpha * n)
        dv = EPS * (np.abs(A).T @ np.abs(x)) / (alpha * n)
        g_star, room, inside = self.conjugate_at(v, dv, w)
        D = -total / n - alpha * g_star
        room_D = EPS * sizes / n + alpha * room
        # where x/s is rounded: the slope of phi* is a prediction
        room_D += EPS * np.sum(np.abs(x) * off) / n
        if self.intercept:
            room_D += EPS * most * np.abs(b).sum() / n
        return (D if feasible and inside else None), room_D


def random_outputs(rng):
    """A problem with K outputs."""
    X = random_data(rng)
    if X.shape[0] > 60:
        X = X[: rng.integers(20, 80)]
    if X.shape[1] > 25:
        X = X[:, : rng.integers(5, 25)]
    while X.shape[0] < 3:
        X = np.vstack([X, X])
    n, d = X.shape
    K = int(min(rng.choice([2, 2, 3, 3, 4, 5, 8, 9, 20]), max(2, n // 2)))
    z = X @ rng.standard_normal((d, K)) / (np.abs(X).max() or 1.0)
    z = z + rng.choice([0.0, 0.3]) * rng.standard_normal((n, K))
    if rng.random() < 0.6:
        loss, phi, y = random_classes(rng, z, n, K)
    else:
        loss, phi = random_loss(rng)
        if loss.margin:
            y = np.where(z > np.median(z, axis=0), 1.0, -1.0)
            y[0], y[1] = 1.0, -1.0
        else:
            y = z * 10 ** rng.uniform(-2, 2, K) + rng.choice([0.0, 0.0, 1e3])
    weight = random_weights(rng, n)
    rows = rng.random() < 0.3
    if rows:
        ratio = float(rng.uniform(0.05, 1.0))
        group = rng.random() < 0.5
        penalty = "group" if group else "group_elasticnet"
        g, options = ((1.0, 0.0), {}) if group else ((ratio, 1 - ratio), {"l1_ratio": ratio})
    else:
        penalty, g, options = random_penalty(rng, d)
    alpha = float(10 ** rng.uniform(-6, 1))
    intercept = bool(rng.random() < 0.35)
    return OutputsCase(stored(X, rng), y, weight, loss, phi, penalty, g, options, alpha, intercept,
                       np.arange(d) if rows else None)  # fmt: skip


def random_classes(rng, z, n, K):
    """A loss over classes, and labels."""
    y = np.argmax(z, axis=1)
    y[: min(n, K)] = np.arange(min(n, K))  # one of each, mostly
    if rng.random() < 0.2:
        y = rng.integers(K, size=n)
        y[:2] = 0, 1
    kind, gamma = rng.integers(3), float(10 ** rng.uniform(-3, 2))
    if kind == 0:
        return losses.Multinomial(n_classes=K), Classes(None), y
    if kind == 1:
        return losses.MulticlassHinge(n_classes=K), Classes(0.0), y
    return losses.MulticlassHinge(gamma, n_classes=K), Classes(gamma), y


__all__ = ["Classes", "OutputsCase", "Phi", "random_outputs"]
