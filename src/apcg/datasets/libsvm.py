"""LIBSVM text: a line `label index:value index:value ...` for each sample, plain or compressed.

It is parsed by scikit-learn, a piece of whole lines at a time, so that the text is never in memory
as a whole, standard input can be read as it comes, and an error names its line.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._base.archive import FREE, RATIO, is_zip
from .._base.types import Array
from .errors import DataError

#: Bytes of text that are parsed at a time.
PIECE = 1 << 24
#: The same, where the rows are handed on piece by piece.
BATCH = 1 << 20
#: The longest line that is read, in bytes.
LINE = 1 << 28
_DAMAGED = (EOFError, ValueError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, OSError)


class Stream(Protocol):
    """Bytes to be read, as a file or a decompressor gives them."""

    def read(self, size: int, /) -> bytes:
        """So many, or what is left."""

    def read1(self, size: int, /) -> bytes:
        """At most so many, as soon as there are any."""


@dataclass
class Parsed:
    """Rows in CSR form, indices from 0, and their labels: numbers or words."""

    data: Array
    indices: Array
    indptr: Array
    y: Array
    zero_based: bool = True  # whether the file counted from 0 (or cannot be known not to)


@contextlib.contextmanager
def opened(
    source: Path | str, tell: Callable[[int], object] | None = None
) -> Iterator[io.BufferedReader]:
    """The bytes of a file or a pipe, or of standard input ("-"), which can be peeked into.

    `tell` is called with the number of bytes that were read just now.
    """
    if source == "-":
        stream = getattr(sys.stdin, "buffer", None)
        if not isinstance(stream, io.BufferedReader):
            raise DataError("standard input is not a stream of bytes; give a file.")
        yield stream
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise DataError(f"{source} cannot be read: {error.strerror or error}.") from None
    with file:
        yield file if tell is None else io.BufferedReader(CountedFile(file, tell), 1 << 16)


def is_zip_file(raw: io.BufferedReader) -> bool:
    """Whether it is an .npz file and no text."""
    return is_zip(raw.peek(4))


class Counted(io.RawIOBase):
    """The bytes of a file, and how many of them have been read."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw, self.count = raw, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        got = self._raw.readinto1(buffer)
        self.count += got
        return got


class CountedFile(io.RawIOBase):
    """The bytes of a file; somebody is told how many are read, as they are."""

    def __init__(self, raw: io.BufferedReader, tell: Callable[[int], object]) -> None:
        self._raw, self._tell = raw, tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readinto(self, buffer: Any, /) -> int:
        got = self._raw.readinto1(buffer)
        self._tell(got)
        return got


def decompressed(raw: io.BufferedReader) -> tuple[Stream, Counted | None]:
    """A stream on top of `raw`, as its first bytes say; if it is compressed, with a count."""
    head, below = raw.peek(6)[:6], Counted(raw)
    if head.startswith(b"BZh"):
        return bz2.open(io.BufferedReader(below), "rb"), below
    if head.startswith(b"\x1f\x8b"):
        return gzip.open(io.BufferedReader(below), "rb"), below
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.open(io.BufferedReader(below), "rb"), below
    return raw, None


def pieces(
    stream: Stream, name: str, *, size: int = PIECE, at_once: bool = False
) -> Iterator[tuple[int, bytes]]:
    """(number of the first line, whole lines). `at_once`: as soon as there are any."""
    read = stream.read1 if at_once else stream.read
    line, rest, waiting = 1, list[bytes](), 0
    while True:
        try:
            got = read(size)
        except _DAMAGED as error:
            raise DataError(
                f"{name} is damaged or cut short, after line {line - 1}: {error}. Get it again."
            ) from None
        if not got:
            break
        if b"\0" in got:
            at = line + got.count(b"\n", 0, got.index(b"\0"))
            raise DataError(f"{name}, line {at}: there is a NUL byte. It is not LIBSVM text.")
        end = got.rfind(b"\n") + 1
        if end:
            text = b"".join((*rest, got[:end]))
            yield line, text
            line += text.count(b"\n")
            rest, waiting = [], 0
        rest.append(got[end:])  # joined once: a long line would be copied for each piece
        waiting += len(got) - end
        if waiting > LINE:
            raise DataError(
                f"{name}, line {line} has more than {LINE:,} bytes. It is not LIBSVM text."
            )
    if waiting:
        yield line, b"".join(rest)


class Parser:
    """Pieces of one file to rows; knows from its first line whether labels are words."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words: bool | None = None

    def __call__(self, line: int, text: bytes) -> Parsed | None:
        """The rows of a piece; None if it has none."""
        from sklearn.datasets import load_svmlight_file

        labels: list[str] = []
        first = next(filter(None, map(_tokens, text.split(b"\n"))), None)
        if first is None:
            return None
        if self.words is None:
            self.words = not _is_number(first[0])
        source = text
        try:
            if self.words:
                labels, source = _split_labels(text)
            X, y = load_svmlight_file(io.BytesIO(source), zero_based=True)
            sound = np.isfinite(X.data).all() and np.isfinite(y).all()
        except (ValueError, OverflowError):
            sound = False
        if not sound or any(_no_label(word) for word in labels):
            raise DataError(self._fault(line, text))
        return Parsed(X.data, X.indices, X.indptr, np.array(labels) if self.words else y)

    def line_of(self, row: int, line: int, text: bytes) -> int:
        """The number of the line that has this row of a piece."""
        filled = (k for k, t in enumerate(text.split(b"\n"), start=line) if _tokens(t))
        return next(k for r, k in enumerate(filled) if r == row)

    def _fault(self, line: int, text: bytes) -> str:
        for number, row in enumerate(text.split(b"\n"), start=line):
            tokens = _tokens(row)
            why = _row_fault(tokens, bool(self.words)) if tokens else ""
            if why:
                return f"{self.name}, line {number}: {why}"
        last = line + text.rstrip(b"\n").count(b"\n")
        return f"{self.name}: lines {line} to {last} are not LIBSVM text (label index:value ...)."


def read(raw: io.BufferedReader, name: str) -> Parsed:
    """All rows of an opened file."""
    stream, below = decompressed(raw)
    parser, parts, expanded = Parser(name), list[Parsed](), 0
    for line, text in pieces(stream, name):
        rows = parser(line, text)
        expanded += len(text)
        if rows is not None:
            parts.append(rows)
            expanded += sum(a.nbytes for a in (rows.data, rows.indices, rows.indptr, rows.y))
        if below is not None and expanded > RATIO * below.count + FREE:
            raise DataError(
                f"{name}: its first {below.count:,} bytes expand to more than {expanded:,}. If "
                "that is meant, decompress it first."
            )
    if not parts:
        raise DataError(f"{name} has no samples: expected lines such as `1 3:0.5 17:1`.")
    return join(parts)


def batches(
    raw: io.BufferedReader, name: str, n_features: int, zero_based: bool, *, at_once: bool
) -> Iterator[tuple[sp.csr_array, Array]]:
    """Rows as CSR arrays, and labels, a piece at a time, for whoever knows the features."""
    parser = Parser(name)
    for line, text in pieces(decompressed(raw)[0], name, size=BATCH, at_once=at_once):
        rows = parser(line, text)
        if rows is None:
            continue
        indices = rows.indices if zero_based else rows.indices - 1
        wrong = np.flatnonzero((indices < 0) | (indices >= n_features))
        if wrong.size:
            row = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
            first, last = (0, n_features - 1) if zero_based else (1, n_features)
            raise DataError(
                f"{name}, line {parser.line_of(row, line, text)}: feature "
                f"{rows.indices[wrong[0]]} is not one of the model's, which has {n_features} "
                f"features, {first} to {last}. Is it the right file?"
            )
        shape = rows.y.size, n_features
        yield sp.csr_array((rows.data, indices, rows.indptr), shape=shape), rows.y


def join(parts: list[Parsed]) -> Parsed:
    """One after the other, counted from 0, with the smallest index type that will do."""
    stored = sum(part.data.size for part in parts)
    indices = [part.indices for part in parts if part.indices.size]
    largest = max((int(i.max()) for i in indices), default=0)
    zero_based = min((int(i.min()) for i in indices), default=1) == 0
    index = np.int32 if max(stored, largest) < 2**31 else np.int64
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    joined = np.concatenate([part.indices.astype(index) for part in parts])
    if not zero_based:
        joined -= 1
    return Parsed(
        np.concatenate([part.data for part in parts]),
        joined,
        np.concatenate([[0], np.cumsum(lengths)]).astype(index),
        np.concatenate([part.y for part in parts]),
        zero_based,
    )


def matrix(
    rows: Parsed, n_features: int | None, zero_based: bool | None, name: str
) -> sp.csr_array:
    """The rows as a CSR array, where the caller may know the features and how they are counted."""
    if rows.zero_based and zero_based is False and rows.indices.size:
        raise DataError(
            f"{name} counts features from 0, and from 1 was expected (as in the training data)."
        )
    shifted = zero_based and not rows.zero_based
    indices = rows.indices + 1 if shifted else rows.indices
    found = int(indices.max()) + 1 if indices.size else 1
    if n_features is not None and found > n_features:
        first = 0 if zero_based or rows.zero_based else 1
        raise DataError(
            f"{name} has a feature {found - 1 + first}, and {n_features} features, numbered from "
            f"{first}, were expected. Is it the right file?"
        )
    shape = (rows.indptr.size - 1, n_features or found)
    return sp.csr_array((rows.data, indices, rows.indptr), shape=shape)


def _tokens(row: bytes) -> list[bytes]:
    return row.split(b"#", 1)[0].split()


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _no_label(word: str) -> bool:
    return ":" in word or "," in word or not _is_text(word)


def _is_text(word: str) -> bool:
    """Whether it was UTF-8 without control characters: other files are taken for words else."""
    return word.isprintable() and "\ufffd" not in word


def _split_labels(text: bytes) -> tuple[list[str], bytes]:
    """The labels of a piece, and the piece with zeros in their place."""
    labels, rows = [], []
    for row in text.split(b"\n"):
        tokens = _tokens(row)
        if tokens:
            labels.append(tokens[0].decode("utf-8", "replace"))
            tokens[0] = b"0"
        rows.append(b" ".join(tokens))
    return labels, b"\n".join(rows)


#: What to do with a file that is not LIBSVM text.
_TABLE = (
    "If this is CSV, say which column has the labels: --target NAME, or target= in Python. Many "
    "labels a sample are not supported."
)


def _row_fault(tokens: list[bytes], words: bool) -> str:
    """What is wrong with a line, or ""."""
    label, *pairs = (token.decode("utf-8", "replace") for token in tokens)
    whole, label = label, label if len(label) <= 40 else f"{label[:40]}..."
    if ":" in label:
        return f"it begins with {label!r} and not with a label; put one first, 0 if unknown."
    if not _is_text(label):
        return f"it begins with {label[:40]!r}, which is no text."
    if "," in label:
        return f"{label!r} is not one label. {_TABLE}"
    if not words and not (_is_number(tokens[0]) and math.isfinite(float(whole))):
        return f"the label {label!r} is not a finite number, as the first label is."
    last = -1
    for place, pair in enumerate(pairs):
        index, colon, value = pair.partition(":")
        if index == "qid" and colon:
            if place == 0:
                continue
            return f"{pair!r} must come right after the label."
        if not colon:
            return f"{pair!r} is not index:value. {_TABLE}"
        if not index.isdecimal() or not _is_number(value.encode()):
            return f"{pair!r} is not index:value."
        if not math.isfinite(float(value)):
            return f"the value of {pair!r} is not finite; remove or impute it."
        if not last < int(index) < 2**31:
            if int(index) > last:
                return f"feature {index} is too large."
            return (
                f"feature {index} comes after {last}. Sort the features of each line; the page "
                "`Data` of the documentation has a command for it."
            )
        last = int(index)
    return ""
