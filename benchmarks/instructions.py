"""Instructions a step, APCG against SDCA, by callgrind: the paper says that APCG costs twice SDCA.

    python benchmarks/instructions.py --nonzeros 10 75 400 --loss smoothed_hinge

Counts all instructions under the kernel's entry for three passes over generated data, divided by
the number of steps. Needs valgrind and callgrind_annotate.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apcg import ERM
from apcg.methods.apcg import APCG
from apcg.methods.sdca import SDCA
from apcg.sequences import Sequence

N, D, PASSES = 4000, 5000, 3
ENTRY = {"apcg": r"coordinate_\d+run\b", "sdca": r"coordinate_\d+run_plain\b"}


def work(method, nonzeros, loss, dtype):
    """What is measured: three passes."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(D, nonzeros, replace=False) for _ in range(N)])
    values = rng.standard_normal(N * nonzeros).astype(dtype)
    indptr = np.arange(N + 1, dtype=np.int32) * nonzeros
    X = sp.csr_matrix((values, columns.astype(np.int32), indptr), shape=(N, D))
    p = ERM(X, np.where(rng.random(N) < 0.5, -1.0, 1.0), loss, "l2", 1e-5)
    start = np.zeros(N)
    stepper = SDCA(p.form, start)
    if method == "apcg":
        stepper = APCG(p.form, start, Sequence(N, p.mu, p.mu))
    for _ in range(PASSES):
        stepper.epoch(rng.permutation(N))


def count(method, nonzeros, loss, dtype):
    """Instructions a step of the kernel, all that it calls included."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable]
        arguments = [__file__, "--work", method, str(nonzeros), loss, dtype]
        subprocess.run(command + arguments, check=True, capture_output=True)
        annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)]
        report = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout
    for line in report.splitlines():
        if re.search(ENTRY[method], line):
            return int(line.split("(")[0].strip().replace(",", "")) / (N * PASSES)
    raise RuntimeError("callgrind did not see the kernel")


def main():
    if sys.argv[1:2] == ["--work"]:
        method, nonzeros, loss, dtype = sys.argv[2:]
        work(method, int(nonzeros), loss, dtype)
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nonzeros", nargs="+", type=int, default=[10, 75, 400])
    parser.add_argument("--loss", nargs="+", default=["smoothed_hinge", "logistic"])
    parser.add_argument("--dtype", nargs="+", default=["float64"])
    a = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("This needs valgrind: apt-get install valgrind, or your system's package of it.")
    print("| loss | values | nonzeros a row | APCG | SDCA | ratio |\n|---|---|---|---|---|---|")
    for loss in a.loss:
        for dtype in a.dtype:
            for nonzeros in a.nonzeros:
                x, s = (count(m, nonzeros, loss, dtype) for m in ("apcg", "sdca"))
                row = f"| {loss} | {dtype} | {nonzeros} | {x:.0f} | {s:.0f} | {x / s:.2f} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
