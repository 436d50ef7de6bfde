"""Random ERM problems with K outputs, in every storage."""

import numpy as np
import scipy.sparse as sp

from apcg import ERM, losses
from apcg.losses import MulticlassHinge, Multinomial

LOSSES = {
    "softmax": Multinomial(),
    "crammer_singer": MulticlassHinge(),
    "smoothed": MulticlassHinge(0.5),
    "squared": losses.Squared(),
    "huber": losses.Huber(0.8),
    "columns": losses.SmoothedHinge(0.5),
    "logistic": losses.Logistic(),
    "epsilon": losses.EpsilonInsensitive(0.1),
}


MARGINS = ("columns", "logistic")


SMOOTH = [name for name in LOSSES if name not in ("crammer_singer", "epsilon")]


LAYOUTS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "long": lambda X: _long(sp.csr_array(X)),
}


def _long(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def data(loss, n=60, d=12, K=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    z = X @ rng.standard_normal((d, K)) + 0.5 * rng.standard_normal((n, K))
    if loss in ("softmax", "crammer_singer", "smoothed"):
        y = z.argmax(axis=1)
        y[:K] = np.arange(K)
        return X, y
    return X, np.where(z > 0, 1.0, -1.0) if loss in MARGINS else z


def problem(loss, penalty="l2", alpha=1e-2, *, weighted=False, layout="dense", seed=0, **rest):
    shape = {k: rest.pop(k) for k in ("n", "d", "K") if k in rest}
    X, y = data(loss, seed=seed, **shape)
    weights = np.random.default_rng(seed + 1).uniform(0.2, 3, len(y)) if weighted else None
    return ERM(LAYOUTS[layout](X), y, LOSSES[loss], penalty, alpha, sample_weight=weights, **rest)


def text(n=400, d=300, K=20, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.random((K, d)) < 0.05
    y = rng.integers(0, K, n)
    counts = rng.poisson(0.02 + centres[y] * 0.7).astype(float)
    counts /= np.maximum(np.linalg.norm(counts, axis=1), 1e-9)[:, None]
    return sp.csr_matrix(counts), np.array([f"group.{k}" for k in y])
