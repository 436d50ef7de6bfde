"""A classifier on a Dask cluster, started here in three lines: python examples/dask_cluster.py

Each chunk is generated on the worker that needs it, so that no process ever has all rows.
"""

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from apcg.dask import APCGClassifier

ROWS, FEATURES, CHUNK = 200_000, 40, 20_000


def main():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        print(f"{len(client.scheduler_info()['workers'])} workers, {client.dashboard_link}")
        rng = da.random.default_rng(0)
        X = rng.standard_normal((ROWS, FEATURES), chunks=(CHUNK, FEATURES))
        noise = rng.standard_normal(ROWS, chunks=CHUNK)
        y = (X @ np.linspace(1, -1, FEATURES) + 2 * noise > 0).astype(int)
        train(X, y)


def train(X, y):
    model = APCGClassifier("logistic", alpha=1e-5, random_state=0).fit(X, y)
    print(model.status_)
    print(f"the objective is within {model.duality_gap_:.1e} of the optimum")
    last = {name: int(model.trace_[name][-1]) for name in ("messages", "vectors", "restarts")}
    print(f"{last['messages']} messages, {last['vectors']} of them with a vector")
    print(f"accuracy {float(model.score(X, y)):.4f}")
    print(model.predict_proba(X))


if __name__ == "__main__":
    main()
