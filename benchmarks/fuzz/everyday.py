"""Problems as people have them: 20 to 600 samples, 1 to 400 features, up to 6 outputs.

Columns are independent, alike, of scales 0.001 to 1,000, ids, mostly zeros, twice there or
constant, in either width; rows may come twice, and classes be rare. Every loss and penalty, with
and without intercepts and weights, alpha from 1e-6 to 1.
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
    X, kind = rng.standard_normal((n, d)), rng.integers(6)
    if kind == 1:
        rank = int(rng.integers(1, max(2, d // 3) + 1))
        X = 10 ** rng.uniform(-3, 0) * X
        X = X + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    elif kind == 2:
        wide = rng.choice([1.5, 3.0])
        X = X * 10 ** rng.uniform(-wide, wide, d) + rng.choice([0, 3.0]) * rng.standard_normal(d)
    elif kind == 3:
        X = np.abs(X) * (rng.random((n, d)) < rng.choice([0.05, 0.3]))
    elif kind == 4:  # some columns that are ids, some numbers
        first = int(rng.integers(1, d + 1))
        X[:, :first] = rng.integers(first, size=(n, 1)) == np.arange(first)
    elif kind == 5:  # each column is nearly the one before, as in a series
        X = np.cumsum(X, axis=1) / np.sqrt(d)
    twice = rng.random(4) < 0.1
    if twice[0]:
        X[:, rng.integers(d, size=d // 4)] = X[:, rng.integers(d, size=d // 4)]
    if twice[1]:
        X[rng.integers(n, size=n // 3)] = X[rng.integers(n, size=n // 3)]
    if twice[2]:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0])
    if twice[3]:
        X = X * 10 ** rng.uniform(-2, 2)
    X = X.astype(np.float32 if rng.random() < 0.25 else np.float64)
    if kind in (3, 4) and rng.random() < 0.5:
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
    ratio, low = float(rng.choice([0.01, 0.1, 0.5, 0.9, 0.99])), -INF
    if K > 1 and rng.random() < 0.4:
        name = str(rng.choice(["group", "group_elasticnet"]))
        g = (1.0, 0.0) if name == "group" else (ratio, 1 - ratio)
        return name, g, np.arange(d), {"l1_ratio": ratio}
    if K == 1 and rng.random() < 0.2:
        group_of = np.arange(d) // int(rng.integers(1, 11))
        sizes = np.bincount(group_of)
        weights = rng.choice([np.ones(sizes.size), np.sqrt(sizes)])
        return penalties.GroupLasso(sizes, weights), (weights, 0.0), group_of, {}
    name = str(rng.choice(["l2", "l1", "elasticnet"]))
    a, b = {"l2": (0.0, 1.0), "l1": (1.0, 0.0)}.get(name, (ratio, 1 - ratio))
    options = {"l1_ratio": ratio}
    if rng.random() < 0.15:  # a weight for each feature
        each, options = 10 ** rng.uniform(-1, 1, d), {}
        made = {"l2": penalties.L2(each), "l1": penalties.L1(each)}
        name, a, b = made.get(name, penalties.ElasticNet(each, ratio)), a * each, b * each
    if K == 1 and rng.random() < 0.1:
        low, options = 0.0, {**options, "positive": True}
    return name, (a, b, low, INF), None, options


def random_labels(rng, z, K):
    """The class of each sample: the largest of its numbers, where some classes may be rare."""
    y = (z + rng.choice([0.0, 2.0]) * rng.standard_normal(K)).argmax(axis=1)
    y[:K] = np.arange(K)
    return y


def random_everyday(rng):
    """One of these problems."""
    n, d = int(rng.integers(20, 501)), int(rng.integers(2, 301))
    if rng.random() < 0.5:  # of all sizes alike
        n, d = (int(10 ** rng.uniform(*np.log10(ends))) for ends in ((20, 600), (1, 400)))
    K = int(rng.choice([2, 2, 3, 3, 4, 5, 6]))
    X, given = random_columns(rng, n, d)
    W = rng.standard_normal((d, K)) * (rng.random((d, 1)) < rng.choice([0.1, 1.0]))
    z = X @ W
    z = z / (z.std() or 1.0) + rng.choice([0.0, 0.1, 1.0, 3.0]) * rng.standard_normal((n, K))
    kind, gamma = rng.integers(7), float(10 ** rng.uniform(-2, 0.5))
    if kind < 3:
        y = random_labels(rng, z, K)
        loss, phi = of_classes(rng, gamma, K)
    else:
        K = 1 if kind < 6 else K
        loss, phi = (of_margins, of_residuals)[rng.integers(2)](rng, gamma)
        numbers = z * rng.choice([1.0, 1.0, 30.0]) + rng.choice([0.0, 0.0, 10.0])
        cut = np.quantile(z, rng.choice([0.5, 0.5, 0.95]), axis=0)
        y = np.where(z > cut, 1.0, -1.0) if loss.margin else numbers
        y[:2] = [[1.0], [-1.0]] if loss.margin else y[:2]
        y = y[:, 0] if K == 1 else y
    penalty, g, groups, options = random_penalty(rng, d, K)
    weight = rng.uniform(0.1, 2, n) if rng.random() < 0.25 else None
    if weight is not None and rng.random() < 0.3:
        weight[K:][rng.random(n - K) < 0.2] = 0.0
    alpha, free = float(10 ** rng.uniform(-6, 0)), bool(rng.random() < 0.5)
    made = given, y, weight, loss, phi, penalty, g, options, alpha, free, groups
    return Case(*made) if K == 1 else OutputsCase(*made)
