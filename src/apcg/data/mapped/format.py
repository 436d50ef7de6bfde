"""The header of a folder: what is in the files, and checksums of it."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

FORMAT, VERSION = "apcg data", 1
HEADER = "header.json"
#: What the name of a folder ends with while it is written.
WRITING = ".writing"
#: Bytes in front of the numbers of a .npy file.
FRONT = 128


class FolderError(ValueError):
    """A folder of data that is not there, not whole, or damaged."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows that are read together, with checksums of their data and indices."""

    rows: int
    stored: int
    data_crc32: int
    indices_crc32: int = 0


@dataclass(frozen=True)
class File:
    """A .npy file: the numbers in it, and their checksum if it is not by parts."""

    dtype: str
    shape: tuple[int, ...]
    crc32: int | None = None

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return FRONT + math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass
class Header:
    """What header.json says.

    sparse      whether zeros are not stored
    shape       rows and columns of X
    stored      how many numbers of X are stored
    largest     the largest |number| of X
    zero_based  whether the file that this is from counts features from 0; None if it has names
    words       the labels, if they are words: y has places in this list; None for numbers
    features    the names of the columns, if they have any
    table       which columns of a CSV or Parquet file these are, and which words they may have
    source      what it was converted from
    files       the .npy files by name
    parts       rows that are read together, in order
    """

    sparse: bool
    shape: tuple[int, int]
    stored: int
    largest: float
    zero_based: bool | None
    words: list[str] | None
    features: list[str] | None
    source: str
    files: dict[str, File] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    table: dict[str, Any] | None = None

    def text(self) -> str:
        """As it is written."""
        said: dict[str, Any] = {"format": FORMAT, "version": VERSION, **asdict(self)}
        said["parts"] = [list(asdict(part).values()) for part in self.parts]
        return json.dumps({**said, "crc32": _checksum(said)}, indent=1)

    @classmethod
    def read(cls, folder: Path) -> Header:
        """The header of a folder, or a FolderError."""
        try:
            text = (folder / HEADER).read_text("utf-8")
        except FileNotFoundError:
            raise FolderError(_not_there(folder)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise FolderError(f"{folder / HEADER} cannot be read: {error}.") from None
        try:
            said = json.loads(text)
            given, version = said.pop("crc32"), said.get("version")
            if said.get("format") != FORMAT:
                raise ValueError("it is not the header of apcg data")
            if version != VERSION:
                raise FolderError(
                    f"{folder} has version {version} of the format, and this apcg reads version "
                    f"{VERSION}; convert the data again, or take a newer apcg."
                )
            if given != _checksum(said):
                raise ValueError("its checksum is wrong")
            return cls._made(said)
        except FolderError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FolderError(damaged(folder, f"{HEADER}: {error}")) from None

    @classmethod
    def _made(cls, said: dict[str, Any]) -> Header:
        values = {"table": None} | {each.name: said[each.name] for each in fields(cls)
                                    if each.name in said or each.name != "table"}  # fmt: skip
        n, d = values["shape"]
        files = {
            name: File(str(np.dtype(f["dtype"])), tuple(f["shape"]), f["crc32"])
            for name, f in values["files"].items()
        }
        parts = [Part(*map(int, each)) for each in values["parts"]]
        made = cls(**{**values, "shape": (int(n), int(d)), "files": files, "parts": parts})
        made._check()
        return made

    def _check(self) -> None:
        """Whether the numbers fit together: sizes of arrays are taken from them."""
        n, d = self.shape
        if min(n, d) < 1 or any(p.rows < 1 or p.stored < 0 for p in self.parts):
            raise ValueError("a size is not positive")
        if (sum(p.rows for p in self.parts), sum(p.stored for p in self.parts)) != (n, self.stored):
            raise ValueError("the sizes of its parts do not add up")
        shapes: dict[str, tuple[int, ...]] = {"data.npy": (self.stored,), "norms.npy": (n,)}
        types = {"data.npy": ("float32", "float64"), "norms.npy": ("float64",)}
        if self.sparse:
            shapes |= {"indices.npy": (self.stored,), "indptr.npy": (n + 1,)}
            types |= {"indices.npy": ("int32",), "indptr.npy": ("int64",)}
        else:
            shapes["data.npy"] = (n, d)
            if any(p.stored != p.rows * d for p in self.parts):
                raise ValueError("the sizes of its parts do not fit its rows")
        if "y.npy" in self.files:
            shapes["y.npy"] = (n,)
            types["y.npy"] = ("float64",) if self.words is None else ("int32",)
        for name, shape in shapes.items():
            if self.files[name].shape != shape or self.files[name].dtype not in types[name]:
                raise ValueError(f"the shape or type of {name} does not fit")


def is_folder(path: Any) -> bool:
    """Whether a path is a folder of data, whole or not."""
    try:
        path = Path(path)
        named = path.name.endswith((".apcg", ".apcg" + WRITING))
        return bool(path.is_dir() and (named or (path / HEADER).exists()))
    except (OSError, ValueError, TypeError):  # too long, or with a NUL
        return False


def front(dtype: Any, shape: tuple[int, ...]) -> bytes:
    """What is in front of the numbers of a .npy file, always `FRONT` bytes."""
    shown = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": shape}
    text = repr(shown).encode("latin1").ljust(FRONT - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def damaged(folder: Path, what: str) -> str:
    """The sentence about a folder that does not have what was written to it."""
    return f"{folder} is damaged ({what}); convert the data again."


def _checksum(said: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(said, sort_keys=True).encode())


def _not_there(folder: Path) -> str:
    if folder.name.endswith(WRITING):
        return f"{folder} is a conversion that did not end; run apcg convert again."
    if not folder.exists():
        return f"there is no folder {folder}; apcg convert makes one."
    return f"{folder} has no {HEADER}: it is not whole, or no data of apcg; convert it again."
