"""Data that is small enough to be solved in this process, though it is on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certify.result import Solution, Trace
from ..engines import Engine, InProcess
from ..methods.distributed.driver import COLUMNS, Limits, Look
from ..methods.distributed.problem import Sharded
from ..methods.distributed.shard import Shard
from ..problems.erm import ERM
from ..run.solve import solve
from .chunks import stacked

#: At most so many numbers of X, about 50 MB, are brought here: one machine solves them in less time
#: than rounds over the network take (rcv1, 1.7 million numbers: docs/scale.md).
FEW = 4e6


def brought_here(engine: Engine) -> InProcess:
    """One shard with the rows of all, in the order that the whole data has."""
    Xs, ys, weights, places = zip(*engine.ask("everything"), strict=True)
    order = np.argsort(np.concatenate(places), kind="stable")
    s = None if weights[0] is None else np.concatenate(weights)[order]
    X, y = stacked(Xs).rows(order), np.concatenate(ys)[order]
    return InProcess([lambda: Shard(X, y, s)])


def solve_here(engine: InProcess, problem: Sharded, limits: Limits, seed: int) -> Solution:
    """The problem of such a shard, solved by `apcg.solve`."""
    ((X, _, s, _),), (y,) = engine.each("everything"), engine.each("codes", problem.job)
    whole = ERM(X, y, problem.loss, alpha=problem.alpha, sample_weight=s,
                intercept=problem.intercept, **problem.asked)  # fmt: skip
    seen, own = -1, limits.callback

    def shown(check: Any) -> Any:
        nonlocal seen
        seen += 1
        return own is not None and own(
            Look(seen, check.epoch, 0, 1, check.seconds, check.primal, check.dual, check.measure,
                 str(check.method), np.array(check.w), check.intercept)
        )  # fmt: skip

    r = solve(whole, tol=limits.tol, max_epochs=limits.max_epochs, random_state=seed,
              time_limit=limits.time_limit, callback=shown if own else None)  # fmt: skip
    r.trace = _as_on_a_cluster(r.trace, f"solved here: X has {problem.nnz:,} numbers only")
    return r


def _as_on_a_cluster(trace: Trace, why: str) -> Trace:
    """The record with columns for vectors and messages: one message brought the rows."""
    made = Trace(*COLUMNS)
    made.notes = [why, *trace.notes]
    for k in range(len(trace)):
        made.append(**{name: trace[name][k] for name in trace}, vectors=0, messages=1)
    return made
