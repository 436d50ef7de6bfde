"""Data for the benchmarks: a name of apcg.datasets (APCG_DATA_DIR is searched first)."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from apcg import datasets


def load(name, unit_rows=False):
    """X and labels -1, 1; "text" is generated. X is a matrix that every solver takes."""
    if name == "text":
        X, y = datasets.text_like(5000, 10_000, 50, noise=0.3)
        return sp.csr_matrix(X), y
    data = datasets.load(name)
    y = np.where(data.y == data.y.max(), 1.0, -1.0)
    X = normalize(data.X) if unit_rows else data.X
    return sp.csr_matrix(X, copy=True), y  # what is mapped from the cache is read-only
