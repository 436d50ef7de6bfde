"""What the subcommands share: kinds of options, and output."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

import click
import numpy as np
from tqdm import tqdm

from .._base import files
from ..certify.result import gap_in_words
from ..datasets import Dataset


class Origin(TypedDict):
    """What every JSON output says of its data."""

    name: str
    source: str
    stand_in: bool
    n: int
    d: int
    nonzeros: int


def on_terminal() -> int:
    """`verbose` of `solve`: 1 where somebody watches, else 0, for what is piped holds no news."""
    return int(files.on_terminal())


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Positive numbers with commas between them."""

    name = "numbers"

    def convert(
        self,
        value: str | tuple[float, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers, such as 1e-5,1e-6.", param, ctx)
        if not all(0 < number < math.inf for number in numbers):
            self.fail(f"{value!r} must be positive numbers.", param, ctx)
        return numbers


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names out of a few, with commas between them. `known` is asked when they are needed."""

    name = "names"

    def __init__(self, known: Callable[[], tuple[str, ...]]) -> None:
        self.known = known

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        given = tuple(part.strip() for part in value.split(","))
        wrong = [name for name in given if name not in self.known()]
        if wrong:
            self.fail(f"{wrong[0]!r} is not one of {', '.join(self.known())}.", param, ctx)
        return tuple(dict.fromkeys(given))


POSITIVE = click.FloatRange(min=0, min_open=True)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
as_html = click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                       help="Write a page with curves to click on, tables and the data's facts; "
                       "one file, which needs no network. Wants plotly.")  # fmt: skip
seed = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                    help="The same seed gives the same result.")  # fmt: skip


def optimum(dual: float, primal: float, digits: int = 10) -> str:
    """Where the optimum is, in words. No loss and no penalty of the command is ever negative."""
    known = f" (nothing here is negative; D = {dual:.3g})" if dual < 0 else ""
    return f"optimum is between {max(dual, 0.0):.{digits}g}{known} and {primal:.{digits}g}"


def gaps(gap: float, primal: float) -> str:
    """The gap, and the relative gap, which is what --tol is about."""
    relative = f", relative gap {gap_in_words(gap / abs(primal), 1)}" if primal else ""
    return f"gap {gap_in_words(gap)}{relative}"


def describe(data: Dataset) -> str:
    """One line: what it is, and the file that was used."""
    n, d = data.shape
    return f"{data}: {n:,} samples, {d:,} features, {data.nonzeros:,} nonzeros"


def origin(data: Dataset) -> Origin:
    """What every JSON output says of its data."""
    n, d = data.shape
    return {"name": data.name, "source": data.source, "stand_in": data.stand_in, "n": n, "d": d,
            "nonzeros": data.nonzeros}  # fmt: skip


def print_json(value: object) -> None:
    """JSON as the standard has it: what is not finite is null."""
    click.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(head: list[str], rows: list[list[str]]) -> str:
    """Columns that line up: the first to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, *rows]:
        first, *rest = (cell.ljust(w) if k == 0 else cell.rjust(w)
                        for k, (cell, w) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def count(value: float | None) -> str:
    """A number of passes for a table; of millions, only how many digits it has is news."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"


def label(value: object) -> str:
    """A number as short as it can be without loss: 1, not 1.0; those of K classes with spaces."""
    if isinstance(value, list):
        return " ".join(map(label, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Where somebody watches, a line with the seconds so far, for what has no end to be shown."""
    with tqdm(bar_format=f"{what}: {{elapsed}}", leave=False, disable=not on_terminal()) as bar:
        done = threading.Event()

        def tick() -> None:
            while not done.wait(1):
                bar.refresh()

        clock = threading.Thread(target=tick, daemon=True)
        clock.start()
        try:
            yield
        finally:
            done.set()
            clock.join()
