"""Data: files (LIBSVM, CSV, Parquet, .npz), names, a cache that loads memory-mapped, generators.

`load` takes a name, a path or "-" for standard input. A name is looked for in the folder
APCG_DATA_DIR first, and is downloaded otherwise. APCG_CACHE_DIR says where downloads and parsed
data are kept, in place of the user's cache folder.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import scipy.sparse as sp

from .._base.archive import BROKEN, Archive
from .._base.types import Array, Stored
from .._base.validation import integer
from ..data import Chunked, check_sparse
from ..data import Stored as InMemory
from ..data.mapped import OnDisk, is_folder
from . import cache, libsvm, registry, tables
from .cache import folder as cache_folder
from .conversion import convert
from .errors import DataError
from .generate import BUILT_IN, text_like
from .tables import Table, Wanted

__all__ = [
    "DataError",
    "Dataset",
    "OnDisk",
    "Table",
    "batches",
    "cache_folder",
    "convert",
    "load",
    "names",
    "text_like",
]

#: Smaller files are parsed anew each time; the cache would not be quicker.
WORTH_KEEPING = 1_000_000
#: A matrix may be so many times wider than it has numbers, and so wide in any case.
WIDE, WIDE_IN_ANY_CASE = 1000, 10_000_000
#: What looks like the name of a file.
_SUFFIXES = {".npz", ".txt", ".svm", ".csv", ".tsv", *tables.PARQUET, *registry.SUFFIXES[1:]}
#: Rows of a folder that are handed on at a time.
_BATCH = 10_000


@dataclass(eq=False)
class Dataset:
    """Samples and labels, and where they are from.

    Attributes
    ----------
    X : array, sparse matrix or Matrix
        Samples by features: a CSR array, or a dense one from an .npz file; of a folder on disk a
        `Matrix`, which may be read part by part.
    y : array or None
        Labels: numbers or words, as in the file.
    name, source : str
        As it was asked for; the file that was used, or what was generated.
    stand_in : bool
        Whether that file stands in for the one that the name means.
    zero_based : bool or None
        Whether the file counts features from 0; None if it does not count them.
    table : Table or None
        Of a CSV or Parquet file, which columns X is made of.

    Examples
    --------
    >>> from apcg import datasets
    >>> data = datasets.load("digits")
    >>> data.shape, data.name, data.stand_in
    ((1797, 64), 'digits', False)
    """

    X: Any = field(repr=False)
    y: Array | None = field(repr=False)
    name: str
    source: str
    stand_in: bool = False
    zero_based: bool | None = None
    table: Table | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def nonzeros(self) -> int:
        """How many entries of X are not zero."""
        if isinstance(self.X, InMemory | Chunked):
            return self.X.nnz
        values = self.X if isinstance(self.X, np.ndarray) else self.X.data
        return int(np.count_nonzero(values))

    def __str__(self) -> str:
        if self.source == self.name:
            return self.name
        return f"{self.name} ({'stand-in ' * self.stand_in}{Path(self.source).name})"


def names() -> list[str]:
    """The names that `load` knows.

    Examples
    --------
    >>> from apcg import datasets
    >>> {"digits", "text", "rcv1"} <= set(datasets.names())
    True
    """
    return [*registry.ENTRIES, *BUILT_IN]


class Listed(TypedDict):
    """A data set with a name: its samples and features, its labels, and where it would be from."""

    name: str
    n: int
    d: int
    labels: str
    source: str


def catalogue() -> list[Listed]:
    """What `names()` stand for. Nothing is loaded."""
    files: list[Listed] = [
        {"name": name, "n": entry.n, "d": entry.d, "labels": "2 classes",
         "source": registry.whereabouts(name)}
        for name, entry in registry.ENTRIES.items()
    ]  # fmt: skip
    return files + [
        {"name": name, "n": b.n, "d": b.d, "labels": b.labels, "source": b.source}
        for name, b in BUILT_IN.items()
    ]


def load(
    data: str | Path,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    memory_limit: float | str | None = None,
    target: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    like: Table | None = None,
    tell: Callable[[int], object] | None = None,
) -> Dataset:
    """The data set of a name, of a LIBSVM, CSV, Parquet or .npz file, of a folder, or "-".

    Parameters
    ----------
    data : str or path
        A file comes before a name that is spelled the same. `names()` has the names. LIBSVM text
        and CSV may be compressed (.bz2, .gz, .xz). An .npz has X and y, or the data, indices,
        indptr and shape of a CSR matrix, and y. "-" is standard input, LIBSVM text or an .npz, or
        CSV if there is a target.
    n_features : int, default=None
        For LIBSVM text, the columns of X; None takes the largest index there is.
    zero_based : bool, default=None
        For LIBSVM text, whether features are counted from 0; None: if a 0 is there.
    memory_limit : int or str, default=None
        For a folder that `convert` has written, as for `OnDisk`.
    target : str, default=None
        For CSV and Parquet, the column with the labels.
    drop, categorical : list of str
        For CSV and Parquet, columns that are left out, and columns of numbers that are taken for
        words: each word is a column of X.
    like : Table, default=None
        The `table` of other data, such as the training data: X gets the same columns.
    tell : callable, default=None
        Called with the number of bytes that were read just now, while a file is parsed.

    Returns
    -------
    Dataset
        Its arrays are read-only where they are mapped from the cache.

    Examples
    --------
    >>> from apcg import datasets
    >>> datasets.load("breast_cancer").shape
    (569, 30)
    """
    text = str(data)
    n_features = None if n_features is None else integer(n_features, "n_features", low=1)
    wanted = like or Wanted(target, tuple(drop), tuple(categorical))
    if is_folder(text):
        opened = OnDisk(text, memory_limit)
        no_table(wanted, text)
        head = opened.header
        table = None if head.table is None else Table.of(head.table)
        return Dataset(opened.X, opened.y, text, text, zero_based=head.zero_based, table=table)
    if is_input(text):
        if tables.is_table(text, wanted):
            X, y, table = tables.load(tables.Source(text, tell), wanted)
            shown = "standard input" if text == "-" else text
            return Dataset(X, y, text, shown, table=table)
        no_table(wanted, text)
        return _file(text, text, n_features, zero_based, tell)
    if text not in BUILT_IN and text not in registry.ENTRIES:
        raise DataError(_unknown(text))
    no_table(wanted, text)
    if text in BUILT_IN:
        X, y = BUILT_IN[text].make()
        return Dataset(X, y, text, text)
    entry = registry.ENTRIES[text]
    path, stand_in = registry.locate(text)
    found = _file(str(path), text, n_features if stand_in else entry.d, False, tell)
    found.stand_in = stand_in
    if not stand_in and found.shape[0] != entry.n:
        raise DataError(
            f"{path} has {found.shape[0]} samples, and {text} has {entry.n}: it is cut short, or "
            "another file. Get it again."
        )
    return found


def no_table(wanted: Table | Wanted, text: str) -> None:
    """Refuse columns by name for what has none."""
    if isinstance(wanted, Wanted) and wanted != Wanted():
        raise DataError(
            f"{text} has no columns with names: target, drop and categorical are for CSV and "
            "Parquet files."
        )


def batches(
    data: str | Path,
    n_features: int,
    zero_based: bool,
    memory_limit: float | str | None = None,
    like: Table | None = None,
) -> Iterator[tuple[Any, Array | None]]:
    r"""X and y of a data set in pieces, so that a file of any size, or a pipe, can be read through.

    y is None if there are no labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from apcg import datasets
    >>> file = Path(tempfile.mkdtemp()) / "small.libsvm"
    >>> _ = file.write_text("1 1:2\n-1 3:1\n")
    >>> [X.shape for X, y in datasets.batches(file, n_features=3, zero_based=False)]
    [(2, 3)]
    """
    text = str(data)
    if is_folder(text):
        opened = OnDisk(text, memory_limit)
        for some, part in opened.X.chunks(_BATCH):
            yield part, None if opened.y is None else opened.y[some]
        return
    if not is_input(text):
        found = load(data)
        yield found.X, found.y
        return
    shown = "standard input" if text == "-" else text
    with libsvm.opened(text) as raw:
        if libsvm.is_zip_file(raw):
            yield _npz(raw, shown)
        elif like is not None or tables.is_table(text):
            yield from _table_batches(text, like)
        else:
            pipe = not Path(text).is_file()
            yield from libsvm.batches(raw, shown, n_features, zero_based, at_once=pipe)


def _table_batches(text: str, like: Table | None) -> Iterator[tuple[Any, Array | None]]:
    if like is None:
        raise DataError(
            f"{text} is a table, and the model was trained with features that have no names."
        )
    yield from tables.rows(tables.Source(text), like)


def is_input(text: str) -> bool:
    """Whether it is standard input, a file or a pipe, and not a name."""
    try:
        return text == "-" or (Path(text).exists() and not Path(text).is_dir())
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _unknown(text: str) -> str:
    if len(text) > 1000 or not text.isprintable():
        return f"{text[:40]!r}... is neither a file nor the name of a data set."
    path = Path(text)
    if path.is_dir():
        return f"{text} is a folder; give a file in it."
    if path.parent != Path() or path.suffix in _SUFFIXES:
        return f"there is no file {text}."
    near = get_close_matches(text, names(), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{text!r} is neither a file nor the name of a data set.{hint} Names: {', '.join(names())}."
    )


def _file(
    source: str,
    name: str,
    n_features: int | None,
    zero_based: bool | None,
    tell: Callable[[int], object] | None = None,
) -> Dataset:
    shown, path = "standard input" if source == "-" else source, Path(source)
    with libsvm.opened(source, tell) as raw:
        if libsvm.is_zip_file(raw):
            X, y = _npz(raw, shown)
            if not isinstance(X, np.ndarray):
                check_width(X, n_features, shown)
            return Dataset(X, y, name, shown)
        keep = path.is_file() and (name != source or path.stat().st_size >= WORTH_KEEPING)
        rows = _cached(path, raw) if keep else libsvm.read(raw, shown)
    X = libsvm.matrix(rows, n_features, zero_based, shown)
    check_width(X, n_features, shown)
    counted = rows.zero_based if zero_based is None else zero_based
    return Dataset(X, rows.y, name, shown, zero_based=counted)


def check_width(X: sp.csr_array | sp.csr_matrix, n_features: int | None, shown: str) -> None:
    """Refuse a matrix whose width one stray index has set: every vector of that length is memory.

    Whoever gives the number of features means it.
    """
    n, d = X.shape
    if n_features is not None or d <= WIDE * X.nnz + WIDE_IN_ANY_CASE:
        return
    where = ""
    if X.nnz:
        row = int(np.searchsorted(X.indptr, int(X.indices.argmax()), side="right"))
        where = f"; the largest index is in sample {row} of {n}"
    raise DataError(
        f"{shown} has {d:,} features and {X.nnz:,} stored numbers{where}. If that is meant, say "
        "how many features there are (--features, or n_features)."
    )


def _cached(path: Path, raw: io.BufferedReader) -> libsvm.Parsed:
    """The rows of a file, from the cache if they are there, else put there."""
    found = cache.load(path, _parsed)
    if found is None:
        rows = libsvm.read(raw, str(path))
        arrays = {key: getattr(rows, key) for key in cache.ARRAYS}
        if rows.data.size:  # what is empty cannot be mapped
            cache.store(path, arrays, {"zero_based": rows.zero_based})
        return rows
    return found


def _parsed(arrays: dict[str, Array], facts: object) -> libsvm.Parsed:
    """The rows that an entry of the cache has, or an error: it is a file like any other."""
    data, y = arrays["data"], arrays["y"]
    X = _csr({**arrays, "shape": np.array([y.size, np.iinfo(np.int32).max])})
    if X.dtype.kind != "f" or y.dtype.kind not in "fU" or y.ndim != 1 or data.ndim != 1:
        raise ValueError("its arrays are not of the right type")
    zero_based = facts.get("zero_based") if isinstance(facts, dict) else None
    if not isinstance(zero_based, bool):
        raise ValueError("its header does not say how features are counted")
    return libsvm.Parsed(**arrays, zero_based=zero_based)


def _npz(raw: io.BufferedReader, shown: str) -> tuple[Stored, Array | None]:
    """X and y (None if there is none) of an .npz file; nothing in it is unpickled."""
    names, parts = list[str](), dict[str, Array]()
    wanted = ("X", "y", "data", "indices", "indptr", "shape")
    try:
        with Archive(raw if raw.seekable() else io.BytesIO(raw.read())) as archive:
            names = archive.names
            parts = {key: archive.read(key) for key in wanted if key in names}
        X: Stored = parts["X"] if "X" in parts else _csr(parts)
    except KeyError:
        raise DataError(
            f"{shown} has the arrays {', '.join(names) or 'none'}; expected X and y, or the data, "
            "indices, indptr and shape of a CSR matrix, and y."
        ) from None
    except BROKEN as error:
        raise DataError(f"{shown} is not a sound .npz file of plain arrays: {error}.") from None
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"X of {shown} has shape {X.shape} and type {X.dtype}; expected a matrix of numbers."
        )
    if not np.isfinite(X if isinstance(X, np.ndarray) else X.data).all():
        raise DataError(f"X of {shown} has entries that are not finite; remove or impute them.")
    y = parts.get("y")
    if y is not None and y.shape != X.shape[:1]:
        raise DataError(f"{shown} has X of shape {X.shape} and y of shape {y.shape}.")
    if y is not None and y.dtype.kind not in "fiubU":
        raise DataError(
            f"y of {shown} has type {y.dtype}; expected numbers or words (y.astype(str))."
        )
    return X, y


def _csr(parts: dict[str, Array]) -> sp.csr_array:
    """The CSR array of four arrays, which may be anything, or a ValueError."""
    data, indices, indptr, shape = (parts[key] for key in ("data", "indices", "indptr", "shape"))
    for key in ("indices", "indptr", "shape"):
        if parts[key].ndim != 1 or parts[key].dtype.kind not in "iu":
            raise ValueError(f"{key} is no vector of integers")
    if shape.size != 2 or shape.min() < 0:
        raise ValueError(f"its shape is {tuple(shape.tolist())}")
    X = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    try:
        check_sparse(X, "X")
    except ValueError:
        raise ValueError(f"its index arrays point outside its shape {X.shape}") from None
    return X
