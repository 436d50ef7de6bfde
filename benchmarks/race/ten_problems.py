"""Ten everyday problems: CPU seconds beside scikit-learn, LIBLINEAR, celer and others.

    pip install 'apcg[peers]'
    python benchmarks/race/ten_problems.py --out out/ten_problems.jsonl          # some minutes
    python benchmarks/race/ten_problems.py --into README.md --picture docs/images/peers.png

A line of JSON is written for each problem, and what is there is not run again. The table and the
picture are made of that file; `measure` says how the seconds are taken. In the picture a solver is
a line: each point is a run with another tolerance, at its seconds and at the error it reached.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import numpy as np
from cells import Cell
from contestants import OURS, PACKAGES, Contestant, Event, installed
from measure import Limits, Try, _timed, _warm_up, in_a_child, race, suboptimality
from problems import Missing
from threadpoolctl import threadpool_limits

#: A peer is given up when one fit takes so many times the best time so far.
PATIENCE = 20.0
BEGIN, END = "<!-- ten problems: begin -->", "<!-- ten problems: end -->"


@dataclass(frozen=True)
class Everyday:
    """A problem in words, and the cell that it is; `drawn` ones are in the picture."""

    words: str
    cell: Cell
    drawn: bool = False


PROBLEMS = (
    Everyday("logistic regression on text", Cell("l2", "rcv1", "logistic", "l2", "1/n"), True),
    Everyday("linear SVM on text", Cell("l2", "rcv1", "hinge", "l2", "1/n")),
    Everyday("SVM with squared hinge on text", Cell("l2", "rcv1", "squared_hinge", "l2", "1e-5")),
    Everyday("logistic regression, one-hot rows", Cell("l2", "a9a", "logistic", "l2", "1e-5")),
    Everyday(
        "logistic regression, many rows",
        Cell("l2", "covtype:100000", "logistic", "l2", "1e-6"),
        True,
    ),
    Everyday("ridge regression, a table", Cell("l2", "cal_housing", "squared", "l2", "1/n")),
    Everyday("ridge regression on text", Cell("l2", "rcv1", "squared", "l2", "1/n")),
    Everyday("lasso on genes", Cell("l1", "golub", "squared", "l1", "max/100"), True),
    Everyday("sparse logistic regression on text", Cell("l1", "rcv1", "logistic", "l1", "max/100")),
    Everyday("a lasso path on genes", Cell("path", "golub", "squared", "l1", "path")),
)
#: Columns of the table: a family, and how the names of its contestants begin.
FAMILIES = {
    "apcg": ("apcg",),
    "scikit-learn": (
        "sk-",
        "Linear",
        "Ridge",
        "Lasso",
        "Elastic",
        "Logistic",
        "lasso_path",
        "enet",
    ),
    "LIBLINEAR": ("LIBLINEAR",),
    "celer": ("celer",),
    "cyanure": ("cyanure",),
    "skglm": ("skglm",),
}
COLORS = {
    "apcg": "#b2182b",
    "scikit-learn": "#f28e2b",
    "LIBLINEAR": "#0b3c68",
    "celer": "#1b7837",
    "cyanure": "#7b3294",
    "skglm": "#777777",
}


def family(name: str) -> str | None:
    """Whose a contestant is."""
    return next((f for f, starts in FAMILIES.items() if name.startswith(starts)), None)


def best_of_each(seconds: dict[str, float]) -> dict[str, float]:
    """The fastest contestant of each family."""
    found: dict[str, float] = {}
    for name, s in seconds.items():
        f = family(name)
        if f is not None:
            found[f] = min(s, found.get(f, s))
    return found


def curve(event: Event, c: Contestant, limit: float) -> list[Try]:
    """A fit for every tolerance of the ladder, until the limit."""

    def work(send) -> None:
        prepared = _warm_up(c)
        for tol in c.tolerances:
            answer, seconds = min((_timed(c, prepared, tol) for _ in range(2)), key=lambda t: t[1])
            send(Try(tol, event.values(c, answer), seconds))

    return [t for t in in_a_child(work, limit, limit) if isinstance(t, Try)]


def measured(problem: Everyday, packages: tuple[str, ...], limits: Limits) -> dict[str, Any]:
    """The record of a problem: seconds to the tightest target, and curves if it is drawn."""
    event = problem.cell.event(packages)
    record = race(event, limits)
    target = record["targets"][-1]
    found = {"key": problem.cell.key, "words": problem.words, "target": target,
             "seconds": record["seconds"].get(target, {}), "curves": {}}  # fmt: skip
    if problem.drawn:
        star = next(iter(record["optimum"].values()))
        fastest = {}
        for name, s in found["seconds"].items():
            if family(name) and s <= found["seconds"].get(fastest.get(family(name)), s):
                fastest[family(name)] = name
        for c in event.contestants:
            if fastest.get(family(c.name)) == c.name:
                tries = curve(event, c, limits.search)
                points = [(t.seconds, suboptimality(t.values, star)) for t in tries]
                found["curves"][family(c.name)] = points
    return found


def table(records: list[dict[str, Any]]) -> str:
    """Seconds in Markdown, the best of a row in bold."""
    lines = [f"| problem | data | {' | '.join(FAMILIES)} |", "|---" * (len(FAMILIES) + 2) + "|"]
    for record in records:
        seconds = best_of_each(record["seconds"])
        fastest = min(seconds.values(), default=0.0)
        cells = [_shown(seconds.get(f), fastest) for f in FAMILIES]
        lines.append(f"| {record['words']} | {data_of(record)} | {' | '.join(cells)} |")
    ratios = [s["apcg"] / min(v for f, v in s.items() if f != "apcg")
              for s in (best_of_each(r["seconds"]) for r in records) if len(s) > 1]  # fmt: skip
    when = datetime.date.today().isoformat()
    won = sum(ratio < 1 for ratio in ratios)
    lines.append(
        f"\nCPU seconds to a relative error of {records[0]['target']}, one thread, {when}, "
        f"{machine()}, other work on the machine. apcg is the fastest in {won} of {len(ratios)}. "
        '"-": it has no such problem, or was not seen to arrive (a fit may take '
        f"{PATIENCE:g} times the best time, the search for its tolerance some seconds)."
    )
    return "\n".join(lines)


def data_of(record: dict[str, Any]) -> str:
    """The name of the data, in words."""
    return record["key"].split()[1].replace(":100000", ", 100,000 rows")


def _shown(seconds: float | None, fastest: float) -> str:
    if seconds is None:
        return "-"
    text = f"{seconds:.2g}" if seconds < 1 else f"{seconds:.1f}"
    return f"**{text}**" if seconds <= fastest else text


def machine() -> str:
    """The processor, and the versions that count."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, Python {platform.python_version()}"


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Error against seconds, a panel for each problem that is drawn."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    drawn = [r for r in records if r["curves"]]
    figure = Figure(figsize=(3.6 * len(drawn), 3.4), layout="constrained")
    lines = {}
    for ax, record in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        for name, points in record["curves"].items():
            shown = np.array(sorted((s, max(e, 1e-10)) for s, e in points if e < 1))
            if shown.size:
                best = np.minimum.accumulate(shown[:, 1])  # by so many seconds
                own = name == OURS
                lines[name] = ax.loglog(
                    shown[:, 0], best, "o-", color=COLORS[name],
                    ms=4 if own else 3, lw=2.4 if own else 1.2, zorder=3 if own else 2,
                )[0]  # fmt: skip
        ax.set_title(f"{record['words']}\n{data_of(record)}", fontsize=10)
        ax.set_xlabel("CPU seconds")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.grid(visible=True, alpha=0.3)
    figure.axes[0].set_ylabel("relative error of the objective")
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=110)


def put_into(page: Path, text: str) -> None:
    """The table between its two marks."""
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/ten_problems.jsonl"))
    parser.add_argument("--into", type=Path, nargs="+", default=[], help="pages with the two marks")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--limit", type=float, default=10.0, help="CPU s of a search")
    parser.add_argument("--only", help="problems whose words have this")
    parser.add_argument("--no-run", action="store_true", help="only what is in the file")
    a = parser.parse_args()
    measure.HOPELESS = PATIENCE
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    a.out.parent.mkdir(parents=True, exist_ok=True)
    lines = a.out.read_text().splitlines() if a.out.exists() else []
    known = {record["key"]: record for record in map(json.loads, lines)}
    packages = tuple(p for p in PACKAGES if installed(p))
    for problem in PROBLEMS:
        if problem.cell.key in known or a.no_run or (a.only and a.only not in problem.words):
            continue
        try:
            with threadpool_limits(1):
                record = measured(problem, packages, Limits(a.limit, 3 * a.limit, 2.0))
        except Missing as reason:
            print(f"{problem.words} is left out: {reason}")
            continue
        known[record["key"]] = record
        with a.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(problem.words, {f: round(s, 4) for f, s in best_of_each(record["seconds"]).items()})
    records = [known[p.cell.key] for p in PROBLEMS if p.cell.key in known]
    if records and not a.only:
        print(text := table(records))
        for page in a.into:
            put_into(page, text)
        if a.picture:
            draw(records, a.picture)


if __name__ == "__main__":
    main()
