"""Two workers beside one machine: seconds by the clock to a relative gap of 1e-6, and a round.

    APCG_DATA_DIR=... python benchmarks/dask_two_workers.py [--rows 2000000]

X is in the workers' memory before; dealing the rows counts. Two processes that share two cores
with the driver gain nothing: take a cluster for data that one machine cannot hold.
"""

import argparse
import time
import warnings

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask_others import chunks
from data import load
from distributed import Client, LocalCluster

import apcg
from apcg.dask import ERM, solve
from apcg.data import by_row
from apcg.engines.dask import DaskEngine
from apcg.methods.distributed.shard import Shard


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the generated data")
    given = parser.parse_args()
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "apcg.methods.distributed.shard")
        empty_round(client)
        for name in ("rcv1", "covtype"):
            X, y = load(name, unit_rows=name != "rcv1")
            kind = sp.csr_matrix if X.shape[1] > 1000 else dense
            compare(name, client.persist(chunks(X, 8, kind)), kind(X), y)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((given.rows, 30))
        y = np.sign(X @ rng.standard_normal(30) + 3 * rng.standard_normal(given.rows))
        parts = da.from_array(X, chunks=(-(-given.rows // 8), 30))
        compare("generated", client.persist(parts), X, y)


def dense(part):
    return part.toarray()


def empty_round(client):
    """The least time of a message to two shards and their answer."""
    rows = [dask.delayed(np.ones)((2, 2)), dask.delayed(np.ones)((2, 2))]

    def shard(X):
        return Shard(by_row(X, "X"), np.ones(2), None)

    with DaskEngine(client, rows, shard) as engine:
        took = []
        for _ in range(300):
            begun = time.perf_counter()
            engine.each("shape")
            took.append(time.perf_counter() - begun)
    best, middle = 1e3 * min(took), 1e3 * np.median(took)
    print(f"an empty round: {best:.1f} ms at best, {middle:.1f} in the middle")


def compare(name, there, X, y):
    for alpha in (1e-4, 1e-6):
        begun = time.perf_counter()
        one = apcg.solve(apcg.ERM(X, y, "logistic", alpha=alpha), random_state=0)
        middle = time.perf_counter()
        two = solve(ERM(there, y, "logistic", alpha=alpha), random_state=0, shards=2)
        end = time.perf_counter()
        print(
            f"{name} {X.shape} alpha {alpha:g}: one machine {middle - begun:.2f} s, two workers "
            f"{end - middle:.2f} s, of which {two.seconds:.2f} after dealing; "
            f"{two.trace.messages[-1]} messages; P {one.primal:.9f} {two.primal:.9f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
