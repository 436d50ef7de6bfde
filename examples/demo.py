"""`apcg train` and `apcg compare` on data that needs no download, and what to try next.

python examples/demo.py --out out
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from apcg.cli import main

NEXT = """
Pictures are in {out}: {pictures}.

`breast_cancer` comes with scikit-learn; `text` is generated, like text and ill-conditioned at
lambda = 1e-6: there momentum pays (auto and apcg against sdca), at 1e-4 it does not matter.

Next, with .venv/bin in your PATH:
  apcg info text                                  how hard is it, and what does theory promise?
  apcg train YOUR.libsvm --model yours.npz        your own data: LIBSVM text or an .npz of X and y
  apcg predict {out}/text.npz text | head
  apcg reproduce --quick                          the paper's figures on generated data, a minute
  APCG_DATA_DIR=... apcg reproduce                the same on rcv1, covtype and news20
  python examples/composite.py                    f + psi: Lasso, box constraints, your own
"""


def run(*words: str) -> None:
    """Show a command, and run it."""
    print(f"\n$ {shlex.join(['apcg', *words])}", flush=True)
    try:
        main(list(words))
    except SystemExit as left:
        if left.code:
            raise


def demo() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    to = ("--out", str(out))
    run("train", "breast_cancer", "--loss", "logistic", "--alpha", "1e-4")
    run("compare", "breast_cancer", "--loss", "logistic", "--alpha", "1e-4", *to)
    run("train", "text", "--alpha", "1e-6", "--model", str(out / "text.npz"))
    run("compare", "text", "--alpha", "1e-4,1e-6", "--methods", "auto,apcg,sdca", *to)
    pictures = ", ".join(sorted(p.name for p in out.glob("*-convergence.png")))
    print(NEXT.format(out=out, pictures=pictures))


if __name__ == "__main__":
    demo()
