"""The tables of a race, in Markdown: ratios of CPU seconds, apcg over the best peer.

    python benchmarks/race/table.py out/race.jsonl [more.jsonl] [--all]
    python benchmarks/race/table.py out/race.jsonl --into docs/benchmarks.md

First a summary by group: geometric mean, worst cell, share won. Then every cell that was lost, with
--all every cell. --into puts them between the two marks of a page. Under 1 is faster than every
peer. A cell where apcg did not arrive counts as 30, one where no peer did as 1/30, and one where
nobody did is named and not counted.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contestants import OURS, OURS_WITHOUT

#: In a page the tables are between these.
MARKS = ("<!-- race: begin -->", "<!-- race: end -->")
#: The ratio of a cell where only one side arrived.
LOST = 30.0


@dataclass(frozen=True)
class Outcome:
    """One cell at one target."""

    record: dict[str, Any]
    target: str
    mine: float | None
    peer: str | None
    theirs: float | None
    without: float | None  # ours without an intercept, where there is one

    @property
    def ratio(self) -> float | None:
        """Ours over the best peer's; None if nobody arrived."""
        if self.mine is None:
            return None if self.theirs is None else LOST
        return 1 / LOST if self.theirs is None else self.mine / self.theirs

    @property
    def group(self) -> str:
        """As cells are put together in the summary."""
        r = self.record
        if r["group"] != "l2":
            return r["group"]
        if r["loss"] in ("hinge", "smoothed_hinge"):
            return f"l2, {r['loss'].replace('_', ' ')}"
        small = r["lam"] in ("1e-6", "1e-7", "1e-8")
        return f"l2, smooth, lambda {'<' if small else '>='} 1e-5"

    @property
    def name(self) -> str:
        """The cell in words."""
        r = self.record
        parts = [r["data"], r["loss"].replace("_", " "), r["penalty"], r["lam"]]
        return " ".join(dict.fromkeys(parts))


def outcome(record: dict[str, Any], target: str) -> Outcome:
    """Who was fastest to a target. Who is at a tighter target is at a looser one too."""
    best: dict[str, float] = {}
    for tighter, seconds in record["seconds"].items():
        if float(tighter) <= float(target):
            for name, s in seconds.items():
                best[name] = min(best.get(name, math.inf), s)
    mine, without = best.pop(OURS, None), best.pop(OURS_WITHOUT, None)
    peer = min(best, key=best.__getitem__, default=None)
    return Outcome(record, target, mine, peer, best.get(peer), without)


def outcomes(records: list[dict[str, Any]]) -> list[Outcome]:
    """All cells at all their targets."""
    return [outcome(r, target) for r in records for target in r["targets"]]


def _seconds(s: float | None) -> str:
    if s is None:
        return "-"
    return f"{s:.3g} s" if s >= 1 else f"{1000 * s:.3g} ms"


def _ratio(o: Outcome) -> str:
    if o.ratio is None:
        return "nobody arrived"
    return f"{'>' if o.mine is None else '<' if o.theirs is None else ''}{o.ratio:.2f}"


def _target(target: str) -> str:
    return "default" if math.isinf(float(target)) else target


def line(record: dict[str, Any]) -> str:
    """A cell in one line, for whoever watches."""
    shown = []
    for target in record["targets"]:
        o = outcome(record, target)
        shown.append(
            f"{_target(target)}: {_ratio(o)} ({_seconds(o.mine)} / {o.peer} {_seconds(o.theirs)})"
        )
    failed = "".join(f"; {name}: {why}" for name, why in record["errors"].items())
    return f"{record['key']} | {' | '.join(shown)}{failed}"


def summary(found: list[Outcome]) -> list[str]:
    """Geometric mean, worst cell, share won, of each group and of all."""
    lines = [
        "| group | to | cells | geometric mean | worst | at | won | at most 1.25 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups = sorted({(o.group, o.target) for o in found})
    targets = sorted({o.target for o in found})
    for group, target in [*groups, *(("all", t) for t in targets)]:
        cells = [o for o in found if o.target == target and group in ("all", o.group)]
        counted = [o for o in cells if o.ratio is not None]
        if not counted:
            continue
        ratios = [o.ratio for o in counted]
        worst = max(counted, key=lambda o: o.ratio)
        won, close = (sum(r <= most for r in ratios) / len(ratios) for most in (1.0, 1.25))
        lines.append(
            f"| {group} | {_target(target)} | {len(counted)} | **{_mean(ratios):.2f}** "
            f"| {_ratio(worst)} | {worst.name} | {won:.0%} | {close:.0%} |"
        )
    return lines


def price(found: list[Outcome]) -> list[str]:
    """What a free intercept costs: our time with one over our time without."""
    lines = []
    for target in sorted({o.target for o in found}):
        pairs = [o for o in found if o.target == target and o.mine and o.without]
        if pairs:
            ratios = [o.mine / o.without for o in pairs]
            worst = max(pairs, key=lambda o: o.mine / o.without)
            lines.append(
                f"A free intercept, to {_target(target)}: {_mean(ratios):.2f} times the time "
                f"without one in {len(pairs)} cells (geometric mean), at most {max(ratios):.2f}, "
                f"on {worst.name}."
            )
    return lines


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def rows(found: list[Outcome]) -> list[str]:
    """One line for each cell and target. With default settings: what was reached, too."""
    lines = [
        "| group | cell | to | apcg | best peer | apcg / best peer | reached |",
        "|---|---|---|---|---|---|---|",
    ]
    for o in found:
        peer = "none arrived" if o.peer is None else f"{o.peer}, {_seconds(o.theirs)}"
        reached = ""
        if math.isinf(float(o.target)):
            got = o.record["reached"]
            reached = f"{got.get(OURS, math.nan):.0e} / {got.get(o.peer, math.nan):.0e}"
        lines.append(
            f"| {o.group} | {o.name} | {_target(o.target)} | {_seconds(o.mine)} | {peer} "
            f"| {_ratio(o)} | {reached} |"
        )
    return lines


def tables(records: list[dict[str, Any]], every: bool = False) -> str:
    """The summary, the cells lost, and all cells if wanted."""
    found = sorted(outcomes(records), key=lambda o: (o.group, o.target, o.name))
    lost = sorted((o for o in found if o.ratio is not None and o.ratio > 1), key=lambda o: -o.ratio)
    nobody = [f"{o.name} to {o.target}" for o in found if o.ratio is None]
    parts = ["### By group", *summary(found)]
    if cost := price(found):
        parts += ["", *cost]
    parts += ["### Cells lost"]
    parts += rows(lost) if lost else ["None."]
    if nobody:
        parts += [f"Nobody arrived: {'; '.join(nobody)}."]
    if every:
        parts += ["### All cells", *rows(found)]
    text = "\n".join(f"\n{p}\n" if p.startswith("###") else p for p in parts)
    return text.lstrip("\n")


def read(files: list[Path]) -> list[dict[str, Any]]:
    """The cells of all files; of one that is there twice, the last."""
    found = {}
    for file in files:
        for text in file.read_text().splitlines():
            record = json.loads(text)
            found[record["key"]] = record
    return list(found.values())


def between_marks(page: str, text: str) -> str:
    """The page with `text` in the place of what was between the marks."""
    begin, end = MARKS
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must have {begin} and {end} once each.")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true", help="every cell, too")
    parser.add_argument("--into", type=Path, help="a page with the marks")
    a = parser.parse_args()
    text = tables(read(a.files), a.all)
    if a.into is None:
        print(text)
    else:
        a.into.write_text(between_marks(a.into.read_text(), text))


if __name__ == "__main__":
    main()
