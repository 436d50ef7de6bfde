"""The short form of all benchmarks, in a few minutes: tables to bench.md, and plots.

    python benchmarks/bench.py --out out

Each script has a longer form: see its --help.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from data import load
from matplotlib.figure import Figure

from apcg import ERM, plots, solve

HERE = Path(__file__).parent
#: A title, a script and its arguments.
PARTS = [
    ("Passes over the data", "passes.py", ["--quick"]),
    ("A step against a plain C loop", "kernel.py", ["--quick"]),
    ("A step of a large problem", "step_cost.py", ["--quick"]),
    ("Time against other solvers", "peers.py", ["--quick", "--json", "{out}/peers.json"]),
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


def picture_of_peers(out):
    """Seconds of each solver that arrived, a row for each problem."""
    found = json.loads((out / "peers.json").read_text())
    names = sorted(
        {n for r in found.values() for n in r["seconds"]}, key=lambda n: (n != "apcg", n)
    )
    ax = Figure(figsize=(9, 4), layout="constrained").add_subplot()
    places = np.arange(len(found))
    for k, name in enumerate(names):
        seconds = [r["seconds"].get(name, np.nan) for r in found.values()]
        colour = (
            plots.STYLES["apcg"]["color"] if name == "apcg" else f"{0.15 + 0.7 * k / len(names)}"
        )
        ax.bar(places + 0.8 * k / len(names), seconds, 0.8 / len(names), color=colour, label=name)
    ax.set_xticks(places + 0.4, [key.replace(" ", "\n") for key in found])
    ax.set_yscale("log")
    ax.set_ylabel("seconds to 1e-6")
    ax.figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    ax.figure.savefig(out / "peers.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="the same: there is no longer form")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    tables(a.out)
    picture_of_passes(a.out)
    picture_of_peers(a.out)
    print(f"\nwritten: {a.out / 'bench.md'}, passes.png, peers.png")


if __name__ == "__main__":
    main()
