"""A report as one HTML file: curves that answer to the mouse, tables, the data, the command.

Everything is inside the file, plotly's JavaScript too, so that it opens anywhere, without a
network. `page.html` is the page with names between @ for what is put in here.
"""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from .. import __version__, plots
from .._base.files import check_target, write_text
from .._base.types import Array
from ..certify.result import Trace
from ..datasets import Dataset

#: Where a curve is looked at, and its values under the keys of the measures.
Against: TypeAlias = dict[str, list[float | None]]
#: matplotlib's line styles in the words of plotly, as far as they go.
DASHES = {"-": "solid", ":": "dot", "-.": "dashdot", "--": "dash"}


@dataclass(frozen=True)
class Measure:
    """A quantity on the vertical axis."""

    key: str
    name: str


@dataclass
class Curve:
    """One method in one panel; what is None is not drawn."""

    name: str
    passes: Against
    seconds: Against | None = None
    is_bound: bool = False


@dataclass
class PageTable:
    """Rows under a heading; the first column is to the left, the others to the right."""

    caption: str
    head: Sequence[str]
    rows: Iterable[Sequence[str]]


@dataclass
class Page:
    """What a report shows. A panel is found by its row and its column."""

    title: str
    rows: list[str]
    columns: list[str]
    measures: list[Measure]
    panels: dict[tuple[str, str], list[Curve]]
    tables: list[PageTable]
    sets: list[Dataset]
    summary: str = ""
    note: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    log_x: bool = True


def check(path: Path, read: Iterable[str | Path]) -> None:
    """Before the work: refuse a path that cannot be written, or a missing plotly."""
    check_target(path, read)
    _plotly()


def write(page: Page, path: Path) -> Path:
    """The page, into one file; never over the data."""
    parts = {
        "title": html.escape(page.title),
        "version": html.escape(__version__),
        "summary": page.summary,
        "note": html.escape(page.note),
        "tables": "\n".join(map(_table, page.tables)),
        "facts": _facts(page),
        "command": html.escape(command()),
        "curves": _in_script(_curves(page)),
        "plotly": _plotly(),
    }
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    text = re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)
    read = [name for data in page.sets for name in (data.name, data.source)]
    write_text(path, text, read)
    return path


def against(trace: Trace, at: str, values: Mapping[str, Array]) -> Against:
    """The numbers of a curve: column `at` of a trace, and the values at the same looks."""
    return {"at": _numbers(trace[at])} | {key: _numbers(v) for key, v in values.items()}


def command() -> str:
    """The command that was typed."""
    return shlex.join(["apcg", *sys.argv[1:]])


def _numbers(values: Array) -> list[float | None]:
    """Six digits of each; None for what a logarithmic axis cannot show."""
    return [float(f"{v:.6g}") if 0 < v < np.inf else None for v in np.asarray(values, dtype=float)]


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("HTML reports need plotly: pip install 'apcg[report]'.") from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _in_script(value: object) -> str:
    """JSON that no browser takes for the end of its script."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _curves(page: Page) -> dict[str, object]:
    panels = []
    for (row, column), curves in page.panels.items():
        place = {"row": page.rows.index(row), "column": page.columns.index(column)}
        panels.append(place | {"curves": [_curve(c) for c in curves]})
    return {
        "rows": page.rows,
        "columns": page.columns,
        "measures": [{"key": m.key, "name": m.name} for m in page.measures],
        "scale": "log" if page.log_x else "linear",
        "panels": panels,
    }


def _curve(curve: Curve) -> dict[str, object]:
    style = plots.BOUND if curve.is_bound else plots.STYLES.get(curve.name, {})
    drawn = style.get("linestyle", "-")
    if not isinstance(drawn, str):  # (start, (on, off, ...)) in points
        dash = ",".join(f"{2 * length}px" for length in drawn[1])
    else:
        dash = DASHES[drawn]
    return {
        "name": plots.NAMES.get(curve.name, curve.name),
        "color": style.get("color"),
        "dash": "bound" if curve.is_bound else dash,
        "passes": curve.passes,
        "seconds": curve.seconds,
    }


def _table(table: PageTable) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in table.rows
    )
    caption = f"<caption>{html.escape(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _facts(page: Page) -> str:
    head = ["data", "from", "samples", "features", "nonzeros", "share of nonzeros"]
    rows = []
    for data in page.sets:
        n, d = data.shape
        share = f"{100 * data.nonzeros / (n * d):.3g} %"
        where = "built in" if data.source == data.name else Path(data.source).name
        source = where + " (a stand-in)" * data.stand_in
        rows.append([data.name, source, f"{n:,}", f"{d:,}", f"{data.nonzeros:,}", share])
    found = _table(PageTable("", head, rows))
    lines = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>\n"
        for name, value in [*page.facts, ("apcg", __version__)]
    )
    return f'{found}\n<table class="facts"><tbody>{lines}</tbody></table>'
