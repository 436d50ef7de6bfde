"""Measures the rates of `apcg.methods.costs` on this machine, in nanoseconds.

    python benchmarks/rates.py

The table in the package is fixed, so that a rerun takes the same decisions. This says how far this
machine is from it: what matters are the ratios between the rows.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.linalg import cho_factor

from apcg import ERM, datasets
from apcg.methods.paper.sdca import SDCA
from apcg.problems.costs import RATES


def nanoseconds(action, least=0.05, repeat=5):
    """The least CPU time of one call, from calls repeated for `least` seconds."""
    times = []
    for _ in range(repeat):
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < least:
            action()
            count += 1
        times.append(spent / count)
    return 1e9 * min(times)


def steps(X, y):
    """Nanoseconds of a pass of coordinate steps over these rows."""
    p = ERM(X, y, "smoothed_hinge", alpha=1e-4)
    method = SDCA(p.form, np.zeros(p.n))
    order = np.random.default_rng(0).permutation(p.n)
    return nanoseconds(lambda: method.epoch(order)), p


def main():
    rng = np.random.default_rng(0)
    # two lengths of rows tell the cost of a nonzero and of a step apart
    (short, p), (long, q) = (
        steps(*datasets.text_like(20_000, 50_000, k, noise=0.3)) for k in (10, 100)
    )
    nonzero = (long - short) / (q.samples.nnz - p.samples.nnz)
    w, x = rng.standard_normal(q.d), rng.random(q.n)
    products = nanoseconds(lambda: q.samples.times(w)) + nanoseconds(lambda: q.samples.adjoint(x))
    dense = ERM(datasets.text_like(5000, 300, 30)[0], rng.choice([-1.0, 1.0], 5000), "logistic")
    lengths = dense.samples.lengths
    gram = nanoseconds(lambda: dense.samples.gram(np.ones(dense.n)))
    H = rng.standard_normal((600, 300))
    H = H.T @ H
    factor = nanoseconds(lambda: cho_factor(H))
    z = rng.standard_normal(20_000)
    value = nanoseconds(lambda: dense.loss.arrays.value(z))
    measured = {
        "step_nonzero": nonzero,
        "step": (short - nonzero * p.samples.nnz) / p.n,
        "product_nonzero": products / (2 * q.samples.nnz),
        "gram_entry": gram / (0.5 * float(np.sum(lengths * (lengths + 1)))),
        "cholesky_entry": factor / (300**3 / 6),
        "vector_entry": nanoseconds(lambda: np.where(z > 0, z, 0.0)) / z.size,
        "loss": 2 * value / z.size,
    }
    print("| rate | here, ns | in the table |\n|---|---|---|")
    for name, found in measured.items():
        print(f"| {name} | {found:.2f} | {getattr(RATES, name):g} |")


if __name__ == "__main__":
    main()
