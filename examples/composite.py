"""Two ill-conditioned problems, solved by every method of apcg: a table and a picture.

python examples/composite.py --out out
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import toeplitz

from apcg import Result, functions, minimize, penalties, plots, theory

TOL = 1e-7
ACCURACY = 1e-8
MAX_EPOCHS = 10_000
CHECK_EVERY = 5
COLUMNS = f"{'method':<22}{'mu':>9}{'passes':>9}{'F':>17}{'residual':>12}{'seconds':>10}"


@dataclass
class Problem:
    """f + psi, and what it is in words."""

    title: str
    f: functions.LinearComposite
    psi: penalties.Penalty
    mu: float


def lasso() -> Problem:
    """(1/2)|Ax - b|^2 + alpha |x|_1 with features that resemble their neighbours.

    f is strongly convex, for there are more rows than features; mu is an eigenvalue.
    """
    rng = np.random.default_rng(0)
    rows, features, rho = 300, 150, 0.99
    A = rng.standard_normal((rows, features))
    for j in range(1, features):
        A[:, j] = rho * A[:, j - 1] + np.sqrt(1 - rho**2) * A[:, j]
    weights = np.where(np.arange(features) % 10 == 0, rng.standard_normal(features), 0.0)
    b = A @ weights + 0.5 * rng.standard_normal(rows)
    f = functions.LeastSquares(A, b)
    mu = theory.convexity_parameter(A.T @ A, f.lipschitz())
    psi = penalties.L1(1e-4 * float(np.abs(A.T @ b).max()))
    return Problem("Lasso, 150 correlated features", f, psi, mu)


def deblurring() -> Problem:
    """(1/2)|Kx - b|^2 + (sigma/2)|x|^2 over 0 <= x <= 1: a signal from its blurred, noisy image.

    mu is known from sigma: sigma/max_i L_i.
    """
    rng = np.random.default_rng(0)
    n, width, sigma = 400, 4.0, 1e-4
    kernel = np.exp(-0.5 * (np.arange(n) / width) ** 2)
    K = toeplitz(np.where(kernel > 1e-6, kernel, 0.0) / (2 * kernel.sum() - 1))
    signal = np.zeros(n)
    for start, stop, height in ((40, 80, 1.0), (120, 140, 0.6), (200, 280, 1.0), (320, 328, 1.0)):
        signal[start:stop] = height
    f = functions.LeastSquares(K, K @ signal + 0.01 * rng.standard_normal(n), sigma=sigma)
    mu = float(sigma / f.lipschitz().max())
    return Problem("Deblurring, 400 variables in [0, 1]", f, penalties.Box(0.0, 1.0), mu)


def solve_all(problem: Problem) -> dict[str, Result]:
    """Every method on one problem, from zero, with the same seed."""
    methods: dict[str, dict[str, Any]] = {
        "apcg, gamma0 = 1": {"method": "apcg", "mu": problem.mu, "gamma0": 1.0},  # Algorithm 1
        "apcg, gamma0 = mu": {
            "method": "apcg",
            "mu": problem.mu,
        },  # Algorithm 2, run as Algorithm 4
        "apcg, mu = 0": {"method": "apcg", "mu": 0.0},  # Algorithm 3
        "rpcg, no momentum": {"method": "rpcg"},
    }
    common = {"tol": TOL, "max_epochs": MAX_EPOCHS, "check_every": CHECK_EVERY, "random_state": 0}
    return {
        name: minimize(problem.f, problem.psi, **common, **options)
        for name, options in methods.items()
    }


def print_table(problem: Problem, results: dict[str, Result]) -> None:
    print(f"\n{problem.title}\n{COLUMNS}")
    for name, r in results.items():
        mu = "-" if r.method == "rpcg" else f"{r.mu:.1e}"
        passes = f"{'' if r.converged else '>'}{r.epochs}"
        print(f"{name:<22}{mu:>9}{passes:>9}{r.fun:>17.10f}{r.residual:>12.1e}{r.seconds:>10.2f}")


def passes_to(r: Result, level: float) -> float:
    """The passes after which F(x) is at most this; infinite if it never was."""
    reached = r.trace["epoch"][r.trace["fun"] <= level]
    return float(reached[0]) if reached.size else np.inf


def print_comparison(results: dict[str, Result], optimum: float) -> None:
    """In words: passes to the same objective value, with and without momentum."""
    plain = results["rpcg, no momentum"]
    level = optimum + ACCURACY * (plain.trace["fun"][0] - optimum)
    fast, name = min((passes_to(r, level), k) for k, r in results.items() if r.method == "apcg")
    slow = passes_to(plain, level)
    more = "" if np.isfinite(slow) else "more than "
    print(
        f"To bring F - F* down to {ACCURACY:g} of where it started, '{name}' took {fast:.0f} "
        f"passes\nover the data, {more}{min(slow, MAX_EPOCHS) / fast:.1f} times fewer than the "
        "method without momentum."
    )


def draw(solved: list[tuple[Problem, dict[str, Result], float]], path: Path) -> None:
    """F(x) - F* against passes, a panel for each problem."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for ax, (problem, results, optimum) in zip(figure.subplots(1, 2), solved, strict=True):
        traces = {name: r.trace for name, r in results.items()}
        plots.convergence(traces, "fun", ax=ax, optimum=optimum)
        ax.set_xscale("log")
        ax.set_xlim(left=CHECK_EVERY)
        ax.set_title(problem.title)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    print(
        f"Stop at a residual of {TOL:g} max(1, max_i |grad_i f(0)|), "
        f"or after {MAX_EPOCHS} passes (marked >)."
    )
    solved = []
    for problem in (lasso(), deblurring()):
        results = solve_all(problem)
        best = minimize(
            problem.f, problem.psi, mu=problem.mu, tol=1e-13, max_epochs=MAX_EPOCHS, random_state=1
        )
        print_table(problem, results)
        print_comparison(results, best.fun)
        solved.append((problem, results, best.fun))
    picture = out / "convergence.png"
    draw(solved, picture)
    print(
        f"\nThe picture is {picture}.\n"
        "gamma0 = 1 begins like mu = 0 and ends like gamma0 = mu. mu = 0 needs to know nothing of\n"
        "the problem, but its rate is 1/k^2 to the end.\n"
        "Next: change rho in lasso() or sigma in deblurring() and see the lead grow or shrink;\n"
        "put your own matrix in functions.LeastSquares or functions.Logistic; or write your own\n"
        "f and psi, as in docs/own-functions.md."
    )


if __name__ == "__main__":
    main()
