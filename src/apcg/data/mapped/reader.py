"""A folder of data, opened: all of X in memory if that is allowed, else part by part.

Parts are read into buffers, not mapped: pages of a mapping stay with the process that touched them,
and memory could not be bounded.
"""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base import memory
from ..._base.validation import Vector
from ..._kernels.data import matrix as kernel
from ..check import by_row
from ..chunked import Chunked
from ..dense import Dense
from ..matrix import Matrix, Stored
from ..sparse import Sparse
from .format import FRONT, FolderError, Header, damaged

#: Arrays of n and of d numbers that a run has at a time, beside X. (Of n numbers 12 were measured.)
BY_ROW, BY_COLUMN = 14, 12
#: Of the memory that is left for X, the share that one buffer takes: reading needs some as well.
_SHARE = 0.5
#: The least buffer, in bytes.
_LEAST = 8 << 20


class OnDisk:
    """Data that `apcg convert` has written, for `ERM`, `fit` and `predict`.

    Parameters
    ----------
    path : str or path
        The folder.
    memory_limit : int or str, default=None
        Bytes that this process may have resident while it works with the data, as a number or as
        text ("300MB", "2GB"). If X fits, it is mapped into memory as a whole, and every method can
        be used; else it is read part by part. None is half of what is free.

    Attributes
    ----------
    X : Matrix
        The samples, a `Matrix`.
    y : array or None
        The labels, numbers or words; None if there are none.
    shape : tuple of int
        Samples, features.
    header : dict
        What the folder says of itself.

    Notes
    -----
    Checksums are compared when a part is read for the first time. A folder that is not whole, or is
    damaged, raises `FolderError`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from apcg import ERM, datasets, solve
    >>> folder = Path(tempfile.mkdtemp()) / "digits.apcg"
    >>> header = datasets.convert("digits", folder)
    >>> data = datasets.OnDisk(folder)
    >>> data.shape, solve(ERM(data, alpha=1e-2)).converged
    ((1797, 64), True)
    """

    def __init__(
        self, path: str | os.PathLike[str], memory_limit: float | str | None = None
    ) -> None:
        self.path = Path(path)
        self.header = Header.read(self.path)
        self.shape = self.header.shape
        self.memory_limit = limit_of(memory_limit)
        for name, file in self.header.files.items():
            self._check_size(name, file.bytes)

    def _check_size(self, name: str, expected: int) -> None:
        try:
            size = (self.path / name).stat().st_size
        except OSError as error:
            raise FolderError(damaged(self.path, f"{name}: {error.strerror}")) from None
        if size != expected:
            what = f"{name} has {size:,} bytes, and {expected:,} were written"
            raise FolderError(damaged(self.path, what))

    def __repr__(self) -> str:
        n, d = self.shape
        return f"OnDisk({str(self.path)!r}: {n} x {d}, {self.header.stored} stored)"

    @cached_property
    def y(self) -> NDArray[Any] | None:
        """The labels, numbers or words; None if there are none."""
        codes = self.codes
        words = self.header.words
        return codes if words is None or codes is None else np.array(words)[codes]

    @cached_property
    def codes(self) -> NDArray[Any] | None:
        """The labels that are numbers; of words their places in the header."""
        if "y.npy" not in self.header.files:
            return None
        codes = self.small("y.npy")
        words = self.header.words
        if words is not None and codes.size and not 0 <= codes.min() <= codes.max() < len(words):
            raise FolderError(damaged(self.path, "y.npy"))
        return codes

    def small(self, name: str) -> NDArray[Any]:
        """An array with a number for each row, all of it, as it was written."""
        file = self.header.files[name]
        out = np.empty(file.shape, np.dtype(file.dtype))
        with (self.path / name).open("rb") as opened:
            opened.seek(FRONT)
            opened.readinto(_raw(out))
        if zlib.crc32(_raw(out)) != file.crc32:
            raise FolderError(damaged(self.path, f"the checksum of {name}"))
        return out

    @property
    def bytes(self) -> int:
        """What X takes."""
        number = np.dtype(self.header.files["data.npy"].dtype).itemsize
        return self.header.stored * (number + 4 * self.header.sparse)

    @cached_property
    def room(self) -> float:
        """Bytes that are left for X, beside what there is and what a run needs."""
        n, d = self.shape
        need = 8.0 * (BY_ROW * n + BY_COLUMN * d)
        room = self.memory_limit - memory.resident() - need
        largest = max(part.stored for part in self.header.parts) * 12
        least = max(_LEAST, 3 * largest)
        if room < least:
            short = self.memory_limit - room + least
            raise FolderError(
                f"memory_limit = {self.memory_limit / 1e6:,.0f} MB is too little for {n:,} rows "
                f"and {d:,} columns: give {short / 1e6:,.0f} MB or more. ({need / 1e6:,.0f} MB are "
                "for vectors of as many numbers as there are rows and columns.)"
            )
        return room

    @cached_property
    def X(self) -> Matrix:
        """The samples."""
        parts = Mapped(self)
        return parts.whole() if self.bytes <= _SHARE * self.room else parts


def samples_of(X: Any, y: Any = None) -> tuple[Matrix, Any]:
    """X as a matrix, and y. X may be the path of a folder, or data on disk: it has a y as well."""
    if isinstance(X, str | os.PathLike):
        X = OnDisk(X)
    if isinstance(X, OnDisk):
        return X.X, X.y if y is None else y
    return by_row(X, "X"), y


class Files:
    """What is shared by a matrix and the same with a border: open files, and what is known."""

    def __init__(self, data: OnDisk) -> None:
        header = data.header
        self.path, self.parts, self.d = data.path, header.parts, header.shape[1]
        self.starts = np.cumsum([0, *(part.rows for part in header.parts)])
        self.begins = np.cumsum([0, *(part.stored for part in header.parts)])
        self.norms: Vector = data.small("norms.npy")
        self.indptr = self._check(data.small("indptr.npy")) if header.sparse else None
        self._seen: set[int] = set()
        self._open = {
            name: _opened(data.path / f"{name}.npy", self)
            for name in ("data", "indices")[: 1 + header.sparse]
        }

    def _check(self, indptr: NDArray[Any]) -> NDArray[Any]:
        in_place = np.array_equal(indptr[self.starts], self.begins)
        if not in_place or np.any(np.diff(indptr) < 0):
            raise FolderError(damaged(self.path, "indptr.npy"))
        return indptr

    def at(self, k: int) -> slice:
        """The rows of a part."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def read(self, k: int, numbers: NDArray[Any], indices: NDArray[Any] | None) -> None:
        """A part, to where it is wanted. The first time it is checked."""
        self._read("data", k, numbers)
        if indices is not None:
            self._read("indices", k, indices)
        if k in self._seen:
            return
        part = self.parts[k]
        found = zlib.crc32(_raw(numbers)), 0 if indices is None else zlib.crc32(_raw(indices))
        if found != (part.data_crc32, part.indices_crc32):
            rows = self.at(k)
            which = f"the checksum of rows {rows.start} to {rows.stop - 1}"
            raise FolderError(damaged(self.path, which))
        own = np.array([0, part.stored], np.int32)
        if indices is not None and not kernel.within(indices, own, self.d):
            raise FolderError(damaged(self.path, "columns outside of X"))
        self._seen.add(k)

    def _read(self, name: str, k: int, out: NDArray[Any]) -> None:
        raw, at = _raw(out), FRONT + int(self.begins[k]) * out.itemsize
        while len(raw):
            got = os.preadv(self._open[name], [raw], at)
            if not got:
                raise FolderError(damaged(self.path, f"{name}.npy is cut short"))
            raw, at = raw[got:], at + got


class Mapped(Chunked):
    """X of a folder, part by part."""

    def __init__(self, data: OnDisk, constant: float = 0.0, files: Files | None = None) -> None:
        header = data.header
        self.data, self.constant, self._d = data, constant, header.shape[1]
        self._files, self.sparse = files or Files(data), header.sparse
        self._sizes = tuple((part.rows, part.stored) for part in header.parts)
        self._starts = self._files.starts
        self._parts = tuple(partial(self.gather, (k,)) for k in range(len(self._sizes)))
        self.shape, self.nnz = (header.shape[0], self._d + (constant != 0)), header.stored
        self.room = _SHARE * data.room

    def __repr__(self) -> str:
        n, d = self.shape
        shown = f"Mapped({n} x {d}, {self.nnz} stored, in {len(self._parts)} parts"
        return f"{shown}, {str(self.data.path)!r})"

    # ---- reading --------------------------------------------------------------------------------

    def gather(self, which: Sequence[int]) -> Stored:
        """Some parts in memory, one below the other, read to where they stay."""
        files = self._files
        places = np.cumsum([0, *(self._sizes[k][1] for k in which)]).tolist()
        numbers = np.empty(places[-1], np.dtype(self.data.header.files["data.npy"].dtype))
        indices = np.empty(places[-1], np.int32) if self.sparse else None
        for k, begin, end in zip(which, places, places[1:], strict=False):
            own = None if indices is None else indices[begin:end]
            files.read(k, numbers[begin:end], own)
        norms = np.concatenate([files.norms[files.at(k)] for k in which])
        if indices is None:
            return Dense(numbers.reshape(-1, self._d), norms, self.constant)
        indptr = self._own_indptr(which, places)
        return Sparse(numbers, indices, indptr, self._d, norms, self.constant)

    def _own_indptr(self, which: Sequence[int], places: list[int]) -> NDArray[Any]:
        """indptr of some parts alone: int32 if that will do, as the indices are."""
        files, index = self._files, np.int32 if places[-1] < 2**31 else np.int64
        assert files.indptr is not None
        out, at = np.empty(1 + sum(self._sizes[k][0] for k in which), index), 0
        for k, place in zip(which, places, strict=False):
            own = files.indptr[files.at(k)]
            out[at : at + own.size] = own + (place - files.begins[k])
            at += own.size
        out[-1] = places[-1]
        return out

    def whole(self) -> Stored:
        """All of X in memory."""
        return self.gather(range(len(self._parts)))

    # ---- what the folder knows -------------------------------------------------------------------

    def squared_norms(self, weights: Vector | None = None) -> Vector:
        if weights is not None:
            return super().squared_norms(weights)
        norms = self._files.norms
        return norms + self.constant**2 if self.constant else norms

    @cached_property
    def lengths(self) -> Vector:
        indptr = self._files.indptr
        if indptr is None:
            return np.full(self.shape[0], float(self._d))
        return np.maximum(np.diff(indptr), 1.0)

    @cached_property
    def gram_madds(self) -> float:
        indptr = self._files.indptr
        if indptr is None:
            return 0.5 * self.shape[0] * self._d * (self._d + 1)
        each = np.diff(indptr).astype(float)
        return float(0.5 * (np.dot(each, each) + self.nnz))

    def largest(self) -> float:
        return self.data.header.largest

    def bordered(self, constant: float) -> Mapped:
        if self.constant or constant == 0 or not np.isfinite(constant):
            raise ValueError("one border, finite and not 0, is what the kernels know.")
        return Mapped(self.data, constant, self._files)


def _opened(path: Path, owner: object) -> int:
    """A descriptor that is closed when its owner is gone."""
    number = os.open(path, os.O_RDONLY)
    weakref.finalize(owner, os.close, number)
    return number


def _raw(numbers: NDArray[Any]) -> memoryview:
    return memoryview(numbers).cast("B")  # type: ignore[arg-type]


def limit_of(given: float | str | None) -> float:
    """A limit of memory in bytes: of a number, or text such as "300MB"; None: half of the rest."""
    if given is None:
        return memory.resident() + 0.5 * memory.available()
    units = {"GB": 1e9, "MB": 1e6, "KB": 1e3, "GIB": 2.0**30, "MIB": 2.0**20, "B": 1.0, "": 1.0}
    text = str(given).strip().upper()
    number = text.rstrip("BGIKM ")
    unit = text[len(number) :].strip()
    try:
        size = float(number) * units[unit]
    except (ValueError, KeyError):
        size = -1.0
    if not 0 < size < np.inf:
        raise ValueError(
            f'memory_limit must be a number of bytes, or text such as "300MB"; got {given!r}.'
        )
    return size
