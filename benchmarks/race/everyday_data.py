"""Generated data of the kinds that people have every day, each with the structure of a real set.

ratings     one-hot users and films, both of power laws, and a few genres; thousands of columns
carriers    eight one-hot groups of very different sizes, as flights or log lines have
shuffled    ids whose columns are in no order
amounts     ids with numbers other than 1, and a few numeric columns
raw         20 raw columns with scales from 1e-3 to 1e5, and many rows
counts      raw counts with 4 % of the samples in one class
square      dense, with 6 samples a feature
voice       fewer samples than features, with raw scales from 1e-7 to 1e10
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def _ids(n: int, groups: tuple[int, ...], seed: int, power: float = 1.1) -> sp.csr_matrix:
    """One id of each group in a row; the k-th most frequent has a chance of k^-power."""
    rng = np.random.default_rng(seed)
    columns, begin = [], 0
    for size in groups:
        chance = np.arange(1, size + 1) ** -power
        drawn = rng.choice(size, n, p=chance / chance.sum())
        columns.append(begin + rng.permutation(size)[drawn])
        begin += size
    at = np.stack(columns, axis=1).ravel()
    return sp.csr_matrix(
        (np.ones(at.size), at, len(groups) * np.arange(n + 1)), shape=(n, begin)
    )  # fmt: skip


def _labels(X, seed: int, positives: float = 0.4, noise: float = 0.7):
    """Signs of a linear model of standardised columns, with noise."""
    rng = np.random.default_rng(seed)
    if not sp.issparse(X):
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-300)
    z = X @ rng.standard_normal(X.shape[1])
    z = z / z.std() + noise * rng.standard_normal(X.shape[0])
    return np.where(z > np.quantile(z, 1 - positives), 1.0, -1.0)


def ratings():
    """100,000 x 9,720"""
    n = 100_000
    genres = sp.random(n, 20, 0.12, format="csr", random_state=1)
    genres.data[:] = 1.0
    X = sp.hstack([_ids(n, (700, 9000), 0), genres], format="csr")
    return X, _labels(X, 2)


def carriers():
    """60,000 x 4,292"""
    X = _ids(60_000, (18, 12, 31, 7, 24, 300, 300, 3600), 0)
    return X, _labels(X, 1)


def shuffled():
    """60,000 x 4,318"""
    X = _ids(60_000, (18, 300, 4000), 0)
    X = X[:, np.random.default_rng(1).permutation(X.shape[1])]
    return X, _labels(X, 2)


def amounts():
    """60,000 x 4,324"""
    X = _ids(60_000, (18, 300, 4000), 0)
    X.data *= np.random.default_rng(1).uniform(0.3, 2.0, X.nnz)
    X = sp.hstack([X, sp.random(60_000, 6, 0.3, format="csr", random_state=2)], format="csr")
    return X, _labels(X, 3)


def raw():
    """100,000 x 20"""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 20)) @ rng.standard_normal((20, 20))
    X = (X + rng.uniform(-5, 5, 20)) * 10 ** rng.uniform(-3, 5, 20)
    return X, _labels(X, 1)


def counts():
    """5,822 x 85"""
    rng = np.random.default_rng(0)
    rate = rng.gamma(1, 2, 85) * np.exp(0.5 * rng.standard_normal((5822, 1)))
    X = rng.poisson(rate).clip(0, 9).astype(float)
    X[:, 0] = rng.integers(1, 42, 5822)
    return X, _labels(X, 1, positives=0.04, noise=1.5)


def square():
    """900 x 150"""
    X = np.random.default_rng(0).standard_normal((900, 150))
    return X, _labels(X, 1)


def voice():
    """252 x 751"""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((252, 60)) @ rng.standard_normal((60, 751))
    X = (X + rng.standard_normal((252, 751))) * 10 ** rng.uniform(-7, 10, 751)
    return X, _labels(X, 1)


EVERYDAY = {
    make.__name__: make
    for make in (ratings, carriers, shuffled, amounts, raw, counts, square, voice)
}
