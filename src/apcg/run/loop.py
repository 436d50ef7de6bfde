"""The one loop: advance, look, record, tell the callback, stop or go on. It knows no problem."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from .._base import validation as validate
from .._base.files import on_terminal
from ..certify.judge import Check
from ..certify.points import Report
from ..certify.result import Status, Trace
from ..methods.base import Budget, Work

#: So many looks in a row without a whole pass are free.
IDLE = 100


class Running(Protocol):
    """What the loop asks of a method at work."""

    def advance(self, budget: Budget) -> Work:
        """Go on until a look can pay, or the budget is spent."""

    def seen(self, certificate: Any) -> None:
        """What the look found."""

    @property
    def report(self) -> Report:
        """Whether it is stuck, and sentences on what it does, of which there may be more later."""


@dataclass
class Options:
    """When to stop and whom to tell, as the user gave it, checked."""

    tol: float = 1e-6
    max_epochs: int = 1000
    check_every: int | None = None
    sampling: str = "permutation"
    random_state: Any = None
    callback: Callable[[Check], object] | None = None
    verbose: int = 0
    time_limit: float | None = None

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
        seed = self.random_state
        if not (seed is None or (type(seed) is int and seed >= 0)):
            assert self.rng is not None  # an error says what it must be

    @cached_property
    def rng(self) -> np.random.Generator:
        """Made when it is asked for: that takes longer than a small problem."""
        return validate.generator(self.random_state)


@dataclass
class Outcome:
    """How a run ended: the best look, why it stopped, the record, the passes."""

    best: Check
    status: Status
    trace: Trace
    epochs: int

    @property
    def seconds(self) -> float:
        """Of wall time, at the last look."""
        return float(self.trace.last("seconds")) if len(self.trace) else 0.0


def run(
    method: Running,
    look: Callable[[], Check],
    options: Options,
    target: float,
    *,
    look_first: bool = True,
) -> Outcome:
    """Advance `method` until `look` finds it within target, or something else ends it.

    Without `look_first` the start is not looked at, unless there is nothing else to look at.
    """
    loop = _Loop(method, look, options, target)
    try:
        with np.errstate(all="ignore"):
            if look_first or options.max_epochs == 0:
                loop.look()
            while True:
                loop.advance()
                loop.look()
    except _Stop as stop:
        status = stop.status
    except KeyboardInterrupt:
        status = loop.interrupted()
    finally:
        if loop.bar is not None:
            loop.bar.close()
    loop.trace.notes = list(method.report.notes)
    return Outcome(loop.best, status, loop.trace, loop.epoch)


class _Stop(Exception):
    """Leaves the loop with a status."""

    def __init__(self, status: Status) -> None:
        self.status = status


class _Loop:
    def __init__(
        self, method: Running, look: Callable[[], Check], options: Options, target: float
    ) -> None:
        self.method, self._look, self.options, self.target = method, look, options, target
        self.epoch = self.idle = 0
        self.advanced = False
        self.errors = np.geterr()  # the user's, for the callback
        self.start = time.perf_counter()
        limit = options.time_limit
        self.deadline = None if limit is None else self.start + limit
        self.best: Check
        self.trace: Trace
        self.told = 0  # notes of the method that were shown
        self.bar: tqdm[Any] | None = None
        if options.verbose and on_terminal():
            self.bar = tqdm(total=options.max_epochs, unit="pass", leave=options.verbose > 1)

    def advance(self) -> None:
        """Go on until the next look is due.

        If the user chose when to look, a method that returns earlier has looks of its own: it is
        told what they find, and nothing is recorded.
        """
        every, most = self.options.check_every, self.options.max_epochs
        due = most if every is None else min(self.epoch + every, most)
        while True:
            budget = Budget(due - self.epoch, every is not None, self.deadline)
            self.tell()
            passes = self._passes(self.method.advance(budget))
            self.tell()
            self.advanced = True
            self.epoch += passes
            if self.bar is not None:
                self.bar.update(passes)
            if every is None or self.epoch >= due or budget.expired or self.method.report.stuck:
                return
            self.method.seen(self._look().certificate)

    def tell(self) -> None:
        """Show what the method has noted since the last time, above the bar."""
        if self.options.verbose and sys.stderr is not None:  # None if it was closed
            notes = self.method.report.notes
            for note in notes[self.told :]:
                tqdm.write(note, file=sys.stderr)
            self.told = len(notes)

    def _passes(self, work: Work) -> int:
        """The passes that an `advance` took.

        A look costs about a pass. A method that asks for many without a pass of its own gets them
        counted, so that max_epochs ends it.
        """
        passes = getattr(work, "passes", None)
        if not isinstance(passes, int | np.integer) or passes < 0:
            raise TypeError(
                f"advance of a method must return Work(passes), with passes a whole number that is "
                f"not negative; got {work!r}."
            )
        self.idle = 0 if passes else self.idle + 1
        return int(passes) or int(self.idle > IDLE)

    def look(self, *, final: bool = False) -> None:
        """Look at the answer, record it, tell the callback, and stop if there is a reason to."""
        check = self._look()
        check.epoch, check.seconds = self.epoch, time.perf_counter() - self.start
        if not hasattr(self, "best"):
            # best last: who finds it there after Ctrl-C wants the record as well
            self.trace = Trace("epoch", "seconds", *check.columns)
            self.best = check
        if not check.finite:
            raise _Stop(self._status("non_finite"))
        self.trace.append(epoch=check.epoch, seconds=check.seconds, **check.columns)
        reached = check.measure <= self.target and math.isfinite(check.measure)
        if reached or check.merit <= self.best.merit:
            self.best = check
        if self.bar is not None:
            shown = [k for k in ("fun", "residual", "gap") if k in check.columns]
            self.bar.set_postfix({k: f"{check.columns[k]:.2e}" for k in shown}, refresh=False)
        self._stop_if(check, reached, not final and self._ask(check))
        self.method.seen(check.certificate)
        check.slim()

    def _stop_if(self, check: Check, reached: bool, asked: bool) -> None:
        late = self.deadline is not None and time.perf_counter() > self.deadline
        for code, holds in (
            ("converged", reached),
            ("no_minimum", check.endless),
            ("precision", check.exhausted),
            ("stuck", check.stuck),
            ("callback", asked),
            ("time_limit", late and self.advanced),
            ("max_epochs", self.epoch >= self.options.max_epochs),
        ):
            if holds:
                ended = code not in ("converged", "callback") and check.separates()
                raise _Stop(self._status("no_minimum" if ended else code))

    def _ask(self, check: Check) -> bool:
        """Whether the callback wants to stop. The arrays, maybe the answer, are read-only to it."""
        if self.options.callback is None:
            return False
        for array in check.arrays:
            array.flags.writeable = False
        try:
            with np.errstate(**self.errors):
                return bool(self.options.callback(check))
        except StopIteration:
            return True
        finally:
            for array in check.arrays:
                array.flags.writeable = True

    def interrupted(self) -> Status:
        """Look once more at where it is; a second Ctrl-C there gives up on that.

        So does an error: what was cut off in the middle may not know where it is.
        """
        with contextlib.suppress(Exception, KeyboardInterrupt), np.errstate(all="ignore"):
            self.look(final=True)
        return self._status("interrupted")

    def _status(self, code: str) -> Status:
        if not hasattr(self, "best"):
            raise KeyboardInterrupt  # there is nothing to give back yet
        best = self.best
        return Status.of(code, self.epoch, best.measure, self.target, best.measured)
