"""Section 5.3 of the paper: the runs behind Table 1 and Figures 1 and 2.

A cell is one data set and one lambda: APCG, SDCA and AFG with the smoothed hinge loss, gamma = 1,
and then `auto` for longer, so that P* and its proof are better known than from the three alone.
`OTHERS` are the methods that section 5 compares with by their theory only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from .. import model
from .._base.types import Array
from ..certify.result import Trace
from ..datasets import Dataset
from ..problems.erm import ERM
from ..run.solve import solve
from . import comparison

DATA = ("rcv1", "covtype", "news20")
ALPHAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
METHODS = ("apcg", "sdca", "afg")
OTHERS = ("sag", "svrg", "accelerated_sdca")
PASSES = 100
#: How many times as long the run for P* may take.
LONGER = 3
#: The relative gap at which a run ends.
TOL = 1e-12

#: Table 1: samples, features, sparsity in per cent.
TABLE_1 = {
    "rcv1": (20_242, 47_236, 0.16),
    "covtype": (581_012, 54, 22.0),
    "news20": (19_996, 1_355_191, 0.04),
}


@dataclass(eq=False)
class Cell:
    """What was measured for one data set and one lambda."""

    data: str
    alpha: float
    traces: dict[str, Trace] = field(default_factory=dict)
    primal: float = np.inf  # the best P of all runs, which is P* as far as it is known
    dual: float = -np.inf  # the best D, below which P* cannot be
    complete: bool = False

    def errors(self, method: str, measure: str) -> Array:
        """P(w) - P* ("primal") or the duality gap ("gap") at each pass of a method."""
        trace = self.traces[method]
        return trace["primal"] - self.primal if measure == "primal" else trace["gap"]

    def take(self, method: str, trace: Trace) -> None:
        """Keep a curve, and what it says of P*."""
        self.traces[method] = trace
        self.learn(trace)

    def learn(self, trace: Trace) -> None:
        """What a run says of P*."""
        self.primal = min(self.primal, float(trace["primal"].min()))
        self.dual = max(self.dual, float(trace["dual"].max()))


def run_cell(
    problem: ERM,
    data: str,
    passes: int,
    seed: int,
    stop: threading.Event,
    tick: Callable[[], None],
    methods: tuple[str, ...] = METHODS,
) -> Cell:
    """All runs of a cell, until they are done or `stop` is set."""

    def look(_: object) -> bool:
        tick()
        return stop.is_set()

    cell = Cell(data, problem.alpha)
    for method in methods:
        if not stop.is_set():
            found, _ = comparison.run(
                problem, [method], passes=passes, tol=TOL, seed=seed, callback=look
            )
            cell.take(method, found[method].trace)
    if not stop.is_set():
        reference = solve(
            problem,
            "auto",
            tol=TOL,
            max_epochs=LONGER * passes,
            random_state=seed,
            callback=lambda _: stop.is_set(),
        )
        cell.learn(reference.trace)
        cell.complete = not stop.is_set()
    return cell


def run(
    sets: list[Dataset],
    alphas: tuple[float, ...],
    *,
    passes: int,
    seed: int,
    jobs: int,
    methods: tuple[str, ...] = METHODS,
    tick: Callable[[], None] = lambda: None,
    done: Callable[[Cell], None] = lambda cell: None,
) -> tuple[list[Cell], bool]:
    """(cells, whether Ctrl-C ended it): `jobs` cells at a time, `done` called with each.

    The cells are run in threads, for the kernels let go of the interpreter. On Ctrl-C the runs that
    are under way end at their next check, and what they have is kept.
    """
    stop, interrupted = threading.Event(), False
    cells: list[Cell] = []
    futures: list[Future[Cell]] = []

    def collect(future: Future[Cell]) -> None:
        futures.remove(future)
        cell = future.result()
        if cell.traces:
            cells.append(cell)
            done(cell)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for data in sets:
                signs, _ = model.encode_labels(data.y)
                problem = ERM(data.X, signs, "smoothed_hinge", "l2", alphas[0])
                for alpha in alphas:
                    work = (problem.with_alpha(alpha), data.name, passes, seed, stop, tick, methods)
                    futures.append(pool.submit(run_cell, *work))
            while futures:
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    collect(future)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
            for future in [f for f in futures if not f.cancel()]:
                collect(future)
    order = {data.name: k for k, data in enumerate(sets)}
    return sorted(cells, key=lambda c: (order[c.data], -c.alpha)), interrupted
