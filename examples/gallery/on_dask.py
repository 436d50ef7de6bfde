"""Rows on a Dask cluster.

`apcg.dask` has the estimators for dask arrays and dataframes: the rows stay with the workers, which
send sums. The answer and its certificate are those of one machine, as the picture shows: weights
found on the cluster against weights found here.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import apcg
import apcg.dask

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = np.where(X @ rng.normal(size=30) + rng.normal(size=20_000) > 0, 1, -1)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = da.from_array(X, chunks=(2_500, 30))
        labels = da.from_array(y, chunks=2_500)
        there = apcg.dask.APCGClassifier("logistic", alpha=1e-3, tol=1e-9, client=client)
        there.fit(rows, labels)
    here = apcg.APCGClassifier("logistic", alpha=1e-3, tol=1e-9).fit(X, y)
    print("gap on the cluster below 1e-9:", bool(there.duality_gap_ < 1e-9))
    difference = np.abs(there.coef_ - here.coef_).max()
    print("largest difference of weights below 1e-3:", bool(difference < 1e-3))

    figure, ax = plt.subplots(figsize=(4.2, 3.6), layout="constrained")
    ax.plot(here.coef_[0], there.coef_[0], "o", color="#b2182b", ms=4)
    ax.axline((0, 0), slope=1, color="black", lw=0.5)
    ax.set_xlabel("weights, one machine")
    ax.set_ylabel("weights, Dask")
    figure.savefig("dask.png", dpi=110)
