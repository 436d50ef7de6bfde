"""apcg compare"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from .. import plots, theory
from .._base import files
from ..certify.result import gap_in_words
from ..datasets import DataError, Dataset
from ..experiments import comparison, page, pages
from ..methods import registry
from ..problems.erm import ERM
from . import common, source
from .problem import ProblemOptions, problem_options, taken_for


@click.command(short_help="Run several methods on DATA, side by side.")
@click.argument("data")
@click.option(
    "--methods",
    type=common.Names(registry.names),
    default="auto,apcg,sdca,afg",
    show_default=True,
    help="With commas between them.",
)
@source.column_options
@problem_options(intercept=False)
@click.option(
    "--alpha",
    type=common.NumberList(),
    default="1e-5,1e-6",
    show_default=True,
    help="Lambdas, with commas between them.",
)
@click.option(
    "--max-passes",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Passes over the data, at most.",
)
@click.option("--bound", is_flag=True, help="Draw what Theorem 2 promises for D* - D(x), dashed.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the plots.",
)
@click.option("--plot/--no-plot", default=True, show_default=True, help="Draw the plots.")
@common.as_html
@common.seed
@common.as_json  # fmt: skip
def compare(
    data: str,
    columns: source.TableColumns,
    methods: tuple[str, ...],
    problem: ProblemOptions,
    alpha: tuple[float, ...],
    max_passes: int,
    bound: bool,
    out: Path,
    plot: bool,
    html: Path | None,
    seed: int,
    as_json: bool,
) -> int:
    """Run several methods on DATA: passes and seconds to relative gaps of 1e-3, 1e-6 and 1e-9.

    The relative gap is the duality gap over the objective. Every method starts from zero with the
    same seed, and runs twice: passes are counted with a look at the gap after every pass, seconds
    with as few looks as `apcg train` takes: a method that looks once, at its end, has one time.

    \b
    apcg compare text --methods auto,apcg,sdca --alpha 1e-4,1e-6
    apcg compare text --html report.html

    The plots are DATA-convergence.png and .pdf in the folder --out. Ctrl-C ends the method that is
    running; what was measured is printed and drawn.
    """
    found = source.load(data, columns)
    if html is not None:
        page.check(html, (found.name, found.source))
    made, _ = problem.make(found, alpha[0])
    loss = problem.name(found)
    refused = comparison.refusals(made, methods)
    for method, why in refused.items():
        click.echo(f"{method} is left out: {why}", err=True)
    if not as_json:
        why = taken_for(found, problem.loss, loss)
        click.echo(f"{common.describe(found)}; {problem.words(loss)}{why}")
    methods = tuple(method for method in methods if method not in refused)
    if not methods:
        raise DataError("none of the methods applies to this loss and penalty.")
    runs: dict[float, comparison.Runs] = {}
    rows: list[comparison.Row] = []
    interrupted = False
    for a in alpha:
        cell = made.with_alpha(a)
        runs[a], interrupted = comparison.run_twice(
            cell, methods, passes=max_passes, seed=seed, verbose=common.on_terminal()
        )
        rows += comparison.summary(cell, runs[a])
        if not as_json and runs[a].looked:
            _print(a, [row for row in rows if row["alpha"] == a], max_passes)
        if interrupted:
            break
    written = _draw(found, made, runs, out, bound) if plot else []
    if html is not None:
        about = [("loss", loss), ("penalty", problem.penalty), ("seed", str(seed))]
        shown = pages.of_comparison(found, made, runs, rows, facts=about, bound=bound)
        written.append(str(page.write(shown, html)))
    if as_json:
        facts: dict[str, object] = {"data": common.origin(found), "loss": loss}
        facts |= {"penalty": problem.penalty, "seed": seed}
        facts |= {"max_passes": max_passes, "runs": rows, "plots": written}
        common.print_json(facts | {"left_out": refused, "interrupted": interrupted})
    elif written:
        click.echo(f"\nwritten: {', '.join(written)}")
    if interrupted and not as_json:
        click.echo("interrupted: these are the runs until then.", err=True)
    return 130 if interrupted else 0


def _print(alpha: float, rows: list[comparison.Row], max_passes: int) -> None:
    gaps = [f"{g:g}" for g in comparison.GAPS]
    head = ["", *gaps, "P(w)", "gap at the end"]
    lines = []
    for row in rows:
        cells = [_cost(row, g, max_passes) for g in gaps]
        end = gap_in_words(row["gap"] / abs(row["primal"]), 1) if row["primal"] else "0"
        lines.append([row["method"], *cells, f"{row['primal']:.10f}", end])
    click.echo(f"\nlambda = {alpha:g}: passes (seconds) to a relative gap of")
    click.echo(common.table(head, lines))
    best, proof = min(r["primal"] for r in rows), max(r["dual"] for r in rows)
    click.echo(f"The {common.optimum(proof, best, 12)}.")


def _cost(row: comparison.Row, gap: str, max_passes: int) -> str:
    passes, seconds = row["passes"][gap], row["seconds"][gap]
    if passes is None:
        return "stopped" if row["status"] in ("interrupted", "precision") else f"> {max_passes}"
    return f"{passes:.0f} ({'-' if seconds is None else f'{seconds:.2f}'})"


def _draw(
    data: Dataset, problem: ERM, runs: dict[float, comparison.Runs], out: Path, bound: bool
) -> list[str]:
    """The gap against passes and against seconds, a column for each lambda."""
    panels: dict[tuple[str, str], plots.Panel] = {}
    rows = ["", " "]  # passes, seconds: the axes say it
    for alpha, found in runs.items():
        traces = {name: r.trace for name, r in found.looked.items() if len(r.trace)}
        clock = {name: r.trace for name, r in found.timed.items() if len(r.trace)}
        cell, column = problem.with_alpha(alpha), plots.lambda_label(alpha)
        promised = partial(theory.dual_bound, cell) if bound and cell.mu > 0 else None
        panels[rows[0], column] = {"traces": traces, "y": "gap", "log_x": True, "bound": promised}
        panels[rows[1], column] = {"traces": clock, "y": "gap", "log_x": True, "x": "seconds"}
    try:
        figure = plots.grid(rows, [plots.lambda_label(a) for a in runs], panels, str(data))
    except ImportError as error:
        click.echo(f"no plots: {error}", err=True)
        return []
    out.mkdir(parents=True, exist_ok=True)
    stem = "stdin" if data.name == "-" else Path(data.name).name
    read = (data.name, data.source)
    written = files.save_figure(figure, out / f"{stem}-convergence", read=read)
    return [str(path) for path in written]
