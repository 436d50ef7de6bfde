"""Rows to a folder, some at a time. What is in memory does not grow with the data."""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._base.files import new_file, write_text
from ..check import by_row
from ..chunked import stack
from ..dense import Dense
from ..matrix import Stored
from ..sparse import Sparse
from .format import FRONT, HEADER, WRITING, File, FolderError, Header, Part, front

#: Bytes of a part. They are mixed at random for a sweep, so many small ones are better than few.
PART = 4 << 20
#: Words that labels may be, at most: more are names of rows.
MOST_WORDS = 100_000
#: Numbers of a file that are changed at a time.
_STRETCH = 1 << 20


class Writer:
    """Takes rows and their labels, and makes the folder `target` of them.

    with Writer(target) as out:
        out.add(X, y)      # as often as there are rows; indices of a sparse X count from 0
        out.finish(...)

    Everything is written beside the target, and renamed at the end: the target is whole, or as it
    was. What an interrupted conversion has left is removed.
    """

    def __init__(self, target: str | Path, dtype: Any = np.float64, part: int = PART) -> None:
        self._target, self._dtype, self._part = Path(target), np.dtype(dtype), part
        self._folder = self._target.with_name(self._target.name + WRITING)
        self._files: dict[str, IO[bytes]] = {}
        self._sums: dict[str, int] = {}
        self._parts: list[Part] = []
        self._waiting: list[Stored] = []
        self._words: dict[str, int] | None = None
        self._sparse: bool | None = None
        self.n = self.d = self.stored = 0
        self._largest = 0.0

    def __enter__(self) -> Writer:
        check_folder(self._target)
        shutil.rmtree(self._folder, ignore_errors=True)
        try:
            self._folder.mkdir(parents=True)
        except OSError as error:
            raise FolderError(f"{self._target} cannot be written: {error}.") from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file in self._files.values():
            file.close()
        if kind is not None or self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)

    # ---- rows -----------------------------------------------------------------------------------

    def add(self, X: Any, y: NDArray[Any] | None = None) -> None:
        """Some rows, a sparse or dense matrix of numbers, and their labels."""
        rows = by_row(X, f"X (rows {self.n} and on)")
        assert isinstance(rows, Stored)
        if self._sparse is None:
            self._sparse, self._d_dense = rows.sparse, rows.shape[1]
        if rows.sparse != self._sparse or not (rows.sparse or rows.shape[1] == self._d_dense):
            raise ValueError("all rows of a folder must be of one kind and length.")
        if self.n and (y is None) != ("y" not in self._files):
            raise ValueError("either all rows have labels, or none.")
        if y is not None:
            self._add_labels(np.asarray(y), rows.shape[0])
        self.n += rows.shape[0]
        self.d, self.stored = max(self.d, rows.shape[1]), self.stored + rows.nnz
        size = max(int(rows.nnz * (self._dtype.itemsize + 4) // self._part), 1)
        for _, some in rows.chunks(-(-rows.shape[0] // size)):
            self._waiting.append(some)
            if sum(each.nnz for each in self._waiting) * (self._dtype.itemsize + 4) >= self._part:
                self._flush()

    def _flush(self) -> None:
        """What waits, as a part."""
        if not self._waiting:
            return
        d = max(each.shape[1] for each in self._waiting)
        rows = stack([_widened(each, d) for each in self._waiting])
        self._waiting = []
        data, indices, indptr = rows._arrays
        with np.errstate(over="ignore"):
            numbers = data.astype(self._dtype.newbyteorder("<"), copy=False)
        if not np.isfinite(numbers).all():
            raise ValueError(f"X has numbers that are too large for {self._dtype}.")
        self._largest = max(self._largest, float(np.max(np.abs(numbers), initial=0.0)))
        sums = [self._append("data", numbers)]
        if rows.sparse:
            before = sum(part.stored for part in self._parts)
            sums.append(self._append("indices", indices.astype("<i4")))
            self._append("indptr", indptr[:-1].astype("<i8") + before)
        norms = np.asarray(rows.squared_norms(), dtype="<f8")
        self._append("norms", norms if data.dtype == self._dtype else _norms(rows, numbers))
        self._parts.append(Part(rows.shape[0], rows.nnz, *sums))

    def _add_labels(self, y: NDArray[Any], n: int) -> None:
        if y.shape != (n,):
            raise ValueError(f"y must have a label for each of {n} rows, got shape {y.shape}.")
        words = y.dtype.kind not in "fiub"
        if self.n == 0 and words:
            self._words = {}
        if words != (self._words is not None):
            raise ValueError(f"labels from row {self.n} on are of another kind than those before.")
        if self._words is None:
            if not np.isfinite(y.astype(float)).all():
                raise ValueError(f"labels from row {self.n} on are not all finite.")
            self._append("y", y.astype("<f8"))
            return
        for word in np.unique(y).tolist():
            self._words.setdefault(str(word), len(self._words))
        if len(self._words) > MOST_WORDS:
            raise ValueError(f"labels are more than {MOST_WORDS:,} words: names are no classes.")
        self._append("y", np.array([self._words[str(word)] for word in y], dtype="<i4"))

    def _append(self, name: str, numbers: NDArray[Any]) -> int:
        """Add numbers to a file; the checksum of these."""
        if name not in self._files:
            self._files[name] = file = new_file(self._folder / f"{name}.npy")
            file.write(bytes(FRONT))
        raw = _raw(numbers)
        self._files[name].write(raw)
        self._sums[name] = zlib.crc32(raw, self._sums.get(name, 0))
        return zlib.crc32(raw)

    def shift_columns(self, by: int) -> None:
        """Count columns anew: add `by` to every index that there is."""
        self._flush()
        self.d += by
        begins = np.cumsum([0, *(part.stored for part in self._parts)]).tolist()
        for k, (part, begin) in enumerate(zip(self._parts, begins, strict=False)):
            raw = self._stretch("indices", begin, part.stored, "<i4") + np.int32(by)
            self._rewrite("indices", begin, raw)
            sums = part.data_crc32, zlib.crc32(_raw(raw))
            self._parts[k] = Part(part.rows, part.stored, *sums)

    def _stretch(self, name: str, begin: int, size: int, dtype: str) -> NDArray[Any]:
        file, itemsize = self._files[name], np.dtype(dtype).itemsize
        file.seek(FRONT + begin * itemsize)
        return np.frombuffer(file.read(size * itemsize), dtype=dtype)

    def _rewrite(self, name: str, begin: int, numbers: NDArray[Any]) -> None:
        file = self._files[name]
        file.seek(FRONT + begin * numbers.itemsize)
        file.write(_raw(numbers))
        file.seek(0, os.SEEK_END)

    # ---- the end --------------------------------------------------------------------------------

    def finish(
        self,
        source: str = "",
        d: int | None = None,
        zero_based: bool | None = None,
        features: list[str] | None = None,
        table: dict[str, Any] | None = None,
    ) -> Header:
        """Write the header, and put the folder in its place."""
        self._flush()
        if not self.n:
            raise ValueError("there are no rows.")
        if d is not None and d < self.d:
            raise ValueError(f"X has {self.d} columns, and {d} were expected.")
        self.d = self.d if d is None else d
        words = self._sorted_words()
        if self._sparse:
            self._append("indptr", np.array([self.stored], dtype="<i8"))
            self._append("indices", np.empty(0, dtype="<i4"))
        header = Header(
            bool(self._sparse), (self.n, self.d), self.stored, self._largest, zero_based, words,
            features, source, self._described(), self._parts, table,
        )  # fmt: skip
        write_text(self._folder / HEADER, header.text())
        with contextlib.suppress(OSError):
            os.sync()
        self._take_place()
        return header

    def _sorted_words(self) -> list[str] | None:
        """The words in order, with the places in y to match."""
        if self._words is None:
            return None
        words = sorted(self._words)
        place = np.empty(len(words), dtype="<i4")
        for new, word in enumerate(words):
            place[self._words[word]] = new
        total = 0
        for begin in range(0, self.n, _STRETCH):
            codes = place[self._stretch("y", begin, min(_STRETCH, self.n - begin), "<i4")]
            self._rewrite("y", begin, codes)
            total = zlib.crc32(_raw(codes), total)
        self._sums["y"] = total
        return words

    def _described(self) -> dict[str, File]:
        n, stored = self.n, self.stored
        shapes = {
            "data": (stored,) if self._sparse else (n, self.d), "indices": (stored,),
            "indptr": (n + 1,), "norms": (n,), "y": (n,),
        }  # fmt: skip
        labels = "float64" if self._words is None else "int32"
        types = {"data": self._dtype.name, "indices": "int32", "indptr": "int64",
                 "norms": "float64", "y": labels}  # fmt: skip
        made = {}
        for name, file in self._files.items():
            by_part = name in ("data", "indices")
            made[f"{name}.npy"] = File(
                types[name], shapes[name], None if by_part else self._sums[name]
            )
            file.seek(0)
            file.write(front(types[name], shapes[name]))
            file.flush()
            os.fsync(file.fileno())
        return made

    def _take_place(self) -> None:
        for file in self._files.values():
            file.close()
        if self._target.exists():
            old = self._target.with_name(self._target.name + ".old")
            shutil.rmtree(old, ignore_errors=True)
            self._target.rename(old)
            self._folder.rename(self._target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self._folder.rename(self._target)


def check_folder(target: Path) -> None:
    """Refuse a target that is something else than a folder of data: it would be lost."""
    if target.exists() and not (target / HEADER).is_file():
        kind = "a folder of something else" if target.is_dir() else "a file"
        raise FolderError(f"{target} is not written: it is there, and is {kind}.")


def _widened(rows: Stored, d: int) -> Stored:
    """The same rows with d columns."""
    return Sparse(*rows._arrays, d) if rows.sparse and rows.shape[1] < d else rows


def _norms(rows: Stored, numbers: NDArray[Any]) -> NDArray[Any]:
    """The squared norms of the rows with their numbers rounded as they are written."""
    _, indices, indptr = rows._arrays
    if rows.sparse:
        return Sparse(numbers, indices, indptr, rows.shape[1]).squared_norms()
    return Dense(numbers.reshape(rows.shape)).squared_norms()


def _raw(numbers: NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(numbers)).cast("B")  # type: ignore[arg-type]
