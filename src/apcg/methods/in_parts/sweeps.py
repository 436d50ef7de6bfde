"""SDCA on the dual, over parts of X: some parts are in memory at a time, drawn at random.

Each is a block of coordinates x_i. A sweep reads all parts once, in groups that are as large as the
memory allows, and goes through the rows of a group in random order. With many small parts in a
group this is as good as a shuffle of all rows, also if the rows are
sorted by label. x, y and v = A x/(lambda n) stay in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.paper.sdca import run_plain
from ...certify.points import Certificate, Start
from ...data import Chunked, views
from ...problems import forms
from ...problems.composite import Composite
from ...problems.erm import ERM
from ..base import (
    COMPILED_LOSS,
    IN_PARTS,
    ONE_OUTPUT,
    SEPARABLE,
    STRONGLY_CONVEX,
    Budget,
    Needs,
    Target,
)
from ..paper.coordinate import CoordinateRun, Coordinates
from ..paper.sdca import PlainSteps


class Blocks(PlainSteps):
    """Steps on some of the samples at a time: `sweep_over` takes parts of them."""

    def __init__(self, problem: ERM, form: Composite, x0: Vector) -> None:
        X = problem.samples
        assert isinstance(X, Chunked)
        super().__init__(form, x0)
        self.samples, self._problem = X, problem

    def sweep_over(self, which: list[int], wanted: Vector | None, rng: np.random.Generator) -> None:
        """One step on each wanted row of these parts, in random order."""
        p, at = self._problem, self.samples.rows_of(which)
        block = self.samples.gather(which)
        weights = p.weights if p.weights.size == 1 else p.weights[at]
        parts = block, p.y[at], weights, p.loss, p.interval, p.alpha, p.n, p.squared_norms[at]
        model, x = forms.dual(*parts).model(), self._x[at]
        order = rng.permutation(at.size) if wanted is None else _shuffled(wanted[at], rng)
        run_plain(*block.view(views.arrays), model, x, self._rows, order.astype(np.intp))
        self._x[at] = x


def _shuffled(wanted: Vector, rng: np.random.Generator) -> Index:
    return rng.permutation(np.flatnonzero(wanted))


@dataclass(frozen=True)
class PartSweeps:
    """SDCA over the parts of X."""

    name: ClassVar[str] = "sdca"
    needs: ClassVar[Needs] = (IN_PARTS, ONE_OUTPUT, COMPILED_LOSS, SEPARABLE, STRONGLY_CONVEX)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> CoordinateRun:
        """Begin at x."""
        coordinates = Coordinates(problem, at)
        seen = problem.bordered() if problem.intercept else problem
        blocks = Blocks(seen, coordinates.form, coordinates.take_start())
        return PartRun(coordinates, blocks, target, rng)


class PartRun(CoordinateRun):
    """Sweeps over groups of parts."""

    def __init__(
        self, coordinates: Coordinates, blocks: Blocks, target: Target, rng: np.random.Generator
    ) -> None:
        super().__init__(coordinates, blocks, 1.0, target, rng)
        self._blocks, n = blocks, coordinates.problem.n_samples
        self._wanted: Vector | None = None
        if coordinates.sampled.size < n:
            self._wanted = np.zeros(n)
            self._wanted[coordinates.sampled] = 1.0

    def _pass(self, budget: Budget) -> bool:
        for which in self._blocks.samples.groups(self._rng):
            self._blocks.sweep_over(which, self._wanted, self._rng)
            if budget.expired:
                return False
        return True

    def finish(self, certificate: Certificate, converged: bool) -> None:
        """Plain steps leave exact zeros by themselves."""
