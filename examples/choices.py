"""What method="auto" does, pass by pass, on text-like data and on many samples of few features.

python examples/choices.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apcg import ERM, plots, solve
from apcg.datasets import text_like


def one_hot(n: int = 20_000, groups: int = 10, levels: int = 12) -> tuple[sp.csr_array, np.ndarray]:
    """Samples of `groups` categorical variables: the columns of each group sum to one."""
    rng = np.random.default_rng(0)
    columns = rng.integers(levels, size=(n, groups)) + levels * np.arange(groups)
    start = np.arange(0, n * groups + 1, groups)
    X = sp.csr_array((np.full(n * groups, groups**-0.5), columns.ravel(), start))
    z = X @ rng.standard_normal(groups * levels) + rng.standard_normal(n)
    return X, np.where(z > np.median(z), 1.0, -1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    cases = {
        "text, n = 8000, d = 4000": (text_like(), "smoothed_hinge", 1e-6),
        "one-hot, n = 20000, d = 120": (one_hot(), "logistic", 1e-8),
    }
    figure = plots.new_figure(9, 5.5)
    axes = figure.subplots(2, 2, sharex="col", height_ratios=(2, 1))
    for (title, ((X, y), loss, alpha)), (above, below) in zip(cases.items(), axes.T, strict=True):
        problem = ERM(X, y, loss, alpha=alpha)
        found = {
            method: solve(problem, method, tol=1e-8, max_epochs=200, check_every=1, random_state=0)
            for method in ("auto", "apcg", "sdca")
        }
        plots.convergence({name: r.trace for name, r in found.items()}, "gap", above)
        plots.convergence({name: found[name].trace for name in ("auto", "apcg")}, "mu", below)
        above.set_title(f"{title}\n{loss}, {plots.lambda_label(alpha)}")
        above.set_xlabel("")
        below.set_ylabel("mu-hat")
        for name, r in found.items():
            print(
                f"{title:30} {name:5} {r.epochs:4} passes, gap/P {r.gap / r.primal:.1e}, {r.side}"
            )
    figure.savefig(out / "choices.png", dpi=110)
    print(f"The picture is {out / 'choices.png'}.")


if __name__ == "__main__":
    main()
