"""Problems in shards in this process, and what certifies their answers: ERM of all rows."""

import numpy as np

from apcg import ERM
from apcg.data import by_row
from apcg.engines import InProcess
from apcg.methods.distributed.driver import Driver, Limits
from apcg.methods.distributed.problem import sharded
from apcg.methods.distributed.shard import Shard


def engine(X, y, shards, weights=None, order=None):
    """Rows dealt to shards, at random unless an order is given."""
    order = np.random.default_rng(7).permutation(len(y)) if order is None else order
    parts = np.array_split(order, shards)

    def maker(k):
        rows = parts[k]
        s = None if weights is None else weights[rows]
        return lambda: Shard(by_row(X[rows], "X"), y[rows], s, k, rows)

    return InProcess([maker(k) for k in range(shards)])


def solved(X, y, shards, loss, penalty="l2", alpha=1e-3, tol=1e-6, intercept=False, weights=None,
           order=None, limits=None, on=None, **options):  # fmt: skip
    """(answer, driver, ERM of all rows), the certificate compared with what ERM says of it."""
    made = on or engine(X, y, shards, weights, order)
    problem = sharded(made, loss, penalty, alpha, intercept=intercept, **options)
    driver = Driver(made, problem, limits or Limits(tol))
    r = driver.solve()
    whole = ERM(X, y, loss, penalty, alpha, intercept=intercept, sample_weight=weights, **options)
    scale = abs(r.primal)
    assert abs(whole.primal(r.w, r.intercept) - r.primal) <= 1e-12 * scale
    assert abs(whole.dual(driver.dual_point()) - r.dual) <= 1e-12 * scale
    return r, driver, whole
