"""`ERM` and `solve` for rows on the workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, default_client
from tqdm import tqdm

from .._base import validation as check
from ..certify.result import Solution
from ..engines import Engine, InProcess, NoWorkers
from ..engines.dask import DaskEngine
from ..methods.distributed.driver import Driver, Limits, Look
from ..methods.distributed.problem import Sharded, sharded
from ..run.loop import Options
from .chunks import shard, shards_of
from .here import FEW, brought_here, solve_here


class ERM:
    """minimize P(w) = the mean over i of s_i phi(a_i' w, y_i) + alpha g(w), rows in dask chunks.

    Parameters
    ----------
    X : dask array or dask dataframe
        An array has dense or SciPy sparse chunks.
    y : dask array, dask series or array
        With the same chunks: -1 and 1 for the hinge family and logistic, 0..K-1 for "multinomial",
        real numbers for the others.
    sample_weight : dask array, dask series or array, optional
        With the same chunks.
    loss, penalty, alpha, l1_ratio, positive, intercept
        As in `apcg.ERM`. Losses are those of apcg; penalties those of features ("l2", "l1",
        "elasticnet", bounds), with alpha > 0.
    """

    def __init__(
        self, X: Any, y: Any, loss: Any = "smoothed_hinge", penalty: Any = "l2",
        alpha: float = 1e-4, sample_weight: Any = None, l1_ratio: float = 0.5,
        positive: bool = False, intercept: bool = False,
    ) -> None:  # fmt: skip
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.options: dict[str, Any] = {
            "loss": loss, "penalty": penalty, "alpha": alpha, "l1_ratio": l1_ratio,
            "positive": positive, "intercept": intercept,
        }  # fmt: skip

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.options.items())
        return f"apcg.dask.ERM(X of shape {tuple(self.X.shape)}, {given})"


def solve(
    problem: ERM, *, client: Client | None = None, tol: float = 1e-6, max_epochs: int = 1000,
    shards: int | None = None, shuffle: bool = True, random_state: Any = None,
    callback: Callable[[Look], Any] | None = None, verbose: int = 0,
    time_limit: float | None = None, timeout: float = 60.0, dual_point: bool = False,
) -> Solution:  # fmt: skip
    """Minimize P(w) and certify it: stop when P(w) - D(x) <= tol |P(w)|.

    Parameters
    ----------
    problem : apcg.dask.ERM
        What to solve.
    client : Client, optional
        The Dask client; None is the current one.
    tol, max_epochs, time_limit
        As in `apcg.solve`.
    shards : int, optional
        Into how many parts the rows are put. None is the number of workers; but data of at
        most 4 million numbers (about 50 MB) is brought to this process and solved here, which takes
        less time than rounds over the network. The same chunks, shards and seed give the same bits,
        whatever worker holds what.
    shuffle : bool
        Deal the rows of each chunk to all shards. Without it a shard has whole chunks, which
        is right if rows are in random order already; else it may take far more rounds.
    callback : callable, optional
        Called at each look with iteration, epoch, vectors, messages, seconds, primal, dual,
        gap (relative), method, w, intercept; a true value stops.
    verbose : int
        1 shows a bar that counts rounds.
    timeout : float
        Seconds that the cluster may be without workers. Then `engines.NoWorkers` is raised,
        whose `best` is the answer so far.
    dual_point : bool
        Bring x to this process; else it stays away, and `x` of the answer is empty.

    Returns
    -------
    Solution
        Its trace has the vectors (sums of as many numbers as there are features) and messages
        (round trips) too.
    """
    if not isinstance(problem, ERM):
        raise TypeError(f"problem must be an apcg.dask.ERM, got {type(problem).__name__}.")
    limits = limits_of(tol, max_epochs, time_limit, callback)
    with engine_for(problem, client, shards, shuffle, random_state, timeout) as (engine, seed):
        made = sharded(engine, **problem.options)
        return solved(engine, made, limits, seed, shuffle, verbose, dual_point)


def limits_of(tol: Any, max_epochs: Any, time_limit: Any = None, callback: Any = None) -> Limits:
    """When to stop and whom to tell, checked as `apcg.solve` does."""
    check.function(callback, "callback", optional=True)
    o = Options(tol=tol, max_epochs=max_epochs, time_limit=time_limit)
    return Limits(o.tol, o.max_epochs, o.time_limit, callback)


@contextmanager
def engine_for(
    problem: ERM, client: Client | None, shards: int | None, shuffle: bool, random_state: Any,
    timeout: float,
) -> Iterator[tuple[Engine, int]]:  # fmt: skip
    """An engine with the rows of a problem, and a seed for what is done there."""
    timeout = check.number(timeout, "timeout", low=0.0, hint="it is in seconds")
    client = default_client() if client is None else client
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    count = len(workers) or 1
    alone = shards is None
    shards = count if shards is None else check.integer(shards, "shards", low=1)
    seed = int(check.generator(random_state).integers(2**31))
    rows = shards_of(problem.X, problem.y, problem.sample_weight, shards, shuffle, seed, workers)
    with DaskEngine(client, rows, shard, timeout) as engine:
        few = alone and engine.ask_sum("sizes")[3] <= FEW
        yield brought_here(engine) if few else engine, seed


def solved(
    engine: Engine, problem: Sharded, limits: Limits, seed: int, shuffle: bool,
    verbose: int = 0, dual_point: bool = False, w: Any = None,
) -> Solution:  # fmt: skip
    """One solve on an engine, with its warnings and its bar."""
    with tqdm(disable=not verbose, unit=" rounds", desc="apcg") as bar:
        own = limits.callback

        def shown(look: Look) -> Any:
            bar.n = look.messages
            bar.set_postfix_str(f"relative gap {look.gap:.1e}")
            return own(look) if own is not None else False

        if verbose:
            limits = Limits(limits.tol, limits.max_epochs, limits.time_limit, shown)
        if isinstance(engine, InProcess):
            return solve_here(engine, problem, limits, seed)
        driver = Driver(engine, problem, limits, seed, w)
        r = driver.solve()
    if not shuffle and driver.unmixed:
        warnings.warn(
            "local steps brought little: the rows of the shards are not alike. Take shuffle=True, "
            "which deals the rows of each chunk to all shards.",
            stacklevel=4,
        )
    if dual_point:
        r.x = driver.dual_point()
    return r


__all__ = ["ERM", "NoWorkers", "solve"]
