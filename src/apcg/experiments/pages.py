"""What `apcg compare --html` and `apcg reproduce --html` show."""

from __future__ import annotations

import html
from functools import partial

import numpy as np

from .. import theory
from ..certify.result import Solution, gap_in_words
from ..datasets import Dataset
from ..problems.erm import ERM
from . import comparison, report
from .page import Curve, Measure, Page, PageTable, against
from .paper import Cell

#: The answers of the methods of a cell, by their names.
Answers = dict[str, Solution]

RELATIVE = Measure("relative", "relative gap")
GAP = Measure("gap", "gap P(w) − D(x)")
ERROR = Measure("error", "P(w) − P*")


def of_comparison(
    data: Dataset,
    problem: ERM,
    runs: dict[float, comparison.Runs],
    rows: list[comparison.Row],
    *,
    facts: list[tuple[str, str]],
    bound: bool,
) -> Page:
    """The methods side by side, a column of panels for each lambda."""
    panels = {}
    for alpha, found in runs.items():
        best = min((r.primal for r in (found.looked | found.timed).values()), default=np.nan)
        curves = [
            Curve(
                name,
                _against(r, "epoch", best),
                _against(found.timed[name], "seconds", best) if name in found.timed else None,
            )
            for name, r in found.looked.items()
            if len(r.trace)
        ]
        cell = problem.with_alpha(alpha)
        if bound and cell.mu > 0 and curves:
            curves.append(_bound(cell, found.looked))
        panels["", f"λ = {alpha:g}"] = curves
    return Page(
        title=f"{data}: methods side by side",
        rows=[""],
        columns=[f"λ = {a:g}" for a in runs],
        measures=[RELATIVE, GAP, ERROR],
        panels=panels,
        tables=[_reached(a, [row for row in rows if row["alpha"] == a]) for a in runs],
        sets=[data],
        note="Passes are of a run that looks at the gap after every pass, seconds of one that "
        "looks as rarely as apcg does by itself: a method that looks once, at its end, has one "
        "time. P* is the smallest P(w) of all runs.",
        facts=facts,
    )


def _against(r: Solution, at: str, best: float) -> dict[str, list[float | None]]:
    trace = r.trace
    relative = trace["gap"] / np.abs(trace["primal"])
    values = {"relative": relative, "gap": trace["gap"], "error": trace["primal"] - best}
    return against(trace, at, values)


def _bound(cell: ERM, looked: Answers) -> Curve:
    """What Theorem 2 promises for D* - D(x), over the passes that are drawn."""
    last = max(float(r.trace["epoch"][-1]) for r in looked.values())
    passes = np.geomspace(1, max(last, 2.0), 100)
    promised = partial(theory.dual_bound, cell)(passes)
    at, values = ([float(v) for v in numbers] for numbers in (passes, promised))
    return Curve("Theorem 2, bound of D* − D", {"at": [*at], "gap": [*values]}, is_bound=True)


def _reached(alpha: float, rows: list[comparison.Row]) -> PageTable:
    head = ["method"]
    for gap in comparison.GAPS:
        head += [f"passes to {gap:g}", f"seconds to {gap:g}"]
    head += ["P(w) at the end", "relative gap at the end"]
    lines = []
    for row in rows:
        cells = [row["method"]]
        for gap in comparison.GAPS:
            passes, seconds = row["passes"][f"{gap:g}"], row["seconds"][f"{gap:g}"]
            cells.append("-" if passes is None else f"{passes:.0f}")
            cells.append("-" if seconds is None else f"{seconds:.3f}")
        end = gap_in_words(row["gap"] / abs(row["primal"]), 1) if row["primal"] else "0"
        lines.append([*cells, f"{row['primal']:.10g}", end])
    return PageTable(f"λ = {alpha:g}: passes and seconds to relative gaps", head, lines)


def of_reproduction(
    sets: list[Dataset], cells: list[Cell], *, facts: list[tuple[str, str]], note: str
) -> Page:
    """Figures 1 and 2 of the paper as one grid: rows are lambdas, columns are data sets."""
    alphas = sorted({c.alpha for c in cells}, reverse=True)
    panels = {}
    for c in cells:
        panels[f"λ = {c.alpha:g}", c.data] = [
            Curve(
                m,
                against(t, "epoch", {"error": t["primal"] - c.primal, "gap": t["gap"]}),
                against(t, "seconds", {"error": t["primal"] - c.primal, "gap": t["gap"]}),
            )
            for m, t in c.traces.items()
            if len(t)
        ]
    return Page(
        title="The experiments of section 5.3",
        rows=[f"λ = {a:g}" for a in alphas],
        columns=list(dict.fromkeys(c.data for c in cells)),
        measures=[ERROR, GAP],
        panels=panels,
        tables=[PageTable("Where the runs ended", *report.ends(cells))],
        sets=sets,
        summary=_claims(cells),
        note=note,
        facts=facts,
        log_x=False,
    )


def _claims(cells: list[Cell]) -> str:
    lines = []
    for claim in report.claims(cells):
        mark = report.MARKS[claim["holds"]]
        but = "".join(f"<li>not so: {html.escape(text)}</li>" for text in claim["exceptions"])
        lines.append(
            f"<li>{html.escape(claim['claim'])}: <strong>{mark}</strong> "
            f"({claim['holds_in']} of {claim['cells']} cells).{f'<ul>{but}</ul>' if but else ''}"
        )
    return "<h2>What holds</h2>\n<ul>\n" + "</li>\n".join(lines) + "</li>\n</ul>"
