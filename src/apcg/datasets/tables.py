"""Tables: CSV and Parquet files to X and y.

A column of numbers is a column of X. A column of words is one column of X for each of its words, 1
where the row has that word and 0 elsewhere; a missing word is a word of its own. Files are read in
pieces, so that they may be of any size: pandas reads CSV, pyarrow reads Parquet.
"""

from __future__ import annotations

import io
import lzma
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._base.types import Array, Stored
from . import libsvm
from .errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: What the names of files end with.
SUFFIXES = tuple(a + b for a in (".csv", ".tsv") for b in ("", ".gz", ".bz2", ".xz"))
PARQUET = (".parquet", ".pq")
#: Rows that are read at a time.
ROWS = 20_000
#: So many different words, in more than half of the rows, are names of rows and no categories.
NAMES = 100
#: Numbers for each word in a column that is taken to have numbers, and a cell or two that are none.
MIXED = 10
_EXTRA = "pip install 'apcg[tables]'"


@dataclass(frozen=True)
class Column:
    """A column of the table: numbers, or the words that it may have, in order."""

    name: str
    words: tuple[str, ...] | None = None

    @property
    def features(self) -> list[str]:
        """The columns of X that it becomes."""
        return [self.name] if self.words is None else [f"{self.name}={w}" for w in self.words]


@dataclass(frozen=True)
class Table:
    r"""What X and y are made of: the same for training data, test data and predictions.

    Attributes
    ----------
    columns : tuple of Column
        The columns of the file that are features, each with its words if it has words.
    target : str or None
        The column with the labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from apcg import datasets
    >>> file = Path(tempfile.mkdtemp()) / "customers.csv"
    >>> _ = file.write_text("age,town,bought\n30,Ulm,yes\n41,Bonn,no\n52,Ulm,yes\n")
    >>> datasets.load(file, target="bought").table.features
    ['age', 'town=Bonn', 'town=Ulm']
    """

    columns: tuple[Column, ...]
    target: str | None = None
    target_words: bool = False

    @property
    def features(self) -> list[str]:
        """The names of the columns of X."""
        return [name for column in self.columns for name in column.features]

    @property
    def as_words(self) -> frozenset[str]:
        """The columns that are read as words, whatever they look like."""
        chosen = {column.name for column in self.columns if column.words is not None}
        return frozenset(chosen | ({self.target} if self.target and self.target_words else set()))

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "columns": [[column.name, column.words] for column in self.columns],
            "target": self.target,
            "target_words": self.target_words,
        }

    @classmethod
    def of(cls, record: Any) -> Table:
        """From a record, which may be anything, or a ValueError."""
        try:
            columns = tuple(
                Column(str(name), None if words is None else tuple(map(str, words)))
                for name, words in record["columns"]
            )
            target = record["target"]
            return cls(columns, None if target is None else str(target),
                       bool(record["target_words"]))  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise ValueError("its columns are not described as they should be") from None


@dataclass(frozen=True)
class Wanted:
    """What a user says of a table.

    target       the column with the labels; None: there are none
    drop         columns that are left out
    categorical  columns of numbers that are taken for words: codes, such as postcodes
    """

    target: str | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()


def is_table(source: str, wanted: Table | Wanted | None = None) -> bool:
    """Whether a file is a table: by its name, or because a target is asked for."""
    named = source.lower().endswith((*SUFFIXES, *PARQUET))
    return named or (wanted is not None and wanted.target is not None)


@dataclass
class Source:
    """A file that can be read from its beginning more than once; standard input is kept."""

    name: str
    tell: Callable[[int], object] | None = None
    _kept: bytes | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return "standard input" if self.name == "-" else self.name

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if self.name == "-":
            if self._kept is None:
                with libsvm.opened("-", self.tell) as raw:
                    self._kept = raw.read()
            yield io.BufferedReader(io.BytesIO(self._kept))
            return
        with libsvm.opened(self.name, self.tell) as raw:
            yield raw

    def frames(self, as_words: frozenset[str] = frozenset()) -> Iterator[DataFrame]:
        """The rows, some at a time; these columns as text."""
        with self._opened() as raw:
            if self.name.lower().endswith(PARQUET) or raw.peek(4)[:4] == b"PAR1":
                yield from _parquet(self, raw)
            else:
                yield from _csv(self, raw, as_words)


def _csv(source: Source, raw: Any, as_words: frozenset[str]) -> Iterator[DataFrame]:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(f"{source.shown} is CSV, which pandas reads: {_EXTRA}") from None
    try:
        stream: Any = libsvm.decompressed(raw)[0]
        head = stream.peek(1 << 16).split(b"\n")[0]
        separator = max((b",", b"\t", b";", b"|"), key=head.count).decode()
        # without index_col pandas takes the first fields of long rows for names of rows
        with pd.read_csv(
            stream, sep=separator, chunksize=ROWS, low_memory=False, index_col=False,
            dtype=dict.fromkeys(as_words, str),
        ) as pieces:  # fmt: skip
            while (frame := _next(pieces)) is not None:
                yield frame
    except pd.errors.ParserWarning:
        raise DataError(
            f"{source.shown} has more fields in its rows than names in its first line; give each "
            "field a name."
        ) from None
    except (ValueError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{source.shown} is no sound CSV table: {said}.") from None


def _next(pieces: Any) -> Any:
    """The next rows of CSV, or None. What pandas would leave out is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", sys.modules["pandas"].errors.ParserWarning)
        return next(pieces, None)


def _parquet(source: Source, raw: Any) -> Iterator[DataFrame]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{source.shown} is Parquet, which pyarrow reads: {_EXTRA}") from None
    try:
        if not raw.seekable():
            raw = io.BytesIO(raw.read())
        for batch in pyarrow.parquet.ParquetFile(raw).iter_batches(ROWS):
            yield batch.to_pandas()
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"{source.shown} is no sound Parquet table: {said}.") from None


# ---- what is in the columns ---------------------------------------------------------------------


def describe(source: Source, wanted: Wanted, kept: list[DataFrame] | None = None) -> Table:
    """The table of a file: which columns have numbers, which have words, and which words.

    `kept` gets the pieces of the file, for a caller who wants to read it once only.
    """
    as_words = frozenset(wanted.categorical)
    while True:  # again if a column turns out to have words after numbers
        found = _Scan(source, wanted, as_words)
        if kept is not None:
            kept.clear()
        for frame in source.frames(as_words):
            found.add(frame)
            if kept is not None:
                kept.append(frame)
        if found.mixed <= as_words:
            return found.table()
        as_words |= found.mixed


class _Scan:
    """Looks through the pieces of a file."""

    def __init__(self, source: Source, wanted: Wanted, as_words: frozenset[str]) -> None:
        self.source, self.wanted, self.as_words, self.n = source, wanted, as_words, 0
        self.words: dict[str, set[str]] = {}
        self.numbers: set[str] = set()
        self.order: list[str] = []

    def add(self, frame: DataFrame) -> None:
        """Some rows."""
        if not self.n:
            self.order = [str(name) for name in frame.columns]
            self._check_names()
        self.n += len(frame)
        for name, values in zip(self.order, (frame[c] for c in frame.columns), strict=True):
            if name in self.wanted.drop:
                continue
            truth = name == self.wanted.target and values.dtype == bool  # True and False stay so
            kind = _kind(values, name, self.source.shown, truth or name in self.as_words)
            if kind == "words":
                some = self.words.setdefault(name, set())
                some.update(_as_text(values).unique().tolist())
            elif kind == "numbers":
                self.numbers.add(name)

    def _check_names(self) -> None:
        w = self.wanted
        for name in (*([] if w.target is None else [w.target]), *w.drop, *w.categorical):
            if name not in self.order:
                shown = ", ".join(self.order[:20]) + ", ..." * (len(self.order) > 20)
                raise DataError(
                    f"{self.source.shown} has no column {name!r}. Its columns, by its first line, "
                    f"are {shown}."
                )

    @property
    def mixed(self) -> frozenset[str]:
        """Columns with words in some rows and numbers in others."""
        return frozenset(self.numbers & set(self.words))

    def table(self) -> Table:
        """What it came to."""
        if not self.n:
            raise DataError(f"{self.source.shown} has no rows.")
        target, columns = self.wanted.target, []
        for name in self.order:
            if name in self.wanted.drop or name == target:
                continue
            if name not in self.words and name not in self.numbers:
                raise DataError(
                    f"the column {name!r} of {self.source.shown} is empty; leave it out "
                    f"(--drop {name!r})."
                )
            if name in self.words and len(self.words[name]) > max(NAMES, self.n / 2):
                warnings.warn(
                    f"the column {name!r} has {len(self.words[name]):,} different words in "
                    f"{self.n:,} rows, a feature each; if they are names, leave it out "
                    f"(--drop {name!r}).",
                    stacklevel=2,
                )
            self._warn_of_numbers(name)
            words = tuple(sorted(self.words[name])) if name in self.words else None
            columns.append(Column(name, words))
        if not columns:
            raise DataError(f"{self.source.shown} has no columns of features.")
        return Table(tuple(columns), target, target in self.words)

    def _warn_of_numbers(self, name: str) -> None:
        """One cell that is no number makes a column of words: seldom what is meant."""
        words = sorted(self.words.get(name, set()) - {""})
        numbers = sys.modules["pandas"].to_numeric(np.array(words, dtype=object), errors="coerce")
        others = [word for word, number in zip(words, numbers, strict=True) if number != number]
        if name in self.wanted.categorical or not 0 < MIXED * len(others) <= len(words):
            return
        warnings.warn(
            f"the column {name!r} has {len(words) - len(others):,} different numbers and also "
            f"{others[0]!r}: all are taken as words, a feature each. Correct the file, or say that "
            f"it is a column of words (--categorical {name!r}).", stacklevel=3,
        )  # fmt: skip


def _kind(values: Series[Any], name: str, shown: str, as_words: bool) -> str:
    """Whether a column has "numbers" or "words"; "" if all of it is missing."""
    from pandas.api import types

    if as_words:
        return "words"
    if values.isna().all():
        return ""
    if types.is_numeric_dtype(values.dtype):
        return "numbers"
    if isinstance(values.dtype, _categorical()) or types.is_string_dtype(values.dtype):
        return "words"
    if types.is_object_dtype(values.dtype) and values.dropna().map(type).isin((str, bool)).all():
        return "words"
    raise DataError(
        f"the column {name!r} of {shown} has type {values.dtype}, and numbers or words are "
        f"expected; make it one of these, or leave it out (--drop {name!r})."
    )


def _categorical() -> type:
    import pandas as pd

    return pd.CategoricalDtype


def _as_text(values: Series[Any]) -> Series[Any]:
    """Words; whole numbers without a point, what is missing as the empty word."""
    from pandas.api import types

    if types.is_float_dtype(values.dtype):
        values = values.map(lambda v: str(int(v)) if v.is_integer() else repr(v),
                            na_action="ignore")  # fmt: skip
    text: Series[Any] = values.astype(object).where(values.notna(), "").astype(str)
    return text


# ---- rows ---------------------------------------------------------------------------------------


def rows(
    source: Source, table: Table, frames: Iterable[DataFrame] | None = None
) -> Iterator[tuple[Stored, Array | None]]:
    """X and y of some rows at a time; y is None if the file does not have the target."""
    first, unknown = 1, 0
    for frame in source.frames(table.as_words) if frames is None else frames:
        frame.columns = [str(name) for name in frame.columns]
        X, new = _encoded(frame, table, source.shown, first)
        unknown += new
        y = None
        if table.target is not None and table.target in frame.columns:
            y = _labels(frame[table.target], table, source.shown, first)
        yield X, y
        first += len(frame)
    if unknown:
        warnings.warn(
            f"{source.shown} has {unknown:,} words that the training data has not; they count as "
            "none of the known ones.",
            stacklevel=2,
        )


def _encoded(frame: DataFrame, table: Table, shown: str, first: int) -> tuple[Stored, int]:
    """X, and how many words are not known."""
    import pandas as pd

    missing = [c.name for c in table.columns if c.name not in frame.columns]
    if missing:
        raise DataError(f"{shown} has no column {missing[0]!r}, which the model was trained with.")
    blocks: list[Any] = []
    unknown = 0
    for column in table.columns:
        values = frame[column.name]
        if column.words is None:
            blocks.append(_numbers(values, column.name, shown, first)[:, None])
            continue
        codes = pd.Index(column.words).get_indexer(pd.Index(_as_text(values)))
        known = codes >= 0
        unknown += int(np.count_nonzero(~known))
        parts = np.ones(int(known.sum())), codes[known], np.append(0, np.cumsum(known))
        blocks.append(sp.csr_array(parts, shape=(len(frame), len(column.words))))
    if all(isinstance(block, np.ndarray) for block in blocks):
        return np.hstack(blocks), 0
    X = sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
    X.sort_indices()
    return X, unknown


def _numbers(values: Series[Any], name: str, shown: str, first: int) -> Array:
    """The numbers of a column, or an error with the row that has none."""
    import pandas as pd

    made = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(made))
    if wrong.size:
        got = values.iloc[wrong[0]]
        said = "is missing" if pd.isna(got) else f"is {got!s}"
        raise DataError(
            f"{shown}, row {first + wrong[0]}: {name!r} {said}, and a finite number is expected; "
            f"impute it, remove the row, or leave the column out (--drop {name!r})."
        )
    return made


def _labels(values: Series[Any], table: Table, shown: str, first: int) -> Array:
    if not table.target_words:
        return _numbers(values, str(table.target), shown, first)
    missing = np.flatnonzero(values.isna().to_numpy())
    if missing.size:
        raise DataError(
            f"{shown}, row {first + missing[0]}: the target {table.target!r} is missing; remove "
            "the row."
        )
    return _as_text(values).to_numpy().astype(str)


def load(source: Source, like: Table | Wanted) -> tuple[Stored, Array | None, Table]:
    """X, y and the table of a file that fits into memory."""
    frames: list[DataFrame] | None = None
    if isinstance(like, Wanted):
        frames = []
        like = describe(source, like, frames)
    parts = list(rows(source, like, frames))
    if not parts:
        raise DataError(f"{source.shown} has no rows.")
    X: Any = [x for x, _ in parts]
    X = np.vstack(X) if isinstance(X[0], np.ndarray) else sp.csr_array(sp.vstack(X, format="csr"))
    labels = [y for _, y in parts if y is not None]
    return X, np.concatenate(labels) if labels else None, like
