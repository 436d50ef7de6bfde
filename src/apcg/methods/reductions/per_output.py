"""K outputs that have nothing to do with each other: each is a problem of its own, over the same X.

    P(W) = sum_k P_k(W_k)

That is so if the loss is a sum over outputs and the penalty a sum over the entries of W: the lasso
with y of K columns. The outputs take turns. Each is solved by the inner method, which is `auto` for
one output, and the sum of their certificates is that of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...certify.certificate import certify_enough, certify_start, joined
from ...certify.points import Certificate, Point, Start
from ...problems.erm import ERM
from ...problems.joint import apart
from ..base import MANY_OUTPUTS, Budget, Method, Need, Needs, Report, Run, Target, Work, unmet


@dataclass(frozen=True)
class OneByOne:
    """The method "one_by_one": `inner` solves the problem of each output."""

    inner: Method
    name: ClassVar[str] = "one_by_one"

    @property
    def needs(self) -> Needs:
        """A sum over outputs, each of which the inner method can solve."""
        sums = Need(
            "a loss that is a sum over outputs and a penalty that is one over entries of W",
            self._falls_apart,
            lambda p: f"loss {p.loss.name!r} or penalty {p.penalty} is not of that kind",
        )
        return (MANY_OUTPUTS, sums)

    def _falls_apart(self, problem: ERM) -> bool:
        sums = problem.loss.by_output and problem.separable
        return sums and unmet(self.inner, apart(problem)[0]) is None

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> OneByOneRun:
        """Begin with the columns of x, w and b, or at zero."""
        return OneByOneRun(problem, at, target, rng, self.inner)


class OneByOneRun(Run):
    """The runs of all outputs."""

    def __init__(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator, inner: Method
    ) -> None:
        self.problem, self.parts, self.tol = problem, apart(problem), target.tol
        self.starts = [_column(at, k) for k in range(problem.K)]
        self.runs: list[Run] = [
            inner.start(part, start, target, rng)
            for part, start in zip(self.parts, self.starts, strict=True)
        ]
        self.found: list[Certificate | None] = [None] * problem.K

    @property
    def report(self) -> Report:
        """The least mu-hat; the side is the same for all, as the outputs differ in y only.

        It is stuck if no output that is not done gets any further.
        """
        said = [run.report for run in self.runs]
        stuck = bool(self._open) and all(said[k].stuck for k in self._open)
        at_work = said[self._open[-1] if self._open else -1].at_work
        return Report(said[0].side, at_work, min(r.mu for r in said), stuck=stuck)

    @property
    def _open(self) -> list[int]:
        """The outputs that are not within the tolerance."""
        return [k for k, c in enumerate(self.found) if c is None or not c.relative <= self.tol]

    def advance(self, budget: Budget) -> Work:
        """Each output that is not done goes on until a look at it can pay, and is looked at."""
        spent = 0
        for k in self._open:
            spent = max(spent, self.runs[k].advance(budget).passes)
            self.found[k] = found = certify_enough(self.parts[k], self.runs[k].point(), self.tol)
            if found.relative > self.tol:
                self.runs[k].seen(found)
            if budget.expired:
                break
        return Work(spent)

    def point(self) -> Certificate:
        """The certificates of the outputs side by side; of one that had no turn, of its start."""
        found = [
            certify_start(part, start) if c is None else c
            for part, start, c in zip(self.parts, self.starts, self.found, strict=True)
        ]
        return joined(self.problem, self.parts, found)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """What the runs have to add to their answers."""
        columns, new = list(certificate.w.T), False
        for k, (run, found) in enumerate(zip(self.runs, self.found, strict=True)):
            point = None if found is None else run.finish(found, converged)
            if point is not None and point.w is not None:
                columns[k], new = point.w, True
        w = np.ascontiguousarray(np.column_stack(columns))
        return Point(w, None, certificate.b) if new else None


def _column(at: Start, k: int) -> Start:
    """The start of output k."""
    x, w = (None if a is None else np.ascontiguousarray(a[:, k]) for a in (at.x, at.w))
    b = None if at.b is None else float(at.b[k])
    return Start(x, w, b, side=at.side)
