"""Problems as people have them: 20 to 500 samples, 2 to 300 features, up to 6 outputs.

Columns are independent, alike, of scales 0.03 to 30, or mostly zeros; every loss and penalty, with
and without intercepts and weights, alpha from 1e-6 to 1.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from k_outputs import Classes, OutputsCase
from one_output import Case, Phi

from apcg import losses

INF = np.inf
MARGINS = (
    (losses.Hinge(), Phi((1.0, 0.0, 0.0, 0.0, 1.0))),
    (losses.SmoothedHinge(1.0), Phi((1.0, 0.0, 1.0, 0.0, 1.0))),
    (losses.SquaredHinge(), Phi((1.0, 0.0, 0.5, 0.0, INF))),
    (losses.Logistic(), Phi(None)),
)
RESIDUALS = (
    (losses.Squared(), Phi((0.0, 0.0, 1.0, -INF, INF))),
    (losses.Huber(1.0), Phi((0.0, 0.0, 1.0, -1.0, 1.0))),
    (losses.EpsilonInsensitive(0.1), Phi((0.0, 0.1, 0.0, -1.0, 1.0))),
)


def random_columns(rng, n, d):
    """X"""
    X, kind = rng.standard_normal((n, d)), rng.integers(4)
    if kind == 1:
        rank = int(rng.integers(1, max(2, d // 3) + 1))
        X = 0.3 * X + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    elif kind == 2:
        X = X * 10 ** rng.uniform(-1.5, 1.5, d) + rng.choice([0, 3.0]) * rng.standard_normal(d)
    elif kind == 3:
        X = np.abs(X) * (rng.random((n, d)) < rng.choice([0.05, 0.3]))
    return X, bool(kind == 3 and rng.random() < 0.5)


def random_everyday(rng):
    """One of these problems."""
    n, d, K = int(rng.integers(20, 501)), int(rng.integers(2, 301)), int(rng.integers(2, 7))
    X, sparse = random_columns(rng, n, d)
    W = rng.standard_normal((d, K)) * (rng.random((d, 1)) < rng.choice([0.1, 1.0]))
    z = X @ W
    z = z / (z.std() or 1.0) + rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal((n, K))
    kind, gamma = rng.integers(6), float(10 ** rng.uniform(-2, 0.5))
    if kind < 3:
        y = z.argmax(axis=1)
        y[:K] = np.arange(K)
        loss, phi = [
            (losses.Multinomial(n_classes=K), Classes(None)),
            (losses.MulticlassHinge(n_classes=K), Classes(0.0)),
            (losses.MulticlassHinge(gamma, n_classes=K), Classes(gamma)),
        ][kind]
    else:
        K = 1 if kind < 5 else K
        among = (MARGINS, RESIDUALS)[rng.integers(2)]
        loss, phi = among[rng.integers(len(among))]
        y = np.where(z > np.median(z, axis=0), 1.0, -1.0) if loss.margin else z
        y = y[:, 0] if K == 1 else y
    rows = bool(K > 1 and rng.random() < 0.4)
    ratio = float(rng.choice([0.1, 0.5, 0.9]))
    name = str(rng.choice(["group", "group_elasticnet"] if rows else ["l2", "l1", "elasticnet"]))
    a, b = {"l2": (0.0, 1.0), "l1": (1.0, 0.0), "group": (1.0, 0.0)}.get(name, (ratio, 1 - ratio))
    g = (a, b) if rows else (a, b, -INF, INF)
    options = {"l1_ratio": ratio} if "elasticnet" in name else {}
    weight = rng.uniform(0.1, 2, n) if rng.random() < 0.25 else None
    alpha, free = float(10 ** rng.uniform(-6, 0)), bool(rng.random() < 0.5)
    made = (sp.csr_matrix(X) if sparse else X, y, weight, loss, phi, name, g, options, alpha, free)
    return Case(*made) if K == 1 else OutputsCase(*made, rows)
