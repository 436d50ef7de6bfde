"""Rounds and seconds of apcg.dask and of the solvers of dask-ml (dask-glm's), on one cluster.

    APCG_DATA_DIR=... python benchmarks/dask_others.py [--data covtype rcv1] [--workers 2]

Logistic loss with L2, no intercept, no scaling of columns: the same problem. dask-glm has no gap:
each solver is counted until P is within tol of the optimum that apcg certifies; each computation
on the cluster is a round. Those without a penalty (Newton, gradient descent) cannot solve this. X
is in the workers' memory before.
"""

import argparse
import contextlib
import time
import warnings
from unittest import mock

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
    """All tolerances are reached, or that was too many rounds."""


class Watch:
    """Counts computations on the cluster, and sees the points of a solver."""

    def __init__(self, value, best, tols, most):
        self.value, self.levels, self.most = value, {tol: best * (1 + tol) for tol in tols}, most
        self.rounds, self.found, self.begun, self.out = 0, {}, time.perf_counter(), 0.0

    def counted(self, function):
        def compute(*args, **given):
            self.rounds += 1
            return function(*args, **given)

        return compute

    def sees(self, beta):
        """Note what is reached; the time this takes is not the solver's."""
        start = time.perf_counter()
        value = self.value(np.asarray(beta))
        for tol, level in self.levels.items():
            if value <= level and tol not in self.found:
                self.found[tol] = self.rounds, start - self.begun - self.out
        self.out += time.perf_counter() - start
        if len(self.found) == len(self.levels) or self.rounds >= self.most:
            raise Enough


def others(solver, X, y, lamduh, watch):
    """Run a solver of dask-glm until all is reached: "lbfgs", "admm" or "proximal_grad"."""
    import dask_glm.algorithms as glm
    from dask_glm.regularizers import L2
    from scipy.optimize import fmin_l_bfgs_b

    class Watched(L2):
        def proximal_operator(self, beta, t):
            z = super().proximal_operator(beta, t)
            watch.sees(z.compute() if hasattr(z, "compute") else z)
            return z

    def minimize(function, start, **given):
        def value(beta, *args):
            loss, gradient = function(beta, *args)
            watch.sees(beta)
            return float(loss), np.asarray(gradient, dtype=float)

        return fmin_l_bfgs_b(value, start, factr=0, **{**given, "maxiter": 1000, "pgtol": 0})

    with (
        mock.patch.multiple(
            glm, compute=watch.counted(glm.compute), persist=watch.counted(glm.persist)
        ),
        mock.patch.object(da, "compute", watch.counted(da.compute)),
        contextlib.suppress(Enough),
    ):
        if solver == "lbfgs":
            with mock.patch.object(glm, "fmin_l_bfgs_b", minimize):
                glm.lbfgs(X, y, regularizer="l2", lamduh=lamduh, normalize=False)
        elif solver == "admm":
            glm.admm(X, y, Watched(), lamduh, max_iter=1000, abstol=0, reltol=0, normalize=False)
        else:
            glm.proximal_grad(X, y, Watched(), lamduh, max_iter=1000, tol=0, normalize=False)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(ALPHA))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--solvers", nargs="*", default=["lbfgs", "admm", "proximal_grad"])
    parser.add_argument("--most", type=int, default=400, help="rounds")
    parser.add_argument("--shards", type=int, help="apcg: so many, and nothing is brought here")
    given = parser.parse_args()
    tols = (1e-3, 1e-6)
    cluster = LocalCluster(given.workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        for name in given.data:
            X, y = load(name, unit_rows=name != "rcv1")
            compare(client, name, X, y, tols, given)


def compare(client, name, X, y, tols, given):
    n, workers, solvers, most = len(y), given.workers, given.solvers, given.most
    dense = X.shape[1] < 1000
    ours = client.persist(
        chunks(X, 4 * workers, (lambda p: p.toarray()) if dense else sp.csr_matrix)
    )
    if dense:
        theirs = ours
    else:
        import sparse

        theirs = client.persist(chunks(X, workers, lambda p: sparse.COO.from_scipy_sparse(p)))
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
                shards=given.shards,
            )
            total = time.perf_counter() - begun
            trace = r.trace
            rows.append((trace.messages[-1], trace.vectors[-1], r.seconds, total))
        for tol, (messages, vectors, seconds, total) in zip(tols, rows, strict=True):
            print(
                f"{name} alpha {alpha:g} to {tol:g}: apcg {messages} messages, {vectors} vectors "
                f"before the certificate, {seconds:.1f} s (with dealing {total:.1f} s); "
                f"one machine {one:.1f} CPU s to 1e-9",
                flush=True,
            )
        erm = apcg.ERM(X, y, "logistic", alpha=alpha)
        for solver in solvers:
            watch = Watch(erm.primal, best, tols, most)
            others(solver, theirs, labels, alpha * n, watch)
            said = [
                f"to {tol:g} {watch.found[tol][0]} rounds {watch.found[tol][1]:.1f} s"
                if tol in watch.found else f"to {tol:g} not in {watch.rounds} rounds"
                for tol in tols
            ]  # fmt: skip
            print(f"{name} alpha {alpha:g}: dask-glm {solver} {'; '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
