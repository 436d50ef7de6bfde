"""The method "newton_ids": Newton's method for sparse X with ids, n >> d and d in the thousands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ...certify.points import Certificate, Point, Start
from ...data import Matrix
from ...data.matrix import Stored
from ...problems.erm import ERM
from ...problems.objective import Objective
from ..base import (
    COMPILED_LOSS,
    ONE_OUTPUT,
    QUADRATIC_PENALTY,
    SMOOTH_LOSS,
    SPARSE_IN_MEMORY,
    Budget,
    Needs,
    Report,
    Run,
    Target,
    Work,
)
from .elimination import TUNING, Elimination, EliminationTuning
from .id_rows import IdRows, id_rows
from .newton import NewtonRun


@dataclass(frozen=True)
class NewtonIds:
    """The method "newton_ids"."""

    tuning: EliminationTuning = TUNING
    name: ClassVar[str] = "newton_ids"
    needs: ClassVar[Needs] = (
        ONE_OUTPUT, COMPILED_LOSS, SMOOTH_LOSS, QUADRATIC_PENALTY, SPARSE_IN_MEMORY,
    )  # fmt: skip
    side: ClassVar[str] = "primal"

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> IdsRun:
        """Begin at at.w (with at.b), or at zero."""
        return IdsRun(problem, at, target, rng, self.tuning)


class IdsRun(Run):
    """Newton's method on the rows sorted by id; what it gives is in the order of X."""

    def __init__(
        self,
        problem: ERM,
        at: Start,
        target: Target,
        rng: np.random.Generator,
        tuning: EliminationTuning,
    ) -> None:
        self._X, rows = sorted_by_id(problem)
        d = problem.d
        w = None if at.w is None else at.w[self._X.features[:d]]
        start = Start(w=w, b=at.b)
        hessian = Elimination(rows, tuning)
        self._run = NewtonRun(problem, start, target, rng, hessian, rows)
        self._place = self._X.place[:d]

    def advance(self, budget: Budget) -> Work:
        """Go on until the gap is predicted to pass, or the budget is spent, or rounding has won."""
        return self._run.advance(budget)

    def point(self) -> Point:
        """The iterate."""
        found = self._run.point()
        assert found.w is not None
        if found.z is None:
            return Point(w=found.w[self._place], b=found.b)
        z = np.empty_like(found.z)
        z[self._X.order] = found.z
        return Point(w=found.w[self._place], b=found.b, z=z)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run."""
        self._run.seen(certificate)

    @property
    def report(self) -> Report:
        """That of Newton's method."""
        return self._run.report


def columns_of(problem: ERM) -> Stored:
    """X in memory, with a border of ones for an intercept."""
    return cast(Stored, problem.samples.with_ones if problem.intercept else problem.samples)


def sorted_by_id(problem: ERM) -> tuple[IdRows, Objective]:
    """X with its rows sorted by id, and P on it."""
    made = columns_of(problem).view(id_rows)
    plain = Objective.of(problem)
    weights = plain.weights[made.order] if plain.weights.size > 1 else plain.weights
    rows = Objective(
        cast(Matrix, made), plain.y[made.order], weights, plain.scale, plain.loss,
        np.ascontiguousarray(plain.ridge[made.features]),
    )  # fmt: skip
    return made, rows
