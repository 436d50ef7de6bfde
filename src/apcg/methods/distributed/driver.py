"""The loop over messages: looks, certificates, lost shards, limits.

The driver has w, and shards have the rows. A shard that is lost is made again from its rows and
told w; what a method had learned from it is forgotten. So a loss costs time, never the answer.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..._base.validation import Matrix as Table
from ...certify.points import Certificate, Report
from ...certify.result import Solution, Status, Trace, answer
from ...engines import LOSSES, Engine, Lost, NoWorkers
from ..interior.interior import LINES
from .directions import Directions
from .interior import InteriorSteps
from .lines import LineSteps
from .newton import NewtonSteps
from .problem import Sharded
from .sparse import SparseSteps
from .sums import Sums

#: Newton's method is taken if the side of its matrix is at most this, and the matrix has at most
#: `_FEW` numbers and two for each of X in a shard.
_SIDE, _FEW = 5000, 1e6
#: Multiply-adds of a Gram matrix for each number of X that a step may cost.
_GRAMS = 400.0
#: A gap of less than this part of |P| + |D| is rounding.
_ROUNDING = 16 * 2.0**-52
#: It is stuck after so many looks, in all, in which the gap fell by less than a tenth.
_PATIENCE = 300

COLUMNS = ("epoch", "seconds", "primal", "dual", "gap", "mu", "restarts", "method", "vectors",
           "messages")  # fmt: skip


class Steps(Protocol):
    """A method: steps that end in a look."""

    @property
    def name(self) -> str:
        """What it is at work on."""

    @property
    def unmixed(self) -> bool:
        """Whether it found that the shards are not alike."""

    @property
    def stuck(self) -> bool:
        """Whether its steps lead nowhere any more."""

    def step(self) -> None:
        """One iteration, which ends in a look."""

    def forget(self) -> None:
        """Drop what the shards have forgotten."""


@dataclass(frozen=True)
class Look:
    """What a callback sees: the iteration, what was spent, P, D and the relative gap, w and b."""

    iteration: int
    epoch: float
    vectors: int
    messages: int
    seconds: float
    primal: float
    dual: float
    gap: float
    method: str
    w: Table = field(repr=False)
    intercept: Any


@dataclass
class Limits:
    """When to stop."""

    tol: float = 1e-6
    max_epochs: int = 1000
    time_limit: float | None = None
    callback: Callable[[Look], Any] | None = None


def method_for(sums: Sums, seed: int, tol: float) -> tuple[Steps, str]:
    """The method to take, and why."""
    p = sums.problem
    size = int(np.prod(p.shape))
    room = _FEW + 2 * p.nnz / sums.engine.shards
    small = size <= _SIDE and size * size <= room and p.blocks * p.madds <= _GRAMS * max(p.nnz, 1)
    if p.loss.gamma == 0 and small and isinstance(p.loss, LINES):
        return InteriorSteps(sums), f"interior points: kinks, {size} weights"
    if p.loss.gamma == 0:
        warnings.warn(
            f"loss {p.loss.name!r} has kinks, and with {p.d:,} features on several machines "
            'that takes hundreds of rounds; "smoothed_hinge" and "huber" take tens.',
            stacklevel=5,
        )
        return LineSteps(sums, seed), "augmented Lagrangian with quasi-Newton: kinks"
    if not p.g.is_quadratic:
        return SparseSteps(sums), "working sets: the penalty has an L1 part or bounds"
    if small:
        return NewtonSteps(sums, tol), f"newton: Gram matrices of {size} x {size} are summed"
    local = p.K == 1 and p.g.is_l2
    return Directions(sums, seed, local), f"quasi-Newton and local steps: {size} weights"


class Driver:
    """One solve: a method, its record, and what to do if shards are lost."""

    def __init__(self, engine: Engine, problem: Sharded, limits: Limits, seed: int = 0,
                 w: Table | None = None) -> None:  # fmt: skip
        self._begun, self._engine, self._limits, self._seed = time.monotonic(), engine, limits, seed
        self._start = np.zeros(problem.shape) if w is None else w
        self._problem = problem
        self._trace = Trace(*COLUMNS)
        self._best = self._start, math.inf
        self._found: Certificate | None = None
        self._good = False
        self._rebuilt, self._at, self._strict, self._idle = 0, 0, 1.0, 0
        self._least = math.inf

    def solve(self) -> Solution:
        """Until the certificate is within the tolerance, or something else ends it."""
        try:
            code = self._run()
        except KeyboardInterrupt:
            code = "interrupted"
        except NoWorkers as error:
            error.best = self._answer("time_limit")
            raise
        if code != "converged":
            self._last_words(code)
        return self._answer(code)

    @property
    def unmixed(self) -> bool:
        """Whether local steps brought far less than quasi-Newton did, by what was measured."""
        return hasattr(self, "_method") and self._method.unmixed

    def _run(self) -> str:
        self.sums = self._safely(lambda: Sums(self._engine, self._problem, self._start), True)
        self._method, why = method_for(self.sums, self._seed, self._limits.tol)
        self._trace.notes.append(why)
        self._safely(self._first)
        while (code := self._judged()) is None:
            self._safely(self._method.step)
            self._at += 1
        return code

    def _first(self) -> None:
        self.sums.look()

    def _safely(self, action: Callable[[], Any], again: bool = False) -> Any:
        """Do it. If shards are lost, bring them back to w, and look there instead."""
        for _ in range(LOSSES):
            try:
                return action()
            except Lost as loss:
                lost = loss.shards
            try:
                self._back(lost)
            except Lost:
                continue
            if not again:
                return None
        raise NoWorkers(f"shards were lost {LOSSES} times in a row: the cluster is not stable.")

    def _back(self, lost: tuple[int, ...]) -> None:
        self._rebuilt += len(lost)
        self._found, self._good = None, False  # its x is lost
        for shard in lost:
            self._engine.rebuild(shard)
        if hasattr(self, "sums"):
            self.sums.begin()
            self._method.forget()
            self.sums.look()

    def _judged(self) -> str | None:
        """Why it ends here; None if it goes on."""
        s, limits = self.sums, self._limits
        if not math.isfinite(s.primal):
            return "non_finite"
        if s.primal <= self._best[1]:
            self._best = s.w, s.primal
        if self._record():
            return "callback"
        if s.gap <= self._strict * limits.tol * abs(s.primal) + _ROUNDING * abs(s.primal):
            found = self._certified()
            if found is not None and found.gap <= limits.tol * abs(found.primal):
                return "converged"
            self._strict *= 0.5
        better = s.gap < 0.9 * self._least
        self._idle, self._least = (0, s.gap) if better else (self._idle + 1, self._least)
        if self._method.stuck or self._idle > _PATIENCE:
            return "precision" if s.gap <= 1e-10 * abs(s.primal) else "stuck"
        if s.passes >= limits.max_epochs:
            return "max_epochs"
        if limits.time_limit is not None and self._seconds > limits.time_limit:
            return "time_limit"
        return None

    def _certified(self) -> Certificate | None:
        """The exact certificate of the best w; None if shards were lost meanwhile."""
        w = self._best[0]
        made: Certificate | None = self._safely(lambda: self.sums.certify(w, self._good))
        if made is not None:
            self._good = self._found is None or made.gap <= self._found.gap
            self._found = made if self._good else self._found
        return made

    def dual_point(self) -> Table:
        """The x of the certificate, from all shards."""
        p = self._problem
        x = np.zeros((p.rows,) if p.K == 1 else (p.rows, p.K))
        for at, part in self._engine.each("dual_point", self._good):
            x[at] = part
        return x

    def _last_words(self, code: str) -> None:
        """Certify what there is, once; a second Ctrl-C, or a lost cluster, gives up on that."""
        if hasattr(self, "sums") and hasattr(self, "_method"):
            try:
                self._certified()
            except (KeyboardInterrupt, NoWorkers):
                return

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._begun

    def _record(self) -> bool:
        s = self.sums
        self._trace.append(
            epoch=s.passes, seconds=self._seconds, primal=s.primal, dual=s.dual, gap=s.gap,
            mu=math.nan, restarts=self._rebuilt, method=self._method.name, vectors=s.vectors,
            messages=s.messages,
        )  # fmt: skip
        callback = self._limits.callback
        if callback is None:
            return False
        w, b = s.problem.split(s.w)
        relative = s.gap / abs(s.primal) if s.primal else math.inf
        spent = self._at, s.passes, s.vectors, s.messages, self._seconds
        look = Look(*spent, s.primal, s.dual, relative, self._method.name, w.copy(), b)
        try:
            return bool(callback(look))
        except StopIteration:
            return True

    def _answer(self, code: str) -> Solution:
        found, limits = self._found, self._limits
        if found is None:
            if code == "interrupted" and self._best[1] == math.inf:
                raise KeyboardInterrupt
            w, b = self._problem.split(self._best[0])
            found = _bare(w, b, self._best[1])
        passes = math.ceil(self.sums.passes) if hasattr(self, "sums") else 0
        if code not in ("converged", "callback", "interrupted") and found.relative <= limits.tol:
            code = "converged"
        status = Status.of(code, passes, found.relative, limits.tol)
        said = Report("primal", at_work=self._trace.last("method") if len(self._trace) else "")
        return answer(found, status, said, "auto", passes, self._seconds, self._trace)


def _bare(w: Table, b: Any, primal: float) -> Certificate:
    from ...certify.certificate import stated

    return stated(w, np.empty(0), b, np.empty(0), primal, -math.inf, False)
