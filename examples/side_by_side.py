"""All methods that the paper speaks of on one text-like problem, for a large and a small lambda.

python examples/side_by_side.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

from apcg import ERM, plots, solve
from apcg.datasets import text_like
from apcg.experiments import comparison

METHODS = ("apcg", "accelerated_sdca", "sdca", "sag", "svrg", "afg")
ALPHAS = (1e-4, 1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--passes", type=int, default=300)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    X, y = text_like()
    rows, panels = ("", " "), {}  # P(w) - P* and the gap: the axes say it
    for alpha in ALPHAS:
        problem = ERM(X, y, "smoothed_hinge", alpha=alpha)
        best = solve(problem, tol=1e-12, random_state=0).primal
        found, _ = comparison.run(problem, METHODS, passes=args.passes, tol=1e-9)
        traces = {name: r.trace for name, r in found.items()}
        column = plots.lambda_label(alpha)
        panels[rows[0], column] = {"traces": traces, "y": "primal", "optimum": best, "log_x": True}
        panels[rows[1], column] = {"traces": traces, "y": "gap", "log_x": True}
        for name, r in found.items():
            at = comparison.cost(r, 1e-6)
            shown = f"{at[0]:4.0f} passes to a gap of 1e-6" if at else "did not arrive"
            print(f"lambda {alpha:g}  {name:17} {shown}")
    figure = plots.grid(rows, [plots.lambda_label(a) for a in ALPHAS], panels)
    figure.set_size_inches(9, 6.5)
    figure.savefig(args.out / "side-by-side.png", dpi=110)
    print(f"The picture is {args.out / 'side-by-side.png'}.")


if __name__ == "__main__":
    main()
