"""What a run is put together from: the losses, the penalty and the columns of a problem."""

from __future__ import annotations

from typing import Any

from ...losses.base import SOFTMAX
from ...problems.erm import ERM
from .blocks import ColumnSource, dense_columns, stored_columns
from .groups.model import GroupPenalty
from .losses_at import Losses
from .penalty import ScaledPenalty
from .softmax.entries import EntryColumns
from .softmax.losses_at import ClassLosses
from .tuning import SetTuning


def is_softmax(problem: ERM) -> bool:
    """Whether its loss is the softmax of K classes."""
    return problem.K > 1 and bool(problem.loss.kind == SOFTMAX)


def losses_of(problem: ERM) -> Any:
    """Its losses at predictions, with the shapes of w, predictions and dual points."""
    if is_softmax(problem):
        return ClassLosses(problem)
    g: Any = problem.g
    return Losses(problem, g.members if g.in_groups and not g.of_rows else None)


def penalty_of(problem: ERM) -> Any:
    """alpha g on the entries of w, or on groups of them."""
    if problem.g.in_groups:
        return GroupPenalty.of(problem, problem.K if is_softmax(problem) else 1)
    return ScaledPenalty.of(problem)


def columns_of(problem: ERM, losses: Any, tuning: SetTuning) -> ColumnSource:
    """Where its sets of columns are from."""
    if isinstance(losses, ClassLosses):
        return EntryColumns(problem, losses, tuning)
    stored = problem.samples.sparse and problem.g.in_groups
    return stored_columns(problem) if stored else dense_columns(problem)
