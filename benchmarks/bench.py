"""The short form of all benchmarks, in a few minutes: tables to bench.md, and plots.

    python benchmarks/bench.py --out out

Each script has a longer form: see its --help.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from data import load

from apcg import ERM, plots, solve

HERE = Path(__file__).parent
#: A title, a script and its arguments.
PARTS = [
    ("Passes over the data", "passes.py", ["--quick"]),
    ("A step against a plain C loop", "kernel.py", ["--quick"]),
    ("A step of a large problem", "step_cost.py", ["--quick"]),
    ("CPU seconds against other solvers", "race/run.py", ["--quick", "--out", "{out}/race.jsonl"]),
]


def tables(out):
    """Run the scripts, and write what they print, as they print it."""
    part = out / "bench.md.part"
    with part.open("w") as file:
        for title, script, arguments in PARTS:
            given = [a.format(out=out) for a in arguments]
            command = [sys.executable, str(HERE / script), *given]
            print(f"\n## {title}\n", flush=True)
            file.write(f"## {title}\n\n`benchmarks/{' '.join([script, *given])}`\n\n")
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout:
                    print(line, end="", flush=True)
                    file.write(line)
            if process.returncode:
                sys.exit(f"{script} failed with {process.returncode}")
            file.write("\n")
    part.replace(out / "bench.md")


def picture_of_passes(out):
    """The gap of each method against passes, on generated text."""
    X, y = load("text")
    problem = ERM(X, y, "smoothed_hinge", "l2", 1e-6)
    traces = {
        m: solve(problem, m, tol=1e-10, max_epochs=200, check_every=1, random_state=0).trace
        for m in ("auto", "apcg", "sdca", "afg")
    }
    ax = plots.convergence(traces, "gap")
    ax.figure.savefig(out / "passes.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="the same: there is no longer form")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "race.jsonl").unlink(missing_ok=True)  # or it would be taken for measured
    tables(a.out)
    picture_of_passes(a.out)
    print(f"\nwritten: {a.out / 'bench.md'}, passes.png, race.jsonl")


if __name__ == "__main__":
    main()
