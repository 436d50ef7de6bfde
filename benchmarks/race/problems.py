"""The data of the race, and what is minimised on it, computed by none of the contestants.

P(w, b) = mean loss(y, X w + b) + lambda g(w). The squared hinge is without a half, the squared loss
with one. Files are looked for in APCG_DATA_DIR; what is not there is left out of the race.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from everyday_data import EVERYDAY

from apcg import datasets

MARGINS = {
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "hinge": lambda m: np.maximum(0.0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0.0, 1 - m) ** 2,
    "smoothed_hinge": lambda m: np.where(m < 0, 0.5 - m, np.maximum(0.0, 1 - m) ** 2 / 2),
}
#: -loss'(0), as a multiple of y.
SLOPES_AT_ZERO = {
    "squared": 1.0,
    "logistic": 0.5,
    "hinge": 1.0,
    "squared_hinge": 2.0,
    "smoothed_hinge": 1.0,
}


class Missing(Exception):
    """A data set is not at hand."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, a loss, a penalty, lambda; `ratio` is the share of L1 in an elastic net."""

    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    loss: str
    penalty: str = "l2"
    lam: float = 1.0
    ratio: float = 0.5

    @property
    def n(self) -> int:
        """Samples."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Features."""
        return self.X.shape[1]

    @property
    def C(self) -> float:
        """What LIBLINEAR and scikit-learn have in the place of lambda."""
        return 1 / (self.lam * self.n)

    def columns(self):
        """X by columns, as coordinate methods on features want it."""
        return sp.csc_matrix(self.X) if sp.issparse(self.X) else np.asfortranarray(self.X)

    def value(self, w, b: float = 0.0, *, penalised_intercept: bool = False) -> float:
        """P(w, b); with `penalised_intercept` b is one of the weights, as it is in LIBLINEAR."""
        w = np.asarray(w, dtype=np.float64).ravel()
        with np.errstate(all="ignore"):
            z = self.X @ w + b
            if self.loss == "squared":
                loss = np.mean((z - self.y) ** 2) / 2
            else:
                loss = np.mean(MARGINS[self.loss](self.y * z))
            l1 = {"l2": 0.0, "l1": 1.0, "elasticnet": self.ratio}[self.penalty]
            g = l1 * np.abs(w).sum() + (1 - l1) / 2 * (w @ w)
            if penalised_intercept:
                g += b * b / 2
        return float(loss + self.lam * g)

    def lambda_max(self) -> float:
        """The least lambda at which L1 (or the L1 share of an elastic net) gives w = 0."""
        slope = np.abs(self.X.T @ (SLOPES_AT_ZERO[self.loss] * self.y)).max() / self.n
        return float(slope / (self.ratio if self.penalty == "elasticnet" else 1.0))

    def resolve(self, label: str) -> float:
        """A lambda as it is written in a cell: a number, "1/n" or "max/100"."""
        if label == "1/n":
            return 1 / self.n
        if label.startswith("max/"):
            return self.lambda_max() / float(label.removeprefix("max/"))
        return float(label)


@lru_cache(2)
def load(name: str):
    """X (CSR with 32-bit indices, or dense in C order) and y.

    "covtype:100000" is the first 100,000 rows of covtype, "tiny" 100 x 10 generated numbers,
    "text" generated text, and EVERYDAY has more that is generated. Labels are -1 and 1, but for
    regression and "digits".
    """
    name, _, rows = name.partition(":")
    if name in EVERYDAY:
        X, y = EVERYDAY[name]()
    elif name in ("tiny", "text"):
        X, y = _generated(name)
    elif name in ("breast_cancer", "digits", "diabetes"):
        X, y = _of_scikit_learn(name)
    elif name == "cal_housing":
        table = np.loadtxt(_file("cal_housing.csv.bz2"), delimiter=",", skiprows=1)
        X, y = _standard(table[:, :-1]), _standard(table[:, -1:])[:, 0]
    elif name in ("golub", "alon"):
        stored = np.load(_file(f"{name}.npz"))
        X, y = _standard(stored["X"].astype(np.float64)), _signs(stored["y"])
    else:
        X, y = _of_libsvm(name)
    if rows:
        X, y = X[: int(rows)], y[: int(rows)]
    if not sp.issparse(X):
        return np.ascontiguousarray(X), y
    X.sort_indices()
    small = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_matrix(small, shape=X.shape), y  # some peers take no others


def _file(name: str) -> Path:
    folder = os.environ.get("APCG_DATA_DIR")
    if not folder:
        raise Missing(f"{name}: APCG_DATA_DIR is not set")
    if not (path := Path(folder) / name).is_file():
        raise Missing(f"{name} is not in APCG_DATA_DIR")
    return path


def _of_libsvm(name: str):
    if not os.environ.get("APCG_DATA_DIR"):
        raise Missing(f"{name}: APCG_DATA_DIR is not set")  # a race does not download
    try:
        data = datasets.load(name)
    except datasets.DataError as reason:
        raise Missing(str(reason)) from None
    X = data.X if sp.issparse(data.X) else np.asarray(data.X)
    return X.copy(), _signs(data.y)  # what is mapped from the cache is read-only


def _of_scikit_learn(name: str):
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    X = _standard(X)
    if name == "diabetes":
        return X, _standard(y[:, None])[:, 0]
    return X, y if name == "digits" else _signs(y)


def _generated(name: str):
    if name == "text":
        return datasets.text_like(5000, 10_000, 50, noise=0.3)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 10))
    return X, _signs(X @ rng.standard_normal(10) + rng.standard_normal(100) > 0)


def _signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


def _standard(X):
    """Columns of mean 0 and variance 1; constant ones are dropped."""
    X = X - X.mean(0)
    scale = X.std(0)
    return X[:, scale > 0] / scale[scale > 0]
