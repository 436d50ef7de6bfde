"""Problems as people have them: 20 to 500 samples, 2 to 300 features, up to 6 outputs.

Columns are independent, alike, of scales 0.03 to 30, ids or mostly zeros, in either width; every
loss and penalty, with and without intercepts and weights, alpha from 1e-6 to 1.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from k_outputs import Classes, OutputsCase
from one_output import Case, Phi

from apcg import losses, penalties

INF = np.inf


def random_columns(rng, n, d):
    """X"""
    X, kind = rng.standard_normal((n, d)), rng.integers(5)
    if kind == 1:
        rank = int(rng.integers(1, max(2, d // 3) + 1))
        X = 0.3 * X + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    elif kind == 2:
        X = X * 10 ** rng.uniform(-1.5, 1.5, d) + rng.choice([0, 3.0]) * rng.standard_normal(d)
    elif kind == 3:
        X = np.abs(X) * (rng.random((n, d)) < rng.choice([0.05, 0.3]))
    elif kind == 4:  # some columns that are ids, some numbers
        first = int(rng.integers(1, d))
        X[:, :first] = rng.integers(first, size=(n, 1)) == np.arange(first)
    X = X.astype(np.float32 if rng.random() < 0.25 else np.float64)
    if kind >= 3 and rng.random() < 0.5:
        return X, sp.csr_matrix(X)
    return X, np.asfortranarray(X) if rng.random() < 0.2 else X


def of_margins(rng, gamma):
    """A loss for two classes, and what it is."""
    return [
        (losses.Hinge(), Phi((1.0, 0.0, 0.0, 0.0, 1.0))),
        (losses.SmoothedHinge(gamma), Phi((1.0, 0.0, gamma, 0.0, 1.0))),
        (losses.SquaredHinge(), Phi((1.0, 0.0, 0.5, 0.0, INF))),
        (losses.Logistic(), Phi(None)),
    ][rng.integers(4)]


def of_residuals(rng, gamma):
    """A loss for numbers, and what it is."""
    q = float(rng.choice([0.1, 0.5, 0.9]))
    return [
        (losses.Squared(), Phi((0.0, 0.0, 1.0, -INF, INF))),
        (losses.Huber(gamma), Phi((0.0, 0.0, 1.0, -gamma, gamma))),
        (losses.EpsilonInsensitive(0.1), Phi((0.0, 0.1, 0.0, -1.0, 1.0))),
        (losses.SquaredEpsilonInsensitive(0.1), Phi((0.0, 0.1, 0.5, -INF, INF))),
        (losses.Pinball(q), Phi((0.0, 0.0, 0.0, q - 1, q))),
    ][rng.integers(5)]


def of_classes(rng, gamma, K):
    """A loss over K classes, and what it is."""
    return [
        (losses.Multinomial(n_classes=K), Classes(None)),
        (losses.MulticlassHinge(n_classes=K), Classes(0.0)),
        (losses.MulticlassHinge(gamma, n_classes=K), Classes(gamma)),
    ][rng.integers(3)]


def random_penalty(rng, d, K):
    """The penalty as it is given, its parameters, the group of each feature, other options."""
    ratio, low = float(rng.choice([0.1, 0.5, 0.9])), -INF
    if K > 1 and rng.random() < 0.4:
        name = str(rng.choice(["group", "group_elasticnet"]))
        g = (1.0, 0.0) if name == "group" else (ratio, 1 - ratio)
        return name, g, np.arange(d), {"l1_ratio": ratio}
    if K == 1 and rng.random() < 0.2:
        group_of = np.arange(d) // int(rng.integers(1, 11))
        sizes = np.bincount(group_of)
        return penalties.GroupLasso(sizes), (np.ones(sizes.size), 0.0), group_of, {}
    name = str(rng.choice(["l2", "l1", "elasticnet"]))
    a, b = {"l2": (0.0, 1.0), "l1": (1.0, 0.0)}.get(name, (ratio, 1 - ratio))
    options = {"l1_ratio": ratio}
    if K == 1 and rng.random() < 0.1:
        low, options = 0.0, {**options, "positive": True}
    return name, (a, b, low, INF), None, options


def random_everyday(rng):
    """One of these problems."""
    n, d, K = int(rng.integers(20, 501)), int(rng.integers(2, 301)), int(rng.integers(2, 7))
    X, given = random_columns(rng, n, d)
    W = rng.standard_normal((d, K)) * (rng.random((d, 1)) < rng.choice([0.1, 1.0]))
    z = X @ W
    z = z / (z.std() or 1.0) + rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal((n, K))
    kind, gamma = rng.integers(7), float(10 ** rng.uniform(-2, 0.5))
    if kind < 3:
        y = z.argmax(axis=1)
        y[:K] = np.arange(K)
        loss, phi = of_classes(rng, gamma, K)
    else:
        K = 1 if kind < 6 else K
        loss, phi = (of_margins, of_residuals)[rng.integers(2)](rng, gamma)
        numbers = z * rng.choice([1.0, 1.0, 30.0]) + rng.choice([0.0, 0.0, 10.0])
        y = np.where(z > np.median(z, axis=0), 1.0, -1.0) if loss.margin else numbers
        y = y[:, 0] if K == 1 else y
    penalty, g, groups, options = random_penalty(rng, d, K)
    weight = rng.uniform(0.1, 2, n) if rng.random() < 0.25 else None
    if weight is not None and rng.random() < 0.3:
        weight[K:][rng.random(n - K) < 0.2] = 0.0
    alpha, free = float(10 ** rng.uniform(-6, 0)), bool(rng.random() < 0.5)
    made = given, y, weight, loss, phi, penalty, g, options, alpha, free, groups
    return Case(*made) if K == 1 else OutputsCase(*made)
