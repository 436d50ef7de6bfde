"""K problems of one output over the same X as one problem, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..losses.per_output import Columns
from ..penalties.interval import Interval
from .erm import ERM


def join(problems: Sequence[ERM]) -> ERM:
    """Problems of one output with the same X, weights, loss and penalty as one: their sum."""
    first, K = problems[0], len(problems)
    y = np.ascontiguousarray(np.column_stack([p.y for p in problems]))
    return first.altered(y=y, K=K, loss=Columns(first.loss), g=first.interval.over(K))


def apart(problem: ERM) -> list[ERM]:
    """The problems that `join` makes one of: one for each output, over the same X."""
    loss, g = problem.loss, problem.g
    assert isinstance(loss, Columns)
    assert isinstance(g, Interval)
    one, ys = g.over(1), np.ascontiguousarray(problem.y.T)
    return [problem.altered(y=y, K=1, loss=loss.loss, g=one) for y in ys]
