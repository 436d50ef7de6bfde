"""The one loop: epochs, stopping, recording, callbacks, time limit. It knows no problem."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from . import _validation as validate
from ._validation import Index, Vector
from .methods.sweep import Sweep
from .result import Status, Trace

#: A call of a kernel does about this many multiply-adds, so that Ctrl-C and time limits are heard.
CHUNK = 20_000_000


class Task(Protocol):
    """What the loop asks of a method at work on a problem."""

    @property
    def work(self) -> int:
        """The multiply-adds of an epoch, if it may be run in pieces; otherwise 0."""

    @property
    def check_every(self) -> int:
        """Epochs until the next look, unless the user says."""

    @property
    def needs_looks(self) -> bool:
        """Whether it steers by its looks, and so has them also when the user wants fewer."""

    @property
    def sweep(self) -> Sweep:
        """The blocks to sample; another object if they change."""

    def epoch(self, order: Index) -> int:
        """One step on each block of `order`; gives the passes that a whole order takes."""

    def renew(self) -> None:
        """Before each epoch: what is sampled may change."""

    def examine(self) -> Check:
        """A look at the present answer."""


@dataclass
class Check:
    """A point looked at: what decides, what ranks, and what is recorded."""

    x: Vector = field(repr=False)
    measure: float  # converged when it is at most the target
    merit: float  # the smaller the better
    columns: dict[str, float]
    w: Vector | None = field(default=None, repr=False)  # the primal point that goes with x, in ERM
    intercept: float = 0.0  # that goes with w
    side: str = "primal"  # what the method was at work on, in ERM
    exhausted: bool = False  # rounding errors are all that is left
    epoch: int = 0
    seconds: float = 0.0

    def __getattr__(self, name: str) -> float:
        columns: dict[str, float] = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        raise AttributeError(name)

    @property
    def finite(self) -> bool:
        """Whether it makes sense to go on from here."""
        return math.isfinite(self.merit) and bool(np.isfinite(self.x).all())


@dataclass
class Options:
    """When to stop and whom to tell, as the user gave it, checked."""

    tol: float = 1e-6
    max_epochs: int = 1000
    check_every: int | None = None
    sampling: str = "permutation"
    random_state: Any = None
    callback: Callable[[Check], Any] | None = None
    verbose: int = 0
    time_limit: float | None = None
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.tol = validate.number(self.tol, "tol", low=0.0, hint="1e-6 is usual")
        self.max_epochs = validate.integer(self.max_epochs, "max_epochs", low=0)
        if self.check_every is not None:
            self.check_every = validate.integer(self.check_every, "check_every", low=1)
        validate.choice(self.sampling, "sampling", ("permutation", "uniform"))
        validate.function(self.callback, "callback", optional=True)
        if not isinstance(self.verbose, bool):
            self.verbose = validate.integer(self.verbose, "verbose", low=0)
        if self.time_limit is not None:
            hint = "it is in seconds, and None is no limit"
            self.time_limit = validate.number(
                self.time_limit, "time_limit", low=0.0, open_low=True, hint=hint
            )
        self.rng = validate.generator(self.random_state)

    def orders(self, task: Task) -> Iterator[Index]:
        """The blocks of one epoch after the other, from sweeps in random order."""
        rest, of = np.empty(0, dtype=np.intp), None
        while True:
            with np.errstate(all="ignore"):
                task.renew()
            sweep, steps = task.sweep, task.sweep.steps
            if self.sampling == "uniform":
                yield sweep.indices[self.rng.integers(sweep.indices.size, size=steps)]
                continue
            if sweep is not of:  # what is left of the last one comes first
                rest, of = sweep.left_of(rest), sweep
            while rest.size < steps:
                new = sweep.shuffled(self.rng)
                rest = np.concatenate([rest, new]) if rest.size else new
            order, rest = rest[:steps], rest[steps:]
            yield order


class _Stop(Exception):
    """Leaves the loop with a status."""

    def __init__(self, status: Status) -> None:
        self.status = status


def run(task: Task, options: Options, target: float) -> tuple[Check, Status, Trace, int]:
    """Epochs of `task` until its look finds it within target, or something else ends it.

    Gives the best point looked at, the status, the record and the number of epochs.
    """
    loop = _Loop(task, options, target)
    try:
        loop.look()
        last = seen = 0
        for order in options.orders(task):
            loop.one_epoch(order)
            every = options.check_every or task.check_every
            if loop.epoch >= min(last + every, options.max_epochs):
                loop.look()
                last = seen = loop.epoch
            elif task.needs_looks and loop.epoch >= seen + task.check_every:
                with np.errstate(all="ignore"):
                    task.examine()
                seen = loop.epoch
    except _Stop as stop:
        status = stop.status
    except KeyboardInterrupt:
        status = loop.interrupted()
    finally:
        loop.bar.close()
    return loop.best, status, loop.trace, loop.epoch


class _Loop:
    def __init__(self, task: Task, options: Options, target: float) -> None:
        self.task, self.options, self.target = task, options, target
        self.epoch = 0
        self.start = time.perf_counter()
        self.best: Check
        self.trace: Trace
        self.bar = tqdm(
            total=options.max_epochs,
            unit="pass",
            disable=not (options.verbose and sys.stderr.isatty()),
            leave=options.verbose > 1,
        )

    def one_epoch(self, order: Index) -> None:
        """Run an epoch in pieces, with an eye on the clock."""
        limit = self.options.time_limit
        pieces = max(1, self.task.work // CHUNK)
        for piece in np.array_split(order, pieces) if pieces > 1 else (order,):
            with np.errstate(all="ignore"):
                passes = self.task.epoch(piece)
            if limit is not None and time.perf_counter() - self.start > limit:
                self.epoch += passes
                self.look()
                raise _Stop(self._status("time_limit"))
        self.epoch += passes
        self.bar.update(passes)

    def look(self, *, final: bool = False) -> None:
        """Examine x, record it, tell the callback, and stop if there is a reason to."""
        with np.errstate(all="ignore"):
            check = self.task.examine()
        check.epoch, check.seconds = self.epoch, time.perf_counter() - self.start
        if not hasattr(self, "best"):
            self.best = check
            self.trace = Trace("epoch", "seconds", *check.columns)
        if not check.finite:
            raise _Stop(self._status("non_finite"))
        self.trace.append(epoch=check.epoch, seconds=check.seconds, **check.columns)
        reached = check.measure <= self.target and math.isfinite(check.measure)
        if reached or check.merit <= self.best.merit:
            self.best = check
        shown = [k for k in ("fun", "residual", "gap") if k in check.columns]
        self.bar.set_postfix({k: f"{check.columns[k]:.2e}" for k in shown}, refresh=False)
        stop = not final and self._ask(check)
        if reached:
            raise _Stop(self._status("converged"))
        if check.exhausted:
            raise _Stop(self._status("precision"))
        if stop:
            raise _Stop(self._status("callback"))
        if self.epoch >= self.options.max_epochs:
            raise _Stop(self._status("max_epochs"))

    def _ask(self, check: Check) -> bool:
        """Whether the callback wants to stop. x and w, maybe the answer, are read-only to it."""
        if self.options.callback is None:
            return False
        arrays = [a for a in (check.x, check.w) if a is not None]
        for array in arrays:
            array.flags.writeable = False
        try:
            return bool(self.options.callback(check))
        except StopIteration:
            return True
        finally:
            for array in arrays:
                array.flags.writeable = True

    def interrupted(self) -> Status:
        """Look once more at where it is; a second Ctrl-C there gives up on that."""
        with contextlib.suppress(_Stop, KeyboardInterrupt):
            self.look(final=True)
        return self._status("interrupted")

    def _status(self, code: str) -> Status:
        if not hasattr(self, "best"):
            raise KeyboardInterrupt  # there is nothing to give back yet
        m, target = self.best.measure, self.target
        after = f"after {self.epoch} epochs, at {m:.2e} (wanted {target:.2e})"
        return Status(
            code,
            {
                "converged": f"converged after {self.epoch} epochs: {m:.2e} <= {target:.2e}.",
                "max_epochs": f"stopped at max_epochs {after}. Raise max_epochs or tol, or go on "
                "from this answer by x0.",
                "time_limit": f"stopped at the time limit {after}. Raise time_limit or tol, or go "
                "on from this answer by x0.",
                "precision": f"stopped as far as double precision goes, {after}: what is left is "
                "rounding error. Raise tol; the answer is as good as it gets.",
                "callback": f"stopped by the callback {after}.",
                "interrupted": f"interrupted by the user {after}. This is the best point seen; go "
                "on from it by x0.",
                "non_finite": f"stopped at a value that is not finite {after}. Look at the "
                "constants L (too small ones make the steps too long), at the scale of the data, "
                "and at value, gradient and prox of your own functions, if any. This is the "
                "best finite point seen.",
            }[code],
        )
