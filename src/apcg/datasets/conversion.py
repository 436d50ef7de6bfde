"""Files of any size to a folder on disk that is read part by part (`data.mapped`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from ..data.mapped import FolderError, Header, Writer
from . import libsvm, tables
from .errors import DataError
from .tables import Wanted

#: Bytes of text that are parsed at a time.
_PIECE = 1 << 22


def convert(
    source: str | Path,
    target: str | Path,
    *,
    n_features: int | None = None,
    dtype: str = "float64",
    tell: Callable[[int], object] | None = None,
    target_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
) -> Header:
    """Write the data of a file to the folder `target`, and give back its header.

    Parameters
    ----------
    source : str or path
        LIBSVM text (plain, .gz, .bz2, .xz), which is read piece by piece whatever its size, or "-"
        for standard input; CSV or Parquet, which are read twice, piece by piece: once to find the
        words in their columns; or what `load` knows: an .npz file, the name of a data set.
    target : str or path
        The folder, "data.apcg" for example. One that is there is replaced when all is written. What
        an interrupted conversion has left is removed: a conversion starts clean.
    n_features : int, default=None
        The columns of X; None takes the largest index there is.
    dtype : {"float64", "float32"}, default="float64"
        "float64" or "float32", which takes two thirds of the room.
    tell : callable, default=None
        Called with the number of rows, as they are written.
    target_column, drop, categorical : str and lists of str
        For CSV and Parquet, as target, drop and categorical of `load`.

    Examples
    --------
    >>> from apcg.datasets import OnDisk, convert
    >>> import os, tempfile
    >>> target = os.path.join(tempfile.mkdtemp(), "flowers.apcg")
    >>> convert("breast_cancer", target).shape
    (569, 30)
    >>> OnDisk(target).X.shape
    (569, 30)
    """
    text = str(source)
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}.')
    if Path(text).exists() and Path(target).exists() and Path(text).samefile(target):
        raise FolderError(f"{target} is not written: it is what is read.")
    with Writer(target, dtype) as out:
        try:
            wanted = Wanted(target_column, tuple(drop), tuple(categorical))
            facts = _rows(text, out, n_features, tell or (lambda n: None), wanted)
            return out.finish(text, **facts)
        except ValueError as error:
            if isinstance(error, DataError | FolderError):
                raise
            raise DataError(f"{text}: {error}") from None


def _rows(
    source: str,
    out: Writer,
    n_features: int | None,
    tell: Callable[[int], object],
    wanted: Wanted,
) -> dict[str, Any]:
    """All rows of a source, to the writer; and what `finish` is told."""
    from . import is_input, load, no_table

    if is_input(source) and tables.is_table(source, wanted):
        return _table(tables.Source(source), out, tell, wanted)
    no_table(wanted, source)
    if is_input(source):
        with libsvm.opened(source) as raw:
            if not libsvm.is_zip_file(raw):
                return _text(raw, source, out, n_features, tell)
    found = load(source, n_features=n_features)
    step = 10_000
    for first in range(0, found.shape[0], step):
        some = slice(first, first + step)
        out.add(found.X[some], None if found.y is None else found.y[some])
        tell(out.n)
    return {"d": n_features or found.shape[1], "zero_based": found.zero_based}


def _table(
    source: tables.Source, out: Writer, tell: Callable[[int], object], wanted: Wanted
) -> dict[str, Any]:
    """CSV or Parquet: the words in the columns are found first."""
    table = tables.describe(source, wanted)
    for X, y in tables.rows(source, table):
        out.add(X, y)
        tell(out.n)
    return {"d": len(table.features), "features": table.features, "table": table.record()}


def _text(
    raw: Any, source: str, out: Writer, n_features: int | None, tell: Callable[[int], object]
) -> dict[str, Any]:
    """LIBSVM text. Whether it counts from 0 is known when a 0 comes, or at the end."""
    name = "standard input" if source == "-" else source
    parser, zero_based = libsvm.Parser(name), None
    for line, text in libsvm.pieces(libsvm.decompressed(raw)[0], name, size=_PIECE):
        rows = parser(line, text)
        if rows is None:
            continue
        least = int(rows.indices.min()) if rows.indices.size else 1
        if zero_based is None and rows.indices.size:
            zero_based = least == 0
        elif zero_based is False and least == 0:
            out.shift_columns(1)
            zero_based = True
        indices = rows.indices if zero_based else rows.indices - 1
        d = int(indices.max()) + 1 if indices.size else 1
        if n_features is not None and d > n_features:
            raise DataError(
                f"{name} has a feature {d - bool(zero_based)} in line {line} or after it, and "
                f"{n_features} features were expected."
            )
        out.add(sp.csr_array((rows.data, indices, rows.indptr), shape=(rows.y.size, d)), rows.y)
        tell(out.n)
    if not out.n:
        raise DataError(f"{name} has no samples: expected lines such as `1 3:0.5 17:1`.")
    check_width(out.d, out.stored, n_features, name)
    return {"d": n_features, "zero_based": bool(zero_based)}


def check_width(d: int, stored: int, n_features: int | None, name: str) -> None:
    """Refuse a width that one stray index has set."""
    from . import WIDE, WIDE_IN_ANY_CASE

    if n_features is None and d > WIDE * stored + WIDE_IN_ANY_CASE:
        raise DataError(
            f"{name} has {d:,} features and {stored:,} stored numbers. If that is meant, say how "
            "many features there are (--features, or n_features)."
        )
