"""What the subcommands share: options, the problem of a data set, output."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click
import numpy as np

from .. import losses, model
from .._base import files
from .._base.types import Array
from ..certify.result import gap_in_words
from ..datasets import Dataset
from ..penalties.base import NAMES as PENALTIES
from ..problems.erm import ERM

LOSSES = losses.names(margin=True) + losses.names_of_classes() + losses.names(margin=False)

#: Whole numbers of more kinds than this are amounts, and not the names of classes.
MOST_CLASSES = 100

Command = TypeVar("Command", bound=Callable[..., object])


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


class Numbers(click.ParamType):  # type: ignore[type-arg]
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

memory = click.option("--memory", metavar="SIZE",
                      help="Memory to work in, 300MB say, if DATA is a folder by `apcg convert`; "
                      "without it, half of what is free.")  # fmt: skip


class LossName(click.Choice[str]):
    """A loss by name; the error says what other libraries' names are here."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        same = losses.ELSEWHERE.get(str(value).casefold())
        if same is not None and value not in self.choices:
            hint = same if " " in same else f"Did you mean {same!r}?"
            self.fail(f"{value!r} is not one of them. {hint}", param, ctx)
        return super().convert(value, param, ctx)


def _no_c(ctx: click.Context, param: click.Parameter, value: float | None) -> None:
    if value is not None:
        alpha = f"1/({value:g} n)" if value > 0 else "1/(C n)"
        raise click.UsageError(
            f"there is no {param.opts[0]} here. --alpha {alpha} means the same, with n the number "
            "of samples."
        )


def problem_options(command: Command) -> Command:
    """--loss, --penalty, --l1-ratio; and what to write for the C of other programs."""
    for option in (
        click.option("--C", "-c", "C", type=float, hidden=True, expose_value=False,
                     is_eager=True, callback=_no_c),
        click.option("--l1-ratio", type=click.FloatRange(0, 1), default=0.5, show_default=True,
                     help="Share of L1 in elasticnet."),
        click.option("--penalty", type=click.Choice(PENALTIES), default="l2",
                     show_default=True, help="Penalty g."),
        click.option("--loss", type=LossName(LOSSES),
                     show_default="smoothed_hinge for two labels; multinomial, the softmax, for "
                     "words and for 3 to 100 whole numbers (for amounts, such as ages, give "
                     "squared); else squared",
                     help=f"{', '.join(losses.names(margin=True))} are for two classes, "
                     f"{', '.join(losses.names_of_classes())} for many (logistic means "
                     "multinomial there), the others for real labels."),
    ):  # fmt: skip
        command = option(command)
    return command


def make_problem(
    data: Dataset,
    loss: str,
    penalty: str,
    alpha: float,
    l1_ratio: float,
    intercept: bool = False,
) -> tuple[ERM, Array | None]:
    """(problem, classes): labels are mapped to -1 and 1, or 0..K-1, if the loss wants classes."""
    classes = None
    y: Array
    if loss in losses.names_of_classes():
        y, classes = model.encode_classes(data.y)
    elif losses.by_name(loss).margin:
        y, classes = model.encode_labels(data.y)
    else:
        y = model.targets(data.y)
    problem = ERM(data.X, y, loss, penalty, alpha, l1_ratio=l1_ratio, intercept=intercept)
    return problem, classes


def find_loss(data: Dataset, given: str | None) -> str:
    """The loss that was given, or one that suits the labels.

    Smoothed hinge for two classes, softmax for more of them, squared for real labels. The softmax
    is the logistic loss of many classes, and is found by that name too.
    """
    if given not in (None, "logistic"):
        return given
    if data.y is None:
        return given or "smoothed_hinge"
    values = np.unique(data.y)
    if values.size <= 2:
        return given or "smoothed_hinge"
    words = values.dtype.kind not in "fciub"
    whole = words or values.dtype.kind in "iub" or bool(np.all(values == np.round(values)))
    few = words or values.size <= min(MOST_CLASSES, data.y.size / 2)
    return "multinomial" if whole and few else given or "squared"


def taken_for(data: Dataset, given: str | None, loss: str) -> str:
    """What is said of a loss that nobody asked for."""
    if given == loss or data.y is None:
        return ""
    if loss == "multinomial" and data.y.dtype.kind in "fiub":
        kinds = np.unique(data.y).size
        return f": the {kinds} labels are taken for classes (for amounts give --loss squared)"
    return ": the labels are real numbers" if loss == "squared" else ""


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
    """A number of passes for a table."""
    return f"{value:,.0f}" if value is not None and math.isfinite(value) else "-"
