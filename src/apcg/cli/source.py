"""DATA of the commands: options about it, and loading it with a progress bar."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from .. import datasets
from ..datasets import DataError, Dataset
from ..datasets.tables import is_table
from .common import on_terminal

memory = click.option("--memory", metavar="SIZE",
                      help="Memory to work in, 300MB say, if DATA is a folder by `apcg convert`; "
                      "without it, half of what is free.")  # fmt: skip


def _listed(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(","))


@dataclass(frozen=True)
class TableColumns:
    """What the options say of the columns of a table."""

    target: str | None
    drop: tuple[str, ...]
    categorical: tuple[str, ...]


_COLUMNS = (
    click.option("--target", metavar="NAME", help="CSV, Parquet: the column with the labels."),
    click.option("--drop", metavar="NAMES", callback=_listed,
                 help="CSV, Parquet: columns to leave out, with commas between them."),
    click.option("--categorical", metavar="NAMES", callback=_listed,
                 help="CSV, Parquet: columns of numbers that are codes, and become a feature for "
                 "each value, as columns of words do."),
)  # fmt: skip


def column_options(command: Callable[..., object]) -> Callable[..., object]:
    """The options of `TableColumns`, which the command gets as `columns`."""

    @functools.wraps(command)
    def called(**given: Any) -> object:
        own = {f.name: given.pop(f.name) for f in fields(TableColumns)}
        return command(columns=TableColumns(**own), **given)

    for option in _COLUMNS[::-1]:
        called = option(called)
    return called


def load(
    data: str,
    columns: TableColumns,
    *,
    features: int | None = None,
    memory_limit: str | None = None,
    labelled: bool = True,
) -> Dataset:
    """DATA; `labelled`, if it is of no use without labels."""
    table = datasets.is_input(data) and is_table(data)
    if labelled and table and columns.target is None:
        raise DataError(f"{data} is a table: say which column has the labels, with --target NAME.")
    with _bar(data) as tell:
        return datasets.load(
            data, n_features=features, memory_limit=memory_limit, target=columns.target,
            drop=columns.drop, categorical=columns.categorical, tell=tell,
        )  # fmt: skip


def load_like(data: str, found: Dataset) -> Dataset:
    """Test data, with the features of the training data."""
    with _bar(data) as tell:
        like = found.table if datasets.is_input(data) else None
        return datasets.load(data, n_features=found.shape[1], zero_based=found.zero_based,
                             like=like, tell=tell)  # fmt: skip


@contextmanager
def _bar(data: str) -> Iterator[Callable[[int], object] | None]:
    """A bar of the bytes that are read, on a terminal, if it takes more than a second."""
    if not on_terminal():
        yield None
        return
    size = Path(data).stat().st_size if data != "-" and datasets.is_input(data) else None
    with tqdm(total=size, unit="B", unit_scale=True, desc=f"reading {Path(data).name}", delay=1,
              leave=False) as bar:  # fmt: skip
        yield bar.update
