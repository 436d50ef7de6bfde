"""From dask collections to the rows of shards: checks of the chunks, and the dealing of their rows.

Rows in file order are alike where they are neighbours, and then shards are not alike, which local
steps need. So each chunk is cut into as many parts as there are shards, at random, and each shard
gets one part of every chunk. Data crosses the network once for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from ..data import by_row, views
from ..data.chunked import stack
from ..methods.distributed.shard import Shard


def shards_of(
    X: Any, y: Any, weights: Any, shards: int, shuffle: bool, seed: int, workers: list[str]
) -> list[Any]:
    """A collection for each shard, with (X, y, weights, rows, number of the shard)."""
    X = as_array(X, "X", 2)
    sizes = _sizes(X)
    parts = [_blocks(X), _labels(y, "y", sizes), _labels(weights, "sample_weight", sizes)]
    shards = min(shards, min(sizes) if shuffle else len(sizes))
    starts = np.cumsum([0, *sizes])
    with dask.annotate(retries=2):
        checked = [
            dask.delayed(_chunk, pure=False)(k, int(starts[k]), X.shape[1], *each)
            for k, each in enumerate(zip(*parts, strict=True))
        ]
        dealt = [
            dask.delayed(_dealt, pure=False, nout=shards)(part, shards, (seed, k))
            for k, part in enumerate(checked)
        ] if shuffle else []  # fmt: skip
    made = []
    for k in range(shards):
        if shuffle:
            own = [part[k] for part in dealt]
        else:
            own = checked[k * len(sizes) // shards : (k + 1) * len(sizes) // shards]
        where = {"workers": [workers[k % len(workers)]], "allow_other_workers": True}
        with dask.annotate(**(where if workers else {})):
            made.append(dask.delayed(_joined, pure=False)(k, own))
    return made


def shard(rows: Any) -> Shard:
    """What an actor is: the shard of such rows."""
    X, y, weights, places, number = rows
    return Shard(X, y, weights, number, places)


def as_array(X: Any, name: str, dimensions: int) -> Any:
    """A dask array of a collection, with one chunk of columns; an error says what it should be."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a dask array or dataframe, got {type(X).__name__}; "
            f"for data in memory take apcg's own estimators, or da.from_array({name}, chunks=...)."
        )
    if X.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, got {X.ndim}.")
    if dimensions == 2 and X.numblocks[1] > 1:
        if sp.issparse(X._meta):
            raise ValueError(f"{name} has several chunks of columns; make sparse ones of all.")
        X = X.rechunk({1: -1})
    return X


def _sizes(X: Any) -> list[int]:
    """The rows of each chunk."""
    sizes = X.chunks[0]
    for k, size in enumerate(sizes):
        if math.isnan(size):
            raise ValueError(
                f"chunk {k} of X has an unknown number of rows; call X.compute_chunk_sizes() first."
            )
        if size == 0:
            raise ValueError(f"chunk {k} of X has no rows; X.rechunk() joins it with another.")
    return [int(size) for size in sizes]


def _blocks(X: Any) -> list[Any]:
    return list(X.to_delayed().reshape(-1))


def _labels(y: Any, name: str, sizes: list[int]) -> list[Any]:
    """A block of labels or weights for each chunk of X."""
    if y is None:
        return [None] * len(sizes)
    if isinstance(y, np.ndarray):
        y = da.from_array(y, chunks=(tuple(sizes),) if len(y) == sum(sizes) else -1)
    y = as_array(y, name, 1)
    if any(math.isnan(size) for size in y.chunks[0]):
        raise ValueError(f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes().")
    if len(y) != sum(sizes):
        raise ValueError(
            f"{name} must have {sum(sizes)} entries, one for each row of X, got {len(y)}."
        )
    for k, (own, rows) in enumerate(zip(y.chunks[0], sizes, strict=False)):
        if own != rows:
            raise ValueError(
                f"chunk {k} of {name} has {own} entries, and that of X has {rows} rows; "
                f"take {name}.rechunk((X.chunks[0],))."
            )
    return _blocks(y)


# ---- on the workers -----------------------------------------------------------------------------


def _chunk(k: int, first: int, d: int, X: Any, y: Any, weights: Any) -> Any:
    """The rows of one chunk, checked; an error names the chunk."""
    try:
        found: Any = by_row(X, "X")
        y, weights = _checked(y, "y", len(y)), _checked(weights, "sample_weight", found.shape[0])
        if found.shape[1] != d or len(y) != found.shape[0]:
            raise ValueError(f"X has the shape {found.shape} and y {len(y)} entries, expected {d} "
                             "columns and as many rows as entries.")  # fmt: skip
        if weights is not None and weights.min() < 0:
            raise ValueError(f"sample_weight must not be negative, got {weights.min():g}.")
    except (ValueError, TypeError) as error:
        last = first + X.shape[0] - 1
        raise type(error)(f"chunk {k} (rows {first} to {last}): {error}") from None
    return found, y, weights, first + np.arange(found.shape[0])


def _checked(y: Any, name: str, size: int) -> Any:
    if y is None:
        return None
    y = np.asarray(y)
    if y.dtype.kind in "fiub":
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            at = int(np.flatnonzero(~np.isfinite(y))[0])
            raise ValueError(f"{name} has {y[at]} at entry {at} of the chunk.")
    if y.dtype.kind == "O":
        for at, label in enumerate(y):
            if label is None or type(label).__name__ == "NAType" or label != label:
                raise ValueError(f"{name} is missing at entry {at} of the chunk; drop such rows.")
    return y


def _dealt(part: Any, shards: int, seed: tuple[int, int]) -> tuple[Any, ...]:
    """The rows of a chunk at random, in as many parts as there are shards."""
    X, y, weights, rows = part
    order = np.random.default_rng(seed).permutation(len(rows))
    each = (np.sort(order[k::shards]) for k in range(shards))
    return tuple((X.rows(o), y[o], None if weights is None else weights[o], rows[o]) for o in each)


def _joined(number: int, parts: list[Any]) -> Any:
    """The rows of a shard."""
    Xs, ys, weights, rows = zip(*parts, strict=True)
    s = None if weights[0] is None else np.concatenate(weights)
    return stacked(Xs), np.concatenate(ys), s, np.concatenate(rows), number


def stacked(parts: Sequence[Any]) -> Any:
    """Parts, one below the other; a sparse matrix if one of them is."""
    if len({part.sparse for part in parts}) > 1:
        whole = (part.view(views.whole) for part in parts)
        parts = [by_row(sp.csr_array(rows), "X") for rows in whole]
    return stack(parts)
