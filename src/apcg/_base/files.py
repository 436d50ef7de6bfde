"""Files that are whole or not there: written under a temporary name, then renamed. Streams."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol


def on_terminal() -> bool:
    """Whether standard error is there, and somebody watches it."""
    return sys.stderr is not None and sys.stderr.isatty()  # None if it was closed


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends without an error."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.writing")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_text(path: str | Path, text: str) -> None:
    """Put a text in the place of `path`, in UTF-8."""
    with replacing(path) as file:
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
    figure: Figure, stem: Path, formats: tuple[str, ...] = ("png", "pdf")
) -> list[Path]:
    """A matplotlib figure as stem.png, stem.pdf."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    for path, kind in zip(paths, formats, strict=True):
        # no creation date: the same curves give the same file
        undated: dict[str, str | None] | None = {"CreationDate": None} if kind == "pdf" else None
        with replacing(path) as file:
            figure.savefig(file, format=kind, dpi=150, metadata=undated)
    return paths
