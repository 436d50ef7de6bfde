"""What the runs of section 5.3 show, in words, tables, pictures and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import numpy as np

from .. import __version__, plots
from .._base.files import save_figure, write_text
from ..datasets import Dataset
from .paper import LONGER, METHODS, OTHERS, TABLE_1, TOL, Cell

#: Below this, relative to P*, a curve has arrived; what differs there is rounding.
FLOOR = 1e-11
#: Passes to this error, relative to P*, are compared at lambda = 1e-4.
EASY, EASY_ALPHA = 1e-6, 1e-4
#: "Similarly" is within this factor, "by a substantial margin" is at least this factor.
FACTOR = 2.0
#: "The same complexity" is within this factor.
SAME = 3.0
MARKS = {True: "holds", False: "does not hold everywhere", None: "was not run"}
WORDS = {"primal": "P(w) - P*", "gap": "duality gap"}


class Claim(TypedDict):
    """A claim of the paper: in how many cells it holds, and in words where it does not."""

    claim: str
    cells: int
    holds_in: int
    holds: bool | None
    exceptions: list[str]


class Size(TypedDict):
    """A row of Table 1, from the data itself, and n, d and sparsity as the paper has them."""

    data: str
    source: str
    stand_in: bool
    n: int
    d: int
    sparsity: float
    paper: tuple[int, int, float]


def shown(alpha: float) -> str:
    """A lambda in words and file names: 1e-05"""
    return np.format_float_scientific(alpha, trim="-", exp_digits=2)


def write_csv(cell: Cell, folder: Path, sets: list[Dataset]) -> Path:
    """The curves of a cell; never over the data."""
    lines = ["method,passes,seconds,primal,dual,gap,primal_minus_best"]
    for method, t in cell.traces.items():
        columns = (t["epoch"], t["seconds"], t["primal"], t["dual"], t["gap"])
        for row in zip(*columns, cell.errors(method, "primal"), strict=True):
            lines.append(
                f"{method},{row[0]:.0f},{row[1]:.3f}," + ",".join(map(repr, map(float, row[2:])))
            )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{cell.data}-{shown(cell.alpha)}.csv"
    write_text(path, "\n".join(lines) + "\n", _read(sets))
    return path


def _read(sets: list[Dataset]) -> list[str]:
    return [data.source for data in sets]


def draw(sets: list[Dataset], cells: list[Cell], out: Path) -> list[Path]:
    """Figures 1 and 2: rows are lambdas, columns are data sets, as in the paper."""
    titles = {data.name: _title(data) for data in sets}
    cells = [cell for cell in cells if cell.alpha < EASY_ALPHA] or cells
    rows = [plots.lambda_label(a) for a in sorted({c.alpha for c in cells}, reverse=True)]
    columns = list(dict.fromkeys(titles[c.data] for c in cells))
    written = []
    for number, measure, left_out in ((1, "primal", ""), (2, "gap", "afg")):
        panels: dict[tuple[str, str], plots.Panel] = {}
        for c in cells:
            traces = {m: t for m, t in c.traces.items() if m != left_out}
            optimum = c.primal if measure == "primal" else None
            panels[plots.lambda_label(c.alpha), titles[c.data]] = {
                "traces": traces,
                "y": measure,
                "optimum": optimum,
            }
        figure = plots.grid(rows, columns, panels, f"{WORDS[measure]} against passes")
        written += save_figure(figure, out / f"figure{number}", read=_read(sets))
    return written


def _title(data: Dataset) -> str:
    """What heads a column: the name, and what it is if it is not the paper's data."""
    if data.source.startswith("generated"):
        return f"{data.name}\ngenerated"
    file = Path(data.source).name
    return f"{data.name} (stand-in:\n{file})" if data.stand_in else data.name


# ---- the claims -------------------------------------------------------------------------------


def standing(cell: Cell, method: str, measure: str) -> tuple[float, float]:
    """(passes to the floor, error at the end): smaller is ahead."""
    errors = cell.errors(method, measure)
    arrived = np.flatnonzero(errors <= FLOOR * abs(cell.primal))
    if arrived.size:
        return float(cell.traces[method]["epoch"][arrived[0]]), 0.0
    return math.inf, float(errors[-1])


def ahead(cell: Cell, measure: str, rivals: tuple[str, ...]) -> bool:
    """Whether APCG ends at a smaller error than each rival, or arrives earlier."""
    mine = standing(cell, "apcg", measure)
    return all(mine < standing(cell, rival, measure) for rival in rivals)


def passes_to(cell: Cell, method: str, level: float, unit: str = "epoch") -> float:
    """Passes (or seconds) until P(w) - P* is at most this part of P*; infinite if it never is."""
    reached = np.flatnonzero(cell.errors(method, "primal") <= level * abs(cell.primal))
    return float(cell.traces[method][unit][reached[0]]) if reached.size else math.inf


def claims(cells: list[Cell]) -> list[Claim]:
    """Each claim of section 5.3: what it says, whether it holds, and on what."""
    whole = [c for c in cells if c.complete]
    easy = [c for c in whole if c.alpha == EASY_ALPHA]
    hard = [c for c in whole if c.alpha < EASY_ALPHA]
    worst = [c for c in hard if c.alpha <= 1e-6 * (1 + 1e-9)]
    found = []
    for text, rivals, measure, chosen in (
        ("ahead of SDCA and AFG in P(w) - P*, lambda <= 1e-5", ("sdca", "afg"), "primal", hard),
        ("ahead of SDCA in P(w) - P*, lambda <= 1e-6", ("sdca",), "primal", worst),
        ("ahead of SDCA in the duality gap, lambda <= 1e-5", ("sdca",), "gap", hard),
        ("ahead of SDCA in the duality gap, lambda <= 1e-6", ("sdca",), "gap", worst),
    ):
        not_so = [c for c in chosen if not ahead(c, measure, rivals)]
        why = [_why(c, measure, rivals) for c in not_so]
        found.append(_claim(f"APCG is {text}", len(chosen), why))
    similar, margin = [], []
    for c in easy:
        p = {m: passes_to(c, m, EASY) for m in METHODS}
        said = f"{c.data}: " + ", ".join(f"{m.upper()} {_count(p[m])}" for m in METHODS)
        fast, slow = sorted((p["apcg"], p["sdca"]))
        similar += [] if slow <= FACTOR * fast < math.inf else [said]
        margin += [] if slow * FACTOR <= p["afg"] and slow < math.inf else [said]
    about = f"at lambda = 1e-4 (passes to P(w) - P* <= {EASY:g} P*)"
    found.append(_claim(f"APCG is within a factor {FACTOR:g} of SDCA {about}", len(easy), similar))
    text = f"AFG takes at least {FACTOR:g} times as many passes as both {about}"
    found.append(_claim(text, len(easy), margin))
    return found + _claims_of_others([c for c in whole if OTHERS[0] in c.traces])


def _claims_of_others(cells: list[Cell]) -> list[Claim]:
    """What section 5 says of the methods that its figures leave out, in passes and in seconds.

    A cell is judged if the method they are compared with arrives.
    """
    found = []
    for rival, ours, says in (
        ("accelerated_sdca", "apcg", "has the same complexity as ours"),
        ("sag", "sdca", "has the complexity of SDCA"),
        ("svrg", "sdca", "has the complexity of SDCA"),
    ):
        judged = [c for c in cells if math.isfinite(passes_to(c, ours, EASY))]
        for unit, word in (("epoch", "passes"), ("seconds", "seconds")):
            not_so = []
            for c in judged:
                theirs, own = (passes_to(c, m, EASY, unit) for m in (rival, ours))
                if not theirs <= SAME * own:
                    took = f"{theirs:.3g}" if math.isfinite(theirs) else "not reached"
                    where = f"{c.data} at {shown(c.alpha)}"
                    not_so.append(f"{where}: {plots.NAMES[rival]} {took}, {ours.upper()} {own:.3g}")
            text = f"{plots.NAMES[rival]} {says}: at most {SAME:g} times the {word} of "
            about = f"{ours.upper()} to P(w) - P* <= {EASY:g} P*"
            found.append(_claim(text + about, len(judged), not_so))
    return found if cells else []


def _claim(text: str, cells: int, exceptions: list[str]) -> Claim:
    return {"claim": text, "cells": cells, "holds_in": cells - len(exceptions),
            "holds": not exceptions if cells else None, "exceptions": exceptions}  # fmt: skip


def _why(cell: Cell, measure: str, rivals: tuple[str, ...]) -> str:
    ends = ", ".join(f"{m.upper()} {_end(cell, m, measure)}" for m in ("apcg", *rivals))
    return f"{cell.data} at {shown(cell.alpha)}: {ends}"


def _end(cell: Cell, method: str, measure: str) -> str:
    passes, error = standing(cell, method, measure)
    return f"arrived after {passes:.0f}" if math.isfinite(passes) else f"{error:.1e}"


def _proof(cell: Cell) -> str:
    width = cell.primal - cell.dual
    return f"{width:.1e}" if width > 1e-12 * abs(cell.primal) else "rounding"


def _count(passes: float) -> str:
    return f"{passes:.0f}" if math.isfinite(passes) else "not reached"


# ---- the page -----------------------------------------------------------------------------------


def table_1(sets: list[Dataset]) -> list[Size]:
    """Table 1 from the data itself, beside the paper's."""
    rows: list[Size] = []
    for data in sets:
        n, d = data.shape
        rows.append(
            {
                "data": data.name,
                "source": data.source,
                "stand_in": data.stand_in,
                "n": n,
                "d": d,
                "sparsity": data.nonzeros / (n * d),
                "paper": TABLE_1[data.name],
            }
        )
    return rows


def write(
    sets: list[Dataset],
    cells: list[Cell],
    out: Path,
    *,
    passes: int,
    seed: int,
    interrupted: bool,
    figures: bool = True,
) -> Path:
    """The report, in Markdown; `figures` says whether there are any."""
    path = out / "report.md"
    lines = _lines(sets, cells, passes, seed, interrupted, figures)
    write_text(path, "\n".join(lines) + "\n", _read(sets))
    return path


def _lines(
    sets: list[Dataset], cells: list[Cell], passes: int, seed: int, interrupted: bool, figures: bool
) -> Iterator[str]:
    yield "# The experiments of section 5.3\n"
    if interrupted or not all(c.complete for c in cells):
        yield "**Incomplete: it was interrupted.** The claims are judged on the cells that ended.\n"
    yield (
        f"Smoothed hinge loss, gamma = 1, g = (1/2)|w|^2; {passes} passes, seed {seed}, a random "
        f"permutation each pass, apcg {__version__}. A run ends early at a relative duality gap of "
        f"{TOL:g}. P* is the smallest P of all runs, one of them `auto` for up to "
        f"{LONGER * passes} passes.\n"
    )
    yield from (f"{line}\n" for line in sources(sets))
    yield "## What holds\n"
    for claim in claims(cells):
        mark = MARKS[claim["holds"]]
        yield f"- {claim['claim']}: **{mark}** ({claim['holds_in']} of {claim['cells']} cells)."
        yield from (f"    - not so: {text}" for text in claim["exceptions"])
    yield "\n## Table 1\n"
    yield "| data | file | n | d | sparsity | the paper: n, d, sparsity |"
    yield "|---|---|---|---|---|---|"
    for row in table_1(sets):
        n, d, sparsity = row["paper"]
        stand_in = " (stand-in)" * row["stand_in"]
        yield (
            f"| {row['data']} | {Path(row['source']).name}{stand_in} | {row['n']:,} | {row['d']:,} "
            f"| {100 * row['sparsity']:.2g} % | {n:,}, {d:,}, {sparsity:g} % |"
        )
    if figures:
        yield "\n## Figure 1: P(w) - P*\n\n![Figure 1](figure1.png)\n"
        yield "## Figure 2: the duality gap\n\n![Figure 2](figure2.png)"
    else:
        yield "\nThere are no figures: matplotlib is not installed, or nothing was run."
    yield "\n## At the end of the runs\n"
    yield (
        f'"arrived after k": below {FLOOR:g} of P* since pass k. The last two columns are the '
        "proof: P* is between them.\n"
    )
    yield from _ends(cells)
    yield "\nThe curves are in `curves/`, one CSV file a cell."


def sources(sets: list[Dataset]) -> Iterator[str]:
    """What is to be known of data that is not the paper's."""
    for data in sets:
        if data.stand_in:
            yield (
                f"{data.name} is not the paper's file: {Path(data.source).name} stands in for it, "
                "so its numbers are to be compared with the paper's only loosely."
            )
        elif data.source.startswith("generated"):
            yield f"{data.name} is not the paper's file: it is {data.source}."


def ends(cells: list[Cell]) -> tuple[list[str], list[list[str]]]:
    """(head, rows) of a table: where each method ended, and the proof of P*."""
    others = [m for m in OTHERS if any(m in c.traces for c in cells)]
    columns = [(m, "primal") for m in (*METHODS, *others)]
    columns += [(m, "gap") for m in (*METHODS[:2], *others)]
    head = [f"{plots.NAMES[m]} {'P - P*' if what == 'primal' else 'gap'}" for m, what in columns]
    rows = []
    for c in cells:
        found = [_end(c, m, what) if m in c.traces else "-" for m, what in columns]
        rows.append([c.data, shown(c.alpha), *found, f"{c.primal:.10g}", _proof(c)])
    return ["data", "lambda", *head, "best P", "best P - best D"], rows


def _ends(cells: list[Cell]) -> Iterator[str]:
    head, rows = ends(cells)
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
