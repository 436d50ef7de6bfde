"""The race: CPU seconds against the best peer, on all kinds of problems.

    pip install 'apcg[peers]'
    python benchmarks/race/run.py --out out/race.jsonl              # all of it: hours
    python benchmarks/race/run.py --group l2 --data a9a --lam 1/n   # some of it
    python benchmarks/race/table.py out/race.jsonl                  # the tables, in Markdown

A line of JSON is written for each cell, and cells that are there already are skipped: a race that
was cut off goes on where it was. --lam, --data and --loss may name what no group has by itself.
`measure` says how it is measured, `cells` what. Data is looked for in APCG_DATA_DIR.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from cells import GROUPS, Cell, of_all
from contestants import PACKAGES, left_out
from measure import Limits, race
from problems import Missing
from table import line as in_words
from threadpoolctl import threadpool_limits

#: A race in a few seconds, on data that needs no files.
QUICK = [
    Cell("l2", "text", "logistic", "l2", "1e-4"),
    Cell("l2", "text", "squared_hinge", "l2", "1e-6"),
    Cell("tiny", "tiny", "logistic", "l2", "1/n"),
    Cell("cv", "diabetes", "squared", "l2", "path"),
]


def wanted(a: argparse.Namespace) -> list[Cell]:
    """The cells that were asked for, each once."""
    if a.quick:
        return QUICK
    cells = [c for c in of_all() if a.group is None or c.group in a.group]
    for name in ("data", "loss", "lam"):
        asked = getattr(a, name)
        if asked:
            known = [c for c in cells if getattr(c, name) in asked]
            new = [v for v in asked if v not in {getattr(c, name) for c in cells}]
            cells = known + [replace(c, **{name: v}) for v in new for c in cells]
    return list(dict.fromkeys(cells))


def done(out: Path) -> set[str]:
    """The keys of the cells that are in the file; half a line at its end is cut off."""
    if not out.exists():
        return set()
    text = out.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        out.write_text(whole)
    return {json.loads(line)["key"] for line in whole.splitlines()}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--group", nargs="+", choices=GROUPS, help="some of the groups")
    parser.add_argument("--data", nargs="+", help="some of the data sets, or others")
    parser.add_argument("--loss", nargs="+", help="some of the losses, or others")
    parser.add_argument("--lam", nargs="+", help="some of the lambdas, or others: 1e-5 1/n max/10")
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=PACKAGES)
    parser.add_argument("--out", type=Path, default=Path("out/race.jsonl"))
    limits = Limits()
    parser.add_argument("--limit", type=float, default=limits.search, help="CPU s of a search")
    parser.add_argument("--optimum", type=float, default=limits.optimum, help="CPU s of the P*")
    parser.add_argument("--budget", type=float, default=limits.timing, help="CPU s of the timing")
    parser.add_argument("--quick", action="store_true", help="four cells that need no files")
    parser.add_argument("--list", action="store_true", help="print the cells, and run none")
    return parser.parse_args()


def main() -> None:
    a = parsed()
    cells = wanted(a)
    if a.list:
        print(*(cell.key for cell in cells), sep="\n")
        return
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS"):  # those that peers will load
        os.environ[f"{library}_NUM_THREADS"] = "1"
    a.out.parent.mkdir(parents=True, exist_ok=True)
    if absent := left_out(tuple(a.packages)):
        print(f"Not installed, and left out: {', '.join(absent)}.", file=sys.stderr)
    packages = tuple(p for p in a.packages if p not in absent)
    limits, missing = Limits(a.limit, a.optimum, a.budget), set()
    finished = done(a.out)
    for cell in cells:
        if cell.key in finished or cell.data in missing:
            continue
        try:
            with threadpool_limits(1):
                record = asdict(cell) | {"key": cell.key} | race(cell.event(packages), limits)
        except Missing as reason:
            missing.add(cell.data)
            print(f"{cell.data} is left out: {reason}", file=sys.stderr)
            continue
        with a.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(in_words(record), flush=True)


if __name__ == "__main__":
    main()
