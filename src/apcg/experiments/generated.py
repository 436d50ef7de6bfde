"""Generated data for `apcg reproduce --quick`: small, and hard in the way that the paper's data is.

What makes the paper's problems slow without momentum is that samples are alike and their labels
differ: w must be large to tell them apart. So documents have topics and near-duplicates, the
features of a table are correlated, and labels have noise.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..datasets import Dataset
from ..datasets.generate import Labelled

TOPICS, COPIES = 20, 5
#: Of the words of a near-duplicate so many are others; of the labels so many are random.
CHANGED, RANDOM = 0.1, 0.2
#: Of the words of a document so many are by its topic, the others by the language.
BY_TOPIC = 0.6


def documents(n: int, d: int, words: int, rng: np.random.Generator) -> Labelled:
    """Documents of some topics, about COPIES near-duplicates of each; the label is the topic's."""
    frequency = 1 / np.arange(1, d + 1)  # Zipf's law
    cumulative = np.cumsum(frequency / frequency.sum())

    def drawn(rows: int) -> np.ndarray:
        return np.minimum(np.searchsorted(cumulative, rng.random((rows, words))), d - 1)

    originals = n // COPIES
    favourites = np.array([rng.permutation(d) for _ in range(TOPICS)])
    topic = rng.integers(TOPICS, size=originals)
    text = drawn(originals)
    by_topic = rng.random(text.shape) < BY_TOPIC
    text = np.where(by_topic, favourites[topic[:, None], text], text)
    source = rng.integers(originals, size=n)
    text = np.where(rng.random((n, words)) < CHANGED, drawn(n), text[source])
    values = np.exp(0.3 * rng.standard_normal((n, words)))
    starts = np.arange(0, n * words + 1, words)
    X = sp.csr_array((values.ravel(), text.ravel().astype(np.int32), starts), shape=(n, d))
    X.sum_duplicates()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_array(sp.diags_array(1 / norms) @ X)
    sign = np.where(rng.standard_normal(TOPICS) > 0, 1.0, -1.0)[topic[source]]
    return X, np.where(rng.random(n) < RANDOM, rng.choice([-1.0, 1.0], n), sign)


def table(n: int, rng: np.random.Generator) -> Labelled:
    """54 features as in covtype: ten correlated numbers in [0, 1], two kinds out of 4 and of 40."""
    numbers = rng.standard_normal((n, 5)) @ rng.standard_normal((5, 10))
    numbers += 0.3 * rng.standard_normal((n, 10))
    numbers = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0)
    kinds = np.zeros((n, 44))
    kinds[np.arange(n), rng.integers(4, size=n)] = 1
    rare = 1 / np.arange(1, 41)
    kinds[np.arange(n), 4 + rng.choice(40, p=rare / rare.sum(), size=n)] = 1
    X = np.hstack([numbers, kinds])
    scores = X @ rng.standard_normal(54) + 0.7 * rng.standard_normal(n)
    return sp.csr_array(X), np.where(scores > 0, 1.0, -1.0)


def of(name: str, seed: int) -> Dataset:
    """The data that stands for one of the paper's, and what it is in words."""
    rng = np.random.default_rng(seed)
    if name == "covtype":
        X, y = table(150_000, rng)
        return Dataset(X, y, name, "generated: a table of correlated features, noisy labels")
    X, y = documents(10_000, *{"rcv1": (5_000, 75), "news20": (20_000, 200)}[name], rng)
    return Dataset(X, y, name, "generated: documents of topics, near-duplicates, noisy labels")
