"""Two classification problems, trained by every method with a certificate: tables and a picture.

python examples/training.py --out out
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize

from apcg import ERM, Solution, plots, solve, theory

METHODS = ("auto", "apcg", "sdca", "afg")
GAPS = (1e-3, 1e-6, 1e-9)
BUDGET = 1000


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """569 samples, 30 standardised features."""
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, 1.0, -1.0)


def text(n: int = 4000, d: int = 8000, words: int = 40) -> tuple[sp.csr_matrix, np.ndarray]:
    """Like text: sparse rows of unit norm, features of Zipf frequencies, noisy labels."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, size=n * words, p=frequency / frequency.sum())
    counts = (rng.exponential(1, n * words), (np.repeat(np.arange(n), words), columns))
    X = sp.csr_matrix(normalize(sp.csr_matrix(counts, shape=(n, d))))
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def train(problem: ERM) -> dict[str, Solution]:
    """Every method, from zero, with the same seed, to the smallest gap."""
    common = {"tol": min(GAPS), "max_epochs": BUDGET, "check_every": 1, "random_state": 0}
    return {name: solve(problem, name, **common) for name in METHODS}


def passes_to(r: Solution, gap: float) -> str:
    """The first pass with this relative gap."""
    reached = r.trace["epoch"][r.trace["gap"] <= gap * np.abs(r.trace["primal"])]
    return f"{reached[0]:.0f}" if reached.size else f">{BUDGET}"


def print_table(title: str, problem: ERM, results: dict[str, Solution]) -> None:
    print(f"\n{title}: {problem.n} samples, {problem.d} features, lambda = {problem.alpha:g}")
    head = "".join(f"{f'gap {g:g}':>11}" for g in GAPS)
    print(f"{'passes to a relative':<22}{head}{'P(w)':>16}{'gap':>10}{'seconds':>9}")
    for name, r in results.items():
        cells = "".join(f"{passes_to(r, g):>11}" for g in GAPS)
        print(f"{name:<22}{cells}{r.primal:>16.10f}{r.gap:>10.1e}{r.seconds:>9.2f}")
    promised = {m: theory.promised_passes(problem, 1e-6 * problem.primal(results[m].w), m)
                for m in METHODS if m != "auto"}  # fmt: skip
    words = ", ".join(f"{m} {k:.0f}" for m, k in promised.items())
    print(f"(passes that theory promises for the dual, to 1e-6: {words})")
    best = min(results.values(), key=lambda r: r.gap)
    print(f"Certificate: the optimum P* is between {best.dual:.12f} and {best.primal:.12f}.")


def draw(solved: list[tuple[str, dict[str, Solution]]], path: Path) -> None:
    """The duality gap against passes, a panel for each problem."""
    figure = Figure(figsize=(4.6 * len(solved), 4.2), layout="constrained")
    for ax, (title, results) in zip(figure.subplots(1, len(solved)), solved, strict=True):
        plots.convergence({name: r.trace for name, r in results.items()}, "gap", ax=ax)
        ax.set_xscale("symlog", linthresh=10)
        ax.set_xlim(left=0)
        ax.set_title(title)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    solved = []
    X, y = breast_cancer()
    cells = [("Logistic regression, breast cancer", ERM(X, y, "logistic", "l2", 1e-4))]
    X, y = text()
    for alpha in (1e-4, 1e-6):
        title = f"Smoothed hinge, text, lambda = {alpha:g}"
        cells.append((title, ERM(X, y, "smoothed_hinge", "l2", alpha)))
    for title, problem in cells:
        results = train(problem)
        print_table(title, problem, results)
        solved.append((title, results))
    picture = out / "training.png"
    draw(solved, picture)
    print(
        f"\nThe picture is {picture}.\n"
        "Next: put your own X and y in apcg.ERM (docs/erm.md); set APCG_DATA_DIR to a folder with\n"
        "rcv1 or a9a and run `make bench`; or try another loss, penalty or lambda here."
    )


if __name__ == "__main__":
    main()
