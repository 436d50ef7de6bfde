"""Vectors, messages and passes to a gap of 1e-6, K shards in this process: no cluster is needed.

    APCG_DATA_DIR=... python benchmarks/dask_rounds.py [--shards 8] [--data rcv1 a9a covtype]

A vector is a sum over all shards of as many numbers as there are features, a message any round
trip, a pass one pass of each shard over its rows. `by label` has the rows sorted by label.
"""

import argparse
import warnings

import numpy as np
from data import load

from apcg.data import by_row
from apcg.engines import InProcess
from apcg.methods.distributed.driver import Driver, Limits
from apcg.methods.distributed.problem import sharded
from apcg.methods.distributed.shard import Shard

CELLS = {
    "rcv1": [("logistic", 1e-4), ("logistic", 1e-6), ("logistic", 1e-7), ("smoothed_hinge", 1e-5),
             ("hinge", 1e-4)],
    "a9a": [("logistic", 1e-6), ("logistic", 1e-8), ("smoothed_hinge", 1e-6), ("hinge", 1e-5)],
    "covtype": [("logistic", 1e-6), ("logistic", 1e-8), ("smoothed_hinge", 1e-6)],
}  # fmt: skip


def engine(X, y, order, shards):
    parts = np.array_split(order, shards)
    return InProcess([
        lambda k=k, rows=rows: Shard(by_row(X[rows], "X"), y[rows], None, k, rows)
        for k, rows in enumerate(parts)
    ])  # fmt: skip


def orders(y):
    """Rows at random; sorted by label and dealt; sorted by label, each shard a block of them."""
    n, rng = len(y), np.random.default_rng(0)
    yield "at random", rng.permutation(n)
    by_label = np.argsort(y, kind="stable")
    chunks = np.array_split(by_label, 40)
    dealt = [[] for _ in range(8)]
    for chunk in chunks:
        mixed = rng.permutation(chunk)
        for k in range(8):
            dealt[k].append(mixed[k::8])
    yield "by label, dealt", np.concatenate([rows for parts in dealt for rows in parts])
    yield "by label", by_label


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--data", nargs="*", default=list(CELLS))
    given = parser.parse_args()
    print("data      loss            alpha  rows             vectors  grams  messages  passes  gap")
    for name in given.data:
        X, y = load(name, unit_rows=name != "rcv1")
        for loss, alpha in CELLS[name]:
            for words, order in orders(y):
                made = engine(X, y, order, given.shards)
                run = Driver(made, sharded(made, loss, alpha=alpha), Limits(1e-6))
                r, s = run.solve(), run.sums
                spent = f"{s.vectors:7} {s.grams:6} {s.messages:9} {s.passes:7.0f}"
                cell = f"{name:9} {loss:15} {alpha:.0e}  {words:16}"
                print(f"{cell} {spent}  {r.gap / r.primal:.1e}", flush=True)


if __name__ == "__main__":
    main()
