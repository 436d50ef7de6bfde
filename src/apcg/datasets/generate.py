"""Generated data, and the data that scikit-learn ships."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from .._base import validation as validate
from .._base.types import Array, Seed, Stored
from .._base.validation import Index, Mask, Vector

#: X and y.
Labelled: TypeAlias = tuple[Stored, Vector]
#: Numbers that are drawn at a time.
_BLOCK = 1 << 22


def text_like(
    n: int = 8000,
    d: int = 4000,
    nonzeros: int = 40,
    *,
    condition: float | None = None,
    noise: float = 0.5,
    random_state: Seed = 0,
) -> tuple[sp.csr_array, Vector]:
    """Like text: sparse rows of unit norm, few frequent features and many rare ones, noisy labels.

    Parameters
    ----------
    n, d, nonzeros : int
        Samples, features, and the entries of each sample that are not zero.
    condition : float, default=None
        How much more frequent the most frequent feature is than the rarest, roughly the condition
        number of X'X. The frequency of feature j falls as a power of j. None is d, Zipf's law for
        words; 1 makes all features alike.
    noise : float, default=0.5
        Standard deviation of what is added to a_i'w before its sign is taken as the label; that of
        a_i'w itself is 1. With 0 the data is separable.
    random_state : int or Generator, default=0
        A seed or a numpy Generator.

    Returns
    -------
    tuple of a CSR array and an array
        X, and labels -1 and 1.

    Examples
    --------
    >>> from apcg.datasets import text_like
    >>> X, y = text_like(n=100, d=1000, nonzeros=20)
    >>> X.shape, X.nnz
    ((100, 1000), 2000)
    """
    n = validate.integer(n, "n", low=1)
    d = validate.integer(d, "d", low=1)
    k = validate.integer(nonzeros, "nonzeros", low=1)
    if k > d:
        raise ValueError(f"nonzeros must be at most d = {d}, got {k}.")
    condition = validate.number(d if condition is None else condition, "condition", low=1.0)
    noise = validate.number(noise, "noise", low=0.0)
    rng = validate.generator(random_state)
    exponent = math.log(condition) / math.log(d) if d > 1 else 0.0
    logits = -exponent * np.log(np.arange(1, d + 1))
    columns = _distinct(rng, n, k, logits)
    values = rng.exponential(1.0, (n, k)) + 1e-3  # away from zero
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    index = np.int32 if n * k < 2**31 else np.int64
    indptr: Array = np.arange(0, n * k + 1, k, dtype=index)
    X = sp.csr_array((values.ravel(), columns.ravel().astype(index), indptr), shape=(n, d))
    y = np.where(X @ rng.standard_normal(d) + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def _blocks(rows: Index, width: int) -> list[Index]:
    """Rows in blocks of at most about _BLOCK numbers, `width` a row."""
    return np.array_split(rows, max(1, -(-rows.size * width // _BLOCK)))


def _distinct(rng: np.random.Generator, rows: int, k: int, logits: Vector) -> Array:
    """k different features a row, drawn one after the other by their frequencies; sorted.

    A few draws for each one wanted are enough for nearly all rows, the repeats left out; what is
    left is drawn by the Gumbel trick, which always works and takes O(d) a row.
    """
    d = logits.size
    cumulative = np.cumsum(np.exp(logits))
    cumulative /= cumulative[-1]
    chosen = np.empty((rows, k), dtype=np.int64)
    late = np.arange(rows)
    for draws in (4 * k, 16 * k, 64 * k):
        if draws < d:
            late = np.concatenate(
                [
                    part[~_draw(rng, chosen, part, draws, cumulative)]
                    for part in _blocks(late, draws)
                ]
            )
    for part in _blocks(late, d):
        keys = logits + rng.gumbel(size=(part.size, d))
        chosen[part] = np.argpartition(-keys, k - 1, axis=1)[:, :k]
    return np.sort(chosen, axis=1)


def _draw(
    rng: np.random.Generator, chosen: Array, rows: Index, draws: int, cumulative: Vector
) -> Mask:
    """Fill the rows whose draws have enough different features; which they are."""
    k = chosen.shape[1]
    drawn = np.searchsorted(cumulative, rng.random((rows.size, draws)), side="right")
    drawn = np.minimum(drawn, cumulative.size - 1)
    order = np.argsort(drawn, axis=1, kind="stable")
    ranked = np.take_along_axis(drawn, order, axis=1)
    again = np.zeros_like(drawn, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    different = np.cumsum(~again, axis=1)
    enough: Mask = different[:, -1] >= k
    taken = (~again & (different <= k))[enough]
    chosen[rows[enough]] = drawn[enough][taken].reshape(-1, k)
    return enough


def _breast_cancer() -> Labelled:
    """569 samples, 30 features, standardised."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y.astype(float)


def _digits() -> Labelled:
    """1,797 images of 8 x 8 in [0, 1]: an eight or not."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, np.where(y == 8, 1.0, -1.0)


def _diabetes() -> Labelled:
    """442 patients, 10 features; a real target, standardised."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return X / X.std(axis=0), (y - y.mean()) / y.std()


@dataclass(frozen=True)
class BuiltIn:
    """A data set that needs no file, and the samples and features it has."""

    make: Callable[[], Labelled]
    n: int
    d: int
    labels: str
    source: str


#: Data sets that need no file: scikit-learn's, and a generated one.
BUILT_IN = {
    "breast_cancer": BuiltIn(_breast_cancer, 569, 30, "2 classes", "scikit-learn"),
    "digits": BuiltIn(_digits, 1797, 64, "2 classes", "scikit-learn"),
    "diabetes": BuiltIn(_diabetes, 442, 10, "real numbers", "scikit-learn"),
    "text": BuiltIn(text_like, 8000, 4000, "2 classes", "generated"),
}
