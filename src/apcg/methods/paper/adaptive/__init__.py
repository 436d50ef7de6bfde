"""The accelerated dual method that adapts: following the rate, uneven visits, resting, settling.

Each idea is a small object in a file of its own, and can be left out by name:
`AdaptiveMethod(without=("visits",))`. `benchmarks/ablation.py` prints what each is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...._base.validation import choice
from ....certify.points import Certificate, Start
from ....problems.erm import ERM
from ...base import ONE_OUTPUT, SEPARABLE, SMOOTH_FORM, Needs, Report, Target
from ..coordinate import CoordinateRun, Coordinates
from ..sampling import Sweep
from .iterate import Adaptive
from .resting import Resting, applies
from .tuning import AdaptiveTuning

IDEAS = ("rate", "visits", "resting", "settling")


@dataclass(frozen=True)
class AdaptiveMethod:
    """APCG with a mu-hat that follows the observed rate, from SDCA down to the mu of the theorem.

    `without` names ideas to leave out, of "rate", "visits", "resting" and "settling".
    """

    without: tuple[str, ...] = ()
    tuning: AdaptiveTuning = AdaptiveTuning()
    name: ClassVar[str] = "adaptive"
    needs: ClassVar[Needs] = (ONE_OUTPUT, SEPARABLE, SMOOTH_FORM)

    def __post_init__(self) -> None:
        for idea in self.without:
            choice(idea, "without", IDEAS)

    def start(
        self, problem: ERM, at: Start, target: Target, rng: np.random.Generator
    ) -> AdaptiveRun:
        """Begin at x (or w, in the primal), with the momentum that `at` knows."""
        coordinates = Coordinates(problem, at)
        # Halfway, in logarithms, from no momentum to what an earlier run ended with: that was for
        # its last digits.
        first = 1.0 if at.mu is None or not problem.dual_form else math.sqrt(at.mu)
        iterate = Adaptive(
            coordinates.form,
            coordinates.take_start(),
            coordinates.sampled,
            coordinates.mu,
            first,
            rate=self.tuning.rate,
            visits=self.tuning.visits,
            without=self.without,
        )
        resting = None
        if "resting" not in self.without and applies(problem):
            settling = None if "settling" in self.without else self.tuning.settling
            resting = Resting(problem, coordinates.sampled, self.tuning.resting, settling)
        return AdaptiveRun(coordinates, iterate, resting, target, rng)


class AdaptiveRun(CoordinateRun):
    """Sweeps over the coordinates that do not rest."""

    steers = True

    def __init__(
        self,
        coordinates: Coordinates,
        iterate: Adaptive,
        resting: Resting | None,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(coordinates, iterate, iterate.mu, target, rng)
        self._adaptive, self._resting = iterate, resting
        self._kept = coordinates.sampled

    @property
    def report(self) -> Report:
        """mu-hat, and how often F rose and the momentum was dropped."""
        it = self._adaptive
        return Report(self.coordinates.side, mu=it.mu, restarts=it.restarts)

    def sweep(self) -> Sweep:
        """Update the sampled set and the visit counts before a pass."""
        if self._resting and self._resting.expired(self.passes):
            self._kept = self._resting.all
        return self._adaptive.sample(self._kept)

    def seen(self, certificate: Certificate) -> None:
        """Decide which coordinates rest until the next look."""
        super().seen(certificate)
        if self._resting:
            self._kept = self._resting.after_look(self._adaptive, certificate, self.passes)
