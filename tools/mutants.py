"""Mutations of the rules that a certificate, a file or a choice rests on: does a test notice?

    python tools/mutants.py                 # all; docs/mutants.md has what came out
    python tools/mutants.py certificate     # those whose file or name has this word

Each mutation is made in a copy of the package (`overlay`), one at a time, and the tests that are
about the place are run on it. A mutation that no test notices has survived. First the same tests
are run on a copy without any: they must pass.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import mutations_guards
import mutations_new
import mutations_rest
import mutations_rooms
import mutations_values
import overlay
from mutant import Mutant

REPORT = overlay.ROOT / "docs" / "mutants.md"
MUTANTS = [
    *mutations_values.MUTANTS,
    *mutations_new.MUTANTS,
    *mutations_guards.MUTANTS,
    *mutations_rest.MUTANTS,
    *mutations_rooms.MUTANTS,
]


def failing(mutants: list[Mutant]) -> list[str]:
    """What fails without any mutation: tests that fail anyway notice nothing."""
    found = []
    for file in sorted({m.tests for m in mutants}):
        words = {m.only for m in mutants if m.tests == file}
        chosen = [] if "" in words else ["-k", " or ".join(f"({w})" for w in sorted(words))]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            overlay.copy(folder)
            code, said = overlay.forked(folder, overlay.tests(file), *chosen, seconds=900)
        if code != 0:
            found.append(f"{file}: exit code {code}: {said[-600:]}")
    return found


def tried(mutant: Mutant) -> str:
    """Whether it was killed or survived, or what went wrong with the trial."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = overlay.copy(folder)
        path = package / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"stale: its text is {text.count(mutant.old)} times in the file"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        if mutant.file.endswith(".pyx"):
            overlay.build(package, str(path.relative_to(package / "_kernels").with_suffix("")))
        elif mutant.file.endswith((".pxd", ".h")):
            overlay.build(package, "losses/scalar")  # the tests of these reach them through it
        words = ["-k", mutant.only] if mutant.only else []
        code, said = overlay.forked(folder, "-x", overlay.tests(mutant.tests), *words)
    if code == 0:
        return "survived"
    # 1: tests failed; a crash or a hang (a signal) is noticed as well
    return "killed" if code == 1 or code < 0 else f"error {code}: {said[-300:]}"


def table(results: dict[Mutant, str], before: dict[tuple[str, str], str]) -> str:
    """The report, as docs/mutants.md has it; what did not run has the result of its last run."""
    lines = [
        "# Mutations",
        "",
        "`make mutants` changes one rule of the package at a time, in a copy, and runs the tests",
        "that are about the place. A change that no test notices has survived. The rules are those",
        "that a certificate, a file or a choice of method rests on; tools/mutants.py has them.",
        "A run of some (`python tools/mutants.py interior`) brings their lines up to date.",
        "",
        "| file | mutation | tests | result |",
        "|---|---|---|---|",
    ]
    counts = Counter[str]()
    for m in MUTANTS:
        said = results.get(m) or before.get((m.what, m.tests), "not run yet")
        why = f": {m.why}" if m in results and said != "killed" and m.why else ""
        counts[said.partition(":")[0]] += 1
        lines.append(f"| `{m.file}` | {m.what} | {m.tests} | {said.splitlines()[0]}{why} |")
    told = ", ".join(f"{count} {said}" for said, count in counts.items())
    return "\n".join([*lines[:7], f"Of {len(MUTANTS)} mutations: {told}.", *lines[6:]]) + "\n"


def last_results() -> dict[tuple[str, str], str]:
    """The results in docs/mutants.md, by the mutation and its tests."""
    found = {}
    for line in REPORT.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            _, what, tests, said = (cell.strip() for cell in line.strip("| ").split(" | ", 3))
            found[what, tests] = said
    return found


def main() -> int:
    """Try all, or those that are asked for."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.what}" for w in words)]
    before = last_results()
    if broken := failing(chosen):
        print("without any mutation:", *broken, sep="\n")
        return 1
    results: dict[Mutant, str] = {}
    for mutant in chosen:
        start = time.perf_counter()
        said = tried(mutant)
        results[mutant] = said
        REPORT.write_text(table(results, before), encoding="utf-8")
        print(
            f"{said:<10}{time.perf_counter() - start:6.0f} s  {mutant.file}: {mutant.what}",
            flush=True,
        )
    left = [m for m, said in results.items() if said != "killed"]
    unexplained = [m for m in left if not m.why]
    print(
        f"{len(results)} mutations, {len(left)} not killed, {len(unexplained)} of them unexplained"
    )
    return 1 if unexplained or len(left) > 3 else 0


if __name__ == "__main__":
    sys.exit(main())
