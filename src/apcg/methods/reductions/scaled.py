"""An L2 weight for each feature: the same problem with one weight for all.

    minimize (1/n) sum_i s_i phi_i(A_i' w) + (lambda/2) sum_j b_j w_j^2,   all b_j > 0

With v_j = sqrt(b_j) w_j, and the columns of X over sqrt(b_j), the penalty is (lambda/2)|v|^2. The
predictions are the same, and so are the dual function and x. So all that is there for plain L2
serves, at the price of a copy of X. What is found is certified on X itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from ...certify.points import Certificate, Point, Start
from ...data.matrix import Stored
from ...penalties import L2
from ...penalties.interval import Interval
from ...problems.erm import ERM
from ..base import ALL_STORED, IN_MEMORY, Inside, Method, Need, Needs, Target

#: The largest weight is at most so many times the least: a column is scaled by at most its root.
WIDEST = 1e12


def _has_weights(problem: ERM) -> bool:
    """Whether g is a sum of b_j w_j^2/2 with b_j > 0 that differ, but not beyond all measure."""
    g: Any = problem.g
    if not (problem.separable and g.is_quadratic and problem.dual_form and g.b.size > 1):
        return False
    return bool(0 < g.b.max() <= WIDEST * g.b.min())


WEIGHTS = Need(
    "an L2 weight for each feature, all of them positive and of like size",
    _has_weights,
    lambda p: f"penalty {p.penalty} is not of that kind",
)


@dataclass(frozen=True)
class Scaled:
    """The method "scaled": `inner` solves the problem with one weight."""

    inner: Method
    name: ClassVar[str] = "scaled"
    needs: ClassVar[Needs] = (IN_MEMORY, WEIGHTS, ALL_STORED)

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> ScaledRun:
        """Begin with the v of at.w, and at.x and at.b as they are."""
        return ScaledRun(problem, at, target, rng, self.inner)


class ScaledRun(Inside):
    """The inner method at work; `root` is sqrt(b), a column with K outputs."""

    def __init__(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator, inner: Method
    ) -> None:
        self._root = np.sqrt(problem.interval.b)
        one = Interval.of(L2(1.0), None, problem.d).over(problem.K)
        samples = cast(Stored, problem.samples).scaled(1 / self._root.reshape(-1))
        plain = problem.altered(samples=samples, g=one)
        start = replace(at, w=None if at.w is None else self._root * at.w, run=None)
        super().__init__(inner.start(plain, start, target, rng))

    def _out(self, found: Point | Certificate) -> Point:
        """With the w of its v; x, b and z are the same."""
        w = None if found.w is None else found.w / self._root
        if isinstance(found, Certificate):
            return Point(w, found.x, found.b)
        return Point(w, found.x, found.b, found.z)

    def _in(self, certificate: Certificate) -> Certificate:
        return replace(certificate, w=self._root * certificate.w)
