"""Every file that apcg writes is written here: whole or not at all, and never over what was read.

A regular file is written under another name and then renamed, so that it is whole or as it was.
Links are followed. To a terminal, a pipe or /dev/null the bytes are sent; block devices, sockets
and folders are refused, and so is a file that the command has read.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Protocol

#: What cannot be written to, and its name.
_REFUSED = {
    "a folder": stat.S_ISDIR,
    "a block device": stat.S_ISBLK,
    "a socket": stat.S_ISSOCK,
}


def on_terminal() -> bool:
    """Whether standard error is there, and somebody watches it."""
    return sys.stderr is not None and sys.stderr.isatty()  # None if it was closed


def check_target(path: str | Path, read: Iterable[str | Path] = ()) -> None:
    """Refuse a path that cannot be written to, or that is one of the files `read`.

    "-" among `read` is standard input, and what is no file is passed over. To be called before the
    work as well: `replacing` would refuse only after it.
    """
    if str(path) == "-":
        raise OSError("- is not written: it is no name of a file here. Give one.")
    found = _stat(path)
    if found is not None:
        for kind, is_it in _REFUSED.items():
            if is_it(found.st_mode):
                raise OSError(f"{path} cannot be written: it is {kind}. Give the name of a file.")
        if stat.S_ISREG(found.st_mode):
            for other in read:
                theirs = _stat(0 if str(other) == "-" else other)
                if theirs is not None and os.path.samestat(found, theirs):
                    shown = "standard input" if str(other) == "-" else other
                    raise OSError(
                        f"{path} is not written: {shown} is read from the same file, and would be "
                        "lost. Give another name."
                    )
        if not os.access(path, os.W_OK):
            raise OSError(f"{path} cannot be written: it is there, and is protected.")
    if found is None or _is_replaced(found):
        folder = _real(path).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OSError(f"{path} cannot be written: there is no writable folder {folder}.")


@contextlib.contextmanager
def replacing(path: str | Path, read: Iterable[str | Path] = ()) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends without an error.

    What is no regular file (a terminal, a pipe, /dev/null) is not replaced: the bytes are sent to
    it when the block ends.
    """
    check_target(path, read)
    found = _stat(path)
    if found is not None and not _is_replaced(found):
        held = io.BytesIO()
        yield held
        with Path(path).open("wb") as device:
            device.write(held.getbuffer())
        return
    real = _real(path)
    temporary = real.with_name(f".{real.name}.{secrets.token_hex(4)}.writing")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if found is not None:
            shutil.copymode(real, temporary)
        temporary.replace(real)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def new_file(path: Path) -> IO[bytes]:
    """A binary file that was not there, to write and to read, in a folder made for it."""
    return path.open("x+b")


@contextlib.contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder that takes the place of the folder `path` when the block ends without an error.

    The folder around it is made if it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as name:
        new = Path(name) / "new"
        new.mkdir()
        yield new
        if path.exists():
            path.rename(Path(name) / "old")
        new.rename(path)


def _stat(path: str | Path | int) -> os.stat_result | None:
    """What is at the end of the links of a path; None if nothing is."""
    try:
        return os.stat(path)  # noqa: PTH116  or a descriptor
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # a loop of links, a name too long or with a NUL
        if isinstance(path, int):
            return None  # standard input is closed
        shown = error.strerror if isinstance(error, OSError) else error
        raise OSError(f"{str(path)[:200]} cannot be used: {shown}.") from None


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _is_replaced(found: os.stat_result) -> bool:
    """A regular file, and not one that standard output goes to: /dev/stdout > file."""
    if not stat.S_ISREG(found.st_mode):
        return False
    ours = (_stat(1), _stat(2))
    return not any(stream and os.path.samestat(found, stream) for stream in ours)


def write_text(path: str | Path, text: str, read: Iterable[str | Path] = ()) -> None:
    """Put a text in the place of `path`, in UTF-8."""
    with replacing(path, read) as file:
        file.write(text.encode())


class Figure(Protocol):
    """What is asked of a matplotlib figure."""

    def savefig(
        self,
        fname: IO[bytes],
        /,
        *,
        format: str,
        dpi: float,
        metadata: dict[str, str | None] | None = None,
    ) -> None:
        """Write it to a file."""


def save_figure(
    figure: Figure,
    stem: Path,
    formats: tuple[str, ...] = ("png", "pdf"),
    read: Iterable[str | Path] = (),
) -> list[Path]:
    """A matplotlib figure as stem.png, stem.pdf."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    for path, kind in zip(paths, formats, strict=True):
        # no creation date: the same curves give the same file
        undated: dict[str, str | None] | None = {"CreationDate": None} if kind == "pdf" else None
        with replacing(path, read) as file:
            figure.savefig(file, format=kind, dpi=150, metadata=undated)
    return paths
