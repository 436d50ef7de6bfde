"""Reading .npz files that anybody may have made: plain arrays, and never more memory than is due.

An .npz is a zip of .npy files. What a file says of its sizes is compared before anything is
expanded: a few megabytes of it can stand for gigabytes of zeros, and a header can claim any shape.
Nothing is ever unpickled.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from typing import IO

import numpy as np

from .types import Array

#: What a zip may be expanded to: so many times its size on disk, and so many bytes in any case.
RATIO, FREE = 200, 1 << 28
#: What reading a broken one raises.
BROKEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError, OSError,
          EOFError, RecursionError, RuntimeError, NotImplementedError, MemoryError,
          zipfile.BadZipFile, zlib.error)  # fmt: skip

_START = b"PK\x03\x04"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def is_zip(head: bytes) -> bool:
    """Whether these first bytes of a file begin a zip with something in it."""
    return head[:4] == _START


class Archive:
    """The arrays of an opened .npz, one at a time. Use it in a `with`; it closes the zip."""

    def __init__(self, file: IO[bytes], *, stored: bool = False) -> None:
        self._zip = zipfile.ZipFile(file)
        self._members = {m.filename.removesuffix(".npy"): m for m in self._zip.infolist()}
        size = file.seek(0, 2)
        if len(self._members) < len(self._zip.infolist()):
            raise ValueError("it has two arrays of one name")
        if stored and any(m.compress_type != zipfile.ZIP_STORED for m in self._members.values()):
            raise ValueError("it has compressed arrays, and `np.savez` makes none")
        total = sum(m.file_size for m in self._members.values())
        most = size if stored else RATIO * size + FREE
        if total > most:
            raise ValueError(
                f"its {size:,} bytes would expand to {total:,}; if that is meant, store it without "
                "compression (np.savez)"
            )

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def read(self, name: str, most: int | None = None) -> Array:
        """One array, of at most so many bytes if that is given."""
        member = self._members[name]
        if most is not None and member.file_size > most:
            raise ValueError(f"{name} has {member.file_size:,} bytes")
        with self._zip.open(member) as file:
            try:
                version = np.lib.format.read_magic(file)
                shape, fortran, dtype = _HEADERS[version](file)
            except (ValueError, KeyError):
                raise ValueError(f"{name} is no array") from None
            if dtype.hasobject:
                raise ValueError(f"{name} has objects, and nothing is unpickled")
            if min(shape, default=1) < 0:
                raise ValueError(f"{name} says that its shape is {shape}")
            size, left = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
            if size != left:
                raise ValueError(f"{name} says that it has {size:,} bytes, and there are {left:,}")
            flat = np.empty(math.prod(shape), dtype)
            _fill(file, flat, name)
        return flat.reshape(shape, order="F" if fortran else "C")


def _fill(file: IO[bytes], flat: Array, name: str) -> None:
    if flat.nbytes == 0:
        return
    target, done = flat.view(np.uint8), 0
    while done < flat.nbytes:
        piece = file.read(min(1 << 24, flat.nbytes - done))
        if not piece:
            raise EOFError(f"{name} is cut short")
        target[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    file.read(1)  # the end: the checksum of the zip is compared there
