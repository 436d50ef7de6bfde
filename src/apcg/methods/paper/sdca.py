"""SDCA: exact maximisation of the dual over one coordinate at a time, the paper's baseline.

    x_i += h,   h = argmax_h D(x + h e_i)

It is (rpcg-prox) on the dual of ERM: with g = L2, f is quadratic along a coordinate and L_i is its
curvature, so the prox step is the exact maximisation; with another g it is a majorisation step.
On the primal form it is proximal coordinate descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.paper.sdca import run_plain
from ...certify.points import Certificate, Start
from ...data import views
from ...problems.composite import Composite
from ...problems.erm import ERM
from ..base import COMPILED_LOSS, ONE_OUTPUT, SEPARABLE, SMOOTH_FORM, Needs, Target
from .coordinate import CoordinateRun, Coordinates


class PlainSteps:
    """x and the rows r = A x - shift."""

    def __init__(self, problem: Composite, x0: Vector) -> None:
        self.problem = problem
        self._x = x0.copy()
        self._rows = problem.f.rows(x0)

    def epoch(self, order: Index) -> None:
        """One step on each coordinate of `order`."""
        raise NotImplementedError

    @property
    def x(self) -> Vector:
        """The present answer."""
        return np.array(self._x)

    def refresh(self) -> None:
        """Compute r anew from x."""
        self._rows = self.problem.f.rows(self._x)

    def shift(self, change: float) -> None:
        """Add `change` to the last row, at every x: its shift has moved."""
        self._rows[-1] += change

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x less the shift of h), as accumulated."""
        return scale * self._rows


class SDCA(PlainSteps):
    """Steps on one coordinate after the other."""

    def __init__(self, problem: Composite, x0: Vector) -> None:
        super().__init__(problem, x0)
        self._columns, self._model = problem.f.columns.view(views.arrays), problem.model()

    def epoch(self, order: Index) -> None:
        run_plain(*self._columns, self._model, self._x, self._rows, order)


@dataclass(frozen=True)
class DualAscent:
    """SDCA on the dual of ERM; proximal coordinate descent where the primal is solved."""

    name: ClassVar[str] = "sdca"
    needs: ClassVar[Needs] = (ONE_OUTPUT, COMPILED_LOSS, SEPARABLE, SMOOTH_FORM)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> CoordinateRun:
        """Begin at x (or w, in the primal)."""
        coordinates = Coordinates(problem, at)
        iterate = SDCA(coordinates.form, coordinates.take_start())
        return _DualAscentRun(coordinates, iterate, 1.0, target, rng)


class _DualAscentRun(CoordinateRun):
    """Plain steps leave exact zeros by themselves."""

    def finish(self, certificate: Certificate, converged: bool) -> None:
        """Nothing is left to do."""
