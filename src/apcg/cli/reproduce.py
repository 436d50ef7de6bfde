"""apcg reproduce"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click
from tqdm import tqdm

from .. import datasets
from ..experiments import generated, page, pages, paper, report
from . import common


@click.command(short_help="Redo the table and the figures of the paper.")
@click.option(
    "--quick",
    is_flag=True,
    help="Generated data in the place of the paper's: a minute.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/paper"),
    show_default=True,
    help="Folder for the report, the figures and the curves.",
)
@click.option(
    "--data",
    "names",
    type=common.Names(lambda: tuple(paper.DATA)),
    default=",".join(paper.DATA),
    show_default=True,
    help="The data sets to run.",
)
@click.option(
    "--alpha",
    type=common.NumberList(),
    default=",".join(f"{a:g}" for a in paper.ALPHAS),
    show_default=True,
    help="The lambdas to run.",
)
@click.option(
    "--methods",
    type=click.Choice(["paper", "all"]),
    default="paper",
    show_default=True,
    help="Those of the paper's figures, or with them those that it compares with in words: SAG, "
    "SVRG and accelerated SDCA.",
)
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=paper.PASSES,
    show_default=True,
    help="Passes over the data of each method.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one for each processor",
    help="Cells that are run at a time.",
)
@common.as_html
@common.seed
@common.as_json  # fmt: skip
def reproduce(
    quick: bool,
    out: Path,
    names: tuple[str, ...],
    alpha: tuple[float, ...],
    methods: str,
    passes: int,
    jobs: int,
    html: Path | None,
    seed: int,
    as_json: bool,
) -> int:
    """Redo section 5.3 of the paper: Table 1, Figures 1 and 2, and what they are to show.

    Writes report.md, figure1 and figure2 (.png, .pdf) and curves/*.csv. The report says in words
    which of the paper's claims hold on this run, and names the files that were used. Without
    --quick the data sets are looked for in APCG_DATA_DIR, and are downloaded otherwise.

    \b
    apcg reproduce --quick
    apcg reproduce --quick --html paper.html
    APCG_DATA_DIR=~/data apcg reproduce --out out/paper

    Each cell's curves are written as soon as it has ended. Ctrl-C keeps what there is.
    """
    (out / "curves").mkdir(parents=True, exist_ok=True)
    sets = [generated.of(name, seed) if quick else datasets.load(name) for name in names]
    if html is not None:
        page.check(html, [name for data in sets for name in (data.name, data.source)])
    if not as_json:
        for data in sets:
            click.echo(f"{common.describe(data)}; {data.source}")
    chosen = paper.METHODS if methods == "paper" else paper.METHODS + paper.OTHERS
    total = len(sets) * len(alpha) * len(chosen) * passes
    with tqdm(total=total, unit="pass", disable=not common.on_terminal()) as bar:
        lock = threading.Lock()

        def tick() -> None:
            with lock:
                bar.update()

        def done(cell: paper.Cell) -> None:
            report.write_csv(cell, out / "curves", sets)
            if not as_json:
                bar.write(f"done: {cell.data}, lambda = {cell.alpha:g}")

        cells, interrupted = paper.run(
            sets, alpha, passes=passes, seed=seed, jobs=jobs, methods=chosen, tick=tick, done=done
        )
    written = _draw(sets, cells, out)
    if html is not None:
        about = [("loss", "smoothed_hinge"), ("penalty", "l2"), ("seed", str(seed))]
        note = " ".join(report.sources(sets))
        written.append(
            str(page.write(pages.of_reproduction(sets, cells, facts=about, note=note), html))
        )
    summary = report.write(sets, cells, out, passes=passes, seed=seed, interrupted=interrupted,
                        figures=bool(written))  # fmt: skip
    _tell(sets, cells, [str(summary), *written], interrupted, as_json)
    return 130 if interrupted else 0


def _draw(sets: list[datasets.Dataset], cells: list[paper.Cell], out: Path) -> list[str]:
    """The figures; the rest of the report needs no matplotlib."""
    try:
        return [str(path) for path in report.draw(sets, cells, out)] if cells else []
    except ImportError as error:
        click.echo(f"no figures: {error}", err=True)
        return []


def _tell(
    sets: list[datasets.Dataset],
    cells: list[paper.Cell],
    files: list[str],
    interrupted: bool,
    as_json: bool,
) -> None:
    claims = report.claims(cells)
    if as_json:
        common.print_json({"table_1": report.table_1(sets), "claims": claims, "files": files,
                           "interrupted": interrupted})  # fmt: skip
        return
    for claim in claims:
        click.echo(f"{claim['holds_in']} of {claim['cells']} cells: {claim['claim']}")
        for text in claim["exceptions"]:
            click.echo(f"    not so: {text}")
    click.echo(
        f"\nThe report is {' and '.join([files[0], *(f for f in files if f.endswith('.html'))])}."
    )
