"""Data for the benchmarks: files in APCG_DATA_DIR where there are any, generated data otherwise."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

FILES = {
    "a9a": ("a9a.bz2", "a9a"),
    "rcv1": ("rcv1_train.binary.bz2", "rcv1_subsets.binary.bz2"),
    "news20": ("news20.binary.bz2", "news20_bigram.binary.bz2"),
    "covtype": ("covtype.libsvm.binary.scale.bz2",),
}


def find(name):
    """The first file for this name in APCG_DATA_DIR, or None."""
    folder = os.environ.get("APCG_DATA_DIR")
    paths = [Path(folder) / f for f in FILES.get(name, ())] if folder else []
    return next((p for p in paths if p.exists()), None)


def load(name, unit_rows=False):
    """X and labels -1, 1; "text" is generated."""
    if name == "text":
        return text()
    path = find(name)
    if path is None:
        raise FileNotFoundError(f"no file for {name}: put one of {FILES[name]} in APCG_DATA_DIR")
    X, y = load_svmlight_file(str(path))
    y = np.where(y == y.max(), 1.0, -1.0)
    X = sp.csr_matrix(normalize(X) if unit_rows else X)
    if X.nnz < 2**31:  # some solvers take no other
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def text(n=5000, d=10_000, nonzeros=50, seed=0, noise=0.3):
    """Sparse unit rows with features of Zipf frequencies, and noisy labels."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, size=n * nonzeros, p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), nonzeros)
    X = sp.csr_matrix((rng.exponential(1, n * nonzeros), (rows, columns)), shape=(n, d))
    X = sp.csr_matrix(normalize(X))
    y = np.where(X @ rng.standard_normal(d) + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y
