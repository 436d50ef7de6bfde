"""Mutations of the rules that a certificate, a file or a choice rests on: does a test notice?

    python tools/mutants.py                 # all; docs/mutants.md has what came out
    python tools/mutants.py certificate     # those whose file or name has this word; only printed

Each mutation is made in a copy of the package (`overlay`), one at a time, and the tests that are
about the place run on it until one fails. First these tests run on a copy without mutations, whose
kernels are built in the same way: a test that fails there notices nothing.
"""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import overlay
from mutations import MUTANTS, Mutant

REPORT = overlay.ROOT / "docs" / "mutants.md"
#: seconds of CPU for the tests of a file without a mutation; with one they hang if they take
#: so many times as long, and at least so many seconds
_WHOLE, _TIMES, _LEAST = 900, 5, 10
#: Signals that a mutation is the cause of: the limits, and crashes.
_ENDS = {
    signal.SIGPROF: "it does not end",
    signal.SIGALRM: "it does not end",
    signal.SIGSEGV: "it crashes",
    signal.SIGABRT: "it crashes",
    signal.SIGFPE: "it crashes",
}


@dataclass(frozen=True)
class Result:
    """What came of one mutation: `killed`, `survived`, or what went wrong with the trial."""

    said: str
    noticed: str = ""  # the test that failed, or why the mutation may survive


def _failed(output: str) -> list[str]:
    """The tests that failed, by pytest's summary, without their parameters."""
    return re.findall(r"^(?:FAILED|ERROR) \S*?(\w+\.py(?:::\w+)?)", output, flags=re.MULTILINE)


def _kernel(mutant: Mutant) -> str | None:
    """The kernel to be built anew; headers are reached through that of the losses."""
    path = Path(mutant.file)
    if path.suffix == ".pyx":
        return str(path.relative_to("_kernels").with_suffix(""))
    return "losses/scalar" if path.suffix in (".pxd", ".h") else None


def _used() -> float:
    """Seconds of CPU of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unchanged(mutants: list[Mutant], folder: Path) -> tuple[set[str], dict[str, float]]:
    """Without any mutation, on the copy of the package: tests that fail, seconds of each file."""
    package = overlay.copy(folder)
    for kernel in sorted({_kernel(m) or "" for m in mutants} - {""}):
        overlay.build(package, kernel)
    found, took = set(), {}
    for file in sorted({m.tests for m in mutants}):
        words = {m.only for m in mutants if m.tests == file}
        chosen = [] if "" in words else ["-k", " or ".join(f"({w})" for w in sorted(words))]
        before = _used()
        code, output = overlay.forked(folder, overlay.tests(file), *chosen, seconds=_WHOLE)
        took[file] = _used() - before
        print(f"{took[file]:6.1f} s  without a mutation: {file}", flush=True)
        if code != 0:
            found |= {*_failed(output)} or {file}
            print(f"exit code {code}: {output[-1500:]}", flush=True)
    return found, took


def tried(mutant: Mutant, clean: Path, broken: set[str], seconds: float) -> Result:
    """Whether a test noticed, and which; a run that takes so many seconds of CPU hangs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = overlay.again(clean, folder)
        path = package / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return Result("stale", f"its text is {text.count(mutant.old)} times in the file")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        if kernel := _kernel(mutant):
            overlay.build(package, kernel)
        words = ["-k", mutant.only] if mutant.only else []
        file = overlay.tests(mutant.tests)
        code, output = overlay.forked(folder, "-x", file, *words, seconds=seconds)
    if code == 0:
        return Result("survived", mutant.why)
    if -code in _ENDS and mutant.tests not in broken:
        return Result("killed", f"{mutant.tests}: {_ENDS[-code]}")
    noticed = _failed(output)
    if code == 1 and noticed and not broken & {mutant.tests, *noticed}:
        return Result("killed", noticed[0])
    return Result("error", f"exit code {code}: {' '.join(output[-300:].split())}")


def commit() -> str:
    """The last commit, and its day."""
    git = ["git", "log", "-1", "--format=%h of %cs"]
    return subprocess.run(git, cwd=overlay.ROOT, capture_output=True, text=True).stdout.strip()


def table(results: dict[Mutant, Result], of: str) -> str:
    """The report of one run, as docs/mutants.md has it."""
    counts = Counter(results[m].said if m in results else "not run yet" for m in MUTANTS)
    told = ", ".join(f"{count} {said}" for said, count in counts.items())
    lines = [
        "# Mutations",
        "",
        "`make mutants` changes one rule of the package at a time, in a copy, and runs the tests",
        "that are about the place. A change that no test notices has survived. The rules are those",
        "that a certificate, a file or a choice of method rests on; tools/mutations/ has them.",
        "The last column has the first test that failed; it passes without the mutation.",
        "",
        f"One run, of commit {of}: {len(MUTANTS)} mutations, {told}.",
        "",
        "| file | mutation | result | noticed by |",
        "|---|---|---|---|",
    ]
    for m, result in results.items():
        lines.append(f"| `{m.file}` | {m.what} | {result.said} | {in_words(result.noticed)} |")
    return "\n".join(lines) + "\n"


def in_words(noticed: str) -> str:
    """A name of a test that a narrow column can break: file.py::test_a_b as file.py: a b."""
    file, _, test = noticed.partition("::")
    return f"{file}: {test.removeprefix('test_').replace('_', ' ')}" if test else noticed


def main() -> int:
    """Try all, or those that are asked for."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.what}" for w in words)]
    results: dict[Mutant, Result] = {}
    of = commit()
    with tempfile.TemporaryDirectory() as name:
        clean = Path(name)
        broken, took = unchanged(chosen, clean)
        for mutant in chosen:
            before = _used()
            seconds = max(_LEAST, _TIMES * took[mutant.tests])
            result = results[mutant] = tried(mutant, clean, broken, seconds)
            if not words:
                REPORT.write_text(table(results, of), encoding="utf-8")
            line = f"{_used() - before:6.1f} s  {mutant.file}: {mutant.what}: {result.noticed}"
            print(f"{result.said:<10}{line}", flush=True)
    if broken:
        print("failing without any mutation:", *sorted(broken), sep="\n")
    left = [m for m, result in results.items() if result.said != "killed"]
    unexplained = [m for m in left if results[m].said != "survived" or not m.why]
    told = f"{len(left)} not killed, {len(unexplained)} of them unexplained"
    print(f"{len(results)} mutations, {told}, {_used():.0f} s of CPU")
    return 1 if broken or unexplained or len(left) > 3 else 0


if __name__ == "__main__":
    sys.exit(main())
