"""Parsed data on disk, one folder for each source file: .npy arrays, loaded memory-mapped.

A folder is written under a temporary name and then renamed, so it is whole or not there. Its header
has the size and time of the source, and a checksum of every array, which is looked at on loading.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import numpy as np

from .._base.archive import BROKEN
from .._base.files import replacing_folder, write_text
from .._base.types import Array

FORMAT = 1
HEADER = "header.json"
#: The arrays of an entry.
ARRAYS = ("data", "indices", "indptr", "y")

T = TypeVar("T")


class ArrayHead(TypedDict):
    """What a header says of an array."""

    dtype: str
    shape: list[int]
    crc32: int


def folder() -> Path:
    """Where downloads and parsed data are kept: APCG_CACHE_DIR, or the user's cache folder.

    Examples
    --------
    >>> from apcg import datasets
    >>> datasets.cache_folder().is_absolute()
    True
    """
    chosen = os.environ.get("APCG_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("apcg"))


def entry(source: Path) -> Path:
    """The folder of a source file, whether it exists or not."""
    full = str(source.resolve())
    return folder() / "parsed" / f"{source.name}-{hashlib.sha256(full.encode()).hexdigest()[:12]}"


def store(source: Path, arrays: dict[str, Array], facts: dict[str, bool]) -> None:
    """Write an entry; a folder that cannot be written to is only worth a warning."""
    target = entry(source)
    try:
        with replacing_folder(target) as new:
            for key, array in arrays.items():
                np.save(new / f"{key}.npy", array, allow_pickle=False)
            header = {
                "format": FORMAT,
                "source": _identity(source),
                "facts": facts,
                "arrays": {k: _describe(a) for k, a in arrays.items()},
            }
            write_text(new / HEADER, json.dumps(header, indent=1))
    except OSError as error:
        warnings.warn(
            f"the parsed form of {source} could not be kept in {folder()} ({error}); set "
            "APCG_CACHE_DIR to a folder that can be written to.",
            stacklevel=2,
        )


def load(source: Path, made: Callable[[dict[str, Array], object], T]) -> T | None:
    """What `made` makes of the arrays and facts of an entry, or None if there is none.

    An entry belongs to the source as it is now. One that is damaged, or that `made` refuses, is
    named in a warning and removed.
    """
    place = entry(source)
    if not place.exists():
        return None
    try:
        header = json.loads((place / HEADER).read_text(encoding="utf-8"))
        if header["format"] != FORMAT or header["source"] != _identity(source):
            return None  # made from an older file; it will be written anew
        if set(header["arrays"]) != set(ARRAYS):
            raise ValueError(f"it has the arrays {', '.join(map(str, header['arrays']))}")
        arrays = {k: _checked(place / f"{k}.npy", header["arrays"][k]) for k in ARRAYS}
        return made(arrays, header["facts"])
    except BROKEN as error:
        warnings.warn(
            f"the cache entry {place} is damaged ({error}); it is removed, and {source} is read "
            "again.",
            stacklevel=2,
        )
        shutil.rmtree(place, ignore_errors=True)
        return None


def _identity(source: Path) -> dict[str, str | int]:
    stat = source.stat()
    return {"path": str(source.resolve()), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _describe(array: Array) -> ArrayHead:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "crc32": _checksum(array)}


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def _checked(path: Path, told: ArrayHead) -> Array:
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    if _describe(array) != told:
        raise ValueError(f"{path.name} is not what the header says")
    return array


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
