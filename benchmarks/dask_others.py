"""Rounds and seconds of apcg.dask and of dask-glm's L-BFGS (dask-ml's) on one cluster of processes.

    APCG_DATA_DIR=... python benchmarks/dask_others.py [--data covtype rcv1] [--workers 2]

Logistic loss with L2, no intercept, no scaling of columns: the same problem. dask-glm has no gap:
it is counted until its loss is within tol of the optimum that apcg certifies; each value of the
loss is a round. Its Newton method has no penalty. X is in the workers' memory before.
"""

import argparse
import contextlib
import time
import warnings

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from data import load
from distributed import Client, LocalCluster

import apcg
from apcg.dask import ERM, solve

ALPHA = {"covtype": (1e-4, 1e-6), "rcv1": (1e-4, 1e-6)}


def chunks(X, pieces, kind):
    rows = -(-X.shape[0] // pieces)
    parts = [kind(X[first : first + rows]) for first in range(0, X.shape[0], rows)]
    made = [da.from_delayed(dask.delayed(part), part.shape, float, meta=part[:0]) for part in parts]
    return da.concatenate(made)


class Enough(Exception):
    """All tolerances are reached."""


def others(X, y, alpha, n, best, tols):
    """(rounds, seconds) to each tolerance, or None."""
    import dask_glm.algorithms as glm
    from scipy.optimize import fmin_l_bfgs_b

    found, begun, count = {}, time.perf_counter(), 0

    def watched(function, start, **given):
        def value(beta, *args):
            nonlocal count
            loss, gradient = function(beta, *args)
            count += 1
            for tol in tols:
                if float(loss) / n <= best * (1 + tol) and tol not in found:
                    found[tol] = count, time.perf_counter() - begun
            if len(found) == len(tols) or count >= 400:
                raise Enough
            return float(loss), np.asarray(gradient, dtype=float)

        return fmin_l_bfgs_b(value, start, factr=0, **{**given, "maxiter": 1000, "pgtol": 0})

    glm.fmin_l_bfgs_b = watched
    with contextlib.suppress(Enough):
        glm.lbfgs(X, y, regularizer="l2", lamduh=alpha * n, normalize=False)
    return [found.get(tol) for tol in tols]


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(ALPHA))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    tols = (1e-3, 1e-6)
    cluster = LocalCluster(given.workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        for name in given.data:
            X, y = load(name, unit_rows=name != "rcv1")
            compare(client, name, X, y, given.workers, tols)


def compare(client, name, X, y, workers, tols):
    n = len(y)
    dense = X.shape[1] < 1000
    ours = client.persist(
        chunks(X, 4 * workers, (lambda p: p.toarray()) if dense else sp.csr_matrix)
    )
    if dense:
        theirs = ours
    else:
        import sparse

        theirs = client.persist(chunks(X, workers, lambda p: sparse.GCXS.from_scipy_sparse(p)))
    labels = client.persist(da.from_array((y + 1) / 2, chunks=(theirs.chunks[0],)))
    for alpha in ALPHA[name]:
        one = time.process_time()
        best = apcg.solve(apcg.ERM(X, y, "logistic", alpha=alpha), tol=1e-9, random_state=0).primal
        one = time.process_time() - one
        rows = []
        for tol in tols:
            looks, begun = [], time.perf_counter()
            r = solve(
                ERM(ours, y, "logistic", alpha=alpha),
                tol=tol,
                random_state=0,
                callback=looks.append,
            )
            total = time.perf_counter() - begun
            trace = r.trace
            rows.append((trace.messages[-1], trace.vectors[-1], r.seconds, total))
        theirs_found = others(theirs, labels, alpha, n, best, tols)
        for tol, (messages, vectors, seconds, total), other in zip(
            tols, rows, theirs_found, strict=True
        ):
            words = f"{other[0]} rounds {other[1]:.1f} s" if other else "not in 400 rounds"
            print(
                f"{name} alpha {alpha:g} to {tol:g}: apcg {messages} messages, {vectors} vectors "
                f"before the certificate, {seconds:.1f} s (with dealing {total:.1f} s); "
                f"dask-glm L-BFGS {words}; one machine {one:.1f} CPU s to 1e-9",
                flush=True,
            )


if __name__ == "__main__":
    main()
